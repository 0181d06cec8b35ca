//! Copies of packs for every member of their group: sent behind the first ones, and made good when a member comes back.

use super::accounts::{FIRST_DATA_MAILBOX, mailbox_name};
use super::job::{CopyJob, Job, Task};
use super::state::pages::Rows;
use super::state::replicas::{COPIES_MAX, SCAN_ROWS};
use super::state::{Asked, Volume, Working};
use super::step::{Notice, Step};
use crate::format::{FormatError, Kind, MailCopy, PackNumber};
use crate::rows::{Key, PackRow, RowValue, packs_prefix};
use bytes::Bytes;
use std::ops::ControlFlow;
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;

impl<S: Storage> Volume<S> {
    /// Begins to look for missing copies of the packs sent by earlier mounts. Copies of this mount's packs are on the way.
    pub(super) fn begin_scan(&mut self) {
        if self.stand_in.is_some() {
            return;
        }
        let first = PackNumber::new(self.writer, self.sequence.0);
        self.replicas.own_from = first.map_or(u64::MAX, |first| first.0);
        self.replicas.scan = Some(packs_prefix().to_vec());
        self.scan_packs();
    }

    /// Goes on looking for missing copies in the rows of packs, some rows at a time, until all rows were seen.
    pub(super) fn scan_packs(&mut self) {
        self.replicas.scan_at = None;
        let Some(behind) = self.replicas.scan.take() else {
            return;
        };
        let (accounts, replicas) = (&self.accounts, &mut self.replicas);
        let (mut last, mut seen) = (behind.clone(), 0_usize);
        let (writer, own_from) = (self.writer, replicas.own_from);
        let is_own = |pack: u64| PackNumber(pack).writer() == writer && pack >= own_from;
        let tree = self.files.tree();
        tree.take_missing();
        let walk = tree.visit(&packs_prefix(), Some(&behind), &mut |key, value| {
            if let (Ok(Key::Pack(pack)), Ok(row)) = (Key::decode(key), PackRow::decode(value))
                && row.kind == Kind::Data as u8
                && !is_own(pack)
            {
                for account in accounts.members(row.group) {
                    if row.copies.iter().all(|copy| copy.account != account) {
                        replicas.lacks(account, pack);
                    }
                }
            }
            last = key.to_vec();
            seen = seen.saturating_add(1);
            Ok(if seen < SCAN_ROWS {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            })
        });
        if walk.is_ok() && seen < SCAN_ROWS {
            return;
        }
        self.replicas.scan = Some(last);
        match self.fetch_missing(Urgency::Idle) {
            Rows::Here if walk.is_ok() => self.replicas.scan_at = Some(self.now.steady),
            // `pages_came` goes on.
            Rows::Awaited(_) => {}
            // The next mount begins with another checkpoint.
            Rows::Here | Rows::Lost => self.replicas.scan = None,
        }
    }

    /// Begins to make missing copies, while nothing more urgent is under way.
    pub(super) fn make_copies(&mut self) {
        if self.is_stopped() || self.is_unconfirmed() {
            return;
        }
        let ready: Vec<(u16, u64)> = {
            let accounts = &self.accounts;
            let room = COPIES_MAX.saturating_sub(self.replicas.copying.len());
            let missing = self.replicas.missing.iter().copied();
            missing
                .filter(|(account, _)| accounts.may(*account, Urgency::Idle))
                .take(room)
                .collect()
        };
        for (account, pack) in ready {
            if !self.has_pack(pack) {
                // `pages_came` goes on.
                continue;
            }
            self.replicas.missing.remove(&(account, pack));
            if self.read_whole(account, pack) {
                self.replicas.copying.insert((account, pack));
            }
        }
    }

    /// Reads a pack from the best account with a copy. Returns whether an account is asked.
    fn read_whole(&mut self, account: u16, pack: u64) -> bool {
        let Some(located) = self.located(pack) else {
            return false;
        };
        let accounts = &self.accounts;
        let copies = located
            .copies
            .iter()
            .filter(|copy| accounts.may(copy.account, Urgency::Idle));
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
            // A copy of unknown UID is of no use yet: the next `check` finds the copy by the subject.
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
        if self.is_gone(account) {
            return;
        }
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
            row.copies
                .retain(|old| old.account != account && !self.is_gone(old.account));
            row.copies.push(copy);
            self.put_row(key, row.encode());
        }
    }
}
