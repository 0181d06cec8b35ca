//! Messages on the way: large messages are in a temporary file, so that any size takes little memory.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use tempfile::SpooledTempFile;
use vere_imap::date::DateTime;

/// Octets of a message in memory; a larger message is in a file.
const IN_MEMORY_MAX: usize = 1 << 20;

/// The octet that servers show in place of NUL, which no literal may contain: the local store does, and Dovecot.
const FOR_NUL: u8 = 0x80;

/// Octets read at once.
pub(super) const PIECE: usize = 64 * 1024;

/// Metadata of a message before its content is read.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// Identity of the message in its source mailbox: the same key in every run.
    pub(super) key: String,
    /// The flags and keywords, in the notation of IMAP.
    pub(super) flags: Vec<String>,
    /// Date of arrival, if the source has the date.
    pub(super) date: Option<DateTime>,
    /// The size at the source.
    pub(super) size: u64,
    /// Position in the source: an offset, the number of a file, or a UID.
    pub(super) at: u64,
}

/// Messages in a batch.
const BATCH_MESSAGES: usize = 32;
/// Octets beyond which no further message joins a batch.
const BATCH_OCTETS: u64 = 8 << 20;

/// The messages in batches, each of at least one message.
pub(super) fn batches(items: &[Item]) -> impl Iterator<Item = &[Item]> {
    let mut rest = items;
    std::iter::from_fn(move || {
        let mut octets = 0_u64;
        let fit = rest
            .iter()
            .take(BATCH_MESSAGES)
            .take_while(|item| {
                octets = octets.saturating_add(item.size);
                octets <= BATCH_OCTETS
            })
            .count();
        let (batch, behind) = rest.split_at(fit.max(1).min(rest.len()));
        rest = behind;
        (!batch.is_empty()).then_some(batch)
    })
}

/// The hash of a message's octets.
pub(super) type Hash = blake3::Hash;

/// A whole message.
#[derive(Debug)]
pub(super) struct Message {
    content: SpooledTempFile,
    pub(super) size: u64,
    pub(super) hash: Hash,
    /// Whether the message contains NUL, which IMAP transfers in another form (RFC 3516).
    pub(super) nul: bool,
    /// Whether the message contains the octet that servers show in place of NUL.
    pub(super) stand_in: bool,
    /// Whether every line ends with CRLF: such a message survives the conversion to the line ends of files.
    pub(super) plain_ends: bool,
}

impl Message {
    /// Returns the octets in pieces, from the beginning.
    pub(super) fn pieces(
        &mut self,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.rewind()?;
        let mut buffer = vec![0; PIECE];
        loop {
            match self.read(&mut buffer)? {
                0 => return Ok(()),
                octets => take(&buffer[..octets])?,
            }
        }
    }

    /// Whether a server that cannot show NUL would show the message as `shown`.
    pub(super) fn is_shown_as(&mut self, shown: &mut Self) -> io::Result<bool> {
        if self.size != shown.size {
            return Ok(false);
        }
        shown.rewind()?;
        let mut buffer = vec![0; PIECE];
        let mut same = true;
        self.pieces(|piece| {
            let there = &mut buffer[..piece.len()];
            shown.content.read_exact(there)?;
            let mut both = piece.iter().zip(there.iter());
            same &= both.all(|(own, there)| own == there || (*own, *there) == (0, FOR_NUL));
            Ok(())
        })?;
        Ok(same)
    }

    pub(super) fn rewind(&mut self) -> io::Result<()> {
        self.content.seek(SeekFrom::Start(0)).map(drop)
    }

    /// Reads the next octets.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.content.read(buffer)
    }
}

/// Treatment of line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnds {
    /// Line ends remain unchanged.
    Kept,
    /// LF becomes CRLF, unless the first line ends with CRLF: then the message was stored in its wire format.
    Found,
}

/// Takes the octets of a message.
#[derive(Debug)]
pub(super) struct Writer {
    content: SpooledTempFile,
    hasher: blake3::Hasher,
    size: u64,
    nul: bool,
    stand_in: bool,
    plain_ends: bool,
    ends: LineEnds,
    first_line: bool,
    /// The last two octets.
    last: [u8; 2],
}

impl Writer {
    pub(super) fn new(ends: LineEnds) -> Self {
        Self {
            content: SpooledTempFile::new(IN_MEMORY_MAX),
            hasher: blake3::Hasher::new(),
            size: 0,
            nul: false,
            stand_in: false,
            plain_ends: true,
            ends,
            first_line: true,
            last: [0; 2],
        }
    }

