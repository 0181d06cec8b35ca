//! The second reading: chosen leaves, and the commits behind.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::mem;

use bytes::Bytes;

use super::choice::choose;
use super::frames::{read, sealed_pages};
use super::needed::Needed;
use super::past::Past;
use super::read::{Salvage, Wanted};
use crate::format::{Encoding, FormatError, Kind};
use vere_placement::accounts::LOG_MAILBOX;

impl Salvage {
    /// Every mail is read once: chooses pages, and reads the mails of chosen leaves again.
    pub(super) fn read_again(&mut self) {
        let mut needed = Needed::default();
        let mut pages = mem::take(&mut self.found.pages);
        let limit = self.found.begun().unwrap_or(u64::MAX);
        // The new tree of a broken salvage is no state to begin at.
        pages.end_at(limit);
        self.found.report.pages_left_out = pages.left_out;
        if let Some(choice) = choose(&pages, &self.found.roots) {
            let past = Past::new(choice, self.keys.clone());
            for (mail, at) in past.wanted() {
                needed.pages.entry(mail).or_default().insert(at);
            }
            let covers = past.covers();
            let merged = &self.found.merged;
            let is_needed = |wanted: &Wanted| match wanted.subject.kind {
                Kind::Pages => needed.pages.contains_key(&wanted.subject.mail),
                _ => {
                    let is_later = wanted
                        .generation
                        .is_some_and(|of| of > covers && of <= limit);
                    is_later && !merged.contains(&wanted.subject.mail)
                }
            };
            for (number, wanted) in self.mails.iter_mut().enumerate() {
                if is_needed(wanted) {
                    wanted.tried = 0;
                    self.waiting.push_back(number);
                }
            }
            self.found.past = Some(past);
        }
        needed.mails = self.waiting.len();
        self.needed = Some(needed);
    }

    /// An account has given a mail of the second reading, or has not.
    pub(super) fn answered_again(
        &mut self,
        number: usize,
        encoding: Encoding,
        text: Result<Bytes, String>,
    ) {
        let taken = text.and_then(|text| {
            let taken = self.take_again(number, encoding, &text);
            taken.map_err(|error| error.to_string())
        });
        match taken {
            Ok(true) => self.read = self.read.saturating_add(1),
            Ok(false) => self.ask_mail(number),
            Err(reason) => {
                if let Some(wanted) = self.mails.get_mut(number) {
                    wanted.reason = reason;
                }
                self.ask_mail(number);
            }
        }
    }

    /// Takes a mail. Returns whether no further copy is needed.
    fn take_again(
        &mut self,
        number: usize,
        encoding: Encoding,
        text: &[u8],
    ) -> Result<bool, FormatError> {
        let (Some(wanted), Some(past), Some(needed)) = (
            self.mails.get(number),
            &mut self.found.past,
            &mut self.needed,
        ) else {
            return Ok(true);
        };
        let (subject, of) = (&wanted.subject, (self.volume, &*self.keys));
        if subject.kind == Kind::Pages {
            let left = needed.pages.entry(subject.mail).or_default();
            let pages = sealed_pages(text, encoding, subject, of, &|at| left.contains(&at))?;
            for (at, page) in pages {
                left.remove(&at);
                if !past.put((subject.mail, at), page) {
                    past.unread = past.unread.saturating_add(1);
                }
            }
            return Ok(left.is_empty());
        }
        if let Some(record) = read(text, encoding, subject, of)?.record {
            let mut log = wanted.copies.iter();
            let in_log = log.find(|copy| copy.mailbox == LOG_MAILBOX);
            let uid = in_log.map_or(u32::MAX, |copy| copy.uid);
            past.take_later(&record, (record.generation, Reverse(uid)));
        }
        Ok(true)
    }

    /// No account gives the mail again.
    pub(super) fn give_up_again(&mut self, number: usize) {
        self.read = self.read.saturating_add(1);
        let Some(wanted) = self.mails.get_mut(number) else {
            return;
        };
        let reason = mem::take(&mut wanted.reason);
        let mail = wanted.subject.mail;
        let needed = self.needed.as_mut();
        let left = needed.and_then(|needed| needed.pages.get(&mail));
        if let Some(past) = &mut self.found.past {
            past.unread = past.unread.saturating_add(left.map_or(0, BTreeSet::len));
        }
        self.found
            .unusable(format!("mail {mail}, read again: {reason}"));
    }
}
