//! Processes for the texts of messages, with many messages in a request: the index gets the texts, a search gets the
//! matches. Only these processes decode messages.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use vere_mime::wire::{Item, Question, Texts, plainly_holds};

use super::parsers::{Attempt, NoParser, Parsers};
use super::process::{Launch, Process, Trouble};

/// Octets of messages in one request, unless a single message has more. A request is large enough to wake the caller
/// seldom, and small enough to let other searches have a turn.
const TOGETHER_OCTETS: usize = 192 * 1024;
const TOGETHER_MAX: usize = 256;
/// Attempts at a message alone, after a request with several messages failed.
const ATTEMPTS_ALONE: u32 = 2;
/// Messages remembered because they ended processes, or were late.
const KNOWN_MAX: usize = 10_000;
/// How often a late message puts its caller off, until the message counts as one that cannot be decoded; and how long
/// the message counts so until the next attempt.
const LATE_MAX: u32 = 3;
const LATE_REST: Duration = Duration::from_secs(600);

/// A message in a request.
#[derive(Debug)]
pub struct Sought {
    /// Place of the body in the log, which identifies the message.
    pub body: u64,
    /// A bit for each zone to be searched.
    pub zones: u8,
    /// The recipient's own fields, which precede the header.
    pub own: Vec<u8>,
    /// Parser record made when the message was delivered.
    pub record: Vec<u8>,
    /// The message, or its header.
    pub octets: Vec<u8>,
}

impl Sought {
    fn item(&self) -> Item<'_> {
        Item {
            zones: self.zones,
            own: &self.own,
            record: &self.record,
            message: &self.octets,
        }
    }

    /// Whether the message matches; absent if the answer needs decoding.
    pub fn plainly_holds(&self, question: Question<'_>) -> Option<bool> {
        plainly_holds(question, &self.item())
    }

    fn len(&self) -> usize {
        self.own.len() + self.record.len() + self.octets.len()
    }
}

/// Whether these messages fill a request.
pub fn are_enough(sought: &[Sought]) -> bool {
    sought.len() >= TOGETHER_MAX || sought.iter().map(Sought::len).sum::<usize>() >= TOGETHER_OCTETS
}

/// Processes that decode texts.
#[derive(Debug, Clone)]
pub struct Decoders {
    pub(super) parsers: Parsers,
    /// Messages that gave trouble, shared with the decoders of [`Decoders::beside`].
    known: Arc<Mutex<Troubles>>,
    /// See [`LATE_MAX`] and [`LATE_REST`].
    late_max: u32,
    late_rest: Duration,
}

/// Messages that gave trouble.
#[derive(Debug, Default)]
struct Troubles {
    /// Messages that ended processes.
    broken: HashSet<u64>,
    /// Messages not decoded in time: how often, and when last.
    late: HashMap<u64, (u32, Instant)>,
}

impl Troubles {
    /// Notes a message that ends every decoding process.
    fn broke(&mut self, body: u64) {
        if self.broken.len() >= KNOWN_MAX {
            self.broken.clear();
        }
        self.late.remove(&body);
        self.broken.insert(body);
    }

    /// Notes that a message was late once more, and returns how often the message was late.
    fn was_late(&mut self, body: u64) -> u32 {
        if self.late.len() >= KNOWN_MAX {
            self.late.clear();
        }
        let (times, last) = self.late.entry(body).or_insert((0, Instant::now()));
        (*times, *last) = (times.saturating_add(1), Instant::now());
        *times
    }
}

impl Decoders {
    /// Decoders with processes of this program, as many as [`Parsers::new`] keeps busy.
    pub fn new(patience: Duration) -> Self {
        Self::launched_by(Launch::own(), patience)
    }

    /// Decoders with processes that `launch` starts.
    pub fn launched_by(launch: Launch, patience: Duration) -> Self {
        Self {
            parsers: Parsers::launched_by(launch, patience),
            known: Arc::default(),
            late_max: LATE_MAX,
            late_rest: LATE_REST,
        }
    }

    /// For callers that ask only once: a message that is late once counts as one that cannot be decoded.
    pub fn never_put_off(mut self) -> Self {
        self.late_max = 1;
        self
    }

    /// Retries late messages after `rest`.
    #[cfg(test)]
    pub(super) fn trying_again_after(mut self, rest: Duration) -> Self {
        self.late_rest = rest;
        self
    }

    /// Returns decoders with up to `busy` busy processes of their own, which share the knowledge about troublesome
    /// messages.
    pub(super) fn beside(&self, busy: usize) -> Self {
        let pool = &self.parsers.0;
        Self {
            parsers: Parsers::of(pool.launch.clone(), pool.patience, busy),
            known: Arc::clone(&self.known),
            late_max: self.late_max,
            late_rest: self.late_rest,
        }
    }

    /// Ends idle processes.
    pub fn rest(&self) {
        self.parsers.0.rest();
    }

    /// Ends idle processes if no process was used for `patience`.
    pub fn rest_unused(&self, patience: Duration) {
        self.parsers.0.rest_unused(patience);
    }

    fn known(&self) -> MutexGuard<'_, Troubles> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a message counts as one that cannot be decoded.
    fn is_given_up(&self, known: &Troubles, body: u64) -> bool {
        let late = known.late.get(&body);
        known.broken.contains(&body)
            || late.is_some_and(|(times, last)| {
                *times >= self.late_max && last.elapsed() < self.late_rest
            })
    }

