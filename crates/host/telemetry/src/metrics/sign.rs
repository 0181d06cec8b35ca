//! Signing of local users' mail, and sealing of forwarded mail.

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

label! {
    /// The result of sealing a forwarded message.
    SealResult("result") {
        /// The message carries a set of ARC.
        Sealed = "sealed",
        /// The chain of the message is broken, and stays.
        Broken = "broken",
        /// The alias's domain has no RSA key.
        NoKey = "no_key",
        /// The message has the most sets, too large a header, or aliases of too many domains.
        NotSealable = "not_sealable",
        /// The signer did not answer.
        Unavailable = "unavailable",
    }
}

/// Signing of local users' mail, and sealing of forwarded mail.
#[derive(Clone, Debug)]
pub struct SignMetrics {
    /// Messages of local users by result.
    pub messages: Family<SignResult, Counter>,
    /// Time of signing a message, hashing included.
    pub seconds: Histogram,
    /// Forwarded copies by result of the sealing.
    pub seals: Family<SealResult, Counter>,
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
            seals: to.counters(
                "sign_seals",
                "Copies of received messages that aliases forward, by result of the sealing (ARC)",
            ),
        }
    }
}
