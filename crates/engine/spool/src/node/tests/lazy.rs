//! What nobody waits for is synced along with what somebody waits for, or a little later.

use std::time::Duration;

use vere_spoolwire::{Change, Txn, encode_batch, encode_change, encode_create};

use super::peer::{HELLO, Peer, Site, encoded, request};
use super::*;

const QUEUE: QueueId = QueueId(3);

fn change(txn: u64, change: &Change<'_>) -> Vec<u8> {
    encoded(|out| encode_change(out, Txn(txn), change, 0))
}

fn put(txn: u64, id: u64) -> Vec<u8> {
    let put = Change::Put {
        queue: QUEUE,
        id: RecordId(id),
        meta: b"meta",
        body: Some(b"body"),
    };
    change(txn, &put)
}

fn delete(txn: u64, id: u64) -> Vec<u8> {
    let (queue, id) = (QUEUE, RecordId(id));
    change(txn, &Change::Delete { queue, id })
}

/// A synced group of so many records: the last transaction is one above.
fn filled(records: u64) -> (Site, Peer) {
    let mut site = Site::new(Some(MemoryLog::new(1 << 20)));
    let (mut owner, _) = site.welcomed(HELLO);
    let queue = encoded(|out| encode_create(out, Txn(1), QUEUE, "q", QueueLimits::UNLIMITED));
    owner.send(&mut site.node, &queue);
    for id in 1..=records {
        owner.send(&mut site.node, &put(id + 1, id));
    }
    site.settle();
    owner.answers(&mut site.node);
    (site, owner)
}

/// How many syncs were asked for until the end of a turn at this time.
fn asked(site: &mut Site, now: Timestamp) -> u64 {
    site.node.end_turn(now);
    site.log.as_ref().unwrap().0.borrow().asked
}

#[test]
fn a_delete_waits_for_the_next_sync() {
    let (mut site, mut owner) = filled(10);
    let before = asked(&mut site, now());
    owner.send(&mut site.node, &delete(12, 3));
    assert_eq!(asked(&mut site, now()), before, "nobody waits for it");
    let delay = site.config.sync_delay;
    assert_eq!(site.node.deadline(), Some(now() + delay));
    owner.send(&mut site.node, &put(13, 11));
    assert_eq!(asked(&mut site, now()), before + 1, "one for both");
    assert_eq!(site.node.deadline(), None);
    site.log.as_ref().unwrap().0.borrow_mut().sync();
    site.node.end_turn(now());
    let answers = owner.answers(&mut site.node);
    let [Answer::Ack { through, .. }] = answers[..] else {
        panic!("one acknowledgement: {answers:?}");
    };
    assert_eq!(through, Txn(13));
}

#[test]
fn a_delete_alone_is_synced_soon_and_acknowledged_then() {
    let (mut site, mut owner) = filled(10);
    let before = asked(&mut site, now());
    let delay = site.config.sync_delay;
    owner.send(&mut site.node, &delete(12, 3));
    assert_eq!(asked(&mut site, now()), before);
    owner.send(&mut site.node, &delete(13, 4));
    let early = now() + (delay - Duration::from_millis(1));
    assert_eq!(asked(&mut site, early), before);
    assert_eq!(site.node.deadline(), Some(now() + delay), "since the first");
    assert_eq!(asked(&mut site, now() + delay), before + 1);
    assert_eq!(owner.answers(&mut site.node), [], "not before it is synced");
    site.log.as_ref().unwrap().0.borrow_mut().sync();
    site.node.end_turn(now() + delay);
    let answers = owner.answers(&mut site.node);
    assert!(
        matches!(
            answers[..],
            [Answer::Ack {
                through: Txn(13),
                ..
            }]
        ),
        "{answers:?}"
    );
}