    /// Whether no message gave trouble.
    #[cfg(test)]
    pub(super) fn is_unbroken(&self) -> bool {
        let known = self.known();
        known.broken.is_empty() && known.late.is_empty()
    }

    /// Returns a new parser record of a message whose record another version wrote.
    ///
    /// # Errors
    /// [`NoParser`].
    pub fn record(&self, message: &[u8]) -> Result<Vec<u8>, NoParser> {
        Ok(self.parsers.parse(message)?.record)
    }

    /// Returns the texts of messages; absent for a message that cannot be decoded.
    ///
    /// # Errors
    /// [`NoParser`], also when a message was not decoded in time: another attempt may help then.
    pub fn texts(&self, sought: &[Sought]) -> Result<Vec<Option<Texts>>, NoParser> {
        self.each(sought, |process, items, patience| {
            process.texts(items, patience)
        })
    }

    /// Returns whether messages match; absent for a message that cannot be decoded.
    ///
    /// # Errors
    /// As [`Decoders::texts`].
    pub fn hold(
        &self,
        question: Question<'_>,
        sought: &[Sought],
    ) -> Result<Vec<Option<bool>>, NoParser> {
        self.each(sought, |process, items, patience| {
            process.holds(question, items, patience)
        })
    }

    /// Asks about messages together; if that request fails, about each message alone.
    fn each<T>(
        &self,
        sought: &[Sought],
        ask: impl Fn(&mut Process, &[Item<'_>], Duration) -> Result<Vec<T>, Trouble>,
    ) -> Result<Vec<Option<T>>, NoParser> {
        let items: Vec<Option<Item<'_>>> = {
            let known = self.known();
            let tried = |sought: &Sought| !self.is_given_up(&known, sought.body);
            let items = sought.iter();
            items
                .map(|sought| tried(sought).then(|| sought.item()))
                .collect()
        };
        let together: Vec<Item<'_>> = items.iter().flatten().copied().collect();
        if together.is_empty() {
            return Ok(sought.iter().map(|_| None).collect());
        }
        let mut killed = 0;
        let octets = sought.iter().map(Sought::len).sum();
        let what = (octets, "texts of messages");
        let pool = &self.parsers.0;
        let all = |process: &mut Process| ask(process, &together, pool.patience);
        if let Attempt::Answered(given) = pool.attempt(what, &mut killed, all)? {
            self.were_in_time(&items, sought);
            let mut given = given.into_iter();
            let one = |item: &Option<Item<'_>>| item.as_ref().and_then(|_| given.next());
            return Ok(items.iter().map(one).collect());
        }
        let (mut answers, mut put_off) = (Vec::with_capacity(items.len()), HashSet::new());
        for (item, sought) in items.iter().zip(sought) {
            // The same body may be among the messages twice, and counts as late once.
            if put_off.contains(&sought.body) {
                continue;
            }
            let Some(item) = item else {
                answers.push(None);
                continue;
            };
            match self.alone(*item, sought, &ask)? {
                Alone::Answered(answer) => answers.push(answer),
                Alone::GivenUp => answers.push(None),
                Alone::PutOff => drop(put_off.insert(sought.body)),
            }
        }
        match put_off.is_empty() {
            true => Ok(answers),
            false => Err(NoParser(std::io::Error::new(
                std::io::ErrorKind::TimedOut,
                "texts are not decoded in time",
            ))),
        }
    }

    /// Forgets the lateness of messages answered in a request with other messages.
    fn were_in_time(&self, tried: &[Option<Item<'_>>], sought: &[Sought]) {
        let mut known = self.known();
        if known.late.is_empty() {
            return;
        }
        for (_, sought) in tried.iter().zip(sought).filter(|(item, _)| item.is_some()) {
            known.late.remove(&sought.body);
        }
    }

    fn alone<T>(
        &self,
        item: Item<'_>,
        sought: &Sought,
        ask: impl Fn(&mut Process, &[Item<'_>], Duration) -> Result<Vec<T>, Trouble>,
    ) -> Result<Alone<T>, NoParser> {
        let (mut killed, mut late) = (0, false);
        for attempt in 1..=ATTEMPTS_ALONE {
            let what = (sought.len(), "texts of a message");
            // Each attempt gets more time, because the machine may be busy.
            let patience = self.parsers.0.patience.saturating_mul(attempt);
            let ask = |process: &mut Process| ask(process, &[item], patience);
            match self.parsers.0.attempt(what, &mut killed, ask)? {
                Attempt::Answered(given) => {
                    self.known().late.remove(&sought.body);
                    return Ok(Alone::Answered(given.into_iter().next()));
                }
                Attempt::Late => late = true,
                Attempt::Broke => {}
            }
        }
        let (body, octets) = (sought.body, sought.len());
        if late {
            let times = self.known().was_late(body);
            let put_off = times < self.late_max;
            tracing::warn!(body, octets, times, put_off, "message not decoded in time");
            return Ok(match put_off {
                true => Alone::PutOff,
                false => Alone::GivenUp,
            });
        }
        tracing::error!(
            body,
            octets,
            "message not decoded: it ends whatever decodes it; its octets are searched as they are"
        );
        self.known().broke(body);
        Ok(Alone::GivenUp)
    }
}

/// Result of asking about a message alone.
enum Alone<T> {
    Answered(Option<T>),
    /// The message cannot be decoded, or was late too often.
    GivenUp,
    /// The message was late; a later request may decode the message.
    PutOff,
}
