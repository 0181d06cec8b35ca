//! What became of every message, by what the world outside of the gateways saw.

use std::collections::{BTreeMap, BTreeSet};

use vere_delivery::{Happened, Leaving};
use vere_queue::{Destination, Disposition, Envelope, ReportKind};
use vere_spoolwire::Operation;
use vere_units::TraceId;

use super::DeliveryFigures;
use super::hops;
use crate::stage::Spool;

/// A recipient of a message.
pub(super) type Copy = (TraceId, String);

/// A message that a gateway was given, or a report in the spool.
#[derive(Debug)]
struct Mail {
    recipients: Vec<String>,
    /// The system is responsible.
    accepted: bool,
}

/// What became of every message.
#[derive(Debug, Default)]
pub(super) struct Account {
    mail: BTreeMap<TraceId, Mail>,
    taken: BTreeMap<Copy, u64>,
    /// How often a copy may be taken, where that is more than once.
    allowed: BTreeMap<Copy, u64>,
    /// Copies that a change ended which its gateway knows to be done.
    settled: BTreeSet<Copy>,
    /// Copies with a report of failure in the spool.
    failed: BTreeSet<Copy>,
    delayed: BTreeSet<Copy>,
    /// Copies that may end without delivery and report: on order, or because nobody is to be told.
    silent: BTreeSet<Copy>,
    /// Messages that stand still, by queue.
    held: BTreeSet<(TraceId, String)>,
    pub(super) figures: DeliveryFigures,
}

impl Account {
    /// A message is given to a gateway.
    pub(super) fn offered(&mut self, trace: TraceId, recipients: Vec<String>) {
        let mail = Mail {
            recipients,
            accepted: false,
        };
        self.mail.insert(trace, mail);
    }

    /// The gateway has answered 250.
    pub(super) fn accepted(&mut self, trace: TraceId) {
        if let Some(mail) = self.mail.get_mut(&trace) {
            mail.accepted = true;
            self.figures.accepted += 1;
        }
    }

    /// An operator was told that a message stands still in a queue.
    pub(super) fn held(&mut self, trace: TraceId, queue: String) {
        self.held.insert((trace, queue));
        self.figures.held += 1;
    }

    /// An operator wants a message to go on, or its time has come.
    pub(super) fn released(&mut self, trace: TraceId, queue: &str) {
        self.held.remove(&(trace, queue.to_owned()));
    }

    /// Messages that stand still.
    pub(super) fn standing(&self) -> Vec<(TraceId, String)> {
        self.held.iter().cloned().collect()
    }

    /// An attempt begins.
    ///
    /// # Errors
    /// When the message stands still.
    pub(super) fn begins(&self, envelope: &Envelope, queue: &str) -> Result<(), String> {
        match self.held.contains(&(envelope.head.trace, queue.to_owned())) {
            true => Err(format!(
                "{} is held for {queue}, and tried",
                envelope.head.trace
            )),
            false => Ok(()),
        }
    }

    /// A next hop has taken a message for a recipient. `owner`: from the gateway that has the group.
    ///
    /// # Errors
    /// When the hop had taken the message before, without a reason, or its sender was told of a failure.
    pub(super) fn took(&mut self, copy: &Copy, owner: bool) -> Result<(), String> {
        let (trace, address) = copy;
        let taken = self.taken.entry(copy.clone()).or_default();
        *taken += 1;
        self.figures.taken += 1;
        self.figures.again += u64::from(*taken > 1);
        if !owner {
            let allowed = self.allowed.entry(copy.clone()).or_insert(1);
            *allowed = (*allowed).max(*taken + 1);
            return Ok(());
        }
        let allowed = self.allowed.get(copy).copied().unwrap_or(1);
        if *taken > allowed {
            return Err(format!(
                "{trace} came to {address} {taken} times, {allowed} allowed"
            ));
        }
        match self.failed.contains(copy) {
            true => Err(format!(
                "{trace} came to {address} after a report of its failure"
            )),
            false => Ok(()),
        }
    }

    /// The gateway does not hear that a copy was taken.
    pub(super) fn unheard(&mut self, copy: &Copy) {
        let taken = self.taken.get(copy).copied().unwrap_or(0);
        let allowed = self.allowed.entry(copy.clone()).or_insert(1);
        *allowed = (*allowed).max(taken + 1);
    }

    /// A gateway has ended. Copies that were taken and are in the spool still may be taken once more, unless the
    /// gateway knew that they had ended there.
    pub(super) fn life_ended(&mut self, spool: &Spool) {
        for queue in spool.queues.values() {
            for (meta, _) in queue.records.values() {
                let Ok(envelope) = Envelope::decode(meta) else {
                    continue;
                };
                for recipient in &envelope.mail.recipients {
                    let copy = (envelope.head.trace, recipient.address.clone());
                    if !self.settled.contains(&copy) {
                        self.unheard(&copy);
                    }
                }
            }
        }
    }

