//! Changes of facts about a volume, on the engine of a mount or of a volume opened for the command.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vere_mailfs::format::slot::{Method, Slot};
use vere_mailfs::format::{Keys, MailCopy, MailId, VolumeKey};
use vere_mailfs::rows::{AccountRow, GroupRow, Key, RowValue, SlotRow};
use vere_mailfs::volume::{AccountTerms, FactsChange, FactsReport, GONE, Leaving, Membership};
use vere_ports::files::Errno;
use vere_ports::mail_accounts::AccountId;
use vere_process::failure::Failure;
use vere_process::wording::counted;
use vere_settings::Volume as Described;

use crate::accounts::Asks;
use crate::facts;
use crate::folders::{self, Description};
use crate::held;
use crate::hex::Hex;
use crate::host::{Event, with};
use crate::open;
use crate::runs;
use crate::secrets;
use crate::sections::with_section;
use crate::volume::{self, Live};

/// Time between looks at a change.
const LOOK: Duration = Duration::from_millis(50);
/// The longest silence of an engine: the rows of a large volume hold an engine for minutes.
const SILENCE_MAX: Duration = Duration::from_secs(600);
/// The longest time for packs on the way to arrive.
const SYNC_MAX: Duration = Duration::from_secs(600);
const ENGINE: &str = "expected an answer of the engine within 10 minutes; found none";
/// Time for packs of other machines to arrive where they belong.
const LATE_MAX: Duration = Duration::from_secs(600);
/// Time between looks at such packs.
const LATE_LOOK: Duration = Duration::from_secs(1);

/// A change of key slots.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct SlotsOrder {
    /// All slots as listed when the order was made: numbers and mails. For another list the order does not count.
    pub(crate) expected: Vec<(u8, Hex)>,
    /// New slots, or replacements of slots with equal numbers.
    pub(crate) put: Vec<SlotOrder>,
    /// Slots that end.
    pub(crate) removed: Vec<u8>,
    /// The slot whose copy lies beside the description from now on.
    pub(crate) own: Option<u8>,
    /// The keys of all epochs, where a new epoch begins.
    pub(crate) keys: Option<Vec<(u16, Hex)>>,
}

/// A key slot, as sealed.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct SlotOrder {
    pub(crate) label: String,
    pub(crate) body: Hex,
}

/// An account that joins.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct JoinOrder {
    pub(crate) number: u16,
    /// The section of the account in the description.
    pub(crate) section: String,
    /// The longest mail of the account, where told.
    pub(crate) append_limit: Option<u32>,
}

/// An account that leaves.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct LeaveOrder {
    pub(crate) number: u16,
    /// The description without the account.
    pub(crate) text: String,
}

/// The means of a process to change the facts of a volume.
#[derive(Clone)]
pub(crate) struct Keeper {
    pub(crate) description: Description,
    pub(crate) asks: Asks,
    pub(crate) events: Sender<Event<Live>>,
}

impl Keeper {
    /// The key slots and accounts that the volume lists.
    pub(crate) fn facts(&self) -> Result<Value, String> {
        let (slots, epoch, accounts, missing) =
            with(&self.events, SILENCE_MAX, |live: &mut Live, _| {
                let volume = live.volume();
                let mut accounts = Vec::new();
                for number in 1..=u16::from(u8::MAX) {
                    accounts.extend(account(live, number)?.map(|row| (number, row)));
                }
                Ok((
                    volume.slots()?,
                    volume.epoch(),
                    accounts,
                    volume.copies_missing(),
                ))
            })
            .ok_or(ENGINE)?
            .map_err(unreadable)?;
        let slots: Vec<Value> = slots
            .iter()
            .map(|(number, row)| {
                json!({
                    "slot": number,
                    "label": row.label,
                    "method": method_word(row.method),
                    "mail": row.mail.to_string(),
                })
            })
            .collect();
        let accounts: Vec<Value> = accounts
            .iter()
            .map(|(number, row)| {
                json!({
                    "account": number,
                    "user": row.user,
                    "host": row.host,
                    "port": row.port,
                    "gone": row.state == GONE,
                })
            })
            .collect();
        Ok(json!({
            "epoch": epoch,
            "slots": slots,
            "accounts": accounts,
            "copies_missing": missing,
        }))
    }

