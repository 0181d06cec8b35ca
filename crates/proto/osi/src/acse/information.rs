//! User information: values of other abstract syntaxes.

use vere_ber::{Element, External, Fault, Pieces, Tag, encode, write};

/// The most values of user information.
const INFORMATION_MAX: usize = 16;

pub(super) fn write_information(information: &[External]) -> Option<Pieces> {
    match information {
        [] => None,
        values => Some(write::constructed(
            Tag::context(30),
            values.iter().map(|value| Pieces::from(encode(value))),
        )),
    }
}

pub(super) fn read_information(field: Option<&Element<'_>>) -> Result<Vec<External>, Fault> {
    let mut values = Vec::new();
    let Some(field) = field else {
        return Ok(values);
    };
    let mut items = field.reader()?;
    while let Some(item) = items.read()? {
        if values.len() >= INFORMATION_MAX {
            return Err(Fault::Invalid("bounded user information"));
        }
        values.push(item.value()?);
    }
    Ok(values)
}
