//! Assembles command lines from octets in pieces of any size.

use std::borrow::Cow;

use crate::limits::Limits;

/// The fault of a line; always the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineError {
    TooLong,
    /// Ended by LF alone.
    BareLf,
    /// A CR without LF.
    BareCr,
    Nul,
}

/// A line, or the fault of the line with its first octets.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) content: Result<Cow<'a, [u8]>, LineError>,
    verb: [u8; 4],
}

impl Line<'_> {
    /// Whether octets follow that must not be taken for commands, were the line understood.
    pub(super) fn announces_chunk(&self) -> bool {
        self.verb.eq_ignore_ascii_case(b"BDAT")
    }
}

/// Collects a line; holds at most the octets of a single unfinished line, and no octets between
/// lines.
#[derive(Debug, Default)]
pub(super) struct LineReader {
    partial: Vec<u8>,
    /// The line is already too long, and the rest is thrown away.
    overlong: bool,
}

/// The limit that applies to a line.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expect {
    Command,
    AuthResponse,
}

impl LineReader {
    /// Takes octets up to the end of a line: how many, and the line when it is whole.
    pub(super) fn take<'a>(
        &mut self,
        bytes: &'a [u8],
        expect: Expect,
        limits: &Limits,
    ) -> (usize, Option<Line<'a>>) {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.keep(bytes, expect, limits);
            return (bytes.len(), None);
        };
        let taken = end.saturating_add(1);
        let piece = bytes.get(..taken).unwrap_or(bytes);
        let whole = if self.partial.is_empty() {
            self.overlong |= piece.len() > bound(piece, expect, limits);
            Cow::Borrowed(piece)
        } else {
            self.keep(piece, expect, limits);
            Cow::Owned(std::mem::take(&mut self.partial))
        };
        let verb = whole.first_chunk().copied().unwrap_or_default();
        let content = if std::mem::take(&mut self.overlong) {
            Err(LineError::TooLong)
        } else {
            strip(whole)
        };
        (taken, Some(Line { content, verb }))
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether no line has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.partial.is_empty() && !self.overlong
    }

    pub(super) fn memory(&self) -> usize {
        self.partial.capacity()
    }

    /// Adds a piece; of a line that is too long only the beginning is kept.
    fn keep(&mut self, piece: &[u8], expect: Expect, limits: &Limits) {
        if self.overlong {
            return;
        }
        let len = self.partial.len().saturating_add(piece.len());
        let max = if self.partial.len() < 4 {
            let mut beginning = [0; 4];
            for (place, octet) in beginning.iter_mut().zip(self.partial.iter().chain(piece)) {
                *place = *octet;
            }
            bound(&beginning, expect, limits)
        } else {
            bound(&self.partial, expect, limits)
        };
        let room = max.saturating_sub(self.partial.len());
        self.partial
            .extend_from_slice(piece.get(..room).unwrap_or(piece));
        self.overlong = len > max;
    }
}

fn bound(beginning: &[u8], expect: Expect, limits: &Limits) -> usize {
    match expect {
        Expect::Command => limits.line_octets_max(beginning),
        Expect::AuthResponse => limits.auth_octets_max,
    }
}

/// Takes off the line end, which must be CRLF, and refuses octets forbidden in a line.
fn strip(line: Cow<'_, [u8]>) -> Result<Cow<'_, [u8]>, LineError> {
    let Some(content) = line.strip_suffix(b"\r\n") else {
        return Err(LineError::BareLf);
    };
    match memchr::memchr2(b'\r', 0, content) {
        Some(index) if content.get(index) == Some(&0) => Err(LineError::Nul),
        Some(_) => Err(LineError::BareCr),
        None => {
            let len = content.len();
            Ok(match line {
                Cow::Borrowed(line) => Cow::Borrowed(line.get(..len).unwrap_or(line)),
                Cow::Owned(mut line) => {
                    line.truncate(len);
                    Cow::Owned(line)
                }
            })
        }
    }
}
