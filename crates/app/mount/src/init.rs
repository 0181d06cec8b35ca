//! `vere fs init`: a new volume.

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use indicatif::{ProgressBar, ProgressStyle};
use vere_mailfs::format::slot::{Cost, NewSlot, Slot, SlotKeys};
use vere_mailfs::format::{Encoding, Keys, Kind, PackNumber, Subject, VolumeId, VolumeKey, mail};
use vere_mailfs::rows::{Key, RowValue as _};
use vere_mailfs::volume::{Create, Strategy, Volume};
use vere_ports::files::Caller;
use vere_ports::mail_accounts::{AccountId, Request, RequestId, Urgency};
use vere_process::failure::Failure;
use vere_settings::Volume as Described;

use crate::accounts::Ask;
use crate::args::InitArgs;
use crate::change::slot_row;
use crate::facts::{self, Retention};
use crate::folders::{self, Description, Lock};
use crate::groups;
use crate::host::{Clock, Event, Host};
use crate::links::Links;
use crate::probe::{self, Found, Of};
use crate::provider;
use crate::secrets::Opener;
use crate::sections::{Section, sections};
use crate::serve::{start_accounts, tag};
use crate::volume::{self, Live};

/// The first epoch of a volume's key.
const FIRST_EPOCH: u16 = 1;
/// The label of the first slot.
const FIRST_LABEL: &str = "first";
/// The mailbox of slots and facts.
const HEAD_MAILBOX: &str = "head";
/// The longest time for the first mails.
const FIRST_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between looks at the first commit.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &InitArgs) -> Result<String, Failure> {
    let description = Description::named(&args.name)?;
    if description.slot().exists() {
        let text = "expected no volume yet; found its key slot. Another name makes another volume";
        return Err(Failure::new(format!(
            "{}: {text}",
            description.slot().display()
        )));
    }
    let is_new = !args.given.accounts.is_empty();
    let mut described = if is_new {
        new_description(&description, args)?
    } else {
        description.read()?
    };
    let passphrase = args
        .secret
        .passphrase_file
        .as_ref()
        .or(described.passphrase_file.as_ref());
    let key = args
        .secret
        .key_file
        .as_ref()
        .or(described.key_file.as_ref().filter(|_| passphrase.is_none()));
    let opener = Opener::get(passphrase, key, true)?;
    let (slot, keys) = make_slot(&opener)?;
    let new = New {
        create: volume::create(slot.head.volume, FIRST_EPOCH, keys)?,
        name: description.label(),
        slot,
        strategy: args.strategy.strategy(),
    };
    let found = try_accounts(&described, &new)?;
    take_encodings(&mut described, &found, is_new)?;
    let state = folders::state(new.slot.head.volume)?;
    folders::make_private(&folders::journal(&state))?;
    let _lock = Lock::take(&state)?;
    let keep = Retention {
        versions: args.keep_versions.duration(),
        deleted: args.keep_deleted.duration(),
    };
    store(&described, &new, (&found, keep), &folders::journal(&state))?;
    if let Some(folder) = description.file.parent() {
        folders::make_private(folder)?;
    }
    folders::write_private(&description.slot(), &new.slot.encode())?;
    if is_new {
        let text = text_of(args, &described)?;
        folders::write_private(&description.file, text.as_bytes())?;
    }
    Ok(format!(
        "The volume {} is made. `vere fs mount {} FOLDER` mounts it. Keep {} and the passphrase or key file: nothing else opens the volume.\n",
        tag(&new.slot),
        args.name,
        description.slot().display(),
    ))
}

/// A volume that is being made.
struct New {
    create: Create,
    name: String,
    slot: Slot,
    strategy: Strategy,
}

