//! What the simulation of the spool found (`crates/check/sim`), one story each.

use vere_spoolwire::Answer;

use super::*;

impl Circle {
    /// Carries what the owner says, and nothing of what it is answered.
    pub(super) fn carry_up(&mut self, link: Link) {
        let id = self.connections[&link];
        let node = self.nodes[link.node].as_mut().unwrap();
        loop {
            let pending = self.owner.output(link);
            let buffer = node.buffer(id);
            let count = pending.len().min(buffer.len());
            if count == 0 {
                return;
            }
            buffer[..count].copy_from_slice(&pending[..count]);
            self.owner.sent(link, count);
            node.received(id, count, self.now);
        }
    }

    /// Two nodes, of which the first has no room for the next record of the queue.
    fn with_one_full() -> (Self, QueueId) {
        let mut circle = Self::new(2, 1, |_| {});
        circle.node_config.memory_max = 64 << 20;
        circle.start(0);
        circle.node_config.memory_max = 1 << 30;
        circle.open();
        let queue = circle.queue("q");
        while circle.refusals() == 0 {
            circle.owner.commit(put(queue, 1_000_000)).unwrap();
            circle.settle();
        }
        (circle, queue)
    }

    /// Two nodes, of which the first has no room on its disk and refuses what the second one does; the
    /// owner has not heard it yet.
    fn with_one_that_differs() -> (Self, QueueId) {
        let mut circle = Self::new(2, 1, |_| {});
        circle.logs[0] = Some(MemoryLog::new(0));
        circle.start(0);
        circle.open();
        let queue = circle.queue("q");
        circle.owner.commit(put(queue, 10)).unwrap();
        circle.settle();
        let log = circle.exchange_without_room(queue);
        circle.carry(FIRST);
        circle.carry(SECOND);
        log.0.borrow_mut().sync();
        (circle, queue)
    }

    /// A record takes the place of the first one, for which the first node's log has no room; nothing is
    /// carried yet.
    fn exchange_without_room(&mut self, queue: QueueId) -> MemoryLog {
        let log = self.logs[0].clone().unwrap();
        log.0.borrow_mut().reserve = true;
        self.hung = vec![0];
        let mut exchange = put(queue, 10);
        exchange.delete(queue, RecordId(1));
        self.owner.commit(exchange).unwrap();
        log
    }

    fn settle_events(&mut self) {
        while let Some(event) = self.owner.poll_event() {
            self.events.push(event);
        }
    }

    fn refusals(&self) -> usize {
        let refused = |event: &&OwnerEvent| matches!(event, OwnerEvent::Refused { .. });
        self.events.iter().filter(refused).count()
    }

    fn isolated(&self, node: &str, fault: Fault) -> bool {
        self.told(&OwnerEvent::Replica {
            node: node.to_owned(),
            change: ReplicaChange::Isolated(fault),
        })
    }
}

/// One refused what the other one did, and the owner died before it knew: the next one took both for
/// the same, since both had processed as much.
#[test]
fn members_that_differ_are_not_both_adopted() {
    let (mut circle, queue) = Circle::with_one_full();
    circle.owner.commit(put(queue, 1_000_000)).unwrap();
    circle.carry_up(FIRST);
    circle.carry_up(SECOND);
    assert_ne!(circle.held(0)[0].length, circle.held(1)[0].length);
    circle.succeed();
    circle.open();
    circle.pass(Duration::from_secs(10));
    let [first, second] = [0, 1].map(|node| circle.held(node)[0].clone());
    assert_eq!((first.length, first.bytes), (second.length, second.bytes));
}

/// A number that one refused and the other one took back is used up on the latter only. The next owner
/// learned from the former and gave it out again.
#[test]
fn a_number_that_was_taken_back_is_not_given_out_again() {
    let (mut circle, queue) = Circle::with_one_full();
    let [first, second] = [0, 1].map(|node| circle.held(node)[0].clone());
    assert_eq!(first.length, second.length);
    assert!(first.next < second.next);
    circle.succeed();
    circle.open();
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.pass(Duration::from_secs(10));
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    let order = |event: &OwnerEvent| {
        let refusal = NodeRefusal::RecordOrder;
        matches!(event, OwnerEvent::Refused { refusal: why, .. } if *why == refusal)
    };
    assert!(!circle.events.iter().any(order), "{:?}", circle.events);
}

