//! `vere fs passwd`: key slots, and key epochs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

use serde_json::{Value, json};
use vere_mailfs::format::slot::{Cost, Method, NewSlot, Slot, SlotKeys};
use vere_mailfs::format::{PackNumber, VolumeKey};
use vere_process::failure::Failure;
use vere_settings::Volume as Described;

use crate::args::PasswdArgs;
use crate::change::{SlotOrder, SlotsOrder};
use crate::control::Request;
use crate::folders::Description;
use crate::hex::Hex;
use crate::open::{keys_of, read_slot};
use crate::secrets::Opener;
use crate::session::{self, Session};
use crate::volume;

/// The number of mails with slots: writers count from 1, so a writer never uses the number.
const SLOT_NUMBER: PackNumber = PackNumber(1);

pub(crate) fn run(args: &PasswdArgs) -> Result<String, Failure> {
    let description = Description::named(&args.volume.name)?;
    let described = description.read()?;
    // A mounted volume tells the slots without a secret.
    let mut secret: Option<Opener> = None;
    let session = Session::begin(&description, &described, || {
        let opener = session::opener(&args.secret, &described)?;
        secret = Some(opener.clone());
        Ok(opener)
    })?;
    let result = (|| {
        let slots = Slots::of(&session, &description)?;
        if args.list {
            return Ok(slots.listed(args.volume.json));
        }
        let opener = match secret {
            Some(opener) => opener,
            None => session::opener(&args.secret, &described)?,
        };
        let content = keys_of(&slots.local, &opener, &description.slot())?;
        let order = slots.order(args, &opener, content)?;
        let Some(order) = order else {
            return Ok("Nothing is changed.\n".to_owned());
        };
        let done = session.ask(&Request::ChangeSlots(order))?;
        Ok(if args.volume.json {
            format!("{done:#}\n")
        } else {
            said(args, &done, &described)
        })
    })();
    session.end();
    result
}

/// The slots that a volume lists.
struct Slots {
    local: Slot,
    own: u8,
    rows: BTreeMap<u8, (String, String)>,
    /// Numbers and mails, as the volume lists them.
    listed: Vec<(u8, Hex)>,
}

impl Slots {
    fn of(session: &Session, description: &Description) -> Result<Self, Failure> {
        let facts = session.ask(&Request::Facts)?;
        let local = read_slot(description)?;
        let mut rows = BTreeMap::new();
        let mut own = None;
        let mut listed = Vec::new();
        for row in facts["slots"].as_array().into_iter().flatten() {
            let word = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            let Some(number) = row["slot"]
                .as_u64()
                .and_then(|slot| u8::try_from(slot).ok())
            else {
                continue;
            };
            if word("mail") == local.head.mail.to_string() {
                own = Some(number);
            }
            rows.insert(number, (word("label"), word("method")));
            listed.push((number, serde_json::from_value(row["mail"].clone())?));
        }
        if rows.is_empty() {
            let method = match local.method {
                Method::Passphrase(_) => "passphrase",
                Method::KeyFile => "key file",
            };
            rows.insert(local.number, ("first".to_owned(), method.to_owned()));
            own = Some(local.number);
        }
        let own = own.ok_or_else(|| {
            Failure::new(format!(
                "{}: expected a key slot that the volume lists; found another one: unmount the volume, and mount again",
                description.slot().display()
            ))
        })?;
        Ok(Self {
            local,
            own,
            rows,
            listed,
        })
    }

    fn listed(&self, json: bool) -> String {
        if json {
            let rows: Vec<Value> = self
                .rows
                .iter()
                .map(|(number, (label, method))| {
                    json!({ "slot": number, "label": label, "method": method, "own": *number == self.own })
                })
                .collect();
            return format!("{:#}\n", Value::Array(rows));
        }
        let mut text = String::new();
        for (number, (label, method)) in &self.rows {
            let own = if *number == self.own {
                ", this machine's"
            } else {
                ""
            };
            // Writing into a text does not fail.
            let _written = writeln!(text, "{number:3} {method:10} {label}{own}");
        }
        text
    }

