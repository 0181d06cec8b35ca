//! The steps of a walk through pages.

use std::sync::Arc;

use bytes::Bytes;
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;

use super::super::accounts::mailbox_name;
use super::super::job::OpenJob;
use super::super::state::{Asked, Volume};
use super::state::Ticket;
use super::walk::Walk;
use crate::format::page::Page;
use crate::format::{FormatError, Locator, Place, open_frame};

/// Pages seen by a walk: 24 octets each in memory.
const PAGES_MAX: usize = 1_000_000;
/// Packs that snapshots need: 8 octets each in memory, and some for the order.
const PACKS_MAX: usize = 1_000_000;
/// Pages that are taken from the local disk in one go.
const SLICE: usize = 64;
/// Octets of pages in memory while a walk is under way.
const PAGES_OCTETS_MAX: usize = 64 << 20;

impl<S: Storage> Volume<S> {
    /// Goes on. Returns whether the walk is over.
    ///
    /// # Errors
    ///
    /// A page of a snapshot that cannot be read: its packs are unknown, and none may go.
    pub(super) fn walk_on(&mut self, walk: &mut Walk) -> Result<bool, String> {
        for _ in 0..SLICE {
            let Some((at, is_snapshot, level)) = walk.left.pop() else {
                return Ok(true);
            };
            walk.mails.insert(at.mail);
            if walk.seen.contains(&(at.mail, at.at, is_snapshot)) {
                continue;
            }
            let Some(page) = self.page_of(walk, &at) else {
                walk.left.push((at, is_snapshot, level));
                return Ok(false);
            };
            match page.and_then(|page| walk.take((is_snapshot, level), &page)) {
                Ok(()) => {}
                Err(reason) if is_snapshot => {
                    return Err(format!("a page of a snapshot: {reason}"));
                }
                Err(_) => walk.is_broken = true,
            }
            walk.seen.insert((at.mail, at.at, is_snapshot));
            walk.done = walk.done.saturating_add(1);
            if walk.seen.len() > PAGES_MAX || walk.packs.len() > PACKS_MAX {
                let reason =
                    format!("expected {PAGES_MAX} pages and packs of the past; found more");
                return Err(reason);
            }
        }
        walk.is_hungry = true;
        Ok(false)
    }

    /// A page, or why not; absent while an account is asked.
    fn page_of(&mut self, walk: &mut Walk, at: &Locator) -> Option<Result<Arc<Page>, String>> {
        if walk.reading.is_some() {
            return None;
        }
        if let Some(reason) = walk.failed.take() {
            return Some(Err(reason));
        }
        let pages = self.files.tree().pages();
        if let Some(page) = pages.read(at) {
            pages.trim(PAGES_OCTETS_MAX);
            return Some(Ok(page));
        }
        if self.ask_for_page(at) {
            walk.reading = Some(*at);
            return None;
        }
        Some(Err("no place of a page is known".to_owned()))
    }

    fn ask_for_page(&mut self, at: &Locator) -> bool {
        let copy = at.copy;
        let place = Place {
            at: at.at,
            sealed_len: at.sealed_len,
        };
        let (Some(encoding), Some(uid_validity)) = (
            self.accounts.encoding(copy.account),
            self.accounts.uid_validity(copy.account, copy.mailbox),
        ) else {
            return false;
        };
        let Ok(parts) = OpenJob::parts_of(encoding, place) else {
            return false;
        };
        let request = Request::Read {
            mailbox: mailbox_name(copy.mailbox),
            uid_validity,
            uid: copy.uid,
            parts,
        };
        let asked = Asked::Upkeep(Ticket::Page);
        self.ask(AccountId(copy.account), Urgency::Idle, request, asked);
        true
    }

    /// An account has given the page, or not.
    pub(super) fn walk_answered(&mut self, walk: &mut Walk, answer: Result<Answer, Fault>) {
        let Some(at) = walk.reading.take() else {
            return;
        };
        let opened = match answer {
            Ok(Answer::Read(parts)) => self
                .open_page(&at, &parts)
                .map_err(|error| error.to_string()),
            Ok(_) => Err("the mail of a page is gone".to_owned()),
            Err(fault) => Err(fault.to_string()),
        };
        walk.failed = opened.err();
    }

    fn open_page(&mut self, at: &Locator, parts: &[Bytes]) -> Result<(), FormatError> {
        let encoding = self.accounts.encoding(at.copy.account);
        let encoding = encoding.unwrap_or_else(|| self.lead_encoding());
        let (head, frame) = OpenJob::page_parts(encoding, at, parts)?;
        let octets = open_frame(&head, &frame, at.at, &self.seals.keys, at.mail)?;
        let pages = self.files.tree().pages();
        pages.put(at, octets)?;
        pages.keep(at, &head, &frame);
        Ok(())
    }
}
