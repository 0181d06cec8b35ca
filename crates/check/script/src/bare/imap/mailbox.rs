//! A mailbox in memory.

use std::collections::BTreeMap;

use bytes::Bytes;
use vere_imap::date::DateTime;
use vere_imap::flags::Flags;
use vere_imap::server::{FlagsOf, Gone};

/// Expunged messages that a mailbox remembers; few, so that scripts can exceed the number.
const HISTORY_MAX: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Mailbox {
    pub(super) key: u64,
    pub(super) special_use: Option<&'static str>,
    pub(super) messages: BTreeMap<u32, Message>,
    pub(super) last_uid: u32,
    /// UIDs up to here were shown to a session as recent.
    pub(super) claimed: u32,
    pub(super) mod_seq: u64,
    pub(super) expunged: Vec<(u64, u32)>,
    /// Expunges up to this mod-sequence are forgotten.
    pub(super) floor: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) flags: Flags,
    pub(super) mod_seq: u64,
    pub(super) date: DateTime,
    pub(super) octets: Bytes,
}

impl Mailbox {
    pub(super) fn flags_of(&self, uid: u32) -> Option<FlagsOf> {
        self.messages.get(&uid).map(|message| FlagsOf {
            uid,
            flags: message.flags.clone(),
            mod_seq: message.mod_seq,
        })
    }

    pub(super) fn add(&mut self, mut message: Message) -> u32 {
        self.mod_seq += 1;
        self.last_uid += 1;
        message.mod_seq = self.mod_seq;
        self.messages.insert(self.last_uid, message);
        self.last_uid
    }

    pub(super) fn remove(&mut self, uids: &[u32]) {
        self.mod_seq += 1;
        for uid in uids {
            self.messages.remove(uid);
            self.expunged.push((self.mod_seq, *uid));
        }
        let many = self.expunged.len().saturating_sub(HISTORY_MAX);
        if let Some((mod_seq, _)) = self.expunged.drain(..many).next_back() {
            self.floor = mod_seq;
        }
    }

    /// The messages expunged since then; for a forgotten time, all present messages instead.
    pub(super) fn gone(&self, since: u64) -> Gone {
        if since < self.floor {
            return Gone::AllBut(self.messages.keys().copied().collect());
        }
        let gone = self.expunged.iter().filter(|(at, _)| *at > since);
        Gone::These(gone.map(|(_, uid)| *uid).collect())
    }

    pub(super) fn claim(&mut self, read_only: bool) -> u32 {
        let from = self.claimed + 1;
        if !read_only {
            self.claimed = self.last_uid;
        }
        from
    }

    pub(super) fn count(&self, wanted: impl Fn(&Message) -> bool) -> u32 {
        self.messages
            .values()
            .filter(|message| wanted(message))
            .count() as u32
    }

    /// The sum of octets of the matching messages.
    pub(super) fn octets(&self, wanted: impl Fn(&Message) -> bool) -> u64 {
        let wanted = self.messages.values().filter(|message| wanted(message));
        wanted.map(|message| message.octets.len() as u64).sum()
    }
}
