//! The lives of gateways: they claim the group, deliver, lose it and die.

use std::rc::Rc;

use vere_delivery::{Group, work};
use vere_spoolwire::SpoolError;

use super::BrokenDelivery;
use super::executor::{Executor, Task};
use super::hops::SimCourier;
use super::host::SimHost;
use super::pipe::{self, Pipe, Submitted};
use super::world::{Event, World};
use crate::schedule::{MILLI, Micros, SECOND};

/// One life of a gateway.
pub(super) struct Life {
    pub(super) group: Rc<Group<SimHost>>,
    pub(super) alive: bool,
    pub(super) paused_until: Micros,
    pub(super) pipe: Pipe,
}

impl World {
    pub(super) fn spawn(&self, life: usize, task: Task) {
        self.spawned.borrow_mut().push((life, task));
    }

    /// The group of the gateway that has it.
    pub(super) fn group(&self) -> Rc<Group<SimHost>> {
        let lives = self.lives.borrow();
        Rc::clone(&lives[lives.len() - 1].group)
    }

    pub(super) fn has_lease(&self, life: usize) -> bool {
        self.lease.get() == Some(life)
    }

    /// Another life of a gateway claims the group, reads it and delivers.
    pub(super) fn new_life(self: &Rc<Self>) {
        let before = self.lives.borrow().len().checked_sub(1);
        if let Some(before) = before {
            self.close(before);
        }
        let life = self.lives.borrow().len();
        let host = SimHost::new(self, life);
        let group = Rc::new(Group::new(host, self.policy.clone(), self.lines));
        self.lives.borrow_mut().push(Life {
            group: Rc::clone(&group),
            alive: true,
            paused_until: 0,
            pipe: Pipe::open(&self.spool.borrow()),
        });
        self.note(|| format!("g{life} claims the group"));
        self.lease.set(None);
        self.after(self.span(MILLI..20 * SECOND), Event::Lease(life));
        let courier = Rc::new(SimCourier {
            world: Rc::clone(self),
            life,
        });
        let one = Rc::clone(&group);
        self.spawn(
            life,
            Box::pin(one.deliver(move |mut worker| {
                let courier = Rc::clone(&courier);
                async move {
                    if let Some(destination) = worker.destination() {
                        work(&mut worker, &*courier, &destination).await;
                    }
                }
            })),
        );
        self.spawn(life, Box::pin(Rc::clone(&group).keep_known()));
        let world = Rc::clone(self);
        self.spawn(
            life,
            Box::pin(async move {
                loop {
                    match group.recover().await {
                        Ok(found) => {
                            world.note(|| format!("g{life} has read {found:?}"));
                            return group.recovered();
                        }
                        Err(SpoolError::Closed) => return,
                        Err(_) => world.pause(MILLI..200 * MILLI).await,
                    }
                }
            }),
        );
    }

    /// A gateway loses the group: of its requests on the way some first ones are done.
    pub(super) fn close(&self, life: usize) {
        let mut left = Vec::new();
        loop {
            let request = {
                let mut lives = self.lives.borrow_mut();
                lives[life].pipe.requests.pop_front()
            };
            let Some(request) = request else { break };
            if left.is_empty() && self.draw(60) {
                self.do_one(life, &request);
            } else {
                left.push(request);
            }
        }
        let mut lives = self.lives.borrow_mut();
        lives[life].pipe.closed = true;
        lives[life].group.stop_delivering();
        drop(lives);
        if let Some(Submitted::Batch(batch, ids)) = left.first().map(|one| &one.what)
            && self.broken == BrokenDelivery::TornBatch
        {
            let mut spool = self.spool.borrow_mut();
            let count = self.random.borrow_mut().below(batch.operations().len() + 1);
            if spool.check(batch).is_ok() {
                let some = &batch.operations()[..count];
                self.hold(self.account.borrow_mut().stores(some));
                spool.apply_some(some, ids);
            }
        }
        for request in left {
            pipe::answer(&request.place, Err(SpoolError::Closed));
        }
        let spool = self.spool.borrow();
        self.account.borrow_mut().life_ended(&spool);
    }

    pub(super) fn kill(self: &Rc<Self>, executor: &mut Executor) {
        let life = self.lives.borrow().len() - 1;
        self.note(|| format!("g{life} is killed"));
        self.account.borrow_mut().figures.kills += 1;
        self.close(life);
        self.lives.borrow_mut()[life].alive = false;
        executor.kill(life);
        drop(self.spawned.take());
        self.new_life();
    }
}
