//! The connection data of RTORQ and RTOAC.

use bytes::Bytes;
use vere_ber::{Element, Fault, Pieces, Reader, Tag, write};

use crate::session::ConnectionIdentifier;

/// The most octets of a reference.
const REFERENCE_MAX: usize = 62;

/// The name of a session connection, by which a broken transfer is found again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SessionConnectionIdentifier {
    /// The calling SS-user reference: the content of an OCTET STRING, or of a T61String in X.410 mode; up to 62 octets.
    pub calling: Bytes,
    /// The common reference: the content of a UTCTime.
    pub common: Bytes,
    /// Additional reference information: the content of a T61String, up to 2 octets.
    pub additional: Option<Bytes>,
}

impl SessionConnectionIdentifier {
    const fn reference_tag(x410: bool) -> Tag {
        if x410 {
            Tag::TELETEX_STRING
        } else {
            Tag::OCTET_STRING
        }
    }

    /// The identifier as parameters of a session connection: encoded values.
    #[must_use]
    pub fn to_session(&self, x410: bool) -> ConnectionIdentifier {
        let tag = Self::reference_tag(x410);
        let value = |tag, content: &Bytes| write::primitive(tag, content).into_bytes();
        ConnectionIdentifier {
            user: Some(value(tag, &self.calling)),
            common: Some(value(Tag::UTC_TIME, &self.common)),
            additional: self
                .additional
                .as_ref()
                .map(|more| value(Tag::TELETEX_STRING, more)),
        }
    }

    /// The identifier of a session connection. References that are no encoded values count as they are.
    #[must_use]
    pub fn from_session(identifier: &ConnectionIdentifier) -> Option<Self> {
        let content = |value: &Bytes| {
            let element = Reader::new(value).only();
            element
                .and_then(|element| element.bytes())
                .unwrap_or_else(|_| value.clone())
        };
        Some(Self {
            calling: identifier.user.as_ref().map(content)?,
            common: identifier.common.as_ref().map(content)?,
            additional: identifier.additional.as_ref().map(content),
        })
    }

    pub(super) fn write(&self, x410: bool) -> Pieces {
        let additional = self.additional.as_ref();
        let fields = [
            Some(write::primitive(Self::reference_tag(x410), &self.calling)),
            Some(write::primitive(Tag::UTC_TIME, &self.common)),
            additional.map(|more| write::primitive(Tag::context(0), more)),
        ];
        write::constructed(Tag::context(1), fields.into_iter().flatten())
    }

    pub(super) fn read(element: &Element<'_>) -> Result<Self, Fault> {
        let mut fields = element.reader()?;
        let calling = fields.read()?.ok_or(Fault::Absent(Tag::OCTET_STRING))?;
        if calling.tag != Tag::OCTET_STRING && calling.tag != Tag::TELETEX_STRING {
            return Err(Fault::Misplaced(calling.tag));
        }
        let common = fields.expect(Tag::UTC_TIME)?;
        let additional = fields.optional(Tag::context(0))?;
        let bounded = |element: Element<'_>| {
            let text = element.bytes()?;
            match text.len() <= REFERENCE_MAX {
                true => Ok(text),
                false => Err(Fault::Invalid("a reference of at most 62 octets")),
            }
        };
        Ok(Self {
            calling: bounded(calling)?,
            common: bounded(common)?,
            additional: additional.map(bounded).transpose()?,
        })
    }
}

/// The kind of an association, and its user data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionData {
    /// A new association: the user data, one BER value, such as the argument of MTABind.
    Open(Option<Bytes>),
    /// The association of this session connection, recovered.
    Recover(SessionConnectionIdentifier),
}

impl ConnectionData {
    pub(super) fn write(&self, place: u32, x410: bool) -> Pieces {
        let choice = match self {
            Self::Open(Some(value)) => write::constructed(Tag::context(0), [write::encoded(value)]),
            // The absence of user data is [0] IMPLICIT NULL.
            Self::Open(None) => write::primitive(Tag::context(0), &[]),
            Self::Recover(identifier) => identifier.write(x410),
        };
        write::constructed(Tag::context(place), [choice])
    }

    pub(super) fn read(element: &Element<'_>) -> Result<Self, Fault> {
        let choice = element.inner()?;
        match choice.tag {
            tag if tag == Tag::context(0) && !choice.constructed => Ok(Self::Open(None)),
            tag if tag == Tag::context(0) => Ok(Self::Open(Some(choice.inner()?.to_bytes()))),
            tag if tag == Tag::context(1) => {
                SessionConnectionIdentifier::read(&choice).map(Self::Recover)
            }
            other => Err(Fault::Misplaced(other)),
        }
    }
}