    /// The change by the command line; `None` where the user says no.
    fn order(
        &self,
        args: &PasswdArgs,
        opener: &Opener,
        content: SlotKeys,
    ) -> Result<Option<SlotsOrder>, Failure> {
        let mut order = SlotsOrder {
            expected: self.listed.clone(),
            put: Vec::new(),
            removed: Vec::new(),
            own: None,
            keys: None,
        };
        if let Some(number) = args.remove {
            self.check_removable(number)?;
            order.removed.push(number);
            return Ok(Some(order));
        }
        if args.rotate {
            return self.rotation(args, opener, content);
        }
        let number = if args.add { self.free()? } else { self.own };
        let label = match &args.label {
            Some(label) => label.clone(),
            None if args.add => format!("slot {number}"),
            None => self.label(number),
        };
        let new = Opener::get_new(
            args.new_passphrase_file.as_ref(),
            args.new_key_file.as_ref(),
        )?;
        order.own = (!args.add).then_some(number);
        let keys = content.keys;
        order.put.push(self.slot(number, label, keys, &new)?);
        Ok(Some(order))
    }

    fn label(&self, number: u8) -> String {
        let row = self.rows.get(&number);
        row.map_or_else(String::new, |(label, _)| label.clone())
    }

    fn check_removable(&self, number: u8) -> Result<(), Failure> {
        if !self.rows.contains_key(&number) {
            return Err(Failure::new(format!(
                "expected a slot that the volume lists; found {number}"
            )));
        }
        if number == self.own {
            return Err(Failure::new(format!(
                "slot {number}: expected a slot of another passphrase; found the one of this machine, which `vere fs passwd` without --remove changes"
            )));
        }
        Ok(())
    }

    fn free(&self) -> Result<u8, Failure> {
        let mut numbers = 1..=u8::MAX;
        let free = numbers.find(|number| !self.rows.contains_key(number));
        free.ok_or_else(|| Failure::new("expected fewer than 255 key slots; found 255"))
    }

    fn slot(
        &self,
        number: u8,
        label: String,
        keys: Vec<(u16, VolumeKey)>,
        opener: &Opener,
    ) -> Result<SlotOrder, Failure> {
        let new = NewSlot {
            volume: self.local.head.volume,
            pack: SLOT_NUMBER,
            number,
            cost: Cost::DEFAULT,
            salt: volume::random()?,
            nonce: volume::random()?,
        };
        let content = SlotKeys {
            keys,
            label: label.clone(),
        };
        let slot = Slot::make(&new, &content, opener.as_slot())?;
        Ok(SlotOrder {
            label,
            body: Hex::of(&slot.encode()),
        })
    }

    /// A new key epoch: the slot of the machine and the kept slots get the new key, further slots are dropped.
    fn rotation(
        &self,
        args: &PasswdArgs,
        opener: &Opener,
        content: SlotKeys,
    ) -> Result<Option<SlotsOrder>, Failure> {
        let kept = self.kept(&args.keep)?;
        let is_dropped = |number: &u8| *number != self.own && !kept.contains_key(number);
        let dropped: Vec<u8> = self.rows.keys().copied().filter(is_dropped).collect();
        if !dropped.is_empty() && !args.yes && !self.may_drop(&dropped)? {
            return Ok(None);
        }
        let mut keys = content.keys;
        let (newest, _) = keys
            .last()
            .ok_or_else(|| Failure::new("expected a key in the slot; found none"))?;
        let epoch = newest
            .checked_add(1)
            .ok_or_else(|| Failure::new("expected fewer than 65,535 key epochs; found these"))?;
        keys.push((epoch, VolumeKey(volume::random()?)));
        let new = match (&args.new_passphrase_file, &args.new_key_file) {
            (None, None) => None,
            (passphrase, key) => Some(Opener::get(passphrase.as_ref(), key.as_ref(), true)?),
        };
        let own = new.as_ref().unwrap_or(opener);
        let label = args.label.clone().unwrap_or_else(|| self.label(self.own));
        let mut put = vec![self.slot(self.own, label, keys.clone(), own)?];
        for (number, opener) in kept {
            put.push(self.slot(number, self.label(number), keys.clone(), &opener)?);
        }
        let keys = keys.iter().map(|(epoch, key)| (*epoch, Hex::of(&key.0)));
        Ok(Some(SlotsOrder {
            expected: self.listed.clone(),
            put,
            removed: dropped,
            own: Some(self.own),
            keys: Some(keys.collect()),
        }))
    }

    /// The secrets of slots to be kept.
    fn kept(&self, words: &[String]) -> Result<BTreeMap<u8, Opener>, Failure> {
        let mut kept = BTreeMap::new();
        for word in words {
            let wrong = || {
                Failure::new(format!(
                    "--keep {word}: expected SLOT=FILE with another slot that the volume lists; found none"
                ))
            };
            let (number, file) = word.split_once('=').ok_or_else(wrong)?;
            let number: u8 = number.trim().parse().map_err(|_| wrong())?;
            let (_, method) = self
                .rows
                .get(&number)
                .filter(|_| number != self.own)
                .ok_or_else(wrong)?;
            let file = PathBuf::from(file);
            let opener = match method.as_str() {
                "key file" => Opener::get(None, Some(&file), false)?,
                _ => Opener::get(Some(&file), None, false)?,
            };
            kept.insert(number, opener);
        }
        Ok(kept)
    }

