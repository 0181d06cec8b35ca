//! Which node keeps the log of a group, and that what is acknowledged lies in it.

use super::*;

/// Nodes with logs: two on the first machine, others each on one of its own.
fn circle(nodes: usize) -> Circle {
    timed_circle(nodes, Duration::ZERO)
}

/// The same, with a slow one found by the time of its answers.
fn timed_circle(nodes: usize, slow_after: Duration) -> Circle {
    let mut circle = Circle::new(nodes, 1, |config| {
        config.durable = true;
        config.slow_after = slow_after;
        config.replicas = nodes;
        for (number, node) in config.nodes.iter_mut().enumerate() {
            node.machine = number.saturating_sub(1);
        }
    });
    for number in 0..nodes {
        circle.logs[number] = Some(MemoryLog::new(0));
        circle.start(number);
    }
    circle.open();
    circle.pass(Duration::from_secs(1));
    circle
}

impl Circle {
    /// Which nodes say that their log holds everything.
    fn keepers(&self) -> Vec<usize> {
        let keeps = |node: &Option<TestNode>| {
            let stats = node.as_ref().map(Node::stats).unwrap_or_default();
            stats.iter().any(|(_, stat)| stat.synced && !stat.syncing)
        };
        let nodes = self.nodes.iter().enumerate();
        let keepers = nodes.filter(|(_, node)| keeps(node));
        keepers.map(|(number, _)| number).collect()
    }

    /// Octets in a node's log.
    fn logged(&self, number: usize) -> u64 {
        let log = self.logs[number].as_ref();
        log.map_or(0, |log| log.0.borrow().octets())
    }

    fn fill(&mut self, queue: QueueId, records: usize) {
        for _ in 0..records {
            self.owner.commit(put(queue, 300)).unwrap();
        }
        self.settle();
    }

    fn all_acknowledged(&self) -> bool {
        self.owner.is_open() && self.owner.acknowledged() == self.owner.submitted()
    }

    fn is_member(&self, number: usize) -> bool {
        let name = format!("n{number}");
        self.owner.membership().member(&name).is_some()
    }

    /// A node comes back after a power cut, with what its disk kept.
    fn restart(&mut self, number: usize) {
        self.kill(number);
        let log = self.logs[number].clone().unwrap();
        log.0.borrow_mut().crash(0);
        let (config, incarnation) = (self.node_config.clone(), self.incarnations[number]);
        let mut node = Node::new(config, incarnation, Some(log.clone()));
        if !log.0.borrow().segments.is_empty() {
            node.restore("gateway", |replay| log.read(replay)).unwrap();
        }
        self.nodes[number] = Some(node);
    }
}

#[test]
fn one_of_the_nodes_of_a_machine_keeps_the_log() {
    let mut circle = circle(3);
    assert_eq!(circle.keepers(), [0, 2], "n0 for itself and n1");
    let queue = circle.queue("q");
    let before = circle.logged(1);
    circle.fill(queue, 100);
    assert!(circle.all_acknowledged());
    assert_eq!(circle.logged(1), before);
    assert!(circle.logged(0) > 30_000 && circle.logged(2) > 30_000);
    assert_eq!(circle.held(0), circle.held(1));
    // It stays so while nothing happens, and for who takes over.
    circle.pass(Duration::from_secs(10));
    assert_eq!(circle.keepers(), [0, 2]);
    circle.succeed();
    circle.open();
    circle.pass(Duration::from_secs(1));
    assert_eq!(circle.keepers(), [0, 2]);
    assert_eq!(circle.states(), [SyncState::Sync; 3]);
}

#[test]
fn without_the_wish_every_node_keeps_its_log() {
    let mut circle = Circle::new(2, 1, |config| {
        for node in &mut config.nodes {
            node.machine = 0;
        }
    });
    for number in 0..2 {
        circle.logs[number] = Some(MemoryLog::new(0));
        circle.start(number);
    }
    circle.open();
    circle.pass(Duration::from_secs(1));
    assert_eq!(circle.keepers(), [0, 1]);
}

/// Both hold it in memory: that is not enough.
#[test]
fn nothing_is_acknowledged_before_the_log_has_synced_it() {
    let mut circle = circle(2);
    let queue = circle.queue("q");
    circle.hung = vec![0];
    circle.fill(queue, 1);
    assert_eq!(circle.held(0)[0].length, 1);
    assert_eq!(circle.held(1)[0].length, 1);
    assert!(circle.owner.acknowledged() < circle.owner.submitted());
    circle.hung.clear();
    circle.settle();
    assert!(circle.all_acknowledged());
}

