//! A full member that is slower than the others: when it is replaced, when it is not, and when it may
//! come back.

use super::*;

const WINDOW: Duration = Duration::from_secs(10);
const REST: Duration = Duration::from_secs(60);
/// Between two messages.
const STEP: Duration = Duration::from_millis(30);

fn circle(nodes: usize, adjust: impl FnOnce(&mut OwnerConfig)) -> Circle {
    let mut circle = Circle::new(nodes, 1, |config| {
        (config.slow_after, config.slow_rest) = (WINDOW, REST);
        adjust(config);
    });
    circle.open();
    circle
}

impl Circle {
    /// Mail for a while, each message answered late by some nodes. There are never fewer than `least` full
    /// members.
    fn work(&mut self, queue: QueueId, slow: &[usize], time: Duration, least: usize) {
        let until = self.now + time;
        while self.now < until {
            self.owner.commit(put(queue, 10)).unwrap();
            for link in self.owner.links().collect::<Vec<_>>() {
                if !slow.contains(&link.node) {
                    self.carry(link);
                }
            }
            self.now = self.now + STEP;
            self.owner.timed_out(self.now);
            self.resting.clear();
            self.settle();
            assert!(self.owner.membership().full() >= least, "{:?}", self.events);
            assert_eq!(self.owner.acknowledged(), self.owner.submitted());
        }
    }

    fn changed(&self, node: usize, change: ReplicaChange) -> bool {
        let node = format!("n{node}");
        self.told(&OwnerEvent::Replica { node, change })
    }
}

const SLOW: ReplicaChange = ReplicaChange::Isolated(Fault::Slow);

#[test]
fn a_slow_member_is_replaced_by_another_node() {
    let mut circle = circle(3, |_| {});
    let queue = circle.queue("q");
    circle.work(queue, &[], WINDOW, 2);
    circle.work(queue, &[1], WINDOW, 2);
    assert!(circle.changed(1, ReplicaChange::Slow));
    assert!(circle.changed(1, SLOW), "{:?}", circle.events);
    let states = [SyncState::Sync, SyncState::Resting, SyncState::Sync];
    assert_eq!(circle.states(), states);
    assert_eq!(circle.held(0), circle.held(2));
    // It was the other one that was rebuilt first.
    let place = |what: ReplicaChange, node: &str| {
        let is = |event: &OwnerEvent| matches!(event, OwnerEvent::Replica { node: of, change } if of == node && *change == what);
        circle.events.iter().position(is)
    };
    assert!(place(ReplicaChange::Full, "n2") < place(SLOW, "n1"));
    // It is left alone, and nobody waits for it.
    let wants = |circle: &Circle| {
        circle.owner.wants(Link {
            node: 1,
            address: 0,
        })
    };
    assert!(!wants(&circle));
}

#[test]
fn a_burst_changes_nothing() {
    let mut circle = circle(3, |_| {});
    let queue = circle.queue("q");
    for _ in 0..5 {
        circle.work(queue, &[1], WINDOW / 2, 2);
        circle.work(queue, &[], WINDOW, 2);
    }
    assert!(!circle.changed(1, ReplicaChange::Slow));
    let states = [SyncState::Sync, SyncState::Sync, SyncState::Out];
    assert_eq!(circle.states(), states);
}

/// Now and then an answer is late: fewer than one in a hundred.
#[test]
fn what_is_late_now_and_then_is_not_slow() {
    let mut circle = circle(3, |_| {});
    let queue = circle.queue("q");
    for _ in 0..10 {
        circle.work(queue, &[1], STEP, 2);
        circle.work(queue, &[], STEP * 100, 2);
    }
    assert!(!circle.changed(1, ReplicaChange::Slow));
}

#[test]
fn all_are_never_slow() {
    let mut circle = circle(4, |config| config.replicas = 3);
    let queue = circle.queue("q");
    let until = circle.now + WINDOW * 4;
    while circle.now < until {
        for node in 0..3 {
            circle.work(queue, &[node], STEP, 3);
        }
    }
    for node in 0..3 {
        assert!(!circle.changed(node, ReplicaChange::Slow));
    }
}

#[test]
fn of_two_nodes_none_leaves() {
    let mut circle = circle(2, |_| {});
    let queue = circle.queue("q");
    circle.work(queue, &[1], WINDOW * 3, 2);
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Slow]);
    circle.work(queue, &[], WINDOW, 2);
    assert!(circle.changed(1, ReplicaChange::Keeps));
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
}

/// It was left alone like one that left as too slow, for minutes, and longer each time.
#[test]
fn who_was_slow_and_goes_away_has_not_left_for_that() {
    let mut circle = circle(2, |_| {});
    let queue = circle.queue("q");
    circle.work(queue, &[1], WINDOW * 3, 2);
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Slow]);
    circle.kill(1);
    circle.pass(Duration::from_secs(4));
    let away = ReplicaChange::Isolated(Fault::Away);
    assert!(circle.changed(1, away), "{:?}", circle.events);
    assert!(!circle.changed(1, SLOW));
    circle.start(1);
    circle.pass(Duration::from_secs(10));
    assert_eq!(circle.states(), [SyncState::Sync; 2]);
}

