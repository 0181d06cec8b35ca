//! Carries out what the queues decide: starts and calls the workers that deliver, and fetches the records whose turn
//! comes next.

use std::future::{Future, pending};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{Either, select};
use vere_queue::Next;
use vere_spoolwire::QueueId;

use crate::group::Group;
use crate::host::Host;
use crate::overdue;
use crate::worker::Worker;

/// How long a step of the wall clock may stay unnoticed while nothing else is to be done.
const CLOCK_PAUSE: Duration = Duration::from_secs(1);

/// Resolution of the queues' times: a shorter pause would come back before the time, again and again.
const RESOLUTION: Duration = Duration::from_millis(1);

impl<H: Host> Group<H> {
    /// Delivers until the gateway stops. `work` runs one worker until its queue is empty for a while or the
    /// destination fails.
    pub async fn deliver<F: Future<Output = ()> + 'static>(
        self: Rc<Self>,
        work: impl Fn(Worker<H>) -> F,
    ) {
        loop {
            if self.delivering() {
                self.dispatch(&work);
                overdue::look(&self);
            }
            let wake_at = self.queues.look(|queues| queues.wake_at());
            let due = async {
                match wake_at.filter(|_| self.delivering()) {
                    Some(time) => {
                        let left = time.saturating_since(self.host.now());
                        self.host.pause(left.max(RESOLUTION)).await;
                    }
                    None => pending().await,
                }
            };
            let (rung, due) = (pin!(self.queues.woken()), pin!(due));
            let tick = pin!(self.host.pause(CLOCK_PAUSE));
            // A clock that was put back makes what is due seem far away.
            if let Either::Right(_) = select(select(rung, due), tick).await {
                self.queue_time();
            }
        }
    }

    fn dispatch<F: Future<Output = ()> + 'static>(self: &Rc<Self>, work: &impl Fn(Worker<H>) -> F) {
        loop {
            let now = self.queue_time();
            let next = self.queues.change_quietly(|queues| queues.poll(now));
            match next {
                Some(Next::Wake(queue) | Next::Release(queue)) => self.call_worker(queue),
                Some(Next::Open(queue)) => self.open(queue, work),
                Some(Next::Fetch(wanted)) => {
                    let group = Rc::clone(self);
                    self.host.spawn(async move { group.bring(wanted).await });
                }
                None => break,
            }
        }
    }

    fn open<F: Future<Output = ()> + 'static>(
        self: &Rc<Self>,
        queue: QueueId,
        work: &impl Fn(Worker<H>) -> F,
    ) {
        let worker = Worker::new(Rc::clone(self), queue);
        self.host.spawn(work(worker));
    }
}
