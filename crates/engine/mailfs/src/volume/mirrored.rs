//! Pages, and contents of commits, that the lead does not give now: copies on further accounts have the same mails, under UIDs
//! that a search by the mail's id tells.

use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;

use super::accounts::{
    LOG_COPY_MAILBOX, LOG_MAILBOX, PAGES_COPY_MAILBOX, PAGES_MAILBOX, mailbox_name,
};
use super::scarcity::comes_back;
use super::state::pages::{PageKey, key_of};
use super::state::{Asked, Volume};
use crate::format::subject::id_word;
use crate::format::{Kind, Locator, MailCopy};
use crate::rows::Extent;

impl<S: Storage> Volume<S> {
    /// The copy to be searched for a page: the lead rests, or has lost the page.
    pub(super) fn mirror_for_page(&self, key: PageKey) -> Option<u16> {
        let fetch = self.pages.fetches.get(&key)?;
        let named = fetch.at.copy.account;
        let is_lost = fetch.copies.is_empty() && fetch.has_searched;
        if !is_lost && self.accounts.may_try(named) {
            return None;
        }
        let holders = self.holders().into_iter();
        let mut left = holders.filter(|of| *of != named && !fetch.searched.contains(of));
        left.find(|of| self.accounts.may(*of, fetch.urgency))
    }

    /// Whether a copy was not searched yet, because its account fails now.
    pub(super) fn has_unsearched_mirror(&self, at: &Locator, searched: &[u16]) -> bool {
        let mut holders = self.holders().into_iter();
        holders.any(|of| of != at.copy.account && !searched.contains(&of))
    }

    /// The metadata accounts, the lead first: a page may name a former lead.
    fn holders(&self) -> Vec<u16> {
        let mut holders = vec![self.terms.lead];
        holders.extend(self.further_accounts());
        holders
    }

    /// The mailbox in which a metadata account has what the lead has in this one.
    const fn mailbox_of(&self, account: u16, of_lead: u16) -> u16 {
        match (account == self.terms.lead, of_lead) {
            (true, _) => of_lead,
            (false, LOG_MAILBOX) => LOG_COPY_MAILBOX,
            (false, _) => PAGES_COPY_MAILBOX,
        }
    }

    /// Searches a copy for a page.
    pub(super) fn search_mirror(&mut self, key: PageKey, account: u16) {
        let Some(fetch) = self.pages.fetches.get_mut(&key) else {
            return;
        };
        fetch.searched.push(account);
        fetch.is_asked = true;
        let (at, urgency) = (fetch.at, fetch.urgency);
        self.pages.asked = self.pages.asked.saturating_add(1);
        let request = Request::Find {
            mailbox: mailbox_name(self.mailbox_of(account, PAGES_MAILBOX)),
            word: id_word(at.mail),
        };
        let asked = Asked::FindMirrored(at, account);
        self.ask(AccountId(account), urgency, request, asked);
    }

    /// A copy has told where the mail of a page is, or that there is none.
    pub(super) fn mirrored_page_found(
        &mut self,
        at: Locator,
        account: u16,
        answer: Result<Answer, Fault>,
    ) {
        let key = key_of(&at);
        self.pages.asked = self.pages.asked.saturating_sub(1);
        let mailbox = self.mailbox_of(account, PAGES_MAILBOX);
        let Some(fetch) = self.pages.fetches.get_mut(&key) else {
            return;
        };
        fetch.is_asked = false;
        match answer {
            Ok(Answer::Found(uid_validity, uids)) => {
                if let Some(uid) = uids.into_iter().min() {
                    fetch.copies.push(MailCopy {
                        account,
                        mailbox,
                        uid,
                    });
                    self.accounts.number(account, mailbox, uid_validity);
                }
            }
            Ok(_) => {}
            Err(fault) => {
                fetch.reasons.push(format!("account {account}: {fault}"));
                if comes_back(&fault) {
                    fetch.searched.retain(|of| *of != account);
                }
                self.account_failed(account, &fault);
            }
        }
        self.ask_for_pages();
        self.pages_came();
    }

    /// Searches copies for a commit whose content no account gives. Returns whether one is asked.
    pub(super) fn search_commit(&mut self, chunk: Extent) -> bool {
        let row = self.pack_row(chunk.pack.0).ok().flatten();
        let Some(row) = row.filter(|row| row.kind == Kind::Commit as u8) else {
            return false;
        };
        let further = self.holders().into_iter();
        let Some(fetch) = self.reads.fetches.get_mut(&chunk) else {
            return false;
        };
        let mut left = further.filter(|of| !fetch.searched.contains(of));
        let Some(account) = left.find(|of| self.accounts.may(*of, Urgency::Waited)) else {
            return false;
        };
        fetch.searched.push(account);
        let urgency = fetch.urgency;
        let request = Request::Find {
            mailbox: mailbox_name(self.mailbox_of(account, LOG_MAILBOX)),
            word: id_word(row.mail),
        };
        let asked = Asked::FindCommit(chunk, account);
        self.ask(AccountId(account), urgency, request, asked);
        true
    }

    /// A copy has told where a commit is, or that there is none.
    pub(super) fn mirrored_commit_found(
        &mut self,
        chunk: Extent,
        account: u16,
        answer: Result<Answer, Fault>,
    ) {
        let mailbox = self.mailbox_of(account, LOG_MAILBOX);
        match answer {
            Ok(Answer::Found(uid_validity, uids)) => {
                let fetch = self.reads.fetches.get_mut(&chunk);
                if let (Some(fetch), Some(uid)) = (fetch, uids.into_iter().min()) {
                    fetch.copies.push(MailCopy {
                        account,
                        mailbox,
                        uid,
                    });
                    self.accounts.number(account, mailbox, uid_validity);
                }
            }
            Ok(_) => {}
            Err(fault) => {
                if let Some(fetch) = self.reads.fetches.get_mut(&chunk) {
                    fetch.reasons.push(format!("account {account}: {fault}"));
                }
                self.account_failed(account, &fault);
            }
        }
        self.fetch_next(chunk);
    }
}
