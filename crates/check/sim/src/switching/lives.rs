//! The lives of MTAs: a process dies with the memory, and the next process finds the spool.

use std::rc::Rc;

use vere_delivery::{Group, Worker, file_each, work};

use super::answering::answer;
use super::courier::Transfers;
use super::mtas::{self, NAMES};
use super::process::Process;
use super::stream::SimStream;
use super::world::{Event, Shared, World};
use crate::schedule::{MILLI, SECOND};
use crate::stage::{Executor, Life, SimHost, Submitted};

impl World {
    /// The present life of an MTA.
    pub(super) fn life_at(&self, mta: usize) -> usize {
        self.current.borrow()[mta]
    }

    /// The present life of a peer.
    pub(super) fn life_of(&self, peer: &str) -> usize {
        self.life_at(mtas::place(peer).unwrap_or_default())
    }

    /// An MTA starts, and finds the spool of the last life.
    pub(super) fn new_life(self: &Rc<Self>, mta: usize) {
        let life = self.lives.borrow().len();
        let process = Rc::new(Process::new(mta, life));
        self.processes.borrow_mut().push(Rc::clone(&process));
        let group = Group::new(SimHost::new(self, life), self.policy.clone(), false);
        let group = Rc::new(group);
        self.live(&group, &self.spools[mta].borrow());
        self.current.borrow_mut()[mta] = life;
        self.note(|| format!("g{life} is {}", NAMES[mta]));
        let transfers = Transfers {
            world: Rc::clone(self),
            process,
        };
        let transfers = Rc::new(transfers);
        let serve = move |worker| serve(worker, Rc::clone(&transfers));
        self.spawn(life, Box::pin(group.deliver(serve)));
        Life::begin(self, life);
    }

    /// A peer has opened a connection to an MTA.
    pub(super) fn called(self: &Rc<Self>, mta: usize, stream: SimStream, wire: usize) {
        let life = self.life_at(mta);
        let process = self.process(life);
        let served = answer(Rc::clone(self), (life, process), (stream, wire));
        self.spawn(life, Box::pin(served));
    }

    /// The process of an MTA dies, and another process starts. The connections of the dead process end.
    pub(super) fn kill(self: &Rc<Self>, life: usize, executor: &mut Executor) {
        let mta = self.process(life).mta;
        self.note(|| format!("g{life} is killed"));
        let left = Life::close(&**self, life);
        self.lives.borrow_mut()[life].alive = false;
        executor.kill(life);
        self.forget_spawned(life);
        Life::<Self>::give_up(&left);
        let mut account = self.account.borrow_mut();
        account.figures.kills += 1;
        for request in &left {
            if let Submitted::Undo(batch) = &request.what {
                let named = self.spools[mta].borrow().named(batch);
                account.leaves(named.iter().map(|(_, _, envelope)| envelope.head.trace));
            }
        }
        account.sender_died(&self.spools[mta].borrow());
        account.receiver_died(&format!("peer:{}", NAMES[mta]));
        drop(account);
        self.new_life(mta);
    }

    /// The spool of an MTA stands still for a while.
    pub(super) fn stall(self: &Rc<Self>) {
        if self.calm.get() {
            return;
        }
        let mta = self.span(0..self.mtas() as u64) as usize;
        let until = self.now.get() + self.span(100 * MILLI..20 * SECOND);
        self.note(|| format!("the spool of {} stands still", NAMES[mta]));
        let life = self.life_at(mta);
        self.lives.borrow_mut()[life].pipe.stalled_until = until;
        self.after(self.span(SECOND..30 * SECOND), Event::Stall);
    }
}

/// Runs a worker with the courier of its destination.
async fn serve(mut worker: Worker<SimHost<World>>, transfers: Rc<Transfers>) {
    let Some(destination) = worker.destination() else {
        return;
    };
    let text = destination.to_string();
    if let Some(user) = text.strip_prefix("file:") {
        let (world, mta): (&Shared, _) = (&transfers.world, transfers.process.mta);
        let file = |envelope, body| Rc::clone(world).file(mta, (user.to_owned(), envelope, body));
        return file_each(&mut worker, file).await;
    }
    work(&mut worker, &*transfers, &destination).await;
}
