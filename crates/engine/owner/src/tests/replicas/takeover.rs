//! What a takeover must not believe, and with whom it must not go on.

use super::*;

impl Circle {
    /// These nodes tell the owner that the group is another one's, and are not connected to again: that
    /// would go on for ever.
    fn hear_fenced(&mut self, nodes: &[usize]) {
        self.owner.timed_out(self.now);
        while self.register.serve(&mut self.owner, self.now) {}
        self.connect();
        for &node in nodes {
            let link = Link { node, address: 0 };
            while self.carry(link) {}
            assert!(!self.connections.contains_key(&link));
            self.cut.push(link);
        }
    }
}

/// Two nodes hold everything and know of a later owner than the register does: nothing may be formed
/// on the third one, which is empty.
#[test]
fn a_lost_register_is_never_taken_for_a_new_group() {
    let mut circle = Circle::new(3, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    circle.succeed();
    circle.open();
    circle.succeed();
    circle.register = MemoryRegister::default();
    circle.hear_fenced(&[0, 1]);
    circle.pass(Duration::from_secs(10));
    assert!(!circle.owner.is_open(), "{:?}", circle.events);
    assert!(circle.told(&OwnerEvent::Shut(ShutReason::NoFullReplica)));
    assert!(circle.owner.membership().members.is_empty());
}

/// A register that was put back to what it was yesterday names a member that was isolated since.
#[test]
fn a_register_of_yesterday_is_not_believed() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    let yesterday = circle.register.clone();
    let second = Link {
        node: 1,
        address: 0,
    };
    circle.cut.push(second);
    circle.disconnect(second);
    circle.pass(Duration::from_secs(4));
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
    circle.succeed();
    circle.open();
    circle.succeed();
    circle.register = yesterday;
    circle.hear_fenced(&[0]);
    circle.cut.retain(|link| *link != second);
    circle.pass(Duration::from_secs(10));
    assert!(!circle.owner.is_open(), "{:?}", circle.events);
    assert!(circle.told(&OwnerEvent::Shut(ShutReason::NoFullReplica)));
    assert_eq!(circle.held(0)[0].length, 1);
}

/// One that stands still was adopted, found to stand still, and adopted again, without end.
#[test]
fn a_member_at_fault_is_not_adopted() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    circle.succeed();
    circle.owner.timed_out(circle.now);
    while circle.register.serve(&mut circle.owner, circle.now) {}
    circle.connect();
    while !matches!(circle.owner.phase, Phase::Learning { .. }) {
        for node in 0..2 {
            circle.carry(Link { node, address: 0 });
        }
    }
    circle.owner.replicas[1].fault = Some(Fault::Stalled);
    circle.settle();
    assert!(circle.owner.is_open());
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.pass(Duration::from_secs(6));
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
}

/// Whoever adopts a group decided by what it saw: it takes the group from that owner and no other, and
/// never makes one.
#[test]
fn a_group_is_adopted_from_the_owner_that_was_seen_and_no_other() {
    for (takes, opens) in [(1, true), (2, false)] {
        let mut circle = Circle::new(2, 1, |_| {});
        circle.open();
        assert_eq!(circle.owner.membership().epoch, 1);
        let mut config = circle.owner.config.clone();
        (config.life, config.takes) = (77, Some(takes));
        circle.owner = Owner::new(config);
        circle.connections.clear();
        circle.events.clear();
        circle.pass(Duration::from_secs(1));
        assert_eq!(circle.owner.is_open(), opens, "{takes}");
        assert_eq!(circle.told(&OwnerEvent::Fenced), !opens, "{takes}");
    }
    let mut circle = Circle::new(2, 1, |config| config.takes = Some(1));
    circle.pass(Duration::from_secs(1));
    assert!(circle.told(&OwnerEvent::Fenced) && !circle.owner.is_open());
}

impl Circle {
    /// It starts again, under the incarnation it had, with what this log has of the group, if anything.
    fn start_with(&mut self, number: usize, log: MemoryLog) {
        let config = self.node_config.clone();
        let mut node = Node::new(config, self.incarnations[number], Some(log.clone()));
        if !log.0.borrow().segments.is_empty() {
            node.restore("gateway", |replay| log.read(replay)).unwrap();
        }
        self.logs[number] = Some(log);
        self.nodes[number] = Some(node);
    }
}

/// What a member has instead of a group that is gone there, under the incarnation of the record, is not
/// what the record speaks of, whoever asks and however often.
#[test]
fn a_group_that_is_gone_from_a_member_is_never_taken_for_empty() {
    let mut circle = Circle::new(2, 1, |_| {});
    for number in 0..2 {
        circle.logs[number] = Some(MemoryLog::new(0));
        circle.start(number);
    }
    circle.open();
    let queue = circle.queue("q");
    for _ in 0..20 {
        circle.owner.commit(put(queue, 10)).unwrap();
    }
    circle.settle();
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
    let held = circle.held(1);
    circle.kill(0);
    circle.kill(1);
    circle.start_with(0, MemoryLog::new(1 << 12));
    for _ in 0..3 {
        circle.succeed();
        circle.pass(Duration::from_secs(10));
        assert!(!circle.owner.is_open(), "{:?}", circle.events);
    }
    // Nor after a restart of the node.
    let log = circle.logs[0].clone().unwrap();
    circle.kill(0);
    circle.start_with(0, log);
    circle.pass(Duration::from_secs(10));
    assert!(!circle.owner.is_open(), "{:?}", circle.events);
    let log = circle.logs[1].clone().unwrap();
    circle.start_with(1, log);
    circle.pass(Duration::from_secs(10));
    assert!(circle.owner.is_open(), "{:?}", circle.owner.table());
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
    assert_eq!((circle.held(0), circle.held(1)), (held.clone(), held));
}
