//! Signing of local users' mail, and sealing of forwarded mail.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
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

label! {
    /// The result of looking up the record of a key that waits.
    RecordLook("result") {
        /// The record has the key.
        Seen = "seen",
        /// The name has no record.
        Missing = "missing",
        /// The name has another record, or several.
        Other = "other",
        /// The name servers did not answer.
        Unanswered = "unanswered",
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
    /// Keys that wait until their record is in the DNS.
    pub keys_waiting: Gauge,
    /// Looks for the records of such keys by result.
    pub record_looks: Family<RecordLook, Counter>,
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
            keys_waiting: to.gauge(
                "sign_keys_waiting",
                "Keys of DKIM that sign nothing until their record is in the DNS",
            ),
            record_looks: to.counters(
                "sign_record_looks",
                "Looks for the records of waiting keys by result",
            ),
        }
    }
}
