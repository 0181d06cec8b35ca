//! Messages and notifications as contents.

use bytes::Bytes;
use vere_ber::{BerError, Element, Kept, Tag, Value, choice, decode, encode, normalise, record};

use super::body::{BodyPart, MESSAGE_TAG};
use super::heading::Heading;
use super::notification::{Ipn, IpnOutcome, NonReceiptFields};

/// The largest tag of a body part of 1984, mixed-mode.
const LAST_1984_TAG: u32 = 11;

record! {
    /// `IPM`: a message between people.
    pub struct Ipm [Tag::SEQUENCE] {
        /// `heading`
        heading: required Heading,
        /// `body`
        body: required Vec<BodyPart>,
    }
}

choice! {
    /// `InformationObject`: a content of type P2 or P22.
    pub enum InformationObject {
        /// `ipm`
        Ipm: @0 Ipm,
        /// `ipn`
        Ipn: @1 Ipn,
    }
}

impl InformationObject {
    /// Reads a content.
    ///
    /// # Errors
    /// [`BerError`] names the field that is wrong.
    pub fn decode(content: &Bytes) -> Result<Self, BerError> {
        decode(content)
    }

    /// Writes a content.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        encode(self)
    }

    /// Whether X.420 (1984) has every field of the content, so that the content can be of type P2.
    #[must_use]
    pub fn is_1984(&self) -> bool {
        match self {
            Self::Ipm(ipm) => {
                ipm.heading.extensions.is_empty()
                    && ipm
                        .heading
                        .recipients()
                        .all(|recipient| recipient.recipient_extensions.is_none())
                    && ipm.body.iter().all(BodyPart::is_1984)
            }
            Self::Ipn(ipn) => {
                ipn.notification_extensions.is_none()
                    && !matches!(ipn.outcome, IpnOutcome::Other(_))
            }
        }
    }
}

impl BodyPart {
    /// Whether X.420 (1984) has the type.
    fn is_1984(&self) -> bool {
        match self {
            Self::Ia5Text(_) => true,
            Self::Extended(_) => false,
            Self::Other(number, _) => *number <= LAST_1984_TAG,
        }
    }

    /// The forwarded message of a body part of type `message`.
    ///
    /// # Errors
    /// [`BerError`] if the body part is not a forwarded message.
    pub fn forwarded(&self) -> Result<Option<Ipm>, BerError> {
        let Self::Other(MESSAGE_TAG, octets) = self else {
            return Ok(None);
        };
        let octets = normalise(octets)?;
        let element = Element::only(&octets)?;
        for child in element.reader()? {
            let child = child?;
            if Ipm::accepts(child.tag) {
                return Ipm::read(&child).map(Some);
            }
        }
        Ok(None)
    }
}

impl NonReceiptFields {
    /// The returned message.
    ///
    /// # Errors
    /// [`BerError`] if it is not an interpersonal message.
    pub fn returned(&self) -> Result<Option<Ipm>, BerError> {
        let Some(Kept(octets)) = &self.returned_ipm else {
            return Ok(None);
        };
        let octets = normalise(octets)?;
        Ipm::read_tagged(&Element::only(&octets)?).map(Some)
    }
}
