//! Whose group it is: epochs, standby connections, and who is told to go.

use vere_spoolwire::{Hello, Role, Txn, encode_create};

use super::peer::{HELLO, Peer, READER, Site, encoded, owner_of, request, standby_of};
use super::*;

fn create(txn: u64, queue: u32) -> Vec<u8> {
    let name = format!("queue-{queue}");
    encoded(|out| encode_create(out, Txn(txn), QueueId(queue), &name, QueueLimits::UNLIMITED))
}

fn attach(seen: u64, seq: u64) -> Vec<u8> {
    let acknowledged = Txn(seen);
    request(Request::Attach { acknowledged }, seq)
}

#[test]
fn an_owner_of_a_later_epoch_takes_the_group_for_good() {
    for mut site in Site::both() {
        let (mut first, welcome) = site.welcomed(owner_of(7, 1));
        assert_eq!((welcome.owner, welcome.epoch), (0, 0));
        first.send(&mut site.node, &create(1, 0));
        let (mut standby, _) = site.welcomed(standby_of(7, 1));
        let (mut reader, _) = site.welcomed(READER);
        assert_eq!(site.rejected(owner_of(8, 1)), CloseReason::Fenced);
        assert_eq!(site.rejected(owner_of(7, 0)), CloseReason::Fenced);
        assert_eq!(first.closed(&mut site.node), None, "they changed nothing");
        let (mut second, welcome) = site.welcomed(owner_of(8, 3));
        assert_eq!((welcome.owner, welcome.epoch), (7, 1));
        assert_eq!(welcome.processed, Txn(1));
        assert_eq!(first.closed(&mut site.node), Some(CloseReason::Fenced));
        assert_eq!(standby.closed(&mut site.node), Some(CloseReason::Fenced));
        assert_eq!(
            reader.closed(&mut site.node),
            None,
            "readers are not fenced"
        );
        first.send(&mut site.node, &create(2, 1));
        second.send(&mut site.node, &create(2, 2));
        assert_eq!(site.node.queues("gateway")[1].id, QueueId(2));
        assert_eq!(site.rejected(owner_of(7, 2)), CloseReason::Fenced);
        assert_eq!(site.stat().epoch, 3);
        // The same life with a later epoch is a takeover as well: it asked the register again.
        let (_third, welcome) = site.welcomed(owner_of(8, 4));
        assert_eq!((welcome.owner, welcome.epoch), (8, 3));
        assert_eq!(second.closed(&mut site.node), Some(CloseReason::Fenced));
    }
}

#[test]
fn an_epoch_outlives_a_crash() {
    let mut site = Site::new(Some(MemoryLog::new(1 << 10)));
    let (owner, _) = site.welcomed(owner_of(7, 1));
    owner.send(&mut site.node, &create(1, 0));
    let (owner, _) = site.welcomed(owner_of(8, 2));
    // Enough to begin other segments of log, whose heads have to say it too.
    let filler: Vec<u8> = (2..100).flat_map(|txn| create(txn, txn as u32)).collect();
    for part in filler.chunks(600) {
        owner.send(&mut site.node, part);
        site.settle();
    }
    site.crash(0);
    assert_eq!(site.stat().epoch, 2);
    assert_eq!(site.rejected(owner_of(7, 1)), CloseReason::Fenced);
    assert_eq!(site.rejected(owner_of(9, 2)), CloseReason::Fenced);
    let (_owner, welcome) = site.welcomed(owner_of(8, 2));
    assert_eq!((welcome.owner, welcome.epoch), (8, 2));
    assert_eq!(welcome.processed, Txn(99));
}

