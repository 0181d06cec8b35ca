//! Pages that are neither in memory nor on the local disk come from accounts: the copy that the locator tells, the copies of
//! the pack's row, and at last whatever a search for the mail's id finds.

use super::accounts::{PAGES_MAILBOX, mailbox_name};
use super::job::OpenJob;
use super::scarcity::comes_back;
use super::state::pages::{ASKED_MAX, LOST_FOR, PageFetch, PageKey, REMEMBERED_MAX, Rows, key_of};
use super::state::{Asked, Volume};
use super::step::{Notice, Step};
use crate::format::subject::id_word;
use crate::format::{FormatError, Locator, MailCopy, Place, open_frame};
use bytes::Bytes;
use std::collections::BTreeSet;
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;

impl<S: Storage> Volume<S> {
    /// Whether the volume has a checkpoint, so that rows may be missing at all.
    pub(super) fn has_pages(&self) -> bool {
        self.files.tree().pages().root().is_some()
    }

    /// Asks for the pages that the last reader of rows has missed.
    pub(super) fn fetch_missing(&mut self, urgency: Urgency) -> Rows {
        let mut awaited = BTreeSet::new();
        for at in self.files.tree().take_missing() {
            if !self.want_page(at, urgency) {
                return Rows::Lost;
            }
            awaited.insert(key_of(&at));
        }
        if awaited.is_empty() {
            Rows::Here
        } else {
            Rows::Awaited(awaited)
        }
    }

    /// Has a page fetched. Returns whether the page is on the way; no account has a page that is not.
    pub(super) fn want_page(&mut self, at: Locator, urgency: Urgency) -> bool {
        let key = key_of(&at);
        if let Some(until) = self.pages.lost.get(&key) {
            if self.now.steady < *until {
                return false;
            }
            self.pages.lost.remove(&key);
        }
        if let Some(fetch) = self.pages.fetches.get_mut(&key) {
            fetch.urgency = fetch.urgency.min(urgency);
        } else {
            let mut copies = vec![at.copy];
            let located = self.located(at.pack.0).map(|located| located.copies);
            // The row of the pack may lie in a missing page itself.
            self.files.tree().take_missing();
            for copy in located.into_iter().flatten() {
                if !copies.contains(&copy) {
                    copies.push(copy);
                }
            }
            let fetch = PageFetch {
                at,
                urgency,
                copies,
                asking: None,
                has_searched: false,
                searched: Vec::new(),
                is_asked: false,
                reasons: Vec::new(),
            };
            self.pages.fetches.insert(key, fetch);
        }
        self.ask_for(key);
        self.pages.fetches.contains_key(&key)
    }

    /// Asks for pages that wait for an account, or for other pages.
    pub(super) fn ask_for_pages(&mut self) {
        let waiting = self.pages.fetches.iter();
        let waiting = waiting.filter(|(_, fetch)| !fetch.is_asked);
        let mut waiting: Vec<(Urgency, PageKey)> =
            waiting.map(|(key, fetch)| (fetch.urgency, *key)).collect();
        waiting.sort_by_key(|(urgency, _)| *urgency);
        for (_, key) in waiting {
            self.ask_for(key);
        }
    }

    fn ask_for(&mut self, key: PageKey) {
        if self.pages.asked >= ASKED_MAX {
            return;
        }
        let mirror = self.mirror_for_page(key);
        let Some(fetch) = self
            .pages
            .fetches
            .get_mut(&key)
            .filter(|fetch| !fetch.is_asked)
        else {
            return;
        };
        let accounts = &self.accounts;
        let (at, urgency) = (fetch.at, fetch.urgency);
        let may_try = |copy: &MailCopy| accounts.may(copy.account, urgency);
        let (account, request, asked) = if let Some(place) = fetch.copies.iter().position(may_try) {
            let copy = fetch.copies.remove(place);
            fetch.asking = Some(copy);
            let Some(request) = self.page_request(&at, copy) else {
                // UIDVALIDITY of the mailbox is not known, or the place is beyond a mail.
                self.copy_lacks_page(key, "no place of the page is known");
                return;
            };
            (copy.account, request, Asked::Page(at))
        } else if let Some(mirror) = mirror {
            self.search_mirror(key, mirror);
            return;
        } else if fetch.copies.is_empty() && !fetch.has_searched {
            let account = at.copy.account;
            if !self.accounts.may_try(account) {
                return;
            }
            fetch.has_searched = true;
            let mailbox = mailbox_name(PAGES_MAILBOX);
            let word = id_word(at.mail);
            (
                account,
                Request::Find { mailbox, word },
                Asked::FindPage(at),
            )
        } else if fetch.copies.is_empty() {
            let searched = fetch.searched.clone();
            if !self.has_unsearched_mirror(&at, &searched) {
                self.page_is_nowhere(key);
            }
            return;
        } else {
            return;
        };
        fetch_begins(self.pages.fetches.get_mut(&key));
        self.pages.asked = self.pages.asked.saturating_add(1);
        self.ask(AccountId(account), urgency, request, asked);
    }

