//! A full member that was away, and what it is given when it is back.

use super::*;

impl Circle {
    /// Two nodes, the second one with a log, and a queue with these records.
    fn with_records(records: usize, adjust: impl FnOnce(&mut OwnerConfig)) -> (Self, QueueId) {
        let mut circle = Self::new(2, 1, adjust);
        circle.logs[1] = Some(MemoryLog::new(0));
        circle.start(1);
        circle.open();
        let queue = circle.queue("q");
        for _ in 0..records {
            circle.owner.commit(put(queue, 100)).unwrap();
        }
        circle.settle();
        (circle, queue)
    }

    /// The second node cannot be reached.
    fn cut_off(&mut self) {
        self.disconnect(SECOND);
        self.cut.push(SECOND);
    }

    fn goes_without(&mut self) {
        self.pass(Duration::from_secs(4));
        assert_eq!(self.states(), [SyncState::Sync, SyncState::Out]);
    }

    /// It is reached again, and holds everything some time later.
    fn returns(&mut self) {
        self.cut.clear();
        self.pass(Duration::from_secs(10));
        assert_eq!(self.states(), [SyncState::Sync, SyncState::Sync]);
        assert_eq!(self.held(0), self.held(1));
        assert_eq!(self.owner.acknowledged(), self.owner.submitted());
    }

    fn second(&self, change: ReplicaChange) -> bool {
        let node = "n1".to_owned();
        self.told(&OwnerEvent::Replica { node, change })
    }

    /// Whether that took no more than what it missed.
    fn caught_up(&self) -> bool {
        let emptied = self.second(ReplicaChange::Rebuilding) || self.second(ReplicaChange::Full);
        assert_ne!(emptied, self.second(ReplicaChange::CaughtUp));
        !emptied
    }

    /// Its process starts again with what it had synced, and so many entries of its log more.
    fn restart_second(&mut self, more: usize) {
        self.kill(1);
        let log = self.logs[1].clone().unwrap();
        log.0.borrow_mut().crash(more);
        self.read_second(&log);
    }

    fn read_second(&mut self, log: &MemoryLog) {
        let mut node = Node::new(
            self.node_config.clone(),
            self.incarnations[1],
            Some(log.clone()),
        );
        node.restore("gateway", |replay| log.read(replay)).unwrap();
        self.nodes[1] = Some(node);
    }

    /// Changes of all kinds that the second node does not hear of.
    fn change_much(&mut self, queue: QueueId, other: &str) {
        let other = self.queue(other);
        for number in 1..400_u64 {
            let mut batch = Batch::new();
            match number % 4 {
                0 => batch.delete(queue, RecordId(number)),
                1 => batch.replace(queue, RecordId(number), Bytes::from_static(b"new")),
                2 => batch.move_to(queue, RecordId(number), other, None),
                _ => batch.put(other, Bytes::new(), Bytes::from(vec![7; 20])),
            };
            self.owner.commit(batch).unwrap();
        }
        self.settle();
    }
}

#[test]
fn a_node_that_was_cut_off_is_given_what_it_missed() {
    let (mut circle, queue) = Circle::with_records(1_000, |_| {});
    circle.events.clear();
    circle.cut_off();
    circle.change_much(queue, "during");
    circle.goes_without();
    circle.change_much(queue, "after");
    circle.returns();
    assert!(circle.second(ReplicaChange::CatchingUp) && circle.caught_up());
    // It counts: the other one may go, for good.
    circle.kill(0);
    circle.pass(Duration::from_secs(4));
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
}

#[test]
fn a_node_that_starts_with_its_log_is_given_what_it_missed() {
    for more in [0, 1, 100] {
        let (mut circle, queue) = Circle::with_records(1_000, |_| {});
        circle.events.clear();
        // It is killed with something in hand that is not safe there.
        circle.hung = vec![1];
        for _ in 0..10 {
            circle.owner.commit(put(queue, 10)).unwrap();
            circle.carry(SECOND);
        }
        circle.restart_second(more);
        circle.hung.clear();
        circle.cut_off();
        circle.goes_without();
        circle.change_much(queue, "after");
        circle.returns();
        assert!(circle.caught_up(), "{more}");
    }
}

