//! Checkpoints: the rows of won commits go into pages from time to time, so that a mount reads the newest commits only.
//!
//! A checkpoint covers commits in the chain and nothing else, so that rows which still wait, or lose a race, are in no page.
//! Page mails that a kill leaves behind are garbage: no commit names them.

use std::mem;
use std::num::NonZeroU64;

use vere_ports::files::{CallId, Errno, Reply};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;

use super::accounts::{PAGES_MAILBOX, mailbox_name};
use super::found::own_row;
use super::packs::Located;
use super::record::{Part, Won};
use super::scarcity::comes_back;
use super::state::checkpoints::Making;
use super::state::commits::Flight;
use super::state::pages::ASKED_MAX;
use super::state::{Asked, Volume};
use super::step::{Moment, Notice, Step};
use crate::format::commit::{Checkpoint, RowChange};
use crate::format::subject::id_word;
use crate::format::{Kind, Locator, MailCopy, Subject, mail};
use crate::pages::{DraftError, Lot, Progress};
use crate::rows::{Key, RowValue, StateRow};

/// The first octet of keys that belong to files.
const FILES: u8 = 2;

impl<S: Storage> Volume<S> {
    /// The mount ends: everything goes to the servers, with a checkpoint, so that the next mount begins at once. The reply is
    /// [`Reply::Done`].
    pub fn finish(&mut self, now: Moment, id: CallId) {
        self.at(now);
        self.begin_waiting(id);
        // Rows that are not there keep their old times: no end of a mount waits for a time of access.
        if let Err(error) = self.files.settle_atimes() {
            self.fail(Notice::Rows(error));
        }
        self.collect_rows();
        let finish = self.checkpoints.finish.get_or_insert_default();
        finish.calls.push(id);
        self.want_all(Vec::new());
        self.tend_checkpoints();
    }

    /// A commit of this mount is in the chain. Returns the rows that the chain has with the commit.
    pub(super) fn note_won(&mut self, won: Won, flight: &mut Flight) -> Vec<RowChange> {
        let mut rows = mem::take(&mut flight.rows);
        if flight.has_content {
            rows.push(own_row(
                won,
                self.terms.lead,
                (flight.number, flight.octets),
            ));
        }
        let octets = usize::try_from(flight.octets).unwrap_or(usize::MAX);
        self.checkpoints.named = flight.checkpoint;
        self.checkpoints.note(won, octets);
        self.checkpoints.note_rows(rows.len());
        rows
    }

    /// Begins a checkpoint of the chain's rows, if any have changed.
    pub(super) fn begin_checkpoint(&mut self) {
        let checkpoints = &self.checkpoints;
        let last = checkpoints.last.filter(|_| !checkpoints.is_broken);
        let Some(covers) = last.filter(|_| !self.is_behind()) else {
            return;
        };
        // The last commit may be a merge whose rows wait for pages.
        if self.is_behind() {
            return;
        }
        let rows = self.files.tree().cover();
        if !rows.is_empty() {
            self.checkpoints.begin(covers, rows);
        }
    }

    /// Whether files have changed since the newest checkpoint.
    fn has_changed_files(&self) -> bool {
        let mut keys = self.files.tree().chain_keys();
        keys.any(|key| key.first() == Some(&FILES))
    }

    /// Goes on with checkpoints: called whenever a commit is won, an account has answered, or time has passed.
    pub(super) fn tend_checkpoints(&mut self) {
        if self.read_only.is_none() && !self.journal.is_full() && !self.is_unconfirmed() {
            if self.checkpoints.making.is_none() && self.checkpoints.is_due(self.writer) {
                self.begin_checkpoint();
            }
            self.make_checkpoint();
        }
        self.go_on_with_snapshots();
        self.go_on_finishing();
    }