    fn page_request(&self, at: &Locator, copy: MailCopy) -> Option<Request> {
        let encoding = self.accounts.encoding(copy.account)?;
        let place = Place {
            at: at.at,
            sealed_len: at.sealed_len,
        };
        let moved = self.pages.moved.get(&at.mail).filter(|_| copy == at.copy);
        let known = || self.accounts.uid_validity(copy.account, copy.mailbox);
        let (uid_validity, uid) = match moved {
            Some((uid_validity, uid)) => (*uid_validity, *uid),
            None => (known()?, copy.uid),
        };
        Some(Request::Read {
            mailbox: mailbox_name(copy.mailbox),
            uid_validity,
            uid,
            parts: OpenJob::parts_of(encoding, place).ok()?,
        })
    }

    /// An account has given a page, or not.
    pub(super) fn page_answered(&mut self, at: Locator, answer: Result<Answer, Fault>) {
        let key = key_of(&at);
        self.pages.asked = self.pages.asked.saturating_sub(1);
        let Some(fetch) = self.pages.fetches.get_mut(&key) else {
            return;
        };
        fetch.is_asked = false;
        let Some(copy) = fetch.asking.take() else {
            return;
        };
        match answer {
            Ok(Answer::Read(parts)) => match self.take_page(&at, copy, &parts) {
                Ok(()) => {
                    self.pages.fetches.remove(&key);
                    self.pages.arrived(key);
                }
                Err(error) => {
                    let reason = error.to_string();
                    self.steps.push_back(Step::Log(Notice::Forged {
                        account: AccountId(copy.account),
                        mailbox: mailbox_name(copy.mailbox),
                        uid: copy.uid,
                        reason: reason.clone(),
                    }));
                    self.copy_lacks_page(key, &reason);
                }
            },
            Err(fault) if comes_back(&fault) => {
                // The copy may serve later, when no other one does before.
                fetch.copies.push(copy);
                self.account_failed(copy.account, &fault);
            }
            Ok(_) => self.copy_lacks_page(key, "the mail is gone"),
            Err(fault) => self.copy_lacks_page(key, &fault.to_string()),
        }
        self.ask_for_pages();
        self.pages_came();
    }

    fn copy_lacks_page(&mut self, key: PageKey, reason: &str) {
        if let Some(fetch) = self.pages.fetches.get_mut(&key) {
            let copy = fetch.asking.take();
            let account = copy.map_or(fetch.at.copy.account, |copy| copy.account);
            fetch.reasons.push(format!("account {account}: {reason}"));
        }
        self.ask_for(key);
    }

    /// An account has told where the mail of a page is, or that the mail is gone.
    pub(super) fn page_found(&mut self, at: Locator, answer: Result<Answer, Fault>) {
        let key = key_of(&at);
        self.pages.asked = self.pages.asked.saturating_sub(1);
        let Some(fetch) = self.pages.fetches.get_mut(&key) else {
            return;
        };
        fetch.is_asked = false;
        match answer {
            Ok(Answer::Found(uid_validity, uids)) => {
                if let Some(uid) = uids.into_iter().min() {
                    fetch.copies.push(at.copy);
                    if self.pages.moved.len() >= REMEMBERED_MAX {
                        self.pages.moved.clear();
                    }
                    self.pages.moved.insert(at.mail, (uid_validity, uid));
                }
            }
            Ok(_) => {}
            Err(fault) => {
                fetch.reasons.push(fault.to_string());
                fetch.has_searched = !comes_back(&fault);
                self.account_failed(at.copy.account, &fault);
            }
        }
        self.ask_for_pages();
        self.pages_came();
    }

    fn take_page(
        &mut self,
        at: &Locator,
        copy: MailCopy,
        parts: &[Bytes],
    ) -> Result<(), FormatError> {
        let encoding = self.accounts.encoding(copy.account);
        let encoding = encoding.unwrap_or_else(|| self.lead_encoding());
        let (head, frame) = OpenJob::page_parts(encoding, at, parts)?;
        let octets = open_frame(&head, &frame, at.at, &self.seals.keys, at.mail)?;
        let pages = self.files.tree().pages();
        pages.put(at, octets)?;
        pages.keep(at, &head, &frame);
        Ok(())
    }

    /// No account has a page: calls that need the page fail, and the next mount inspects the whole checkpoint.
    fn page_is_nowhere(&mut self, key: PageKey) {
        let Some(fetch) = self.pages.fetches.remove(&key) else {
            return;
        };
        if self.pages.lost.len() >= REMEMBERED_MAX {
            self.pages.lost.clear();
        }
        self.pages.lost.insert(key, self.now.steady + LOST_FOR);
        self.files.tree().pages().distrust();
        let reason = format!("a page of rows: {}", fetch.reasons.join("; "));
        self.fail_parked(key, &reason);
        self.pages.arrived(key);
    }
}

const fn fetch_begins(fetch: Option<&mut PageFetch>) {
    if let Some(fetch) = fetch {
        fetch.is_asked = true;
    }
}
