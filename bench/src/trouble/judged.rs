//! Trouble of judged mail: silent name servers, content filters that fail, and a quarantine that strangers fill.

use std::net::SocketAddr;
use std::time::Duration;

use super::filter::Manner;

/// The time of a filter for its answer.
pub(super) const FILTER_TIMEOUT: Duration = Duration::from_secs(2);

/// The domain whose mail is kept aside.
pub(super) const UNWANTED: &str = "unwanted.test";

/// What is wrong with judged mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    /// The name servers of the crowd's senders are silent at every question.
    SilentNames,
    /// The filter answers in this manner.
    Filter(Manner),
    /// The crowd's mail goes to the quarantine.
    Quarantine,
}

impl Judged {
    /// The reply to an honest message meanwhile, by `when_unavailable`.
    pub(super) const fn expected(self) -> &'static str {
        match self {
            Self::Filter(Manner::Drips) => "450 4.7.1",
            _ => "250",
        }
    }

    /// The settings, with the filter's address.
    pub(super) fn settings(self, filter: Option<SocketAddr>) -> String {
        match (self, filter) {
            (Self::Filter(manner), Some(address)) => {
                let unavailable = match manner {
                    Manner::Drips => "defer",
                    _ => "accept",
                };
                format!(
                    "[judging]\n[[filter]]\nname = \"trouble\"\nkind = \"rspamd\"\naddress = \"{address}\"\n\
                     timeout = \"{}s\"\nwhen_unavailable = \"{unavailable}\"\n",
                    FILTER_TIMEOUT.as_secs()
                )
            }
            (Self::Quarantine, _) => {
                format!("[judging]\nquarantine_at = 5\nblock_senders = [\"{UNWANTED}\"]\n")
            }
            _ => "[judging]\n".to_owned(),
        }
    }
}
