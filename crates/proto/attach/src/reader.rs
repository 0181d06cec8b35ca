//! Frames out of octets.

use bytes::{Bytes, BytesMut};
use memchr::memchr;

use crate::LINE_OCTETS_MAX;
use crate::error::Fault;
use crate::frame::Frame;
use crate::head::Head;
use crate::text::{cut, reword};

/// Reads the frames of one direction.
#[derive(Debug)]
pub(crate) struct Reader<F> {
    input: BytesMut,
    /// Octets at the beginning of `input` without a newline.
    scanned: usize,
    /// A frame whose octets have not come yet.
    waiting: Option<(F, usize)>,
    /// Octets of a frame that was given up, which have not come yet.
    dropped: usize,
    octets_max: u64,
}

impl<F: Frame> Reader<F> {
    pub(crate) fn new(octets_max: u64) -> Self {
        Self {
            input: BytesMut::new(),
            scanned: 0,
            waiting: None,
            dropped: 0,
            octets_max,
        }
    }

    /// Takes octets. Memory grows with what came, never with what a frame announces.
    pub(crate) fn receive(&mut self, octets: &[u8]) {
        let dropped = self.dropped.min(octets.len());
        self.dropped = self.dropped.saturating_sub(dropped);
        self.input
            .extend_from_slice(octets.get(dropped..).unwrap_or_default());
    }

    /// How many octets have come of the frame whose octets are coming.
    pub(crate) fn coming(&self) -> Option<usize> {
        self.waiting.as_ref().map(|_| self.input.len())
    }

    /// Gives up the frame whose octets are coming: those that have come are freed, and the others are dropped as they come.
    pub(crate) fn give_up(&mut self) -> Option<F> {
        let (frame, octets) = self.waiting.take()?;
        self.dropped = octets.saturating_sub(self.input.len());
        self.input = BytesMut::new();
        Some(frame)
    }

    /// Whether the octets end between two frames.
    pub(crate) fn is_between_frames(&self) -> bool {
        self.input.is_empty() && self.waiting.is_none() && self.dropped == 0
    }

    /// The next whole frame and its octets; `None` while there is none.
    pub(crate) fn next(&mut self) -> Result<Option<(F, Bytes)>, Fault> {
        if self.waiting.is_none() {
            let Some(line) = self.line()? else {
                return Ok(None);
            };
            self.waiting = Some(self.read(&line)?);
        }
        match self.waiting.take() {
            Some((frame, octets)) if octets <= self.input.len() => {
                let octets = self.input.split_to(octets).freeze();
                Ok(Some((frame, octets)))
            }
            waiting => {
                self.waiting = waiting;
                Ok(None)
            }
        }
    }

    /// The next line without its newline.
    fn line(&mut self) -> Result<Option<BytesMut>, Fault> {
        let fresh = self.input.get(self.scanned..).unwrap_or_default();
        let Some(place) = memchr(b'\n', fresh) else {
            self.scanned = self.input.len();
            return if self.scanned > LINE_OCTETS_MAX {
                Err(Fault::LineTooLong)
            } else {
                Ok(None)
            };
        };
        let end = self.scanned.saturating_add(place);
        self.scanned = 0;
        if end > LINE_OCTETS_MAX {
            return Err(Fault::LineTooLong);
        }
        let mut line = self.input.split_to(end.saturating_add(1));
        line.truncate(end);
        Ok(Some(line))
    }

    fn read(&self, line: &[u8]) -> Result<(F, usize), Fault> {
        let head: Head =
            serde_json::from_slice(line).map_err(|error| Fault::Form(reword(&error)))?;
        let Some(kind) = F::KINDS.iter().find(|kind| **kind == head.kind) else {
            return Err(Fault::Kind {
                expected: listed(F::KINDS),
                found: cut(&head.kind, 64).to_owned(),
            });
        };
        let kind = || (*kind).to_owned();
        let too_many = || Fault::Octets {
            kind: kind(),
            most: self.octets_max,
            found: head.octets,
        };
        if head.octets > self.octets_max {
            return Err(too_many());
        }
        let octets = usize::try_from(head.octets).map_err(|_| too_many())?;
        let frame = serde_json::from_slice(line).map_err(|error| Fault::Value {
            kind: kind(),
            what: reword(&error),
        })?;
        Ok((frame, octets))
    }
}

/// `a, b or c`.
fn listed(kinds: &[&str]) -> String {
    match kinds {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
