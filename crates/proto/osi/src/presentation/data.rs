//! P-DATA with one OCTET STRING: the transfers of RTSE, in pieces.

use bytes::{Bytes, BytesMut};
use vere_ber::{Fault, Header, Step, Tag, Walker, write};

/// The octets before the content of an OCTET STRING of a context, fully encoded as user data.
#[must_use]
pub fn data_header(context: i64, length: u64) -> Bytes {
    let identifier = write::integer(Tag::INTEGER, context).into_bytes();
    let with = |tag: Tag, inner: u64| {
        let header = u64::try_from(write::header_len(tag, inner)).unwrap_or(u64::MAX);
        inner.saturating_add(header)
    };
    let string = with(Tag::OCTET_STRING, length);
    let value = with(Tag::context(0), string);
    let list = value.saturating_add(u64::try_from(identifier.len()).unwrap_or(0));
    let lists = with(Tag::SEQUENCE, list);
    let mut octets = BytesMut::with_capacity(48);
    write::put_header(&mut octets, Tag::application(1), true, lists);
    write::put_header(&mut octets, Tag::SEQUENCE, true, list);
    octets.extend_from_slice(&identifier);
    write::put_header(&mut octets, Tag::context(0), true, string);
    write::put_header(&mut octets, Tag::OCTET_STRING, false, length);
    octets.freeze()
}

/// The place in the outer values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the user data, or behind the user data.
    Outside,
    /// In fully encoded user data, before a PDV-list.
    Lists,
    /// In a PDV-list, before its values.
    List,
    /// In the context identifier.
    Identifier,
    /// In a field that is not looked at.
    Skipped,
    /// In one encoded value.
    OneValue,
    /// In a string whose content is the encoding of the value.
    Octets,
}

/// Reads the content of the OCTET STRING in the pieces in which it comes, whatever the form of lengths and strings.
#[derive(Debug)]
pub struct DataReader {
    context: i64,
    single: bool,
    outer: Walker,
    place: Place,
    /// Octets of the context identifier.
    identifier: i64,
    /// Levels below which the encoded value is.
    base: usize,
    inner: Walker,
}

impl DataReader {
    /// A reader of P-DATA of this context. `single` says that simply encoded user data are of it.
    #[must_use]
    pub fn new(context: i64, single: bool) -> Self {
        Self {
            context,
            single,
            outer: Walker::new(),
            place: Place::Outside,
            identifier: 0,
            base: 0,
            inner: Walker::new(),
        }
    }

    /// Appends octets of the SSDU.
    pub fn push(&mut self, octets: Bytes) {
        self.outer.push(octets);
    }

    /// The next octets of the string; `None` when further octets of the SSDU are needed.
    ///
    /// # Errors
    ///
    /// [`Fault`] for octets that are no such user data, or of another context.
    pub fn read(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            while let Some(step) = self.inner.step()? {
                match step {
                    Step::Content(octets) => return Ok(Some(octets)),
                    Step::Begin(header, _) if header.tag != Tag::OCTET_STRING => {
                        return Err(Fault::Misplaced(header.tag));
                    }
                    Step::Begin(..) | Step::End(_) => {}
                }
            }
            match self.outer.step()? {
                None => return Ok(None),
                Some(step) => self.outer_step(step)?,
            }
        }
    }

    /// Checks that the SSDU ends where the user data end.
    ///
    /// # Errors
    ///
    /// [`Fault::Missing`] within the user data.
    pub fn end(&self) -> Result<(), Fault> {
        let whole = |walker: &Walker| walker.depth() == 0 && walker.waiting() == 0;
        match whole(&self.outer) && whole(&self.inner) {
            true => Ok(()),
            false => Err(Fault::Missing("the end of user data")),
        }
    }

    fn outer_step(&mut self, step: Step) -> Result<(), Fault> {
        match (self.place, step) {
            (Place::OneValue, Step::End(_)) if self.outer.depth() < self.base => {
                self.place = Place::List;
            }
            (Place::OneValue, Step::Begin(_, raw) | Step::Content(raw) | Step::End(raw)) => {
                self.inner.push(raw);
            }
            (Place::Octets, Step::Content(octets)) => self.inner.push(octets),
            (Place::Octets, Step::Begin(header, _)) if header.tag == Tag::OCTET_STRING => {}
            (Place::Octets | Place::Skipped | Place::Identifier, Step::End(_)) => self.leave()?,
            (Place::Identifier, Step::Content(octets)) => {
                for octet in octets {
                    self.identifier = (self.identifier << 8) | i64::from(octet);
                }
            }
            (Place::Skipped, Step::Content(_)) => {}
            (Place::List, Step::End(_)) => self.place = Place::Lists,
            (Place::Lists, Step::End(_)) => self.place = Place::Outside,
            (_, Step::Begin(header, _)) => self.begin(header)?,
            _ => return Err(Fault::Invalid("values of user data")),
        }
        Ok(())
    }

    fn begin(&mut self, header: Header) -> Result<(), Fault> {
        self.place = match (self.place, header.tag) {
            (Place::Outside, tag) if tag == Tag::application(0) && self.single => Place::Octets,
            (Place::Outside, tag) if tag == Tag::application(1) => Place::Lists,
            (Place::Lists, Tag::SEQUENCE) => Place::List,
            (Place::List, Tag::OBJECT_IDENTIFIER) => Place::Skipped,
            (Place::List, Tag::INTEGER) => Place::Identifier,
            (Place::List, tag) if tag == Tag::context(0) => Place::OneValue,
            (Place::List, tag) if tag == Tag::context(1) => Place::Octets,
            (_, other) => return Err(Fault::Misplaced(other)),
        };
        let constructed = matches!(self.place, Place::Lists | Place::List | Place::OneValue);
        if constructed != header.constructed && self.place != Place::Octets {
            return Err(Fault::Invalid("values of user data"));
        }
        let values = matches!(self.place, Place::OneValue | Place::Octets);
        if values && self.outer.depth() > 1 && self.identifier != self.context {
            return Err(Fault::Invalid("a value of the context of RTSE"));
        }
        self.base = self.outer.depth();
        if self.place == Place::Identifier {
            self.identifier = 0;
        }
        if self.place == Place::OneValue {
            self.outer.take_whole();
        }
        Ok(())
    }

    /// A field of a PDV-list has ended, or simply encoded user data, or a part of a string.
    fn leave(&mut self) -> Result<(), Fault> {
        if self.outer.depth() < self.base {
            self.place = match self.outer.depth() {
                0 => Place::Outside,
                2 => Place::List,
                _ => return Err(Fault::Invalid("values of user data")),
            };
        }
        Ok(())
    }
}
