//! From any form of BER to definite lengths, without recursion.
//!
//! Two walks over the octets: the first adds up the lengths, the second writes. Octets in which every length is
//! definite are returned as they are, without a copy.

use std::ops::Range;

use bytes::Bytes;

use super::bounds::{DEPTH_MAX, VALUES_MAX};
use super::error::{BerError, Fault};
use super::header::{END_OF_CONTENTS, Header, length, length_octets, put_length};

/// Returns the value `octets` with definite lengths throughout.
///
/// # Errors
/// [`Fault`] of the structure: truncated, too deep, too many values, octets after the value.
pub fn normalise(octets: &Bytes) -> Result<Bytes, BerError> {
    let mut lengths = Lengths::default();
    let mut definite = true;
    let mut walk = Walk::new(octets);
    while let Some(step) = walk.next_step()? {
        definite &= !matches!(
            step,
            Step::Open {
                definite: false,
                ..
            }
        );
        lengths.add(&step);
    }
    if definite {
        Ok(octets.clone())
    } else {
        rewrite(octets, &lengths.totals)
    }
}

/// The places of the segments of the string `octets`.
///
/// # Errors
/// [`Fault`] of the structure.
pub fn segments(octets: &[u8]) -> Result<Vec<Range<usize>>, Fault> {
    let mut segments = Vec::new();
    let mut walk = Walk::new(octets);
    while let Some(step) = walk.next_step()? {
        if let Step::Primitive { contents, .. } = step {
            segments.push(contents);
        }
    }
    Ok(segments)
}

fn rewrite(octets: &[u8], lengths: &[usize]) -> Result<Bytes, BerError> {
    let mut out = Vec::with_capacity(octets.len());
    let mut lengths = lengths.iter();
    let mut walk = Walk::new(octets);
    while let Some(step) = walk.next_step()? {
        match step {
            Step::Open { tag, .. } => {
                out.extend_from_slice(octets.get(tag).unwrap_or_default());
                put_length(
                    &mut out,
                    length(lengths.next().copied().unwrap_or_default()),
                );
            }
            Step::Primitive { tag, contents } => {
                out.extend_from_slice(octets.get(tag).unwrap_or_default());
                put_length(&mut out, length(contents.len()));
                out.extend_from_slice(octets.get(contents).unwrap_or_default());
            }
            Step::Close => {}
        }
    }
    Ok(out.into())
}

/// The lengths of constructed values, in the order of their beginnings.
#[derive(Default)]
struct Lengths {
    totals: Vec<usize>,
    /// The open values: index and octets of the tag.
    open: Vec<(usize, usize)>,
}

impl Lengths {
    fn add(&mut self, step: &Step) {
        match step {
            Step::Open { tag, .. } => {
                self.open.push((self.totals.len(), tag.len()));
                self.totals.push(0);
            }
            Step::Primitive { tag, contents } => self.grow(tag.len(), contents.len()),
            Step::Close => {
                if let Some((index, tag)) = self.open.pop() {
                    let contents = self.totals.get(index).copied().unwrap_or_default();
                    self.grow(tag, contents);
                }
            }
        }
    }

    /// Adds a value to the innermost open value.
    fn grow(&mut self, tag: usize, contents: usize) {
        let open = self.open.last().map(|(index, _)| *index);
        if let Some(total) = open.and_then(|index| self.totals.get_mut(index)) {
            *total = total
                .saturating_add(tag)
                .saturating_add(length_octets(length(contents)))
                .saturating_add(contents);
        }
    }
}

/// A step of a walk over all values.
enum Step {
    /// A constructed value begins.
    Open { tag: Range<usize>, definite: bool },
    /// A primitive value.
    Primitive {
        tag: Range<usize>,
        contents: Range<usize>,
    },
    /// The innermost open value ends.
    Close,
}

struct Walk<'a> {
    octets: &'a [u8],
    at: usize,
    values: usize,
    /// The open values: the end, for a definite length, and the limit for all values inside.
    open: Vec<(Option<usize>, usize)>,
}

impl<'a> Walk<'a> {
    const fn new(octets: &'a [u8]) -> Self {
        Self {
            octets,
            at: 0,
            values: 0,
            open: Vec::new(),
        }
    }

    /// The next step, until the end of the value.
    fn next_step(&mut self) -> Result<Option<Step>, Fault> {
        if let Some((end, limit)) = self.open.last() {
            if self.ends(*end, *limit) {
                self.open.pop();
                return Ok(Some(Step::Close));
            }
        } else if self.values > 0 {
            return match self.octets.len().saturating_sub(self.at) {
                0 => Ok(None),
                rest => Err(Fault::Trailing(rest)),
            };
        }
        self.value().map(Some)
    }

    /// Whether the innermost open value ends here; steps over end-of-contents octets.
    fn ends(&mut self, end: Option<usize>, limit: usize) -> bool {
        if let Some(end) = end {
            return self.at >= end;
        }
        let rest = self.octets.get(self.at..limit).unwrap_or_default();
        let ends = rest.starts_with(END_OF_CONTENTS);
        if ends {
            self.at = self.at.saturating_add(END_OF_CONTENTS.len());
        }
        ends
    }

    fn value(&mut self) -> Result<Step, Fault> {
        self.values = self.values.saturating_add(1);
        if self.values > VALUES_MAX {
            return Err(Fault::Values);
        }
        let limit = self
            .open
            .last()
            .map_or(self.octets.len(), |(_, limit)| *limit);
        let inside = self.octets.get(..limit).unwrap_or_default();
        let header = Header::read(inside, self.at)?;
        let start = self.at;
        let tag = start..start.saturating_add(header.tag_octets);
        self.at = start.saturating_add(header.octets);
        let finish = header.end(inside, start)?;
        if self.open.len() >= DEPTH_MAX {
            return Err(Fault::Depth);
        }
        if header.constructed {
            self.open.push((finish, finish.unwrap_or(limit)));
            return Ok(Step::Open {
                tag,
                definite: finish.is_some(),
            });
        }
        let contents = self.at..finish.unwrap_or(self.at);
        self.at = contents.end;
        Ok(Step::Primitive { tag, contents })
    }
}
