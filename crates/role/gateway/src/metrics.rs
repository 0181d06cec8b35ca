//! Counters of the gateway.

use std::time::Duration;

use vere_delivery::Leaving;
use vere_judge::{HitName, Judgement, Verdict};
use vere_queue::report::ReportKind;
use vere_queue::{Attempt, Disposition, Envelope};
use vere_reports::Kind;
use vere_settings::OverSending;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::Tally;
use vere_telemetry::metrics::{
    AuthResult, Counter, DeliveryResult, DsnAction, Gauge, Handshake, HandshakeResult,
    JudgedVerdict, Metrics, OverLimit, QuarantineEnd, RecordLook, ReplyClass, ReportEnd,
    ReportFigures, RuleName, SealResult, Shortage, SignResult, SmtpService, TlsSide, TurnedAway,
    Uncounted,
};

use vere_outbound::OutboundMetrics;

use super::service::Service;
use vere_process::clock;
use vere_process::memory::MemoryFigures;

/// The gateway's metrics; counters that change with every message need no look-up.
#[derive(Debug)]
pub(crate) struct GatewayMetrics {
    pub(super) all: Metrics,
    relayed: Counter,
    stored: Counter,
    deferred: Counter,
    bounced: Counter,
    expired: Counter,
    positive: Counter,
    intermediate: Counter,
    transient: Counter,
    permanent: Counter,
}

impl Default for GatewayMetrics {
    fn default() -> Self {
        let all = Metrics::new();
        let recipients = |result| all.delivery.recipients.get_or_create_owned(&result);
        let replies = |class| all.smtp.replies.get_or_create_owned(&class);
        Self {
            relayed: recipients(DeliveryResult::Relayed),
            stored: recipients(DeliveryResult::Stored),
            deferred: recipients(DeliveryResult::Deferred),
            bounced: recipients(DeliveryResult::Bounced),
            expired: recipients(DeliveryResult::Expired),
            positive: replies(ReplyClass::Positive),
            intermediate: replies(ReplyClass::Intermediate),
            transient: replies(ReplyClass::Transient),
            permanent: replies(ReplyClass::Permanent),
            all,
        }
    }
}

/// Receiving.
impl GatewayMetrics {
    /// Counts an accepted connection.
    pub(super) fn accepted(&self, service: Service) {
        let smtp = &self.all.smtp;
        smtp.connections_accepted
            .get_or_create(&label(service))
            .inc();
        smtp.connections.get_or_create(&label(service)).inc();
    }

    /// Counts the end of an accepted connection.
    pub(super) fn ended(&self, service: Service) {
        let connections = &self.all.smtp.connections;
        connections.get_or_create(&label(service)).dec();
    }

    /// Counts a connection closed before the first command. The client got a reply, unless a missing or broken
    /// PROXY header left the client unknown.
    pub(super) fn turned_away(&self, reason: TurnedAway) {
        let refused = &self.all.smtp.connections_refused;
        refused.get_or_create(&reason).inc();
        if reason != TurnedAway::Proxy {
            self.transient.inc();
        }
    }

    /// Counts sent replies and ended authentications.
    pub(super) fn replied(&self, tally: Tally) {
        for (counter, count) in [
            (&self.positive, tally.positive),
            (&self.intermediate, tally.intermediate),
            (&self.transient, tally.transient),
            (&self.permanent, tally.permanent),
        ] {
            if count > 0 {
                counter.inc_by(u64::from(count));
            }
        }
        for (result, count) in [
            (AuthResult::Accepted, tally.authenticated),
            (AuthResult::Rejected, tally.rejected),
            (AuthResult::Unavailable, tally.undecided),
        ] {
            if count > 0 {
                let authentications = &self.all.smtp.authentications;
                authentications
                    .get_or_create(&result)
                    .inc_by(u64::from(count));
            }
        }
    }

    /// Counts a message accepted, or refused at the end: octets, recipients and time.
    pub(super) fn received(
        &self,
        service: Service,
        octets: usize,
        recipients: usize,
        took: Duration,
        refusal: Option<&Refusal>,
    ) {
        let smtp = &self.all.smtp;
        smtp.store_seconds.observe(took.as_secs_f64());
        if refusal.is_some() {
            smtp.messages_refused.inc();
            return;
        }
        smtp.messages_received.get_or_create(&label(service)).inc();
        smtp.received_bytes.inc_by(octets as u64);
        smtp.recipients_received.inc_by(recipients as u64);
    }

