//! The queues of destinations in the spool: made with the first message, ended when there has been none
//! for long. A gateway meets more destinations in a year than a node has room for.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use vere_queue::Destination;
use vere_spoolwire::{QueueId, QueueLimits, Refusal};

use super::clock;
use super::state::Gateway;
use crate::spool::link::SpoolError;

/// How long a message may wait for the queues of its destinations to be made, all of them together: as
/// long as for the acknowledgement that follows, so that a client hears as soon when all nodes hang.
const QUEUE_PATIENCE: Duration = Duration::from_secs(15);
/// How often some queues are looked at for whether they are needed.
const PAUSE: Duration = Duration::from_secs(1);
/// How many numbers are looked at each time: all that a node may have in half a minute.
const NUMBERS: u32 = 4_096;
/// How many queues are ended at once when there is no room for another one.
const MADE_FREE: usize = 16;
/// How long after none could be ended no other message looks for one: it means a walk through all.
const FULL_PAUSE: Duration = Duration::from_secs(1);

/// Ends unused queues until the gateway stops.
pub(super) async fn run(gateway: Rc<Gateway>) {
    loop {
        tokio::time::sleep(PAUSE).await;
        if gateway.delivering() {
            let idle = gateway.settings().delivery.queue_idle.duration();
            let vacant = (gateway.queues.borrow_mut()).vacant(NUMBERS, idle, clock::now());
            for number in vacant {
                let _one_at_a_time = gateway.making.lock().await;
                gateway.retire(number, idle).await;
            }
        }
    }
}

/// Queues that messages are on their way to: they stay until this is dropped.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    gateway: &'a Gateway,
    numbers: Vec<u32>,
}

impl Expected<'_> {
    /// Their numbers, in the order of the destinations.
    pub(super) fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    fn add(&mut self, number: u32) {
        self.gateway.queues.borrow_mut().expect(number);
        self.numbers.push(number);
    }
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        let mut queues = self.gateway.queues.borrow_mut();
        self.numbers
            .iter()
            .for_each(|number| queues.arrived(*number));
    }
}

impl Gateway {
    /// The queues of these destinations, those that are missing made in the spool.
    ///
    /// # Errors
    /// When one cannot be made in time.
    pub(super) async fn expect(
        &self,
        destinations: impl Iterator<Item = &Destination>,
    ) -> Result<Expected<'_>, SpoolError> {
        let mut expected = Expected {
            gateway: self,
            numbers: Vec::new(),
        };
        let until = Instant::now() + QUEUE_PATIENCE;
        for destination in destinations {
            let known = self.queues.borrow().number(destination);
            let number = match known {
                Some(number) => number,
                // A client must hear in time that a node hangs, also when others wait for that before it.
                None => timeout_at(until, self.make_queue(destination))
                    .await
                    .unwrap_or(Err(SpoolError::Timeout))?,
            };
            expected.add(number);
        }
        Ok(expected)
    }

    /// Makes a queue. Given up half way it may be made all the same, and is found the next time.
    async fn make_queue(&self, destination: &Destination) -> Result<u32, SpoolError> {
        let _one_at_a_time = self.making.lock().await;
        if let Some(number) = self.queues.borrow().number(destination) {
            return Ok(number);
        }
        let name = destination.to_string();
        let create = || self.link.create_queue(&name, QueueLimits::UNLIMITED);
        let made = match create().await {
            Err(SpoolError::Refused(Refusal::TooManyQueues)) if self.make_room().await => {
                create().await
            }
            made => made,
        };
        let QueueId(number) = made?;
        self.queues
            .borrow_mut()
            .register(number, destination.clone(), clock::now());
        Ok(number)
    }

    /// Ends queues that are empty, however short a time they have been. False: there is none.
    async fn make_room(&self) -> bool {
        let now = std::time::Instant::now();
        if self.full_until.get().is_some_and(|until| now < until) {
            return false;
        }
        let vacant = (self.queues.borrow_mut()).vacant(u32::MAX, Duration::ZERO, clock::now());
        tracing::warn!(
            vacant = vacant.len(),
            "no room for another queue in the spool, empty ones are ended"
        );
        let mut ended = false;
        for number in vacant.into_iter().take(MADE_FREE) {
            ended |= self.retire(number, Duration::ZERO).await;
        }
        if !ended {
            self.full_until.set(Some(now + FULL_PAUSE));
        }
        ended
    }

    /// Ends a queue, if nobody needs it; to be called by who holds `making`. False: it stays in the spool.
    async fn retire(&self, number: u32, idle: Duration) -> bool {
        let retired = (self.queues.borrow_mut()).retire(number, idle, clock::now());
        let Some(destination) = retired else {
            return false;
        };
        self.wakers.borrow_mut().remove(&number);
        // Whatever comes of it: the next message for the destination makes the queue, or finds it.
        match self.link.drop_queue(QueueId(number)).await {
            Ok(()) => {
                tracing::debug!(%destination, "queue has had no mail for long and is ended");
                true
            }
            Err(error) => {
                tracing::warn!(%destination, %error, "unused queue stays in the spool");
                if matches!(error, SpoolError::Refused(_)) {
                    let mut queues = self.queues.borrow_mut();
                    queues.register(number, destination, clock::now());
                }
                false
            }
        }
    }
}