#[test]
fn a_power_cut_of_the_machine_takes_nothing_acknowledged() {
    let mut circle = circle(2);
    let queue = circle.queue("q");
    circle.fill(queue, 100);
    assert!(circle.all_acknowledged());
    let held = circle.held(0);
    for number in [0, 1] {
        circle.restart(number);
    }
    circle.succeed();
    circle.pass(Duration::from_secs(10));
    assert!(circle.owner.is_open(), "{:?}", circle.events);
    // What lived in memory came back incomplete, and was rebuilt.
    assert_eq!(circle.held(0), held);
    assert_eq!(circle.held(1), held);
    assert_eq!(circle.states(), [SyncState::Sync; 2]);
    assert_eq!(circle.keepers(), [0]);
}

/// The other one has everything in memory; before it is the only one, its log has it too.
#[test]
fn a_keeper_leaves_when_another_log_holds_everything() {
    let mut circle = circle(2);
    let queue = circle.queue("q");
    circle.fill(queue, 100);
    let held = circle.held(1);
    circle.hung = vec![1];
    circle.kill(0);
    circle.pass(Duration::from_secs(8));
    assert!(circle.is_member(0), "the last log that holds everything");
    assert!(!circle.owner.is_open());
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    assert!(circle.owner.acknowledged() < circle.owner.submitted());
    circle.hung.clear();
    circle.pass(Duration::from_secs(1));
    assert!(!circle.is_member(0));
    assert_eq!(circle.keepers(), [1]);
    assert!(circle.all_acknowledged());
    circle.restart(1);
    circle.succeed();
    circle.pass(Duration::from_secs(2));
    assert!(circle.owner.is_open(), "{:?}", circle.events);
    assert_eq!(circle.held(1)[0].length, held[0].length + 1);
    // The other one comes back with an old log: it is rebuilt, and needs none.
    circle.restart(0);
    circle.pass(Duration::from_secs(10));
    assert_eq!(circle.states(), [SyncState::Sync; 2]);
    assert_eq!(circle.keepers(), [1]);
    assert_eq!(circle.held(0), circle.held(1));
}

/// It was away for a moment only and has lost nothing.
#[test]
fn a_keeper_that_returns_in_time_stays_the_keeper() {
    let mut circle = circle(2);
    let queue = circle.queue("q");
    circle.fill(queue, 10);
    circle.restart(0);
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.pass(Duration::from_secs(2));
    assert!(circle.all_acknowledged());
    assert_eq!(circle.states(), [SyncState::Sync; 2]);
    assert_eq!(circle.keepers(), [0]);
}

/// There is nothing to wait for; but nothing is acknowledged by memory alone either.
#[test]
fn a_keeper_whose_disk_is_lost_leaves_at_once() {
    let mut circle = circle(2);
    let queue = circle.queue("q");
    circle.fill(queue, 100);
    circle.hung = vec![0, 1];
    circle.kill(0);
    circle.start(0);
    circle.pass(Duration::from_secs(1));
    let lost = OwnerEvent::Replica {
        node: "n0".to_owned(),
        change: ReplicaChange::Isolated(Fault::Lost),
    };
    assert!(circle.told(&lost), "{:?}", circle.events);
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.pass(Duration::from_secs(1));
    assert!(!circle.owner.is_open());
    assert!(circle.owner.acknowledged() < circle.owner.submitted());
    // What was acknowledged is in one memory until the other log has it.
    assert!(circle.told(&of_one("n1", ReplicaChange::Alone)));
    assert!(!circle.told(&of_one("n1", ReplicaChange::Joined)));
    let alone = |circle: &Circle| {
        circle
            .owner
            .table()
            .iter()
            .map(|row| row.alone)
            .collect::<Vec<_>>()
    };
    assert_eq!(alone(&circle), [false, true]);
    circle.hung.clear();
    circle.pass(Duration::from_secs(1));
    assert!(circle.all_acknowledged());
    circle.pass(Duration::from_secs(10));
    assert_eq!(circle.states(), [SyncState::Sync; 2]);
    assert_eq!(circle.keepers().len(), 1);
    assert_eq!(circle.held(0), circle.held(1));
    assert!(circle.told(&of_one("n1", ReplicaChange::Joined)));
    assert_eq!(alone(&circle), [false; 2]);
}

/// A keeper that is only away has what was acknowledged on its disk.
#[test]
fn nobody_is_alone_beside_a_log() {
    let mut circle = circle(2);
    let queue = circle.queue("q");
    circle.fill(queue, 10);
    circle.restart(0);
    circle.pass(Duration::from_secs(1));
    circle.kill(1);
    circle.pass(Duration::from_secs(10));
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.pass(Duration::from_secs(1));
    assert!(circle.all_acknowledged());
    for node in ["n0", "n1"] {
        assert!(!circle.told(&of_one(node, ReplicaChange::Alone)), "{node}");
    }
}

