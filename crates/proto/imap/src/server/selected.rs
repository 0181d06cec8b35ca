//! The mailbox that a session has open.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::flags::Flags;
use crate::set::{SequenceSet, UidSet};
use crate::{ModSeq, Uid};

use super::answer::{FlagsOf, Opened};
use super::question::MailboxKey;
use super::view::View;

/// An open mailbox as the client knows it.
#[derive(Debug)]
pub(super) struct Selected {
    pub(super) key: MailboxKey,
    pub(super) read_only: bool,
    pub(super) view: View,
    /// Gone, and the client has not been told.
    pub(super) gone: UidSet,
    /// `\Recent` in this session.
    pub(super) recent: UidSet,
    /// What changed up to here the client knows.
    pub(super) mod_seq: ModSeq,
    pub(super) uid_next: Uid,
    /// Keywords that the client has been told of.
    pub(super) keywords: Vec<Arc<str>>,
    /// Something may be other than before.
    pub(super) dirty: bool,
    /// What the last SEARCH saved (RFC 5182).
    pub(super) saved: UidSet,
    /// For messages of which the client was told flags since it was last told of changes: the number of the
    /// change that it knows already.
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

    /// The messages that a client means; `None` when it names a number that there is not.
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

    /// The client is told the number of a change. It may take it for the last one that it knows, so what
    /// came before is looked for at once (RFC 7162 section 3.2.5: what it is not told now it never is).
    pub(super) fn shown(&mut self, mod_seq: ModSeq) {
        self.dirty |= mod_seq > self.mod_seq;
    }

    /// Forgets messages that the client has not been told of.
    pub(super) fn leave_out(&mut self, uids: &UidSet) {
        self.view.remove(uids);
        self.recent = self.recent.difference(uids);
    }

    /// Takes note of flags that the client was just told.
    pub(super) fn told(&mut self, row: &FlagsOf) {
        if row.mod_seq > self.mod_seq {
            self.own.insert(row.uid, row.mod_seq);
        }
    }

    /// Keywords among these flags that the client has not been told of; it has been now.
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
        // Its nodes may be half empty.
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

/// Those of a set that are not below a UID.
pub(super) fn from(uids: &UidSet, first: Uid) -> UidSet {
    uids.intersection(&UidSet::range(first, Uid::MAX))
}
