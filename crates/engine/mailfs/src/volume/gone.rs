//! Accounts that have left the volume: another machine has removed them, and whoever owns them may delete their mails.
//!
//! Rows say who has left. The description of a machine may still name such an account: nothing new goes there, and what only
//! such an account has is copied away.

use std::collections::BTreeSet;

use vere_ports::mail_accounts::AccountId;
use vere_ports::storage::Storage;

use super::state::Volume;
use super::step::{Notice, Step};
use crate::format::PackNumber;
use crate::format::commit::RowChange;
use crate::rows::{AccountRow, Key, PackRow, RowValue};

/// The state of an account that has left; the number is not given again.
pub const GONE: u8 = 1;

impl<S: Storage> Volume<S> {
    /// Whether an account has left the volume.
    pub(super) fn is_gone(&self, account: u16) -> bool {
        let row = self.files.tree().get(&Key::Account(account).encode());
        let row = row.ok().flatten().as_deref().map(AccountRow::decode);
        matches!(row, Some(Ok(row)) if row.state == GONE)
    }

    /// Rows of another mount may tell that an account has left.
    pub(super) fn heed_leaving(&mut self, rows: &[RowChange]) {
        let is_account = |row: &RowChange| matches!(Key::decode(&row.key), Ok(Key::Account(_)));
        if rows.iter().any(is_account) && self.leave_out_gone() {
            self.begin_scan();
            self.make_copies();
        }
    }

    /// Accounts that have left are used for reads alone from now on. Returns whether there are any.
    pub(super) fn leave_out_gone(&mut self) -> bool {
        let accounts = self.terms.accounts.iter().map(|terms| terms.account);
        let gone: BTreeSet<u16> = accounts
            .filter(|account| *account != self.terms.lead && self.is_gone(*account))
            .collect();
        if gone.is_empty() {
            return false;
        }
        let is_gone = |account: &u16| gone.contains(account);
        self.terms.accounts.retain(|terms| !is_gone(&terms.account));
        for group in &mut self.terms.groups {
            group.accounts.retain(|account| !is_gone(account));
        }
        self.terms.groups.retain(|group| !group.accounts.is_empty());
        self.accounts.regroup(&self.terms.groups);
        let missing = &mut self.replicas.missing;
        missing.retain(|(account, _)| !is_gone(account));
        for account in &gone {
            let notice = Notice::Left(AccountId(*account));
            self.steps.push_back(Step::Log(notice));
        }
        self.forget_copies(&gone);
        true
    }

    /// Copies on the way to accounts that have left, and copies that no commit has told yet, do not count.
    fn forget_copies(&mut self, gone: &BTreeSet<u16>) {
        let pending = self.commits.pending.iter();
        let pending: Vec<Vec<u8>> = pending
            .filter(|key| matches!(Key::decode(key), Ok(Key::Pack(_))))
            .cloned()
            .collect();
        for key in pending {
            let row = self.files.tree().get(&key).ok().flatten();
            let Some(Ok(mut row)) = row.as_deref().map(PackRow::decode) else {
                continue;
            };
            let before = row.copies.len();
            row.copies.retain(|copy| !gone.contains(&copy.account));
            // The only copy stays named until there is another one.
            if row.copies.len() < before && !row.copies.is_empty() {
                self.put_row(key, row.encode());
            }
        }
        let uploads = &mut self.uploads.packs;
        for upload in uploads.values_mut() {
            upload.copies.retain(|copy| !gone.contains(&copy.account));
            upload.doubt = upload.doubt.filter(|account| !gone.contains(account));
        }
        for number in uploads.keys().copied().collect::<Vec<_>>() {
            self.advance_pack(PackNumber(number));
        }
    }
}
