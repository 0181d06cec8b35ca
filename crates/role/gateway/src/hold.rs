//! Holds single messages for operators, and releases them. The hold is kept in the message's own record, so
//! that it holds after a restart, and for a gateway that takes the group over.

use std::rc::Rc;
use std::time::Duration;

use vere_queue::ledger::OrderNotice;
use vere_queue::order::FOREVER;
use vere_queue::{Destination, Envelope, MessageSummary, Standing};
use vere_spool::owner::Batch;
use vere_spoolwire::{QueueId, RecordId};
use vere_telemetry::trace::{Event, EventKind};
use vere_units::{Timestamp, TraceId};

use super::group::Group;
use super::groups::Groups;
use super::orders::Unkept;
use super::{clock, event_lines, orders, reading};
use vere_control::{Answer, HoldOutcome, HoldRow, MessageChange};
use vere_link::link::SpoolError;

/// Holds or releases a message, in the queue of one destination or in all that it waits in, adopted ones
/// too.
pub(super) async fn message(
    groups: &Groups,
    destination: Option<&str>,
    id: TraceId,
    change: MessageChange,
    seconds: Option<u64>,
) -> Answer {
    let wanted = match destination.map(str::parse::<Destination>).transpose() {
        Ok(wanted) => wanted,
        Err(error) => return Answer::Error(error.to_string()),
    };
    if !groups.are_recovered() {
        return Answer::Error("the queues are not read back yet; ask again".to_owned());
    }
    let span = seconds.map(Duration::from_secs);
    let until = span.map_or(FOREVER, |span| clock::now() + span);
    let mut rows = Vec::new();
    for one in &groups.all() {
        for place in places(one, wanted.as_ref(), id) {
            let name = place.destination.to_string();
            let changed = one.in_turn(place.change(change, until)).await;
            match changed.and_then(|row| row) {
                Ok(row) => rows.push(row),
                Err(unkept) => return Answer::Error(format!("{name}: {unkept}")),
            }
        }
    }
    if rows.is_empty() {
        let place = wanted.map_or_else(String::new, |name| format!(" for {name}"));
        return Answer::Error(format!("no message {id} is queued{place}"));
    }
    match serde_json::to_value(rows) {
        Ok(value) => Answer::Ok(value),
        Err(error) => Answer::Error(error.to_string()),
    }
}

fn places(group: &Rc<Group>, wanted: Option<&Destination>, trace: TraceId) -> Vec<Place> {
    let found: Vec<_> = group.queues.look(|queues| queues.places(trace).collect());
    let place = |(queue, record)| {
        let destination = group.queues.destination(queue)?;
        let place = Place {
            group: Rc::clone(group),
            destination,
            queue,
            record,
            trace,
        };
        Some(place).filter(|place| wanted.is_none_or(|wanted| *wanted == place.destination))
    };
    found.into_iter().filter_map(place).collect()
}

/// Where a message waits.
struct Place {
    group: Rc<Group>,
    destination: Destination,
    queue: u32,
    record: u64,
    trace: TraceId,
}

impl Place {
    async fn change(self, change: MessageChange, until: Timestamp) -> Result<HoldRow, Unkept> {
        let Some(before) = self.message() else {
            return Ok(self.row(HoldOutcome::Busy));
        };
        let wanted = match change {
            MessageChange::Hold => Some(until),
            MessageChange::Release if before.standing != Standing::Held => {
                return Ok(self.row(HoldOutcome::NotHeld));
            }
            MessageChange::Release => None,
        };
        // It stands still while its record changes, also when the end of its hold comes meanwhile.
        if !self.stand(Some(FOREVER)) {
            return Ok(self.row(HoldOutcome::Busy));
        }
        let kept = self.keep(wanted).await;
        match &kept {
            Ok(()) => self.stand(wanted),
            Err(Unkept::Unchanged(_)) => self.stand(before.held_until),
            // It stands still until the record is read again, which says what holds.
            Err(_) => true,
        };
        kept?;
        self.note(wanted);
        Ok(self.row(HoldOutcome::Done))
    }

    fn message(&self) -> Option<MessageSummary> {
        self.group
            .queues
            .look(|queues| queues.message(self.queue, self.record, self.trace))
    }

    /// Holds it in memory, or ends that. False: it is being delivered, or gone.
    fn stand(&self, until: Option<Timestamp>) -> bool {
        let (queue, record, trace) = (self.queue, self.record, self.trace);
        self.group.queues.change(|queues| match until {
            Some(until) => queues.hold_message(queue, record, trace, until),
            None => queues.release_message(queue, record, trace, clock::now()),
        })
    }

    /// Keeps the hold, or its end, in the message's record.
    async fn keep(&self, until: Option<Timestamp>) -> Result<(), Unkept> {
        let (queue, record) = (QueueId(self.queue), RecordId(self.record));
        let link = &self.group.link;
        let found = reading::record(link, self.queue, self.record).await?;
        let envelope = found.and_then(|found| Envelope::decode(&found.meta).ok());
        let mut envelope =
            envelope.ok_or(SpoolError::Refused(vere_spoolwire::Refusal::NoRecord))?;
        // A hold that gets another end began when it did.
        let since = envelope
            .held_since
            .filter(|_| envelope.held_until.is_some());
        envelope.held_since = until.map(|_| since.unwrap_or_else(clock::now));
        envelope.held_until = until;
        let mut batch = Batch::new();
        batch.replace(queue, record, envelope.encode().into());
        let notice = match until {
            Some(_) => OrderNotice::Held,
            None => OrderNotice::Released,
        };
        let lines = self
            .group
            .hold_lines(&self.destination, self.trace, notice, until);
        event_lines::put(&lines, &mut batch);
        let committed = link.commit(batch).await;
        committed.map_err(|error| match error {
            SpoolError::Timeout | SpoolError::Closed => Unkept::Unknown(error),
            SpoolError::Refused(_) | SpoolError::Busy | SpoolError::Invalid => error.into(),
        })?;
        self.group.lines_stored(&lines);
        Ok(())
    }

    fn note(&self, until: Option<Timestamp>) {
        let kind = match until {
            Some(_) => EventKind::Held,
            None => EventKind::Released,
        };
        let name = self.destination.to_string();
        self.group.process.note(&Event {
            queue: Some(&name),
            next: until.filter(|until| *until != FOREVER),
            ..Event::new(kind, self.trace, clock::now())
        });
    }

    fn row(&self, outcome: HoldOutcome) -> HoldRow {
        let message = self.message();
        let held_until = message.and_then(|message| message.held_until);
        let group = &self.group;
        HoldRow {
            id: self.trace.to_string(),
            destination: self.destination.to_string(),
            outcome,
            held_until: held_until.map(orders::until_text),
            in_order: group.queues.look(|queues| queues.keeps_order(self.queue)),
        }
    }
}
