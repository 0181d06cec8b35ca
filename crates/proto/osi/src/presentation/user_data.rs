//! User data (X.226 clause 8.4).

use bytes::Bytes;
use vere_ber::{Element, Encoding, Fault, ObjectIdentifier, Pieces, Reader, Tag, encode, write};

/// The most PDV-lists of user data.
const LISTS_MAX: usize = 16;

/// Values of one presentation context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdv {
    /// The transfer syntax: in CP only, where several are offered.
    pub transfer_syntax: Option<ObjectIdentifier>,
    /// The context.
    pub context: i64,
    /// The values.
    pub values: Encoding,
}

/// User data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserData {
    /// Simply encoded: values of the only context.
    Simple(Bytes),
    /// Fully encoded.
    Full(Vec<Pdv>),
}

impl UserData {
    /// One BER value of a context, fully encoded.
    #[must_use]
    pub fn one(context: i64, value: Bytes) -> Self {
        Self::Full(vec![Pdv {
            transfer_syntax: None,
            context,
            values: Encoding::of(value),
        }])
    }

    /// Reads user data that stand alone.
    ///
    /// # Errors
    ///
    /// [`Fault`] for octets that are no user data.
    pub fn read(octets: &Bytes) -> Result<Self, Fault> {
        Self::from_element(&Reader::new(octets).only()?)
    }

    /// Whether a value with this tag is user data.
    pub(super) fn is(tag: Tag) -> bool {
        tag == Tag::application(0) || tag == Tag::application(1)
    }

    pub(super) fn from_element(element: &Element<'_>) -> Result<Self, Fault> {
        match element.tag {
            tag if tag == Tag::application(0) => Ok(Self::Simple(element.bytes()?)),
            tag if tag == Tag::application(1) => read_lists(element).map(Self::Full),
            other => Err(Fault::Misplaced(other)),
        }
    }

    /// Writes the user data.
    #[must_use]
    pub fn write(&self) -> Pieces {
        match self {
            Self::Simple(octets) => {
                write::spliced(Tag::application(0), Pieces::from(octets.clone()))
            }
            Self::Full(lists) => {
                write::constructed(Tag::application(1), lists.iter().map(write_list))
            }
        }
    }

    /// The value of a context; `single` is the context of simply encoded user data.
    #[must_use]
    pub fn value(&self, context: i64, single: Option<i64>) -> Option<Bytes> {
        match self {
            Self::Simple(octets) => Some(octets.clone()).filter(|_| single == Some(context)),
            Self::Full(lists) => {
                let list = lists.iter().find(|list| list.context == context);
                list.and_then(|list| list.values.value()).cloned()
            }
        }
    }
}

fn write_list(list: &Pdv) -> Pieces {
    let syntax = list.transfer_syntax.as_ref();
    let syntax = syntax.map(|syntax| write::oid(Tag::OBJECT_IDENTIFIER, syntax));
    let context = write::integer(Tag::INTEGER, list.context);
    let fields = [
        syntax,
        Some(context),
        Some(Pieces::from(encode(&list.values))),
    ];
    write::constructed(Tag::SEQUENCE, fields.into_iter().flatten())
}

fn read_lists(element: &Element<'_>) -> Result<Vec<Pdv>, Fault> {
    let mut lists = Vec::new();
    let mut items = element.reader()?;
    while let Some(item) = items.read()? {
        if lists.len() >= LISTS_MAX {
            return Err(Fault::Invalid("a bounded number of value lists"));
        }
        let mut fields = item.reader()?;
        let syntax = fields.optional(Tag::OBJECT_IDENTIFIER)?;
        let context = fields.expect(Tag::INTEGER)?.integer()?;
        let values = fields.only()?.value()?;
        lists.push(Pdv {
            transfer_syntax: syntax.map(|syntax| syntax.oid()).transpose()?,
            context,
            values,
        });
    }
    Ok(lists)
}
