//! One log line for each accepted or refused message, and for each end or deferral of a recipient. Texts are built only
//! if the log level includes these lines.

use std::net::SocketAddr;

use vere_queue::{Attempt, Disposition, Envelope, RecipientResult, Settlement};
use vere_smtp::server::{Message, Notes, Server};
use vere_telemetry::log::MAIL_TARGET;
use vere_telemetry::trace::EventKind;
use vere_units::TraceId;

use super::service::Service;
use vere_delivery::Part;
use vere_login::login_log;
use vere_process::{clock, refusals};

/// Whether the log level includes these lines.
fn is_on() -> bool {
    tracing::enabled!(target: MAIL_TARGET, tracing::Level::INFO)
}

/// The parts of the log line of a message that is about to be stored.
#[derive(Debug)]
pub(super) struct Accepted {
    service: Service,
    client: SocketAddr,
    account: Option<String>,
    recipients: String,
    queues: String,
}

impl Accepted {
    /// Copies client, recipients and queues of a message; `None` if no line will be written.
    pub(super) fn of(
        service: Service,
        account: Option<&str>,
        message: &Message,
        parts: &[Part],
    ) -> Option<Self> {
        is_on().then(|| Self {
            service,
            client: message.session.address,
            account: account.map(str::to_owned),
            recipients: list(message.recipients.iter().map(|to| to.forward_path.as_str())),
            queues: list(parts.iter().map(|part| part.destination.to_string())),
        })
    }

    /// Writes the line once the message is safe.
    pub(super) fn write(&self, envelope: &Envelope) {
        tracing::info!(
            target: MAIL_TARGET,
            queue_id = %envelope.head.trace,
            service = self.service.name(),
            client = %self.client.ip().to_canonical(),
            port = self.client.port(),
            account = self.account.as_deref(),
            reverse_path = envelope.mail.reverse_path.as_deref().unwrap_or_default(),
            rcpt = self.recipients.as_str(),
            queue = self.queues.as_str(),
            size = envelope.head.size,
            message_id = envelope.mail.message_id.as_deref(),
            "accepted"
        );
    }
}

/// Joins texts with commas. Nearly always there is a single text.
fn list(mut texts: impl Iterator<Item = impl Into<String> + AsRef<str>>) -> String {
    let mut all: String = texts.next().map(Into::into).unwrap_or_default();
    for text in texts {
        all.push(',');
        all.push_str(text.as_ref());
    }
    all
}

/// Writes lines about logins, and about refusals by the session's machine.
pub(super) fn noted(service: Service, session: &Server, notes: &Notes) {
    for login in &notes.logins {
        let peer = session.peer();
        login_log::write(service.name(), peer.address.ip(), peer.tls.is_some(), login);
    }
    refusals::noted(service.name(), session, &notes.refused);
}

/// Writes a line about an attempt's result for a recipient.
pub(super) fn settled(
    kind: EventKind,
    queue: Option<&str>,
    envelope: &Envelope,
    recipient: &str,
    (attempt, result): (&Attempt, &RecipientResult),
    settlement: &Settlement,
) {
    if !is_on() {
        return;
    }
    let age = clock::now()
        .saturating_since(envelope.head.accepted)
        .as_millis();
    let delay_ms = u64::try_from(age).unwrap_or(u64::MAX);
    macro_rules! line {
        ($what:literal $(, $field:ident = $value:expr)*) => {
            tracing::info!(
                target: MAIL_TARGET,
                queue_id = %envelope.head.trace,
                queue,
                reverse_path = envelope.mail.reverse_path.as_deref().unwrap_or_default(),
                rcpt = recipient,
                remote = attempt.remote.as_str(),
                reply = result.reply.as_str(),
                delay_ms,
                $($field = $value,)*
                $what
            )
        };
    }
    match (kind, result.disposition) {
        (EventKind::Expired, _) => line!("expired"),
        (_, Disposition::Delivered) => line!("delivered"),
        (_, Disposition::Failed) => line!("bounced"),
        (_, Disposition::Deferred) => {
            let rest = settlement.remaining.as_ref();
            let next = rest.and_then(|rest| rest.head.not_before);
            line!("deferred", next = next.map(tracing::field::display))
        }
    }
}

/// Writes a line about a report on a message.
pub(super) fn notified(about: TraceId, report: TraceId, to: &str, action: &str) {
    tracing::info!(
        target: MAIL_TARGET,
        queue_id = %report,
        about = %about,
        rcpt = to,
        action,
        "report"
    );
}
