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

/// The recipients of a message, sorted by their ways.
#[derive(Default)]
struct Sorted {
    parts: Parts,
    fates: Vec<(u32, Fate)>,
}

impl Sorted {
    /// Adds a recipient. A probe for a local user ends here with an answer.
    fn add(&mut self, place: u32, way: Way, probed: Option<Time>) -> Decision {
        match (way, probed) {
            (Way::NotOurs, _) => Decision::NotOurs,
            (Way::Failed(cause), _) => {
                self.fates.push((place, Fate::failed(cause)));
                Decision::Failed(cause)
            }
            (Way::To { destination, .. }, Some(at)) if destination.user().is_some() => {
                let user = TypeOfMtsUser::Public;
                self.fates.push((place, Fate::Delivered { at, user }));
                Decision::Answered(destination)
            }
            (
                Way::To {
                    destination,
                    redirected,
                },
                _,
            ) => {
                let part = self.parts.entry((destination.clone(), redirected));
                part.or_default().push(place);
                Decision::Onward {
                    destination,
                    redirected,
                }
            }
        }
    }
}

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
        let probed = subject.is_probe().then_some(at);
        let mut sorted = Sorted::default();
        let fields = subject.envelope.per_recipient_fields.iter_mut();
        for ((place, way), fields) in (0..).zip(ways).zip(fields) {
            let decision = sorted.add(place, way, probed);
            set_responsible(fields, matches!(decision, Decision::Onward { .. }));
            facts.decide(place, decision);
        }
        let onward = onward(&subject, arrived, sorted.parts);
        let report = self
            .site
            .report_about(&subject, &sorted.fates, at, from.arrival.id)
            .map(Box::new);
        Outcome {
            apdu: subject.into_apdu(),
            onward,
            report,
            facts,
        }
    }
}

/// The parts with the times and the grade of the message.
fn onward(subject: &Subject, arrived: &Arrived, parts: Parts) -> Vec<Onward> {
    let part = |((destination, _), recipients)| Onward {
        destination,
        recipients,
        not_before: arrived.not_before,
        expires: arrived.expires,
        priority: subject.envelope.priority,
    };
    parts.into_iter().map(part).collect()
}
