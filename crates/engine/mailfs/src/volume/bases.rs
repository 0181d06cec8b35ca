//! Bases: the chain's values of the rows changed by the journal. A mount whose log has lost the commit below the journal's
//! changes still knows the changes of other mounts.

use std::collections::BTreeSet;

use vere_ports::storage::Storage;
use vere_replay::has_base;

use super::record::Part;
use super::state::Volume;
use crate::breakage::{Breakage, is_broken};
use crate::format::commit::RowChange;
use crate::rows::Key;
use crate::tree::{Change, Side, Sides};

/// Keys whose base the journal has since the last commit was built; further ones are told again.
const BASED_MAX: usize = 16_384;

impl<S: Storage> Volume<S> {
    /// The bases of rows with their first change since the last commit was built.
    pub(super) fn bases_of(&mut self, changes: &[Change]) -> Vec<Part> {
        let mut bases = Vec::new();
        for Change { key, .. } in changes {
            if !has_base(key)
                || self.commits.based.contains(key)
                || is_broken(Breakage::BasesForgotten)
            {
                continue;
            }
            let mut flights = self.commits.flights.iter().rev();
            let value = match flights.find_map(|flight| flight.row(key)) {
                Some(row) => row.value.clone(),
                None => match self.files.tree().in_chain(key) {
                    Ok(value) => value.map(Vec::from),
                    // A page outside memory leaves the base unknown.
                    Err(_) => continue,
                },
            };
            if self.commits.based.len() >= BASED_MAX {
                self.commits.based.clear();
            }
            self.commits.based.insert(key.clone());
            let key = key.clone();
            bases.push(Part::Base(Change { key, value }));
        }
        bases
    }

    /// The bases of rows with another change behind a commit with the rows, because of unstored content.
    pub(super) fn bases_of_exceptions(&self, rows: &[RowChange]) -> Vec<Part> {
        let excepted = rows.iter().filter(|row| {
            matches!(Key::decode(&row.key), Ok(Key::Inode(inode)) if self.commits.changed.contains_key(&inode))
        });
        let of = |row: &RowChange| Change {
            key: row.key.clone(),
            value: row.value.clone(),
        };
        excepted.map(|row| Part::Base(of(row))).collect()
    }

    /// The bases of waiting rows, where a commit of another mount has changed the rows.
    pub(super) fn bases_of_rebased(&self, theirs: &Sides, local: &BTreeSet<Vec<u8>>) -> Vec<Part> {
        let waiting = theirs.iter();
        let waiting = waiting.filter(|(key, _)| has_base(key) && local.contains(*key));
        let of = |(key, side): (&Vec<u8>, &Side)| Change {
            key: key.clone(),
            value: side.now.clone().map(Vec::from),
        };
        waiting.map(|of_them| Part::Base(of(of_them))).collect()
    }
}
