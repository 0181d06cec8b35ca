//! The machine's own replies; refusals by policy are in [`refusal`](crate::refusal).

use crate::command::CommandError;
use crate::reply::{EnhancedStatusCode, Reply};

use super::collector::Fault;
use super::line::LineError;
use super::output::Fixed;

pub(super) const MAIL_OK: Fixed = Fixed::new(250, (1, 0), "sender ok");
/// RFC 6710 section 4.1: the text begins with the priority that the message has now.
pub(super) const PRIORITY_LOWERED: Fixed = Fixed::new(
    250,
    (3, 6),
    "0 is the new priority of the message, sender ok",
);
pub(super) const RCPT_OK: Fixed = Fixed::new(250, (1, 5), "recipient ok");
pub(super) const CHUNK_OK: Fixed = Fixed::new(250, (0, 0), "chunk ok");
pub(super) const RSET_OK: Fixed = Fixed::new(250, (0, 0), "reset");
pub(super) const NOOP_OK: Fixed = Fixed::new(250, (0, 0), "ok");
pub(super) const BYE: Fixed = Fixed::new(221, (0, 0), "closing connection");
pub(super) const START_DATA: Fixed = Fixed::plain(354, "end data with <CRLF>.<CRLF>");
pub(super) const START_TLS: Fixed = Fixed::new(220, (0, 0), "ready to start TLS");
pub(super) const AUTHENTICATED: Fixed = Fixed::new(235, (7, 0), "authentication succeeded");
pub(super) const VRFY: Fixed = Fixed::new(
    252,
    (5, 0),
    "cannot verify, but will take mail and try to deliver it",
);
pub(super) const HELP: Fixed = Fixed::new(
    214,
    (0, 0),
    "HELO EHLO MAIL RCPT DATA BDAT RSET VRFY NOOP QUIT HELP STARTTLS AUTH, as in RFC 5321",
);

pub(super) const EXPN_OFF: Fixed = Fixed::new(502, (5, 1), "EXPN is not provided");
pub(super) const NOT_OFFERED: Fixed = Fixed::new(502, (5, 1), "command is not offered here");
pub(super) const EHLO_FIRST: Fixed = Fixed::new(503, (5, 1), "send EHLO first");
pub(super) const UNRECOGNIZED: Fixed = Fixed::new(500, (5, 1), "command unrecognized");
pub(super) const FILED: Fixed = Fixed::new(250, (1, 5), "filed");
pub(super) const MAIL_FIRST: Fixed = Fixed::new(503, (5, 1), "send MAIL first");
pub(super) const NESTED_MAIL: Fixed = Fixed::new(503, (5, 1), "a transaction is open already");
pub(super) const CHUNKS_BEGUN: Fixed = Fixed::new(503, (5, 1), "message has begun with BDAT");
pub(super) const BINARY_NEEDS_BDAT: Fixed = Fixed::new(503, (5, 1), "BINARYMIME needs BDAT");
pub(super) const TLS_ALREADY: Fixed = Fixed::new(503, (5, 1), "TLS is active already");
pub(super) const AUTH_ALREADY: Fixed = Fixed::new(503, (5, 1), "authenticated already");
pub(super) const WITHIN_TRANSACTION: Fixed =
    Fixed::new(503, (5, 1), "not within a mail transaction");
pub(super) const NO_RECIPIENTS: Fixed = Fixed::new(554, (5, 1), "no valid recipients");
pub(super) const PARAMETER_UNKNOWN: Fixed =
    Fixed::new(555, (5, 4), "parameter is not offered here");
pub(super) const ADDRESS_NEEDS_UTF8: Fixed =
    Fixed::new(553, (6, 7), "address needs the parameter SMTPUTF8");
pub(super) const TOO_BIG: Fixed = Fixed::new(552, (3, 4), "message too big");
pub(super) const TOO_MANY_RECIPIENTS: Fixed = Fixed::new(452, (5, 3), "too many recipients");

pub(super) const TLS_FIRST: Fixed = Fixed::new(530, (7, 0), "must issue a STARTTLS command first");
pub(super) const AUTH_FIRST: Fixed = Fixed::new(530, (7, 0), "authentication required");
pub(super) const AUTH_NEEDS_TLS: Fixed =
    Fixed::new(538, (7, 11), "encryption required for authentication");
pub(super) const AUTH_MECHANISM: Fixed =
    Fixed::new(504, (5, 4), "unrecognized authentication mechanism");
