//! The settings of further services, and how they are taken from the checked values.

use std::path::PathBuf;

use vere_units::{ByteSize, Span};

use crate::assemble::Assembly;

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

impl Assembly {
    /// Which of file and webhook is missing, the check of contradictions says.
    pub(crate) fn records(&self) -> Option<Records> {
        let to = || match self.maybe("records.webhook") {
            Some(url) => RecordSink::Webhook {
                url,
                ca: self.maybe_path("records.webhook_ca"),
                secret: self
                    .maybe_path("records.webhook_secret")
                    .unwrap_or_default(),
                timeout: self.need("records.webhook_timeout"),
            },
            None => RecordSink::File {
                path: self.maybe_path("records.file").unwrap_or_default(),
                size_max: self.need("records.file_size_max"),
            },
        };
        self.section("records").then(|| Records {
            to: to(),
            waiting_max: self.need("records.waiting_max"),
        })
    }

    pub(crate) fn dkim(&self) -> Option<Dkim> {
        let when_unavailable = |text: &str| match text {
            "defer" => Some(WhenUnavailable::Defer),
            "unsigned" => Some(WhenUnavailable::Unsigned),
            _ => None,
        };
        self.section("dkim").then(|| Dkim {
            keys: self.path("dkim.keys"),
            socket: self.path("dkim.socket"),
            when_unavailable: self.choice("dkim.when_unavailable", when_unavailable),
        })
    }

    pub(crate) fn sendmail(&self) -> Option<Sendmail> {
        self.section("sendmail").then(|| Sendmail {
            socket: self.path("sendmail.socket"),
            domain: self
                .maybe("sendmail.domain")
                .unwrap_or_else(|| self.need("hostname")),
        })
    }
}
