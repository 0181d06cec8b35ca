//! The front's note about the open transaction of a session for a worker, in one octet.
//!
//! ```text
//! bits 0 to 5  results of SPF ([`SpfResults::octet`]); 0 where SPF was not asked
//! bits 6 to 7  state of the greylist: 0 not asked, 1 passed, 2 known client, 3 exempt
//! ```

use crate::question::SpfResults;

/// The place of the greylist's state.
const GREYLIST_SHIFT: u32 = 6;
const SPF_MASK: u8 = (1 << GREYLIST_SHIFT) - 1;

/// The greylist's state of an accepted recipient. A new client has no accepted recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Greylist {
    /// Client, sender and recipient have come again after the delay, now or before.
    Passed,
    /// The client has passed with so many triplets that it no longer waits.
    Known,
    /// A rule of access or a list excuses the client.
    Exempt,
}

/// The note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Note {
    /// The results of SPF; `None` where SPF was not asked.
    pub spf: Option<SpfResults>,
    /// The state of the greylist; `None` where there is no greylist.
    pub greylist: Option<Greylist>,
}

impl Note {
    /// Returns the octet.
    #[must_use]
    pub const fn octet(self) -> u8 {
        let greylist: u8 = match self.greylist {
            None => 0,
            Some(Greylist::Passed) => 1,
            Some(Greylist::Known) => 2,
            Some(Greylist::Exempt) => 3,
        };
        SpfResults::octet(self.spf) | greylist << GREYLIST_SHIFT
    }

    /// Returns the note of an octet; `None` for an octet that stands for none.
    #[must_use]
    pub const fn of_octet(octet: u8) -> Option<Self> {
        let Some(spf) = SpfResults::of_octet(octet & SPF_MASK) else {
            return None;
        };
        let greylist = match octet >> GREYLIST_SHIFT {
            0 => None,
            1 => Some(Greylist::Passed),
            2 => Some(Greylist::Known),
            _ => Some(Greylist::Exempt),
        };
        Some(Self { spf, greylist })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Spf;

    #[test]
    fn octets_and_notes_are_the_same() {
        let valid = (0..=u8::MAX).filter_map(|octet| Some((octet, Note::of_octet(octet)?)));
        let valid: Vec<_> = valid.collect();
        assert!(valid.iter().all(|(octet, note)| note.octet() == *octet));
        // For each of 4 states: none of SPF, or 7 results of the sender with 8 of the HELO name.
        assert_eq!(valid.len(), 4 * (1 + 7 * 8));
        assert_eq!(Note::of_octet(0), Some(Note::default()));
        let note = Note {
            spf: Some(Spf::Pass.into()),
            greylist: Some(Greylist::Known),
        };
        assert_eq!(note.octet() >> 6, 2);
    }
}
