//! Commits and pages as accounts give them.

use bytes::Bytes;
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request};
use vere_ports::storage::Storage;

use super::{Asked, OpenStep, Opening, Stage};
use crate::error::OpenError;
use crate::format::subject::id_word;
use crate::format::{Encoding, FormatError, Locator, Place, mail, open_frame};
use crate::notice::Notice;
use vere_order::found::Found;
use vere_placement::accounts::mailbox_name;
use vere_sealing::job::OpenJob;

impl<S: Storage> Opening<S> {
    fn encoding(&self, account: u16) -> Encoding {
        let mut all = self.terms.accounts.iter();
        let terms = all.find(|terms| terms.account == account);
        terms.map_or(Encoding::Base64, |terms| terms.encoding)
    }

    /// A mail of the log is read.
    pub(super) fn read(&mut self, uid: u32, body: &[u8]) {
        let encoding = self.encoding(self.source());
        let sealed = mail::unwrap(body, encoding);
        let found = sealed.and_then(|sealed| {
            let found = self.commit(uid, &sealed)?;
            self.keep_commit(uid, &found, &sealed);
            Ok(found)
        });
        let found = found.map_err(|error| self.report(self.mailboxes().0, uid, error.to_string()));
        self.commits.insert(uid, found.ok());
    }

    fn report(&mut self, mailbox: u16, uid: u32, reason: String) {
        self.steps.push_back(OpenStep::Log(Notice::Forged {
            account: AccountId(self.source()),
            mailbox: mailbox_name(mailbox),
            uid,
            reason,
        }));
    }

    pub(super) fn commit(&self, uid: u32, sealed: &[u8]) -> Result<Found, FormatError> {
        Found::of_sealed(uid, sealed, (&*self.of.keys, self.of.volume))
    }

    /// Takes a page from the local disk, or asks for the page.
    pub(super) fn ask_page(&mut self, at: Locator) {
        if self.pages.has(&at) {
            self.want_below(&at);
            return;
        }
        let place = Place {
            at: at.at,
            sealed_len: at.sealed_len,
        };
        // A lead has every page, whichever account was the lead when the page was written.
        let account = self.source();
        let Ok(parts) = OpenJob::parts_of(self.encoding(account), place) else {
            self.refuse(&at, "the place of a page is beyond a mail");
            return;
        };
        if self.stand_in.is_none()
            && at.copy.account != account
            && !self.moved.contains_key(&at.mail)
        {
            self.look_for(at, "the mail of a page is not where it was");
            return;
        }
        let request = Request::Read {
            mailbox: mailbox_name(self.page_mailbox(at.copy.mailbox)),
            uid_validity: self.pages_validity,
            uid: self.moved.get(&at.mail).copied().unwrap_or(at.copy.uid),
            parts,
        };
        if self.stand_in.is_some() && !self.moved.contains_key(&at.mail) {
            self.refuse(&at, "the copy lacks the mail of a page");
            return;
        }
        self.ask(account, request, Asked::Page(at));
    }

    pub(super) fn page_answered(&mut self, at: Locator, answer: Result<Answer, Fault>) {
        if self.stage != Stage::Pages {
            // The opening asks again for an early root without an answer.
            if let Ok(Answer::Read(parts)) = answer {
                let _ = self.take_page(&at, &parts);
            }
            return;
        }
        match answer {
            Ok(Answer::Read(parts)) => {
                if let Err(error) = self.take_page(&at, &parts) {
                    self.look_for(at, &error.to_string());
                }
            }
            Ok(_) => self.look_for(at, "the mail of a page is gone"),
            Err(Fault::Renumbered { .. }) => {
                self.look_for(at, "UIDVALIDITY of the pages has changed");
            }
            Err(fault) => {
                let account = self.source();
                self.fail(OpenError::Account(account, fault));
            }
        }
    }

    fn take_page(&mut self, at: &Locator, parts: &[Bytes]) -> Result<(), FormatError> {
        let encoding = self.encoding(self.source());
        let (head, frame) = OpenJob::page_parts(encoding, at, parts)?;
        let octets = open_frame(&head, &frame, at.at, &self.of.keys, at.mail)?;
        self.pages.put(at, octets)?;
        self.want_below(at);
        self.pages.keep(at, &head, &frame);
        Ok(())
    }

    /// A page is not where its locator says: its mail may have another UID.
    fn look_for(&mut self, at: Locator, reason: &str) {
        if self.moved.contains_key(&at.mail) {
            self.refuse(&at, reason);
            return;
        }
        let request = Request::Find {
            mailbox: mailbox_name(self.mailboxes().1),
            word: id_word(at.mail),
        };
        self.ask(self.source(), request, Asked::Moved(at));
    }

    pub(super) fn moved_answered(&mut self, at: Locator, answer: Result<Answer, Fault>) {
        match answer {
            Ok(Answer::Found(uid_validity, uids)) => match uids.into_iter().min() {
                Some(uid) if self.stage == Stage::Pages => {
                    self.pages_validity = uid_validity;
                    self.moved.insert(at.mail, uid);
                    self.wanted.push_back(at);
                }
                _ => self.refuse(&at, "the mail of a page is gone"),
            },
            Ok(_) => self.refuse(&at, "the mail of a page is gone"),
            Err(fault) => self.fail(OpenError::Account(self.source(), fault)),
        }
    }

    fn want_below(&mut self, at: &Locator) {
        if self.is_distrusted {
            let below = self.pages.below(at, None).into_iter();
            self.wanted.extend(below.map(|(at, _)| at));
        }
    }

    /// Every page for the beginning is there, each at the level demanded by the page above; else the checkpoint is
    /// refused.
    pub(super) fn check_pages(&mut self) {
        let missing = self.missing_pages();
        match missing.iter().find(|at| self.pages.has(at)).copied() {
            Some(at) => self.refuse(&at, "a page has another level than its place"),
            None if missing.is_empty() => {
                self.stage = Stage::Over;
                return;
            }
            None => self.wanted.extend(missing),
        }
        self.advance();
    }

    /// A checkpoint cannot be used: an older one serves, or the log from its first commit on.
    fn refuse(&mut self, at: &Locator, reason: &str) {
        self.report(self.mailboxes().1, at.copy.uid, reason.to_owned());
        if self.stage != Stage::Pages {
            return;
        }
        self.refused.extend(self.base.map(|base| base.root));
        self.base = self.best();
        self.wanted.clear();
        self.stage = Stage::Tail;
    }
}