/// What nothing fences is taken over by whoever comes, as ever.
#[test]
fn without_an_epoch_the_last_one_counts() {
    for mut site in Site::both() {
        let (mut first, _) = site.welcomed(owner_of(7, 0));
        let (mut standby, _) = site.welcomed(standby_of(7, 0));
        let (mut again, _) = site.welcomed(owner_of(7, 0));
        assert_eq!(first.closed(&mut site.node), Some(CloseReason::TakenOver));
        assert_eq!(standby.closed(&mut site.node), None, "the same owner's");
        let (_other, welcome) = site.welcomed(owner_of(8, 0));
        assert_eq!(welcome.owner, 7);
        assert_eq!(again.closed(&mut site.node), Some(CloseReason::TakenOver));
        assert_eq!(standby.closed(&mut site.node), Some(CloseReason::TakenOver));
    }
}

#[test]
fn a_standby_is_the_owners_and_there_are_few() {
    for mut site in Site::both() {
        assert_eq!(site.rejected(standby_of(7, 1)), CloseReason::NoGroup);
        assert!(site.node.stats().is_empty());
        let (mut owner, _) = site.welcomed(owner_of(7, 1));
        for (life, epoch) in [(7, 0), (8, 1), (7, 2), (8, 2)] {
            assert_eq!(site.rejected(standby_of(life, epoch)), CloseReason::Fenced);
        }
        let mut standbys: Vec<Peer> = (0..4).map(|_| site.welcomed(standby_of(7, 1)).0).collect();
        assert_eq!(site.rejected(standby_of(7, 1)), CloseReason::TooMany);
        site.node.closed(standbys[0].id);
        standbys[0] = site.welcomed(standby_of(7, 1)).0;
        assert_eq!(owner.closed(&mut site.node), None);
        standbys[0].send(&mut site.node, &request(Request::Stat, 1));
        let answers = standbys[0].answers(&mut site.node);
        assert!(matches!(answers[..], [Answer::Stats { seq: Seq(1), stat }] if stat.epoch == 1));
    }
}

#[test]
fn what_is_not_for_a_standby_or_reader_ends_its_connection() {
    let queues = Request::Queues {
        from: QueueId(0),
        count: 1,
    };
    for mut site in Site::both() {
        let (owner, _) = site.welcomed(owner_of(7, 1));
        owner.send(&mut site.node, &create(1, 0));
        let reset = encoded(|out| vere_spoolwire::encode_reset(out, Txn(5)));
        let (complete, duty) = (Request::Complete, Request::Duty { log: false });
        let owners = [create(2, 1), reset, request(complete, 1), request(duty, 1)];
        for octets in owners.iter().chain([&request(queues, 1)]) {
            let (mut standby, _) = site.welcomed(standby_of(7, 1));
            standby.send(&mut site.node, octets);
            assert_eq!(standby.closed(&mut site.node), Some(CloseReason::Malformed));
            site.node.closed(standby.id);
        }
        for octets in owners.iter().chain([&attach(0, 1)]) {
            let (mut reader, _) = site.welcomed(READER);
            reader.send(&mut site.node, octets);
            assert_eq!(reader.closed(&mut site.node), Some(CloseReason::Malformed));
            site.node.closed(reader.id);
        }
        assert_eq!(site.node.queues("gateway").len(), 1);
        let (mut owner, _) = site.welcomed(owner_of(7, 1));
        owner.send(&mut site.node, &attach(0, 1));
        assert_eq!(owner.closed(&mut site.node), Some(CloseReason::Malformed));
    }
}

