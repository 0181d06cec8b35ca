//! What a receiver remembers of the transfers of one peer: confirmed ones, and parts of broken ones.
//!
//! The memory is that of a process. A receiver that has to recognise transfers after its own end keeps names on stable storage.

use std::collections::{BTreeMap, HashMap};

use crate::open::{Activity, Resumption};
use crate::receive::Partial;

/// Transfers of one peer. A history must not be shared between peers: names are what a peer says.
#[derive(Debug)]
pub struct History {
    /// Transfers by the number of their last change.
    entries: BTreeMap<u64, Entry>,
    names: HashMap<Activity, u64>,
    next: u64,
    entries_max: usize,
}

#[derive(Debug)]
struct Entry {
    /// Each resumption gives a transfer one more name.
    names: Vec<Activity>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// An association is receiving the transfer, or the host is making its APDU safe.
    Busy,
    Partial(Partial),
    Received,
}

/// The answer to a resumption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// The octets before the checkpoint are there: `continue_from` their number, and `collect` the rest.
    Partial(Partial),
    /// The transfer was confirmed: `already_received`.
    Received,
    /// The transfer is not known, or not up to this checkpoint: `refuse`.
    Unknown,
    /// Another association, whose end this side has not seen yet, is receiving the transfer: `abort`. The peer asks again.
    Busy,
}

impl History {
    /// A history of at most this many transfers; the oldest is forgotten first.
    #[must_use]
    pub fn new(entries_max: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            names: HashMap::new(),
            next: 0,
            entries_max,
        }
    }

    /// A transfer begins. `received`, `broke` or `forget` must follow.
    pub fn begun(&mut self, activity: &Activity) {
        self.put(activity, State::Busy);
    }

    /// The APDU of this activity is safe. Call it before `confirm`.
    pub fn received(&mut self, activity: &Activity) {
        self.put(activity, State::Received);
    }

    /// The transfer of this activity broke off.
    pub fn broke(&mut self, activity: &Activity, partial: Partial) {
        self.put(activity, State::Partial(partial));
    }

    /// Forgets a transfer that the peer has discarded, or that was refused.
    pub fn forget(&mut self, activity: &Activity) {
        self.take(activity);
    }

    /// What is known of a transfer that the peer wants to continue. The transfer has both names from now on.
    pub fn resumed(&mut self, resumption: &Resumption) -> Known {
        let number = self.names.get(&resumption.old).copied();
        let entry = number.and_then(|number| Some((number, self.entries.get_mut(&number)?)));
        let known = match entry {
            // The octets before the beginning are always there.
            None if resumption.checkpoint == 0 => Known::Partial(Partial::default()),
            None => Known::Unknown,
            Some((number, entry)) => {
                if !entry.names.contains(&resumption.new) {
                    entry.names.push(resumption.new.clone());
                    self.names.insert(resumption.new.clone(), number);
                }
                match &entry.state {
                    State::Received => Known::Received,
                    State::Busy => Known::Busy,
                    State::Partial(partial) => partial
                        .before(resumption.checkpoint)
                        .map_or(Known::Unknown, Known::Partial),
                }
            }
        };
        if matches!(known, Known::Partial(_)) {
            self.begun(&resumption.new);
        }
        known
    }

    fn put(&mut self, activity: &Activity, state: State) {
        // Without the name of a session nothing can be found again.
        if activity.session.is_none() {
            return;
        }
        let known = self.take(activity);
        let names = known.map_or_else(|| vec![activity.clone()], |entry| entry.names);
        let number = self.next;
        self.next += 1;
        for name in &names {
            self.names.insert(name.clone(), number);
        }
        self.entries.insert(number, Entry { names, state });
        while self.entries.len() > self.entries_max {
            if let Some((oldest, entry)) = self.entries.pop_first() {
                self.forget_names(oldest, &entry);
            }
        }
    }

    /// Takes a transfer out, under all of its names.
    fn take(&mut self, activity: &Activity) -> Option<Entry> {
        let number = self.names.get(activity).copied()?;
        let entry = self.entries.remove(&number)?;
        self.forget_names(number, &entry);
        Some(entry)
    }

    fn forget_names(&mut self, number: u64, entry: &Entry) {
        for name in &entry.names {
            if self.names.get(name) == Some(&number) {
                self.names.remove(name);
            }
        }
    }
}