/// Nor does one more than must be wait for another node; it is back after a rest, and longer away the
/// next time.
#[test]
fn one_of_three_leaves_at_once_and_comes_back_later() {
    let mut circle = circle(3, |config| (config.replicas, config.replicas_min) = (3, 2));
    let queue = circle.queue("q");
    let out = [SyncState::Sync, SyncState::Resting, SyncState::Sync];
    circle.work(queue, &[1], WINDOW, 2);
    assert_eq!(circle.states(), out);
    circle.work(queue, &[1], REST - WINDOW, 2);
    assert_eq!(circle.states(), out);
    circle.work(queue, &[], WINDOW, 2);
    assert_eq!(circle.states(), [SyncState::Sync; 3]);
    assert_eq!(circle.held(0), circle.held(1));
    circle.work(queue, &[1], WINDOW, 2);
    circle.work(queue, &[], REST + WINDOW, 2);
    assert_eq!(circle.states(), out);
    circle.work(queue, &[], REST, 2);
    assert_eq!(circle.states(), [SyncState::Sync; 3]);
}

/// What was slow once is forgotten once it has been well for as long as it would rest.
#[test]
fn a_node_that_is_well_for_long_begins_anew() {
    let mut circle = circle(3, |config| config.replicas = 3);
    let queue = circle.queue("q");
    circle.work(queue, &[1], WINDOW, 2);
    circle.work(queue, &[], REST * 3, 2);
    assert_eq!(circle.states(), [SyncState::Sync; 3]);
    circle.work(queue, &[1], WINDOW, 2);
    assert_eq!(circle.states()[1], SyncState::Resting);
    circle.work(queue, &[], REST + WINDOW, 2);
    assert_eq!(
        circle.states(),
        [SyncState::Sync; 3],
        "the first rest once more"
    );
}

#[test]
fn who_is_needed_does_not_rest() {
    let mut circle = circle(3, |_| {});
    let queue = circle.queue("q");
    circle.work(queue, &[1], WINDOW, 2);
    assert_eq!(circle.states()[1], SyncState::Resting);
    circle.kill(0);
    circle.pass(Duration::from_secs(10));
    assert_eq!(circle.states()[1..], [SyncState::Sync; 2]);
    assert_eq!(circle.held(1), circle.held(2));
}

/// While a node is rebuilt those that it is copied from have more to do.
#[test]
fn while_a_node_is_rebuilt_nobody_is_slow() {
    let mut circle = Circle::new(3, 1, |config| {
        (config.slow_after, config.slow_rest) = (WINDOW, REST);
        (config.replicas, config.isolate_after) = (3, WINDOW * 100);
    });
    circle.nodes[2] = None;
    circle.pass(Duration::from_secs(10));
    assert!(circle.owner.is_open());
    let queue = circle.queue("q");
    circle.start(2);
    let target = Link {
        node: 2,
        address: 0,
    };
    while circle.owner.membership().member("n2").is_none() {
        circle.connect();
        circle.carry(target);
        circle.register.serve(&mut circle.owner, circle.now);
    }
    circle.cut.push(target);
    circle.disconnect(target);
    circle.work(queue, &[1], WINDOW * 2, 2);
    assert_eq!(circle.states()[2], SyncState::Rebuilding(0));
    assert!(!circle.changed(1, ReplicaChange::Slow));
    circle.cut.clear();
    circle.work(queue, &[1], WINDOW * 2, 2);
    let states = [SyncState::Sync, SyncState::Resting, SyncState::Sync];
    assert_eq!(circle.states(), states);
}

/// Nodes with logs: one on the first machine, the others on the second.
fn logging() -> Circle {
    let mut circle = Circle::new(3, 1, |config| {
        (config.slow_after, config.slow_rest) = (WINDOW, REST);
        config.durable = true;
        for (number, node) in config.nodes.iter_mut().enumerate() {
            node.machine = number.min(1);
        }
    });
    for number in 0..3 {
        circle.logs[number] = Some(MemoryLog::new(0));
        circle.start(number);
    }
    circle.open();
    circle.pass(Duration::from_secs(1));
    circle
}

/// Its machine has a log all the same: of the one that takes its place.
#[test]
fn the_log_of_a_slow_member_is_kept_by_the_next() {
    let mut circle = logging();
    let queue = circle.queue("q");
    let keeps = |circle: &Circle, number: usize| circle.owner.replicas[number].logged;
    assert!(keeps(&circle, 0) && keeps(&circle, 1));
    circle.work(queue, &[1], WINDOW, 2);
    let states = [SyncState::Sync, SyncState::Resting, SyncState::Sync];
    assert_eq!(circle.states(), states);
    circle.work(queue, &[], WINDOW, 2);
    assert!(keeps(&circle, 0) && keeps(&circle, 2));
    assert_eq!(circle.held(0), circle.held(2));
}

/// Who syncs what others only hold in memory is later than they are.
#[test]
fn the_only_one_that_keeps_a_log_is_not_slow() {
    let mut circle = Circle::new(3, 1, |config| {
        (config.slow_after, config.slow_rest) = (WINDOW, REST);
        config.durable = true;
        for node in &mut config.nodes {
            node.machine = 0;
        }
    });
    for number in 0..3 {
        circle.logs[number] = Some(MemoryLog::new(0));
        circle.start(number);
    }
    circle.open();
    circle.pass(Duration::from_secs(1));
    let queue = circle.queue("q");
    circle.work(queue, &[0], WINDOW * 2, 2);
    assert!(!circle.changed(0, ReplicaChange::Slow));
    // The other way round there is no excuse.
    circle.work(queue, &[1], WINDOW, 2);
    let states = [SyncState::Sync, SyncState::Resting, SyncState::Sync];
    assert_eq!(circle.states(), states);
}

#[test]
fn nothing_is_measured_where_it_is_switched_off() {
    let mut circle = circle(3, |config| config.slow_after = Duration::ZERO);
    let queue = circle.queue("q");
    circle.work(queue, &[1], WINDOW * 2, 2);
    assert!(!circle.changed(1, ReplicaChange::Slow));
}
