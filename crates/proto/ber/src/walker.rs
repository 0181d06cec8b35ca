//! Reads a value that arrives in pieces: header by header, the contents as they come.

use bytes::Bytes;

use super::bounds::DEPTH_MAX;
use super::error::Fault;
use super::header::{END_OF_CONTENTS, HEADER_OCTETS_MAX, Header, Length, length};
use super::pieces::Pieces;

/// The next part of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A value begins. The octets are those of the header.
    Begin(Header, Bytes),
    /// Octets of the content of a primitive value, or of a value that is taken as it is.
    Content(Bytes),
    /// The innermost value ends. The octets are the end-of-contents octets, or none.
    End(Bytes),
}

#[derive(Debug, Clone, Copy)]
enum Level {
    /// Values until this position.
    Values(u64),
    /// Values until the end-of-contents octets.
    Open,
    /// Octets until this position.
    Octets(u64),
}

/// Walks through values in pieces. Memory: the pieces that wait, and a few octets a level.
#[derive(Debug, Default)]
pub struct Walker {
    input: Pieces,
    position: u64,
    levels: Vec<Level>,
}

impl Walker {
    /// A walker before the first value.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends octets.
    pub fn push(&mut self, octets: Bytes) {
        self.input.push(octets);
    }

    /// Levels of values that have begun and not ended.
    #[must_use]
    pub const fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Octets that wait.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.input.len()
    }

    /// Takes the content of the value that has just begun as it is, if its length is known: it comes as
    /// [`Step::Content`] although it consists of values. False for an indefinite length.
    pub fn take_whole(&mut self) -> bool {
        match self.levels.last_mut() {
            Some(level @ (Level::Values(_) | Level::Octets(_))) => {
                if let Level::Values(end) = *level {
                    *level = Level::Octets(end);
                }
                true
            }
            _ => false,
        }
    }

    /// The next step; `None` when it needs further octets.
    ///
    /// # Errors
    ///
    /// [`Fault`] for octets that are no value. The walker is of no use afterwards.
    pub fn step(&mut self) -> Result<Option<Step>, Fault> {
        match self.levels.last() {
            Some(Level::Octets(end) | Level::Values(end)) if *end == self.position => {
                self.levels.pop();
                Ok(Some(Step::End(Bytes::new())))
            }
            Some(Level::Octets(end)) => Ok(self.content(*end)),
            Some(Level::Open) => self.value_or_end(),
            Some(Level::Values(_)) | None => self.value(),
        }
    }

    fn content(&mut self, end: u64) -> Option<Step> {
        let left = usize::try_from(end.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let piece = self.input.pop_at_most(left)?;
        self.advance(piece.len());
        Some(Step::Content(piece))
    }

    fn value_or_end(&mut self) -> Result<Option<Step>, Fault> {
        let mut two = [0xff; 2];
        if self.input.peek(&mut two) < 2 {
            return Ok(None);
        }
        if two != END_OF_CONTENTS {
            return self.value();
        }
        self.check(self.position.saturating_add(2))?;
        self.levels.pop();
        Ok(Some(Step::End(self.octets(2))))
    }

    fn value(&mut self) -> Result<Option<Step>, Fault> {
        let mut octets = [0; HEADER_OCTETS_MAX];
        let found = self.input.peek(&mut octets);
        let header = match Header::read(octets.get(..found).unwrap_or(&octets), 0) {
            Ok(header) => header,
            // The rest of the header is yet to come.
            Err(Fault::Truncated(_)) => return Ok(None),
            Err(Fault::Oversized(_)) => return Err(Fault::Oversized(self.offset())),
            Err(Fault::Indefinite(_)) => return Err(Fault::Indefinite(self.offset())),
            Err(fault) => return Err(fault),
        };
        let begin = self.position.saturating_add(length(header.octets));
        let level = match header.length {
            Length::Indefinite => Level::Open,
            Length::Definite(contents) if header.constructed => {
                Level::Values(begin.saturating_add(contents))
            }
            Length::Definite(contents) => Level::Octets(begin.saturating_add(contents)),
        };
        self.check(match level {
            Level::Open => begin,
            Level::Values(end) | Level::Octets(end) => end,
        })?;
        if self.levels.len() >= DEPTH_MAX {
            return Err(Fault::Depth);
        }
        let raw = self.octets(header.octets);
        self.levels.push(level);
        Ok(Some(Step::Begin(header, raw)))
    }

    /// Whether a value that ends there ends within the values around it.
    fn check(&self, end: u64) -> Result<(), Fault> {
        let around = self.levels.iter().rev().find_map(|level| match level {
            Level::Values(end) | Level::Octets(end) => Some(*end),
            Level::Open => None,
        });
        match around {
            Some(around) if end > around => Err(Fault::Truncated(self.offset())),
            _ => Ok(()),
        }
    }

    fn octets(&mut self, count: usize) -> Bytes {
        self.advance(count);
        self.input.take(count).into_bytes()
    }

    fn advance(&mut self, count: usize) {
        self.position = self.position.saturating_add(length(count));
    }

    /// The position, for errors.
    fn offset(&self) -> usize {
        usize::try_from(self.position).unwrap_or(usize::MAX)
    }
}
