//! Rows of the volume's one ordered key space: keys and values, as octets and as types.
//!
//! Rows come from mails of other machines and other versions, so each decoder checks every field and names the first wrong one.
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod extents;
mod inode;
mod key;
mod lead;
mod octets;
#[cfg(test)]
mod tests;
mod upkeep;
mod volume;

pub use extents::{EXTENTS_PER_ROW, Extent, Run, decode_extents, encode_extents};
pub use inode::{
    EntryRow, FILE_SIZE_MAX, InodeRow, SYMLINK_OCTETS_MAX, XATTR_OCTETS_MAX, decode_entry,
    encode_entry,
};
pub use key::{
    HOME_BITS, Home, KEY_OCTETS_MAX, Key, NAME_OCTETS_MAX, ROOT_HOME, SLOT_BITS, SLOT_MAX,
    entries_prefix, entry_key, extents_key, extents_prefix, facts_prefix, home_of, inode_key,
    inode_of, mailboxes_prefix, packs_prefix, slot_of, slots_prefix, snapshots_prefix,
    states_prefix, tombstones_prefix, tree_prefix, unnamed_key, unnamed_prefix, writers_prefix,
    xattr_key, xattrs_prefix,
};
pub use lead::LeadRow;
pub use octets::RowError;
pub use upkeep::{StateRow, UpkeepRow};
pub use volume::{
    AccountRow, GroupRow, LeaseRow, MEMBERS_MAX, PackRow, RowValue, SettingsRow, SlotRow,
    SnapshotRow, TEXT_OCTETS_MAX, TombstoneRow, WriterRow,
};
