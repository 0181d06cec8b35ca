//! The opening of a volume by its key slot.
//!
//! The slot beside the description may be out of date: a second machine has changed the passphrase or the keys, or a change was
//! broken off. Then the accounts have the valid slot. An account that fails is no reason to look there. A slot without a row in the volume is revoked, and opens nothing.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use vere_mailfs::format::slot::{Slot, SlotKeys};
use vere_mailfs::format::{FormatError, Keys};
use vere_ports::mail_accounts::AccountId;
use vere_process::failure::Failure;
use vere_settings::Volume as Described;

use crate::accounts::{self, Asks};
use crate::cache;
use crate::folders::{self, DEATH_MAX, Description, Lock};
use crate::host::{Clock, Event};
use crate::lines::{self, Level};
use crate::news::News;
use crate::secrets::{self, Opener};
use crate::slots;
use crate::volume::{self, How, Live, Refusal};
use crate::ways;

/// A volume that is open and has no thread yet.
pub(crate) struct Opened {
    pub(crate) live: Live,
    pub(crate) clock: Clock,
    pub(crate) asks: Asks,
    pub(crate) events: Sender<Event<Live>>,
    pub(crate) happened: Receiver<Event<Live>>,
    pub(crate) state: PathBuf,
    pub(crate) lock: Lock,
    /// Absent if the local disk has no cache.
    pub(crate) cache: Option<Lock>,
}

/// A volume open by a slot.
struct Running {
    live: Live,
    clock: Clock,
    asks: Asks,
    events: Sender<Event<Live>>,
    happened: Receiver<Event<Live>>,
}

/// Opens a volume that no other process has.
pub(crate) fn open(
    description: &Description,
    described: &Described,
    opener: &Opener,
    how: &How,
    news: &mut dyn FnMut(News),
) -> Result<Opened, Failure> {
    let local = read_slot(description)?;
    let state = folders::state(local.head.volume)?;
    let journal = folders::journal(&state);
    folders::make_private(&journal)?;
    let lock = Lock::take_within(&state, DEATH_MAX)?;
    let file = description.slot();
    let by_local = opened(&local, opener, &file)
        .and_then(|keys| by_slot(described, (&local, &keys), &journal, &file, how, news));
    let running = match by_local {
        Ok(running) => running,
        Err(Refusal::Other(failure)) => return Err(failure),
        Err(Refusal::Key(failure)) => {
            let found = by_other_slots(described, &local, opener, &journal, &file, how, news);
            let (slot, running) = found.ok_or(failure)?;
            folders::replace_private(&file, &slot.encode())?;
            let line = format!(
                "{}: the key slot is renewed from an account",
                file.display()
            );
            lines::log(Level::Info, &line);
            news(News::Line(line));
            running
        }
    };
    let Running {
        mut live,
        clock,
        asks,
        events,
        happened,
    } = running;
    let octets_max = described.cache_max.as_u64();
    let cache = cache::attach(&mut live, local.head.volume, octets_max);
    Ok(Opened {
        live,
        clock,
        asks,
        events,
        happened,
        state,
        lock,
        cache,
    })
}

/// Opens a slot.
pub(crate) fn keys_of(slot: &Slot, opener: &Opener, file: &Path) -> Result<SlotKeys, Failure> {
    opened(slot, opener, file).map_err(Refusal::into_failure)
}

fn opened(slot: &Slot, opener: &Opener, file: &Path) -> Result<SlotKeys, Refusal> {
    slot.open(opener.as_slot()).map_err(|error| {
        let shown = file.display();
        match error {
            FormatError::Seal { .. } => Refusal::Key(Failure::new(format!(
                "{shown}: expected the passphrase or key file of this key slot; found another one"
            ))),
            // A key file for the slot of a passphrase, or the other way round: another slot may be meant.
            FormatError::Form { what: "secret", .. } => {
                Refusal::Key(Failure::new(format!("{shown}: {error}")))
            }
            other => Refusal::Other(Failure::new(format!("{shown}: {other}"))),
        }
    })
}

/// Opens the volume by a slot that the volume lists.
fn by_slot(
    described: &Described,
    (slot, keys): (&Slot, &SlotKeys),
    journal: &Path,
    file: &Path,
    how: &How,
    news: &mut dyn FnMut(News),
) -> Result<Running, Refusal> {
    let none = || Failure::new("expected a key in the slot; found none");
    let (epoch, _) = keys.keys.last().ok_or_else(none)?;
    let all = Keys::of_epochs(&keys.keys).ok_or_else(none)?;
    let create = volume::create(slot.head.volume, *epoch, all)?;
    let (events, happened) = channel();
    let asks = start_accounts(described, &tag(slot), &events)?;
    let clock = Clock::start();
    let ask = |request| {
        // Without the thread no answer comes, and the wait ends by its time-out.
        let _gone = asks.send(request);
    };
    let terms = (volume::terms(described), create);
    let mut live = ways::open(terms, how, journal, clock, &ask, &happened, news)?;
    let listed = live
        .volume()
        .slots()
        .map_err(|errno| Failure::new(format!("rows of the volume: {errno}")))?;
    // A volume that lists no slots trusts each.
    if !listed.is_empty() && listed.values().all(|row| row.mail != slot.head.mail) {
        return Err(Refusal::Key(Failure::new(format!(
            "{}: expected a key slot that the volume lists; found a revoked one: the passphrase or the keys have changed. Use the present passphrase or key file",
            file.display()
        ))));
    }
    live.use_slot(slot.number, slot.head.mail);
    Ok(Running {
        live,
        clock,
        asks,
        events,
        happened,
    })
}

/// Opens the volume by the slot of an account, if the secret opens the slot.
fn by_other_slots(
    described: &Described,
    local: &Slot,
    opener: &Opener,
    journal: &Path,
    file: &Path,
    how: &How,
    news: &mut dyn FnMut(News),
) -> Option<(Slot, Running)> {
    let (events, happened) = channel();
    let asks = start_accounts(described, &tag(local), &events).ok()?;
    let found = slots::of_accounts(described, (local, opener), &asks, &happened);
    drop(asks);
    found.into_iter().find_map(|(slot, keys)| {
        let running = by_slot(described, (&slot, &keys), journal, file, how, news).ok()?;
        Some((slot, running))
    })
}

/// The name of the volume's folder in accounts.
pub(crate) fn tag(slot: &Slot) -> String {
    format!("{:08x}", slot.head.volume.tag())
}

/// The slot beside the description.
pub(crate) fn read_slot(description: &Description) -> Result<Slot, Failure> {
    let path = description.slot();
    let octets = std::fs::read(&path).map_err(|error| {
        let text = format!("{}: {error}; `vere fs init` makes the slot", path.display());
        Failure::new(text)
    })?;
    Slot::decode(&octets).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// Starts the thread of the accounts; answers become events.
pub(crate) fn start_accounts(
    described: &Described,
    tag: &str,
    events: &Sender<Event<Live>>,
) -> Result<Asks, Failure> {
    let mut all = Vec::new();
    for account in &described.accounts {
        all.push((AccountId(account.number), secrets::account(account, tag)?));
    }
    let events = events.clone();
    let answered = move |id, answer| events.send(Event::Answer(id, answer)).is_ok();
    Ok(accounts::start(all, answered)?)
}
