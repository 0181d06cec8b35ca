//! UIDs that a listing lacks below others.
//!
//! A server may show a mail to one connection later than mails behind it (Maildir: while another session moves the file). A
//! mount that took such a mail for absent would choose another child than all others, and fork. A UID counts as absent when
//! two listings lack the UID, with a pause between.

/// What the last listing lacked, from first to last UID.
#[derive(Debug, Default)]
pub(crate) struct Holes(Vec<(u32, u32)>);

impl Holes {
    /// Takes the rising UIDs of a listing of what lies above the known ones. Returns from which UID on the listing decides
    /// nothing: below stands a UID that this listing is the first to lack.
    pub(crate) fn list(&mut self, known: u32, uids: impl Iterator<Item = u32>) -> Option<u32> {
        let mut next = known.saturating_add(1);
        let mut holes = Vec::new();
        for uid in uids {
            // A log that begins anew keeps the UIDs of what it had.
            if uid > next && next > 1 {
                holes.push((next, uid.saturating_sub(1)));
            }
            next = uid.saturating_add(1);
        }
        let is_old = |hole: &(u32, u32)| {
            let mut before = self.0.iter();
            before.any(|of| of.0 <= hole.0 && hole.1 <= of.1)
        };
        let first = holes.iter().find(|hole| !is_old(hole)).map(|hole| hole.0);
        self.0 = holes;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_absent_when_two_listings_lack_it() {
        let mut holes = Holes::default();
        assert_eq!(holes.list(4, [5, 6].into_iter()), None);
        assert_eq!(holes.list(4, [5, 8, 12].into_iter()), Some(6));
        assert_eq!(
            holes.list(4, [5, 7, 8, 12].into_iter()),
            None,
            "one of two came late"
        );
        assert_eq!(holes.list(4, [5, 7, 12].into_iter()), Some(8), "a new hole");
        assert_eq!(holes.list(12, [14].into_iter()), Some(13));
        assert_eq!(holes.list(12, [14].into_iter()), None);
    }

    #[test]
    fn a_log_that_begins_anew_has_no_hole_before_its_first_mail() {
        let mut holes = Holes::default();
        assert_eq!(holes.list(0, [1_000, 1_001].into_iter()), None);
        assert_eq!(holes.list(0, [1_000, 1_002].into_iter()), Some(1_001));
        let mut empty = Holes::default();
        assert_eq!(empty.list(0, [1, 3].into_iter()), Some(2));
    }
}
