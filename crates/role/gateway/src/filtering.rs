//! Content filters: the gateway asks the filters of the settings about a message, at the end of DATA.
//!
//! The gateway asks, because the gateway has the whole message in memory, also a long message received in parts; the broker would need a second
//! copy of each message, and a worker's sandbox has no network.

use std::time::Duration;

use bytes::Bytes;
use vere_filters::{Answer, Asked, Failure, Findings, Mail, Session, Verdict};
use vere_smtp::server::Message;
use vere_telemetry::metrics::{FilterAnswered, FilterName, FilterResult};
use vere_units::TraceId;

use super::metrics::GatewayMetrics;
use super::process::Process;
use super::service::Service;

/// Asks the filters for this mail about a message, at most for the sum of their timeouts. `body` is the text for the filters; the text in
/// `message` is not read, so that the caller can move the octets to `body` without a copy.
pub(super) async fn ask(
    process: &Process,
    (service, mail): (Service, Mail),
    trace: TraceId,
    message: &Message,
    body: &Bytes,
) -> Findings {
    let filters = process.filtering.filters();
    if filters.is_empty(mail) {
        return Findings::default();
    }
    let host = process.settings().hostname.clone();
    let info = &message.session;
    let helo = info.helo.as_ref().map(ToString::to_string);
    let recipients: Vec<&str> = message
        .recipients
        .iter()
        .map(|to| to.forward_path.as_str())
        .collect();
    let id = trace.to_string();
    let tls = info.tls.as_ref();
    let session = Session {
        client: info.address.ip().to_canonical(),
        port: info.address.port(),
        // The name of a local program is its user.
        client_name: match service {
            Service::Sendmail => "localhost",
            _ => info.name.as_deref().unwrap_or_default(),
        },
        helo: helo.as_deref().unwrap_or_default(),
        reverse_path: message.reverse_path.reverse_path.as_str(),
        recipients: &recipients,
        account: info.account.as_deref().unwrap_or_default(),
        id: &id,
        host: &host,
        tls_version: tls.map_or("", |tls| &tls.version),
        tls_cipher: tls.map_or("", |tls| &tls.cipher),
    };
    let findings = filters.ask(mail, body, &session).await;
    for answer in &findings.answers {
        tell(process, trace, answer);
    }
    findings
}

/// Counts and logs the answer of a filter.
fn tell(process: &Process, trace: TraceId, answer: &Answer) {
    let result = result(&answer.asked);
    process
        .metrics
        .filter_asked(&answer.filter, result, answer.took);
    match &answer.asked {
        Asked::Unavailable(failure) => {
            process
                .filtering
                .tell_failure(trace, &answer.filter, failure);
        }
        Asked::Answered(_) | Asked::Skipped { .. } => tracing::debug!(
            queue_id = %trace,
            filter = answer.filter,
            result = result.value(),
            took = ?answer.took,
            "content filter asked"
        ),
    }
}

fn result(asked: &Asked) -> FilterResult {
    match asked {
        Asked::Skipped { .. } => FilterResult::Skipped,
        Asked::Unavailable(Failure::Resting) => FilterResult::Resting,
        Asked::Unavailable(Failure::Full) => FilterResult::Crowded,
        Asked::Unavailable(_) => FilterResult::Unavailable,
        Asked::Answered(outcome) if outcome.virus.is_some() => FilterResult::Virus,
        Asked::Answered(outcome) => match &outcome.verdict {
            Verdict::Accept if outcome.is_marked => FilterResult::Marked,
            Verdict::Accept => FilterResult::Accepted,
            Verdict::Quarantine(_) => FilterResult::Quarantined,
            Verdict::Defer(_) => FilterResult::Deferred,
            Verdict::Reject(_) => FilterResult::Refused,
        },
    }
}

/// Content filters.
impl GatewayMetrics {
    /// Counts the answer of a filter, and the time taken where the filter was asked.
    fn filter_asked(&self, filter: &str, result: FilterResult, took: Duration) {
        let filters = &self.all.filters;
        let filter = FilterName(filter.to_owned());
        let is_asked = !matches!(
            result,
            FilterResult::Skipped | FilterResult::Resting | FilterResult::Crowded
        );
        if is_asked {
            let seconds = filters.seconds.get_or_create(&filter);
            seconds.observe(took.as_secs_f64());
        }
        let answered = FilterAnswered { filter, result };
        filters.answers.get_or_create(&answered).inc();
    }
}