    /// Changes key slots.
    pub(crate) fn change_slots(&self, order: &SlotsOrder) -> Result<Value, String> {
        let mut change = FactsChange {
            name: self.description.label(),
            ..FactsChange::default()
        };
        let mut own = None;
        for put in &order.put {
            let body = put.body.octets().ok_or("expected the octets of a slot")?;
            let slot = Slot::decode(&body).map_err(|error| error.to_string())?;
            let row = slot_row(&slot, &put.label);
            let key = Key::Slot(slot.number).encode();
            change.rows.push((key, Some(row.encode())));
            if order.own == Some(slot.number) {
                own = Some(body);
            }
            change.slots.push(slot);
        }
        let removed = order.removed.iter();
        let removed = removed.map(|number| (Key::Slot(*number).encode(), None));
        change.rows.extend(removed);
        let expected = order.expected.iter().map(|(number, mail)| {
            let mail = mail.octets()?.try_into().ok()?;
            Some((*number, MailId(mail)))
        });
        let expected: Option<BTreeMap<u8, MailId>> = expected.collect();
        change.listed = Some(expected.ok_or("expected the mails of slots; found another text")?);
        change.keys = order.keys.as_deref().map(new_keys).transpose()?;
        let report = self.run(change)?;
        if let Some(body) = own {
            folders::replace_private(&self.description.slot(), &body)
                .map_err(|failure| failure.to_string())?;
        }
        Ok(shown(&report))
    }

    /// Takes an account in: key slots and facts first, the description next, data last.
    pub(crate) fn join(&self, order: &JoinOrder) -> Result<Value, String> {
        let text = |failure: Failure| failure.to_string();
        let (described, _) = self.with_section(&order.section)?;
        let new = described
            .accounts
            .iter()
            .find(|account| account.number == order.number)
            .ok_or("expected the new account in the description; found none")?;
        let slot = open::read_slot(&self.description).map_err(text)?;
        let settings = secrets::account(new, &open::tag(&slot)).map_err(text)?;
        if !self.asks.join(AccountId(new.number), settings) {
            return Err("expected the thread of the accounts; found none".to_owned());
        }
        let row = facts::account_row(new, order.append_limit).map_err(text)?;
        self.check_number(new.number, &row)?;
        let group = facts::group_row(&described, new.group);
        let change = FactsChange {
            rows: vec![
                (Key::Account(new.number).encode(), Some(row.encode())),
                (Key::Group(new.group).encode(), Some(group.encode())),
            ],
            accounts: vec![AccountTerms {
                account: new.number,
                encoding: volume::encoding(new.base64),
            }],
            name: self.description.label(),
            ..FactsChange::default()
        };
        let report = self.run(change)?;
        // The file may have changed while servers were asked.
        let (described, file) = self.with_section(&order.section)?;
        folders::replace_private(&self.description.file, file.as_bytes()).map_err(text)?;
        self.use_accounts(&described)?;
        Ok(shown(&report))
    }

    /// The description as the file is now, with a further section.
    fn with_section(&self, section: &str) -> Result<(Described, String), String> {
        let text = self.description.text();
        let text = text.map_err(|failure| failure.to_string())?;
        let text = with_section(&text, section);
        let shown_file = self.description.file.display().to_string();
        let described = Described::parse(&text, &shown_file)
            .map_err(|error| Failure::from(error).to_string())?;
        Ok((described, text))
    }

    /// Refuses the number of another account.
    fn check_number(&self, number: u16, new: &AccountRow) -> Result<(), String> {
        let row = with(&self.events, SILENCE_MAX, move |live: &mut Live, _| {
            account(live, number)
        });
        let row = row.ok_or(ENGINE)?.map_err(unreadable)?;
        check_place(number, row.as_ref(), new)
    }

    /// Lets an account go whose packs are all elsewhere too: nothing new reaches the account first, then the rows forget the account.
    /// An account that has left already is looked at again.
    pub(crate) fn leave(&self, order: &LeaveOrder) -> Result<Value, String> {
        let text = |failure: Failure| failure.to_string();
        let number = order.number;
        let before = self.description.read().map_err(text)?;
        check_lead(&before, number)?;
        let shown_file = self.description.file.display().to_string();
        let after = Described::parse(&order.text, &shown_file)
            .map_err(|error| Failure::from(error).to_string())?;
        self.use_accounts(&after)?;
        let left = self.let_go(&after, number, before.lead);
        if left.is_err() {
            // Where the rows say already that the account has left, the engine keeps to the rows.
            self.use_accounts(&before)?;
        }
        let report = left?;
        folders::replace_private(&self.description.file, order.text.as_bytes()).map_err(text)?;
        let mut shown = shown(&report);
        match self.let_go_late(&after, number) {
            Ok(named) => shown["packs_named"] = named.into(),
            Err(reason) => shown["late"] = reason.into(),
        }
        Ok(shown)
    }

