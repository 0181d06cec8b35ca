//! Domain names in wire form (RFC 1035 section 3.1): length octet and label, one after the other.

use super::error::Reason;

/// Octets of a label at most.
const LABEL_MAX: usize = 63;
/// Octets of a name at most, the root included.
pub(super) const NAME_MAX: usize = 255;

/// The wire form of a name without the root; a dot at the end is ignored, and `@` is the empty name.
pub(super) fn relative(text: &[u8]) -> Result<Vec<u8>, Reason> {
    let mut wire = Vec::with_capacity(text.len() + 1);
    let name = text.strip_suffix(b".").unwrap_or(text);
    if name == b"@" || text == b"." {
        return Ok(wire);
    }
    for label in name.split(|octet| *octet == b'.') {
        if label.is_empty() || label.len() > LABEL_MAX {
            let expected = "labels of 1 to 63 octets, separated by single dots";
            return Err(Reason::syntax(expected, text));
        }
        wire.push(label.len() as u8);
        wire.extend_from_slice(label);
    }
    if wire.len() >= NAME_MAX {
        return Err(Reason::syntax("a name of at most 255 octets", text));
    }
    Ok(wire)
}

/// The wire form of a name with the root.
pub(super) fn absolute(text: &[u8]) -> Result<Box<[u8]>, Reason> {
    let mut wire = relative(text)?;
    wire.push(0);
    Ok(wire.into())
}
