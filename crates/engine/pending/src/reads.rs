//! Reads under way.

use crate::format::MailCopy;
use crate::rows::Extent;
use bytes::{Bytes, BytesMut};
use hashbrown::HashMap;
use vere_ports::files::{Call, CallId, Caller, Inode};
use vere_ports::mail_accounts::Urgency;

/// Octets read ahead of a program that reads in order, at first and at most: 32 MiB are 640 MB/s over a round trip of 50 ms.
pub const AHEAD_MIN: u64 = 256 << 10;
/// Octets read ahead at most.
pub const AHEAD_MAX: u64 = 32 << 20;
/// Octets of a file that are looked up at once for reads ahead.
pub const AHEAD_STEP: u64 = 8 << 20;
/// Octets between reads in order: of a kernel's reads of 1 MiB, those of two loops may arrive in the other order.
pub const AHEAD_NEAR: u64 = 2 << 20;
/// Octets of a file that is fetched whole when a program opens the file.
pub const WHOLE_MAX: u64 = 8 << 20;

/// Reads under way.
#[derive(Debug, Default)]
pub struct Reads {
    /// Reads that wait.
    pub waiting: HashMap<CallId, Waiting>,
    /// Chunks on the way.
    pub fetches: HashMap<Extent, Fetch>,
    /// Programs that read in order, by file.
    pub ahead: HashMap<Inode, Ahead>,
}

/// A read and its pieces, in order.
#[derive(Debug, Default)]
pub struct Waiting {
    /// The call, for a volume that is opened in place of the present one.
    pub asked: Option<(Caller, Call)>,
    /// The pieces.
    pub slots: Vec<Slot>,
}

/// A piece of a read.
#[derive(Debug)]
pub enum Slot {
    /// So many zeros.
    Zeros(usize),
    /// Octets that are there.
    Ready(Bytes),
    /// So many octets of a chunk on the way, behind those to be skipped.
    Chunk(Extent, usize, usize),
    /// No octets are there.
    Nothing,
}

impl Slot {
    /// A piece of a chunk that is there.
    pub fn ready(octets: Option<Bytes>, skip: usize, length: usize) -> Self {
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
    /// A chunk is there.
    pub fn arrived(&mut self, chunk: Extent, octets: &Bytes) {
        for slot in &mut self.slots {
            if let Slot::Chunk(wanted, skip, length) = slot
                && *wanted == chunk
            {
                *slot = Slot::ready(Some(octets.clone()), *skip, *length);
            }
        }
    }

    /// All octets, if every piece is there.
    pub fn octets(self) -> Option<Bytes> {
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
pub struct Fetch {
    /// Reads that wait for the chunk.
    pub callers: Vec<CallId>,
    /// The place in a file, for reports.
    pub inode: Inode,
    /// The offset there.
    pub offset: u64,
    /// How urgent the chunk is.
    pub urgency: Urgency,
    /// Copies not tried yet.
    pub copies: Vec<MailCopy>,
    /// Whether a mail of a tried copy is gone, or is none.
    pub is_damaged: bool,
    /// Accounts that were searched.
    pub searched: Vec<u16>,
    /// What the tried copies said.
    pub reasons: Vec<String>,
}

/// A program that reads a file in order.
#[derive(Debug, Clone, Copy)]
pub struct Ahead {
    /// Where the next read in order begins.
    pub next: u64,
    /// Octets to be asked for ahead.
    pub window: u64,
    /// Up to here everything is asked for.
    pub asked: u64,
}

impl Reads {
    /// Chunks on the way.
    pub fn fetching(&self) -> usize {
        self.fetches.len()
    }

    /// Nobody waits for a read any more.
    pub fn give_up(&mut self, call: CallId) {
        if self.waiting.remove(&call).is_some() {
            for fetch in self.fetches.values_mut() {
                fetch.callers.retain(|caller| *caller != call);
            }
        }
    }

    /// The file is closed: nothing is read ahead any more.
    pub fn closed(&mut self, inode: Inode) {
        self.ahead.remove(&inode);
    }
}