    /// Asks whether these slots may go.
    fn may_drop(&self, dropped: &[u8]) -> Result<bool, Failure> {
        let named: Vec<String> = dropped
            .iter()
            .map(|number| format!("{number} ({})", self.label(*number)))
            .collect();
        let named = named.join(", ");
        if !io::stdin().is_terminal() {
            return Err(Failure::new(format!(
                "the new key would drop the slots {named}, whose secrets are not given: --keep SLOT=FILE keeps a slot, --yes drops them"
            )));
        }
        eprint!(
            "The new key drops the slots {named}; --keep SLOT=FILE keeps one. Drop them? [y/N] "
        );
        io::stderr().flush()?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        Ok(["y", "yes"].contains(&line.trim().to_lowercase().as_str()))
    }
}

fn said(args: &PasswdArgs, done: &Value, described: &Described) -> String {
    let what = if args.add {
        "The slot is added"
    } else if args.remove.is_some() {
        "The slot is removed"
    } else if args.rotate {
        "A new key seals what follows"
    } else {
        "The secret of the volume is changed"
    };
    format!("{what}.\n{}{}", old_secret(args, described), behind(done))
}

/// A hint for a description that names the file of the secret that counts no more.
fn old_secret(args: &PasswdArgs, described: &Described) -> String {
    let is_new = args.new_passphrase_file.is_some() || args.new_key_file.is_some();
    let has_changed = is_new || !args.rotate;
    if args.add || args.remove.is_some() || !has_changed {
        return String::new();
    }
    let whole = |file: &PathBuf| file.canonicalize().unwrap_or_else(|_| file.clone());
    let old = [
        (
            "passphrase_file",
            &described.passphrase_file,
            &args.new_passphrase_file,
        ),
        ("key_file", &described.key_file, &args.new_key_file),
    ];
    let mut text = String::new();
    for (name, old, new) in old {
        if let Some(file) = old
            && new.as_ref().map(whole) != Some(whole(file))
        {
            // Writing into a text does not fail.
            let _written = writeln!(
                text,
                "The description still says {name} = \"{}\", a file of the old secret: name the new one there, or the next mount fails.",
                file.display()
            );
        }
    }
    text
}

/// A line for each account that did not answer.
pub(crate) fn behind(done: &Value) -> String {
    let mut text = String::new();
    for behind in done["behind"].as_array().into_iter().flatten() {
        // Writing into a text does not fail.
        let _written = writeln!(
            text,
            "account {}: {}; the account may keep replaced mails in its mailbox head; `vere fs gc` removes old key slots there as soon as the account answers",
            behind["account"],
            behind["reason"].as_str().unwrap_or_default()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{PasswdArgs, said};
    use clap::{Args as _, Command, FromArgMatches as _};
    use serde_json::json;
    use vere_settings::Volume;

    fn args(words: &[&str]) -> PasswdArgs {
        let command = PasswdArgs::augment_args(Command::new("passwd"));
        let all = ["passwd", "home"].iter().chain(words);
        let found = command.try_get_matches_from(all).unwrap();
        PasswdArgs::from_arg_matches(&found).unwrap()
    }

    #[test]
    fn a_description_with_the_old_secret_is_named() {
        let text = "version = 1\npassphrase_file = \"/etc/old\"\n[[account]]\nnumber = 1\n\
            url = \"imaps://ann@a.example/\"\npassword_file = \"/etc/p\"\n";
        let described = Volume::parse(text, "home.toml").unwrap();
        let says = |words: &[&str]| said(&args(words), &json!({}), &described);
        for words in [
            &["--new-passphrase-file", "/etc/new"][..],
            &["--new-key-file", "/etc/key"],
            &["--rotate", "--new-passphrase-file", "/etc/new"],
            &[],
        ] {
            let text = says(words);
            assert!(text.contains("passphrase_file = \"/etc/old\""), "{text}");
        }
        for words in [
            &["--new-passphrase-file", "/etc/old"][..],
            &["--add", "--new-passphrase-file", "/etc/new"],
            &["--remove", "2"],
            &["--rotate"],
        ] {
            let text = says(words);
            assert!(!text.contains("/etc/old"), "{text}");
        }
    }
}
