//! UIDs without a mail in the listing below others: a server may show a mail to one connection later than mails behind. An opening
//! without such a mail would choose another chain than all other mounts. A second listing decides.
//!
//! The commit in memory and the one under the checkpoint were decided with every UID below inspected. So holes there cost
//! nothing, and an opening without holes above costs no further round trip.

use vere_ports::mail_accounts::{Request, UidRange};
use vere_ports::storage::Storage;

use super::{Asked, Opening, Stage};
use vere_placement::accounts::{LOG_MAILBOX, mailbox_name};

impl<S: Storage> Opening<S> {
    /// Lists the log once more from the first hole of the first listing. Returns whether the answer is awaited.
    pub(super) fn looks_again(&mut self) -> bool {
        // A copy is in the order of parents, whatever its UIDs are.
        if self.stage != Stage::Tail || self.stand_in.is_some() {
            return false;
        }
        let remembered = self
            .placed
            .filter(|won| won.uid_validity == self.uid_validity);
        let remembered = remembered.map_or(0, |won| won.uid);
        let covered = self.base.map_or(0, |base| base.covered_uid);
        let settled = remembered.max(covered);
        let Some(first) = first_hole(settled, self.listed.iter().copied()) else {
            return false;
        };
        self.stage = Stage::Late;
        let request = Request::List {
            mailbox: mailbox_name(LOG_MAILBOX),
            range: UidRange {
                first,
                last: Some(self.known),
            },
        };
        self.ask(self.terms.lead, request, Asked::List);
        true
    }
}

/// The first hole between the settled UIDs and the last one. A log that begins anew goes on with earlier UIDs.
fn first_hole(settled: u32, listed: impl Iterator<Item = u32>) -> Option<u32> {
    let mut before = (settled > 0).then_some(settled);
    for uid in listed.filter(|uid| *uid > settled) {
        let next = before.map_or(uid, |before| before.saturating_add(1));
        if next < uid {
            return Some(next);
        }
        before = Some(uid);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::first_hole;

    #[test]
    fn holes_count_above_what_is_settled() {
        let hole = |settled, uids: &[u32]| first_hole(settled, uids.iter().copied());
        assert_eq!(hole(0, &[5, 6, 7]), None);
        assert_eq!(hole(0, &[5, 7]), Some(6));
        assert_eq!(hole(7, &[2, 5, 7, 8]), None);
        assert_eq!(hole(7, &[5, 9, 12]), Some(8));
        assert_eq!(hole(7, &[8, 9, 12]), Some(10));
        assert_eq!(hole(7, &[]), None);
    }
}
