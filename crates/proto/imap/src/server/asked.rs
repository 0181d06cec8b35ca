//! The octets of a message needed by the items of a FETCH, and the labels of the items.

use std::sync::Arc;

use crate::command::{FetchItem, Part, Section};
use crate::write;

use super::question::Need;

/// How much of a message an item needs.
pub(super) fn need(item: &FetchItem) -> Need {
    let of_header =
        |part: &Part| matches!(part, Part::Header | Part::Fields(_) | Part::FieldsNot(_));
    match item {
        FetchItem::Envelope | FetchItem::Body | FetchItem::BodyStructure => Need::Parsed,
        FetchItem::Section { section, .. }
            if section.path.is_empty() && of_header(&section.part) =>
        {
            Need::Header
        }
        FetchItem::Rfc822(part) if of_header(part) => Need::Header,
        FetchItem::Section { .. }
        | FetchItem::Rfc822(_)
        | FetchItem::Binary { .. }
        | FetchItem::BinarySize(_) => Need::Whole,
        FetchItem::Uid
        | FetchItem::Flags
        | FetchItem::InternalDate
        | FetchItem::Size
        | FetchItem::ModSeq => Need::Nothing,
    }
}

/// Whether an item is made of what the parser found in a message.
pub(super) fn needs_parsed(item: &FetchItem) -> bool {
    match item {
        FetchItem::Envelope
        | FetchItem::Body
        | FetchItem::BodyStructure
        | FetchItem::Binary { .. }
        | FetchItem::BinarySize(_) => true,
        FetchItem::Section { section, .. } => !section.path.is_empty(),
        FetchItem::Rfc822(_)
        | FetchItem::Uid
        | FetchItem::Flags
        | FetchItem::InternalDate
        | FetchItem::Size
        | FetchItem::ModSeq => false,
    }
}

/// Whether the item shows one range of the message's octets, or no octets.
pub(super) fn lies_in_message(item: &FetchItem) -> bool {
    let is_range = |part: &Part| !matches!(part, Part::Fields(_) | Part::FieldsNot(_));
    match item {
        FetchItem::Section { section, .. } => is_range(&section.part),
        FetchItem::Rfc822(part) => is_range(part),
        FetchItem::Binary { .. } | FetchItem::BinarySize(_) => false,
        FetchItem::Envelope
        | FetchItem::Body
        | FetchItem::BodyStructure
        | FetchItem::Uid
        | FetchItem::Flags
        | FetchItem::InternalDate
        | FetchItem::Size
        | FetchItem::ModSeq => true,
    }
}

/// The names of all requested fields, if the items need no other part of the message.
pub(super) fn fields_alone(items: &[FetchItem]) -> Option<Arc<[String]>> {
    let mut all = Vec::new();
    for item in items.iter().filter(|item| need(item) != Need::Nothing) {
        match item {
            FetchItem::Section { section, .. } if section.path.is_empty() => match &section.part {
                Part::Fields(names) => all.extend_from_slice(names),
                _ => return None,
            },
            _ => return None,
        }
    }
    (!all.is_empty()).then(|| all.into())
}

/// The label of an item in the response, where the label depends on the request.
pub(super) fn label(item: &FetchItem) -> String {
    match item {
        FetchItem::Section { section, .. } => format!("BODY[{}]", section_text(section)),
        FetchItem::Rfc822(Part::Header) => "RFC822.HEADER".to_owned(),
        FetchItem::Rfc822(Part::Text) => "RFC822.TEXT".to_owned(),
        FetchItem::Rfc822(_) => "RFC822".to_owned(),
        FetchItem::Binary { path, .. } => format!("BINARY[{}]", path_text(path)),
        FetchItem::BinarySize(path) => format!("BINARY.SIZE[{}]", path_text(path)),
        _ => String::new(),
    }
}

fn path_text(path: &[u32]) -> String {
    let numbers: Vec<String> = path.iter().map(ToString::to_string).collect();
    numbers.join(".")
}

fn section_text(section: &Section) -> String {
    let mut text = path_text(&section.path);
    let (name, fields) = match &section.part {
        Part::All => return text,
        Part::Header => ("HEADER", None),
        Part::Text => ("TEXT", None),
        Part::Mime => ("MIME", None),
        Part::Fields(fields) => ("HEADER.FIELDS", Some(fields)),
        Part::FieldsNot(fields) => ("HEADER.FIELDS.NOT", Some(fields)),
    };
    if !text.is_empty() {
        text.push('.');
    }
    text.push_str(name);
    if let Some(fields) = fields {
        let names: Vec<String> = fields.iter().map(|name| field_name(name)).collect();
        text.push_str(&format!(" ({})", names.join(" ")));
    }
    text
}

/// A field name as `astring`; octets that no field name can have are replaced.
fn field_name(name: &str) -> String {
    let is_atom = !name.is_empty()
        && name
            .bytes()
            .all(|octet| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet));
    if is_atom {
        return name.to_owned();
    }
    let mut quoted = Vec::new();
    let printable: String = name
        .chars()
        .map(|c| if matches!(c, ' '..='~') { c } else { '?' })
        .collect();
    write::quoted(&mut quoted, printable.as_bytes());
    String::from_utf8_lossy(&quoted).into_owned()
}
