//! AUTH: the beginning of an authentication exchange (RFC 4954 section 4).

use vere_units::Secret;

use super::CommandError;

/// Octets of the longest mechanism name (RFC 4422 section 3.1).
const MECHANISM_OCTETS_MAX: usize = 20;

/// The arguments of AUTH.
#[derive(Debug)]
pub struct AuthCommand {
    /// The mechanism's name as written by the client.
    pub mechanism: String,
    /// The initial response in base64, or `=` for an empty response.
    pub initial: Option<Secret<String>>,
}

impl AuthCommand {
    /// Parses the text behind `AUTH` and a space.
    ///
    /// ```text
    /// auth             = "AUTH" SP sasl-mech [SP initial-response] CRLF
    /// sasl-mech        = 1*20mech-char
    /// mech-char        = UPPER-ALPHA / DIGIT / HYPHEN / UNDERSCORE   ; in any case here
    /// initial-response = base64 / "="
    /// ```
    ///
    /// # Errors
    ///
    /// [`CommandError::Usage`] for a missing or malformed name or too many arguments.
    pub fn parse(argument: &str) -> Result<Self, CommandError> {
        const USAGE: CommandError = CommandError::Usage("AUTH mechanism [initial-response]");
        let (mechanism, initial) = match argument.split_once(' ') {
            Some((mechanism, initial)) => (mechanism, Some(initial)),
            None => (argument, None),
        };
        let name = (1..=MECHANISM_OCTETS_MAX).contains(&mechanism.len())
            && mechanism
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if !name || initial.is_some_and(|initial| initial.is_empty() || initial.contains(' ')) {
            return Err(USAGE);
        }
        Ok(Self {
            mechanism: mechanism.to_owned(),
            initial: initial.map(|initial| Secret::new(initial.to_owned())),
        })
    }
}
