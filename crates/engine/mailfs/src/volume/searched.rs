//! Packs that are not where their rows say: a server has told a wrong UID, or the mail was stored once more. A search by the
//! mail's id tells. `check --repair` corrects the row.

use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;

use super::accounts::mailbox_name;
use super::state::{Asked, Volume};
use crate::format::subject::id_word;
use crate::format::{Kind, MailCopy};
use crate::rows::Extent;

/// Mails with the id of a pack that are tried on an account.
const DUPLICATES_MAX: usize = 4;

impl<S: Storage> Volume<S> {
    /// Searches an account for the pack of a chunk that a program waits for: the named mail is gone, or is another one. Each
    /// account is searched once. Returns whether one is asked.
    pub(super) fn search_pack(&mut self, chunk: Extent) -> bool {
        let row = self.pack_row(chunk.pack.0).ok().flatten();
        let Some(row) = row.filter(|row| row.kind == Kind::Data as u8) else {
            return false;
        };
        let Some(fetch) = self.reads.fetches.get_mut(&chunk) else {
            return false;
        };
        if !fetch.is_damaged || fetch.callers.is_empty() {
            return false;
        }
        let accounts = &self.accounts;
        let is_left = |copy: &&MailCopy| {
            !fetch.searched.contains(&copy.account) && accounts.may(copy.account, Urgency::Waited)
        };
        let Some(copy) = row.copies.iter().find(is_left).copied() else {
            return false;
        };
        fetch.searched.push(copy.account);
        let urgency = fetch.urgency;
        let request = Request::Find {
            mailbox: mailbox_name(copy.mailbox),
            word: id_word(row.mail),
        };
        let asked = Asked::FindPack(chunk, copy);
        self.ask(AccountId(copy.account), urgency, request, asked);
        true
    }

    /// An account has told where a pack is, or that there is none.
    pub(super) fn pack_found(
        &mut self,
        chunk: Extent,
        copy: MailCopy,
        answer: Result<Answer, Fault>,
    ) {
        let known = self.accounts.uid_validity(copy.account, copy.mailbox);
        let fetch = self.reads.fetches.get_mut(&chunk);
        match (answer, fetch) {
            (Ok(Answer::Found(uid_validity, uids)), Some(fetch)) if known == Some(uid_validity) => {
                let others = uids.into_iter().filter(|uid| *uid != copy.uid);
                let others = others.take(DUPLICATES_MAX);
                fetch
                    .copies
                    .extend(others.map(|uid| MailCopy { uid, ..copy }));
            }
            (Err(fault), Some(fetch)) => {
                let account = copy.account;
                fetch.reasons.push(format!("account {account}: {fault}"));
                self.account_failed(account, &fault);
            }
            _ => {}
        }
        self.fetch_next(chunk);
    }
}
