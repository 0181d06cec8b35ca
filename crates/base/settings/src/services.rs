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

impl Assembly {
    pub(crate) fn sendmail(&self) -> Option<Sendmail> {
        self.section("sendmail").then(|| Sendmail {
            socket: self.path("sendmail.socket"),
            domain: self
                .maybe("sendmail.domain")
                .unwrap_or_else(|| self.need("hostname")),
        })
    }
}
