//! The APDUs of ACSE.

use bytes::Bytes;
use vere_ber::{Element, External, Fault, Pieces, Reader, Tag, write};

use super::information::{read_information, write_information};
use super::{Aare, Aarq};

/// The side of an abort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The ACSE service user.
    User,
    /// The ACSE service provider.
    Provider,
}

/// An APDU of ACSE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Apdu {
    /// AARQ.
    Aarq(Aarq),
    /// AARE.
    Aare(Aare),
    /// RLRQ: reason (0 normal, 1 urgent, 30 user defined) and user information.
    Rlrq(Option<i64>, Vec<External>),
    /// RLRE: reason (0 normal, 1 not finished, 30 user defined) and user information.
    Rlre(Option<i64>, Vec<External>),
    /// ABRT: source and user information.
    Abrt(Source, Vec<External>),
}

impl Apdu {
    /// Reads an APDU.
    ///
    /// # Errors
    ///
    /// [`Fault`] for octets that are no APDU of ACSE.
    pub fn read(octets: &Bytes) -> Result<Self, Fault> {
        let element = Reader::new(octets).only()?;
        match element.tag {
            tag if tag == Tag::application(0) => Aarq::read(&element).map(Self::Aarq),
            tag if tag == Tag::application(1) => Aare::read(&element).map(Self::Aare),
            tag if tag == Tag::application(2) => {
                read_release(&element).map(|(reason, information)| Self::Rlrq(reason, information))
            }
            tag if tag == Tag::application(3) => {
                read_release(&element).map(|(reason, information)| Self::Rlre(reason, information))
            }
            tag if tag == Tag::application(4) => {
                let (source, information) = read_release(&element)?;
                let source = match source {
                    Some(1) => Source::Provider,
                    _ => Source::User,
                };
                Ok(Self::Abrt(source, information))
            }
            other => Err(Fault::Misplaced(other)),
        }
    }

    /// Writes the APDU.
    #[must_use]
    pub fn write(&self) -> Pieces {
        match self {
            Self::Aarq(aarq) => aarq.write(),
            Self::Aare(aare) => aare.write(),
            Self::Rlrq(reason, information) => write_release(2, *reason, information),
            Self::Rlre(reason, information) => write_release(3, *reason, information),
            Self::Abrt(Source::User, information) => write_release(4, Some(0), information),
            Self::Abrt(Source::Provider, information) => write_release(4, Some(1), information),
        }
    }
}

fn write_release(tag: u32, code: Option<i64>, information: &[External]) -> Pieces {
    let code = code.map(|code| write::integer(Tag::context(0), code));
    let fields = [code, write_information(information)];
    write::constructed(Tag::application(tag), fields.into_iter().flatten())
}

fn read_release(element: &Element<'_>) -> Result<(Option<i64>, Vec<External>), Fault> {
    let (mut code, mut information) = (None, None);
    let mut fields = element.reader()?;
    while let Some(field) = fields.read()? {
        match field.tag {
            tag if tag == Tag::context(0) => code = Some(field.integer()?),
            tag if tag == Tag::context(30) => information = Some(field),
            _ => {}
        }
    }
    Ok((code, read_information(information.as_ref())?))
}
