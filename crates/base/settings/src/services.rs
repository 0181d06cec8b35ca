//! The settings of further services.

use std::path::PathBuf;

use vere_units::{ByteSize, Span};

/// Mail from the programs and users of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sendmail {
    /// Where the gateway takes it.
    pub socket: PathBuf,
    /// The domain of addresses that are given without one.
    pub domain: String,
}

/// Signatures on what own users send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dkim {
    /// The folder of the keys.
    pub keys: PathBuf,
    /// Where the gateway reaches the signer.
    pub socket: PathBuf,
    /// What becomes of a message while the signer does not answer.
    pub when_unavailable: WhenUnavailable,
}

/// What becomes of a message that cannot be signed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenUnavailable {
    /// The client is told to try again later.
    Defer,
    /// It goes on without a signature.
    Unsigned,
}

/// Lines about messages for other systems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    /// Where they go.
    pub to: RecordSink,
    /// Octets of lines that may wait before no mail is taken any more.
    pub waiting_max: ByteSize,
}

/// Where lines about messages go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordSink {
    /// Into a file.
    File {
        /// Which.
        path: PathBuf,
        /// A larger one is set aside.
        size_max: ByteSize,
    },
    /// To a web server.
    Webhook {
        /// Where they are posted.
        url: String,
        /// The file of the authorities that its certificate must come from, if not from the system's.
        ca: Option<PathBuf>,
        /// The file with the secret of the signature.
        secret: PathBuf,
        /// Longest wait for the answer.
        timeout: Span,
    },
}
