//! The texts of messages, asked for many at a time: what they are, for the index, and whether something is
//! in them, for those who search. Nothing of a message is decoded but in these processes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use vere_mime::wire::{Item, Question, Texts, plainly_holds};

use super::process::{Launch, Process, Trouble};
use super::{Attempt, NoParser, Parsers};

/// Octets of messages that are asked about at once, but for one that has more: so many that who asks is
/// seldom woken, and so few that others who search have a turn.
const TOGETHER_OCTETS: usize = 192 * 1024;
const TOGETHER_MAX: usize = 256;
/// How often a message is tried alone when it was among those that ended a process.
const ATTEMPTS_ALONE: u32 = 2;
/// Messages that ended processes, or were late, that are remembered.
const KNOWN_MAX: usize = 10_000;
/// How often who asks is put off because of a message that is not decoded in time, until that counts as one that
/// cannot be decoded; and how long it counts so, until it is tried again.
const LATE_MAX: u32 = 3;
const LATE_REST: Duration = Duration::from_secs(600);

/// A message that is asked about.
#[derive(Debug)]
pub(crate) struct Sought {
    /// Where its body is: it is known by that.
    pub(crate) body: u64,
    /// A bit for each zone that is looked at.
    pub(crate) zones: u8,
    /// Fields that stand before its header.
    pub(crate) own: Vec<u8>,
    /// What was found in it when it was delivered.
    pub(crate) record: Vec<u8>,
    /// The message, or its header.
    pub(crate) octets: Vec<u8>,
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

    /// Whether it has something, where nothing has to be decoded to know that.
    pub(crate) fn plainly_holds(&self, question: Question<'_>) -> Option<bool> {
        plainly_holds(question, &self.item())
    }

    fn len(&self) -> usize {
        self.own.len() + self.record.len() + self.octets.len()
    }
}

/// Whether so many messages with so many octets are enough to be asked about.
pub(crate) fn are_enough(sought: &[Sought]) -> bool {
    sought.len() >= TOGETHER_MAX || sought.iter().map(Sought::len).sum::<usize>() >= TOGETHER_OCTETS
}

/// Processes that decode texts.
#[derive(Debug, Clone)]
pub(crate) struct Decoders {
    pub(super) parsers: Parsers,
    /// Messages that gave trouble, for all that decode.
    known: Arc<Mutex<Known>>,
    /// See [`LATE_MAX`] and [`LATE_REST`].
    late_max: u32,
    late_rest: Duration,
}

/// Messages that gave trouble.
#[derive(Debug, Default)]
struct Known {
    /// They ended processes.
    broken: HashSet<u64>,
    /// They were not decoded in time: how often, and when last.
    late: HashMap<u64, (u32, Instant)>,
}

impl Known {
    /// Notes that a message ends whatever decodes it.
    fn broke(&mut self, body: u64) {
        if self.broken.len() >= KNOWN_MAX {
            self.broken.clear();
        }
        self.late.remove(&body);
        self.broken.insert(body);
    }

    /// Notes that a message was late once more, and gives how often it was.
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
    /// Processes of this program: as many as look into messages at once.
    pub(crate) fn new(patience: Duration) -> Self {
        Self::launched_by(Launch::own(), patience)
    }

    pub(super) fn launched_by(launch: Launch, patience: Duration) -> Self {
        Self {
            parsers: Parsers::launched_by(launch, patience),
            known: Arc::default(),
            late_max: LATE_MAX,
            late_rest: LATE_REST,
        }
    }

    /// For who asks once and not again: a message that is late once counts as one that cannot be decoded.
    pub(crate) fn never_put_off(mut self) -> Self {
        self.late_max = 1;
        self
    }

    /// Tries late messages again after so long.
    #[cfg(test)]
    pub(super) fn trying_again_after(mut self, rest: Duration) -> Self {
        self.late_rest = rest;
        self
    }

    /// Others, so many, that know what these know.
    pub(super) fn beside(&self, busy: usize) -> Self {
        let pool = &self.parsers.0;
        Self {
            parsers: Parsers::of(pool.launch.clone(), pool.patience, busy),
            known: Arc::clone(&self.known),
            late_max: self.late_max,
            late_rest: self.late_rest,
        }
    }

    /// Ends those that have nothing to do.
    pub(crate) fn rest(&self) {
        self.parsers.0.rest();
    }

    /// Ends those that have nothing to do when nobody asked for so long.
    pub(crate) fn rest_unused(&self, patience: Duration) {
        self.parsers.0.rest_unused(patience);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a message is not tried now.
    fn is_given_up(&self, known: &Known, body: u64) -> bool {
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

    /// What is in a message, encoded, when that was written by another version.
    ///
    /// # Errors
    /// [`NoParser`].
    pub(crate) fn record(&self, message: &[u8]) -> Result<Vec<u8>, NoParser> {
        Ok(self.parsers.parse(message)?.record)
    }

    /// The texts of messages; none of one that cannot be decoded.
    ///
    /// # Errors
    /// [`NoParser`], also when one was not decoded in time: then asking again may help.
    pub(crate) fn texts(&self, sought: &[Sought]) -> Result<Vec<Option<Texts>>, NoParser> {
        self.each(sought, |process, items, patience| {
            process.texts(items, patience)
        })
    }

    /// Whether messages have something; unknown of one that cannot be decoded.
    ///
    /// # Errors
    /// As [`Decoders::texts`].
    pub(crate) fn hold(
        &self,
        question: Question<'_>,
        sought: &[Sought],
    ) -> Result<Vec<Option<bool>>, NoParser> {
        self.each(sought, |process, items, patience| {
            process.holds(question, items, patience)
        })
    }

    /// Asks about messages together; when that ends the process, about each alone.
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
            // A body may be among them twice, and is late once.
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

    /// Forgets that messages were late which were answered for with others.
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
            // With more time, for where the machine has none.
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

/// What came of asking about a message alone.
enum Alone<T> {
    Answered(Option<T>),
    /// It cannot be decoded, or was late too often.
    GivenUp,
    /// It may be decoded when it is asked for again.
    PutOff,
}
