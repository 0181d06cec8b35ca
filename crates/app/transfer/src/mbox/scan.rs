//! Where messages begin and end in a file.

use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};

use vere_imap::date::Moment;

use super::header::Fields;
use super::{Variant, from_line};

/// Octets of a line that are read at once.
const PART_MAX: u64 = 64 * 1024;

/// A message in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Offset of the first octet, behind the `From ` line.
    pub(super) begin: u64,
    /// Offset behind the last octet.
    pub(super) end: u64,
    pub(super) date: Option<Moment>,
    /// Whether `Content-Length` gave the end.
    pub(super) by_length: bool,
}

/// Reads lines, or parts of very long lines.
pub(super) struct Lines<R> {
    reader: R,
    pub(super) part: Vec<u8>,
    /// Whether the part begins a line.
    pub(super) begins: bool,
    ended: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self {
            reader,
            part: Vec::new(),
            begins: false,
            ended: true,
        }
    }

    /// Reads the next part; `false` at the end.
    pub(super) fn next(&mut self) -> io::Result<bool> {
        self.part.clear();
        self.begins = self.ended;
        let octets = (&mut self.reader)
            .take(PART_MAX)
            .read_until(b'\n', &mut self.part)?;
        self.ended = self.part.last() == Some(&b'\n');
        Ok(octets > 0)
    }

    /// Whether the part is an empty line.
    pub(super) fn is_empty_line(&self) -> bool {
        self.begins && matches!(self.part.as_slice(), b"\n" | b"\r\n")
    }
}

/// Finds all messages.
///
/// # Errors
/// When the file cannot be read, or is no mbox: [`io::ErrorKind::InvalidData`].
pub(super) fn scan(file: &std::fs::File, variant: Variant) -> io::Result<Vec<Place>> {
    let mut scan = Scan {
        lines: Lines::new(BufReader::with_capacity(1 << 20, file)),
        at: 0,
        variant,
        places: Vec::new(),
    };
    scan.run()?;
    Ok(scan.places)
}

struct Scan<'a> {
    lines: Lines<BufReader<&'a std::fs::File>>,
    /// The offset behind the last read.
    at: u64,
    variant: Variant,
    places: Vec<Place>,
}

impl Scan<'_> {
    fn next(&mut self) -> io::Result<bool> {
        let more = self.lines.next()?;
        self.at += self.lines.part.len() as u64;
        Ok(more)
    }

    fn run(&mut self) -> io::Result<()> {
        // Some files begin with empty lines.
        loop {
            if !self.next()? {
                return Ok(());
            }
            if !self.lines.is_empty_line() {
                break;
            }
        }
        if !self.begins_message() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "no mbox: it does not begin with a line `From sender date`",
            ));
        }
        while self.message()? {}
        Ok(())
    }

    fn begins_message(&self) -> bool {
        let line = &self.lines.part[..self.lines.part.len().min(from_line::LINE_MAX)];
        self.lines.begins && from_line::is_one(line)
    }

    /// Reads a message behind its `From ` line; returns whether another message begins behind the end.
    fn message(&mut self) -> io::Result<bool> {
        let mut place = Place {
            begin: self.at,
            end: self.at,
            date: from_line::date(&self.lines.part),
            by_length: false,
        };
        let mut fields = Some(Fields::default());
        // The length of the last line, if the line was empty: the line may be no part of the message.
        let mut empty = 0;
        loop {
            if !self.next()? {
                place.end = self.at - empty;
                self.places.push(place);
                return Ok(false);
            }
            if empty > 0 && self.begins_message() {
                place.end = self.at - self.lines.part.len() as u64 - empty;
                self.places.push(place);
                return Ok(true);
            }
            let is_empty = self.lines.is_empty_line();
            empty = if is_empty {
                self.lines.part.len() as u64
            } else {
                0
            };
            let Some(header) = &mut fields else {
                continue;
            };
            if !is_empty {
                header.take(self.lines.part.trim_ascii_end());
                continue;
            }
            let length = header.length.filter(|_| self.variant.uses_length());
            fields = None;
            if let Some(end) = length.and_then(|length| self.at.checked_add(length))
                && let Some(more) = self.ends_at(end)?
            {
                place.end = end;
                place.by_length = true;
                self.places.push(place);
                return Ok(more);
            }
        }
    }

    /// Whether a message can end at `end`, and if so, whether another message begins behind: then the `From ` line of
    /// the next message was read.
    fn ends_at(&mut self, end: u64) -> io::Result<Option<bool>> {
        let back = self.at;
        let reader = &mut self.lines.reader;
        if end > reader.get_ref().metadata()?.len() {
            return Ok(None);
        }
        reader.seek(SeekFrom::Start(end))?;
        self.at = end;
        self.lines.ended = true;
        // Empty lines may stand between.
        let more = loop {
            if !self.next()? {
                break Some(false);
            }
            if self.begins_message() {
                break Some(true);
            }
            if !self.lines.is_empty_line() {
                break None;
            }
        };
        if more.is_none() {
            self.lines.reader.seek(SeekFrom::Start(back))?;
            self.at = back;
            self.lines.ended = true;
        }
        Ok(more)
    }
}
