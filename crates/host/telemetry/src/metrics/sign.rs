//! Signing what own users send.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::declarations::{Declarations, label};

label! {
    /// What came of signing a message.
    SignResult("result") {
        /// It carries signatures.
        Signed = "signed",
        /// Its author's domain has no keys.
        NoKey = "no_key",
        /// It has no author, more than one, or too large a header.
        NotSignable = "not_signable",
        /// The signer did not answer.
        Unavailable = "unavailable",
    }
}

/// Signing what own users send.
#[derive(Clone, Debug)]
pub struct SignMetrics {
    /// Messages of own users by what came of it.
    pub messages: Family<SignResult, Counter>,
    /// Time that signing a message took, hashing included.
    pub seconds: Histogram,
}

impl SignMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Signing");
        Self {
            messages: to.counters(
                "sign_messages",
                "Messages of own users, by what came of signing",
            ),
            seconds: to.times(
                "sign_seconds",
                "Time that signing a message took, with its hashing",
            ),
        }
    }
}
