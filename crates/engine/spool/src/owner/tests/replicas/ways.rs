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
