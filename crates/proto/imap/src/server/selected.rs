//! The open mailbox of a session.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::flags::Flags;
use crate::set::{SequenceSet, UidSet};
use crate::{ModSeq, Uid};

use super::answer::{FlagsOf, Opened};
use super::question::MailboxKey;
use super::view::View;

/// The client's knowledge of the open mailbox.
#[derive(Debug)]
pub(super) struct Selected {
    pub(super) key: MailboxKey,
    pub(super) read_only: bool,
    pub(super) view: View,
    /// Gone, and the client has not been told.
    pub(super) gone: UidSet,
    /// Messages with `\Recent` in this session.
    pub(super) recent: UidSet,
    /// The mod-sequence up to which the client knows all changes.
    pub(super) mod_seq: ModSeq,
    pub(super) uid_next: Uid,
    /// Keywords announced to the client.
    pub(super) keywords: Vec<Arc<str>>,
    /// The mailbox may have changed.
    pub(super) dirty: bool,
    /// The result saved by the last SEARCH (RFC 5182).
    pub(super) saved: UidSet,
    /// Messages whose flags the client learned since the last report of changes: the mod-sequence that the
    /// client knows already.
    pub(super) own: BTreeMap<Uid, ModSeq>,
}

impl Selected {
    pub(super) fn new(opened: &Opened, read_only: bool) -> Self {
        Self {
            key: opened.mailbox,
            read_only,
            view: View::new(&opened.uids),
            gone: UidSet::new(),
            recent: from(&opened.uids, opened.recent_from),
            mod_seq: opened.mod_seq,
            uid_next: opened.uid_next,
            keywords: opened.keywords.clone(),
            dirty: false,
            saved: UidSet::new(),
            own: BTreeMap::new(),
        }
    }

    /// The messages of a set from the client; `None` when the set has an unused message number.
    pub(super) fn resolve(&self, set: &SequenceSet, uid: bool) -> Option<UidSet> {
        if *set == SequenceSet::Saved {
            return Some(self.saved.intersection(&self.view.uids()));
        }
        if uid {
            let uids = set.resolve(self.view.last());
            return Some(uids.intersection(&self.view.uids()));
        }
        if self.view.len() == 0 && set.is_open_ended() {
            return Some(UidSet::new());
        }
        // `*` in an empty mailbox is no number (RFC 9051 section 9, seq-number).
        let numbers = set.resolve(self.view.len());
        if numbers.is_empty() {
            return None;
        }
        self.view.of_numbers(&numbers)
    }

    /// Records that the client was shown a mod-sequence. The client may treat the mod-sequence as the last
    /// known, so earlier changes are reported at once (RFC 7162 section 3.2.5: the client would never ask
    /// for the earlier changes).
    pub(super) fn shown(&mut self, mod_seq: ModSeq) {
        self.dirty |= mod_seq > self.mod_seq;
    }

    /// Removes messages not yet announced to the client.
    pub(super) fn leave_out(&mut self, uids: &UidSet) {
        self.view.remove(uids);
        self.recent = self.recent.difference(uids);
    }

    /// Records flags just sent to the client.
    pub(super) fn told(&mut self, row: &FlagsOf) {
        if row.mod_seq > self.mod_seq {
            self.own.insert(row.uid, row.mod_seq);
        }
    }

    /// Whether the flags have keywords not yet announced; records the keywords as announced.
    pub(super) fn learn(&mut self, flags: &Flags) -> bool {
        let before = self.keywords.len();
        for word in flags.keywords() {
            if !self
                .keywords
                .iter()
                .any(|own| own.eq_ignore_ascii_case(word))
            {
                self.keywords.push(Arc::clone(word));
            }
        }
        self.keywords.len() > before
    }

    pub(super) fn memory(&self) -> usize {
        // The nodes of the map may be half empty.
        let own = size_of::<(Uid, ModSeq)>().saturating_mul(2);
        let own = self.own.len().saturating_mul(own);
        [
            self.view.memory(),
            self.gone.memory(),
            self.recent.memory(),
            self.saved.memory(),
            own,
            size_of::<Self>(),
        ]
        .iter()
        .fold(0, |sum, part| sum.saturating_add(*part))
    }
}

/// The UIDs of a set from a first UID on.
pub(super) fn from(uids: &UidSet, first: Uid) -> UidSet {
    uids.intersection(&UidSet::range(first, Uid::MAX))
}
