//! A next hop: the queue of calls, and the tasks of the calls.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio::task::spawn_local;
use tokio::time::{Instant, timeout};
use vere_queue::Place;

use super::ground::Ground;
use super::kept::Verdict;
use super::line::{Broken, Heard, Line};
use super::recipient::Recipient;

/// Connections to one next hop.
pub(super) const CONNECTIONS_PER_HOP_MAX: usize = 4;
/// Waiting calls of one next hop.
pub(super) const QUEUE_MAX: usize = 256;
/// Life of a connection without a call.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(10);
/// Rest of a next hop after a failure.
pub(super) const FAILED_FOR: Duration = Duration::from_secs(30);
/// A call with less than this part of its time left does not begin: such a call would tell of the queue, not of the next hop.
const LEAST_PARTS: u32 = 2;
/// How long the answer to QUIT is awaited.
pub(super) const QUIT_PATIENCE: Duration = Duration::from_secs(2);

/// A call: one recipient, and the questions that wait for the result.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) recipient: Recipient,
    pub(super) by: Instant,
    pub(super) told: watch::Sender<Option<Verdict>>,
}

/// A next hop.
#[derive(Debug)]
pub(super) struct Hop {
    pub(super) place: Place,
    queue: RefCell<VecDeque<Call>>,
    wake: Notify,
    tasks: Cell<usize>,
    /// Tasks that wait for a call.
    idle: Cell<usize>,
    failed_until: Cell<Option<Instant>>,
}

/// A task among those of its next hop.
struct Task(Rc<Hop>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.tasks.set(self.0.tasks.get().saturating_sub(1));
    }
}

impl Hop {
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            queue: RefCell::default(),
            wake: Notify::new(),
            tasks: Cell::new(0),
            idle: Cell::new(0),
            failed_until: Cell::new(None),
        }
    }

    /// The order in which next hops without tasks make room for others: failed ones first, the oldest failure first. `None`
    /// while tasks run.
    pub(super) fn spare(&self) -> Option<impl Ord + use<>> {
        let until = self.failed_until.get();
        (self.tasks.get() == 0).then_some((until.is_none(), until))
    }

    /// Sets the next hop aside for a while. False where another task has done so.
    fn fail(&self, now: Instant) -> bool {
        let is_first = !self.has_failed(now);
        self.failed_until.set(Some(now + FAILED_FOR));
        is_first
    }

    fn has_failed(&self, now: Instant) -> bool {
        self.failed_until.get().is_some_and(|until| now < until)
    }

    /// Takes a call. False where the next hop failed a moment ago, its queue is full, or no connection may be made.
    pub(super) fn push(self: &Rc<Self>, ground: &Rc<Ground>, call: Call) -> bool {
        let waiting = self.queue.borrow().len();
        if self.has_failed(Instant::now()) || waiting >= QUEUE_MAX {
            return false;
        }
        if waiting >= self.idle.get() && self.tasks.get() < CONNECTIONS_PER_HOP_MAX {
            self.start(ground);
        }
        // A busy task takes the call behind its own call.
        if self.tasks.get() == 0 {
            return false;
        }
        self.queue.borrow_mut().push_back(call);
        self.wake.notify_one();
        true
    }

    /// Starts a task if a connection may be made.
    fn start(self: &Rc<Self>, ground: &Rc<Ground>) {
        let connections = Arc::clone(&ground.shared.connections);
        let Ok(connection) = connections.try_acquire_owned() else {
            return;
        };
        self.tasks.set(self.tasks.get() + 1);
        let task = Task(Rc::clone(self));
        spawn_local(Rc::clone(ground).serve(task, connection));
    }

    /// Waits for a call, with a connection for a while, without one not at all.
    async fn next(&self, has_line: bool) -> Option<Call> {
        loop {
            if let Some(call) = self.queue.borrow_mut().pop_front() {
                return Some(call);
            }
            if !has_line {
                return None;
            }
            self.idle.set(self.idle.get() + 1);
            let woken = timeout(IDLE_MAX, self.wake.notified()).await;
            self.idle.set(self.idle.get().saturating_sub(1));
            if woken.is_err() && self.queue.borrow().is_empty() {
                return None;
            }
        }
    }
}

