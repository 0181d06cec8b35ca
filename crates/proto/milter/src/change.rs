//! Changes of messages and envelopes.

/// The longest name of a field.
const NAME_OCTETS_MAX: usize = 256;
/// The longest address: RFC 5321 section 4.5.3.1 has 64 octets of local part and 255 of domain.
const ADDRESS_OCTETS_MAX: usize = 320;
/// The longest parameters of an address.
const PARAMETERS_OCTETS_MAX: usize = 512;

/// A change that a filter asks for. A `value` is all that stands behind the colon, the first blank included; lines end with
/// LF, and each but the first begins with a blank. No name is empty, or has a colon or a blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Adds a field at the end of the header.
    AddHeader {
        /// The name.
        name: String,
        /// The value.
        value: Vec<u8>,
    },
    /// Adds a field at a place.
    InsertHeader {
        /// The number of fields before the place; 0 is the first place, a number beyond the last field the end.
        index: u32,
        /// The name.
        name: String,
        /// The value.
        value: Vec<u8>,
    },
    /// Changes or deletes a field.
    ChangeHeader {
        /// The number among the fields of the name, from 1. Beyond the last field a field is added.
        index: u32,
        /// The name, in any case.
        name: String,
        /// The value; `None` deletes the field.
        value: Option<Vec<u8>>,
    },
    /// Adds a recipient.
    AddRecipient {
        /// The address without angle brackets.
        address: String,
        /// Parameters of RCPT; usually empty.
        parameters: String,
    },
    /// Deletes a recipient.
    DeleteRecipient(
        /// The address without angle brackets.
        String,
    ),
    /// Changes the reverse-path.
    ChangeFrom {
        /// The address without angle brackets; empty for `<>`.
        address: String,
        /// Parameters of MAIL; usually empty.
        parameters: String,
    },
    /// Replaces the body.
    ReplaceBody(Vec<u8>),
}

impl Change {
    /// The octets that the change holds.
    #[must_use]
    pub fn octets(&self) -> usize {
        match self {
            Self::AddHeader { name, value } | Self::InsertHeader { name, value, .. } => {
                name.len().saturating_add(value.len())
            }
            Self::ChangeHeader { name, value, .. } => name
                .len()
                .saturating_add(value.as_ref().map_or(0, Vec::len)),
            Self::AddRecipient {
                address,
                parameters,
            }
            | Self::ChangeFrom {
                address,
                parameters,
            } => address.len().saturating_add(parameters.len()),
            Self::DeleteRecipient(address) => address.len(),
            Self::ReplaceBody(body) => body.len(),
        }
    }
}

/// A header field that cannot stand in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// A name must be printable ASCII without colon (RFC 5322 section 2.2).
    #[error("expected a name of 1 to 256 printable octets without colon; found another text")]
    Name,
    /// A line that begins without a blank would be another field, or the body.
    #[error("expected a blank behind each line end of a value; found none")]
    Line,
    /// CR without LF, or NUL.
    #[error("expected a value without CR and NUL; found one")]
    Control,
}

/// Checks the name of a field.
///
/// # Errors
/// [`FieldError::Name`].
pub fn field_name(name: &[u8]) -> Result<String, FieldError> {
    let fits = |octet: &u8| octet.is_ascii_graphic() && *octet != b':';
    let right = (1..=NAME_OCTETS_MAX).contains(&name.len()) && name.iter().all(fits);
    match std::str::from_utf8(name) {
        Ok(name) if right => Ok(name.to_owned()),
        _ => Err(FieldError::Name),
    }
}

/// Checks a value and returns the form of [`Change`]: CRLF becomes LF, and line ends at the end go. Without `spaced`, a blank
/// is put in front.
///
/// # Errors
/// Another field could begin within the value, or the value has CR or NUL.
pub fn field_value(value: &[u8], spaced: bool) -> Result<Vec<u8>, FieldError> {
    let mut text = Vec::with_capacity(value.len().saturating_add(1));
    if !spaced {
        text.push(b' ');
    }
    let mut octets = value.trim_ascii_end().iter().copied().peekable();
    while let Some(octet) = octets.next() {
        match (octet, octets.peek()) {
            (b'\r', Some(b'\n')) => {}
            (b'\r' | 0, _) => return Err(FieldError::Control),
            (b'\n', Some(b' ' | b'\t')) => text.push(b'\n'),
            (b'\n', _) => return Err(FieldError::Line),
            _ => text.push(octet),
        }
    }
    Ok(text)
}

/// Checks an address with or without angle brackets, and returns the address without; empty for `<>`. `None` for another text.
#[must_use]
pub fn address(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let inner = text
        .strip_prefix('<')
        .and_then(|text| text.strip_suffix('>'));
    let text = inner.unwrap_or(text);
    let fits = |c: char| !c.is_control() && !c.is_whitespace() && c != '<' && c != '>';
    (text.len() <= ADDRESS_OCTETS_MAX && text.chars().all(fits)).then(|| text.to_owned())
}

/// Checks parameters of MAIL or RCPT.
pub(crate) fn parameters(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let fits = text.len() <= PARAMETERS_OCTETS_MAX && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned())
}
