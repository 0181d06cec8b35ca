//! Changes of the journal whose base is gone: the log has lost the commit below the changes, by a collection or because
//! the account was set back. The changes are brought onto the newest state.
//!
//! The journal gets the result, and the volume begins as with any other journal. The result may take several records, and
//! they count with the last record: a kill before has everything done once more, and a kill behind finds everything done.

use std::io;

use vere_ports::storage::Storage;
use vere_replay::{Replay, Stranded, bring_in};

use super::Opening;
use super::log::Log;
use crate::error::OpenError;
use crate::follow::Follow;
use crate::machine::is_machine;
use crate::merge::{Label, Merged};
use crate::notice::Moment;
use crate::rows::{Key, RowValue, WriterRow};
use crate::terms::Create;
use crate::terms::Terms;
use crate::tree::Tree;
use vere_keep::journal::{Journal, pieces};

/// A tree with the newest state, and the result of the merge.
pub(super) struct Brought {
    pub(super) tree: Tree,
    pub(super) follow: Follow,
    pub(super) merged: Merged,
}

impl<S: Storage> Opening<S> {
    /// As [`Self::new`], for a journal whose changes lie on a state that the accounts have lost: the volume opens at its newest state,
    /// merged with the changes.
    pub fn bring_in(
        terms: Terms,
        of: Create,
        storage: S,
        random: [u8; 16],
        stranded: Stranded,
    ) -> Self {
        Self::begin(terms, of, (storage, random), None, Some(stranded))
    }

    /// Merges the journal's changes with the newest state, and notes the result.
    pub(super) fn merge_stranded(
        &mut self,
        log: &Log,
        journal: &mut Journal<S>,
        (stranded, now): (Stranded, Moment),
    ) -> Result<Brought, OpenError> {
        let newest = log
            .chain
            .last()
            .ok_or(OpenError::NoVolume(self.terms.lead))?;
        let newest = newest.won(self.uid_validity);
        let replay = Replay::stranded(&self.records, &log.chain, &log.outside);
        let (mut tree, follow) = self.rows(log)?;
        let (writer, sequence, block) = replay.writer().ok_or(OpenError::Overtaken)?;
        let registered = tree.get(&Key::Writer(writer).encode())?;
        let registered = registered.and_then(|row| WriterRow::decode(&row).ok());
        if registered.is_none_or(|row| !is_machine(&row, &self.of.machine)) {
            // Another machine has the number now, or may get it: new inodes would have numbers of other files.
            return Err(OpenError::Overtaken);
        }
        let label = Label::new(&self.of.machine.name, now.date());
        let records = (&self.records, &replay);
        let (parts, merged) = bring_in(
            &mut tree,
            records,
            (stranded, newest),
            (writer, sequence, block),
            &label,
        )?;
        for piece in pieces(parts) {
            let position = journal.append(&piece).map_err(too_long)?;
            self.records.push((position, piece));
        }
        journal.sync()?;
        Ok(Brought {
            tree,
            follow,
            merged,
        })
    }
}

/// A merge with too long a last record, because too many files wait for content: every later start would fail alike, so the journal
/// counts as a journal without a way into the volume, and the remedy is named.
fn too_long(error: io::Error) -> OpenError {
    match error.kind() {
        io::ErrorKind::InvalidInput => OpenError::Overtaken,
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_beyond_a_record_has_a_remedy() {
        let long = io::Error::from(io::ErrorKind::InvalidInput);
        assert!(matches!(too_long(long), OpenError::Overtaken));
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert!(matches!(too_long(full), OpenError::Io(_)));
    }
}
