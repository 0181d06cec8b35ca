//! Bases: what the chain had for the rows that a journal changes.

use std::collections::HashMap;

use vere_keep::record::Part;

use crate::replay::Records;
use crate::rows::Key;

/// What the chain had for rows, as far as the journal knows.
pub(crate) type Bases = HashMap<Vec<u8>, Option<Vec<u8>>>;

/// Whether the journal has the base of a row: rows of files alone are merged with those of other mounts.
#[must_use]
pub fn has_base(key: &[u8]) -> bool {
    matches!(
        Key::decode(key),
        Ok(Key::Inode(_) | Key::Entry { .. } | Key::Xattr { .. })
    )
}

/// What rows had below the changes that no commit has, as far as the journal knows. `since` says from where on a row's changes
/// are in no commit.
pub(crate) fn bases(records: &Records, since: impl Fn(&[u8]) -> u64) -> Bases {
    let mut bases = Bases::new();
    for (position, parts) in records {
        // A merge tells bases once more: the later commit lies below from there on.
        let is_of_merge =
            |part: &Part| matches!(part, Part::Follows(_) | Part::Brought(_) | Part::Piece(_));
        let is_merge = parts.iter().any(is_of_merge);
        for part in parts {
            match part {
                Part::Base(change)
                    if *position >= since(&change.key)
                        && (is_merge || !bases.contains_key(&change.key)) =>
                {
                    bases.insert(change.key.clone(), change.value.clone());
                }
                // A further change of the row tells another base.
                Part::Drop(key) => {
                    bases.remove(key);
                }
                _ => {}
            }
        }
    }
    bases
}
