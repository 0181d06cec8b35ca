//! Addresses: that the other one is used in time, and that nobody else is taken for the node.

use super::*;

/// From when nothing comes through any more, whatever was under way, until changes go the other way.
#[test]
fn the_standby_connection_takes_over_within_a_second() {
    for offset in [0, 1, 100, 150, 299] {
        let mut circle = Circle::new(2, 2, |_| {});
        circle.open();
        circle.pass(Duration::from_secs(3));
        let queue = circle.queue("q");
        circle.now = circle.now + Duration::from_millis(offset);
        circle.owner.timed_out(circle.now);
        circle.settle();
        circle.owner.commit(put(queue, 10)).unwrap();
        circle.cut.push(Link {
            node: 0,
            address: 0,
        });
        let cut_at = circle.now;
        circle.settle();
        while circle.owner.acknowledged() < circle.owner.submitted() {
            let next = circle.owner.deadline();
            assert!(next > circle.now && next < circle.now + Duration::from_secs(9));
            circle.now = next;
            circle.owner.timed_out(next);
            circle.settle();
        }
        let took = circle.now.saturating_since(cut_at);
        assert!(took <= Duration::from_secs(1), "{took:?} after {offset} ms");
        let switched = OwnerEvent::Replica {
            node: "n0".to_owned(),
            change: ReplicaChange::Switched,
        };
        assert!(circle.told(&switched), "{:?}", circle.events);
    }
}

/// The second address of the first node is one of the second node.
fn with_a_wrong_address() -> (Circle, Vec<QueueStat>) {
    let mut circle = Circle::new(2, 2, |_| {});
    let wrong = Link {
        node: 0,
        address: 1,
    };
    circle.astray = Some((wrong, 1));
    circle.open();
    let queue = circle.queue("q");
    for _ in 0..20 {
        circle.owner.commit(put(queue, 10)).unwrap();
    }
    circle.pass(Duration::from_secs(1));
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
    let held = circle.held(1);
    circle.kill(0);
    (circle, held)
}

fn ends_well(mut circle: Circle, held: &[QueueStat]) {
    circle.pass(Duration::from_secs(15));
    assert!(circle.owner.is_open(), "{:?}", circle.events);
    assert_eq!(circle.states(), [SyncState::Out, SyncState::Sync]);
    assert_eq!(circle.held(1), held);
    circle.start(0);
    circle.pass(Duration::from_secs(8));
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
    assert_eq!((&*circle.held(0), &*circle.held(1)), (held, held));
}

#[test]
fn another_node_at_a_standby_address_is_not_attached_to() {
    let (circle, held) = with_a_wrong_address();
    ends_well(circle, &held);
}

#[test]
fn one_node_under_two_names_is_never_two_replicas() {
    let (mut circle, held) = with_a_wrong_address();
    circle.succeed();
    ends_well(circle, &held);
}