fn of_one(node: &str, change: ReplicaChange) -> OwnerEvent {
    let node = node.to_owned();
    OwnerEvent::Replica { node, change }
}

/// The group waits for the log that has everything.
#[test]
fn a_group_that_no_other_node_can_log_waits_for_its_keeper() {
    let mut circle = circle(2);
    let queue = circle.queue("q");
    circle.fill(queue, 10);
    circle.logs[1].as_ref().unwrap().0.borrow_mut().failed = true;
    circle.kill(0);
    circle.pass(Duration::from_secs(10));
    assert!(circle.is_member(0) && !circle.owner.is_open());
    circle.restart(0);
    circle.pass(Duration::from_secs(2));
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    assert!(circle.all_acknowledged(), "{:?}", circle.events);
    assert_eq!(circle.keepers(), [0]);
}

/// The register was asked to let the keeper go, and nobody knows whether it does: when the keeper is back, the
/// other one keeps its log until that cannot happen any more.
#[test]
fn who_may_still_be_let_go_does_not_keep_the_log_alone() {
    let mut circle = circle(2);
    let queue = circle.queue("q");
    let keeper = Link {
        node: 0,
        address: 0,
    };
    assert_eq!(circle.keepers(), [0]);
    circle.register_reachable = false;
    circle.disconnect(keeper);
    circle.cut.push(keeper);
    circle.pass(Duration::from_secs(4));
    let Some(RegisterRequest::Swap { expected, .. }) = circle.owner.poll_register() else {
        panic!("it is let go");
    };
    let lost = RegisterSwap::Unknown;
    circle.owner.register_swapped(&lost, circle.now);
    circle.cut.clear();
    circle.pass(Duration::from_secs(4));
    assert_eq!(circle.keepers(), [0, 1]);
    circle.fill(queue, 10);
    assert!(circle.all_acknowledged());

    circle.register_reachable = true;
    circle.pass(Duration::from_secs(4));
    assert!(circle.is_member(0));
    let version = circle.register.value.as_ref().map(|(version, _)| *version);
    assert_ne!(version, expected, "what is on its way comes too late");
    assert_eq!(circle.keepers(), [0]);
}

/// Of two answers to a change the first one tells nobody anything, nor does it come late.
#[test]
fn who_keeps_no_log_is_heard_once_a_keeper_has_answered_or_something_was_asked() {
    for slow_after in [Duration::ZERO, Duration::from_secs(30)] {
        let mut circle = timed_circle(2, slow_after);
        let queue = circle.queue("q");
        let [keeper, other] = [0, 1].map(|node| Link { node, address: 0 });
        assert!(circle.owner.awaits(keeper) && !circle.owner.awaits(other));
        circle.owner.commit(put(queue, 300)).unwrap();
        assert!(!circle.owner.awaits(other));
        circle.carry(keeper);
        assert!(circle.owner.awaits(other), "now by itself");
        circle.carry(other);
        assert!(!circle.owner.awaits(other));

        circle.owner.stats();
        assert!(circle.owner.awaits(other), "a question");
        circle.settle();
        circle.now = circle.now + Duration::from_secs(1);
        circle.owner.timed_out(circle.now);
        assert!(circle.owner.awaits(other), "a sign of life");
        circle.settle();
        assert!(!circle.owner.awaits(other));

        circle.kill(0);
        assert!(circle.owner.awaits(other), "there is nobody else");
    }
}

/// Who is left unread until a keeper has answered is found to be slow all the same, and only then.
#[test]
fn who_answers_unheard_is_measured_from_the_answer_of_a_keeper_on() {
    for (late, slow) in [(Duration::ZERO, false), (Duration::from_millis(50), true)] {
        let mut circle = timed_circle(2, Duration::from_secs(10));
        let queue = circle.queue("q");
        let [keeper, other] = [0, 1].map(|node| Link { node, address: 0 });
        for _ in 0..200 {
            circle.owner.commit(put(queue, 300)).unwrap();
            // The keeper takes its time to sync; the other one has answered, and nobody listens.
            circle.now = circle.now + Duration::from_millis(20);
            assert!(!circle.owner.awaits(other));
            circle.carry(keeper);
            assert!(circle.owner.awaits(other));
            circle.now = circle.now + late;
            circle.carry(other);
            circle.settle();
            circle.now = circle.now + Duration::from_millis(50);
            circle.owner.timed_out(circle.now);
            circle.settle();
        }
        let node = "n1".to_owned();
        let change = ReplicaChange::Slow;
        let told = circle.told(&OwnerEvent::Replica { node, change });
        assert_eq!(told, slow, "{:?}", circle.events);
    }
}
