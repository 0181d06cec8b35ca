//! The settings of further services, and how they are taken from the checked values.

use std::path::PathBuf;

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

impl Assembly {
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