    fn let_go(&self, after: &Described, number: u16, lead: u16) -> Result<FactsReport, String> {
        // Packs on the way to the account are part of the sum.
        self.sync()?;
        let facts = with(&self.events, SILENCE_MAX, move |live: &mut Live, _| {
            let row = account(live, number)?;
            let groups = row.as_ref().map(|row| row.groups.clone());
            let groups = groups.unwrap_or_default().into_iter();
            let rows = groups.map(|group| Ok((group, group_of(live, group)?)));
            Ok((row, rows.collect::<Result<Vec<_>, Errno>>()?))
        });
        let (row, groups) = facts.ok_or(ENGINE)?.map_err(unreadable)?;
        let row =
            row.ok_or_else(|| format!("expected an account of the volume; found {number}"))?;
        let mut leaving = self.leaving(number, HashMap::new())?;
        if leaving.only > 0 {
            // A former lead has commits and pages that the lead has too.
            leaving = self.leaving(number, held::of_lead(&self.description, (after, lead))?)?;
        }
        if leaving.only > 0 && row.state != GONE {
            let group = row.groups.first().copied().unwrap_or(number);
            return Err(format!(
                "account {number}: expected a copy of each pack on another account; found {} that only this account has. `vere fs accounts add --group {group} --wait` gives its group a further account first",
                counted(leaving.only, "pack", "packs")
            ));
        }
        // Other machines place nothing on the account as soon as they see these rows.
        let mut rows = Vec::new();
        for (group, before) in groups {
            let mut now = before.unwrap_or_else(|| facts::group_row(after, group));
            now.accounts.retain(|account| *account != number);
            let now = (!now.accounts.is_empty()).then(|| now.encode());
            rows.push((Key::Group(group).encode(), now));
        }
        let row = AccountRow { state: GONE, ..row };
        rows.push((Key::Account(number).encode(), Some(row.encode())));
        rows.extend(leaving.rows);
        self.run(FactsChange {
            rows,
            expected: leaving.expected,
            name: self.description.label(),
            ..FactsChange::default()
        })
    }

    /// Packs that other machines have placed on the account before they knew: those with another copy are forgotten, and the others
    /// get one first. Returns the packs that still name the account.
    fn let_go_late(&self, after: &Described, number: u16) -> Result<usize, String> {
        let begin = Instant::now();
        loop {
            self.sync()?;
            let leaving = self.leaving(number, HashMap::new())?;
            if !leaving.rows.is_empty() {
                self.run(FactsChange {
                    rows: leaving.rows,
                    expected: leaving.expected,
                    name: self.description.label(),
                    ..FactsChange::default()
                })?;
            } else if leaving.only == 0 || begin.elapsed() >= LATE_MAX {
                return Ok(leaving.only);
            } else {
                // Looks for missing copies once more.
                self.use_accounts(after)?;
                thread::sleep(LATE_LOOK);
            }
        }
    }

    /// Every change so far is on the servers.
    fn sync(&self) -> Result<(), String> {
        let (done, all_done) = channel();
        let sync = move |live: &mut Live, now| live.sync(now, done);
        with(&self.events, SILENCE_MAX, sync).ok_or(ENGINE)?;
        match all_done.recv_timeout(SYNC_MAX) {
            Ok(Ok(())) => Ok(()),
            _ => Err("expected every change on the servers within 10 minutes".to_owned()),
        }
    }

    /// The packs of the account. Rows may have to come from the servers first.
    fn leaving(
        &self,
        number: u16,
        elsewhere: HashMap<MailId, MailCopy>,
    ) -> Result<Leaving, String> {
        let elsewhere = Arc::new(elsewhere);
        let begin = Instant::now();
        while begin.elapsed() < SYNC_MAX {
            let elsewhere = elsewhere.clone();
            let look = move |live: &mut Live, now| live.leaving(now, number, &elsewhere);
            let leaving = with(&self.events, SILENCE_MAX, look).ok_or(ENGINE)?;
            match leaving.map_err(unreadable)? {
                Some(leaving) => return Ok(leaving),
                None => thread::sleep(LOOK),
            }
        }
        Err("expected the rows of all packs within 10 minutes; found an account that does not answer".to_owned())
    }

    /// Has the engine use the accounts and groups of a description.
    fn use_accounts(&self, described: &Described) -> Result<(), String> {
        let terms = volume::terms(described);
        let membership = Membership {
            accounts: terms.accounts,
            groups: terms.groups,
        };
        let used = with(&self.events, SILENCE_MAX, move |live: &mut Live, now| {
            live.use_accounts(now, membership)
        });
        Ok(used.ok_or(ENGINE)?)
    }