/// A fault found before the takeover was over was never forgotten, and no leader found.
#[test]
fn a_node_that_is_well_again_is_adopted() {
    let mut circle = Circle::new(2, 1, |config| config.replicas = 1);
    circle.open();
    circle.queue("q");
    circle.succeed();
    circle.owner.timed_out(circle.now);
    circle.register.serve(&mut circle.owner, circle.now);
    circle.owner.connected(FIRST, [1; 32], circle.now);
    let mut octets = Vec::new();
    Answer::Close(CloseReason::LogFailed).encode(&mut octets);
    let closed = circle.owner.input(FIRST, &octets, circle.now);
    assert_eq!(closed, Err(OwnerError::Closed(CloseReason::LogFailed)));
    circle.owner.disconnected(FIRST, circle.now);
    circle.open();
}

/// A rebuild for which there is no room began again at once, for ever.
#[test]
fn a_node_without_room_is_left_alone_for_a_while() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    for _ in 0..100 {
        circle.owner.commit(put(queue, 1_000_000)).unwrap();
        circle.settle();
    }
    circle.kill(1);
    circle.pass(Duration::from_secs(4));
    circle.node_config.memory_max = 64 << 20;
    circle.start(1);
    circle.pass(Duration::from_secs(2));
    assert!(circle.isolated("n1", Fault::NoRoom));
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Out]);
    assert!(circle.owner.is_open());
}

/// A node that was frozen while it was being rebuilt was left alone for 5 s after that.
#[test]
fn a_node_that_was_away_during_its_rebuild_is_tried_as_soon_as_it_is_back() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    for number in 0..10_000 {
        circle.owner.commit(put(queue, number % 300)).unwrap();
        if number % 100 == 0 {
            circle.settle();
        }
    }
    circle.kill(1);
    circle.pass(Duration::from_secs(4));
    circle.start(1);
    circle.connect();
    let (node, change) = ("n1".to_owned(), ReplicaChange::Rebuilding);
    let rebuilding = OwnerEvent::Replica { node, change };
    for _ in 0..10 {
        circle.carry(SECOND);
        circle.register.serve(&mut circle.owner, circle.now);
    }
    while let Some(event) = circle.owner.poll_event() {
        circle.events.push(event);
    }
    assert!(circle.told(&rebuilding));
    circle.events.clear();
    circle.cut.push(SECOND);
    circle.disconnect(SECOND);
    circle.pass(Duration::from_secs(4));
    assert!(circle.isolated("n1", Fault::Away));
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Out]);
    circle.cut.clear();
    circle.pass(Duration::from_millis(300));
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
    assert_eq!(circle.held(0), circle.held(1));
}

/// A node that vanished during the handshake was waited for, for ever.
#[test]
fn a_handshake_does_not_last_for_ever() {
    let mut circle = Circle::new(1, 1, |config| config.replicas = 1);
    circle.owner.timed_out(circle.now);
    circle.register.serve(&mut circle.owner, circle.now);
    circle.owner.connected(FIRST, [1; 32], circle.now);
    let patience = circle.now + Duration::from_secs(3);
    assert!(circle.owner.deadline() <= patience);
    circle.owner.timed_out(patience);
    let silent = Some((FIRST, OwnerError::Silent));
    assert_eq!(circle.owner.poll_drop(), silent);
}

