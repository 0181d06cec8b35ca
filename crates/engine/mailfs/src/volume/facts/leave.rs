//! An account leaves a volume: every pack of the account must be elsewhere too.

use std::collections::{BTreeMap, HashMap};
use std::mem;

use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::super::state::Volume;
use super::super::step::Moment;
use crate::format::{MailCopy, MailId};
use crate::rows::{PackRow, RowValue, packs_prefix};

/// What an account has, when it is about to leave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leaving {
    /// Packs of the account alone.
    pub only: usize,
    /// The rows of all packs with copies on further accounts too, without the account's copies.
    pub rows: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// The rows as read.
    pub expected: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl<S: Storage> Volume<S> {
    /// The packs of an account; `None` while rows are missing: the caller asks again. `elsewhere` has mails of the lead that a
    /// former lead has too: commits with content, and pages.
    ///
    /// # Errors
    /// When a row cannot be read.
    pub fn leaving(
        &mut self,
        now: Moment,
        account: u16,
        elsewhere: &HashMap<MailId, MailCopy>,
    ) -> Result<Option<Leaving>, Errno> {
        self.at(now);
        let mut bring = mem::take(&mut self.bring);
        let is_there = self.bring_pages(&mut bring);
        if !is_there? {
            self.bring = bring;
            return Ok(None);
        }
        let mut leaving = Leaving::default();
        let tree = self.files.tree();
        for key in tree.keys(&packs_prefix())? {
            let Some(now) = tree.get(&key)? else {
                continue;
            };
            let Ok(mut row) = PackRow::decode(&now) else {
                continue;
            };
            let before = row.copies.len();
            row.copies.retain(|copy| copy.account != account);
            if row.copies.len() == before {
                continue;
            }
            if row.copies.is_empty() {
                row.copies.extend(elsewhere.get(&row.mail));
            }
            if row.copies.is_empty() {
                leaving.only = leaving.only.saturating_add(1);
                continue;
            }
            leaving.expected.insert(key.clone(), now.to_vec());
            leaving.rows.push((key, Some(row.encode())));
        }
        Ok(Some(leaving))
    }
}
