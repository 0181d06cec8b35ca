//! The lines of the file of a day.
//!
//! ```text
//! 1 7c0ffee1 {"count":[3,{"tls":{"domain":"example.org",...}}]}
//! │ │        └ an entry in JSON
//! │ └ CRC-32 of the JSON, eight hexadecimal digits
//! └ version
//! ```
//!
//! A line of another form is passed over: the last one of a file that a crash has cut, and what was appended to it.

use crate::bounds::LINE_OCTETS_MAX;

use super::entry::Entry;

/// The version of the lines.
const VERSION: &str = "1";
/// Octets before the JSON.
const HEAD_OCTETS: usize = 11;

/// Appends a line; an entry that is too long for one is left out.
pub(super) fn write(out: &mut Vec<u8>, entry: &Entry) {
    let Ok(json) = serde_json::to_string(entry) else {
        return;
    };
    if json.len().saturating_add(HEAD_OCTETS) > LINE_OCTETS_MAX {
        return;
    }
    let crc = vere_checksum::crc32(json.as_bytes());
    out.extend_from_slice(format!("{VERSION} {crc:08x} {json}\n").as_bytes());
}

/// The entry of a line; `None` for a line of another form.
pub(super) fn read(line: &[u8]) -> Option<Entry> {
    let line = std::str::from_utf8(line).ok()?;
    let line = Some(line).filter(|line| line.len() <= LINE_OCTETS_MAX)?;
    let mut parts = line.splitn(3, ' ');
    let (version, crc, json) = (parts.next()?, parts.next()?, parts.next()?);
    if version != VERSION || crc != format!("{:08x}", vere_checksum::crc32(json.as_bytes())) {
        return None;
    }
    serde_json::from_str(json).ok()
}