/// The log of yesterday, under the same incarnation.
#[test]
fn a_node_that_lost_what_it_acknowledged_is_filled_from_nothing() {
    let (mut circle, queue) = Circle::with_records(100, |_| {});
    circle.events.clear();
    let yesterday = circle.logs[1].as_ref().unwrap().0.borrow().clone();
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    circle.cut_off();
    circle.goes_without();
    let log = circle.logs[1].clone().unwrap();
    *log.0.borrow_mut() = yesterday;
    circle.read_second(&log);
    circle.returns();
    assert!(!circle.caught_up());
}

#[test]
fn a_node_that_lost_its_memory_is_filled_from_nothing() {
    let (mut circle, _) = Circle::with_records(100, |_| {});
    circle.events.clear();
    circle.cut_off();
    circle.goes_without();
    circle.start(1);
    circle.returns();
    assert!(!circle.caught_up());
}

/// What was kept died with the owner.
#[test]
fn an_owner_that_comes_after_fills_it_from_nothing() {
    let (mut circle, _) = Circle::with_records(100, |_| {});
    circle.cut_off();
    circle.goes_without();
    circle.succeed();
    circle.returns();
    assert!(!circle.caught_up());
}

#[test]
fn a_node_that_missed_too_much_is_filled_from_nothing() {
    let (mut circle, queue) = Circle::with_records(100, |config| config.lag_max = 100_000);
    circle.events.clear();
    circle.cut_off();
    circle.goes_without();
    circle.change_much(queue, "after");
    assert!(circle.owner.changes.kept() < 100_000, "nothing is kept");
    circle.returns();
    assert!(!circle.caught_up());
}

/// What it refused and the other one did was acknowledged without it.
#[test]
fn a_node_that_differs_is_filled_from_nothing() {
    let (mut circle, queue) = Circle::with_records(100, |_| {});
    circle.events.clear();
    let log = circle.logs[1].clone().unwrap();
    log.0.borrow_mut().reserve = true;
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.carry_up(SECOND);
    circle.cut_off();
    log.0.borrow_mut().reserve = false;
    circle.goes_without();
    assert_eq!(
        [circle.held(0)[0].length, circle.held(1)[0].length],
        [101, 100]
    );
    circle.returns();
    assert!(!circle.caught_up());
}

/// What it did and the other one refused is taken back.
#[test]
fn what_only_it_did_is_taken_back() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.logs[0] = Some(MemoryLog::new(0));
    circle.start(0);
    circle.open();
    let queue = circle.queue("q");
    circle.events.clear();
    circle.logs[0].clone().unwrap().0.borrow_mut().reserve = true;
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.carry_up(SECOND);
    circle.cut_off();
    circle.goes_without();
    assert_eq!([circle.held(0)[0].length, circle.held(1)[0].length], [0, 1]);
    circle.cut.clear();
    circle.pass(Duration::from_secs(10));
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
    let [first, second] = [0, 1].map(|node| circle.held(node)[0].clone());
    assert_eq!((first.length, second.length), (0, 0));
    assert!(circle.caught_up());
}

/// Nobody waits for what it missed, and it goes on where it was when it is cut off again.
#[test]
fn others_go_on_while_it_catches_up() {
    let (mut circle, queue) = Circle::with_records(100, |config| config.window = 1_000);
    circle.events.clear();
    circle.cut_off();
    circle.goes_without();
    for _ in 0..200 {
        circle.owner.commit(put(queue, 100)).unwrap();
    }
    circle.settle();
    circle.cut.clear();
    circle.connect();
    let behind = circle.owner.replicas[1].acked;
    while circle.owner.replicas[1].acked.0 < behind.0 + 50 {
        circle.carry(SECOND);
        circle.register.serve(&mut circle.owner, circle.now);
    }
    circle.owner.commit(put(queue, 100)).unwrap();
    circle.carry(FIRST);
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
    circle.disconnect(SECOND);
    circle.returns();
    assert!(circle.caught_up());
}
