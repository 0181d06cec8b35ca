//! By what an owner has a group.

/// By what an owner has a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Title {
    /// The life of the owner's memory.
    pub(super) owner: u64,
    /// 0 while nobody fenced the group.
    pub(super) epoch: u64,
}