    fn go_on_finishing(&mut self) {
        let is_over = self.read_only.is_some();
        let Some(finish) = &mut self.checkpoints.finish else {
            return;
        };
        if is_over {
            let reply = match self.stand_in {
                Some(_) => Ok(Reply::Done),
                None => Err(Errno::Io),
            };
            for call in mem::take(&mut finish.calls) {
                self.reply(call, reply.clone());
            }
            self.checkpoints.finish = None;
            return;
        }
        let has_tried = mem::replace(&mut finish.has_tried, true);
        if !self.is_quiet() || self.checkpoints.making.is_some() {
            if let Some(finish) = &mut self.checkpoints.finish {
                finish.has_tried = has_tried;
            }
            return;
        }
        if !has_tried && self.has_changed_files() && !self.is_unconfirmed() {
            self.begin_checkpoint();
            self.make_checkpoint();
            if self.checkpoints.making.is_some() {
                return;
            }
        }
        let newest = self.checkpoints.newest.map(|newest| newest.covers);
        if newest != self.checkpoints.named && self.commits.pending() > 0 {
            self.want_all(Vec::new());
            return;
        }
        if self.finish_waits_for_mirrors() {
            return;
        }
        for call in self.checkpoints.finish.take().unwrap_or_default().calls {
            self.reply(call, Ok(Reply::Done));
        }
    }

    /// Goes on with the checkpoint on the way.
    pub(super) fn make_checkpoint(&mut self) {
        if let Some(mut making) = self.checkpoints.making.take() {
            match self.advance_draft(&mut making) {
                Ok(Progress::Done(Some(root))) => return self.complete(making, root),
                Ok(Progress::Done(None)) => return,
                Ok(Progress::Stores) => self.store_pages(&mut making),
                Err(DraftError::Missing(at)) => {
                    let pages = self.files.tree().pages();
                    let ahead = making.draft.missing(pages, ASKED_MAX);
                    self.checkpoints.making = Some(making);
                    for at in ahead {
                        self.want_page(at, Urgency::Background);
                    }
                    // `pages_came` goes on.
                    if !self.want_page(at, Urgency::Background) {
                        self.page_is_lost();
                    }
                    return;
                }
                Err(DraftError::Format(error)) => {
                    self.checkpoints.making = Some(making);
                    return self.end_checkpoint(error.to_string());
                }
            }
            self.checkpoints.making = Some(making);
        }
    }

    fn advance_draft(&mut self, making: &mut Making) -> Result<Progress, DraftError> {
        let pages = mem::take(self.files.tree_mut().pages_mut());
        let seals = self.seals.clone();
        let mut next = || self.next_pack();
        let mut lot = Lot {
            volume: seals.volume,
            epoch: seals.epoch,
            keys: &seals.keys,
            next: &mut next,
        };
        let progress = making.draft.advance(&pages, &mut lot);
        *self.files.tree_mut().pages_mut() = pages;
        progress
    }

    /// A checkpoint is given up; the commits have everything.
    fn end_checkpoint(&mut self, reason: String) {
        self.checkpoints.give_up();
        self.steps.push_back(Step::Log(Notice::Checkpoint(reason)));
    }

    fn store_pages(&mut self, making: &mut Making) {
        let lead = self.terms.lead;
        let urgency = match self.checkpoints.finish {
            Some(_) => Urgency::Synced,
            None => Urgency::Background,
        };
        if !self.accounts.may(lead, urgency) {
            return;
        }
        let mut requests = Vec::new();
        for (number, page) in making.draft.unstored() {
            if !making.asked.insert(number) {
                continue;
            }
            let mailbox = mailbox_name(PAGES_MAILBOX);
            let request = if making.doubts.contains(&number) {
                let word = id_word(page.head.mail);
                Request::Find { mailbox, word }
            } else {
                let subject = Subject::of(&page.head, None, Some(making.covers.generation));
                let (date, encoding) = (self.now.date(), self.lead_encoding());
                let mail = mail::wrap(&subject, date, encoding, &page.body).into();
                Request::Append {
                    mailbox,
                    mail,
                    alone: false,
                }
            };
            requests.push((number, request));
        }
        for (number, request) in requests {
            let asked = Asked::PageMail(making.covers.generation, number);
            self.ask(AccountId(lead), urgency, request, asked);
        }
    }

