//! Old key slots on accounts without the end of a change of keys.
//!
//! A slot without a row opens no mount, but the secret still opens the keys of the time. The slot may as well belong to a change
//! under way, before the commit: so a tombstone waits as for any stray mail. An account without every slot of the list keeps the
//! old ones until the others are there, or no secret would open the volume from the account alone. A subject is no proof: the mails
//! of the list are read and verified.

use std::collections::{BTreeMap, BTreeSet};

use super::listing::Listing;
use crate::format::{MailCopy, MailId, PackNumber, Subject};
use crate::inspect::{Suspect, Verdict};
use crate::rows::TombstoneRow;
use vere_placement::accounts::HEAD_MAILBOX;

/// Slots that a run looks at.
pub const SLOTS_MAX: usize = 10_000;

/// Listed slots read by a run; an account with further slots keeps the old slots.
const READS_MAX: usize = 1_000;

/// Verdicts about the mails of listed slots.
#[derive(Debug, Default)]
pub struct Verified {
    good: BTreeSet<MailCopy>,
    bad: BTreeSet<MailCopy>,
}

impl Verified {
    /// By the verdicts of a run.
    #[must_use]
    pub fn of(verdicts: &[(Suspect, Verdict)]) -> Self {
        let mut verified = Self::default();
        let of_head = verdicts.iter().filter(|(suspect, _)| {
            let copy = suspect.copy;
            copy.mailbox == HEAD_MAILBOX
        });
        for (suspect, verdict) in of_head {
            match verdict {
                Verdict::Good(_) => verified.good.insert(suspect.copy),
                Verdict::Bad(_) => verified.bad.insert(suspect.copy),
                Verdict::Unread(_) => false,
            };
        }
        verified
    }
}

/// The mails of listed slots, to be read.
#[must_use]
pub fn suspects(listing: &Listing, listed: &BTreeSet<MailId>) -> Vec<Suspect> {
    let slots = listing.slots.iter();
    let slots = slots.filter(|(subject, _)| listed.contains(&subject.mail));
    let suspect = |(subject, copy): &(Subject, MailCopy)| {
        Some(Suspect {
            copy: *copy,
            uid_validity: listing.uid_validity(copy.account, copy.mailbox)?,
            subject: *subject,
        })
    };
    slots.filter_map(suspect).take(READS_MAX).collect()
}

/// The slots of accounts against the rows of slots.
#[derive(Debug, Default)]
pub struct Slots {
    /// Accounts without some slot of the list.
    pub behind: BTreeSet<u16>,
    /// Old slots on accounts with every slot of the list.
    pub superseded: BTreeMap<MailId, (Subject, Vec<MailCopy>)>,
}

impl Slots {
    /// Compares mails of accounts with the list; a volume without a list trusts each slot. Nothing is said about an account that
    /// was not read whole.
    #[must_use]
    pub fn of(
        seen: &[(Subject, MailCopy)],
        listed: &BTreeSet<MailId>,
        verified: &Verified,
        read: impl Iterator<Item = u16>,
    ) -> Self {
        let mut slots = Self::default();
        if listed.is_empty() {
            return slots;
        }
        let mut complete = BTreeSet::new();
        for account in read {
            match has_all(seen, listed, verified, account) {
                Some(true) => complete.insert(account),
                Some(false) => slots.behind.insert(account),
                None => false,
            };
        }
        for (subject, copy) in seen {
            if !listed.contains(&subject.mail) && complete.contains(&copy.account) {
                let of = slots.superseded.entry(subject.mail);
                of.or_insert((*subject, Vec::new())).1.push(*copy);
            }
        }
        slots
    }
}

