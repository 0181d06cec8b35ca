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
    /// The number of the transfer with this name.
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
    /// The peer has discarded the transfer on another association than that of its first name.
    Void,
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

impl Entry {
    /// Whether a transfer under this name may begin: with several names, under the last alone.
    fn may_begin(&self, activity: &Activity) -> bool {
        match &self.state {
            State::Void => false,
            _ => self.names.len() == 1 || self.names.last() == Some(activity),
        }
    }
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

    /// A transfer begins. `received`, `broke` or `forget` must follow. False: the peer has settled the transfer on another
    /// association, before the octets of this one came. End the association: the peer sends the APDU anew, or has sent it.
    #[must_use]
    pub fn begun(&mut self, activity: &Activity) -> bool {
        let found = self.find(activity);
        if found.is_some_and(|entry| !entry.may_begin(activity)) {
            return false;
        }
        self.put(activity, State::Busy);
        true
    }

    /// The APDU of this activity is safe. Call it before `confirm`.
    pub fn received(&mut self, activity: &Activity) {
        self.put(activity, State::Received);
    }

    /// The transfer of this activity broke off.
    pub fn broke(&mut self, activity: &Activity, partial: Partial) {
        self.put(activity, State::Partial(partial));
    }

    /// Forgets a transfer that the peer has discarded, or that was refused. Of a transfer with several names the names are kept: octets
    /// under the first may still come.
    pub fn forget(&mut self, activity: &Activity) {
        match self.find(activity) {
            None => {}
            Some(entry) if entry.names.len() == 1 => {
                self.take(activity);
            }
            Some(entry) => entry.state = State::Void,
        }
    }

    /// What is known of a transfer that the peer wants to continue. The transfer has both names from now on.
    pub fn resumed(&mut self, resumption: &Resumption) -> Known {
        self.rename(resumption);
        let known = match self.find(&resumption.old) {
            None if resumption.checkpoint == 0 => {
                // Octets under the old name that come later must be recognised.
                self.put(&resumption.old, State::Void);
                self.rename(resumption);
                Known::Partial(Partial::default())
            }
            None => Known::Unknown,
            Some(entry) => {
                match &entry.state {
                    State::Received => Known::Received,
                    State::Busy => Known::Busy,
                    // The octets before the beginning are always there.
                    State::Void if resumption.checkpoint == 0 => Known::Partial(Partial::default()),
                    State::Void => Known::Unknown,
                    State::Partial(partial) => partial
                        .before(resumption.checkpoint)
                        .map_or(Known::Unknown, Known::Partial),
                }
            }
        };
        if matches!(known, Known::Partial(_)) {
            self.put(&resumption.new, State::Busy);
        }
        known
    }

    /// Gives a transfer its new name.
    fn rename(&mut self, resumption: &Resumption) {
        let Some(number) = self.names.get(&resumption.old).copied() else {
            return;
        };
        if let Some(entry) = self.entries.get_mut(&number)
            && !entry.names.contains(&resumption.new)
        {
            entry.names.push(resumption.new.clone());
            self.names.insert(resumption.new.clone(), number);
        }
    }

    fn find(&mut self, activity: &Activity) -> Option<&mut Entry> {
        self.entries.get_mut(self.names.get(activity)?)
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
