//! The id by which a destination counts the messages of a run.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;

use memchr::{memchr, memmem};

/// The header field of a [`MessageId`].
pub(crate) const FIELD: &str = "X-Bench-Id";

/// Octets searched for the field: the trace fields of all relays together are shorter.
const HEADER_MAX: usize = 64 * 1024;

/// The id of a message: run and sequence, written as 16 hexadecimal digits in the field `X-Bench-Id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(u64);

/// The text is not 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidMessageId;

impl MessageId {
    /// Message `sequence` of `run`.
    pub const fn new(run: u32, sequence: u32) -> Self {
        Self((run as u64) << 32 | sequence as u64)
    }

    /// The id of the message so many places later in the run.
    pub const fn after(self, places: u32) -> Self {
        Self::new(self.run(), self.sequence().wrapping_add(places))
    }

    /// The number of the run.
    pub const fn run(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The number of the message in the run, from 0.
    pub const fn sequence(self) -> u32 {
        self.0 as u32
    }

    /// The id in the header of `message` (CRLF or LF lines), if present.
    pub fn of_message(message: &[u8]) -> Option<Self> {
        let value = header_value(message, FIELD)?;
        std::str::from_utf8(value).ok()?.parse().ok()
    }

    /// A random run number, most likely unique.
    pub fn random_run() -> u32 {
        RandomState::new().hash_one("run") as u32
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for InvalidMessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message id has 16 hexadecimal digits")
    }
}

impl std::error::Error for InvalidMessageId {}

impl FromStr for MessageId {
    type Err = InvalidMessageId;

    fn from_str(text: &str) -> Result<Self, InvalidMessageId> {
        if text.len() != 16 || !text.bytes().all(|octet| octet.is_ascii_hexdigit()) {
            return Err(InvalidMessageId);
        }
        u64::from_str_radix(text, 16)
            .map(Self)
            .map_err(|_| InvalidMessageId)
    }
}

/// The value of the first field called exactly `name` in the header of `message`, unfolded no
/// further than its first line.
pub(crate) fn header_value<'a>(message: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let window = &message[..message.len().min(HEADER_MAX)];
    let end = memmem::find(window, b"\n\r\n").or_else(|| memmem::find(window, b"\n\n"));
    let header = &window[..end.map_or(window.len(), |end| end + 1)];
    let finder = memmem::Finder::new(name.as_bytes());
    let at = finder.find_iter(header).find(|at| {
        (*at == 0 || header[at - 1] == b'\n') && header.get(at + name.len()) == Some(&b':')
    })?;
    let value = &header[at + name.len() + 1..];
    Some(value[..memchr(b'\n', value).unwrap_or(value.len())].trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::{MessageId, header_value};

    #[test]
    fn an_id_is_found_behind_trace_fields_only_in_the_header() {
        let id = MessageId::new(7, 9);
        assert_eq!((id.run(), id.sequence()), (7, 9));
        let with = format!("Received: a\r\n\tb X-Bench-Id: 1\r\nX-Bench-Id: {id}\r\n\r\nbody\r\n");
        assert_eq!(MessageId::of_message(with.as_bytes()), Some(id));
        let without = format!("Received: a\r\n\r\nX-Bench-Id: {id}\r\n");
        assert_eq!(MessageId::of_message(without.as_bytes()), None);
        assert_eq!(MessageId::of_message(b"X-Bench-Id: 12\n\n"), None);
        assert_eq!(MessageId::of_message(b""), None);
    }

    #[test]
    fn a_value_is_trimmed() {
        assert_eq!(header_value(b"A: 1\nB:  2 \n\nB: 3", "B"), Some(&b"2"[..]));
        assert_eq!(header_value(b"B", "B"), None);
    }
}
