//! Reads under way.

use crate::format::MailCopy;
use crate::rows::Extent;
use bytes::{Bytes, BytesMut};
use hashbrown::HashMap;
use vere_ports::files::{CallId, Inode};
use vere_ports::mail_accounts::Urgency;

/// Octets read ahead of a program that reads in order, at first and at most: 32 MiB are 640 MB/s over a round trip of 50 ms.
pub(crate) const AHEAD_MIN: u64 = 256 << 10;
pub(crate) const AHEAD_MAX: u64 = 32 << 20;
/// Octets between reads in order: of a kernel's reads of 1 MiB, those of two loops may arrive in the other order.
pub(crate) const AHEAD_NEAR: u64 = 2 << 20;
/// Octets of a file that is fetched whole when a program opens the file.
pub(crate) const WHOLE_MAX: u64 = 8 << 20;

/// Reads under way.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub(crate) waiting: HashMap<CallId, Waiting>,
    pub(crate) fetches: HashMap<Extent, Fetch>,
    pub(crate) ahead: HashMap<Inode, Ahead>,
}

/// A read and its pieces, in order.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) slots: Vec<Slot>,
}

/// A piece of a read.
#[derive(Debug)]
pub(crate) enum Slot {
    Zeros(usize),
    Ready(Bytes),
    /// So many octets of a chunk on the way, behind those to be skipped.
    Chunk(Extent, usize, usize),
    /// No octets are there.
    Nothing,
}

impl Slot {
    pub(crate) fn ready(octets: Option<Bytes>, skip: usize, length: usize) -> Self {
        let end = skip.checked_add(length);
        match (octets, end) {
            (Some(octets), Some(end)) if end <= octets.len() => {
                Self::Ready(octets.slice(skip..end))
            }
            _ => Self::Nothing,
        }
    }
}

impl Slot {
    fn octets(&self) -> usize {
        match self {
            Self::Zeros(length) | Self::Chunk(_, _, length) => *length,
            Self::Ready(octets) => octets.len(),
            Self::Nothing => 0,
        }
    }
}

impl Waiting {
    pub(crate) fn arrived(&mut self, chunk: Extent, octets: &Bytes) {
        for slot in &mut self.slots {
            if let Slot::Chunk(wanted, skip, length) = slot
                && *wanted == chunk
            {
                *slot = Slot::ready(Some(octets.clone()), *skip, *length);
            }
        }
    }

    pub(crate) fn octets(self) -> Option<Bytes> {
        let mut slots = self.slots.into_iter();
        if let [Slot::Ready(octets)] = slots.as_slice() {
            return Some(octets.clone());
        }
        let octets = slots.as_slice().iter().map(Slot::octets).sum();
        let mut whole = BytesMut::with_capacity(octets);
        slots.try_for_each(|slot| match slot {
            Slot::Zeros(length) => {
                whole.resize(whole.len().saturating_add(length), 0);
                Some(())
            }
            Slot::Ready(octets) => {
                whole.extend_from_slice(&octets);
                Some(())
            }
            Slot::Chunk(..) | Slot::Nothing => None,
        })?;
        Some(whole.freeze())
    }
}

/// A chunk on the way.
#[derive(Debug)]
pub(crate) struct Fetch {
    pub(crate) callers: Vec<CallId>,
    /// The place in a file, for reports.
    pub(crate) inode: Inode,
    pub(crate) offset: u64,
    pub(crate) urgency: Urgency,
    /// Copies not tried yet.
    pub(crate) copies: Vec<MailCopy>,
    /// Whether a mail of a tried copy is gone, or is none.
    pub(crate) is_damaged: bool,
    /// What the tried copies said.
    /// Accounts whose copies of commits were searched.
    pub(crate) searched: Vec<u16>,
    pub(crate) reasons: Vec<String>,
}

/// A program that reads a file in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ahead {
    /// Where the next read in order begins.
    pub(crate) next: u64,
    pub(crate) window: u64,
    /// Up to here everything is asked for.
    pub(crate) asked: u64,
}

impl Reads {
    /// Chunks on the way.
    pub(crate) fn fetching(&self) -> usize {
        self.fetches.len()
    }

    /// Nobody waits for a read any more.
    pub(crate) fn give_up(&mut self, call: CallId) {
        if self.waiting.remove(&call).is_some() {
            for fetch in self.fetches.values_mut() {
                fetch.callers.retain(|caller| *caller != call);
            }
        }
    }

    /// The file is closed: nothing is read ahead any more.
    pub(crate) fn closed(&mut self, inode: Inode) {
        self.ahead.remove(&inode);
    }
}
