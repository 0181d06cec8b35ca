//! HELO and EHLO: the name of the client (RFC 5321 section 4.1.1.1).

use super::{CommandError, Workarounds};
use crate::address::{AddressError, Domain, DomainOrLiteral};

/// ```text
/// ehlo = "EHLO" SP ( Domain / address-literal ) CRLF
/// helo = "HELO" SP Domain CRLF
/// ```
///
/// U-labels are refused: the client cannot know yet that we speak SMTPUTF8 (RFC 6531 section 3.7.1).
pub(crate) fn parse(
    argument: &str,
    workarounds: Workarounds,
) -> Result<DomainOrLiteral, CommandError> {
    if argument.is_empty() {
        return Err(CommandError::Helo(AddressError::Empty));
    }
    if !argument.is_ascii() {
        return Err(CommandError::Helo(AddressError::Domain));
    }
    if workarounds.underscore_in_helo && argument.contains('_') {
        // The name is accepted if replacing each `_` by a letter makes a valid name.
        Domain::parse(&argument.replace('_', "x")).map_err(CommandError::Helo)?;
        return Ok(DomainOrLiteral::Domain(Domain::trusted(argument)));
    }
    DomainOrLiteral::parse(argument).map_err(CommandError::Helo)
}
