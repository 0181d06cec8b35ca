//! `vere fs accounts add`: a further account of a volume.

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use vere_accounts::Place;
use vere_mailfs::format::{Encoding, Keys, VolumeKey};
use vere_process::failure::Failure;
use vere_process::wording::counted;
use vere_settings::{AccountSecret, Volume as Described};

use crate::args::AddArgs;
use crate::bars;
use crate::change::JoinOrder;
use crate::control::Request;
use crate::folders::Description;
use crate::host::Clock;
use crate::open::{read_slot, tag};
use crate::passwd::behind;
use crate::probe::{self, Found, Of};
use crate::sections::{Section, with_section};
use crate::session::{self, Session};
use crate::volume;

/// The epoch of a test mail, which nobody reads again.
const PROBE_EPOCH: u16 = 1;
/// Time between looks at copies that are missing.
const LOOK: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &AddArgs) -> Result<String, Failure> {
    let description = Description::named(&args.volume.name)?;
    let described = description.read()?;
    check(args, &described)?;
    let session = Session::begin(&description, &described, || {
        session::opener(&args.secret, &described)
    })?;
    let result = add(args, &description, &described, &session);
    session.end();
    result
}

/// Whether the account can be one of the volume.
fn check(args: &AddArgs, described: &Described) -> Result<(), Failure> {
    let new = place(&args.url, args.clear)?;
    for account in &described.accounts {
        let of = place(&account.url, account.clear)?;
        if (&of.user, &of.host, of.port) == (&new.user, &new.host, new.port) {
            return Err(Failure::new(format!(
                "{}: expected a further account; found account {} of the volume",
                args.url, account.number
            )));
        }
    }
    let mut groups = described.accounts.iter().map(|account| account.group);
    match args.group {
        Some(group) if !groups.any(|of| of == group) => Err(Failure::new(format!(
            "--group {group}: expected a group of the volume, as `vere fs accounts list` names them; found none"
        ))),
        _ => Ok(()),
    }
}

fn place(url: &str, clear: bool) -> Result<Place, Failure> {
    Place::parse(url, clear)
        .ok_or_else(|| Failure::new(format!("{url}: expected imaps://USER@HOST/")))?
}

fn add(
    args: &AddArgs,
    description: &Description,
    described: &Described,
    session: &Session,
) -> Result<String, Failure> {
    let facts = session.ask(&Request::Facts)?;
    let number = number(args, described, &facts)?;
    let text = description.text()?;
    let shown = description.file.display().to_string();
    let plain = with_section(&text, &section(args, number, false)?);
    let new = Described::parse(&plain, &shown)?;
    let found = try_account(description, &new, number)?;
    let base64 = found.encoding == Encoding::Base64;
    let order = JoinOrder {
        number,
        section: section(args, number, base64)?,
        append_limit: found.append_limit,
    };
    let done = session.ask(&Request::Join(order))?;
    if args.wait {
        fill(session)?;
    }
    let missing = session.missing()?;
    if args.volume.json {
        let mut done = done;
        done["account"] = number.into();
        done["copies_missing"] = missing.into();
        return Ok(format!("{done:#}\n"));
    }
    let mut text = format!("{} is account {number} of the volume.\n", args.url);
    if missing > 0 {
        // Writing into a text does not fail.
        let _written = writeln!(
            text,
            "{} still to be copied while the volume is mounted; `vere fs status` counts them.",
            counted(missing, "pack is", "packs are")
        );
    }
    Ok(text + &behind(&done))
}

/// The number of the account: a free number, or the number of an earlier attempt. Numbers are never given twice.
fn number(args: &AddArgs, described: &Described, facts: &Value) -> Result<u16, Failure> {
    let new = place(&args.url, args.clear)?;
    let described = described.accounts.iter().map(|account| account.number);
    let mut last = described.clone().max().unwrap_or(0);
    for row in facts["accounts"].as_array().into_iter().flatten() {
        let number = row["account"]
            .as_u64()
            .and_then(|number| u16::try_from(number).ok());
        let number = number.unwrap_or(0);
        let is_new = row["user"] == *new.user
            && row["host"] == *new.host
            && row["port"] == new.port
            && row["gone"] != true;
        if is_new && described.clone().all(|of| of != number) {
            return Ok(number);
        }
        last = last.max(number);
    }
    last.checked_add(1)
        .filter(|number| *number <= u8::MAX.into())
        .ok_or_else(|| {
            Failure::new("expected fewer than 255 accounts in the life of a volume; found these")
        })
}

/// The section of the account in the description.
fn section(args: &AddArgs, number: u16, base64: bool) -> Result<String, Failure> {
    let mut text = String::new();
    let section = Section {
        number: number.into(),
        url: args.url.clone(),
        secret: AccountSecret::PasswordFile(std::path::absolute(&args.password_file)?),
        ca: args.ca.as_ref().map(std::path::absolute).transpose()?,
        clear: args.clear,
        base64,
        group: args.group.unwrap_or(number).into(),
    };
    section.write(&mut text);
    Ok(text.trim_start().to_owned())
}

/// Tries the account, with a line for people.
fn try_account(
    description: &Description,
    described: &Described,
    number: u16,
) -> Result<Found, Failure> {
    let slot = read_slot(description)?;
    let tag = tag(&slot);
    let mut only = described.clone();
    only.accounts.retain(|account| account.number == number);
    // Keys of the moment: the test mail is compared and removed.
    let keys = Keys::derive(&VolumeKey(volume::random()?));
    let of = Of {
        volume: slot.head.volume,
        epoch: PROBE_EPOCH,
        keys: &keys,
        tag: &tag,
        date: volume::moment(Clock::start().now()).date(),
    };
    let found = probe::run(&only, &of, &mut |found| eprintln!("{}", found.shown()))?;
    found
        .into_iter()
        .next()
        .ok_or_else(|| Failure::new("expected the new account; found none"))
}

/// Waits until no member of a group lacks a copy.
fn fill(session: &Session) -> Result<(), Failure> {
    let all = session.missing()?;
    let bar = bars::bar("copying packs");
    bar.set_length(all);
    loop {
        let missing = session.missing()?;
        bar.set_position(all.saturating_sub(missing));
        if missing == 0 {
            bar.finish_and_clear();
            return Ok(());
        }
        thread::sleep(LOOK);
    }
}
