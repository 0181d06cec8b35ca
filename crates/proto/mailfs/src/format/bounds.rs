//! Bounds of formats. Readers check each bound before memory is taken; a mail beyond a bound counts as foreign.

/// Octets of a decoded mail (`mail_octets_max`).
pub const MAIL_OCTETS_MAX: usize = 4 << 20;
/// Frames of a mail.
pub const FRAMES_MAX: usize = 4_096;
/// Octets of content of a frame, after decompression.
pub const FRAME_OCTETS_MAX: usize = 2 << 20;
/// Octets of content of all frames of a mail, after decompression: a small mail must not fill the memory.
pub const CONTENT_OCTETS_MAX: usize = 16 << 20;
/// Rows of a commit or of the facts of a volume.
pub const ROWS_MAX: usize = 16_384;
/// Octets of all keys and values of a commit or of the facts of a volume.
pub const ROW_OCTETS_MAX: usize = 1_792 << 10;
/// Octets of a key.
pub const KEY_OCTETS_MAX: usize = 300;
/// Commits merged by a commit.
pub const MERGED_MAX: usize = 1_024;
/// Ancestors listed by a commit: distances 1 to 2^31.
pub const ANCESTORS_MAX: usize = 32;
/// Octets of the name of a volume, and of the label of a key slot.
pub const LABEL_OCTETS_MAX: usize = 255;
/// Octets of a value: an xattr of 64 KiB, or 64 extents, fits.
pub const VALUE_OCTETS_MAX: usize = 72 << 10;
/// Key epochs of a volume.
pub const EPOCHS_MAX: usize = 1_024;
