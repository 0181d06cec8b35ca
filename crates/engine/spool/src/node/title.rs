//! An owner's title to a group.

/// An owner's title to a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Title {
    /// The life of the owner's memory.
    pub(super) owner: u64,
    /// Epoch of the owner; 0 until an owner fences the group.
    pub(super) epoch: u64,
}
