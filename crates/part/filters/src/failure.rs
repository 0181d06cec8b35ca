//! Why a filter gave no answer.

use std::io;
use std::time::Duration;

use vere_http::direct::ExchangeError;
use vere_milter::{FieldError, MilterError};

/// Why a filter gave no answer that can be used. The text is for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// There is no connection.
    #[error("cannot connect to {address}: {error}")]
    Connect {
        /// The filter's address.
        address: String,
        /// The system's words.
        error: String,
    },
    /// All connections were in use for more than half of the time.
    #[error("no free connection of {0} in time")]
    Busy(usize),
    /// The deadline passed.
    #[error("no whole answer within {0:?}")]
    Late(Duration),
    /// The connection broke.
    #[error("connection broken while {during}: {error}")]
    Broken {
        /// Reading or writing.
        during: &'static str,
        /// The system's words.
        error: String,
    },
    /// The filter closed the connection.
    #[error("connection closed before {0}")]
    Closed(String),
    /// The exchange by HTTP failed.
    #[error("HTTP: {0}")]
    Http(#[from] ExchangeError),
    /// The filter answered with another status.
    #[error("expected HTTP status 200; found {status}{text}")]
    Status {
        /// The status.
        status: u16,
        /// A colon and the beginning of the answer, if there is a text.
        text: String,
    },
    /// The answer is no JSON, or none of the right form.
    #[error("answer of rspamd: {0}")]
    Json(String),
    /// The answer has an action that is unknown.
    #[error("answer of rspamd: unknown action \"{0}\"")]
    Action(String),
    /// Too many entries of an answer.
    #[error("answer of rspamd: more than {max} {of}")]
    Many {
        /// The bound.
        max: usize,
        /// The kind of entry.
        of: &'static str,
    },
    /// A header field that cannot stand in a message.
    #[error("answer of rspamd: header field: {0}")]
    Field(#[from] FieldError),
    /// An answer of ClamAV that says an error, or nothing that is known.
    #[error("expected \"stream: OK\" or \"stream: NAME FOUND\"; found \"{0}\"")]
    Clamd(String),
    /// ClamAV accepts shorter streams only.
    #[error("the message is longer than the StreamMaxLength of clamd.conf")]
    StreamLong,
    /// The answer goes on and on.
    #[error("answer of more than {0} octets")]
    Long(usize),
    /// A milter broke the protocol or a bound.
    #[error("milter: {0}")]
    Milter(#[from] MilterError),
    /// The filter failed several times in a row, and is left alone for some seconds.
    #[error("left alone after failures")]
    Resting,
    /// So many messages wait for filters that the bound of their number or memory is reached.
    #[error("too many messages wait for filters")]
    Full,
    /// The changes could not be applied.
    #[error("changes of the message not applied")]
    NotApplied,
    /// Only rspamd learns.
    #[error("only rspamd can be taught")]
    NotTaught,
    /// Only ClamAV has a version.
    #[error("only clamd can be asked for its version")]
    NoVersion,
    /// The message is longer than the filter is shown.
    #[error("message of more than {0} octets")]
    MessageLong(usize),
}

impl Failure {
    /// Whether the filter seems to be dead or to hang. Answers that cannot be used are no sign of that: a sender could cause such answers by
    /// its messages, and so have the filter left alone.
    pub(crate) const fn is_of_filter(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::Late(_)
            | Self::Broken { .. }
            | Self::Closed(_)
            | Self::Http(ExchangeError::Failed(_)) => true,
            Self::Status { status, .. } => *status >= 500,
            _ => false,
        }
    }

    pub(crate) fn reading(error: &io::Error) -> Self {
        let (during, error) = ("reading", error.to_string());
        Self::Broken { during, error }
    }

    pub(crate) fn writing(error: &io::Error) -> Self {
        let (during, error) = ("writing", error.to_string());
        Self::Broken { during, error }
    }
}

/// The beginning of octets as one line of printable ASCII.
pub(crate) fn printable(octets: &[u8], max: usize) -> String {
    let shown = octets.iter().take(max).map(|octet| match octet {
        b' '..=b'~' => char::from(*octet),
        b'\t' | b'\r' | b'\n' => ' ',
        _ => '?',
    });
    shown.collect::<String>().trim().to_owned()
}
