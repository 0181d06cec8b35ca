//! The queues of destinations in the spool: made with the first message, ended after a long time without messages. A
//! gateway meets more destinations in a year than a node has room for.

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{Either, select};
use vere_queue::{Destination, Queues};
use vere_spoolwire::{NodeRefusal, QueueId, SpoolError};

use crate::group::Group;
use crate::host::Host;

/// How long a message may wait for the queues of its destinations to be made, all of them together: as
/// long as for the acknowledgement that follows, so that a client hears as soon when all nodes hang.
const QUEUE_PATIENCE: Duration = Duration::from_secs(15);
/// Interval between two searches for queues without use.
const PAUSE: Duration = Duration::from_secs(1);
/// Queue numbers examined in one search: all numbers of a node within half a minute.
const NUMBERS: u32 = 4_096;
/// Queues ended at once when the spool has no room for another queue.
const MADE_FREE: usize = 16;
/// Pause after a search that ended no queue: each search walks through all queues.
const FULL_PAUSE: Duration = Duration::from_secs(1);

/// Ends unused queues until the gateway stops.
pub(crate) async fn run<H: Host>(group: Rc<Group<H>>) {
    loop {
        group.host.pause(PAUSE).await;
        if group.delivering() {
            let idle = group.host.queue_idle();
            let vacant = group
                .queues
                .change_quietly(|queues| queues.vacant(NUMBERS, idle, group.host.now()));
            group.retire(vacant.into_iter(), idle).await;
        }
    }
}

/// Queues with messages on the way. The queues stay until this value is dropped.
#[derive(Debug)]
pub struct Expected<'a, H: Host> {
    group: &'a Group<H>,
    messages: Vec<vere_queue::Expected>,
}

impl<'a, H: Host> Expected<'a, H> {
    const fn none(group: &'a Group<H>) -> Self {
        Self {
            group,
            messages: Vec::new(),
        }
    }

    /// Their numbers, in the order of the destinations.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = QueueId> {
        self.messages.iter().map(vere_queue::Expected::number)
    }

    fn add(&mut self, number: QueueId) {
        let expected = self
            .group
            .queues
            .change_quietly(|queues| queues.expect(number));
        self.messages.push(expected);
    }
}

impl<H: Host> Drop for Expected<'_, H> {
    fn drop(&mut self) {
        let messages = self.messages.drain(..);
        self.group.queues.change_quietly(|queues| {
            messages.for_each(|message| queues.arrived(message));
        });
    }
}

