//! Bounds of what is read.

/// Values nested inside each other, at most. X.411 needs about 15; the inside of a content is not counted.
pub const DEPTH_MAX: usize = LEVELS_MAX as usize;
/// The same number, as elements keep it.
pub(crate) const LEVELS_MAX: u8 = 48;
/// Values of an envelope, at most. 32,767 recipients with long addresses need about 1 million values.
pub const VALUES_MAX: usize = 2_000_000;
/// Elements of a SEQUENCE OF or SET OF, at most: `ub-recipients`, the largest bound of X.411.
pub const ELEMENTS_MAX: usize = 32_767;
