//! The mailbox that a session has open, and the changes to report to the client.

use vere_imap::server::{Changes, FlagsOf, Gone};
use vere_imap::set::UidSet;
use vere_store::{MailboxId, ModSeq, Snapshot, Uid};

use super::convert::{self, among, flags_of};
use super::watchers::Watch;

/// A mailbox that a session has open.
#[derive(Debug)]
pub(super) struct OpenMailbox {
    pub(super) id: MailboxId,
    pub(super) watch: Watch,
    /// The mailbox as the client knows it, unless [`OpenMailbox::rest`] has dropped the snapshot.
    seen: Option<Snapshot>,
    /// Whether the mailbox changed since then.
    is_behind: bool,
}

/// The client's state in numbers, and the UIDs that the store has expunged since.
#[derive(Debug)]
pub(super) struct Since {
    pub(super) mod_seq: ModSeq,
    pub(super) uid_next: u32,
    /// The UIDs expunged; absent if the store's records do not reach back far enough.
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

    /// Notes a change of the mailbox.
    pub(super) const fn changed(&mut self) {
        self.is_behind = true;
    }

    /// Drops the client's snapshot if a change was not reported yet. An idle client may not ask for an hour, and the
    /// store would keep messages in memory for this client alone, outside of all bounds. The report is then made from
    /// the mod-sequences of changes.
    pub(super) fn rest(&mut self) {
        if self.is_behind {
            self.seen = None;
        }
    }

    /// Returns the changes to report to the client, which then knows `snapshot`.
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

/// Returns the changes for a client of which only the mod-sequence and the next UID are known.
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

/// Answers a question about changes.
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
