//! The EXTERNAL around a transferred APDU in normal mode (X.228 clause 8.2).

use bytes::{Bytes, BytesMut};
use vere_ber::{Fault, Step, Tag, Walker, write};

/// The octets before an APDU of this length: EXTERNAL with the presentation context and one value.
#[must_use]
pub fn wrapper(context: i64, length: u64) -> Bytes {
    let identifier = write::integer(Tag::INTEGER, context).into_bytes();
    let header = u64::try_from(write::header_len(Tag::context(0), length)).unwrap_or(u64::MAX);
    let reference = u64::try_from(identifier.len()).unwrap_or(0);
    let fields = length.saturating_add(header).saturating_add(reference);
    let mut octets = BytesMut::with_capacity(32);
    write::put_header(&mut octets, Tag::EXTERNAL, true, fields);
    octets.extend_from_slice(&identifier);
    write::put_header(&mut octets, Tag::context(0), true, length);
    octets.freeze()
}

/// Takes the EXTERNAL off an APDU that comes in pieces, whatever the form of its lengths.
#[derive(Debug, Default)]
pub struct Unwrapper {
    walker: Walker,
    /// Whether the value has begun.
    within: bool,
    reference: Option<i64>,
    /// Whether the context identifier comes.
    identifier: bool,
    ended: bool,
}

impl Unwrapper {
    /// Before the first octet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The presentation context of the value, once it is known.
    #[must_use]
    pub const fn context(&self) -> Option<i64> {
        self.reference
    }

    /// Appends octets.
    pub fn push(&mut self, octets: Bytes) {
        self.walker.push(octets);
    }

    /// The next octets of the value within; `None` when further octets are needed.
    ///
    /// # Errors
    ///
    /// [`Fault`] for octets that are no EXTERNAL with one value or with octets.
    pub fn read(&mut self) -> Result<Option<Bytes>, Fault> {
        while let Some(step) = self.walker.step()? {
            if let Some(octets) = self.take(step)? {
                return Ok(Some(octets));
            }
        }
        Ok(None)
    }

    /// Checks that the octets end where the EXTERNAL ends.
    ///
    /// # Errors
    ///
    /// [`Fault::Missing`] within the EXTERNAL.
    pub const fn end(&self) -> Result<(), Fault> {
        match self.ended && self.walker.waiting() == 0 {
            true => Ok(()),
            false => Err(Fault::Missing("the end of EXTERNAL")),
        }
    }

    fn take(&mut self, step: Step) -> Result<Option<Bytes>, Fault> {
        let depth = self.walker.depth();
        match step {
            Step::End(_) if self.within && depth < 2 => self.within = false,
            Step::Begin(_, raw) | Step::Content(raw) | Step::End(raw) if self.within => {
                return Ok(Some(raw).filter(|raw| !raw.is_empty()));
            }
            Step::Begin(header, _) if depth == 1 && header.tag == Tag::EXTERNAL && !self.ended => {}
            Step::Begin(header, _) if depth == 2 => match header.tag {
                Tag::INTEGER => {
                    self.identifier = true;
                    self.reference = Some(0);
                }
                Tag::OBJECT_IDENTIFIER | Tag::OBJECT_DESCRIPTOR => {}
                tag if tag == Tag::context(0) && header.constructed => self.begin(),
                tag if tag == Tag::context(1) && !header.constructed => self.begin(),
                other => return Err(Fault::Misplaced(other)),
            },
            Step::Begin(header, _) => return Err(Fault::Misplaced(header.tag)),
            Step::Content(octets) if self.identifier => {
                let value = self.reference.unwrap_or(0);
                let add = |value: i64, octet: &u8| (value << 8) | i64::from(*octet);
                self.reference = Some(octets.iter().fold(value, add));
            }
            Step::Content(_) => {}
            Step::End(_) => {
                self.identifier = false;
                self.ended = depth == 0;
            }
        }
        Ok(None)
    }

    fn begin(&mut self) {
        self.within = true;
        self.walker.take_whole();
    }
}