impl<H: Host> Group<H> {
    /// Finds the queues of these destinations, and begins missing queues. Records put next are in the same sync of the
    /// nodes, and are refused as a whole if a queue cannot be made.
    ///
    /// # Errors
    /// When no queue can be begun now.
    pub(crate) fn expect<'a, 'b>(
        self: &'a Rc<Self>,
        destinations: impl Iterator<Item = &'b Destination>,
    ) -> Result<Expected<'a, H>, SpoolError> {
        let mut expected = Expected::none(self);
        for destination in destinations {
            let known = self.queues.look(|queues| queues.number(destination));
            expected.add(match known {
                Some(number) => number,
                None => self.begin_queue(destination)?,
            });
        }
        Ok(expected)
    }

    /// Does the same, and waits until all queues are in the spool, with room made for them if need be.
    ///
    /// # Errors
    /// When a queue cannot be made in time.
    pub(crate) async fn expect_made<'a, 'b>(
        self: &'a Rc<Self>,
        destinations: impl Iterator<Item = &'b Destination>,
    ) -> Result<Expected<'a, H>, SpoolError> {
        let mut expected = Expected::none(self);
        // A client must hear in time that a node hangs, also when others wait for that before it.
        let mut until = pin!(self.host.pause(QUEUE_PATIENCE));
        for destination in destinations {
            let making = pin!(self.make_queue(destination));
            match select(making, until.as_mut()).await {
                Either::Left((made, _)) => expected.add(made?),
                Either::Right(_) => return Err(SpoolError::Timeout),
            }
        }
        Ok(expected)
    }

    /// Begins a queue. The queue is known from now on, and forgotten again if the spool refuses the queue.
    fn begin_queue(self: &Rc<Self>, destination: &Destination) -> Result<QueueId, SpoolError> {
        let name = destination.to_string();
        let (number, making) = self.host.begin_queue(&name)?;
        self.register(number, destination);
        let (group, destination) = (Rc::clone(self), destination.clone());
        self.host.spawn(async move {
            if let Err(SpoolError::Refused(refusal)) = making.await {
                tracing::debug!(%destination, %refusal, "queue cannot be made");
                group
                    .queues
                    .change(|queues| queues.not_made(number, &destination));
            }
        });
        Ok(number)
    }

    /// Makes a queue, or finds the queue of that name.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub async fn create_queue(&self, name: &str) -> Result<QueueId, SpoolError> {
        let (queue, making) = self.host.begin_queue(name)?;
        making.await?;
        Ok(queue)
    }

    /// Ends unused queues until the gateway stops.
    pub async fn keep_known(self: Rc<Self>) {
        run(self).await;
    }

    /// Notes that this number is, or is about to be, the queue of this destination.
    pub(crate) fn register(&self, number: QueueId, destination: &Destination) {
        let is_known = |queues: &Queues| queues.destination(number) == Some(destination);
        if self.queues.look(is_known) {
            return;
        }
        self.queues.change(|queues| {
            // The spool has reused this number: the destination that had it before was refused its queue, and has not
            // been notified yet.
            if let Some(other) = queues.destination(number).cloned() {
                queues.not_made(number, &other);
            }
            queues.register(number, destination.clone(), self.host.now());
        });
    }

    /// Makes a queue, and room for the queue if need be. An abandoned call may make the queue all the same; the next
    /// call finds the queue.
    async fn make_queue(&self, destination: &Destination) -> Result<QueueId, SpoolError> {
        let _one_at_a_time = self.making.lock().await;
        let name = destination.to_string();
        let create = || self.create_queue(&name);
        let made = match create().await {
            Err(SpoolError::Refused(NodeRefusal::TooManyQueues)) if self.make_room().await => {
                create().await
            }
            made => made,
        };
        let number = made?;
        self.register(number, destination);
        Ok(number)
    }

    /// Ends empty queues, however short the time without messages. False: no queue is empty.
    async fn make_room(&self) -> bool {
        let now = self.host.steady();
        if self.full_until.get().is_some_and(|until| now < until) {
            return false;
        }
        let vacant = self
            .queues
            .change_quietly(|queues| queues.vacant(u32::MAX, Duration::ZERO, self.host.now()));
        tracing::warn!(
            vacant = vacant.len(),
            "no room for another queue in the spool, empty ones are ended"
        );
        let vacant = vacant.into_iter().take(MADE_FREE);
        let ended = self.retire(vacant, Duration::ZERO).await;
        if ended == 0 {
            self.full_until.set(Some(now + FULL_PAUSE));
        }
        ended > 0
    }

    /// Ends the unused queues among these, all at the same time. Returns the number of ended queues.
    async fn retire(&self, numbers: impl Iterator<Item = QueueId>, idle: Duration) -> usize {
        let retired: Vec<_> = numbers
            .filter_map(|number| {
                let now = self.host.now();
                let destination = self
                    .queues
                    .change_quietly(|queues| queues.retire(number, idle, now))?;
                self.forget_bell(number);
                Some((number, destination, self.host.drop_queue(number)))
            })
            .collect();
        let mut ended = 0;
        for (number, destination, ending) in retired {
            // Whatever comes of it: the next message for the destination makes the queue, or finds it.
            match ending.await {
                Ok(()) => {
                    tracing::debug!(%destination, "queue has had no mail for long and is ended");
                    ended += 1;
                }
                Err(error) => {
                    tracing::warn!(%destination, %error, "unused queue stays in the spool");
                    if matches!(error, SpoolError::Refused(_)) {
                        let now = self.host.now();
                        self.queues
                            .change(|queues| queues.register(number, destination, now));
                    }
                }
            }
        }
        ended
    }
}
