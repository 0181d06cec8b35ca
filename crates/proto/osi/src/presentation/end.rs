//! CPR, ARU and ARP.

use bytes::Bytes;
use vere_ber::{Element, Fault, Pieces, Reader, Tag, write};

use super::connect::{read_selector, selector};
use super::contexts::{read_results, write_results};
use super::{ContextResult, UserData};
use crate::names;

/// Why the provider rejects a connection (X.226 clause 8.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectReason {
    /// No reason.
    NotSpecified,
    /// Temporary congestion.
    TemporaryCongestion,
    /// A local limit is exceeded.
    LocalLimitExceeded,
    /// The called presentation address is unknown.
    CalledAddressUnknown,
    /// The protocol version is not supported.
    VersionNotSupported,
    /// The default context is not supported.
    DefaultContextNotSupported,
    /// The user data are not readable.
    UserDataNotReadable,
    /// No PSAP is available.
    NoPsapAvailable,
}

impl RejectReason {
    const ALL: [Self; 8] = [
        Self::NotSpecified,
        Self::TemporaryCongestion,
        Self::LocalLimitExceeded,
        Self::CalledAddressUnknown,
        Self::VersionNotSupported,
        Self::DefaultContextNotSupported,
        Self::UserDataNotReadable,
        Self::NoPsapAvailable,
    ];

    const fn code(self) -> i64 {
        self as i64
    }

    fn from_code(code: i64) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|reason| reason.code() == code)
            .unwrap_or(Self::NotSpecified)
    }
}

/// CPR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reject {
    /// Normal mode.
    Normal(NormalReject),
    /// X.410-1984 mode: the components of RTORJ.
    X410(Bytes),
}

/// CPR in normal mode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NormalReject {
    /// The responding presentation selector.
    pub responding: Option<Bytes>,
    /// One result for each offered context.
    pub results: Vec<ContextResult>,
    /// The reason, of a rejection by the provider.
    pub reason: Option<RejectReason>,
    /// The user data, of a rejection by the user.
    pub user_data: Option<UserData>,
}

impl Reject {
    /// Reads CPR.
    ///
    /// # Errors
    ///
    /// [`Fault`] for octets that are no CPR.
    pub fn read(octets: &Bytes) -> Result<Self, Fault> {
        let element = Reader::new(octets).only()?;
        match element.tag {
            Tag::SET => Ok(Self::X410(element.contents_to_bytes())),
            Tag::SEQUENCE => read_reject(&element).map(Self::Normal),
            other => Err(Fault::Misplaced(other)),
        }
    }

    /// Writes CPR.
    #[must_use]
    pub fn write(&self) -> Pieces {
        match self {
            Self::X410(components) => write::constructed(Tag::SET, [write::encoded(components)]),
            Self::Normal(reject) => {
                let results = Some(&reject.results).filter(|results| !results.is_empty());
                let code = reject.reason.map(RejectReason::code);
                let fields = [
                    selector(3, reject.responding.as_ref()),
                    results.map(|results| write_results(Tag::context(5), results)),
                    code.map(|code| write::integer(Tag::context(10), code)),
                    reject.user_data.as_ref().map(UserData::write),
                ];
                write::constructed(Tag::SEQUENCE, fields.into_iter().flatten())
            }
        }
    }
}

fn read_reject(element: &Element<'_>) -> Result<NormalReject, Fault> {
    let mut reject = NormalReject::default();
    let mut fields = element.reader()?;
    while let Some(field) = fields.read()? {
        match field.tag {
            tag if tag == Tag::context(3) => reject.responding = Some(read_selector(&field)?),
            tag if tag == Tag::context(5) => reject.results = read_results(&field)?,
            tag if tag == Tag::context(10) => {
                reject.reason = Some(RejectReason::from_code(field.integer()?));
            }
            tag if UserData::is(tag) => reject.user_data = Some(UserData::from_element(&field)?),
            _ => {}
        }
    }
    Ok(reject)
}

/// ARU and ARP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Abort {
    /// ARU in normal mode: the contexts of the user data, each in the basic encoding, and the user data.
    User(Vec<i64>, Option<UserData>),
    /// ARU in X.410-1984 mode: the components of RTAB.
    UserX410(Bytes),
    /// ARP: the reason of the provider, if any.
    Provider(Option<i64>),
}

impl Abort {
    /// ARP reason: the PPDU is not recognized.
    pub const UNRECOGNIZED_PPDU: i64 = 1;
    /// ARP reason: the PPDU is not expected.
    pub const UNEXPECTED_PPDU: i64 = 2;
    /// ARP reason: a parameter has an invalid value.
    pub const INVALID_PARAMETER: i64 = 6;

    /// Reads ARU or ARP.
    ///
    /// # Errors
    ///
    /// [`Fault`] for octets that are neither.
    pub fn read(octets: &Bytes) -> Result<Self, Fault> {
        let element = Reader::new(octets).only()?;
        match element.tag {
            Tag::SET => Ok(Self::UserX410(element.contents_to_bytes())),
            Tag::SEQUENCE => {
                let reason = element.reader()?.optional(Tag::context(0))?;
                let reason = reason.map(|reason| reason.integer()).transpose()?;
                Ok(Self::Provider(reason))
            }
            tag if tag == Tag::context(0) => read_user_abort(&element),
            other => Err(Fault::Misplaced(other)),
        }
    }

    /// Writes ARU or ARP.
    #[must_use]
    pub fn write(&self) -> Pieces {
        match self {
            Self::UserX410(components) => {
                write::constructed(Tag::SET, [write::encoded(components)])
            }
            Self::Provider(reason) => {
                let reason = reason.map(|reason| write::integer(Tag::context(0), reason));
                write::constructed(Tag::SEQUENCE, reason)
            }
            Self::User(contexts, user_data) => {
                let basic = names::BASIC_ENCODING;
                let item = |context: &i64| {
                    let context = write::integer(Tag::INTEGER, *context);
                    let syntax = write::oid(Tag::OBJECT_IDENTIFIER, &basic);
                    write::constructed(Tag::SEQUENCE, [context, syntax])
                };
                let list = write::constructed(Tag::context(0), contexts.iter().map(item));
                let user_data = user_data.as_ref().map(UserData::write);
                let list = Some(list).filter(|_| !contexts.is_empty());
                write::constructed(Tag::context(0), [list, user_data].into_iter().flatten())
            }
        }
    }
}

fn read_user_abort(element: &Element<'_>) -> Result<Abort, Fault> {
    let (mut contexts, mut user_data) = (Vec::new(), None);
    let mut fields = element.reader()?;
    while let Some(field) = fields.read()? {
        match field.tag {
            tag if tag == Tag::context(0) => {
                let mut items = field.reader()?;
                while let Some(item) = items.read()? {
                    if contexts.len() >= super::CONTEXTS_MAX {
                        return Err(Fault::Invalid("a bounded list of contexts"));
                    }
                    contexts.push(item.reader()?.expect(Tag::INTEGER)?.integer()?);
                }
            }
            tag if UserData::is(tag) => user_data = Some(UserData::from_element(&field)?),
            _ => {}
        }
    }
    Ok(Abort::User(contexts, user_data))
}