    pub(super) fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        let mut rest = octets;
        while let Some(at) = memchr::memchr(b'\n', rest) {
            self.add(&rest[..at])?;
            self.end_line()?;
            rest = &rest[at + 1..];
        }
        self.add(rest)
    }

    fn end_line(&mut self) -> io::Result<()> {
        let crlf = self.last[1] == b'\r';
        if std::mem::take(&mut self.first_line) && crlf {
            self.ends = LineEnds::Kept;
        }
        if !crlf && self.ends == LineEnds::Found {
            self.add(b"\r")?;
        }
        // CR CR LF would lose a CR where lines end with LF.
        self.plain_ends &= self.last[1] == b'\r' && self.last[0] != b'\r';
        self.add(b"\n")
    }

    fn add(&mut self, octets: &[u8]) -> io::Result<()> {
        self.content.write_all(octets)?;
        self.hasher.update(octets);
        self.size += octets.len() as u64;
        self.nul |= memchr::memchr(0, octets).is_some();
        self.stand_in |= memchr::memchr(FOR_NUL, octets).is_some();
        self.last = match octets {
            [.., before, last] => [*before, *last],
            [last] => [self.last[1], *last],
            [] => self.last,
        };
        Ok(())
    }

    pub(super) fn finish(self) -> Message {
        Message {
            content: self.content,
            size: self.size,
            hash: self.hasher.finalize(),
            nul: self.nul,
            stand_in: self.stand_in,
            plain_ends: self.plain_ends,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(octets: &[u8], piece: usize, ends: LineEnds) -> Message {
        let mut writer = Writer::new(ends);
        for piece in octets.chunks(piece) {
            writer.write(piece).expect("memory");
        }
        writer.finish()
    }

    fn content(mut message: Message) -> Vec<u8> {
        let mut all = Vec::new();
        let size = message.size;
        message
            .pieces(|piece| {
                all.extend_from_slice(piece);
                Ok(())
            })
            .expect("memory");
        assert_eq!(all.len() as u64, size);
        all
    }

    #[test]
    fn line_ends_become_those_of_mail() {
        for (octets, wanted, plain) in [
            ("a\nb\n\nc", "a\r\nb\r\n\r\nc", true),
            ("a\nb\r\nc\rd\n", "a\r\nb\r\nc\rd\r\n", true),
            // Stored in its wire format: stray line ends remain.
            ("a\r\nb\nc\r\n", "a\r\nb\nc\r\n", false),
            ("a\nb\r\r\n", "a\r\nb\r\r\n", false),
            ("\n", "\r\n", true),
            ("\r\n\n", "\r\n\n", false),
            ("", "", true),
        ] {
            for piece in [1, 2, 3, 100] {
                let found = message(octets.as_bytes(), piece, LineEnds::Found);
                assert_eq!(found.plain_ends, plain, "{octets:?}");
                assert_eq!(content(found), wanted.as_bytes(), "{octets:?} by {piece}");
                let kept = message(octets.as_bytes(), piece, LineEnds::Kept);
                assert_eq!(content(kept), octets.as_bytes());
            }
        }
    }

    #[test]
    fn what_is_shown_for_nul_is_told_from_other_octets() {
        let of = |octets: &[u8]| message(octets, 100, LineEnds::Kept);
        for (exact, shown, same) in [
            (&b"a\0b\x80"[..], &b"a\x80b\x80"[..], true),
            (b"a\x80", b"a\x80", true),
            (b"a\x80", b"a\0", false),
            (b"a\0", b"a\x81", false),
            (b"a\0c", b"a\x80", false),
        ] {
            let (mut exact, mut shown) = (of(exact), of(shown));
            assert_eq!(exact.is_shown_as(&mut shown).expect("memory"), same);
            assert_eq!(exact.is_shown_as(&mut shown).expect("memory"), same);
        }
        assert!(of(b"\xe2\x80\x9c").stand_in && !of(b"\0").stand_in);
        // Contents that exceed one read and differ at the end only.
        let (mut long, mut other) = (vec![0; PIECE * 2 + 5], vec![FOR_NUL; PIECE * 2 + 5]);
        assert!(of(&long).is_shown_as(&mut of(&other)).expect("memory"));
        (long[PIECE * 2 + 4], other[PIECE * 2 + 4]) = (1, 2);
        assert!(!of(&long).is_shown_as(&mut of(&other)).expect("memory"));
    }

    #[test]
    fn large_messages_are_carried_alone() {
        let item = |size: u64| Item {
            key: String::new(),
            flags: Vec::new(),
            date: None,
            size,
            at: 0,
        };
        let sizes = |items: &[Item]| batches(items).map(<[Item]>::len).collect::<Vec<_>>();
        assert_eq!(sizes(&[]), [] as [usize; 0]);
        assert_eq!(sizes(&vec![item(1); 70]), [32, 32, 6]);
        let mixed = [BATCH_OCTETS * 9, 1, BATCH_OCTETS - 1, 1].map(item);
        assert_eq!(sizes(&mixed), [1, 2, 1]);
    }

    #[test]
    fn large_messages_do_not_stay_in_memory() {
        let octets: Vec<u8> = (0..3 << 20).map(|at: u32| at as u8).collect();
        let message = message(&octets, 9_999, LineEnds::Kept);
        assert!(message.content.is_rolled() && message.nul);
        assert_eq!(message.hash, blake3::hash(&octets));
        assert!(content(message) == octets);
    }
}
