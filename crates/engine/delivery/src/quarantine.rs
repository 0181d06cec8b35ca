//! The quarantine: releases messages that the judgement keeps aside, and removes them.
//!
//! A release moves the record to the end of its queue, without the hold and with the present time as the time of
//! acceptance: the message has its full time for attempts, and the place of a new message. The move is one change
//! of the spool, so that after a crash the message is either in the quarantine or on the way. The record notes the
//! release: each attempt sends the message without the mark of unwanted mail ([`Host::as_released`]).
//!
//! A removal tells no sender: the sender of unwanted mail is mostly forged.

use std::rc::Rc;
use std::time::Duration;

use vere_queue::ledger::OrderNotice;
use vere_queue::{Destination, Envelope, HoldCause, MessageSummary};
use vere_spoolwire::{Batch, NodeRefusal, QueueId, RecordId, SpoolError};

use crate::ending::Ending;
use crate::group::Group;
use crate::host::{Happened, Host, Leaving};
use crate::orders::Unkept;
use crate::{lines, reading};

/// Messages that are removed with one change of the spool.
const BATCH: usize = 100;

/// A message in the quarantine of one queue.
#[derive(Debug)]
pub struct Aside<H: Host> {
    /// The group of the queue.
    pub group: Rc<Group<H>>,
    /// The queue's destination.
    pub destination: Destination,
    /// The queue.
    pub queue: QueueId,
    /// The message.
    pub message: MessageSummary,
}

/// The result of a release in one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// Delivery goes on.
    Done,
    /// Nothing changed: the message has left the quarantine before.
    Gone,
}

impl<H: Host> Group<H> {
    /// The messages of the quarantine, queue by queue, in acceptance order.
    pub fn quarantined(self: &Rc<Self>) -> Vec<Aside<H>> {
        let found: Vec<_> = self.queues.look(|queues| queues.quarantined().collect());
        self.aside(found)
    }

    fn aside(self: &Rc<Self>, found: Vec<(QueueId, MessageSummary)>) -> Vec<Aside<H>> {
        let aside = |(queue, message)| {
            let destination = self.queues.destination(queue)?;
            let group = Rc::clone(self);
            Some(Aside {
                group,
                destination,
                queue,
                message,
            })
        };
        found.into_iter().filter_map(aside).collect()
    }

    /// Removes messages that are at least as old as `keep` from the quarantine, by the clock of the queues. Returns
    /// how many.
    ///
    /// # Errors
    /// When the spool does not answer; the next call goes on.
    pub async fn age_quarantine(self: &Rc<Self>, keep: Duration) -> Result<usize, SpoolError> {
        // The clock is looked at first: the ages follow a step before the ages count.
        let now = self.queue_time();
        let mut removed = 0;
        for queue in self.queues.look(vere_queue::Queues::active) {
            loop {
                let aged = self.queues.look(|queues| {
                    let aged = queues.aged(queue, keep, now, BATCH);
                    aged.into_iter().map(|message| (queue, message)).collect()
                });
                let aged = self.aside(aged);
                if aged.is_empty() {
                    break;
                }
                let count = self.remove_quarantined(&aged, Leaving::Aged).await?;
                if count == 0 {
                    break;
                }
                removed += count;
                self.host.pause(Duration::ZERO).await;
            }
        }
        Ok(removed)
    }

    /// Removes messages from the quarantine without a report. Returns how many: others have left before.
    ///
    /// # Errors
    /// When the spool does not answer. Messages of earlier batches are removed.
    pub async fn remove_quarantined(
        &self,
        messages: &[Aside<H>],
        why: Leaving,
    ) -> Result<usize, SpoolError> {
        let mut removed = 0;
        for batch in messages.chunks(BATCH) {
            let mut ends = Vec::with_capacity(batch.len());
            let mut trouble = None;
            for one in batch {
                match self.lines_of(one).await {
                    Ok(lines) => ends.extend(self.take_from_quarantine(one, why, lines)),
                    Err(error) => {
                        trouble = Some(error);
                        break;
                    }
                }
            }
            // What is out of memory ends in the spool too, whatever the next record's trouble is.
            self.end_records(&ends).await;
            removed += ends.len();
            if let Some(error) = trouble {
                return Err(error);
            }
        }
        Ok(removed)
    }

