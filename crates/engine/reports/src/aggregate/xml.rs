//! Pulls elements and texts out of XML. The parser is quick-xml, which expands no entities and resolves nothing outside the text;
//! depth, texts and document types are bounded here.

use std::borrow::Cow;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesRef, Event};
use quick_xml::reader::Reader;
use vere_mime::text::in_charset;

use crate::bounds::{DEPTH_MAX, OCTETS_MAX, TEXT_OCTETS_MAX};
use crate::error::ReportError;
use crate::text::kept;

/// The octets of an XML declaration in which an encoding is looked for.
const DECLARATION_OCTETS: usize = 256;
/// The most octets that are kept of an element's name; a longer name is none of a report's.
const NAME_OCTETS_MAX: usize = 64;

/// The text of an XML file, by its encoding.
///
/// # Errors
/// [`ReportError::Many`] beyond [`OCTETS_MAX`].
pub(super) fn decoded(octets: &[u8]) -> Result<Cow<'_, str>, ReportError> {
    if octets.len() > OCTETS_MAX {
        return Err(ReportError::many("octets of XML", OCTETS_MAX));
    }
    let text = match std::str::from_utf8(octets) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(in_charset(octets, encoding(octets))),
    };
    Ok(text)
}

/// The encoding that octets show or declare.
fn encoding(octets: &[u8]) -> Option<&[u8]> {
    match octets {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Some(b"utf-16"),
        _ => {}
    }
    let head = octets.get(..octets.len().min(DECLARATION_OCTETS))?;
    let end = memchr::memmem::find(head, b"?>")?;
    let head = head.get(..end)?;
    let at = memchr::memmem::find(head, b"encoding")?;
    let mut parts = head.get(at..)?.split(|octet| matches!(octet, b'"' | b'\''));
    parts.next();
    parts.next()
}

/// A reader inside the elements of a document.
pub(super) struct Xml<'a> {
    reader: Reader<&'a [u8]>,
    depth: usize,
}

/// What comes next in an element.
enum Next {
    Open(String),
    Text(String),
    Close,
    /// The end of the document.
    End,
}

impl<'a> Xml<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        // `<a/>` is `<a></a>`; a bare `&` in the name of an organization is common.
        config.expand_empty_elements = true;
        config.allow_dangling_amp = true;
        Self { reader, depth: 0 }
    }

    /// The root element; nothing but comments may stand before.
    pub(super) fn root(&mut self) -> Result<String, ReportError> {
        loop {
            match self.next()? {
                Next::Open(name) => return Ok(name),
                Next::Text(text) if text.trim().is_empty() => {}
                Next::Text(_) | Next::Close | Next::End => return Err(self.wrong("no element")),
            }
        }
    }

    /// The next child of the open element; `None` at the end of the open element.
    pub(super) fn child(&mut self) -> Result<Option<String>, ReportError> {
        loop {
            match self.next()? {
                Next::Open(name) => return Ok(Some(name)),
                Next::Text(_) => {}
                Next::Close => return Ok(None),
                Next::End => return Err(self.cut()),
            }
        }
    }

    /// The text of the open element, up to its end. Elements within are left out.
    pub(super) fn text(&mut self) -> Result<String, ReportError> {
        let mut out = String::new();
        loop {
            match self.next()? {
                Next::Open(_) => self.skip()?,
                Next::Text(text) => {
                    if out.len().saturating_add(text.len()) > TEXT_OCTETS_MAX {
                        return Err(ReportError::many("octets of a text", TEXT_OCTETS_MAX));
                    }
                    out.push_str(&text);
                }
                Next::Close => return kept(&out),
                Next::End => return Err(self.cut()),
            }
        }
    }

    /// Passes over the open element.
    pub(super) fn skip(&mut self) -> Result<(), ReportError> {
        let outside = self.depth.saturating_sub(1);
        while self.depth > outside {
            if matches!(self.next()?, Next::End) {
                return Err(self.cut());
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Next, ReportError> {
        loop {
            let event = self.reader.read_event();
            let event = event.map_err(|error| self.wrong(&error.to_string()))?;
            match event {
                Event::Start(tag) => {
                    if self.depth >= DEPTH_MAX {
                        return Err(ReportError::many("levels of XML elements", DEPTH_MAX));
                    }
                    self.depth = self.depth.saturating_add(1);
                    let name = tag.local_name();
                    let name = name.as_ref();
                    let name = if name.len() > NAME_OCTETS_MAX {
                        ""
                    } else {
                        name
                    };
                    return Ok(Next::Open(name.to_owned()));
                }
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    return Ok(Next::Close);
                }
                Event::Text(text) => {
                    return Self::piece(&text.xml_content(XmlVersion::Implicit1_0));
                }
                Event::CData(text) => {
                    return Self::piece(&text.xml_content(XmlVersion::Implicit1_0));
                }
                Event::GeneralRef(entity) => return self.entity(&entity),
                Event::DocType(_) => {
                    let at = self.reader.buffer_position();
                    return Err(ReportError::DocumentType { at });
                }
                Event::Eof => return Ok(Next::End),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::Empty(_) => {}
            }
        }
    }

    /// A piece of text. Long blanks carry nothing, and may be of any length between elements.
    fn piece(text: &str) -> Result<Next, ReportError> {
        if text.len() <= TEXT_OCTETS_MAX {
            return Ok(Next::Text(text.to_owned()));
        }
        match text.trim() {
            "" => Ok(Next::Text(" ".to_owned())),
            text if text.len() <= TEXT_OCTETS_MAX => Ok(Next::Text(text.to_owned())),
            _ => Err(ReportError::many("octets of a text", TEXT_OCTETS_MAX)),
        }
    }

    /// One of the five entities of XML, or a character by number. Others need a document type, and are errors.
    fn entity(&self, entity: &BytesRef<'_>) -> Result<Next, ReportError> {
        let character = match entity.resolve_char_ref() {
            Ok(Some(character)) => Some(character),
            Ok(None) => match entity.xml_content(XmlVersion::Implicit1_0).as_ref() {
                "lt" => Some('<'),
                "gt" => Some('>'),
                "amp" => Some('&'),
                "apos" => Some('\''),
                "quot" => Some('"'),
                _ => None,
            },
            Err(_) => None,
        };
        let character = character.ok_or_else(|| self.wrong("an unknown entity"))?;
        Ok(Next::Text(character.to_string()))
    }

    fn cut(&self) -> ReportError {
        self.wrong("the end inside an element")
    }

    fn wrong(&self, found: &str) -> ReportError {
        ReportError::Xml {
            found: crate::error::excerpt(found),
            at: self.reader.buffer_position(),
        }
    }
}
