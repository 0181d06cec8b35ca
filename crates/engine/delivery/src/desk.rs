//! The queues of a group, with the bell of their scheduler.
//!
//! No borrow of the queues outlives a call, so that none can meet another one, and none is held across an await.

use std::cell::RefCell;

use vere_queue::{Destination, Queues};
use vere_spoolwire::QueueId;

use crate::bell::Bell;

/// The queues of a group. Whoever changes them wakes the scheduler.
#[derive(Debug)]
pub struct QueueDesk {
    queues: RefCell<Queues>,
    changed: Bell,
}

impl QueueDesk {
    /// Returns a desk with these queues.
    pub fn new(queues: Queues) -> Self {
        Self {
            queues: RefCell::new(queues),
            changed: Bell::default(),
        }
    }

    /// Reads the queues. The closure must not change them through the desk.
    pub fn look<T>(&self, read: impl FnOnce(&Queues) -> T) -> T {
        read(&self.queues.borrow())
    }

    /// Changes the queues, then wakes the scheduler. The closure must not use the desk.
    pub fn change<T>(&self, write: impl FnOnce(&mut Queues) -> T) -> T {
        let done = self.change_quietly(write);
        self.wake();
        done
    }

    /// Changes the queues and lets the scheduler sleep. Reserved for the scheduler itself, for the steps of a worker
    /// between its start and its end (the end of an attempt and of a worker wakes), and for counts of messages on
    /// their way.
    pub fn change_quietly<T>(&self, write: impl FnOnce(&mut Queues) -> T) -> T {
        write(&mut self.queues.borrow_mut())
    }

    /// Wakes the scheduler: something besides the queues has changed.
    pub fn wake(&self) {
        self.changed.ring();
    }

    /// Waits for a change of the queues that may give the scheduler work.
    pub async fn woken(&self) {
        self.changed.all_heard().await;
    }

    /// Returns the destination of a queue.
    pub fn destination(&self, queue: QueueId) -> Option<Destination> {
        self.look(|queues| queues.destination(queue).cloned())
    }

    /// Returns the destination of a queue as text, for traces and logs.
    pub fn name(&self, queue: QueueId) -> Option<String> {
        self.look(|queues| queues.destination(queue).map(ToString::to_string))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use vere_queue::{Policy, Rules};
    use vere_units::Timestamp;

    use super::*;

    fn desk() -> QueueDesk {
        QueueDesk::new(Queues::new(Policy {
            retry: vec![Duration::from_secs(60)],
            expire: Duration::from_secs(600),
            delay_notice: None,
            connections_per_destination_max: 1,
            connections_per_site_max: 1,
            connections_max: 1,
            head_memory_max: 1 << 20,
            rules: Rules::default(),
        }))
    }

    fn is_woken(desk: &QueueDesk) -> bool {
        desk.woken().now_or_never().is_some()
    }

    #[test]
    fn only_a_change_wakes_the_scheduler() {
        let (desk, now) = (desk(), Timestamp::from_millis(1));
        assert_eq!(desk.look(|queues| queues.messages()), 0);
        assert!(!is_woken(&desk));
        desk.change_quietly(|queues| queues.poll(now).map(drop));
        assert!(!is_woken(&desk));
        desk.change(|queues| queues.register(QueueId(7), Destination::LOCAL, now));
        assert!(is_woken(&desk));
        assert!(!is_woken(&desk));
        assert_eq!(desk.name(QueueId(7)).as_deref(), Some("local"));
        assert_eq!(desk.destination(QueueId(8)), None);
    }

    #[test]
    fn several_changes_wake_once() {
        let desk = desk();
        for number in 1..=3 {
            let name = Destination::domain(format!("{number}.example"));
            desk.change(|queues| queues.register(QueueId(number), name, Timestamp::from_millis(1)));
        }
        assert!(is_woken(&desk));
        assert!(!is_woken(&desk));
    }
}
