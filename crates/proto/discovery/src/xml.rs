//! XML written by the library, which escapes every text.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

pub(crate) type Xml = Writer<Vec<u8>>;

/// A document of an element with attributes.
pub(crate) fn document(
    root: &str,
    attributes: &[(&str, &str)],
    fill: impl FnOnce(&mut Xml) -> io::Result<()>,
) -> String {
    of_type(None, root, attributes, fill)
}

/// A document with a document type: an already escaped text.
pub(crate) fn of_type(
    kind: Option<&str>,
    root: &str,
    attributes: &[(&str, &str)],
    fill: impl FnOnce(&mut Xml) -> io::Result<()>,
) -> String {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    let declaration = Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None));
    // Writing to memory cannot fail.
    let _ = xml.write_event(declaration);
    if let Some(kind) = kind {
        let _ = xml.write_event(Event::DocType(BytesText::from_escaped(kind)));
    }
    let _ = within(&mut xml, root, attributes, fill);
    let mut text = String::from_utf8(xml.into_inner()).unwrap_or_default();
    text.push('\n');
    text
}

/// An element with attributes and elements in it.
pub(crate) fn within(
    xml: &mut Xml,
    name: &str,
    attributes: &[(&str, &str)],
    fill: impl FnOnce(&mut Xml) -> io::Result<()>,
) -> io::Result<()> {
    let element = xml.create_element(name);
    let element = element.with_attributes(attributes.iter().copied());
    element.write_inner_content(fill)?;
    Ok(())
}

/// An element without content.
pub(crate) fn empty(xml: &mut Xml, name: &str) -> io::Result<()> {
    xml.create_element(name).write_empty()?;
    Ok(())
}

/// An element with a text.
pub(crate) fn text(xml: &mut Xml, name: &str, text: &str) -> io::Result<()> {
    let element = xml.create_element(name);
    element.write_text_content(BytesText::new(text))?;
    Ok(())
}
