//! The lives of gateways: they claim the group, deliver, lose it and die.

use std::rc::Rc;

use vere_delivery::{Group, work};

use super::BrokenDelivery;
use super::hops::SimCourier;
use super::world::{Event, World};
use crate::schedule::{MILLI, SECOND};
use crate::stage::{Executor, Life, SimHost, Submitted};

impl World {
    /// The group of the gateway that has it.
    pub(super) fn group(&self) -> Rc<Group<SimHost<Self>>> {
        let lives = self.lives.borrow();
        Rc::clone(&lives[lives.len() - 1].group)
    }

    pub(super) fn holds_lease(&self, life: usize) -> bool {
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
        self.live(&group, &self.spool.borrow());
        self.note(|| format!("g{life} claims the group"));
        self.lease.set(None);
        self.after(self.span(MILLI..20 * SECOND), Event::Lease(life));
        let courier = Rc::new(SimCourier {
            world: Rc::clone(self),
            life,
        });
        self.spawn(
            life,
            Box::pin(group.deliver(move |mut worker| {
                let courier = Rc::clone(&courier);
                async move {
                    if let Some(destination) = worker.destination() {
                        work(&mut worker, &*courier, &destination).await;
                    }
                }
            })),
        );
        Life::begin(self, life);
    }

    /// A gateway loses the group: of its requests on the way some first ones are done.
    pub(super) fn close(&self, life: usize) {
        let left = Life::close(self, life);
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
        Life::<Self>::give_up(&left);
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
        self.forget_spawned(life);
        self.new_life();
    }
}