/// Long after anybody waited for a sync, who ends records and waits for that need not wait for others.
#[test]
fn deletes_are_synced_when_nothing_more_comes() {
    let (mut site, mut owner) = filled(40);
    let ms = Duration::from_millis;
    let delay = site.config.sync_delay;
    let begin = now() + Duration::from_secs(1);
    let before = asked(&mut site, begin);
    owner.send(&mut site.node, &delete(42, 1));
    assert_eq!(asked(&mut site, begin), before);
    assert_eq!(site.node.deadline(), Some(begin + ms(2)));
    // As long as more comes it is put off, though not for ever.
    let mut at = begin;
    for txn in 43.. {
        owner.send(&mut site.node, &delete(txn, txn - 41));
        at = at + ms(1);
        if asked(&mut site, at) > before {
            break;
        }
        assert!(at < begin + delay, "{txn}");
        assert_eq!(
            site.node.deadline(),
            Some((at + ms(2)).min(begin + delay)),
            "{txn}"
        );
        if txn == 60 {
            break;
        }
    }
    assert_eq!(asked(&mut site, at + ms(1)), before);
    assert_eq!(asked(&mut site, at + ms(2)), before + 1);
    assert_eq!(site.node.deadline(), None);
    // A disk that takes its time is left alone for longer.
    let done = at + ms(9);
    site.log.as_ref().unwrap().0.borrow_mut().sync();
    site.node.end_turn(done);
    assert!(!owner.answers(&mut site.node).is_empty());
    owner.send(&mut site.node, &delete(61, 20));
    assert_eq!(asked(&mut site, done), before + 1);
    assert_eq!(site.node.deadline(), Some(done + ms(14)), "two syncs of 7");
}

/// As long as records come in as well, their ends go with the syncs that these need.
#[test]
fn deletes_beside_records_wait_for_their_syncs() {
    let (mut site, owner) = filled(10);
    let begin = now() + Duration::from_secs(1);
    owner.send(&mut site.node, &put(12, 11));
    let before = asked(&mut site, begin);
    let later = begin + Duration::from_millis(49);
    owner.send(&mut site.node, &delete(13, 1));
    assert_eq!(asked(&mut site, later), before);
    assert_eq!(site.node.deadline(), Some(later + site.config.sync_delay));
}

/// What a sync by the node itself, which stops it meanwhile, is for.
#[test]
fn one_that_waits_alone_is_acknowledged_in_the_same_turn() {
    let (mut site, mut owner) = filled(10);
    site.log.as_ref().unwrap().0.borrow_mut().brisk = true;
    let alone = |site: &Site| site.log.as_ref().unwrap().0.borrow().alone;
    let before = alone(&site);
    let end_and_begin = [delete(12, 3), put(13, 11)].concat();
    owner.send(&mut site.node, &end_and_begin);
    site.node.end_turn(now());
    assert_eq!(alone(&site), before + 1);
    let answers = owner.answers(&mut site.node);
    let [Answer::Ack { through, .. }] = answers[..] else {
        panic!("one acknowledgement: {answers:?}");
    };
    assert_eq!(through, Txn(13));

    let several = (14..=17).map(|txn| put(txn, txn));
    owner.send(&mut site.node, &several.collect::<Vec<_>>().concat());
    site.node.end_turn(now());
    owner.send(&mut site.node, &put(18, 18));
    site.node.end_turn(now());
    assert_eq!(alone(&site), before + 1, "others wait as well");
    assert_eq!(owner.answers(&mut site.node), []);
}

#[test]
fn many_deletes_do_not_wait() {
    let (mut site, owner) = filled(3000);
    let before = asked(&mut site, now());
    let deletes = (1..=3000).map(|id| delete(id + 3001, id));
    owner.send(&mut site.node, &deletes.collect::<Vec<_>>().concat());
    assert_eq!(asked(&mut site, now()), before + 1);
}

#[test]
fn what_somebody_waits_for_is_synced_at_once() {
    let replace = Change::Replace {
        queue: QUEUE,
        id: RecordId(1),
        meta: b"new",
    };
    let moved = Change::Move {
        queue: QUEUE,
        id: RecordId(1),
        to: QUEUE,
        to_id: RecordId(11),
        meta: None,
    };
    let ends = |second: &Change<'_>| {
        let first = Change::Delete {
            queue: QUEUE,
            id: RecordId(2),
        };
        encoded(|out| encode_batch(out, Txn(12), [first, *second].into_iter(), 0))
    };
    let other = Change::Delete {
        queue: QUEUE,
        id: RecordId(3),
    };
    let cases = [
        (put(12, 11), 1),
        (change(12, &replace), 1),
        (change(12, &moved), 1),
        (ends(&replace), 1),
        (ends(&other), 0),
        ([delete(12, 5), request(Request::Complete, 8)].concat(), 1),
        ([delete(12, 5), request(Request::Heartbeat, 8)].concat(), 0),
    ];
    for (index, (octets, syncs)) in cases.into_iter().enumerate() {
        let (mut site, owner) = filled(10);
        let before = asked(&mut site, now());
        owner.send(&mut site.node, &octets);
        assert_eq!(asked(&mut site, now()), before + syncs, "case {index}");
    }
}