/// Whether an account has every slot of the list, undamaged; absent where a possible mail was not read.
fn has_all(
    seen: &[(Subject, MailCopy)],
    listed: &BTreeSet<MailId>,
    verified: &Verified,
    account: u16,
) -> Option<bool> {
    let mut has_all = true;
    for mail in listed {
        let of_mail = seen
            .iter()
            .filter(|(subject, copy)| copy.account == account && subject.mail == *mail);
        let copies: Vec<&MailCopy> = of_mail.map(|(_, copy)| copy).collect();
        if copies.iter().any(|copy| verified.good.contains(copy)) {
            continue;
        }
        if copies.iter().any(|copy| !verified.bad.contains(copy)) {
            return None;
        }
        has_all = false;
    }
    Some(has_all)
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

    fn verified(good: &[MailCopy], bad: &[MailCopy]) -> Verified {
        Verified {
            good: good.iter().copied().collect(),
            bad: bad.iter().copied().collect(),
        }
    }

    fn listed() -> BTreeSet<MailId> {
        BTreeSet::from([MailId([2; 16])])
    }

    #[test]
    fn an_account_keeps_old_slots_until_it_has_those_that_count() {
        let seen = [slot(1, 1), slot(2, 1), slot(1, 2)];
        let good = verified(&[seen[1].1], &[]);
        let slots = Slots::of(&seen, &listed(), &good, [1, 2].into_iter());
        assert_eq!(slots.behind, BTreeSet::from([2]));
        let (_, copies) = &slots.superseded[&MailId([1; 16])];
        assert_eq!(copies.as_slice(), [seen[0].1]);
        let none = Slots::of(&seen, &BTreeSet::new(), &good, [1, 2].into_iter());
        assert!(none.behind.is_empty() && none.superseded.is_empty());
    }

    #[test]
    fn a_damaged_slot_is_no_slot_and_an_unread_one_tells_nothing() {
        let seen = [slot(1, 1), slot(2, 1)];
        let damaged = verified(&[], &[seen[1].1]);
        let slots = Slots::of(&seen, &listed(), &damaged, [1].into_iter());
        assert_eq!(slots.behind, BTreeSet::from([1]));
        assert!(slots.superseded.is_empty());
        let unread = Slots::of(&seen, &listed(), &Verified::default(), [1].into_iter());
        assert!(unread.behind.is_empty() && unread.superseded.is_empty());
        // A second mail of the slot serves.
        let mut other = slot(2, 1);
        other.1.uid = 9;
        let seen = [seen[0], seen[1], other];
        let one = verified(&[other.1], &[seen[1].1]);
        let slots = Slots::of(&seen, &listed(), &one, [1].into_iter());
        assert!(slots.behind.is_empty());
        assert_eq!(slots.superseded.len(), 1);
    }

    #[test]
    fn an_account_that_was_not_read_whole_keeps_everything() {
        let seen = [slot(1, 1), slot(2, 1)];
        let good = verified(&[seen[1].1], &[]);
        let slots = Slots::of(&seen, &listed(), &good, [2].into_iter());
        assert_eq!(slots.behind, BTreeSet::from([2]));
        assert!(slots.superseded.is_empty());
    }

    #[test]
    fn listed_slots_are_read_and_others_are_not() {
        let mut listing = Listing::default();
        listing.slots = vec![slot(1, 1), slot(2, 1), slot(2, 2)];
        assert!(suspects(&listing, &listed()).is_empty());
        listing.number(1, HEAD_MAILBOX, 7);
        let found = suspects(&listing, &listed());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].copy, found[0].uid_validity), (slot(2, 1).1, 7));
        let verdict = |verdict| vec![(found[0].clone(), verdict)];
        let good = Verdict::Good(crate::inspect::Inspected {
            places: Vec::new(),
            merged: Vec::new(),
        });
        assert_eq!(Verified::of(&verdict(good)).good.len(), 1);
        let bad = Verdict::Bad(String::new());
        assert_eq!(Verified::of(&verdict(bad)).bad.len(), 1);
        let unread = Verified::of(&verdict(Verdict::Unread(String::new())));
        assert!(unread.good.is_empty() && unread.bad.is_empty());
    }

    #[test]
    fn a_number_is_of_the_slot_alone_and_of_no_writer() {
        let id = MailId(*b"abcdefghijklmnop");
        assert_eq!(number_of(id).0, 0x6162_6364_6566);
        assert_eq!(number_of(id).writer(), 0);
        let row = |mailbox| TombstoneRow {
            mail: id,
            generation: 1,
            time_ms: 0,
            copies: vec![MailCopy {
                account: 1,
                mailbox,
                uid: 1,
            }],
        };
        assert!(is_of_slot(&row(HEAD_MAILBOX)));
        assert!(!is_of_slot(&row(HEAD_MAILBOX + 1)));
    }
}