pub(super) const AUTH_CANCELLED: Fixed = Fixed::new(501, (0, 0), "authentication cancelled");
pub(super) const AUTH_SYNTAX: Fixed = Fixed::new(501, (5, 2), "malformed authentication message");
pub(super) const AUTH_TOO_LONG: Fixed = Fixed::new(500, (5, 6), "authentication line is too long");
pub(super) const AUTH_FAILED: Fixed = Fixed::new(535, (7, 8), "authentication credentials invalid");
pub(super) const AUTH_UNAVAILABLE: Fixed =
    Fixed::new(454, (7, 0), "temporary authentication failure");
pub(super) const XCLIENT_DENIED: Fixed = Fixed::new(550, (7, 0), "XCLIENT not allowed");

pub(super) const EARLY_TALKER: Fixed = Fixed::new(
    554,
    (5, 0),
    "client spoke before its turn, closing connection",
);
pub(super) const TLS_INJECTION: Fixed =
    Fixed::new(554, (5, 0), "octets behind STARTTLS, closing connection");
pub(super) const OTHER_PROTOCOL: Fixed =
    Fixed::new(554, (5, 0), "this is SMTP, closing connection");
pub(super) const REFUSED_TOO_MUCH: Fixed =
    Fixed::new(552, (3, 4), "message too big, closing connection");
pub(super) const TOO_MANY_ERRORS: Fixed =
    Fixed::new(421, (7, 0), "too many errors, closing connection");
pub(super) const TOO_MANY_IDLE: Fixed = Fixed::new(
    421,
    (7, 0),
    "too many commands without mail, closing connection",
);
pub(super) const TOO_MANY_REFUSED: Fixed = Fixed::new(
    421,
    (7, 0),
    "too many addresses refused, closing connection",
);
pub(super) const TOO_MANY_TRANSACTIONS: Fixed =
    Fixed::new(421, (7, 0), "too many transactions, closing connection");
pub(super) const TOO_MANY_AUTH_FAILURES: Fixed = Fixed::new(
    421,
    (7, 0),
    "too many failed authentications, closing connection",
);
pub(super) const TIMED_OUT: Fixed = Fixed::new(421, (4, 2), "timed out, closing connection");
pub(super) const SHUTTING_DOWN: Fixed =
    Fixed::new(421, (3, 2), "service shutting down, closing connection");

/// The reply to a line that is no command line at all.
pub(super) fn line_error(error: LineError) -> Fixed {
    match error {
        LineError::TooLong => Fixed::new(500, (5, 2), "line too long"),
        LineError::BareLf => Fixed::new(554, (5, 2), "LF without CR, closing connection"),
        LineError::BareCr => Fixed::new(500, (5, 2), "CR within a line"),
        LineError::Nul => Fixed::new(500, (5, 2), "NUL within a line"),
    }
}

/// The reply to a message with a fault.
pub(super) fn fault(fault: Fault) -> Fixed {
    match fault {
        Fault::BareCr => Fixed::new(554, (5, 2), "message refused: CR without LF"),
        Fault::BareLf => Fixed::new(554, (5, 2), "message refused: LF without CR"),
        Fault::Nul => Fixed::new(554, (6, 0), "message refused: NUL"),
        Fault::LineTooLong => Fixed::new(554, (6, 0), "message refused: line too long"),
        Fault::TooBig => TOO_BIG,
        Fault::NoRoom => Fixed::new(452, (3, 1), "insufficient system storage"),
    }
}

/// The reply to a command with an error.
pub(super) fn command_error(error: CommandError) -> Reply {
    let (code, status) = match error {
        CommandError::NotUtf8 => (500, Some((5, 2))),
        CommandError::Unrecognized => (500, Some((5, 1))),
        CommandError::NotImplemented => (502, Some((5, 1))),
        CommandError::OtherProtocol => (554, Some((5, 0))),
        CommandError::Helo(_) => (501, None),
        CommandError::ReversePath(_) => (501, Some((1, 7))),
        CommandError::ForwardPath(_) => (501, Some((1, 3))),
        CommandError::UnknownParameter => (555, Some((5, 4))),
        CommandError::Usage(_)
        | CommandError::ParameterValue(_)
        | CommandError::ParameterTwice(_)
        | CommandError::ChunkSize
        | CommandError::XclientAttribute => (501, Some((5, 4))),
    };
    let status = status.map(|(subject, detail)| EnhancedStatusCode::new(5, subject, detail));
    Reply::new(code, status, error.to_string())
}