impl Ground {
    /// Carries out calls, in turn. A task counts until its connection is closed.
    async fn serve(self: Rc<Self>, task: Task, connection: OwnedSemaphorePermit) {
        let hop = Rc::clone(&task.0);
        let mut line = None;
        loop {
            let Some(call) = hop.next(line.is_some()).await else {
                let Some(idle) = line.take() else {
                    break;
                };
                quit(idle).await;
                // Calls may have come meanwhile.
                continue;
            };
            let verdict = self.verdict(&hop, &mut line, &call).await;
            self.settle(&call, verdict);
            if let Some(spent) = line.take_if(|line| line.is_spent(self.calls_per_connection)) {
                quit(spent).await;
            }
        }
        // The connection is closed. From here on, a further call begins another task.
        drop((task, connection));
    }

    /// The result of a call, within its time.
    async fn verdict(&self, hop: &Hop, line: &mut Option<Line>, call: &Call) -> Verdict {
        let now = Instant::now();
        let least = self.terms.timeout.duration() / LEAST_PARTS;
        if hop.has_failed(now) || call.by < now + least {
            return Verdict::Unavailable;
        }
        let recipient = &call.recipient;
        let needs_probe = self.kept.borrow_mut().needs_probe(recipient, now);
        let asked = self.ask_hop(&hop.place, line, (recipient, needs_probe), call.by);
        let heard = match asked.await {
            Ok(heard) => heard,
            Err(Broken::NoMail(reply)) => Heard {
                verdict: Verdict::Unknown,
                probe: None,
                reply,
            },
            Err(broken) => {
                // The connection is in an unknown state.
                *line = None;
                if hop.fail(Instant::now()) {
                    tracing::warn!(next_hop = %hop.place, reason = %broken, "next hop cannot be asked about recipients");
                }
                return Verdict::Unavailable;
            }
        };
        self.keep(recipient, &heard);
        heard.verdict
    }

    fn keep(&self, recipient: &Recipient, heard: &Heard) {
        let now = Instant::now();
        let mut kept = self.kept.borrow_mut();
        kept.keep(recipient, heard.verdict, now, &self.terms);
        match (heard.verdict, heard.probe) {
            // The domain has refused a recipient, so a mere acceptance of the probe proves nothing. The refusal of a
            // recipient outside ASCII may come from this system, where the next hop lacks SMTPUTF8.
            (Verdict::Unknown, Some(_)) if recipient.key().is_ascii() => {
                kept.keep_probe(recipient, Verdict::Unknown, now)
            }
            (_, Some(probe)) => kept.keep_probe(recipient, probe, now),
            (_, None) => {}
        }
        let (rcpt, reply) = (recipient.key(), &heard.reply);
        tracing::debug!(rcpt, verdict = ?heard.verdict, %reply, "next hop asked about a recipient");
    }

    /// Tells the result to the waiting questions.
    fn settle(&self, call: &Call, verdict: Verdict) {
        self.shared.count(|figures| match verdict {
            Verdict::Exists => &mut figures.calls_accepted,
            Verdict::Unknown => &mut figures.calls_refused,
            Verdict::Unavailable => &mut figures.calls_unavailable,
        });
        self.open.borrow_mut().remove(call.recipient.key());
        // All questions may have ended before.
        let _ = call.told.send(Some(verdict));
    }
}

/// Ends a connection; nothing depends on the answer.
async fn quit(mut line: Line) {
    let _ = timeout(QUIT_PATIENCE, line.quit()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log has a line for each failure of the next hop, not of each task.
    #[test]
    fn a_failure_that_several_tasks_meet_is_new_once() {
        let hop = Hop::new(Place::relay("192.0.2.1", 25));
        let now = Instant::now();
        let told = [0, 1, 29, 58, 88].map(|second| hop.fail(now + Duration::from_secs(second)));
        assert_eq!(told, [true, false, false, false, true]);
    }
}