    /// The lead has stored a page mail, or not.
    pub(super) fn page_mail_answered(
        &mut self,
        covers: u64,
        number: usize,
        answer: Result<Answer, Fault>,
    ) {
        let making = self.checkpoints.making.as_mut();
        let Some(making) = making.filter(|making| making.covers.generation == covers) else {
            return;
        };
        making.asked.remove(&number);
        match answer {
            Ok(Answer::Appended(Some((uid_validity, uid)))) => {
                self.page_mail_is_at(number, uid_validity, uid);
            }
            Ok(Answer::Found(uid_validity, uids)) => match uids.into_iter().min() {
                Some(uid) => self.page_mail_is_at(number, uid_validity, uid),
                None => {
                    making.doubts.remove(&number);
                }
            },
            // The account does not tell where the mail is: the subject does.
            Ok(_) => {
                making.doubts.insert(number);
            }
            Err(fault) => {
                making.doubts.insert(number);
                self.account_failed(self.terms.lead, &fault);
                if !comes_back(&fault) {
                    self.end_checkpoint(fault.to_string());
                }
            }
        }
        self.tend_checkpoints();
    }

    fn page_mail_is_at(&mut self, number: usize, uid_validity: u32, uid: u32) {
        let lead = self.terms.lead;
        self.numbered(lead, PAGES_MAILBOX, uid_validity);
        let Some(making) = &mut self.checkpoints.making else {
            return;
        };
        let expected = *making.uid_validity.get_or_insert(uid_validity);
        if expected != uid_validity {
            self.end_checkpoint("UIDVALIDITY of the pages has changed".to_owned());
            return;
        }
        let copy = MailCopy {
            account: lead,
            mailbox: PAGES_MAILBOX,
            uid,
        };
        if let Some(page) = making.draft.mails().get(number) {
            let pages = self.files.tree().pages();
            pages.keep_mail(page.head.mail, &page.body);
        }
        making.draft.stored(number, copy);
    }

    /// Every page is stored: commits name the checkpoint from now on.
    fn complete(&mut self, mut making: Making, root: Locator) {
        let Some(covers) = NonZeroU64::new(making.covers.generation) else {
            return;
        };
        let validity = making.uid_validity.unwrap_or(0);
        for page in making.draft.mails().to_vec() {
            if let Some(copy) = page.copy {
                self.mirror_page(page.head.mail, (validity, copy.uid));
            }
            let located = Located {
                id: page.head.mail,
                copies: page.copy.into_iter().collect(),
            };
            self.locate(page.head.pack.0, located, (Kind::Pages, 0, page.octets));
        }
        let tree = self.files.tree_mut();
        for (at, page) in making.draft.take_written() {
            // The draft's own pages are pages; a failure costs a fetch.
            let _ = tree.pages().put(&at, page);
        }
        tree.covered(Some(root), covers.get());
        let row = StateRow {
            commit: making.covers.commit,
            uid: making.covers.uid,
            time_ms: self.now.millis(),
            superseded_ms: 0,
            root,
        };
        self.put_row(Key::State(covers.get()).encode(), row.encode());
        self.checkpoints.anchor = Some(making.covers);
        if let Err(error) = self.journal.append(&[Part::Won(making.covers)]) {
            self.fail(Notice::Journal(error.to_string()));
        }
        self.checkpoints.complete(Checkpoint {
            covers,
            covered_uid: making.covers.uid,
            root,
        });
    }

    /// A page of the newest checkpoint cannot be read. The next mount begins at an older one, and writes all pages again.
    fn page_is_lost(&mut self) {
        self.checkpoints.is_broken = true;
        self.end_checkpoint("no account has a page of the last one".to_owned());
    }
}
