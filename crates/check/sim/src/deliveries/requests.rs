//! What gateways ask of the spool is done, refused, forgotten or held up.

use std::rc::Rc;

use bytes::Bytes;
use vere_delivery::is_lines;
use vere_spoolwire::{Batch, Operation, RecordId, SpoolError};

use super::BrokenDelivery;
use super::pipe::{self, Submitted, Waiting};
use super::world::{Event, World};
use crate::schedule::{MILLI, Micros};

impl World {
    pub(super) fn is_closed(&self, life: usize) -> bool {
        self.lives.borrow()[life].pipe.closed
    }

    pub(super) fn number(&self, life: usize, batch: &Batch) -> Vec<RecordId> {
        self.lives.borrow_mut()[life].pipe.number(batch)
    }

    pub(super) fn queue_number(&self, life: usize, name: &str) -> u32 {
        self.lives.borrow_mut()[life].pipe.queue(name)
    }

    pub(super) fn submit(&self, life: usize, what: Submitted, deadline: Option<Micros>) -> Waiting {
        let early = self.broken == BrokenDelivery::EarlyAcknowledgement
            && !self.is_closed(life)
            && matches!(what, Submitted::Batch(..));
        let waiting = self.lives.borrow_mut()[life].pipe.submit(what, deadline);
        if early {
            pipe::answer(&waiting.0, Ok(pipe::Answer::Done));
        }
        self.after(self.span(100..20 * MILLI), Event::Perform(life));
        if let Some(deadline) = deadline {
            self.push(deadline + 1, Event::Perform(life));
        }
        waiting
    }

    /// The next request of a gateway is done, unless the spool stands still.
    pub(super) fn perform(self: &Rc<Self>, life: usize) {
        let now = self.now.get();
        let mut lives = self.lives.borrow_mut();
        let pipe = &mut lives[life].pipe;
        for request in &pipe.requests {
            if request.deadline.is_some_and(|deadline| deadline < now) {
                pipe::answer(&request.place, Err(SpoolError::Timeout));
            }
        }
        if pipe.closed || pipe.stalled_until > now {
            let until = pipe.stalled_until;
            if !pipe.closed && !pipe.requests.is_empty() {
                self.push(until, Event::Perform(life));
            }
            return;
        }
        let request = pipe.requests.pop_front();
        drop(lives);
        if let Some(request) = request {
            self.do_one(life, &request);
        }
    }

    pub(super) fn do_one(&self, life: usize, request: &pipe::Request) {
        let mut spool = self.spool.borrow_mut();
        let mut before = Vec::new();
        if let Submitted::Batch(batch, _) = &request.what {
            if self.forgets(batch) {
                drop(spool);
                return pipe::answer(&request.place, Ok(pipe::Answer::Done));
            }
            if spool.check(batch).is_ok() {
                before = spool.named(batch);
                if self.lines {
                    self.hold(spool.check_lines(batch));
                }
                self.hold(self.account.borrow_mut().stores(batch.operations()));
            }
        }
        let mut lives = self.lives.borrow_mut();
        let pipe = &mut lives[life].pipe;
        let done = pipe.perform(&mut spool, request);
        match done {
            Ok(_) if request.is_given_up() => {
                if let Some(undo) = request.undo() {
                    pipe.submit(Submitted::Undo(undo), None).let_go();
                    drop(lives);
                    self.after(MILLI, Event::Perform(life));
                }
            }
            Ok(answer) => {
                if let Submitted::Batch(batch, _) = &request.what {
                    let mut account = self.account.borrow_mut();
                    account.acknowledged(batch.operations(), &before);
                }
                pipe::answer(&request.place, Ok(answer));
            }
            Err(refusal) => pipe::answer(&request.place, Err(SpoolError::Refused(refusal))),
        }
    }

    /// A batch without its lines for other systems: the world is broken.
    pub(super) fn without_lines(&self, batch: &Batch) -> Batch {
        let spool = self.spool.borrow();
        let (mut rest, mut last) = (Batch::new(), Bytes::new());
        for operation in batch.operations() {
            match operation.clone() {
                Operation::Put { queue, meta, body } => {
                    last = body.unwrap_or(last);
                    let name = spool.queues.get(&queue.0).map(|queue| queue.name.as_str());
                    if !name.is_some_and(is_lines) {
                        rest.put(queue, meta, last.clone());
                    }
                }
                Operation::Delete { queue, id } => drop(rest.delete(queue, id)),
                Operation::Replace { queue, id, meta } => drop(rest.replace(queue, id, meta)),
                Operation::Move {
                    queue,
                    id,
                    to,
                    meta,
                } => drop(rest.move_to(queue, id, to, meta)),
            }
        }
        rest
    }

    /// Whether a broken spool acknowledges this change without doing it.
    pub(super) fn forgets(&self, batch: &Batch) -> bool {
        let replaces = |one: &Operation| matches!(one, Operation::Replace { .. });
        match self.broken {
            BrokenDelivery::ForgetfulSpool => self.draw(5),
            BrokenDelivery::ForgetfulReplace => {
                batch.operations().iter().all(replaces) && self.draw(50)
            }
            _ => false,
        }
    }
}
