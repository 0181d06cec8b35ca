//! Copies of packs for every member of their group: sent behind the first ones, and made good when a member comes back.

use super::accounts::{FIRST_DATA_MAILBOX, mailbox_name};
use super::job::{CopyJob, Job, Task};
use super::state::replicas::COPIES_MAX;
use super::state::{Asked, Volume, Working};
use super::step::{Notice, Step};
use crate::format::{FormatError, Kind, MailCopy, PackNumber};
use crate::rows::{Key, PackRow, RowValue, packs_prefix};
use bytes::Bytes;
use vere_ports::files::Errno;
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;

impl<S: Storage> Volume<S> {
    /// Finds the copies that are missing, from the rows of packs.
    pub(super) fn find_missing_copies(&mut self) -> Result<(), Errno> {
        for key in self.files.tree().keys(&packs_prefix())? {
            let Ok(Key::Pack(pack)) = Key::decode(&key) else {
                continue;
            };
            let row = self.files.tree().get(&key)?;
            let row = row.as_deref().map(PackRow::decode);
            if let Some(Ok(row)) = row
                && row.kind == Kind::Data as u8
            {
                for account in self.accounts.members(row.group) {
                    if row.copies.iter().all(|copy| copy.account != account) {
                        self.replicas.lacks(account, pack);
                    }
                }
            }
        }
        Ok(())
    }

    /// Begins to make missing copies, while nothing more urgent is under way.
    pub(super) fn make_copies(&mut self) {
        let ready: Vec<(u16, u64)> = {
            let accounts = &self.accounts;
            let room = COPIES_MAX.saturating_sub(self.replicas.copying.len());
            let missing = self.replicas.missing.iter().copied();
            missing
                .filter(|(account, _)| accounts.may_try(*account))
                .take(room)
                .collect()
        };
        for (account, pack) in ready {
            self.replicas.missing.remove(&(account, pack));
            if self.read_whole(account, pack) {
                self.replicas.copying.insert((account, pack));
            }
        }
    }

    /// Reads a pack from the best account that has it. Returns whether one is asked.
    fn read_whole(&mut self, account: u16, pack: u64) -> bool {
        let Some(located) = self.located(pack) else {
            return false;
        };
        let accounts = &self.accounts;
        let copies = located
            .copies
            .iter()
            .filter(|copy| accounts.may_try(copy.account));
        let Some(copy) = copies
            .min_by_key(|copy| accounts.cost(copy.account))
            .copied()
        else {
            self.replicas.lacks(account, pack);
            return false;
        };
        let Some(uid_validity) = self.accounts.uid_validity(copy.account, copy.mailbox) else {
            return false;
        };
        let request = Request::Read {
            mailbox: mailbox_name(copy.mailbox),
            uid_validity,
            uid: copy.uid,
            parts: Vec::new(),
        };
        let asked = Asked::Original(PackNumber(pack), account, copy);
        self.ask(AccountId(copy.account), Urgency::Idle, request, asked);
        true
    }

    /// An account has given a pack for another one.
    pub(super) fn original_answered(
        &mut self,
        pack: PackNumber,
        account: u16,
        copy: MailCopy,
        answer: Result<Answer, Fault>,
    ) {
        match (answer, self.located(pack.0)) {
            (Ok(Answer::Read(parts)), Some(located)) => {
                let from = self.accounts.encoding(copy.account);
                let to = self.accounts.encoding(account);
                if let (Some(from), Some(to), Some(body)) = (from, to, parts.into_iter().next()) {
                    let job = CopyJob {
                        keys: self.seals.keys.clone(),
                        id: located.id,
                        from,
                        to,
                        body,
                        date: self.now.date(),
                    };
                    self.work(Job(Task::Copy(job)), Working::Copy(pack, account, copy));
                    return;
                }
            }
            (Err(fault), _) => self.account_failed(copy.account, &fault),
            // Another try would find the same: `check --repair` corrects the row first.
            _ => {
                self.copy_ends(pack, account, true);
                return;
            }
        }
        self.copy_ends(pack, account, false);
    }

    /// The mail of a copy is made.
    pub(super) fn copy_made(
        &mut self,
        pack: PackNumber,
        account: u16,
        copy: MailCopy,
        made: Result<Bytes, FormatError>,
    ) {
        match made {
            Ok(mail) => {
                let mailbox = mailbox_name(FIRST_DATA_MAILBOX);
                let request = Request::Append {
                    mailbox,
                    mail,
                    alone: false,
                };
                self.ask(
                    AccountId(account),
                    Urgency::Idle,
                    request,
                    Asked::Copy(pack, account),
                );
            }
            Err(error) => {
                self.steps.push_back(Step::Log(Notice::Forged {
                    account: AccountId(copy.account),
                    mailbox: mailbox_name(copy.mailbox),
                    uid: copy.uid,
                    reason: error.to_string(),
                }));
                self.copy_ends(pack, account, true);
            }
        }
    }

    /// An account has taken a copy, or not.
    pub(super) fn copy_answered(
        &mut self,
        pack: PackNumber,
        account: u16,
        answer: Result<Answer, Fault>,
    ) {
        match answer {
            Ok(Answer::Appended(Some((uid_validity, uid)))) => {
                self.add_copy(pack, account, uid_validity, uid);
                self.copy_ends(pack, account, true);
            }
            // An account that does not tell the UID has the copy for nothing: the next `check` finds it by its subject.
            Ok(_) => self.copy_ends(pack, account, true),
            Err(fault) => {
                self.account_failed(account, &fault);
                self.copy_ends(pack, account, false);
            }
        }
    }

    fn copy_ends(&mut self, pack: PackNumber, account: u16, is_done: bool) {
        self.replicas.copying.remove(&(account, pack.0));
        if !is_done {
            self.replicas.lacks(account, pack.0);
        }
        self.make_copies();
    }

    /// Notes a further copy of a pack.
    pub(super) fn add_copy(&mut self, pack: PackNumber, account: u16, uid_validity: u32, uid: u32) {
        self.numbered(account, FIRST_DATA_MAILBOX, uid_validity);
        let key = Key::Pack(pack.0).encode();
        let row = self.files.tree().get(&key).ok().flatten();
        let row = row.as_deref().map(PackRow::decode);
        if let Some(Ok(mut row)) = row {
            let copy = MailCopy {
                account,
                mailbox: FIRST_DATA_MAILBOX,
                uid,
            };
            self.takes_room(account, row.octets);
            row.copies.retain(|old| old.account != account);
            row.copies.push(copy);
            self.put_row(key, row.encode());
        }
    }
}
