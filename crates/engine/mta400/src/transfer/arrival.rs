//! Decisions for all recipients of a message (X.411 clause 14.3, front-end; clause 14.2, deferred delivery): border,
//! critical extensions, loops, times, trace.

use vere_x400::{Criticality, ExtensionValue, StandardExtension, Time};

use super::trace::{self, Passed};
use super::{Mta, Sender};
use crate::cause::Cause;
use crate::subject::Subject;

/// The decisions.
#[derive(Debug)]
pub(super) struct Arrived {
    /// The cause against all recipients.
    pub(super) stopped: Option<Cause>,
    /// The time of a deferred delivery.
    pub(super) not_before: Option<Time>,
    /// The end of attempts.
    pub(super) expires: Time,
}

impl Mta {
    /// Checks a message and adds trace elements.
    pub(super) fn arrive(&self, subject: &mut Subject, from: Sender<'_>) -> Arrived {
        let inside = self.is_inside(from);
        let at = from.arrival.at;
        let deferred = subject.envelope.deferred_delivery_time;
        // The first MTA in the domain waits; later MTAs pass the message on.
        let not_before = deferred.filter(|time| *time > at && !inside);
        let latest = latest(subject);
        let grade = self
            .site
            .expiry(subject.envelope.priority, not_before.unwrap_or(at));
        let expires = match latest {
            Ok(Some(latest)) => latest.min(grade),
            _ => grade,
        };
        let stopped = self
            .stopped(subject, from)
            .or_else(|| latest.err())
            .or_else(|| (expires <= not_before.unwrap_or(at)).then_some(Cause::Expired));
        let passed = Passed {
            site: &self.site,
            inside,
            at,
            deferred: not_before,
        };
        let envelope = &mut subject.envelope;
        trace::add(
            &mut envelope.trace_information,
            &mut envelope.extensions,
            &passed,
        );
        Arrived {
            stopped,
            not_before,
            expires,
        }
    }

    fn stopped(&self, subject: &Subject, from: Sender<'_>) -> Option<Cause> {
        let envelope = &subject.envelope;
        let border = from
            .terms
            .and_then(|terms| terms.inbound.stops(subject.crossing()));
        border
            .or_else(|| {
                let critical = envelope
                    .extensions
                    .unknown_critical(Criticality::FOR_TRANSFER);
                critical.map(|_| Cause::CriticalExtension)
            })
            .or_else(|| {
                trace::fault(
                    &self.site,
                    &envelope.trace_information,
                    &envelope.extensions,
                    self.is_inside(from),
                )
            })
    }
}

/// The latest delivery time.
fn latest(subject: &Subject) -> Result<Option<Time>, Cause> {
    let extensions = &subject.envelope.extensions;
    match extensions.value(StandardExtension::LatestDeliveryTime) {
        Ok(Some(ExtensionValue::LatestDeliveryTime(time))) => Ok(Some(time)),
        Ok(_) => Ok(None),
        Err(_) => Err(Cause::ProtocolViolation),
    }
}
