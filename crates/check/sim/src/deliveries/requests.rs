//! Requests of gateways to the spool are done, refused or forgotten.

use bytes::Bytes;
use vere_delivery::is_lines;
use vere_spoolwire::{Batch, Operation};

use super::BrokenDelivery;
use super::world::World;
use crate::stage::{self, Answer, Request, Submitted};

impl World {
    /// The spool does a request of a gateway.
    pub(super) fn do_one(&self, life: usize, request: &Request) {
        let mut spool = self.spool.borrow_mut();
        let mut before = Vec::new();
        if let Submitted::Batch(batch, _) = &request.what {
            if self.forgets(batch) {
                drop(spool);
                return stage::answer(&request.place, Ok(Answer::Done));
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
        let done = lives[life].pipe.perform(&mut spool, request);
        drop((spool, lives));
        if self.did(life, request, done)
            && let Submitted::Batch(batch, _) = &request.what
        {
            let mut account = self.account.borrow_mut();
            account.acknowledged(batch.operations(), &before);
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
