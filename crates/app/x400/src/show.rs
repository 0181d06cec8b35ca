//! `vere x400 show`

mod json;

use std::fmt::{self, Write as _};

use bytes::Bytes;
use vere_process::failure::Failure;
use vere_x400::ipm::InformationObject;
use vere_x400::{Apdu, ContentType};

use crate::args::ShowArgs;
use crate::send::read;

/// Octets of a file, at most.
const OCTETS_MAX: u64 = 1 << 30;

/// What a file has.
#[derive(Debug)]
enum Found {
    /// A protocol data unit of P1.
    Unit(Box<Apdu>),
    /// A content.
    Content(Box<InformationObject>),
}

/// Reads a file, and returns the text to print.
///
/// # Errors
/// When the file cannot be read, or is neither.
pub(crate) fn run(args: &ShowArgs) -> Result<String, Failure> {
    let octets = read(Some(&args.file), OCTETS_MAX)?;
    let found = Found::of(&octets)
        .map_err(|error| Failure::new(format!("{}: {error}", args.file.display())))?;
    if args.json {
        return Ok(format!("{:#}\n", json::found(&found)));
    }
    Ok(found.to_string())
}

impl Found {
    /// A message of P1 and an interpersonal message both begin with the tag [0]: the content is tried second.
    fn of(octets: &Bytes) -> Result<Self, String> {
        let unit = match Apdu::split(octets) {
            Ok(apdu) => return Ok(Self::Unit(Box::new(apdu))),
            Err(error) => error,
        };
        match InformationObject::decode(octets) {
            Ok(content) => Ok(Self::Content(Box::new(content))),
            Err(error) => Err(format!(
                "expected a protocol data unit of P1 or a content of type P22; found neither\n  as P1: {unit}\n  as P22: {error}"
            )),
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit(apdu) => {
                apdu.fmt(out)?;
                match interpersonal(apdu) {
                    Some(Ok(content)) => below(out, &content),
                    Some(Err(error)) => writeln!(out, "  not readable as P22: {error}"),
                    None => Ok(()),
                }
            }
            Self::Content(content) => content.fmt(out),
        }
    }
}

/// The content of a message or the returned content of a report, if the type is P2 or P22.
fn interpersonal(apdu: &Apdu) -> Option<Result<InformationObject, vere_ber::BerError>> {
    let (kind, octets) = match apdu {
        Apdu::Message(message) => (&message.envelope.content_type, message.content.to_bytes()),
        Apdu::Report(report) => {
            let content = &report.content;
            (
                content.content_type.as_ref()?,
                content.returned_content.clone()?,
            )
        }
        Apdu::Probe(_) => return None,
    };
    let is_text = [ContentType::P2, ContentType::P22].contains(kind);
    is_text.then(|| InformationObject::decode(&octets))
}

/// Writes lines with an indent.
fn below(out: &mut fmt::Formatter<'_>, text: &impl fmt::Display) -> fmt::Result {
    let mut lines = String::new();
    write!(lines, "{text}")?;
    lines
        .lines()
        .try_for_each(|line| writeln!(out, "    {line}"))
}

#[cfg(test)]
mod tests;
