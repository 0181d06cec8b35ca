//! A mount whose lead is out of reach for long makes another account the lead (`lead_patience`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use vere_disk::log::Directory;
use vere_mailfs::volume::{Create, Terms, Volume};
use vere_process::failure::Failure;
use vere_promotion::{Promoted, Source};
use vere_settings::Volume as Described;

use crate::folders::Description;
use crate::host::{Clock, Event, with};
use crate::lines::{self, Level};
use crate::listings;
use crate::open::start_accounts;
use crate::promoting;
use crate::volume::{self, Live};

/// The longest silence of an engine before a look is given up.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The pause behind a failure, at first and at most.
const PAUSE_MIN: Duration = Duration::from_secs(10);
const PAUSE_MAX: Duration = Duration::from_secs(900);
/// Requests of a promotion have numbers from here on.
const FIRST: u64 = 1_000;

/// The succession of a mount.
#[derive(Debug)]
pub(crate) struct Succession {
    description: Description,
    described: Described,
    tag: String,
    is_running: Arc<AtomicBool>,
    rest: Arc<Mutex<Rest>>,
}

/// The pause behind an attempt that has failed; each further one doubles the pause.
#[derive(Debug, Default)]
struct Rest {
    pause: Duration,
    until: Option<Instant>,
}

impl Rest {
    fn ended(&mut self, is_well: bool) {
        self.pause = match is_well {
            true => Duration::ZERO,
            false => self.pause.saturating_mul(2).clamp(PAUSE_MIN, PAUSE_MAX),
        };
        self.until = Instant::now().checked_add(self.pause);
    }
}

impl Succession {
    pub(crate) fn new(description: Description, described: Described, tag: String) -> Self {
        Self {
            description,
            described,
            tag,
            is_running: Arc::new(AtomicBool::new(false)),
            rest: Arc::default(),
        }
    }

    fn rests(&self) -> bool {
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.until.is_some_and(|until| until > Instant::now())
    }

    /// How long the lead may be out of reach.
    pub(crate) const fn patience(&self) -> Duration {
        self.described.lead_patience.duration()
    }

    /// Makes another account the lead where the lead has been out of reach for long. The mount finds the change by itself.
    pub(crate) fn look(&self, events: &Sender<Event<Live>>) {
        let patience = self.patience();
        if self.is_running.load(Ordering::Acquire) || self.rests() {
            return;
        }
        let facts = with(events, SILENCE_MAX, move |live: &mut Live, _| {
            let volume = live.volume();
            let way = way_of(volume, patience)?;
            Some((way, volume.lead(), volume.facts_of_opening()))
        });
        let Some(((source, successor), (lead, epoch), of)) = facts.flatten() else {
            return;
        };
        // The description may name further accounts by now.
        let described = self.description.read();
        let described = described.unwrap_or_else(|_| self.described.clone());
        let terms = Terms {
            lead,
            lead_epoch: epoch,
            ..volume::terms(&described)
        };
        self.is_running.store(true, Ordering::Release);
        let tag = self.tag.clone();
        let (is_running, rest) = (Arc::clone(&self.is_running), Arc::clone(&self.rest));
        let change = move || {
            let promoted = promote(&described, &tag, (&terms, &of), (source, successor));
            let mut rest = rest.lock().unwrap_or_else(PoisonError::into_inner);
            rest.ended(promoted.is_ok());
            drop(rest);
            tell(lead, successor, promoted);
            is_running.store(false, Ordering::Release);
        };
        let thread = thread::Builder::new().name("fs-lead".into()).spawn(change);
        if thread.is_err() {
            // The next look has another try.
            self.is_running.store(false, Ordering::Release);
        }
    }
}

/// The way to another lead, if one is due: without the present one after the patience, or the rest of a change that another
/// machine has begun in the log of the present one.
fn way_of(volume: &Volume<Directory>, patience: Duration) -> Option<(Source, u16)> {
    if let Some((account, _)) = volume.other_lead() {
        let (lead, _) = volume.lead();
        return Some((Source::Lead(lead), account));
    }
    if patience.is_zero() {
        return None;
    }
    let successor = volume.successor(patience)?;
    Some((Source::Copy(successor), successor))
}

fn promote(
    described: &Described,
    tag: &str,
    (terms, of): (&Terms, &Create),
    way: (Source, u16),
) -> Result<Promoted, Failure> {
    let (events, happened) = channel();
    let asks = start_accounts(described, tag, &events)?;
    let ask = |request| {
        // Without the thread no answer comes, and the wait ends by its time-out.
        let _gone = asks.send(request);
    };
    if let Source::Copy(_) = way.0
        && listings::answers(terms.lead, (&ask, &happened))
    {
        // The way to the accounts was gone, and not the lead alone.
        return Err(Failure::new("the lead answers again"));
    }
    let numbers = (FIRST, Clock::start());
    promoting::run((terms, of), way, numbers, (&ask, &happened), &mut |_| {})
}

fn tell(lead: u16, successor: u16, promoted: Result<Promoted, Failure>) {
    match promoted {
        Ok(promoted) => lines::log(
            Level::Warn,
            &format!(
                "account {successor} is the lead now, in place of account {lead} (epoch {})",
                promoted.lead.epoch
            ),
        ),
        Err(failure) => lines::log(
            Level::Warn,
            &format!(
                "account {successor} does not become the lead in place of account {lead}: {failure}"
            ),
        ),
    }
}
