//! The beginning of a frame.

use crate::octets::{HandoffError, Reader};

/// The version of the frames.
pub const VERSION: u8 = 1;
/// The octets before a frame that give its length.
pub const LENGTH_OCTETS: usize = 4;

/// The kind of a frame.
pub(super) fn head(reader: &mut Reader<'_>) -> Result<u8, HandoffError> {
    match reader.octet("version")? {
        VERSION => reader.octet("kind"),
        found => Err(HandoffError::Version {
            expected: VERSION,
            found,
        }),
    }
}
