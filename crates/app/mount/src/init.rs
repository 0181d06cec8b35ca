//! `vere fs init`: a new volume.

use std::fmt::Write as _;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use vere_mailfs::format::slot::{Cost, NewSlot, Slot, SlotKeys};
use vere_mailfs::format::{Keys, PackNumber, Subject, VolumeId, VolumeKey, mail};
use vere_ports::files::Caller;
use vere_ports::mail_accounts::{AccountId, Request, RequestId, Urgency};
use vere_process::failure::Failure;
use vere_settings::Volume as Described;

use crate::accounts::Ask;
use crate::args::InitArgs;
use crate::folders::{self, Description, Lock};
use crate::host::{Clock, Event, Host};
use crate::links::Links;
use crate::secrets::Opener;
use crate::serve::{start_accounts, tag};
use crate::volume::{self, Live};

/// The first epoch of a volume's key.
const FIRST_EPOCH: u16 = 1;
/// The mailbox of slots and facts.
const HEAD_MAILBOX: &str = "head";
/// The longest time for the first mails.
const FIRST_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between looks at the first commit.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &InitArgs) -> Result<String, Failure> {
    let description = Description::named(&args.name)?;
    if !args.accounts.is_empty() {
        write_description(&description, args)?;
    }
    let described = description.read()?;
    if description.slot().exists() {
        let text = "expected no volume yet; found its key slot. Another name makes another volume";
        return Err(Failure::new(format!(
            "{}: {text}",
            description.slot().display()
        )));
    }
    let passphrase = args
        .secret
        .passphrase_file
        .as_ref()
        .or(described.passphrase_file.as_ref());
    let key = args
        .secret
        .key_file
        .as_ref()
        .or(described.key_file.as_ref());
    let opener = Opener::get(passphrase, key, true)?;
    let (slot, keys) = make_slot(&opener)?;
    let state = folders::state(slot.head.volume)?;
    folders::make_private(&folders::journal(&state))?;
    let _lock = Lock::take(&state)?;
    store(&described, &slot, keys, &folders::journal(&state))?;
    folders::write_private(&description.slot(), &slot.encode())?;
    Ok(format!(
        "The volume {} is made. `vere fs mount {} FOLDER` mounts it. Keep {} and the passphrase or key file: nothing else opens the volume.\n",
        tag(&slot),
        args.name,
        description.slot().display(),
    ))
}

/// The file of a new volume, from the accounts of the command line.
fn write_description(description: &Description, args: &InitArgs) -> Result<(), Failure> {
    let files = &args.password_files;
    if files.len() != 1 && files.len() != args.accounts.len() {
        return Err(Failure::new(format!(
            "expected --password-file once, or once for each of {} accounts; found {}",
            args.accounts.len(),
            files.len()
        )));
    }
    let mut text = String::from("version = 1\n");
    for (at, url) in args.accounts.iter().enumerate() {
        let file = files.get(at).or_else(|| files.first());
        let file = file
            .map(std::path::absolute)
            .transpose()?
            .unwrap_or_default();
        let number = at.saturating_add(1);
        // Writing into a text does not fail.
        let _written = write!(
            text,
            "\n[[account]]\nnumber = {number}\nurl = {url:?}\npassword_file = {:?}\n",
            file.display().to_string(),
        );
        if let Some(ca) = &args.ca {
            let ca = std::path::absolute(ca)?;
            let _written = writeln!(text, "ca = {:?}", ca.display().to_string());
        }
        if args.clear {
            text.push_str("tls = \"off\"\n");
        }
    }
    Described::parse(&text, &description.file.display().to_string())?;
    if let Some(folder) = description.file.parent() {
        folders::make_private(folder)?;
    }
    folders::write_private(&description.file, text.as_bytes())
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
    let keys = Keys::derive(&key);
    let content = SlotKeys {
        keys: vec![(FIRST_EPOCH, key)],
        label: "first".to_owned(),
    };
    Ok((Slot::make(&new, &content, opener.as_slot())?, keys))
}

/// Puts the slot into every account, and the first commit into the lead account.
fn store(
    described: &Described,
    slot: &Slot,
    keys: Keys,
    journal: &std::path::Path,
) -> Result<(), Failure> {
    let (events, happened) = channel();
    let asks = start_accounts(described, &tag(slot), &events)?;
    let clock = Clock::start();
    let now = volume::moment(clock.now());
    let send = |ask| {
        asks.send(ask)
            .map_err(|_| Failure::new("expected the thread of the accounts; found none"))
    };
    for (at, account) in (1..).zip(&described.accounts) {
        let encoding = volume::encoding(account.base64);
        let whole = mail::wrap(
            &Subject::of(&slot.head, None, None),
            now.date(),
            encoding,
            &slot.encode(),
        );
        let request = Request::Append {
            mailbox: HEAD_MAILBOX.to_owned(),
            mail: Bytes::from(whole),
            alone: true,
        };
        send(Ask(
            RequestId(at),
            AccountId(account.number),
            Urgency::Waited,
            request,
        ))?;
        wait_for(&happened, RequestId(at), &account.url)?;
    }
    let create = volume::create(slot.head.volume, FIRST_EPOCH, keys)?;
    let owner = Caller {
        uid: nix::unistd::getuid().as_raw(),
        gid: nix::unistd::getgid().as_raw(),
    };
    let (terms, storage) = (volume::terms(described), volume::storage(journal)?);
    let first = create.create(terms, storage, volume::random()?, (owner, now))?;
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