/// A node that was being rebuilt did a MOVE that the full one refused for want of room, and became
/// full with it.
#[test]
fn a_rebuilt_node_that_did_what_was_refused_is_rebuilt_again() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    let limits = QueueLimits {
        length_max: 1,
        ..QueueLimits::UNLIMITED
    };
    let (narrow, _) = circle.owner.create_queue("narrow", limits).unwrap();
    circle.owner.commit(put(narrow, 10)).unwrap();
    for number in 0..10_000 {
        circle.owner.commit(put(queue, number % 300)).unwrap();
    }
    circle.settle();
    circle.kill(1);
    circle.pass(Duration::from_secs(4));
    circle.start(1);
    circle.connect();
    for number in 1..1_000 {
        let mut batch = Batch::new();
        batch.move_to(queue, RecordId(number), narrow, None);
        circle.owner.commit(batch).unwrap();
        if number % 20 == 0 {
            circle.carry(FIRST);
            circle.register.serve(&mut circle.owner, circle.now);
            circle.carry(SECOND);
        }
    }
    circle.pass(Duration::from_secs(15));
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
    assert_eq!(circle.held(0), circle.held(1));
    assert_eq!(circle.held(0)[0].length, 10_000);
}

/// The connection of a node whose promotion was asked for broke: the owner began its rebuild again, and
/// a moment later the record said that it held everything.
#[test]
fn a_node_that_may_be_full_already_is_not_reset() {
    let mut circle = Circle::new(2, 2, |_| {});
    circle.open();
    let queue = circle.queue("q");
    for _ in 0..10_000 {
        circle.owner.commit(put(queue, 300)).unwrap();
    }
    circle.settle();
    circle.kill(1);
    circle.pass(Duration::from_secs(4));
    circle.start(1);
    let mut promotion = None;
    while promotion.is_none() {
        circle.connect();
        for link in circle.owner.links().collect::<Vec<_>>() {
            circle.carry(link);
        }
        while let Some(request) = circle.owner.poll_register() {
            let RegisterRequest::Swap { expected, value } = request else {
                panic!("{request:?}");
            };
            let full = Membership::decode(&value).unwrap().full() == 2;
            if full {
                promotion = Some((expected, value));
            } else {
                let swap = circle.register.swap(expected, value);
                circle.owner.register_swapped(&swap, circle.now);
            }
        }
        circle.now = circle.now + Duration::from_millis(300);
        circle.owner.timed_out(circle.now);
    }
    circle.register_reachable = false;
    let active = circle.owner.replicas[1].active.unwrap();
    let link = Link {
        node: 1,
        address: active,
    };
    circle.disconnect(link);
    circle.carry(Link {
        node: 1,
        address: 1 - active,
    });
    let (expected, value) = promotion.unwrap();
    let swap = circle.register.swap(expected, value);
    circle.owner.register_swapped(&swap, circle.now);
    circle.register_reachable = true;
    circle.pass(Duration::from_secs(1));
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
    assert_eq!(circle.held(0), circle.held(1));
    assert_eq!(circle.held(1)[0].length, 10_000);
}

/// An owner that had been stopped took that for the slowness of a healthy node, and isolated it.
#[test]
fn who_stood_still_isolates_nobody_for_it() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.carry(SECOND);
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.now = circle.now + Duration::from_secs(20);
    circle.owner.timed_out(circle.now);
    circle.settle();
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
    let isolated = |event: &OwnerEvent| {
        let OwnerEvent::Replica { change, .. } = event else {
            return false;
        };
        matches!(change, ReplicaChange::Isolated(_))
    };
    assert!(!circle.events.iter().any(isolated), "{:?}", circle.events);
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
}

/// What was asked of a node that was isolated before it answered was taken from its old memory.
#[test]
fn a_node_that_was_isolated_answers_no_reads() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    let fetch = circle.owner.fetch(queue, RecordId(0), 10, 1_000);
    circle.carry_up(FIRST);
    circle.owner.replicas[0].fault = Some(Fault::Diverged);
    circle.owner.timed_out(circle.now);
    circle.register.serve(&mut circle.owner, circle.now);
    assert_eq!(circle.owner.reads[&fetch].asked, Some(1));
    circle.pass(Duration::from_secs(1));
    let answers = circle.events.iter().filter(|event| {
        let seq = fetch;
        matches!(event, OwnerEvent::Block { seq: of, .. } if *of == seq)
    });
    assert_eq!(answers.count(), 1);
}

