//! The fate of every message and of every transfer, as the world outside of the MTAs saw both.

use std::collections::{BTreeMap, BTreeSet};

use vere_delivery::is_lines;
use vere_queue::Envelope;
use vere_spoolwire::Operation;
use vere_units::TraceId;
use vere_x400::{
    Apdu, GlobalDomainIdentifier, Message, PerRecipientIndicators, Report, ReportType,
    TraceInformation,
};

use super::SwitchingFigures;
use super::mtas;
use crate::stage::Spool;

/// A unit that an MTA passes on: the id of the unit in the MTA, and the destination. Ids differ between MTAs and between copies.
pub(super) type Handover = (TraceId, String);

/// A recipient of a message: the local identifier of the message, and the number of the recipient.
type Copy = (String, u32);

/// The wish of the originator about a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Delivered, or reported as failed.
    pub(super) delivered: bool,
    /// A report comes in any case.
    pub(super) reported: bool,
}

/// The state of a handover.
#[derive(Debug, Default)]
struct Passing {
    /// How often the next system has taken the unit.
    taken: u64,
    /// The permitted number of copies; 0 stands for a single copy.
    allowed: u64,
    /// An attempt has begun, without a known outcome.
    open: bool,
}

/// The fates of all messages.
#[derive(Debug, Default)]
pub(super) struct Account {
    wanted: BTreeMap<Copy, Wanted>,
    accepted: BTreeSet<String>,
    delivered: BTreeMap<Copy, u64>,
    failed: BTreeMap<Copy, u64>,
    confirmed: BTreeMap<Copy, u64>,
    passing: BTreeMap<Handover, Passing>,
    /// Handovers of units that are being stored, by their ids at the receiver.
    storing: BTreeMap<TraceId, Handover>,
    /// A copy was taken again somewhere, or may be.
    excused: bool,
    pub(super) figures: SwitchingFigures,
}

impl Account {
    /// A user submits a message.
    pub(super) fn offered(&mut self, id: &str, wanted: &[Wanted]) {
        for (number, wanted) in (1..).zip(wanted) {
            self.wanted.insert((id.to_owned(), number), *wanted);
        }
    }

    /// The first MTA has accepted a message.
    pub(super) fn accepted(&mut self, id: String) {
        self.figures.accepted += 1;
        self.accepted.insert(id);
    }

    /// An attempt begins.
    pub(super) fn begins(&mut self, of: &Handover) {
        self.passing.entry(of.clone()).or_default().open = true;
    }

    /// The outcome of an attempt is known: the next system has the unit, or has not.
    pub(super) fn ends(&mut self, of: &Handover, told: bool) -> Result<(), String> {
        let passing = self.passing.entry(of.clone()).or_default();
        passing.open = false;
        match told && passing.taken == 0 {
            true => Err(format!("{of:?} counts as passed on, and was not taken")),
            false => Ok(()),
        }
    }

    /// A receiver is about to store a unit under an id.
    pub(super) fn stores_soon(&mut self, trace: TraceId, of: &Handover) {
        self.storing.insert(trace, of.clone());
    }

    /// A change is about to be done in a spool: takes note of the units in the change.
    ///
    /// # Errors
    /// When a unit was taken before, without a promised reason.
    pub(super) fn stores(&mut self, operations: &[Operation]) -> Result<(), String> {
        let mut taken = BTreeSet::new();
        for operation in operations {
            if let Operation::Put { meta, .. } = operation
                && let Ok(envelope) = Envelope::decode(meta)
                && let Some(of) = self.storing.get(&envelope.head.trace)
            {
                taken.insert(of.clone());
            }
        }
        taken.iter().try_for_each(|of| self.took(of))
    }

    /// A dead process leaves new records in the spool that the process had given up, and did not take back in time. The senders were
    /// not told, and pass the units on again.
    pub(super) fn leaves(&mut self, traces: impl Iterator<Item = TraceId>) {
        let left: BTreeSet<_> = traces
            .filter_map(|trace| self.storing.get(&trace).cloned())
            .collect();
        for of in left {
            let passing = self.passing.entry(of).or_default();
            passing.taken += 1;
            passing.allowed = passing.allowed.max(passing.taken + 1);
            self.excused = true;
        }
    }

    /// The next system has taken a unit.
    ///
    /// # Errors
    /// When the unit was taken before, without a promised reason.
    pub(super) fn took(&mut self, of: &Handover) -> Result<(), String> {
        let passing = self.passing.entry(of.clone()).or_default();
        passing.taken += 1;
        self.figures.again += u64::from(passing.taken > 1);
        match passing.taken > passing.allowed.max(1) {
            true => Err(format!(
                "{of:?} was taken {} times, {} allowed",
                passing.taken,
                passing.allowed.max(1)
            )),
            false => Ok(()),
        }
    }

