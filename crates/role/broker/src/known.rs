//! Answers that are known already: a question about a recipient that comes again costs no lookup in the directory.

use std::rc::Rc;

use vere_handoff::question::Answer;
use vere_queue::Place;

use super::recent::Recent;

/// Maximum of answers in each of the two halves.
const ANSWERS_MAX: usize = 16_384;
/// Longest address whose answer is kept (RFC 5321 section 4.5.3.1.3, without the brackets).
const ADDRESS_OCTETS_MAX: usize = 254;

/// What clients are told of one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The answer for a client that may send to local recipients only.
    pub(super) stranger: Stranger,
    /// The answer for a client that may relay.
    pub(super) relaying: Answer,
}

/// The answer for a client that may not relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stranger {
    /// Directory and settings decide.
    Told(Answer),
    /// The next hop decides about this address.
    NextHop(Rc<(Place, Box<str>)>),
}

/// The answers of one revision of the directory, at most 2 x `ANSWERS_MAX`.
#[derive(Debug)]
pub(super) struct Known {
    /// The revision of the directory; `None` while the directory cannot be read.
    revision: Option<u64>,
    verdicts: Recent<Box<str>, Verdict>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            revision: None,
            verdicts: Recent::new(ANSWERS_MAX),
        }
    }
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
        self.verdicts.forget();
    }

    /// Returns what is known of an address.
    pub(super) fn find(&mut self, address: &str) -> Option<Verdict> {
        self.verdicts.find(address)
    }

    /// Keeps the answers about an address.
    pub(super) fn keep(&mut self, address: &str, verdict: Verdict) {
        if self.revision.is_some() && address.len() <= ADDRESS_OCTETS_MAX {
            self.verdicts.keep(address.into(), verdict);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCEPTED: Verdict = Verdict {
        stranger: Stranger::Told(Answer::Accepted),
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
        let long = "a".repeat(ADDRESS_OCTETS_MAX + 1);
        known.keep(&long, ACCEPTED);
        assert_eq!(known.find(&long), None);
    }
}
