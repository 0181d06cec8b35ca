//! Gives the messages of a queue to a gateway. A place in the window of an attached connection is to the queue what a
//! connection is to a queue for another MTA.

use std::rc::Rc;

use bytes::Bytes;
use vere_attach::{Deliver, Fate, PlaceResult, Priority, Recipient, UnitKind};
use vere_delivery::{BeforeMessage, Courier, Session, Unroutable};
use vere_mta400::{Destination, RecordRecipient};
use vere_process::clock;
use vere_queue::{Attempt, Disposition, Envelope, RecipientResult, SiteName};
use vere_telemetry::trace::{Event, EventKind};
use vere_x400::Apdu;

use crate::attached::{Results, Slot};
use crate::process::{Group, Process};

/// Messages over one place of a window before others have a turn.
const MESSAGES_MAX: u32 = 100;

/// Delivers to one gateway.
#[derive(Debug)]
pub(crate) struct GatewayCourier {
    /// The group of the queue.
    pub(crate) group: Rc<Group>,
    /// The name of the gateway.
    pub(crate) name: String,
}

/// A place in the window of a connection.
#[derive(Debug)]
pub(crate) struct GatewaySession {
    process: Rc<Process>,
    name: String,
    slot: Slot,
}

impl Courier for GatewayCourier {
    type Route = SiteName;
    type Session = GatewaySession;

    async fn find(&self, _: &vere_queue::Destination) -> Result<SiteName, Unroutable> {
        Ok(SiteName::new(
            [(&*format!("gateway {}", self.name), 0)],
            None,
        ))
    }

    fn site<'a>(&self, route: &'a SiteName) -> &'a SiteName {
        route
    }

    async fn open(&self, _: &SiteName) -> Result<GatewaySession, Unroutable> {
        let name = &self.name;
        let process = &self.group.host.process;
        match process.gateways.slot(name) {
            Some(slot) => Ok(GatewaySession {
                process: Rc::clone(process),
                name: name.clone(),
                slot,
            }),
            None if process.gateways.attached(name) > 0 => Err(Unroutable::Site(format!(
                "the window of gateway {name} is full"
            ))),
            None => Err(Unroutable::Temporary(format!(
                "no program is attached as gateway {name}"
            ))),
        }
    }

    fn messages_max(&self) -> u32 {
        MESSAGES_MAX
    }
}

impl Session for GatewaySession {
    async fn send(
        &mut self,
        envelope: &Rc<Envelope>,
        body: Bytes,
    ) -> Result<Attempt, BeforeMessage> {
        if !self.slot.is_open() {
            return Err(BeforeMessage);
        }
        self.process.note(&Event {
            remote: Some(&self.name),
            attempt: Some(u32::from(envelope.head.attempts).saturating_add(1)),
            ..Event::new(EventKind::Attempt, envelope.head.trace, clock::now())
        });
        let mut attempt = Attempt {
            remote: format!("gateway:{}", self.name),
            reports_taken_over: false,
            results: Vec::with_capacity(envelope.mail.recipients.len()),
        };
        let recipients = recipients(envelope);
        let mut rest = recipients.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(Deliver::fitting(rest).clamp(1, rest.len()));
            rest = later;
            let results = self.part(envelope, &body, now).await;
            attempt.reports_taken_over |= results.own_reports;
            attempt
                .results
                .extend(results.results.into_iter().map(result));
        }
        Ok(attempt)
    }

    fn usable(&mut self) -> bool {
        self.slot.is_open()
    }

    async fn closed(&mut self) {
        self.slot.closed().await;
    }

    async fn quit(&mut self) {}
}

impl GatewaySession {
    /// Delivers to recipients that fit in one frame. There is a result for each.
    async fn part(&self, envelope: &Envelope, body: &Bytes, recipients: &[Recipient]) -> Results {
        let places: Vec<u32> = recipients.iter().map(|one| one.place).collect();
        let to = Destination::Gateway(self.name.clone());
        let unit = match self.process.mta().outgoing(body, &places, &to) {
            Ok(outgoing) => outgoing.apdu,
            Err(error) => return all(&places, Fate::Failed, "5.6.0", &error.to_string()),
        };
        let Some(unit) = unit else {
            return all(&places, Fate::Failed, "5.6.0", "no recipient is left");
        };
        let mut deliver = facts(&unit);
        deliver.trace = envelope.head.trace.to_string();
        deliver.recipients = recipients.to_vec();
        let delivered = self.slot.deliver(deliver, unit.to_pieces()).await;
        delivered.unwrap_or_else(|| {
            let said = "the connection of the gateway ended before its answer";
            all(&places, Fate::Deferred, "4.4.2", said)
        })
    }
}

/// The recipients with their places in the unit.
fn recipients(envelope: &Envelope) -> Vec<Recipient> {
    let recipients = envelope.mail.recipients.iter();
    let place = |tag: &Option<String>| RecordRecipient::place_of(tag.as_deref()?);
    recipients
        .map(|one| Recipient {
            place: place(&one.orcpt).unwrap_or(u32::MAX),
            address: one.address.clone(),
        })
        .collect()
}

/// What a delivery says about the unit.
fn facts(unit: &Apdu) -> Deliver {
    let deliver = Deliver {
        identifier: unit.identifier().to_string(),
        ..Deliver::default()
    };
    match unit {
        Apdu::Message(message) => Deliver {
            kind: UnitKind::Message,
            originator: Some(message.envelope.originator_name.to_string()),
            content_type: Some(message.envelope.content_type.short()),
            priority: match message.envelope.priority {
                vere_x400::Priority::Urgent => Priority::Urgent,
                vere_x400::Priority::NonUrgent => Priority::NonUrgent,
                _ => Priority::Normal,
            },
            ..deliver
        },
        Apdu::Probe(probe) => Deliver {
            kind: UnitKind::Probe,
            originator: Some(probe.originator_name.to_string()),
            content_type: Some(probe.content_type.short()),
            ..deliver
        },
        Apdu::Report(report) => Deliver {
            kind: UnitKind::Report,
            about: Some(report.content.subject_identifier.to_string()),
            content_type: report
                .content
                .content_type
                .as_ref()
                .map(|kind| kind.short()),
            ..deliver
        },
    }
}

fn all(places: &[u32], fate: Fate, status: &str, said: &str) -> Results {
    let result = |place: &u32| PlaceResult {
        place: *place,
        result: fate,
        status: status.to_owned(),
        said: said.to_owned(),
    };
    Results {
        results: places.iter().map(result).collect(),
        own_reports: false,
    }
}

fn result(result: PlaceResult) -> RecipientResult {
    RecipientResult {
        disposition: match result.result {
            Fate::Delivered => Disposition::Delivered,
            Fate::Deferred => Disposition::Deferred,
            Fate::Failed => Disposition::Failed,
        },
        status: result.status,
        // A reply is one line.
        reply: result.said.replace(char::is_control, " "),
        from_remote: true,
    }
}
