//! Terms that the store and its processes share.

/// The name of the role that the store starts for each parser.
pub const ROLE: &str = "parser";

/// An environment in which the allocator sets address space aside without the right to write to it, so that the
/// limit counts what is used: an option of mimalloc.
pub const ENVIRONMENT: (&str, &str) = ("MIMALLOC_ARENA_EAGER_COMMIT", "0");

/// Octets of a request that extend its deadline, and the processor time for it, by a second.
pub(super) const OCTETS_A_SECOND: usize = 4 << 20;
