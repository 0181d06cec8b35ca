//! The texts of messages, asked for many at a time: what they are, for the index, and whether something is
//! in them, for those who search. Nothing of a message is decoded but in these processes.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use vere_mime::wire::{Item, Question, Texts};

use super::process::{Launch, Process, Trouble};
use super::{NoParser, Parsers};

/// Octets of messages that are asked about at once, but for one that has more: so many that who asks is
/// seldom woken, and so few that others who search have a turn.
const TOGETHER_OCTETS: usize = 192 * 1024;
const TOGETHER_MAX: usize = 256;
/// How often a message is tried alone when it was among those that ended a process.
const ATTEMPTS_ALONE: usize = 2;
/// Messages that ended processes, that are remembered.
const BROKEN_MAX: usize = 10_000;

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
    /// Messages that ended processes, for all that decode.
    broken: Arc<Mutex<HashSet<u64>>>,
}

impl Decoders {
    /// Processes of this program: as many as look into messages at once.
    pub(crate) fn new(patience: Duration) -> Self {
        Self::launched_by(Launch::own(), patience)
    }

    pub(super) fn launched_by(launch: Launch, patience: Duration) -> Self {
        Self {
            parsers: Parsers::launched_by(launch, patience),
            broken: Arc::default(),
        }
    }

    /// Others, so many, that know what these know.
    pub(super) fn beside(&self, busy: usize) -> Self {
        let pool = &self.parsers.0;
        Self {
            parsers: Parsers::of(pool.launch.clone(), pool.patience, busy),
            broken: Arc::clone(&self.broken),
        }
    }

    /// Ends those that have nothing to do.
    pub(crate) fn rest(&self) {
        self.parsers.0.rest();
    }

    /// Whether no message ended processes.
    #[cfg(test)]
    pub(super) fn is_unbroken(&self) -> bool {
        let broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        broken.is_empty()
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
    /// [`NoParser`].
    pub(crate) fn texts(&self, sought: &[Sought]) -> Result<Vec<Option<Texts>>, NoParser> {
        self.each(sought, |process, items| {
            process.texts(items, self.parsers.0.patience)
        })
    }

    /// Whether messages have something; unknown of one that cannot be decoded.
    ///
    /// # Errors
    /// [`NoParser`].
    pub(crate) fn hold(
        &self,
        question: Question<'_>,
        sought: &[Sought],
    ) -> Result<Vec<Option<bool>>, NoParser> {
        self.each(sought, |process, items| {
            process.holds(question, items, self.parsers.0.patience)
        })
    }

    /// Asks about messages together; when that ends the process, about each alone.
    fn each<T>(
        &self,
        sought: &[Sought],
        ask: impl Fn(&mut Process, &[Item<'_>]) -> Result<Vec<T>, Trouble>,
    ) -> Result<Vec<Option<T>>, NoParser> {
        let is_broken: Vec<bool> = {
            let broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
            let known = sought.iter().map(|sought| broken.contains(&sought.body));
            known.collect()
        };
        let items = sought.iter().zip(is_broken);
        let items = items.map(|(sought, broken)| (!broken).then(|| sought.item()));
        let items: Vec<Option<Item<'_>>> = items.collect();
        let together: Vec<Item<'_>> = items.iter().flatten().copied().collect();
        if together.is_empty() {
            return Ok(sought.iter().map(|_| None).collect());
        }
        let mut killed = 0;
        let octets = sought.iter().map(Sought::len).sum();
        let what = (octets, "texts of messages");
        let pool = &self.parsers.0;
        if let Some(given) = pool.attempt(what, &mut killed, |process| ask(process, &together))? {
            let mut given = given.into_iter();
            let one = |item: &Option<Item<'_>>| item.as_ref().and_then(|_| given.next());
            return Ok(items.iter().map(one).collect());
        }
        let mut answers = Vec::with_capacity(items.len());
        for (item, sought) in items.iter().zip(sought) {
            answers.push(match item {
                Some(item) => self.alone(*item, sought, &ask)?,
                None => None,
            });
        }
        Ok(answers)
    }

    fn alone<T>(
        &self,
        item: Item<'_>,
        sought: &Sought,
        ask: impl Fn(&mut Process, &[Item<'_>]) -> Result<Vec<T>, Trouble>,
    ) -> Result<Option<T>, NoParser> {
        let mut killed = 0;
        for _ in 0..ATTEMPTS_ALONE {
            let what = (sought.len(), "texts of a message");
            let ask = |process: &mut Process| ask(process, &[item]);
            if let Some(given) = self.parsers.0.attempt(what, &mut killed, ask)? {
                return Ok(given.into_iter().next());
            }
        }
        let (body, octets) = (sought.body, sought.len());
        tracing::error!(
            body,
            octets,
            "message not decoded: it ends whatever decodes it; its octets are searched as they are"
        );
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        if broken.len() >= BROKEN_MAX {
            broken.clear();
        }
        broken.insert(body);
        Ok(None)
    }
}