    /// Shows whether the intake is throttled.
    pub(super) fn throttled(&self, throttled: bool) {
        self.all.smtp.throttled.set(i64::from(throttled));
    }

    /// Returns the connections of clients, and the octets in memory of messages that clients are sending.
    pub(super) fn receiving(&self) -> (usize, u64) {
        let smtp = &self.all.smtp;
        let of = |service| smtp.connections.get_or_create(&label(service)).get();
        let clients: i64 = Service::ALL.into_iter().map(of).sum();
        (usize::try_from(clients).unwrap_or(0), self.body_octets())
    }

    /// Returns the octets in memory of messages that clients are sending.
    pub(super) fn body_octets(&self) -> u64 {
        u64::try_from(self.all.smtp.body_memory_bytes.get()).unwrap_or(0)
    }

    /// Returns the figures of the memory for messages that are being received.
    pub(super) fn body_memory(&self) -> MemoryFigures {
        self.figures(&self.all.smtp.body_memory_bytes)
    }

    /// Returns the figures of the disk space for long messages.
    pub(super) fn body_disk(&self) -> MemoryFigures {
        self.figures(&self.all.smtp.body_disk_bytes)
    }

    fn figures(&self, held: &Gauge) -> MemoryFigures {
        let shortages = |result| {
            let family = &self.all.smtp.body_memory_shortages;
            family.get_or_create_owned(&result)
        };
        MemoryFigures {
            held: held.clone(),
            refused: shortages(Shortage::Refused),
            ended: shortages(Shortage::Ended),
        }
    }
}

/// Signatures and TLS.
impl GatewayMetrics {
    /// Counts the outcome of signing a message of a local user, and the time taken.
    pub(super) fn signed(&self, result: SignResult, took: Duration) {
        let sign = &self.all.sign;
        sign.messages.get_or_create(&result).inc();
        if result == SignResult::Signed {
            sign.seconds.observe(took.as_secs_f64());
        }
    }

    /// Counts the outcome of sealing a message for the aliases of a domain.
    pub(super) fn sealed(&self, result: SealResult) {
        self.all.sign.seals.get_or_create(&result).inc();
    }

    /// Sets the number of keys that wait for their records.
    pub(super) fn keys_waiting(&self, count: u32) {
        self.all.sign.keys_waiting.set(i64::from(count));
    }

    /// Counts a look for the record of a waiting key.
    pub(super) fn record_looked_up(&self, result: RecordLook) {
        self.all.sign.record_looks.get_or_create(&result).inc();
    }

    /// Counts a finished TLS handshake.
    pub(super) fn handshake(&self, side: TlsSide, result: HandshakeResult) {
        let handshakes = &self.all.tls.handshakes;
        handshakes.get_or_create(&Handshake { side, result }).inc();
    }
}

/// Delivery.
impl GatewayMetrics {
    /// Returns the figures of connections to next hops.
    pub(super) fn outbound(&self) -> OutboundMetrics {
        OutboundMetrics::of(&self.all)
    }

    /// Counts a connection to a next hop until the returned value is dropped.
    pub(super) fn connection_open(&self) -> OpenConnection {
        let gauge = self.all.delivery.connections.clone();
        gauge.inc();
        OpenConnection(gauge)
    }

    /// Records the time from a delivery attempt's start to the verdict of the next hop or of the mailboxes.
    pub(super) fn transaction(&self, took: Duration) {
        let seconds = &self.all.delivery.transaction_seconds;
        seconds.observe(took.as_secs_f64());
    }

    /// Counts a settled attempt for a message.
    pub(super) fn attempted(&self, attempt: &Attempt, envelope: &Envelope) {
        let delivered = |disposition| disposition == Disposition::Delivered;
        if attempt
            .results
            .iter()
            .any(|result| delivered(result.disposition))
        {
            let delivery = &self.all.delivery;
            delivery.sent_bytes.inc_by(u64::from(envelope.head.size));
            let age = clock::now().saturating_since(envelope.head.accepted);
            delivery.age_seconds.observe(age.as_secs_f64());
        }
    }

