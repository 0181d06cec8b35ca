//! What a file has.

use bytes::Bytes;
use vere_x400::ipm::InformationObject;
use vere_x400::{Apdu, ContentType};

/// What a file has.
#[derive(Debug)]
pub(super) enum Found {
    /// A protocol data unit of P1.
    Unit(Box<Apdu>),
    /// A content.
    Content(Box<InformationObject>),
}

impl Found {
    /// A message of P1 and an interpersonal message both begin with the tag [0]: the content is tried second.
    pub(super) fn of(octets: &Bytes) -> Result<Self, String> {
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

/// The content of a message or the returned content of a report, if the type is P2 or P22.
pub(super) fn interpersonal(apdu: &Apdu) -> Option<Result<InformationObject, vere_ber::BerError>> {
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
