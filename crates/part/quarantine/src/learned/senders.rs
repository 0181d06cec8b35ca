//! Senders by recipient, within bounds. The day of the last use decides what goes.

use std::collections::BTreeMap;

use vere_judge::ADDRESS_OCTETS_MAX;

/// Entries of all recipients together.
pub(super) const ENTRIES_MAX: usize = 20_000;
/// Entries of one recipient, so that the mail of one recipient does not displace the entries of others.
const OF_RECIPIENT_MAX: usize = 1_000;
/// Days after which an entry without use counts no more.
const UNUSED_DAYS_MAX: u32 = 365;
/// Days after which an entry without use leaves the file. A clock that is ahead for a while costs no entry before.
const KEPT_DAYS_MAX: u32 = 2 * UNUSED_DAYS_MAX;
/// Days between two notes of use: a stranger's mail writes no line each time.
const NOTE_DAYS: u32 = 30;

/// A sender of a recipient.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub(super) sender: String,
    pub(super) recipient: String,
}

/// The entries, each with the day of its last noted use.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Senders(BTreeMap<Pair, u32>);

impl Pair {
    /// Addresses without letter case; `None` for an address that has no place in a line of the file.
    pub(super) fn of(sender: &str, recipient: &str) -> Option<Self> {
        let is_fit = |address: &str| {
            (1..=ADDRESS_OCTETS_MAX).contains(&address.len())
                && !address.chars().any(char::is_control)
        };
        (is_fit(sender) && is_fit(recipient)).then(|| Self {
            sender: sender.to_lowercase(),
            recipient: recipient.to_lowercase(),
        })
    }
}

impl Senders {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether any recipient has the sender.
    pub(super) fn has_sender(&self, sender: &str) -> bool {
        let sender = sender.to_lowercase();
        let from = Pair {
            sender,
            recipient: String::new(),
        };
        let next = self.0.range(&from..).next();
        next.is_some_and(|(pair, _)| pair.sender == from.sender)
    }

    /// Whether an entry counts on this day.
    pub(super) fn has(&self, pair: &Pair, day: u32) -> bool {
        self.0.get(pair).is_some_and(|used| !is_old(*used, day))
    }

    /// Whether the use of an entry on this day is worth a note.
    pub(super) fn wants_note(&self, pair: &Pair, day: u32) -> bool {
        let used = self.0.get(pair);
        used.is_some_and(|used| day.saturating_sub(*used) >= NOTE_DAYS)
    }

    /// Returns the entry that makes room for a further one: the one that was not used for the longest time, of the recipient or of all.
    pub(super) fn surplus(&self, pair: &Pair) -> Option<Pair> {
        if self.0.contains_key(pair) {
            return None;
        }
        let of_recipient = || {
            let all = self.0.iter();
            all.filter(|(one, _)| one.recipient == pair.recipient)
        };
        let oldest = if of_recipient().count() >= OF_RECIPIENT_MAX {
            of_recipient().min_by_key(|(_, used)| **used)
        } else if self.0.len() >= ENTRIES_MAX {
            self.0.iter().min_by_key(|(_, used)| **used)
        } else {
            None
        };
        oldest.map(|(one, _)| one.clone())
    }

    /// The day of the last noted use.
    pub(super) fn used(&self, pair: &Pair) -> Option<u32> {
        self.0.get(pair).copied()
    }

    /// Sets the day of the last use, or removes the entry. Returns the day before.
    pub(super) fn set(&mut self, pair: &Pair, used: Option<u32>) -> Option<u32> {
        match used {
            Some(day) => self.0.insert(pair.clone(), day),
            None => self.0.remove(pair),
        }
    }

    /// The entries by sender, with the days of their last use.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Pair, u32)> {
        self.0.iter().map(|(pair, used)| (pair, *used))
    }
}

const fn is_old(used: u32, day: u32) -> bool {
    day.saturating_sub(used) > UNUSED_DAYS_MAX
}

/// Whether an entry was out of use for so long that the file needs it no more.
pub(super) const fn is_forgotten(used: u32, day: u32) -> bool {
    day.saturating_sub(used) > KEPT_DAYS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(sender: &str, recipient: &str) -> Pair {
        Pair::of(sender, recipient).unwrap()
    }

    #[test]
    fn an_entry_is_of_one_recipient_and_ends_after_a_year_without_use() {
        let mut senders = Senders::default();
        senders.set(&pair("News@Shop.example", "Ann@a.example"), Some(100));
        let known = pair("news@shop.example", "ann@a.example");
        assert!(senders.has(&known, 100) && senders.has(&known, 465));
        assert!(!senders.has(&known, 466));
        assert!(senders.has(&known, 1), "a clock behind");
        assert!(!senders.has(&pair("news@shop.example", "bob@a.example"), 100));
        assert!(!senders.has(&pair("other@shop.example", "ann@a.example"), 100));
        assert!(senders.has_sender("NEWS@shop.example") && !senders.has_sender("news@shop"));
        assert!(!senders.wants_note(&known, 129) && senders.wants_note(&known, 130));
        assert!(!is_forgotten(100, 830) && is_forgotten(100, 831));
    }

    #[test]
    fn the_entry_without_use_for_the_longest_time_makes_room() {
        let mut senders = Senders::default();
        for number in 0..1_000_u32 {
            senders.set(
                &pair(&format!("s{number}@x"), "ann@a"),
                Some(500 - number % 7),
            );
        }
        senders.set(&pair("old@x", "bob@a"), Some(1));
        assert_eq!(
            senders.surplus(&pair("s3@x", "ann@a")),
            None,
            "there already"
        );
        assert_eq!(senders.surplus(&pair("new@x", "bob@a")), None);
        let gone = senders.surplus(&pair("new@x", "ann@a")).unwrap();
        assert_eq!(
            (gone.recipient.as_str(), senders.used(&gone)),
            ("ann@a", Some(494))
        );
        for number in senders.len()..ENTRIES_MAX {
            senders.set(&pair("s@x", &format!("r{number}@a")), Some(2));
        }
        assert_eq!(
            senders.surplus(&pair("new@x", "carol@a")),
            Some(pair("old@x", "bob@a"))
        );
    }

    #[test]
    fn addresses_that_would_break_a_line_have_no_entry() {
        for odd in ["", "a\tb@c", "a\nb@c", &"x".repeat(321)] {
            assert_eq!(Pair::of(odd, "a@b"), None);
            assert_eq!(Pair::of("a@b", odd), None);
        }
        assert!(Pair::of("\"é f\"@c", "a@b").is_some());
    }
}