/// Tries every account, with a line for each.
fn try_accounts(described: &Described, new: &New) -> Result<Vec<Found>, Failure> {
    let bar = ProgressBar::new(described.accounts.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("trying accounts {bar:40} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar.tick();
    let tag = tag(&new.slot);
    let found = probe::run(described, &new.of(&tag, Clock::start()), &mut |found| {
        let mut accounts = described.accounts.iter();
        let account = accounts.find(|account| account.number == found.number);
        bar.suspend(|| {
            eprintln!("{}", found.shown());
            if let Some(terms) = account.and_then(provider::shown) {
                eprintln!("{terms}");
            }
        });
        bar.inc(1);
    })?;
    bar.finish_and_clear();
    Ok(found)
}

impl New {
    fn of<'a>(&'a self, tag: &'a str, clock: Clock) -> Of<'a> {
        Of {
            volume: self.create.volume,
            epoch: self.create.epoch,
            keys: &self.create.keys,
            tag,
            date: volume::moment(clock.now()).date(),
        }
    }
}

/// The encodings that the accounts take. A file of the user's own is the user's to change.
fn take_encodings(described: &mut Described, found: &[Found], is_new: bool) -> Result<(), Failure> {
    for (account, found) in described.accounts.iter_mut().zip(found) {
        let base64 = found.encoding == Encoding::Base64;
        if base64 && !account.base64 && !is_new {
            return Err(Failure::new(format!(
                "{}: expected an account that keeps 8-bit mails unchanged; found one that changes these mails. Set encoding = \"base64\" in its section",
                account.url
            )));
        }
        // Whoever asks for base64 gets base64, also where the account would keep 8-bit mails.
        account.base64 |= base64;
    }
    Ok(())
}

/// The description of a new volume, from the accounts of the command line; nothing is written.
fn new_description(description: &Description, args: &InitArgs) -> Result<Described, Failure> {
    let shown = description.file.display().to_string();
    if description.file.exists() {
        return Err(Failure::new(format!(
            "{shown}: expected no file yet; found one. `vere fs init {}` without accounts uses the file",
            args.name
        )));
    }
    let text = text_with(args, |_| false)?;
    Ok(Described::parse(&text, &shown)?)
}

/// The text with the encodings found.
fn text_of(args: &InitArgs, described: &Described) -> Result<String, Failure> {
    let base64 = |at: usize| {
        let account = described.accounts.get(at);
        account.is_some_and(|account| account.base64)
    };
    text_with(args, base64)
}

fn text_with(args: &InitArgs, base64: impl Fn(usize) -> bool) -> Result<String, Failure> {
    let groups = groups::of(args.given.accounts.len(), args.replicas, &args.groups)?;
    let mut text = String::from("version = 1\n");
    for (at, (section, group)) in sections(&args.given)?.into_iter().zip(groups).enumerate() {
        let base64 = base64(at);
        Section {
            base64,
            group,
            ..section
        }
        .write(&mut text);
    }
    Ok(text)
}

fn make_slot(opener: &Opener) -> Result<(Slot, Keys), Failure> {
    let key = VolumeKey(volume::random()?);
    let new = NewSlot {
        volume: VolumeId(volume::random()?),
        // Writers count from 1.
        pack: PackNumber(1),
        number: 1,
        cost: Cost::DEFAULT,
        salt: volume::random()?,
        nonce: volume::random()?,
    };
    let epochs = vec![(FIRST_EPOCH, key)];
    let keys = Keys::of_epochs(&epochs)
        .ok_or_else(|| Failure::new("expected a key of the first epoch; found none"))?;
    let content = SlotKeys {
        keys: epochs,
        label: FIRST_LABEL.to_owned(),
    };
    Ok((Slot::make(&new, &content, opener.as_slot())?, keys))
}

/// Puts slot and facts into every account, and the first commit into the lead account.
fn store(
    described: &Described,
    new: &New,
    (found, keep): (&[Found], Retention),
    journal: &Path,
) -> Result<(), Failure> {
    let tag = tag(&new.slot);
    let clock = Clock::start();
    let now = volume::moment(clock.now());
    let mut rows = facts::rows(described, found, new.strategy, keep)?;
    let slot = slot_row(&new.slot, FIRST_LABEL);
    rows.push((Key::Slot(new.slot.number).encode(), slot.encode()));
    let facts = facts::mail(&new.of(&tag, clock), described, &new.name, rows.clone())?;
    let (events, happened) = channel();
    let asks = start_accounts(described, &tag, &events)?;
    let slot = (new.slot.head, new.slot.encode());
    let mut id = 0_u64;
    for account in &described.accounts {
        for (head, body) in [&slot, &(facts.head, facts.body.clone())] {
            let generation = (head.kind == Kind::Volume).then_some(0);
            let request = Request::Append {
                mailbox: HEAD_MAILBOX.to_owned(),
                mail: Bytes::from(mail::wrap(
                    &Subject::of(head, None, generation),
                    now.date(),
                    volume::encoding(account.base64),
                    body,
                )),
                alone: true,
            };
            id = id.wrapping_add(1);
            let ask = Ask(
                RequestId(id),
                AccountId(account.number),
                Urgency::Waited,
                request,
            );
            asks.send(ask)
                .map_err(|_| Failure::new("expected the thread of the accounts; found none"))?;
            wait_for(&happened, RequestId(id), &account.url)?;
        }
    }
    let owner = Caller {
        uid: nix::unistd::getuid().as_raw(),
        gid: nix::unistd::getgid().as_raw(),
    };
    let (terms, storage) = (volume::terms(described), volume::storage(journal)?);
    let create = new.create.clone();
    let first = Volume::create_with(
        create,
        &rows,
        terms,
        storage,
        volume::random()?,
        (owner, now),
    )?;
    let links = Links {
        kernel: None,
        accounts: asks,
        events: events.clone(),
    };
    let host = Host::start(Live::new(first), clock, (events, happened), links)?;
    wait_until_quiet(&host)?;
    host.stop();
    Ok(())
}

fn wait_for(happened: &Receiver<Event<Live>>, id: RequestId, url: &str) -> Result<(), Failure> {
    loop {
        let event = happened.recv_timeout(FIRST_TIMEOUT);
        match event.map_err(|_| {
            Failure::new(format!("{url}: expected an answer within 60 s; found none"))
        })? {
            Event::Answer(answered, answer) if answered == id => {
                return match answer {
                    Ok(_) => Ok(()),
                    Err(fault) => Err(Failure::new(format!("{url}: {fault}"))),
                };
            }
            _ => {}
        }
    }
}

fn wait_until_quiet(host: &Host<Live>) -> Result<(), Failure> {
    let start = Instant::now();
    while start.elapsed() < FIRST_TIMEOUT {
        let state = host.with(FIRST_TIMEOUT, |live, _| {
            let volume = live.volume();
            (
                volume.is_quiet(),
                volume.read_only().map(ToString::to_string),
            )
        });
        match state {
            Some((_, Some(reason))) => return Err(Failure::new(reason)),
            Some((true, None)) => return Ok(()),
            Some((false, None)) => thread::sleep(LOOK),
            None => break,
        }
    }
    Err(Failure::new(
        "expected the first commit on the lead account within 60 s; found none",
    ))
}