    /// A process has died that passes units on. Units in the spool may be passed on again, after an attempt that reached the next system
    /// or was in progress or in doubt.
    pub(super) fn sender_died(&mut self, spool: &Spool) {
        let mail = spool.queues.values().filter(|queue| !is_lines(&queue.name));
        for queue in mail {
            for (meta, _) in queue.records.values() {
                let Ok(envelope) = Envelope::decode(meta) else {
                    continue;
                };
                let of = (envelope.head.trace, queue.name.clone());
                let Some(passing) = self.passing.get_mut(&of) else {
                    continue;
                };
                if passing.taken > 0 || passing.open {
                    // The receiver may be storing the unit from the dead process.
                    let late = u64::from(passing.open);
                    passing.allowed = passing.allowed.max(passing.taken + 1) + late;
                    self.excused = true;
                }
                passing.open = false;
            }
        }
    }

    /// An MTA has died that receives units. Units in the spool may come again, unless the senders know of the storage.
    pub(super) fn receiver_died(&mut self, name: &str) {
        let here = |of: &Handover| of.1 == name;
        for (_, passing) in self.passing.iter_mut().filter(|(of, _)| here(of)) {
            if passing.taken > 0 && passing.open {
                passing.allowed = passing.allowed.max(passing.taken + 1);
                self.excused = true;
            }
        }
    }

    /// A user has received a unit.
    ///
    /// # Errors
    /// When the trace is not the trace of the row.
    pub(super) fn delivered(&mut self, apdu: &Apdu, at: usize) -> Result<(), String> {
        match apdu {
            Apdu::Message(message) => self.message(message, at),
            Apdu::Report(report) => self.report(report, at),
            Apdu::Probe(_) => Err("a probe was delivered".to_owned()),
        }
    }

    fn message(&mut self, message: &Message, at: usize) -> Result<(), String> {
        let envelope = &message.envelope;
        check_trace(&envelope.trace_information, 0, at)?;
        let id = envelope.message_identifier.local_identifier.to_string();
        for one in &envelope.per_recipient_fields {
            let responsible = PerRecipientIndicators::RESPONSIBILITY;
            if one.per_recipient_indicators.contains(responsible) {
                let copy = (id.clone(), one.originally_specified_recipient_number);
                *self.delivered.entry(copy).or_default() += 1;
                self.figures.delivered += 1;
            }
        }
        Ok(())
    }

    fn report(&mut self, report: &Report, at: usize) -> Result<(), String> {
        let trace = &report.envelope.trace_information;
        let first = trace
            .0
            .first()
            .map(|element| &element.global_domain_identifier);
        let from = (0..mtas::NAMES.len()).find(|mta| Some(&mtas::domain(*mta)) == first);
        check_trace(trace, from.unwrap_or(at), at)?;
        let content = &report.content;
        let id = content.subject_identifier.local_identifier.to_string();
        for one in &content.per_recipient_fields {
            let copy = (id.clone(), one.originally_specified_recipient_number);
            let told = match one.last_trace_information.report_type {
                ReportType::NonDelivery(_) => {
                    self.figures.failed += 1;
                    &mut self.failed
                }
                ReportType::Delivery(_) => &mut self.confirmed,
            };
            *told.entry(copy).or_default() += 1;
        }
        Ok(())
    }

    /// Everything has ended.
    ///
    /// # Errors
    /// A recipient that was lost, or doubled without a reason.
    pub(super) fn check_end(&self) -> Result<(), String> {
        for (copy, wanted) in &self.wanted {
            let count = |of: &BTreeMap<Copy, u64>| of.get(copy).copied().unwrap_or(0);
            let ends = (count(&self.delivered), count(&self.failed));
            let confirmed = count(&self.confirmed);
            let (right, wrong) = match wanted.delivered {
                true => ends,
                false => (ends.1, ends.0),
            };
            let is_lost = right == 0 || wanted.reported && wanted.delivered && confirmed == 0;
            if is_lost && self.accepted.contains(&copy.0) {
                return Err(format!(
                    "{copy:?} is lost: {wanted:?}, {ends:?}, {confirmed}"
                ));
            }
            if wrong > 0 || !self.excused && right.max(confirmed) > 1 {
                return Err(format!("{copy:?} has ended {ends:?}, reported {confirmed}"));
            }
        }
        Ok(())
    }
}

/// Checks that a trace has each MTA of the way once, in order: each MTA is a domain.
fn check_trace(trace: &TraceInformation, from: usize, to: usize) -> Result<(), String> {
    let passed = trace
        .0
        .iter()
        .map(|one| one.global_domain_identifier.clone());
    let passed: Vec<GlobalDomainIdentifier> = passed.collect();
    let all: Vec<usize> = match from <= to {
        true => (from..=to).collect(),
        false => (to..=from).rev().collect(),
    };
    let expected: Vec<_> = all.into_iter().map(mtas::domain).collect();
    match passed == expected {
        true => Ok(()),
        false => Err(format!("the trace is {passed:?}; expected {expected:?}")),
    }
}