    fn take_from_quarantine(
        &self,
        one: &Aside<H>,
        why: Leaving,
        lines: lines::Lines,
    ) -> Option<Ending> {
        let (queue, MessageSummary { record, trace, .. }) = (one.queue, one.message);
        let is_ours = self
            .queues
            .change(|queues| queues.begin_release(queue, record, trace));
        if !is_ours {
            return None;
        }
        self.queues
            .change(|queues| queues.lose_released(queue, record, trace));
        self.host
            .tell(&Happened::Unquarantined(&one.destination, trace, why));
        Some(Ending {
            queue,
            record,
            size: one.message.size,
            lines,
        })
    }

    /// The lines for other systems about a removed message; nothing is read where such lines are off.
    async fn lines_of(&self, one: &Aside<H>) -> Result<lines::Lines, SpoolError> {
        if !self.event_lines.is_on() {
            return Ok(Vec::new());
        }
        let (queue, record) = (one.queue, one.message.record);
        let found = reading::record(&self.host, queue, record).await?;
        let envelope = found.and_then(|found| Envelope::decode(&found.meta).ok());
        let lines = envelope.map(|envelope| self.removed_lines(queue, record, &envelope));
        Ok(lines.unwrap_or_default())
    }
}

impl<H: Host> Aside<H> {
    /// Reads the message; `None` if its record is gone.
    ///
    /// # Errors
    /// When the spool does not answer.
    pub async fn read(&self) -> Result<Option<(Envelope, bytes::Bytes)>, SpoolError> {
        let found = reading::record(&self.group.host, self.queue, self.message.record).await?;
        Ok(found.and_then(|found| Some((Envelope::decode(&found.meta).ok()?, found.body))))
    }

    /// Releases the message: delivery goes on at once.
    ///
    /// # Errors
    /// [`Unkept`]: the message is in the quarantine as before; after [`Unkept::Unknown`] perhaps not.
    pub async fn release(&self) -> Result<Released, Unkept> {
        let (queue, MessageSummary { record, trace, .. }) = (self.queue, self.message);
        let queues = &self.group.queues;
        let begun = queues.change(|queues| queues.begin_release(queue, record, trace));
        if !begun {
            return Ok(Released::Gone);
        }
        match self.move_on().await {
            Ok((new, envelope)) => {
                let now = self.group.host.now();
                queues.change(|queues| {
                    queues.released(queue, (record, new), envelope, None, now);
                });
                let left = (&self.destination, trace, Leaving::Released);
                let told = Happened::Unquarantined(left.0, left.1, left.2);
                self.group.host.tell(&told);
                Ok(Released::Done)
            }
            Err(SpoolError::Refused(NodeRefusal::NoRecord)) => {
                if queues.change(|queues| queues.lose_released(queue, record, trace)) {
                    self.group.note_lost(queue, trace);
                }
                Ok(Released::Gone)
            }
            Err(error) => {
                queues.change(|queues| queues.take_back(queue, record, trace));
                Err(match error {
                    SpoolError::Timeout | SpoolError::Closed => Unkept::Unknown(error),
                    SpoolError::Refused(_) | SpoolError::Busy | SpoolError::Invalid => error.into(),
                })
            }
        }
    }

    /// Moves the record to the end of its queue. Returns its new number and envelope.
    async fn move_on(&self) -> Result<(RecordId, Envelope), SpoolError> {
        let (host, queue) = (&self.group.host, self.queue);
        let record = self.message.record;
        let found = reading::record(host, queue, record).await?;
        let found = found.ok_or(SpoolError::Refused(NodeRefusal::NoRecord))?;
        let mut envelope = Envelope::decode(&found.meta).map_err(|_| SpoolError::Invalid)?;
        let head = &mut envelope.head;
        (head.held_until, head.held_since) = (None, None);
        (head.held_for, head.is_released) = (HoldCause::Operator, true);
        (head.accepted, head.seen) = (host.now(), None);
        let mut batch = Batch::new();
        batch.move_to(queue, record, queue, Some(envelope.encode().into()));
        let (destination, trace) = (&self.destination, self.message.trace);
        let notice = OrderNotice::Released;
        let told = self.group.hold_lines(destination, trace, notice, None);
        lines::put(&told, &mut batch);
        let committed = host.commit(batch).await?;
        self.group.lines_stored(&told);
        let new = committed.ids.first().copied();
        Ok((new.ok_or(SpoolError::Invalid)?, envelope))
    }
}
