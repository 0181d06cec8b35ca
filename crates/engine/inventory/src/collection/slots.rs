//! Old key slots on accounts without the end of a change of keys.
//!
//! A slot without a row opens no mount, but the secret still opens the keys of the time. The slot may as well belong to a change
//! under way, before the commit: so a tombstone waits as for any stray mail. An account without every slot of the list keeps the
//! old ones until the others are there, or no secret would open the volume from the account alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::format::{MailCopy, MailId, PackNumber, Subject};
use crate::rows::TombstoneRow;
use vere_placement::accounts::HEAD_MAILBOX;

/// Slots that a run looks at.
pub const SLOTS_MAX: usize = 10_000;

/// The slots of accounts against the rows of slots.
#[derive(Debug, Default)]
pub struct Slots {
    /// Accounts without some slot of the list.
    pub behind: BTreeSet<u16>,
    /// Old slots on accounts with every slot of the list.
    pub superseded: BTreeMap<MailId, (Subject, Vec<MailCopy>)>,
}

impl Slots {
    /// Compares mails of accounts with the list; a volume without a list trusts each slot.
    #[must_use]
    pub fn of(
        seen: &[(Subject, MailCopy)],
        listed: &BTreeSet<MailId>,
        read: impl Iterator<Item = u16>,
    ) -> Self {
        let mut slots = Self::default();
        if listed.is_empty() {
            return slots;
        }
        for account in read {
            let of_account = seen.iter().filter(|(_, copy)| copy.account == account);
            let there: BTreeSet<MailId> = of_account.map(|(subject, _)| subject.mail).collect();
            if !listed.is_subset(&there) {
                slots.behind.insert(account);
            }
        }
        for (subject, copy) in seen {
            if !listed.contains(&subject.mail) && !slots.behind.contains(&copy.account) {
                let of = slots.superseded.entry(subject.mail);
                of.or_insert((*subject, Vec::new())).1.push(*copy);
            }
        }
        slots
    }
}

/// The number for the tombstone of a slot: all slots have an equal number by themselves, and writers count from 1.
#[must_use]
pub fn number_of(slot: MailId) -> PackNumber {
    let [a, b, c, d, e, f, ..] = slot.0;
    PackNumber(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

/// Whether a tombstone is for a slot.
#[must_use]
pub fn is_of_slot(row: &TombstoneRow) -> bool {
    let mut copies = row.copies.iter();
    copies.any(|copy| copy.mailbox == HEAD_MAILBOX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Kind, VolumeId};

    fn slot(id: u8, account: u16) -> (Subject, MailCopy) {
        let head = crate::format::Head {
            kind: Kind::Slot,
            volume: VolumeId([3; 16]),
            mail: MailId([id; 16]),
            epoch: 1,
            group: 0,
            frames: 0,
            pack: PackNumber(1),
            last_sealed_len: 0,
        };
        let copy = MailCopy {
            account,
            mailbox: HEAD_MAILBOX,
            uid: id.into(),
        };
        (Subject::of(&head, None, None), copy)
    }

    #[test]
    fn an_account_keeps_old_slots_until_it_has_those_that_count() {
        let seen = [slot(1, 1), slot(2, 1), slot(1, 2)];
        let listed = BTreeSet::from([MailId([2; 16])]);
        let slots = Slots::of(&seen, &listed, [1, 2].into_iter());
        assert_eq!(slots.behind, BTreeSet::from([2]));
        let (_, copies) = &slots.superseded[&MailId([1; 16])];
        assert_eq!(copies.as_slice(), [seen[0].1]);
        let none = Slots::of(&seen, &BTreeSet::new(), [1, 2].into_iter());
        assert!(none.behind.is_empty() && none.superseded.is_empty());
    }
}
