//! The bounds of messages and mailboxes.

/// The longest message, in octets.
pub const MESSAGE_OCTETS_MAX: u32 = 256 * 1024 * 1024;
/// The most messages of a mailbox.
pub const MESSAGES_MAX: u32 = 16_000_000;
/// The most keywords of a mailbox, including keywords used in the past.
pub const KEYWORDS_MAX: usize = 64;
/// The most operations remembered by a mailbox.
pub(crate) const OPERATIONS_MAX: u64 = 4_096;
