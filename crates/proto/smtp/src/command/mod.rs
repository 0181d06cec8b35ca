//! The commands of clients (RFC 5321 section 4.1 and extensions), one file per command.
//!
//! [`Command::parse`] takes a line without CRLF. This module decides the syntax of a command; the
//! server decides whether a command is allowed in its state, and carries the command out.

mod auth;
mod bare;
mod bdat;
mod helo;
mod mail;
mod parameter;
mod rcpt;
mod xtext;

use crate::address::{AddressError, DomainOrLiteral};
use crate::xclient::XclientAttributes;

pub use auth::AuthCommand;
pub use bdat::Bdat;
pub(crate) use helo::parse as parse_helo;
pub use mail::{BodyType, ENVID_OCTETS_MAX, MailFrom, Ret};
pub use rcpt::{Notify, ORCPT_OCTETS_MAX, Orcpt, RcptTo};
pub use xtext::Xtext;
pub(crate) use xtext::decode as decode_xtext;

/// Leniency for clients that do not keep to the grammar; everything is off by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Workarounds {
    /// Takes `MAIL FROM: <a@b>` and `RCPT TO: <a@b>`: old web forms and mainframe gateways send it.
    pub space_before_path: bool,
    /// Takes `MAIL FROM:a@b` and `RCPT TO:a@b`: alarm boxes and scanners send it.
    pub path_without_brackets: bool,
    /// Takes `_` in the name after HELO and EHLO: Windows machines are named so.
    pub underscore_in_helo: bool,
}

/// A command with its arguments.
#[derive(Debug)]
pub enum Command {
    /// `HELO SP Domain` (RFC 5321 section 4.1.1.1)
    Helo(DomainOrLiteral),
    /// `EHLO SP ( Domain / address-literal )` (RFC 5321 section 4.1.1.1)
    Ehlo(DomainOrLiteral),
    /// `MAIL FROM:` (RFC 5321 section 4.1.1.2)
    Mail(MailFrom),
    /// `RCPT TO:` (RFC 5321 section 4.1.1.3)
    Rcpt(RcptTo),
    /// `DATA` (RFC 5321 section 4.1.1.4)
    Data,
    /// `BDAT SP chunk-size [SP "LAST"]` (RFC 3030 section 2)
    Bdat(Bdat),
    /// `RSET` (RFC 5321 section 4.1.1.5)
    Rset,
    /// `VRFY SP String` (RFC 5321 section 4.1.1.6)
    Vrfy,
    /// `EXPN SP String` (RFC 5321 section 4.1.1.7)
    Expn,
    /// `HELP [ SP String ]` (RFC 5321 section 4.1.1.8)
    Help,
    /// `NOOP [ SP String ]` (RFC 5321 section 4.1.1.9)
    Noop,
    /// `QUIT` (RFC 5321 section 4.1.1.10)
    Quit,
    /// `LHLO SP ( Domain / address-literal )` (RFC 2033 section 4.1)
    Lhlo(DomainOrLiteral),
    /// `STARTTLS` (RFC 3207 section 4)
    StartTls,
    /// `AUTH SP mechanism [SP initial-response]` (RFC 4954 section 4)
    Auth(AuthCommand),
    /// `XCLIENT 1*( SP attribute-name "=" attribute-value )`
    Xclient(XclientAttributes),
}

/// The error in a command line; always the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The line is not UTF-8.
    #[error("command is not UTF-8")]
    NotUtf8,
    /// No such command.
    #[error("command unrecognized")]
    Unrecognized,
    /// A command that is known and not provided (SEND, SOML, SAML, TURN, ETRN).
    #[error("command not implemented")]
    NotImplemented,
    /// The request line of another protocol: the rest of the connection makes no sense either.
    #[error("request of another protocol")]
    OtherProtocol,
    /// The argument is missing or malformed; carries the right form.
    #[error("syntax: {0}")]
    Usage(&'static str),
    /// The name after HELO or EHLO is malformed.
    #[error("malformed client name: {0}")]
    Helo(AddressError),
    /// The path after `MAIL FROM:` is malformed.
    #[error("malformed reverse-path: {0}")]
    ReversePath(AddressError),
    /// The path after `RCPT TO:` is malformed.
    #[error("malformed forward-path: {0}")]
    ForwardPath(AddressError),
    /// An unknown parameter of MAIL or RCPT.
    #[error("unknown parameter")]
    UnknownParameter,
    /// The value of this parameter is missing or malformed.
    #[error("malformed value of {0}")]
    ParameterValue(&'static str),
    /// This parameter is repeated.
    #[error("{0} given twice")]
    ParameterTwice(&'static str),
    /// The arguments of BDAT are malformed, so that the length of the chunk is unknown.
    #[error("malformed chunk size")]
    ChunkSize,
    /// An attribute of XCLIENT is unknown or malformed.
    #[error("malformed XCLIENT attribute")]
    XclientAttribute,
}

impl Command {
    /// Parses a line without CRLF, of at most the length allowed by
    /// [`Limits`](crate::limits::Limits), and free of CR, LF and NUL.
    ///
    /// White space at the end is ignored (RFC 5321 section 4.1.1).
    ///
    /// # Errors
    ///
    /// [`CommandError`] for a malformed line.
    pub fn parse(line: &[u8], workarounds: Workarounds) -> Result<Self, CommandError> {
        let line = line.trim_ascii_end();
        let verb_end = memchr::memchr(b' ', line).unwrap_or(line.len());
        let (verb, argument) = line.split_at_checked(verb_end).unwrap_or((line, &[]));
        let mut upper = [0_u8; 8];
        let upper = upper
            .get_mut(..verb.len())
            .ok_or(CommandError::Unrecognized)?;
        upper.copy_from_slice(verb);
        upper.make_ascii_uppercase();
        let argument = std::str::from_utf8(argument).map_err(|_| CommandError::NotUtf8)?;
        let argument = argument.strip_prefix(' ').unwrap_or(argument);
        match &*upper {
            b"MAIL" => MailFrom::parse(argument, workarounds).map(Self::Mail),
            b"RCPT" => RcptTo::parse(argument, workarounds).map(Self::Rcpt),
            b"BDAT" => Bdat::parse(argument).map(Self::Bdat),
            b"EHLO" => helo::parse(argument, workarounds).map(Self::Ehlo),
            b"LHLO" => helo::parse(argument, workarounds).map(Self::Lhlo),
            b"HELO" => helo::parse(argument, workarounds).map(Self::Helo),
            b"AUTH" => AuthCommand::parse(argument).map(Self::Auth),
            b"XCLIENT" => XclientAttributes::parse(argument).map(Self::Xclient),
            other => bare::parse(other, argument),
        }
    }
}

#[cfg(test)]
mod tests;
