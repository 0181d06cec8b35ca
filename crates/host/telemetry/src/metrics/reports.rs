//! Reports to other systems about their mail.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::declarations::{Declarations, label};

label! {
    /// Why a message is not counted for reports.
    Uncounted("reason") {
        /// Too many messages wait for the policies of their authors' domains.
        Busy = "busy",
        /// The DNS did not answer.
        Dns = "dns",
        /// The counts could not be written.
        Disk = "disk",
    }
}

label! {
    /// The end of a report.
    ReportEnd("result") {
        /// The report is in the queue.
        Sent = "sent",
        /// The domain has no destination for the report.
        Unwanted = "unwanted",
        /// Every destination wants shorter mail.
        TooLong = "too_long",
        /// The DNS, the directory or the spool failed too often.
        GivenUp = "given_up",
    }
}

/// Reports to other systems about their mail.
#[derive(Clone, Debug)]
pub struct ReportMetrics {
    /// Messages counted for reports about DMARC.
    pub counted: Counter,
    /// Messages missing in reports, by the reason.
    pub uncounted: Family<Uncounted, Counter>,
    /// Reports about DMARC by their end.
    pub ended: Family<ReportEnd, Counter>,
}

impl ReportMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Reports about DMARC");
        Self {
            counted: to.counter(
                "reports_dmarc_messages",
                "Messages counted for reports to the domains of their authors",
            ),
            uncounted: to.counters(
                "reports_dmarc_messages_lost",
                "Messages that are missing in reports to the domains of their authors",
            ),
            ended: to.counters(
                "reports_dmarc_ended",
                "Reports to domains about a day, by their end",
            ),
        }
    }
}
