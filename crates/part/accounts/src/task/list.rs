//! UID FETCH of sizes and subjects, behind a SELECT, so every earlier mail shows.

use vere_imap::client::{Command, Status};
use vere_ports::mail_accounts::{Answer, Fault, Listed, RequestId, UidRange};

use super::slices::{SLICES_MAX, too_many_slices};
use crate::fault;
use crate::wire::Wire;
use crate::work::{After, Mail, Opened, Task, opened};

/// UIDs of the first slice of a listing; a slice with few mails doubles the next.
const SLICE: u32 = 1_000;

/// Octets of a listing in memory; a longer listing has to be asked for in ranges.
const LISTING_OCTETS_MAX: usize = 64 << 20;

/// A listing.
#[derive(Debug)]
pub(crate) struct List {
    id: RequestId,
    mailbox: String,
    range: UidRange,
    selection: Option<u64>,
    /// The first UID beyond the slices so far; `None` at the end.
    next: Option<u32>,
    slice: u32,
    /// The first UID of the slice under way.
    begun: u32,
    /// Whether the slice is under way.
    waits: bool,
    /// Slices so far.
    slices: u32,
    /// Mails before the slice.
    before: usize,
    mails: Vec<Listed>,
    octets: usize,
    /// UIDVALIDITY of the first slice.
    uid_validity: Option<u32>,
}

impl List {
    pub(crate) fn new(id: RequestId, mailbox: String, range: UidRange) -> Self {
        Self {
            id,
            mailbox,
            range,
            selection: None,
            next: Some(range.first.max(1)),
            slice: SLICE,
            begun: range.first.max(1),
            waits: false,
            slices: 0,
            before: 0,
            mails: Vec::new(),
            octets: 0,
            uid_validity: None,
        }
    }

    fn last(&self) -> u32 {
        self.range.last.unwrap_or(u32::MAX)
    }

    /// Mails of the slice under way.
    fn came(&self) -> u32 {
        u32::try_from(self.mails.len().saturating_sub(self.before)).unwrap_or(u32::MAX)
    }

    /// Asks for the next slice.
    fn send(&mut self, wire: &mut Wire) {
        let Some(first) = self.next else {
            return;
        };
        // RFC 9738 section 3.1: a range of so many UIDs never has more mails.
        let slice = self.slice.min(wire.mails_max().unwrap_or(u32::MAX));
        self.begun = first;
        let end = first
            .saturating_add(slice.saturating_sub(1))
            .min(self.last());
        self.next = match end < self.last() {
            true => end.checked_add(1),
            false => None,
        };
        self.before = self.mails.len();
        self.slices = self.slices.saturating_add(1);
        self.waits = true;
        let command = Command::Fetch {
            first,
            last: (end < u32::MAX).then_some(end),
            items: "(UID RFC822.SIZE BODY.PEEK[HEADER.FIELDS (SUBJECT)])".into(),
        };
        wire.send(0, &command);
    }

    fn answer(&mut self, uid_validity: u32, uid_next: u32) -> After {
        let mut mails = std::mem::take(&mut self.mails);
        mails.sort_by_key(|mail| mail.uid);
        mails.dedup_by_key(|mail| mail.uid);
        let answer = Answer::Listed {
            uid_validity,
            uid_next,
            mails,
        };
        After::Ends(vec![(self.id, Ok(answer))])
    }

    fn fails(&self, fault: Fault) -> After {
        After::Ends(vec![(self.id, Err(fault))])
    }
}

impl Task for List {
    fn begin(&mut self, wire: &mut Wire) -> After {
        self.selection = Some(wire.select(&self.mailbox, true));
        self.send(wire);
        After::Waits
    }

    fn opened(&mut self, wire: &mut Wire) -> After {
        // Opened again between two slices.
        if !self.waits && self.uid_validity.is_some() {
            self.send(wire);
        }
        After::Waits
    }

    fn ended(&mut self, _step: usize, status: &Status, wire: &mut Wire) -> After {
        self.waits = false;
        let (uid_validity, uid_next) = match opened(wire, self.selection) {
            Opened::Waits => return self.fails(Fault::Refused("SELECT has no answer".to_owned())),
            Opened::Failed(fault) => return self.fails(fault),
            Opened::Missing => return self.answer(0, 0),
            Opened::Open(open) => (open.uid_validity, open.uid_next),
        };
        let expected = *self.uid_validity.get_or_insert(uid_validity);
        if expected != uid_validity {
            let found = uid_validity;
            return self.fails(Fault::Renumbered { expected, found });
        }
        if !status.is_ok() {
            return self.fails(fault::of(status));
        }
        if fault::is_partial(status) && self.slice > 1 {
            // Only some of the mails: the slice is asked for again in smaller ones.
            self.slice = (self.slice / 2).max(1);
            self.next = Some(self.begun);
        }
        if self.octets > LISTING_OCTETS_MAX {
            let text = format!("the listing is longer than {LISTING_OCTETS_MAX} octets");
            return self.fails(Fault::Refused(text));
        }
        let ends = self
            .next
            .is_none_or(|next| uid_next != 0 && next >= uid_next);
        if ends {
            return self.answer(uid_validity, uid_next);
        }
        if self.slices >= SLICES_MAX {
            return self.fails(too_many_slices());
        }
        let came = self.came();
        if !fault::is_partial(status) && came < self.slice / 2 {
            self.slice = self.slice.saturating_mul(2);
        }
        if self.selection.is_some_and(|number| wire.is_current(number)) {
            self.send(wire);
        } else {
            let number = wire.select(&self.mailbox, false);
            self.selection = Some(number);
            if matches!(opened(wire, self.selection), Opened::Open(_)) {
                self.send(wire);
            }
        }
        After::Waits
    }

    fn fetched(&mut self, mail: &Mail) -> bool {
        let subject = mail
            .sections
            .iter()
            .find(|(name, ..)| name.starts_with("BODY[HEADER.FIELDS"));
        let (Some((_, _, header)), Some(size)) = (subject, mail.size) else {
            return false;
        };
        // `first:*` shows the last mail even with a lower UID.
        let is_in_range = (self.range.first..=self.last()).contains(&mail.uid);
        // No slice has more mails than UIDs.
        if !is_in_range || self.came() >= self.slice || self.octets > LISTING_OCTETS_MAX {
            return false;
        }
        let subject = unfolded(header);
        let octets = size_of::<Listed>().saturating_add(subject.len());
        self.octets = self.octets.saturating_add(octets);
        if self.octets <= LISTING_OCTETS_MAX {
            self.mails.push(Listed {
                uid: mail.uid,
                size: u32::try_from(size).unwrap_or(u32::MAX),
                subject,
            });
        }
        true
    }

    fn mailbox(&self) -> Option<&str> {
        Some(&self.mailbox)
    }

    fn selection(&self) -> Option<u64> {
        self.selection
    }

    fn slices(&self) -> bool {
        true
    }

    fn holds(&self) -> bool {
        self.last().saturating_sub(self.range.first) >= SLICE
    }
}

/// The value of the field, without line ends and the blanks around.
fn unfolded(header: &[u8]) -> String {
    let text = String::from_utf8_lossy(header);
    let value = text.split_once(':').map_or("", |(_, value)| value);
    let value: String = value
        .chars()
        .filter(|one| !matches!(one, '\r' | '\n'))
        .collect();
    value.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_unfolded() {
        assert_eq!(
            unfolded(b"Subject: verefs1 v3f9c0a11\r\n kcommit\r\n\r\n"),
            "verefs1 v3f9c0a11 kcommit"
        );
        assert_eq!(unfolded(b"\r\n"), "");
    }
}