    /// Counts the outcome of an attempt for one recipient.
    pub(super) fn settled(&self, disposition: Disposition, local: bool, expired: bool) {
        match disposition {
            Disposition::Delivered if local => &self.stored,
            Disposition::Delivered => &self.relayed,
            Disposition::Failed => &self.bounced,
            Disposition::Deferred if expired => &self.expired,
            Disposition::Deferred => &self.deferred,
        }
        .inc();
    }

    /// Counts a message that has left the quarantine.
    pub(super) fn left_quarantine(&self, why: Leaving) {
        let result = match why {
            Leaving::Released => QuarantineEnd::Released,
            Leaving::Refused => QuarantineEnd::Refused,
            Leaving::Aged => QuarantineEnd::Aged,
        };
        self.all.quarantine.ended.get_or_create(&result).inc();
    }

    /// Counts a notification that the limit of reports suppressed.
    pub(super) fn limited(&self) {
        self.all.delivery.notifications_limited.inc();
    }

    /// Counts event lines that are safe at their target.
    pub(super) fn lines_written(&self, count: usize) {
        self.all.records.written.inc_by(count as u64);
    }

    /// Counts a failed delivery of event lines to their target.
    pub(super) fn lines_failed(&self) {
        self.all.records.failures.inc();
    }

    /// Counts a sender that was refused because too many event lines wait.
    pub(super) fn turned_away_for_lines(&self) {
        self.all.records.refused.inc();
    }

    /// Counts a message of an account that has sent as much as may be.
    pub(super) fn sent_too_much(&self, over: OverSending) {
        let result = match over {
            OverSending::Defer => OverLimit::Deferred,
            OverSending::Hold => OverLimit::Held,
        };
        self.all.smtp.over_limit.get_or_create(&result).inc();
    }

    /// Counts a judged message and the rules that matched.
    pub(super) fn judged(&self, judgement: &Judgement) {
        let judged = &self.all.judged;
        let verdict = match judgement.verdict {
            Verdict::Accept => JudgedVerdict::Accept,
            Verdict::Tag => JudgedVerdict::Tag,
            Verdict::Quarantine => JudgedVerdict::Quarantine,
            Verdict::Defer => JudgedVerdict::Defer,
            Verdict::Reject => JudgedVerdict::Reject,
        };
        judged.messages.get_or_create(&verdict).inc();
        for hit in &judgement.hits {
            let name = match hit.name {
                HitName::Rule(rule) => rule.name(),
                HitName::Symbol { .. } => "symbol",
            };
            judged.rules.get_or_create(&RuleName(name)).inc();
        }
    }

    /// Counts a stored delivery status notification.
    pub(super) fn notified(&self, kind: ReportKind) {
        let action = match kind {
            ReportKind::Failed => DsnAction::Failed,
            ReportKind::Delayed => DsnAction::Delayed,
            ReportKind::Delivered => DsnAction::Delivered,
            ReportKind::Relayed => DsnAction::Relayed,
            ReportKind::Expanded => DsnAction::Expanded,
        };
        let notifications = &self.all.delivery.notifications;
        notifications.get_or_create(&action).inc();
    }
}

/// A connection to a next hop; the gauge counts the connection until this value is dropped.
#[derive(Debug)]
pub(super) struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn label(service: Service) -> SmtpService {
    match service {
        Service::Smtp => SmtpService::Smtp,
        Service::Submission => SmtpService::Submission,
        Service::Submissions => SmtpService::Submissions,
        Service::Sendmail => SmtpService::Sendmail,
    }
}

/// Reports to other systems about a day.
impl GatewayMetrics {
    /// Counts messages or sessions for a report.
    pub(super) fn counted(&self, kind: Kind, number: usize) {
        self.reports(kind).counted.inc_by(number as u64);
    }

    /// Counts messages or sessions missing in reports.
    pub(super) fn uncounted(&self, kind: Kind, reason: Uncounted, number: usize) {
        let uncounted = self.reports(kind).uncounted.get_or_create(&reason);
        uncounted.inc_by(number as u64);
    }

    /// Counts the end of a report.
    pub(super) fn report_ended(&self, kind: Kind, end: ReportEnd) {
        self.reports(kind).ended.get_or_create(&end).inc();
    }

    const fn reports(&self, kind: Kind) -> &ReportFigures {
        match kind {
            Kind::Dmarc => &self.all.reports.dmarc,
            Kind::Tls => &self.all.reports.tls,
        }
    }
}
