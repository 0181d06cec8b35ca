//! RESET, kept frames, COMPLETE: every rule, in memory and with a log.

use vere_spoolwire::{
    Change, FLAG_KEPT, KeptGrants, Txn, encode_batch, encode_change, encode_create,
    encode_kept_create, encode_purge, encode_reset,
};

use super::peer::{HELLO, Peer, READER, Site, encoded, request};
use super::*;

const QUEUE: QueueId = QueueId(3);
const OTHER: QueueId = QueueId(4);

fn reset(through: u64) -> Vec<u8> {
    encoded(|out| encode_reset(out, Txn(through)))
}

fn put(queue: QueueId, id: u64, meta: &'static [u8]) -> Change<'static> {
    Change::Put {
        queue,
        id: RecordId(id),
        meta,
        body: Some(b"body"),
    }
}

const fn delete(id: u64) -> Change<'static> {
    Change::Delete {
        queue: QUEUE,
        id: RecordId(id),
    }
}

const fn move_to(id: u64, to: QueueId, to_id: u64) -> Change<'static> {
    Change::Move {
        queue: QUEUE,
        id: RecordId(id),
        to,
        to_id: RecordId(to_id),
        meta: Some(b"moved"),
    }
}

const fn replace(id: u64) -> Change<'static> {
    Change::Replace {
        queue: QUEUE,
        id: RecordId(id),
        meta: b"replaced",
    }
}

fn change(txn: u64, change: Change<'_>) -> Vec<u8> {
    encoded(|out| encode_change(out, Txn(txn), &change, 0))
}

fn kept(txn: u64, change: Change<'_>) -> Vec<u8> {
    encoded(|out| encode_change(out, Txn(txn), &change, FLAG_KEPT))
}