    /// Runs a change to its end.
    fn run(&self, change: FactsChange) -> Result<FactsReport, String> {
        runs::await_log(&self.events)?;
        let begin = move |live: &mut Live, now| live.change_facts(now, change);
        let has_begun = with(&self.events, SILENCE_MAX, begin).ok_or(ENGINE)?;
        if !has_begun.map_err(unreadable)? {
            return Err("expected no other change of keys or accounts; found one".to_owned());
        }
        loop {
            let ended = with(&self.events, SILENCE_MAX, |live: &mut Live, _| {
                live.take_changed()
            });
            match ended.ok_or(ENGINE)? {
                Some(result) => return result,
                None => thread::sleep(LOOK),
            }
        }
    }
}

fn account(live: &Live, number: u16) -> Result<Option<AccountRow>, Errno> {
    let row = live.volume().fact(&Key::Account(number).encode())?;
    row.map(|row| AccountRow::decode(&row).map_err(|_| Errno::Io))
        .transpose()
}

fn group_of(live: &Live, number: u16) -> Result<Option<GroupRow>, Errno> {
    let row = live.volume().fact(&Key::Group(number).encode())?;
    row.map(|row| GroupRow::decode(&row).map_err(|_| Errno::Io))
        .transpose()
}

/// A number is given once: to a place, for the life of the volume.
fn check_place(number: u16, row: Option<&AccountRow>, new: &AccountRow) -> Result<(), String> {
    let Some(row) = row else {
        return Ok(());
    };
    let is_same = (&row.user, &row.host, row.port) == (&new.user, &new.host, new.port);
    if is_same && row.state != GONE {
        return Ok(());
    }
    Err(format!(
        "account {number}: expected a number that no account has had; found the one of {} at {}: another command has added an account; run again",
        row.user, row.host
    ))
}

fn unreadable(errno: Errno) -> String {
    format!("rows of the volume: {errno}")
}

/// Refuses the lead, whose log no other account has.
pub(crate) fn check_lead(described: &Described, number: u16) -> Result<(), String> {
    if described.lead != number {
        return Ok(());
    }
    Err(format!(
        "account {number}: expected another account than the lead, whose log has the order of all changes; found the lead: `vere fs accounts lead` makes another account the lead first"
    ))
}

/// The row that has a slot count.
pub(crate) fn slot_row(slot: &Slot, label: &str) -> SlotRow {
    SlotRow {
        mail: slot.head.mail,
        method: match slot.method {
            Method::Passphrase(_) => 1,
            Method::KeyFile => 2,
        },
        label: label.to_owned(),
    }
}

const fn method_word(method: u8) -> &'static str {
    match method {
        1 => "passphrase",
        2 => "key file",
        _ => "unknown",
    }
}

fn new_keys(keys: &[(u16, Hex)]) -> Result<(u16, Arc<Keys>), String> {
    const WRONG: &str = "expected keys of epochs; found none";
    let key = |(epoch, hex): &(u16, Hex)| {
        let octets = hex.octets()?;
        Some((*epoch, VolumeKey(octets.try_into().ok()?)))
    };
    let keys: Option<Vec<(u16, VolumeKey)>> = keys.iter().map(key).collect();
    let keys = keys.ok_or(WRONG)?;
    let (epoch, _) = keys.last().ok_or(WRONG)?;
    let all = Keys::of_epochs(&keys).ok_or(WRONG)?;
    Ok((*epoch, Arc::new(all)))
}

fn shown(report: &FactsReport) -> Value {
    let behind: Vec<Value> = report
        .behind
        .iter()
        .map(|(account, reason)| json!({ "account": account, "reason": reason }))
        .collect();
    json!({ "removed": report.removed, "behind": behind })
}

#[cfg(test)]
mod tests {
    use super::{GONE, check_place};
    use vere_mailfs::rows::AccountRow;

    #[test]
    fn a_number_is_given_to_one_place() {
        let row = |user: &str, state| AccountRow {
            security: 0,
            encoding: 1,
            state,
            port: 993,
            mail_octets_max: 1 << 20,
            host: "mail.example.org".to_owned(),
            user: user.to_owned(),
            groups: vec![1],
        };
        let new = row("ann", 0);
        assert_eq!(check_place(2, None, &new), Ok(()));
        // An earlier attempt goes on.
        assert_eq!(check_place(2, Some(&new), &new), Ok(()));
        for other in [row("bob", 0), row("ann", GONE)] {
            let refused = check_place(2, Some(&other), &new).unwrap_err();
            assert!(refused.ends_with("run again"), "{refused}");
        }
    }
}