    /// A change is about to be done in the spool: takes note of the reports in it.
    ///
    /// # Errors
    /// When a failure or a delay is told twice.
    pub(super) fn stores(&mut self, operations: &[Operation]) -> Result<(), String> {
        let mut body = None;
        for operation in operations {
            let Operation::Put {
                meta, body: new, ..
            } = operation
            else {
                continue;
            };
            body = new.clone().or(body);
            let Ok(envelope) = Envelope::decode(meta) else {
                continue;
            };
            let text = body.as_deref().map(String::from_utf8_lossy);
            if let Some(report) = text
                .as_deref()
                .and_then(|text| text.strip_prefix("report "))
            {
                self.reports(&envelope, report)?;
            }
        }
        Ok(())
    }

    fn reports(&mut self, envelope: &Envelope, report: &str) -> Result<(), String> {
        let mut words = report.split(' ');
        let kind = words.next().unwrap_or_default();
        let about = words.next().and_then(|trace| trace.parse::<TraceId>().ok());
        let Some(about) = about else { return Ok(()) };
        for address in words {
            let copy = (about, address.to_owned());
            let (told, figure) = match kind {
                "failed" => (&mut self.failed, &mut self.figures.failed),
                "delayed" => (&mut self.delayed, &mut self.figures.delayed),
                _ => continue,
            };
            *figure += 1;
            if !told.insert(copy) {
                return Err(format!("{about} to {address} is told to be {kind} twice"));
            }
        }
        let recipients = envelope.mail.recipients.iter();
        let mail = Mail {
            recipients: recipients.map(|one| one.address.clone()).collect(),
            accepted: true,
        };
        self.mail.insert(envelope.head.trace, mail);
        Ok(())
    }

    /// The gateway knows that a change is done. `before`: the records that it ends or changes.
    pub(super) fn acknowledged(
        &mut self,
        operations: &[Operation],
        before: &[(u32, u64, Envelope)],
    ) {
        for operation in operations {
            let (queue, id, rest) = match operation {
                Operation::Put { .. } => continue,
                Operation::Delete { queue, id } => (queue, id, None),
                // A line about the end has no envelope; a message that leaves the quarantine has one.
                Operation::Move {
                    queue, id, meta, ..
                } => {
                    let rest = meta.as_ref().and_then(|meta| Envelope::decode(meta).ok());
                    (queue, id, rest)
                }
                Operation::Replace { queue, id, meta } => (queue, id, Envelope::decode(meta).ok()),
            };
            let known = before.iter().find(|one| (one.0, one.1) == (queue.0, id.0));
            let Some((_, _, envelope)) = known else {
                continue;
            };
            for recipient in &envelope.mail.recipients {
                let is_same = |one: &vere_queue::Recipient| one.address == recipient.address;
                let left = rest.as_ref();
                if !left.is_some_and(|rest| rest.mail.recipients.iter().any(is_same)) {
                    let copy = (envelope.head.trace, recipient.address.clone());
                    self.settled.insert(copy);
                }
            }
        }
    }

    /// A gateway tells what has happened.
    pub(super) fn hears(&mut self, happened: &Happened<'_>) {
        match happened {
            Happened::Settled {
                job,
                attempt,
                settlement,
                ..
            } => {
                if job.envelope.head.expires.is_some() {
                    self.figures.overdue += settlement.expired.len() as u64;
                }
                for (recipient, result) in job.envelope.mail.recipients.iter().zip(&attempt.results)
                {
                    let over = result.disposition == Disposition::Failed
                        || settlement.expired.contains(&recipient.address);
                    let told = settlement.reports.iter().any(|report| {
                        let mut recipients = report.recipients.iter();
                        report.kind == ReportKind::Failed
                            && recipients.any(|one| one.address == recipient.address)
                    });
                    if over && !told {
                        let copy = (job.envelope.head.trace, recipient.address.clone());
                        self.figures.ordered += u64::from(self.silent.insert(copy));
                    }
                }
            }
            Happened::Purged(trace) => self.removed(*trace, None),
            Happened::Unquarantined(destination, trace, why) => match why {
                Leaving::Released => self.figures.released += 1,
                Leaving::Refused | Leaving::Aged => self.removed(*trace, Some(destination)),
            },
            _ => {}
        }
    }

    /// A message is removed on order, or from the quarantine of one destination.
    fn removed(&mut self, trace: TraceId, from: Option<&Destination>) {
        let mail = self.mail.get(&trace);
        let recipients = mail.map_or(&[][..], |mail| &mail.recipients);
        for address in recipients {
            if from.is_none_or(|from| hops::destination(address) == *from) {
                let copy = (trace, address.clone());
                self.figures.ordered += u64::from(self.silent.insert(copy));
            }
        }
    }

    /// These copies may end without delivery and report: the address of the report has had enough, or somebody else
    /// ended the record.
    pub(super) fn ends_silently(
        &mut self,
        about: TraceId,
        addresses: impl Iterator<Item = String>,
    ) {
        self.silent
            .extend(addresses.map(|address| (about, address)));
    }

    /// Everything has ended.
    ///
    /// # Errors
    /// A copy that was neither taken nor reported.
    pub(super) fn check_end(&self) -> Result<(), String> {
        for (trace, mail) in self.mail.iter().filter(|(_, mail)| mail.accepted) {
            for address in &mail.recipients {
                let copy = (*trace, address.clone());
                let ended = self.taken.contains_key(&copy)
                    || self.failed.contains(&copy)
                    || self.silent.contains(&copy);
                if !ended {
                    return Err(format!("{trace} to {address} is lost"));
                }
            }
        }
        Ok(())
    }
}
