//! The error of all parsers in this crate.

/// Says why a text is not a quantity. The fault is the writer's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseUnitError {
    /// The text is empty.
    #[error("is empty")]
    Empty,
    /// The text does not begin with a decimal number.
    #[error("{0:?} does not begin with a whole number")]
    NotANumber(String),
    /// A number lacks the required unit.
    #[error("{0:?} has no unit")]
    UnitMissing(String),
    /// The unit is unknown; the second field lists the known units.
    #[error("unknown unit {0:?}; expected one of {1}")]
    UnknownUnit(String, &'static str),
    /// The value exceeds the range of the type.
    #[error("{0:?} is too large")]
    TooLarge(String),
    /// The text is not a decimal number with at most two decimals.
    #[error("{0:?} is not a number with at most two decimals")]
    NotAScore(String),
    /// The text is not an id: wrong length or a character outside of the alphabet.
    #[error("{0:?} is not an id")]
    NotAnId(String),
}

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
