//! Writes reports to senders (DSN), and limits how many one address gets.

use bytes::Bytes;
use vere_delivery::Notice;
use vere_queue::report::Composer;
use vere_queue::{Envelope, Report, Ret, TlsWish};
use vere_smtp::refusal::Refusal;
use vere_telemetry::trace::{Event, EventKind};
use vere_units::TraceId;

use super::process::Process;
use super::{clock, routing, signing};

impl Process {
    /// Makes a report about a message.
    ///
    /// # Errors
    /// When the directory cannot say where the sender's mail goes.
    pub(super) async fn notice(
        &self,
        envelope: &Envelope,
        original: &Bytes,
        report: &Report,
    ) -> Result<Notice, Refusal> {
        let settings = self.settings();
        let now = clock::now();
        let mut about = Envelope::clone(envelope);
        if about.mail.tls == TlsWish::Required {
            // RFC 8689 section 5: the text does not go back.
            about.mail.ret = Some(Ret::Headers);
        }
        let trace = self.ids.next(now);
        let unique = trace.to_string();
        let composer = Composer {
            hostname: &settings.hostname,
            now,
            unique: &unique,
        };
        let body = Bytes::from(composer.compose(report, &about, original));
        let body = signing::sign_report(self, body).await;
        let router = &self.router;
        let parts = routing::report_parts(router, &settings, envelope, report, trace, body, now)?;
        Ok(Notice {
            kind: report.kind,
            to: report.to.clone(),
            trace,
            parts,
        })
    }

    /// Whether a report may be sent: the address has not reached the limit of the hour. A report held back is
    /// recorded.
    pub(super) fn may_report(&self, report: &Report, about: TraceId) -> bool {
        let max = self.settings().delivery.reports_per_hour_max;
        // The wall clock may be put ahead: the hours are not over for that.
        let now = clock::steady();
        let may = self
            .report_limit
            .borrow_mut()
            .may_send(&report.to, max, now);
        if !may {
            self.metrics.limited();
            self.note(&Event {
                rcpt: Some(&report.to),
                reply: Some("limited"),
                ..Event::new(EventKind::Dsn, about, clock::now())
            });
            tracing::warn!(
                queue_id = %about,
                to = %report.to,
                action = report.kind.action(),
                "report not sent: its address had enough in this hour"
            );
        }
        may
    }
}