fn batch(txn: u64, changes: &[Change<'_>]) -> Vec<u8> {
    encoded(|out| encode_batch(out, Txn(txn), changes.iter().copied(), 0))
}

fn kept_queue(txn: u64, id: QueueId, next: u64) -> Vec<u8> {
    let queue = QueueStat {
        id,
        name: format!("queue-{id}"),
        limits: QueueLimits {
            length_max: 2,
            bytes_max: 1000,
        },
        readers: KeptGrants::default(),
        first: RecordId(1),
        next: RecordId(next),
        length: 77,
        bytes: 88,
    };
    encoded(|out| encode_kept_create(out, Txn(txn), &queue))
}

fn create(txn: u64, id: QueueId) -> Vec<u8> {
    let name = format!("queue-{id}");
    encoded(|out| encode_create(out, Txn(txn), id, &name, QueueLimits::UNLIMITED))
}

/// An owner whose group is incomplete after transaction 10, with two queues that are at 50.
fn incomplete(site: &mut Site) -> Peer {
    let (mut owner, _) = site.welcomed(HELLO);
    let frames = [
        reset(10),
        kept_queue(10, QUEUE, 50),
        kept_queue(10, OTHER, 50),
    ];
    owner.send(&mut site.node, &frames.concat());
    site.settle();
    assert_eq!(owner.closed(&mut site.node), None);
    owner
}

/// Numbers and metadata of what a queue holds.
fn records(site: &Site, queue: QueueId) -> Vec<(u64, Vec<u8>)> {
    let all = site.contents();
    let (_, records) = all.iter().find(|(stat, _)| stat.id == queue).unwrap();
    records
        .iter()
        .map(|(id, meta, _)| (id.0, meta.clone()))
        .collect()
}

/// What is acknowledged, and refused of it, after everything was synced.
fn acks(site: &mut Site, owner: &mut Peer) -> (u64, Vec<(u64, NodeRefusal)>) {
    site.settle();
    let (mut last, mut all) = (0, Vec::new());
    for answer in owner.answers(&mut site.node) {
        match answer {
            Answer::Ack { through, refused } => {
                last = through.0;
                all.extend(refused.iter().map(|(txn, why)| (txn.0, *why)));
            }
            other => panic!("{other:?}"),
        }
    }
    (last, all)
}

#[test]
fn a_reset_begins_anew_anywhere() {
    for through in [0, 2, 1_000_000] {
        for mut site in Site::both() {
            let (mut owner, welcome) = site.welcomed(HELLO);
            assert!(!welcome.syncing);
            let frames = [
                create(1, QUEUE),
                change(2, put(QUEUE, 1, b"a")),
                change(3, put(QUEUE, 1, b"refused")),
                change(4, put(QUEUE, 2, b"b")),
            ];
            owner.send(&mut site.node, &frames.concat());
            let expected = (4, vec![(3, NodeRefusal::RecordOrder)]);
            assert_eq!(acks(&mut site, &mut owner), expected);
            owner.send(&mut site.node, &reset(through));
            let stat = site.stat();
            assert_eq!((stat.processed.0, stat.acknowledged.0), (through, through));
            assert_eq!((stat.queues, stat.records, stat.bytes), (0, 0, 0));
            assert!(stat.syncing);
            assert_eq!(site.node.memory.records, 0);
            owner.send(&mut site.node, &create(through + 1, OTHER));
            assert_eq!(acks(&mut site, &mut owner), (through + 1, vec![]));
            let (mut owner, welcome) = site.welcomed(HELLO);
            assert!(welcome.syncing);
            assert_eq!(welcome.processed.0, through + 1);
            assert_eq!(welcome.refused, [], "those of another time");
            owner.send(&mut site.node, &create(through + 3, QUEUE));
            assert_eq!(owner.closed(&mut site.node), Some(CloseReason::TxnGap));
        }
    }
}

#[test]
fn a_whole_group_takes_nothing_but_transactions() {
    let frames = [
        kept(2, put(QUEUE, 7, b"a")),
        kept(2, delete(1)),
        kept_queue(2, OTHER, 5),
        kept_queue(2, QUEUE, 5),
    ];
    for frame in frames {
        for mut site in Site::both() {
            let (mut owner, _) = site.welcomed(HELLO);
            let whole = [create(1, QUEUE), change(2, put(QUEUE, 1, b"a"))];
            owner.send(&mut site.node, &whole.concat());
            site.settle();
            let before = site.contents();
            owner.send(&mut site.node, &frame);
            assert_eq!(owner.closed(&mut site.node), Some(CloseReason::Malformed));
            assert_eq!(site.contents(), before);
        }
    }
}

#[test]
fn what_cannot_be_carried_over_ends_the_connection() {
    let stranger = QueueId(9);
    let taken = encoded(|out| {
        let mut queue = QueueStat {
            id: QUEUE,
            name: "another name".to_owned(),
            limits: QueueLimits::UNLIMITED,
            readers: KeptGrants::default(),
            first: RecordId(1),
            next: RecordId(1),
            length: 0,
            bytes: 0,
        };
        encode_kept_create(out, Txn(10), &queue);
        queue.id = OTHER;
    });
    let many =
        encoded(|out| encode_batch(out, Txn(10), [put(QUEUE, 9, b"")].into_iter(), FLAG_KEPT));
    let cases = [
        (kept(11, put(QUEUE, 7, b"a")), CloseReason::TxnGap),
        (kept(9, put(QUEUE, 7, b"a")), CloseReason::TxnGap),
        (kept_queue(11, QUEUE, 60), CloseReason::TxnGap),
        (kept(10, put(stranger, 7, b"a")), CloseReason::Malformed),
        (kept(10, put(QUEUE, 0, b"a")), CloseReason::Malformed),
        (kept(10, put(QUEUE, u64::MAX, b"a")), CloseReason::Malformed),
        (kept(10, delete(7)), CloseReason::Malformed),
        (kept(10, replace(7)), CloseReason::Malformed),
        (kept(10, move_to(7, OTHER, 60)), CloseReason::Malformed),
        (many, CloseReason::Malformed),
        (taken, CloseReason::Malformed),
    ];
    for (frame, reason) in cases {
        for mut site in Site::both() {
            let mut owner = incomplete(&mut site);
            owner.send(&mut site.node, &frame);
            assert_eq!(owner.closed(&mut site.node), Some(reason), "{frame:?}");
            assert_eq!(site.stat().records, 0);
            assert!(site.stat().syncing);
        }
    }
}

#[test]
fn what_is_carried_over_goes_where_it_was() {
    for mut site in Site::both() {
        let mut owner = incomplete(&mut site);
        let frames = [
            kept(10, put(QUEUE, 7, b"seven")),
            kept(10, put(QUEUE, 5, b"five")),
            change(11, put(QUEUE, 50, b"fifty")),
            kept(11, put(QUEUE, 5, b"five again")),
            kept(11, put(QUEUE, 50, b"fifty again")),
            // Above all numbers: so is what follows.
            kept(11, put(QUEUE, 60, b"sixty")),
            change(12, put(QUEUE, 60, b"refused")),
            change(13, put(QUEUE, 61, b"sixty-one")),
            kept_queue(13, OTHER, 20),
            kept_queue(13, OTHER, 70),
            change(14, put(OTHER, 69, b"refused")),
        ];
        owner.send(&mut site.node, &frames.concat());
        let order = NodeRefusal::RecordOrder;
        // The queues may hold two records: while they are copied nobody counts.
        assert_eq!(
            acks(&mut site, &mut owner),
            (14, vec![(12, order), (14, order)])
        );
        for crash in [false, true] {
            if crash && site.log.is_none() {
                continue;
            }
            if crash {
                site.crash(0);
            }
            let expected: Vec<(u64, Vec<u8>)> = vec![
                (5, b"five again".to_vec()),
                (7, b"seven".to_vec()),
                (50, b"fifty again".to_vec()),
                (60, b"sixty".to_vec()),
                (61, b"sixty-one".to_vec()),
            ];
            assert_eq!(records(&site, QUEUE), expected);
            assert_eq!(site.node.memory.records, 5);
            let queues = site.node.queues("gateway");
            assert_eq!((queues[0].next.0, queues[1].next.0), (62, 70));
            assert_eq!(queues[0].limits.length_max, 2);
            assert_eq!(queues[0].bytes, site.stat().bytes);
            assert!(site.stat().syncing);
        }
    }
}

#[test]
fn changes_of_what_is_not_here_yet_are_passed_over() {
    let stranger = QueueId(9);
    for mut site in Site::both() {
        let mut owner = incomplete(&mut site);
        let gone = encoded(|out| encode_purge(out, Txn(15), stranger, RecordId(9), true));
        let kept_back = encoded(|out| encode_purge(out, Txn(22), QUEUE, RecordId(8), true));
        let frames = [
            kept(10, put(QUEUE, 7, b"seven")),
            kept(10, put(QUEUE, 9, b"nine")),
            change(11, delete(6)),
            change(12, replace(6)),
            change(13, move_to(6, OTHER, 50)),
            // Its number is used up all the same.
            change(14, put(OTHER, 50, b"refused")),
            gone,
            batch(
                16,
                &[
                    delete(6),
                    put(OTHER, 51, b"from batch"),
                    replace(5),
                    delete(7),
                ],
            ),
            change(17, put(stranger, 1, b"copied with its queue")),
            change(18, move_to(6, stranger, 2)),
            batch(19, &[put(stranger, 3, b"copied"), move_to(6, stranger, 4)]),
            batch(20, &[put(OTHER, 52, b"refused"), delete(6), delete(6)]),
            batch(
                21,
                &[put(OTHER, 52, b"refused"), put(OTHER, 52, b"refused")],
            ),
            kept_back,
            change(23, move_to(9, OTHER, 53)),
        ];
        owner.send(&mut site.node, &frames.concat());
        assert_eq!(
            acks(&mut site, &mut owner),
            (
                23,
                vec![
                    (14, NodeRefusal::RecordOrder),
                    (20, NodeRefusal::BatchConflict),
                    (21, NodeRefusal::RecordOrder),
                    (22, NodeRefusal::QueueNotEmpty),
                ]
            )
        );
        for crash in [false, true] {
            if crash && site.log.is_none() {
                continue;
            }
            if crash {
                site.crash(0);
            }
            assert_eq!(records(&site, QUEUE), []);
            let expected = [(51, b"from batch".to_vec()), (53, b"moved".to_vec())];
            assert_eq!(records(&site, OTHER), expected);
        }
    }
}

#[test]
fn a_whole_group_is_strict_again() {
    for mut site in Site::both() {
        let mut owner = incomplete(&mut site);
        let frames = [
            kept(10, put(QUEUE, 7, b"seven")),
            request(Request::Complete, 5),
            change(11, delete(6)),
            change(12, put(QUEUE, 50, b"fifty")),
            change(13, put(QUEUE, 51, b"one too many")),
        ];
        owner.send(&mut site.node, &frames.concat());
        site.settle();
        let answers = owner.answers(&mut site.node);
        let alive = |answer: &Answer| matches!(answer, Answer::Alive { seq: Seq(5), .. });
        assert_eq!(answers.iter().filter(|answer| alive(answer)).count(), 1);
        let refused: Vec<_> = answers
            .into_iter()
            .filter_map(|answer| match answer {
                Answer::Ack { refused, .. } => Some(refused),
                _ => None,
            })
            .flatten()
            .collect();
        let why = [
            (Txn(11), NodeRefusal::NoRecord),
            (Txn(13), NodeRefusal::QueueFull),
        ];
        assert_eq!(refused, why);
        assert!(!site.stat().syncing);
        // Once more: the answer may have been lost.
        owner.send(&mut site.node, &request(Request::Complete, 6));
        site.settle();
        assert_eq!(
            owner.answers(&mut site.node),
            [Answer::Alive {
                seq: Seq(6),
                processed: Txn(13),
                acknowledged: Txn(13)
            }]
        );
        owner.send(&mut site.node, &kept(13, put(QUEUE, 8, b"late")));
        assert_eq!(owner.closed(&mut site.node), Some(CloseReason::Malformed));
        if site.log.is_some() {
            site.crash(0);
            assert!(!site.stat().syncing);
            assert_eq!(site.stat().records, 2);
        }
    }
}

#[test]
fn completion_is_told_when_it_is_synced() {
    let mut site = Site::new(Some(MemoryLog::new(1 << 20)));
    let log = site.log.clone().unwrap();
    let mut owner = incomplete(&mut site);
    let frames = [
        kept(10, put(QUEUE, 7, b"seven")),
        request(Request::Complete, 5),
    ];
    owner.send(&mut site.node, &frames.concat());
    site.node.end_turn(now());
    assert_eq!(owner.answers(&mut site.node), []);
    let synced = log.0.borrow().synced;
    assert!(synced < log.0.borrow().position);
    log.0.borrow_mut().sync();
    site.node.end_turn(now());
    let alive = |seq| Answer::Alive {
        seq: Seq(seq),
        processed: Txn(10),
        acknowledged: Txn(10),
    };
    assert_eq!(owner.answers(&mut site.node), [alive(5)]);
    // Nothing new to sync: at once.
    owner.send(&mut site.node, &request(Request::Complete, 6));
    site.node.end_turn(now());
    assert_eq!(owner.answers(&mut site.node), [alive(6)]);
    // Whoever asked is gone: nobody else is told.
    let late = [
        change(11, put(QUEUE, 50, b"")),
        request(Request::Complete, 7),
    ];
    owner.send(&mut site.node, &late.concat());
    let (mut second, _) = site.welcomed(HELLO);
    site.settle();
    let answers = second.answers(&mut site.node);
    assert!(
        matches!(
            answers[..],
            [Answer::Ack {
                through: Txn(11),
                ..
            }]
        ),
        "{answers:?}"
    );
}

/// Whatever a crash leaves of it, a group that is not whole does not pass for one.
#[test]
fn a_crash_leaves_an_incomplete_group_incomplete() {
    for more in 0..8 {
        let mut site = Site::new(Some(MemoryLog::new(200)));
        let (mut owner, _) = site.welcomed(HELLO);
        let old = [create(1, QUEUE), change(2, put(QUEUE, 1, b"old"))];
        owner.send(&mut site.node, &old.concat());
        assert_eq!(acks(&mut site, &mut owner).0, 2);
        // One entry each; only the last is not there with seven entries more.
        let frames = [
            reset(10),
            kept_queue(10, QUEUE, 50),
            kept(10, put(QUEUE, 1, b"one")),
            kept(10, put(QUEUE, 2, b"two")),
            change(11, put(QUEUE, 50, b"fifty")),
            kept(11, put(QUEUE, 3, b"three")),
            change(12, delete(2)),
            request(Request::Complete, 1),
        ];
        for frame in &frames {
            owner.send(&mut site.node, frame);
        }
        site.crash(more);
        let stat = site.stat();
        assert_eq!(
            stat.syncing,
            more > 0,
            "{more}: before the RESET it is the old one"
        );
        if more == 0 {
            assert_eq!(records(&site, QUEUE), [(1, b"old".to_vec())]);
        }
        let (mut owner, welcome) = site.welcomed(HELLO);
        assert_eq!(welcome.syncing, more > 0);
        if more == 7 {
            assert_eq!((stat.processed, stat.records), (Txn(12), 3));
            owner.send(&mut site.node, &request(Request::Complete, 2));
            site.settle();
            let answers = owner.answers(&mut site.node);
            assert!(matches!(answers[..], [Answer::Alive { seq: Seq(2), .. }]));
            site.crash(0);
            assert!(!site.stat().syncing);
            assert_eq!(site.stat().records, 3);
        }
    }
}

#[test]
fn without_room_nothing_is_carried_over() {
    for log in [None, Some(MemoryLog::new(1 << 20))] {
        let config = NodeConfig {
            memory_max: 64 << 20,
            ..NodeConfig::new(secret())
        };
        let mut site = Site::with(config, log);
        let mut owner = incomplete(&mut site);
        let body = vec![7; 100_000];
        let large = |id| Change::Put {
            queue: QUEUE,
            id: RecordId(id),
            meta: b"",
            body: Some(&body),
        };
        let mut taken = 0;
        let reason = loop {
            owner.send(&mut site.node, &kept(10, large(1 + taken)));
            site.settle();
            if let Some(reason) = owner.closed(&mut site.node) {
                break reason;
            }
            taken += 1;
            assert!(site.node.memory.used() <= 64 << 20);
        };
        assert_eq!(reason, CloseReason::NoRoom);
        assert!(taken > 30, "{taken}");
        assert_eq!(site.stat().records, taken);
        let (mut owner, _) = site.welcomed(HELLO);
        // A record too long to be read without room for it ends the connection as well.
        let longer = vec![7; 30 << 20];
        let longer = Change::Put {
            queue: QUEUE,
            id: RecordId(1),
            meta: b"",
            body: Some(&longer),
        };
        owner.send(&mut site.node, &change(11, large(10_000)));
        assert_eq!(
            acks(&mut site, &mut owner),
            (11, vec![(11, NodeRefusal::NodeFull)])
        );
        owner.send(&mut site.node, &kept(11, longer));
        assert_eq!(owner.closed(&mut site.node), Some(CloseReason::NoRoom));
        // It begins again.
        let (mut owner, _) = site.welcomed(HELLO);
        owner.send(&mut site.node, &reset(11));
        site.settle();
        site.node.tick(now());
        site.settle();
        assert_eq!(owner.closed(&mut site.node), None);
        assert!(site.node.memory.used() < 16 << 20);
        if let Some(log) = &site.log {
            assert!(log.0.borrow().octets() < 8 << 20, "and the log is short");
        }
    }
}

/// What somebody is just reading is read to its end.
#[test]
fn a_reset_leaves_answers_under_way_alone() {
    for mut site in Site::both() {
        let (owner, _) = site.welcomed(HELLO);
        let (mut reader, _) = site.welcomed(READER);
        let there = change(2, put(QUEUE, 1, b"there"));
        owner.send(&mut site.node, &[create(1, QUEUE), there.clone()].concat());
        let fetch = Request::Fetch {
            queue: QUEUE,
            from: RecordId(0),
            records: 9,
            octets: 9_999,
        };
        reader.send(&mut site.node, &request(fetch, 1));
        let mut frames = reset(10);
        frames.extend(kept_queue(10, QUEUE, 1));
        for id in 1..200 {
            frames.extend(kept(10, put(QUEUE, id, b"another")));
        }
        owner.send(&mut site.node, &frames);
        site.settle();
        assert_eq!(site.stat().records, 199);
        let frames = reader.frames(&mut site.node);
        assert_eq!(frames[1], there);
    }
}

/// A batch that ends something goes through where a new record does not: what becomes of a record that
/// failed is often another one.
#[test]
fn what_ends_something_has_room_of_its_own() {
    for log in [None, Some(MemoryLog::new(1 << 20))] {
        let config = NodeConfig {
            memory_max: 64 << 20,
            ..NodeConfig::new(secret())
        };
        let mut site = Site::with(config, log);
        let (mut owner, _) = site.welcomed(HELLO);
        owner.send(
            &mut site.node,
            &[create(1, QUEUE), create(2, OTHER)].concat(),
        );
        let body = vec![7; 100_000];
        let (mut txn, mut id) = (3, 1);
        let large = |queue, id| Change::Put {
            queue,
            id: RecordId(id),
            meta: b"",
            body: Some(&body),
        };
        acks(&mut site, &mut owner);
        loop {
            owner.send(&mut site.node, &change(txn, large(QUEUE, id)));
            let (_, refused) = acks(&mut site, &mut owner);
            (txn, id) = (txn + 1, id + 1);
            if !refused.is_empty() {
                break;
            }
        }
        let alone = batch(txn, &[large(OTHER, 1), large(OTHER, 2)]);
        owner.send(&mut site.node, &alone);
        let (_, refused) = acks(&mut site, &mut owner);
        assert_eq!(refused, [(txn, NodeRefusal::NodeFull)]);
        let (mut done, mut other) = (0, 3);
        let why = loop {
            txn += 1;
            done += 1;
            // A short one ends, two long ones come.
            let batch = batch(
                txn,
                &[large(OTHER, other), large(OTHER, other + 1), delete(done)],
            );
            owner.send(&mut site.node, &batch);
            other += 2;
            let (_, refused) = acks(&mut site, &mut owner);
            if let Some((_, why)) = refused.first() {
                break *why;
            }
            assert!(site.node.memory.used() <= 64 << 20);
        };
        assert_eq!(why, NodeRefusal::NodeFull);
        assert!(done > 5, "{done}");
        txn += 1;
        owner.send(&mut site.node, &change(txn, delete(done)));
        assert_eq!(acks(&mut site, &mut owner), (txn, vec![]));
        assert!(site.node.memory.used() <= 64 << 20);
    }
}

/// A node was told of a queue before it had a list of them, refused, and was said to differ.
#[test]
fn what_goes_to_a_queue_that_is_not_here_yet_leaves_where_it_was() {
    let stranger = QueueId(9);
    for mut site in Site::both() {
        let mut owner = incomplete(&mut site);
        let frames = [
            kept(10, put(QUEUE, 7, b"seven")),
            kept(10, put(QUEUE, 9, b"nine")),
            change(11, move_to(7, stranger, 1)),
            batch(12, &[move_to(9, stranger, 2), put(OTHER, 50, b"stays")]),
            kept_queue(12, stranger, 3),
            kept(12, put(stranger, 1, b"seven")),
        ];
        owner.send(&mut site.node, &frames.concat());
        assert_eq!(acks(&mut site, &mut owner), (12, vec![]));
        for crash in [false, true] {
            if crash && site.log.is_some() {
                site.crash(0);
            }
            assert_eq!(records(&site, QUEUE), []);
            assert_eq!(records(&site, OTHER), [(50, b"stays".to_vec())]);
            assert_eq!(records(&site, stranger), [(1, b"seven".to_vec())]);
            assert_eq!(site.stat().records, 2);
        }
    }
}
