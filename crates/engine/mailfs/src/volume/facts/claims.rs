//! The basis of a run: the rows before the change, and the run's own rows once the chain has decided.
//!
//! Two machines may change keys at once. A rebase keeps the rows of the winner, so a run has won only if the chain lists what
//! the run wrote.

use std::collections::BTreeSet;

use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::super::state::Volume;
use super::super::upkeep::rows::RowChange;
use super::{FactsChange, FactsRun};
use crate::format::MailId;
use crate::format::volume::Facts;
use crate::rows::{Key, RowValue, SlotRow};

/// What a run without success tells people.
const OVERTAKEN: &str = "another machine changed the keys; run again";

impl<S: Storage> Volume<S> {
    /// The newest epoch known to the mount, begun or awaited.
    pub(crate) fn newest_epoch(&self) -> u16 {
        self.seals.epoch.max(self.epochs.next.unwrap_or(0))
    }

    /// Refuses a change made from earlier slots or earlier keys.
    pub(super) fn check_claims(&self, change: &FactsChange) -> Result<(), String> {
        let newest = self.newest_epoch();
        let wanted = match &change.keys {
            Some((epoch, _)) if newest.checked_add(1) != Some(*epoch) => {
                return Err(format!(
                    "expected the key epoch behind {newest}; found {epoch}: {OVERTAKEN}"
                ));
            }
            Some((epoch, _)) => *epoch,
            None => newest,
        };
        if let Some(slot) = change.slots.iter().find(|slot| slot.head.epoch != wanted) {
            return Err(format!(
                "slot {}: expected the keys up to epoch {wanted}; found those up to {}: {OVERTAKEN}",
                slot.number, slot.head.epoch
            ));
        }
        let Some(expected) = &change.listed else {
            return Ok(());
        };
        let listed = self.slots().map_err(unreadable)?;
        let listed = listed.iter().map(|(number, row)| (*number, row.mail));
        if expected
            .iter()
            .map(|(number, mail)| (*number, *mail))
            .eq(listed)
        {
            Ok(())
        } else {
            Err(OVERTAKEN.to_owned())
        }
    }

    /// Slots replaced by the rows of a change, and slots of the earlier facts, listed nowhere any more.
    pub(super) fn replaced_slots(
        &self,
        rows: &[RowChange],
        facts: Option<&Facts>,
    ) -> Result<BTreeSet<MailId>, Errno> {
        let tree = self.files.tree();
        let mut replaced = BTreeSet::new();
        for (key, _) in rows.iter().filter(|(key, _)| is_slot(key)) {
            let row = tree.get(key)?;
            replaced.extend(
                row.and_then(|row| SlotRow::decode(&row).ok())
                    .map(|row| row.mail),
            );
        }
        let before = facts.iter().flat_map(|facts| &facts.rows);
        let before = before.filter(|(key, _)| is_slot(key));
        replaced.extend(before.filter_map(|(_, row)| Some(SlotRow::decode(row).ok()?.mail)));
        Ok(replaced)
    }

    /// Whether the rows of a run about slots, accounts and groups are those of the chain.
    pub(super) fn has_won(&self, run: &FactsRun) -> Result<bool, Errno> {
        let tree = self.files.tree();
        for (key, value) in &run.own {
            if tree.get(key)?.as_deref() != value.as_deref() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The slots of a lost run: no row lists the slots, and no row will.
    pub(super) fn lost_slots(&self, run: &FactsRun) -> Result<BTreeSet<MailId>, Errno> {
        let listed = self.listed_slots()?;
        let own = run.change.slots.iter().map(|slot| slot.head.mail);
        Ok(own.filter(|mail| !listed.contains(mail)).collect())
    }
}

/// The reason of a run that has lost.
pub(super) fn overtaken() -> String {
    OVERTAKEN.to_owned()
}

/// Rows that one machine alone may change at a time.
pub(super) fn own_rows(rows: &[RowChange]) -> Vec<RowChange> {
    let is_own = |(key, _): &&RowChange| {
        let key = Key::decode(key);
        matches!(key, Ok(Key::Slot(_) | Key::Account(_) | Key::Group(_)))
    };
    rows.iter().filter(is_own).cloned().collect()
}

fn is_slot(key: &[u8]) -> bool {
    matches!(Key::decode(key), Ok(Key::Slot(_)))
}

pub(super) fn unreadable(errno: Errno) -> String {
    format!("rows of the volume: {errno}")
}
