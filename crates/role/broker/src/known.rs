//! Answers that are known already: a question about a recipient that comes again costs no lookup in the directory.

use std::collections::HashMap;
use std::mem;

use vere_handoff::question::Answer;

/// Maximum of answers in each of the two halves.
const ANSWERS_MAX: usize = 16_384;
/// Longest address whose answer is kept (RFC 5321 section 4.5.3.1.3, without the brackets).
const ADDRESS_OCTETS_MAX: usize = 254;

/// What clients are told of one recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The answer for a client that may send to local recipients only.
    pub(super) stranger: Answer,
    /// The answer for a client that may relay.
    pub(super) relaying: Answer,
}

/// The answers of one revision of the directory, at most 2 x `ANSWERS_MAX`.
///
/// A full half becomes the older half, whose answers end unless they are asked for again: an attacker with very many
/// addresses drives out the answers that nobody else needs.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The revision of the directory; `None` while the directory cannot be read.
    revision: Option<u64>,
    newer: HashMap<Box<str>, Verdict>,
    older: HashMap<Box<str>, Verdict>,
}

impl Known {
    /// Forgets the answers of another revision.
    pub(super) fn follow(&mut self, revision: Option<u64>) {
        if self.revision != revision {
            self.forget();
            self.revision = revision;
        }
    }

    /// Forgets all answers.
    pub(super) fn forget(&mut self) {
        self.newer.clear();
        self.older.clear();
    }

    /// Returns what is known of an address.
    pub(super) fn find(&mut self, address: &str) -> Option<Verdict> {
        if let Some(verdict) = self.newer.get(address) {
            return Some(*verdict);
        }
        let (address, verdict) = self.older.remove_entry(address)?;
        self.insert(address, verdict);
        Some(verdict)
    }

    /// Keeps the answers about an address.
    pub(super) fn keep(&mut self, address: &str, verdict: Verdict) {
        if self.revision.is_some() && address.len() <= ADDRESS_OCTETS_MAX {
            self.insert(address.into(), verdict);
        }
    }

    fn insert(&mut self, address: Box<str>, verdict: Verdict) {
        if self.newer.len() >= ANSWERS_MAX {
            self.older = mem::take(&mut self.newer);
        }
        self.newer.insert(address, verdict);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCEPTED: Verdict = Verdict {
        stranger: Answer::Accepted,
        relaying: Answer::Accepted,
    };

    #[test]
    fn answers_end_with_their_revision() {
        let mut known = Known::default();
        known.keep("a", ACCEPTED);
        assert_eq!(known.find("a"), None, "the directory cannot be read");
        known.follow(Some(1));
        known.keep("a", ACCEPTED);
        known.follow(Some(1));
        assert_eq!(known.find("a"), Some(ACCEPTED));
        known.follow(Some(2));
        assert_eq!(known.find("a"), None);
        known.keep(&"a".repeat(ADDRESS_OCTETS_MAX + 1), ACCEPTED);
        assert_eq!(known.newer.len(), 0);
    }

    #[test]
    fn answers_that_are_asked_for_outlive_many_others() {
        let mut known = Known::default();
        known.follow(Some(1));
        known.keep("ann", ACCEPTED);
        known.keep("bob", ACCEPTED);
        for number in 0..3 * ANSWERS_MAX {
            known.keep(&number.to_string(), ACCEPTED);
            assert_eq!(known.find("ann"), Some(ACCEPTED));
        }
        assert_eq!(known.find("bob"), None);
        assert!(known.newer.len() + known.older.len() <= 2 * ANSWERS_MAX);
    }
}
