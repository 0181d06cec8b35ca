//! The parts of a message (X.411 clause 14.3, splitter), the answers to probes, and the report.

use std::collections::BTreeMap;

use vere_x400::{Time, TypeOfMtsUser};

use super::arrival::Arrived;
use super::facts::{Decision, Facts};
use super::routing::Way;
use super::{Mta, Onward, Outcome, Sender};
use crate::destination::Destination;
use crate::reports::Fate;
use crate::subject::{Subject, set_responsible};

/// Recipients by destination; redirected recipients go apart, since the trace differs.
type Parts = BTreeMap<(Destination, bool), Vec<u32>>;

impl Mta {
    /// Makes the parts. Responsible recipients without a part are reported.
    pub(super) fn split(
        &self,
        mut subject: Subject,
        from: Sender<'_>,
        arrived: &Arrived,
        ways: Vec<Way>,
        mut facts: Facts,
    ) -> Outcome {
        let at = from.arrival.at;
        let mut parts = Parts::new();
        let mut fates = Vec::new();
        for (place, way) in (0..).zip(ways) {
            let decision = match way {
                Way::NotOurs => Decision::NotOurs,
                Way::Failed(cause) => {
                    fates.push((place, Fate::failed(cause)));
                    Decision::Failed(cause)
                }
                Way::To { destination, .. } if is_answered(&subject, &destination) => {
                    fates.push((place, probed(at)));
                    Decision::Answered(destination)
                }
                Way::To {
                    destination,
                    redirected,
                } => {
                    let part = parts.entry((destination.clone(), redirected));
                    part.or_default().push(place);
                    Decision::Onward {
                        destination,
                        redirected,
                    }
                }
            };
            facts.decide(place, decision);
        }
        let fields = (0..).zip(&mut subject.envelope.per_recipient_fields);
        for (place, fields) in fields {
            set_responsible(
                fields,
                parts
                    .values()
                    .any(|part| part.binary_search(&place).is_ok()),
            );
        }
        let onward = self.onward(&subject, arrived, parts);
        let report = self
            .site
            .report_about(&subject, &fates, at, from.arrival.id)
            .map(Box::new);
        Outcome {
            apdu: subject.into_apdu(),
            onward,
            report,
            facts,
        }
    }

    fn onward(&self, subject: &Subject, arrived: &Arrived, parts: Parts) -> Vec<Onward> {
        let part = |((destination, _), recipients)| Onward {
            destination,
            recipients,
            not_before: arrived.not_before,
            expires: arrived.expires,
            priority: subject.envelope.priority,
        };
        parts.into_iter().map(part).collect()
    }
}

/// Whether the MTA answers a probe: only for local users.
const fn is_answered(subject: &Subject, destination: &Destination) -> bool {
    subject.is_probe() && matches!(destination, Destination::File(_) | Destination::Store(_))
}

/// The fate of a deliverable recipient.
const fn probed(at: Time) -> Fate {
    Fate::Delivered {
        at,
        user: TypeOfMtsUser::Public,
    }
}
