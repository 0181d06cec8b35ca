//! The error of all parsers in this crate.

/// Says why a text is not a quantity. The fault is the writer's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseUnitError {
    /// The text is empty.
    Empty,
    /// The text does not begin with a decimal number.
    NotANumber(String),
    /// A number lacks the required unit.
    UnitMissing(String),
    /// The unit is unknown; the second field lists the known units.
    UnknownUnit(String, &'static str),
    /// The value exceeds the range of the type.
    TooLarge(String),
    /// The text is not an id: wrong length or a character outside of the alphabet.
    NotAnId(String),
}

impl std::fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => write!(f, "is empty"),
            Self::NotANumber(text) => write!(f, "{text:?} does not begin with a whole number"),
            Self::UnitMissing(text) => write!(f, "{text:?} has no unit"),
            Self::UnknownUnit(unit, known) => {
                write!(f, "unknown unit {unit:?}; expected one of {known}")
            }
            Self::TooLarge(text) => write!(f, "{text:?} is too large"),
            Self::NotAnId(text) => write!(f, "{text:?} is not an id"),
        }
    }
}

impl std::error::Error for ParseUnitError {}

/// Splits `text` into its leading decimal number and the trimmed rest.
pub(crate) fn number_and_unit(text: &str) -> Result<(u64, &str), ParseUnitError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ParseUnitError::Empty);
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    if number.is_empty() {
        return Err(ParseUnitError::NotANumber(text.to_owned()));
    }
    let number = number
        .parse()
        .map_err(|_| ParseUnitError::TooLarge(text.to_owned()))?;
    Ok((number, rest.trim_start()))
}
