//! Reports to other systems about a day.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::declarations::{Declarations, label};

label! {
    /// Why a message or session is not counted for reports.
    Uncounted("reason") {
        /// Too many messages wait for the policies of their authors' domains, or sessions of too many kinds for the next look.
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
        /// The report is in the queue, or a web server has the report.
        Sent = "sent",
        /// The domain has no destination for the report.
        Unwanted = "unwanted",
        /// Every destination wants shorter mail.
        TooLong = "too_long",
        /// The DNS, the directory, the spool or a web server failed too often.
        GivenUp = "given_up",
    }
}

/// Reports to other systems about a day.
#[derive(Clone, Debug)]
pub struct ReportMetrics {
    /// Reports about DMARC, which count messages.
    pub dmarc: ReportFigures,
    /// Reports about TLS, which count sessions.
    pub tls: ReportFigures,
}

/// The figures of a kind of reports.
#[derive(Clone, Debug)]
pub struct ReportFigures {
    /// Messages or sessions counted for reports.
    pub counted: Counter,
    /// Messages or sessions missing in reports, by the reason.
    pub uncounted: Family<Uncounted, Counter>,
    /// Reports by their end.
    pub ended: Family<ReportEnd, Counter>,
}

impl ReportMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Reports about DMARC");
        let dmarc = ReportFigures {
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
        };
        to.section("Reports about TLS");
        let tls = ReportFigures {
            counted: to.counter(
                "reports_tls_sessions",
                "Sessions with next hops counted for reports to the domains of the recipients",
            ),
            uncounted: to.counters(
                "reports_tls_sessions_lost",
                "Sessions that are missing in reports to the domains of the recipients",
            ),
            ended: to.counters(
                "reports_tls_ended",
                "Reports to domains about the TLS of a day, by their end",
            ),
        };
        Self { dmarc, tls }
    }
}
