//! CP and CPA.

use bytes::Bytes;
use vere_ber::{Element, Fault, Pieces, Reader, Tag, write};

use super::contexts::{read_definitions, read_results, write_definitions, write_results};
use super::{ContextDefinition, ContextResult, UserData};

/// X.410-1984 mode.
const X410: i64 = 0;
/// Normal mode.
const NORMAL: i64 = 1;

/// The most octets of a presentation selector.
const SELECTOR_MAX: usize = 32;

/// CP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connect {
    /// Normal mode.
    Normal(NormalConnect),
    /// X.410-1984 mode: the components of RTORQ.
    X410(Bytes),
}

/// CP in normal mode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NormalConnect {
    /// The calling presentation selector.
    pub calling: Option<Bytes>,
    /// The called presentation selector.
    pub called: Option<Bytes>,
    /// The contexts offered.
    pub contexts: Vec<ContextDefinition>,
    /// The user data.
    pub user_data: Option<UserData>,
}

/// CPA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accept {
    /// Normal mode.
    Normal(NormalAccept),
    /// X.410-1984 mode: the components of RTOAC.
    X410(Bytes),
}

/// CPA in normal mode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NormalAccept {
    /// The responding presentation selector.
    pub responding: Option<Bytes>,
    /// One result for each offered context.
    pub results: Vec<ContextResult>,
    /// The user data.
    pub user_data: Option<UserData>,
}

impl Connect {
    /// Reads CP. Further encodings of the user data (CPC) may follow and are not looked at.
    ///
    /// # Errors
    ///
    /// [`Fault`] for octets that are no CP.
    pub fn read(octets: &Bytes) -> Result<Self, Fault> {
        let mut reader = Reader::new(octets);
        let (mode, parameters) = read_mode(&reader.expect(Tag::SET)?)?;
        match mode {
            X410 => Ok(Self::X410(parameters.contents_to_bytes())),
            _ => read_connect(&parameters).map(Self::Normal),
        }
    }

    /// Writes CP.
    #[must_use]
    pub fn write(&self) -> Pieces {
        match self {
            Self::X410(components) => write_mode(X410, [write::encoded(components)]),
            Self::Normal(connect) => {
                let fields = [
                    selector(1, connect.calling.as_ref()),
                    selector(2, connect.called.as_ref()),
                    Some(write_definitions(Tag::context(4), &connect.contexts)),
                    connect.user_data.as_ref().map(UserData::write),
                ];
                write_mode(NORMAL, fields.into_iter().flatten())
            }
        }
    }
}

impl Accept {
    /// Reads CPA.
    ///
    /// # Errors
    ///
    /// [`Fault`] for octets that are no CPA.
    pub fn read(octets: &Bytes) -> Result<Self, Fault> {
        let (mode, parameters) = read_mode(&Reader::new(octets).only()?)?;
        match mode {
            X410 => Ok(Self::X410(parameters.contents_to_bytes())),
            _ => read_accept(&parameters).map(Self::Normal),
        }
    }

    /// Writes CPA.
    #[must_use]
    pub fn write(&self) -> Pieces {
        match self {
            Self::X410(components) => write_mode(X410, [write::encoded(components)]),
            Self::Normal(accept) => {
                let fields = [
                    selector(3, accept.responding.as_ref()),
                    Some(write_results(Tag::context(5), &accept.results)),
                    accept.user_data.as_ref().map(UserData::write),
                ];
                write_mode(NORMAL, fields.into_iter().flatten())
            }
        }
    }
}

pub(super) fn selector(number: u32, selector: Option<&Bytes>) -> Option<Pieces> {
    selector.map(|selector| write::primitive(Tag::context(number), selector))
}

pub(super) fn read_selector(element: &Element<'_>) -> Result<Bytes, Fault> {
    let selector = element.bytes()?;
    match selector.len() <= SELECTOR_MAX {
        true => Ok(selector),
        false => Err(Fault::Invalid("a selector of at most 32 octets")),
    }
}

/// Writes the mode and the parameters of the mode.
fn write_mode(mode: i64, parameters: impl IntoIterator<Item = Pieces>) -> Pieces {
    let place = if mode == X410 { 1 } else { 2 };
    let value = write::integer(Tag::context(0), mode);
    write::constructed(
        Tag::SET,
        [
            write::constructed(Tag::context(0), [value]),
            write::constructed(Tag::context(place), parameters),
        ],
    )
}

/// Reads the mode and the parameters of the mode, in any order.
fn read_mode<'a>(set: &Element<'a>) -> Result<(i64, Element<'a>), Fault> {
    if set.tag != Tag::SET {
        return Err(Fault::Tag {
            expected: Tag::SET,
            found: set.tag,
        });
    }
    let (mut mode, mut x410, mut normal) = (None, None, None);
    let mut fields = set.reader()?;
    while let Some(field) = fields.read()? {
        match field.tag {
            tag if tag == Tag::context(0) => mode = Some(field.inner()?.integer()?),
            tag if tag == Tag::context(1) => x410 = Some(field),
            tag if tag == Tag::context(2) => normal = Some(field),
            _ => {}
        }
    }
    match (mode, x410, normal) {
        (Some(X410), Some(parameters), _) => Ok((X410, parameters)),
        (Some(NORMAL), _, Some(parameters)) => Ok((NORMAL, parameters)),
        _ => Err(Fault::Invalid("a mode and the parameters of it")),
    }
}

fn read_connect(parameters: &Element<'_>) -> Result<NormalConnect, Fault> {
    let mut connect = NormalConnect::default();
    let mut fields = parameters.reader()?;
    while let Some(field) = fields.read()? {
        match field.tag {
            tag if tag == Tag::context(1) => connect.calling = Some(read_selector(&field)?),
            tag if tag == Tag::context(2) => connect.called = Some(read_selector(&field)?),
            tag if tag == Tag::context(4) => connect.contexts = read_definitions(&field)?,
            tag if UserData::is(tag) => connect.user_data = Some(UserData::from_element(&field)?),
            _ => {}
        }
    }
    Ok(connect)
}

fn read_accept(parameters: &Element<'_>) -> Result<NormalAccept, Fault> {
    let mut accept = NormalAccept::default();
    let mut fields = parameters.reader()?;
    while let Some(field) = fields.read()? {
        match field.tag {
            tag if tag == Tag::context(3) => accept.responding = Some(read_selector(&field)?),
            tag if tag == Tag::context(5) => accept.results = read_results(&field)?,
            tag if UserData::is(tag) => accept.user_data = Some(UserData::from_element(&field)?),
            _ => {}
        }
    }
    Ok(accept)
}
