//! Changes whose base is gone, as a merge takes them.

use std::collections::BTreeMap;

use bytes::Bytes;
use vere_ports::files::Inode;

/// A changed row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// The value now.
    pub now: Option<Bytes>,
    /// The value before, if known.
    pub base: Option<Option<Bytes>>,
}

/// How much of a file's content the changes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Every octet.
    Whole,
    /// Some octets; the rest is below the changes.
    Parts,
    /// Some octets; other octets of the changes are gone.
    Lost,
}

/// Changes whose base is gone.
#[derive(Debug, Clone, Default)]
pub struct Strays {
    /// Changed rows of files.
    pub rows: BTreeMap<Vec<u8>, Stray>,
    /// Files whose content was changed.
    pub contents: BTreeMap<Inode, Coverage>,
    /// Whether the newest state may be older than the base: a content counts as unchanged with an equal row only.
    pub is_set_back: bool,
}