#[test]
fn a_standby_that_attaches_is_the_owner_from_there_on() {
    for mut site in Site::both() {
        let (mut first, welcome) = site.welcomed(owner_of(7, 1));
        assert!(welcome.syncing, "whole only when its owner says so");
        first.send(&mut site.node, &request(Request::Complete, 7));
        let (mut standby, welcome) = site.welcomed(standby_of(7, 1));
        assert_eq!((welcome.processed, welcome.syncing), (Txn(0), false));
        let (mut other, _) = site.welcomed(standby_of(7, 1));
        // The second is refused: the number is taken.
        let taken = encoded(|out| {
            encode_create(out, Txn(2), QueueId(0), "other", QueueLimits::UNLIMITED);
        });
        let frames = [create(1, 0), taken, create(3, 1)].concat();
        first.send(&mut site.node, &frames);
        site.settle();
        // Half a frame on the old connection is nothing.
        first.send(&mut site.node, &create(4, 2)[..30]);
        // Transactions follow without waiting for the answer, cut anywhere.
        let octets = [attach(1, 9), create(3, 1), create(4, 3), create(5, 4)].concat();
        for piece in octets.chunks(33) {
            standby.send(&mut site.node, piece);
        }
        assert_eq!(first.closed(&mut site.node), Some(CloseReason::TakenOver));
        site.node.closed(first.id);
        site.settle();
        let answers = standby.answers(&mut site.node);
        assert_eq!(
            answers[0],
            Answer::Attached {
                seq: Seq(9),
                processed: Txn(3),
                acknowledged: Txn(3),
                refused: vec![(Txn(2), NodeRefusal::QueueTaken)],
            }
        );
        assert!(
            matches!(answers.last(), Some(Answer::Ack { through: Txn(5), refused }) if refused.is_empty()),
            "{answers:?}"
        );
        assert_eq!(site.node.queues("gateway").len(), 4);
        assert_eq!(other.closed(&mut site.node), None);
        // And back again.
        other.send(&mut site.node, &[attach(5, 1), create(6, 5)].concat());
        assert_eq!(standby.closed(&mut site.node), Some(CloseReason::TakenOver));
        assert_eq!(site.node.queues("gateway").len(), 5);
        assert_eq!(site.stat().processed, Txn(6));
    }
}

/// What could not be logged yet must not be passed over by taking up another connection.
#[test]
fn nobody_attaches_to_a_log_without_room() {
    let mut site = Site::new(Some(MemoryLog::new(1 << 10)));
    let log = site.log.clone().unwrap();
    let (first, _) = site.welcomed(owner_of(7, 1));
    let (mut standby, _) = site.welcomed(standby_of(7, 1));
    let capacity = log.0.borrow().octets();
    log.0.borrow_mut().capacity = capacity;
    first.send(&mut site.node, &create(1, 0));
    standby.send(&mut site.node, &attach(0, 1));
    assert_eq!(standby.closed(&mut site.node), Some(CloseReason::LogFull));
    assert_eq!(site.rejected(owner_of(8, 2)), CloseReason::LogFull);
    assert_eq!(site.stat().epoch, 1, "nor takes it over");
    log.0.borrow_mut().capacity = u64::MAX;
    site.settle();
    site.crash(0);
    assert_eq!(site.stat().processed, Txn(1));
}

#[test]
fn a_group_may_be_made_without_a_log() {
    let mut site = Site::new(Some(MemoryLog::new(1 << 10)));
    let hello = Hello {
        logged: false,
        ..HELLO
    };
    let (mut owner, welcome) = site.welcomed(hello);
    assert!(!welcome.synced);
    owner.send(&mut site.node, &create(1, 0));
    let answers = owner.answers(&mut site.node);
    assert!(matches!(
        answers[..],
        [Answer::Ack {
            through: Txn(1),
            ..
        }]
    ));
    assert!(!site.stat().synced);
    assert_eq!(site.log.as_ref().unwrap().0.borrow().octets(), 0);
    // It says nothing of a group that exists.
    let (_owner, welcome) = site.welcomed(HELLO);
    assert!(!welcome.synced);
    // After a restart it is not new: something is missing.
    site.crash(0);
    assert!(site.stat().syncing);
    let mut site = Site::new(Some(MemoryLog::new(1 << 10)));
    let (_, welcome) = site.welcomed(HELLO);
    assert!(welcome.synced);
    let (_, welcome) = site.welcomed(hello);
    assert!(welcome.synced);
    let role = Role::Reader;
    assert!(site.welcomed(Hello { role, ..hello }).1.synced);
}
