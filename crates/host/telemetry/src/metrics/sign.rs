//! Signing of local users' mail.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::declarations::{Declarations, label};

label! {
    /// The result of signing a message.
    SignResult("result") {
        /// It carries signatures.
        Signed = "signed",
        /// The author's domain has no keys.
        NoKey = "no_key",
        /// The message has no author, several authors, or too large a header.
        NotSignable = "not_signable",
        /// The signer did not answer.
        Unavailable = "unavailable",
    }
}

/// Signing of local users' mail.
#[derive(Clone, Debug)]
pub struct SignMetrics {
    /// Messages of local users by result.
    pub messages: Family<SignResult, Counter>,
    /// Time of signing a message, hashing included.
    pub seconds: Histogram,
}

impl SignMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Signing");
        Self {
            messages: to.counters(
                "sign_messages",
                "Messages of local users by result of the signing",
            ),
            seconds: to.times(
                "sign_seconds",
                "Time of signing a message, hashing included",
            ),
        }
    }
}
