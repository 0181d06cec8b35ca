//! UIDs that the listing lacks below others: a server may show a mail to one connection later than mails behind it. An opening
//! that took such a mail for absent would choose another chain than all other mounts. A second listing decides.
//!
//! What the mount remembers, and what a checkpoint covers, was decided with every UID below inspected. So holes there cost
//! nothing, and an opening without holes above costs no further round trip.

use vere_ports::mail_accounts::{Request, UidRange};
use vere_ports::storage::Storage;

use super::super::accounts::{LOG_MAILBOX, mailbox_name};
use super::{Asked, Opening, Stage};

impl<S: Storage> Opening<S> {
    /// Lists the log once more from the first UID that the first listing lacked. Returns whether the answer is awaited.
    pub(super) fn looks_again(&mut self) -> bool {
        if self.stage != Stage::Tail {
            return false;
        }
        let remembered = self
            .remembered
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

/// The first UID that is lacking between the settled ones and the last one. A log that begins anew keeps the UIDs of what it had.
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
