//! The mailbox that a session has open, and what it can be told of it.

use vere_imap::server::{Changes, FlagsOf, Gone};
use vere_imap::set::UidSet;
use vere_store::{MailboxId, ModSeq, Snapshot, Uid};

use super::convert::{self, among, flags_of};
use super::watchers::Watch;

/// A mailbox that is open.
#[derive(Debug)]
pub(super) struct OpenMailbox {
    pub(super) id: MailboxId,
    pub(super) watch: Watch,
    /// What the client knows of it, unless that was let go of.
    seen: Option<Snapshot>,
    /// Whether it changed since.
    is_behind: bool,
}

/// What a client knows, and what the store says of the time since.
#[derive(Debug)]
pub(super) struct Since {
    pub(super) mod_seq: ModSeq,
    pub(super) uid_next: u32,
    /// The UIDs expunged; none where that is not known so far back.
    pub(super) expunged: Option<Vec<Uid>>,
}

impl OpenMailbox {
    pub(super) fn new(seen: Snapshot, watch: Watch) -> Self {
        Self {
            id: seen.mailbox(),
            watch,
            seen: Some(seen),
            is_behind: false,
        }
    }

    /// Takes note of a change.
    pub(super) const fn changed(&mut self) {
        self.is_behind = true;
    }

    /// Lets go of what the client knows, if it was not told of a change: it may ask in an hour, and until then the
    /// store would keep messages for it alone that nobody else has in view, outside of all bounds. What changed is
    /// then told from the numbers of changes.
    pub(super) fn rest(&mut self) {
        if self.is_behind {
            self.seen = None;
        }
    }

    /// What it is told now; it knows `snapshot` then.
    pub(super) fn tell(&mut self, snapshot: &Snapshot, since: &Since) -> (Gone, Vec<FlagsOf>) {
        self.is_behind = false;
        let seen = self.seen.replace(snapshot.clone());
        let seen = seen.filter(|seen| seen.status().highest_mod_seq == since.mod_seq);
        let Some(seen) = seen else {
            return by_numbers(snapshot, since);
        };
        let difference = snapshot.since(&seen);
        let gone = convert::set(difference.expunged.iter().map(|(_, uid)| *uid));
        let changed = difference
            .changed
            .iter()
            .filter_map(|index| snapshot.get(*index));
        let changed = changed.map(|message| flags_of(snapshot, message));
        (Gone::These(gone), changed.collect())
    }
}

/// What is gone and what changed, to one of whom only the numbers are known that it knows.
pub(super) fn by_numbers(snapshot: &Snapshot, since: &Since) -> (Gone, Vec<FlagsOf>) {
    let gone = match &since.expunged {
        Some(uids) => Gone::These(convert::set(uids.iter().copied())),
        None => Gone::AllBut(convert::all(snapshot)),
    };
    let changed = snapshot
        .iter_from(0)
        .filter(|message| message.mod_seq > since.mod_seq);
    let changed = changed.map(|message| flags_of(snapshot, message));
    (gone, changed.collect())
}

/// The answer of what changed.
pub(super) fn changes(
    open: Option<&mut OpenMailbox>,
    snapshot: &Snapshot,
    since: &Since,
    recent_from: u32,
) -> Changes {
    let status = snapshot.status();
    let (gone, changed) = match open {
        Some(open) => open.tell(snapshot, since),
        None => by_numbers(snapshot, since),
    };
    let new = UidSet::range(since.uid_next, u32::MAX);
    Changes {
        mod_seq: status.highest_mod_seq.0,
        uid_next: status.uid_next.get(),
        added: among(snapshot, &new)
            .map(|message| message.uid.get())
            .collect(),
        gone,
        changed,
        recent_from,
    }
}

#[cfg(test)]
mod tests;