/// A node refused what another one did, and more before it could be done without; then it was the last one
/// left. What it had said meanwhile was not heard, and the next acknowledgement passed for all of it: mail
/// was acknowledged that no node held.
#[test]
fn what_a_node_refuses_that_differs_is_heard() {
    let (mut circle, queue) = Circle::with_one_that_differs();
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.carry(SECOND);
    circle.kill(1);
    circle.carry(FIRST);
    assert_eq!(circle.owner.replicas[0].fault, Some(Fault::Diverged));
    circle.hung.clear();
    circle.carry(FIRST);
    circle.start(1);
    circle.pass(Duration::from_secs(1));
    assert!(circle.isolated("n1", Fault::Lost), "{:?}", circle.events);
    let mut last = Batch::new();
    last.delete(queue, RecordId(1));
    circle.owner.commit(last).unwrap();
    circle.pass(Duration::from_secs(10));
    assert_eq!(circle.refusals(), 2, "{:?}", circle.events);
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
    assert_eq!([0, 1].map(|node| circle.held(node)[0].length), [0, 0]);
}

/// A member that refused what another one did vouches for nothing any more, whatever it says, and what it
/// refused is not refused: without a change of the record nothing more is acknowledged, and with it by the
/// other one alone.
#[test]
fn a_member_that_differs_is_not_counted() {
    let (mut circle, queue) = Circle::with_one_that_differs();
    circle.register_reachable = false;
    let before = circle.owner.acknowledged();
    circle.hung.clear();
    circle.carry(FIRST);
    assert_eq!(circle.owner.replicas[0].fault, Some(Fault::Diverged));
    circle.owner.commit(put(queue, 10)).unwrap();
    // Only that one says something of it.
    while circle.carry(FIRST) {}
    circle.settle_events();
    assert_eq!(circle.owner.acknowledged(), before);
    assert_eq!(circle.refusals(), 0, "{:?}", circle.events);
    // The other one has all of it; the record still names both.
    while circle.carry(SECOND) {}
    circle.settle_events();
    assert_eq!(circle.owner.acknowledged(), before);
    circle.register_reachable = true;
    circle.settle();
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
    assert_eq!(circle.refusals(), 0, "{:?}", circle.events);
    assert_eq!(circle.held(1)[0].length, 2);
}

/// That a node had refused what another one did hid that it had lost its memory since, and as the last one
/// it was gone on with, empty.
#[test]
fn a_node_that_differs_and_is_lost_is_lost() {
    let (mut circle, _) = Circle::with_one_that_differs();
    circle.kill(1);
    circle.carry(FIRST);
    assert_eq!(circle.owner.replicas[0].fault, Some(Fault::Diverged));
    circle.hung.clear();
    circle.kill(0);
    circle.start(0);
    circle.start(1);
    circle.pass(Duration::from_secs(10));
    assert!(!circle.owner.is_open(), "{:?}", circle.events);
    let shut = OwnerEvent::Shut(ShutReason::NoFullReplica);
    assert!(circle.told(&shut), "{:?}", circle.events);
    assert_eq!(circle.owner.membership().full(), 2);
}

/// A node was copied from a member that had refused what the others did, before anybody had heard of that. The
/// member left, the node stayed, with a record that the others had ended.
#[test]
fn what_was_copied_from_one_that_differs_is_copied_again() {
    let mut circle = Circle::new(3, 1, |config| config.replicas = 3);
    circle.logs[0] = Some(MemoryLog::new(0));
    circle.start(0);
    circle.nodes[2] = None;
    circle.pass(Duration::from_secs(10));
    assert!(circle.owner.is_open(), "{:?}", circle.events);
    let queue = circle.queue("q");
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    circle.exchange_without_room(queue);
    circle.start(2);
    circle.settle();
    // It is whole, as far as that goes, and the first one is not heard yet.
    assert_eq!(circle.held(2)[0].length, 1);
    assert!(!circle.isolated("n0", Fault::Diverged));
    circle.hung.clear();
    circle.settle();
    assert!(
        circle.isolated("n0", Fault::Diverged),
        "{:?}",
        circle.events
    );
    circle.pass(Duration::from_secs(1));
    assert_eq!(circle.states()[1..], [SyncState::Sync; 2]);
    assert_eq!(circle.held(1), circle.held(2));
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
}
