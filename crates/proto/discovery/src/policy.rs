//! The MTA-STS policy of a domain (RFC 8461 section 3.2).

use std::fmt::Write as _;
use std::time::Duration;

/// The media type of the policy (RFC 8461 section 3.3).
pub const MEDIA_TYPE: &str = "text/plain; charset=utf-8";

/// A policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy<'a> {
    /// `enforce`, `testing` or `none`.
    pub mode: &'a str,
    /// The lifetime, whole seconds of which count.
    pub max_age: Duration,
    /// The MX hosts.
    pub mx: &'a [String],
}

impl Policy<'_> {
    /// Writes the policy, with lines that end in CRLF.
    #[must_use]
    pub fn write(&self) -> String {
        let mut text = format!("version: STSv1\r\nmode: {}\r\n", self.mode);
        for host in self.mx {
            // Writing to a string cannot fail.
            let _ = write!(text, "mx: {host}\r\n");
        }
        let _ = write!(text, "max_age: {}\r\n", self.max_age.as_secs());
        text
    }
}
