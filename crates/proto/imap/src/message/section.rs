//! The octets of a section (RFC 9051 section 6.4.5.1).

use std::ops::Range;

use crate::command::{Part as Wanted, Section};

use super::header::fields;
use super::structure::{Kind, Part, Structure};
use super::transfer::Encoding;

/// Where the octets of a section are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extract {
    /// In the message.
    Range(Range<usize>),
    /// Made of it.
    Made(Vec<u8>),
}

/// Finds a section; `None` when there is no such part, or it has no such thing.
#[must_use]
pub fn extract(message: &[u8], structure: &Structure, section: &Section) -> Option<Extract> {
    let part = structure.find(&section.path)?;
    if section.path.is_empty() {
        return Some(of_message(message, part, &section.part, 0..message.len()));
    }
    match (&section.part, &part.kind) {
        (Wanted::All, _) => Some(Extract::Range(part.body.clone())),
        (Wanted::Mime, _) => Some(Extract::Range(part.header.clone())),
        // Only a message within the message has a header and a text.
        (wanted, Kind::Message(child)) => {
            let child = structure.part(*child)?;
            Some(of_message(message, child, wanted, part.body.clone()))
        }
        _ => None,
    }
}

fn of_message(message: &[u8], part: &Part, wanted: &Wanted, whole: Range<usize>) -> Extract {
    let header = || message.get(part.header.clone()).unwrap_or_default();
    match wanted {
        Wanted::All => Extract::Range(whole),
        Wanted::Header | Wanted::Mime => Extract::Range(part.header.clone()),
        Wanted::Text => Extract::Range(part.body.clone()),
        Wanted::Fields(names) => Extract::Made(header_fields(header(), names, true)),
        Wanted::FieldsNot(names) => Extract::Made(header_fields(header(), names, false)),
    }
}

/// The fields of a header that have one of these names, or none of them, and an empty line.
#[must_use]
pub fn header_fields(header: &[u8], names: &[String], wanted: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields(header) {
        let named = names
            .iter()
            .any(|name| name.as_bytes().eq_ignore_ascii_case(field.name));
        if named == wanted {
            out.extend_from_slice(field.raw);
            if !field.raw.ends_with(b"\n") {
                out.extend_from_slice(b"\r\n");
            }
        }
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// The decoded content of a part (RFC 3516); `Ok(None)` when there is no such part.
///
/// # Errors
///
/// When it is encoded in a way that is not known here.
pub fn binary(
    message: &[u8],
    structure: &Structure,
    path: &[u32],
) -> Result<Option<Vec<u8>>, UnknownEncoding> {
    let Some(part) = structure.find(path) else {
        return Ok(None);
    };
    if path.is_empty() {
        return Ok(Some(message.to_vec()));
    }
    let header = message.get(part.header.clone()).unwrap_or_default();
    let body = message.get(part.body.clone()).unwrap_or_default();
    // Of what holds parts, only the parts are encoded.
    let encoding = match part.kind {
        Kind::Leaf => Encoding::of(header),
        Kind::Multipart(_) | Kind::Message(_) => Encoding::Identity,
    };
    encoding.decode(body).map(Some).ok_or(UnknownEncoding)
}

/// The content transfer encoding of a part is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownEncoding;
