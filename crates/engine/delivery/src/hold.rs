//! Holds single messages for operators, and releases them. The message's own record keeps the hold, so that the hold
//! outlasts a restart and applies for a gateway that takes the group over.

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use vere_queue::ledger::OrderNotice;
use vere_queue::order::FOREVER;
use vere_queue::{Destination, Envelope, HoldCause, MessageSummary, Standing};
use vere_spoolwire::{Batch, NodeRefusal, QueueId, RecordId, SpoolError};
use vere_units::{Timestamp, TraceId};

use crate::group::Group;
use crate::host::{Happened, Host};
use crate::orders::Unkept;
use crate::{lines, reading};

/// An operator's wish for one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageChange {
    /// The message is not delivered.
    Hold,
    /// Ends a hold.
    Release,
}

/// The result of a hold or release in one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldOutcome {
    /// The change is done.
    Done,
    /// Nothing changed: the message was being delivered, or has left.
    Busy,
    /// Nothing changed: the message was not held.
    NotHeld,
    /// Nothing changed: the message is in the quarantine, which has commands of its own.
    Quarantined,
}

/// A message in one queue that is to be held or released.
#[derive(Debug)]
pub struct Holding<H: Host> {
    /// The group of the queue.
    pub group: Rc<Group<H>>,
    /// The queue's destination.
    pub destination: Destination,
    queue: QueueId,
    record: RecordId,
    /// The message.
    pub trace: TraceId,
}

impl<H: Host> Group<H> {
    /// Finds a message in all queues of the group, or in the queue of one destination.
    pub fn holdings(
        self: &Rc<Self>,
        wanted: Option<&Destination>,
        trace: TraceId,
    ) -> Vec<Holding<H>> {
        let found: Vec<_> = self.queues.look(|queues| queues.places(trace).collect());
        let holding = |(queue, record)| {
            let destination = self.queues.destination(queue)?;
            let holding = Holding {
                group: Rc::clone(self),
                destination,
                queue,
                record,
                trace,
            };
            Some(holding).filter(|one| wanted.is_none_or(|wanted| *wanted == one.destination))
        };
        found.into_iter().filter_map(holding).collect()
    }
}

impl<H: Host> Holding<H> {
    /// Holds the message until a time, or releases it. Of several changes of one group only one may run at a time.
    ///
    /// # Errors
    /// [`Unkept`]: the record does not keep the change, or perhaps.
    pub async fn change(
        &self,
        change: MessageChange,
        until: Timestamp,
    ) -> Result<HoldOutcome, Unkept> {
        let Some(before) = self.message() else {
            return Ok(HoldOutcome::Busy);
        };
        if before.standing == Standing::Quarantined {
            return Ok(HoldOutcome::Quarantined);
        }
        let wanted = match change {
            MessageChange::Hold => Some(until),
            MessageChange::Release if before.standing != Standing::Held => {
                return Ok(HoldOutcome::NotHeld);
            }
            MessageChange::Release => None,
        };
        // The message stands still while its record changes, also when the end of its hold comes meanwhile.
        if !self.stand(Some(FOREVER)) {
            return Ok(HoldOutcome::Busy);
        }
        let kept = self.keep(wanted).await;
        match &kept {
            Ok(()) => self.stand(wanted),
            Err(Unkept::Unchanged(SpoolError::Refused(NodeRefusal::NoRecord))) => {
                self.lose();
                return Ok(HoldOutcome::Busy);
            }
            Err(Unkept::Unchanged(_)) => self.stand(before.held_until),
            // The message stands still until its record is read again, which says what applies.
            Err(_) => true,
        };
        kept?;
        let told = Happened::Held(&self.destination, self.trace, wanted);
        self.group.host.tell(&told);
        Ok(HoldOutcome::Done)
    }

    /// The message as the queues know it.
    pub fn message(&self) -> Option<MessageSummary> {
        self.group
            .queues
            .look(|queues| queues.message(self.queue, self.record, self.trace))
    }

    /// Whether messages behind a held one wait for it.
    pub fn keeps_order(&self) -> bool {
        let queues = &self.group.queues;
        queues.look(|queues| queues.keeps_order(self.queue))
    }

    /// Holds the message in memory, or ends that. False: the message is being delivered, or gone.
    fn stand(&self, until: Option<Timestamp>) -> bool {
        let (queue, record, trace) = (self.queue, self.record, self.trace);
        let now = self.group.host.now();
        self.group.queues.change(|queues| match until {
            Some(until) => queues.hold_message(queue, record, trace, until),
            None => queues.release_message(queue, record, trace, now),
        })
    }

    /// Forgets a message whose record is gone: nobody could release the message otherwise.
    fn lose(&self) {
        let (queue, record, trace) = (self.queue, self.record, self.trace);
        let was_here = self
            .group
            .queues
            .change(|queues| queues.discard(queue, record, trace));
        if was_here {
            self.group.note_lost(queue, trace);
        }
    }

    /// Stores the hold, or its end, in the message's record.
    async fn keep(&self, until: Option<Timestamp>) -> Result<(), Unkept> {
        let (queue, record) = (self.queue, self.record);
        let host = &self.group.host;
        let found = reading::record(host, self.queue, self.record).await?;
        let found = found.ok_or(SpoolError::Refused(NodeRefusal::NoRecord))?;
        let mut envelope = Envelope::decode(&found.meta).map_err(|_| SpoolError::Invalid)?;
        // A hold that gets another end began when it did.
        let since = envelope
            .head
            .held_since
            .filter(|_| envelope.head.held_until.is_some());
        if envelope.head.held_until.is_none() {
            envelope.head.held_for = HoldCause::Operator;
        }
        envelope.head.held_since = until.map(|_| since.unwrap_or_else(|| host.now()));
        envelope.head.held_until = until;
        let mut batch = Batch::new();
        batch.replace(queue, record, envelope.encode().into());
        let notice = match until {
            Some(_) => OrderNotice::Held,
            None => OrderNotice::Released,
        };
        let told = self
            .group
            .hold_lines(&self.destination, self.trace, notice, until);
        lines::put(&told, &mut batch);
        let committed = host.commit(batch).await;
        committed.map_err(|error| match error {
            SpoolError::Timeout | SpoolError::Closed => Unkept::Unknown(error),
            SpoolError::Refused(_) | SpoolError::Busy | SpoolError::Invalid => error.into(),
        })?;
        self.group.lines_stored(&told);
        Ok(())
    }
}
