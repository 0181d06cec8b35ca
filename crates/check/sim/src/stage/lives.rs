//! The lives of processes: claims, recovery, loss of a group, death, and requests to the spool.

use std::rc::Rc;

use vere_delivery::Group;
use vere_spoolwire::{Batch, NodeRefusal, RecordId, SpoolError};

use super::host::SimHost;
use super::pipe::{self, Answer, Pipe, Request, Submitted, Waiting};
use super::spool::Spool;
use super::time::Due;
use super::{Stage, Staged};
use crate::schedule::{MILLI, Micros};

/// A life of a process.
pub(crate) struct Life<W: Staged> {
    pub(crate) group: Rc<Group<SimHost<W>>>,
    pub(crate) alive: bool,
    pub(crate) paused_until: Micros,
    pub(crate) pipe: Pipe,
}

impl<W: Staged> Stage<W> {
    /// Adds a life that begins now with a group.
    pub(crate) fn live(&self, group: &Rc<Group<SimHost<W>>>, spool: &Spool) {
        self.lives.borrow_mut().push(Life {
            group: Rc::clone(group),
            alive: true,
            paused_until: 0,
            pipe: Pipe::open(spool),
        });
    }

    pub(crate) fn is_closed(&self, life: usize) -> bool {
        self.lives.borrow()[life].pipe.closed
    }

    pub(crate) fn number(&self, life: usize, batch: &Batch) -> Vec<RecordId> {
        self.lives.borrow_mut()[life].pipe.number(batch)
    }

    pub(crate) fn queue_number(&self, life: usize, name: &str) -> u32 {
        self.lives.borrow_mut()[life].pipe.queue(name)
    }

    /// The spool has done or refused a request: tells the process. New records without a waiting process are taken back. True: the
    /// process knows that the change is done.
    pub(crate) fn did(
        &self,
        life: usize,
        request: &Request,
        done: Result<Answer, NodeRefusal>,
    ) -> bool {
        match done {
            Ok(_) if request.is_given_up() => {
                if let Some(undo) = request.undo() {
                    let pipe = &mut self.lives.borrow_mut()[life].pipe;
                    pipe.submit(Submitted::Undo(undo), None).let_go();
                    self.due(self.now.get() + MILLI, Due::Perform(life));
                }
                false
            }
            Ok(answer) => {
                pipe::answer(&request.place, Ok(answer));
                true
            }
            Err(refusal) => {
                pipe::answer(&request.place, Err(SpoolError::Refused(refusal)));
                false
            }
        }
    }
}

/// A life submits a request.
pub(super) fn submit<W: Staged>(
    world: &W,
    life: usize,
    what: Submitted,
    deadline: Option<Micros>,
) -> Waiting {
    let early = world.acknowledges_early()
        && !world.is_closed(life)
        && matches!(what, Submitted::Batch(..));
    let waiting = world.lives.borrow_mut()[life].pipe.submit(what, deadline);
    if early {
        pipe::answer(&waiting.0, Ok(Answer::Done));
    }
    let soon = world.now.get() + world.span(100..20 * MILLI);
    world.due(soon, Due::Perform(life));
    if let Some(deadline) = deadline {
        world.due(deadline + 1, Due::Perform(life));
    }
    waiting
}

/// The next request of a life is done, unless the spool stands still.
pub(super) fn perform<W: Staged>(world: &Rc<W>, life: usize) {
    let now = world.now.get();
    let mut lives = world.lives.borrow_mut();
    let pipe = &mut lives[life].pipe;
    for request in &pipe.requests {
        if request.deadline.is_some_and(|deadline| deadline < now) {
            pipe::answer(&request.place, Err(SpoolError::Timeout));
        }
    }
    if pipe.closed || pipe.stalled_until > now {
        let until = pipe.stalled_until;
        if !pipe.closed && !pipe.requests.is_empty() {
            world.due(until, Due::Perform(life));
        }
        return;
    }
    let request = pipe.requests.pop_front();
    drop(lives);
    if let Some(request) = request {
        world.does(life, &request);
    }
}

impl<W: Staged> Life<W> {
    /// Reads the records of the group, and keeps the queues known, as each process does at the start.
    pub(crate) fn begin(world: &Rc<W>, life: usize) {
        let group = Rc::clone(&world.lives.borrow()[life].group);
        world.spawn(life, Box::pin(Rc::clone(&group).keep_known()));
        let task = Rc::clone(world);
        world.spawn(
            life,
            Box::pin(async move {
                loop {
                    match group.recover().await {
                        Ok(found) => {
                            task.note(|| format!("g{life} has read {found:?}"));
                            return group.recovered();
                        }
                        Err(SpoolError::Closed) => return,
                        Err(_) => task.pause(MILLI..200 * MILLI).await,
                    }
                }
            }),
        );
    }

    /// A life loses the group: the first requests on the way are done, up to a place that the seed chooses. Gives the rest without answers.
    pub(crate) fn close(world: &W, life: usize) -> Vec<Request> {
        let mut left = Vec::new();
        loop {
            let request = world.lives.borrow_mut()[life].pipe.requests.pop_front();
            let Some(request) = request else { break };
            if left.is_empty() && world.draw(60) {
                world.does(life, &request);
            } else {
                left.push(request);
            }
        }
        let mut lives = world.lives.borrow_mut();
        lives[life].pipe.closed = true;
        lives[life].group.stop_delivering();
        left
    }

    /// Answers requests that the spool does not do.
    pub(crate) fn give_up(left: &[Request]) {
        for request in left {
            pipe::answer(&request.place, Err(SpoolError::Closed));
        }
    }
}
