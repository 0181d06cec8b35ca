//! Content of this mount that another mount has removed as garbage. Packs that no commit names are orphans to a collection: a
//! mount that was offline for long between a pack and its commit finds the pack gone. Equal content that the mount has named,
//! instead of sending it, may be gone as well.
//!
//! No commit may name such a pack, since the journal would be released with the last copy. So the octets of the journal are sent
//! again, in new packs ([`again`](super::again)). Where the journal lacks octets, or has more than may wait at once, the mount
//! takes no more changes and sends no commit: the next mount sends the content.

use std::collections::BTreeSet;

use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::CollectTerms;
use super::state::Volume;
use crate::format::MailId;
use crate::rows::{Key, RowValue, UpkeepRow};
use crate::tree::Sides;

impl<S: Storage> Volume<S> {
    /// Looks whether packs of content that no commit has are gone, or may go at any time, after a commit of another mount. A
    /// removal follows the commit with the time of its collection: a mount that has not seen this commit loses to it.
    pub(super) fn find_buried(&self, theirs: &Sides) -> Result<BTreeSet<u64>, Errno> {
        let is_of_collection = |key: &Vec<u8>| {
            matches!(
                Key::decode(key),
                Ok(Key::Pack(_) | Key::Tombstone(_) | Key::Upkeep)
            )
        };
        if self.uploads.placed.is_empty() || !theirs.keys().any(is_of_collection) {
            return Ok(BTreeSet::new());
        }
        let mut buried = BTreeSet::new();
        for number in self.placed_and_named()? {
            if self.is_buried(number, theirs)? {
                buried.insert(number);
            }
        }
        if !buried.is_empty() {
            self.files_in(&buried)?;
        }
        Ok(buried)
    }

    /// Whether a pack of an open commit has had a tombstone since the commit's parent, and the tombstone has ended.
    pub(super) fn has_ended(&self, ours: &Sides, parent: MailId) -> Result<bool, Errno> {
        let before = self.follow.since(parent).ok_or(Errno::Io)?;
        for key in ours.keys() {
            if let Ok(Key::Pack(number)) = Key::decode(key) {
                let tombstone = Key::Tombstone(number).encode();
                let is_known = before.contains_key(tombstone.as_slice());
                if is_known && !self.files.tree().contains(&tombstone)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Packs with content of this session that no commit has.
    fn placed_and_named(&self) -> Result<BTreeSet<u64>, Errno> {
        let mut named: BTreeSet<u64> = self.packs_in_use().collect();
        let tree = self.files.tree();
        for key in tree.local_keys() {
            if let (Ok(Key::Extents { .. }), Some(value)) = (Key::decode(key), tree.get(key)?) {
                let packs = vere_inventory::collection::scan::packs_of(key, &value).into_iter();
                named.extend(packs.map(|pack| pack.0));
            }
        }
        named.retain(|pack| self.uploads.placed.contains(pack));
        Ok(named)
    }

    fn is_buried(&self, number: u64, theirs: &Sides) -> Result<bool, Errno> {
        let tree = self.files.tree();
        let ended = |key: Key| {
            let side = theirs.get(&key.encode());
            side.is_some_and(|side| side.base.is_some() && side.now.is_none())
        };
        if ended(Key::Pack(number)) {
            return Ok(true);
        }
        if tree.in_chain(&Key::Pack(number).encode())?.is_some() {
            return Ok(false);
        }
        if ended(Key::Tombstone(number)) {
            return Ok(true);
        }
        let Some(tombstone) = self.tombstone_row(number)? else {
            return Ok(false);
        };
        let own = self.pack_row(number)?;
        if own.is_some_and(|row| row.mail != tombstone.mail) {
            return Ok(false);
        }
        let row = tree.get(&Key::Upkeep.encode())?;
        let row = row.and_then(|row| UpkeepRow::decode(&row).ok());
        let age = row.map_or(0, |row| row.volume_ms.saturating_sub(tombstone.time_ms));
        let grace = CollectTerms::DEFAULT.grace.as_millis();
        Ok(age >= i64::try_from(grace).unwrap_or(i64::MAX))
    }
}
