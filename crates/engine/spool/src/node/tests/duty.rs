//! Groups that get a log while they are in use, and lose it.

use vere_spoolwire::{Change, Hello, Txn, encode_change, encode_create, encode_reset};

use super::super::journal::PROMISES_MAX;
use super::peer::{Contents, HELLO, Peer, Site, encoded, request};
use super::*;

const QUEUE: QueueId = QueueId(3);
const IN_MEMORY: Hello<'static> = Hello {
    logged: false,
    ..HELLO
};

fn create(txn: u64) -> Vec<u8> {
    encoded(|out| encode_create(out, Txn(txn), QUEUE, "q", QueueLimits::UNLIMITED))
}

fn change(txn: u64, change: &Change<'_>) -> Vec<u8> {
    encoded(|out| encode_change(out, Txn(txn), change, 0))
}

fn put(txn: u64, id: u64) -> Vec<u8> {
    let body = [id as u8; 200];
    let change_of = Change::Put {
        queue: QUEUE,
        id: RecordId(id),
        meta: b"meta",
        body: Some(&body),
    };
    change(txn, &change_of)
}

fn delete(txn: u64, id: u64) -> Vec<u8> {
    let (queue, id) = (QUEUE, RecordId(id));
    change(txn, &Change::Delete { queue, id })
}

fn replace(txn: u64, id: u64) -> Vec<u8> {
    let (queue, id) = (QUEUE, RecordId(id));
    let meta = b"replaced";
    change(txn, &Change::Replace { queue, id, meta })
}

fn duty(log: bool, seq: u64) -> Vec<u8> {
    request(Request::Duty { log }, seq)
}

fn is_alive(answers: &[Answer], wanted: u64) -> bool {
    let alive = |answer: &Answer| matches!(answer, Answer::Alive { seq, .. } if seq.0 == wanted);
    answers.iter().filter(|answer| alive(answer)).count() == 1
}

/// A group in memory on a node with a log store: transactions up to 101, records 1 to 100.
fn in_memory() -> (Site, Peer) {
    let mut site = Site::new(Some(MemoryLog::new(1 << 10)));
    let (owner, welcome) = site.welcomed(IN_MEMORY);
    assert!(!welcome.synced);
    owner.send(&mut site.node, &create(1));
    for id in 1..=100 {
        owner.send(&mut site.node, &put(id + 1, id));
    }
    site.settle();
    (site, owner)
}

#[test]
fn everything_a_group_holds_goes_into_its_log() {
    let (mut site, mut owner) = in_memory();
    owner.answers(&mut site.node);
    let mut octets = [delete(102, 7), duty(true, 9), delete(103, 8)].concat();
    octets.extend([replace(104, 9), put(105, 101), replace(106, 101)].concat());
    owner.send(&mut site.node, &octets);
    let answers = owner.answers(&mut site.node);
    assert!(
        matches!(
            answers[..],
            [Answer::Ack {
                through: Txn(102),
                ..
            }]
        ),
        "what came before does not wait for the disk, the rest does: {answers:?}"
    );
    site.settle();
    let answers = owner.answers(&mut site.node);
    assert!(is_alive(&answers, 9), "{answers:?}");
    assert_eq!(site.stat().acknowledged, Txn(106));
    assert!(site.stat().synced);
    assert!(!site.stat().syncing);
    let before = site.contents();
    assert_eq!(before[0].1.len(), 99);
    site.crash(0);
    assert_eq!(site.contents(), before);
    let (mut owner, welcome) = site.welcomed(HELLO);
    assert!(welcome.synced && !welcome.syncing);
    // Once more it is so already.
    owner.send(&mut site.node, &duty(true, 10));
    site.settle();
    assert!(is_alive(&owner.answers(&mut site.node), 10));
}

/// Whatever is lost of a log that was begun late: it passes for the group only when it holds all of it.
#[test]
fn a_log_that_is_not_filled_is_an_incomplete_group() {
    let mut whole = 0;
    for turns in 0..40 {
        let (mut site, mut owner) = in_memory();
        owner.send(&mut site.node, &[duty(true, 9), delete(102, 50)].concat());
        for turn in 0..turns {
            if turn % 3 == 0 {
                owner.send(&mut site.node, &put(103 + turn / 3, 101 + turn / 3));
            }
            site.node.end_turn(now());
            site.log.as_ref().unwrap().0.borrow_mut().sync();
        }
        site.node.end_turn(now());
        let told = is_alive(&owner.answers(&mut site.node), 9);
        let (before, acknowledged) = (site.contents(), site.stat().acknowledged);
        site.crash(usize::MAX);
        assert!(site.stat().processed >= acknowledged);
        if !site.stat().syncing {
            assert_eq!(site.contents(), before, "after {turns}");
        }
        whole += u64::from(!site.stat().syncing);
        assert!(!(told && site.stat().syncing), "told after {turns}");
    }
    assert!((1..40).contains(&whole), "{whole}");
}

/// What a node says of itself when its process died.
fn after_crash(site: &Site, more: usize) -> Site {
    let log = MemoryLog::new(1 << 10);
    let state = site.log.as_ref().unwrap().0.borrow().clone();
    *log.0.borrow_mut() = state;
    let mut copy = Site::with(site.config.clone(), Some(log));
    copy.crash(more);
    copy
}

#[test]
fn a_group_that_needs_no_log_gives_it_up() {
    let mut site = Site::new(Some(MemoryLog::new(1 << 10)));
    let (mut owner, welcome) = site.welcomed(HELLO);
    assert!(welcome.synced);
    let octets = [create(1), put(2, 1), request(Request::Complete, 8)].concat();
    owner.send(&mut site.node, &octets);
    site.settle();
    owner.answers(&mut site.node);
    // As long as the log may pass for the group, it has to have what is acknowledged.
    owner.send(&mut site.node, &[duty(false, 9), put(3, 2)].concat());
    assert_eq!(owner.answers(&mut site.node), []);
    assert_eq!(site.stat().acknowledged, Txn(2));
    let before = after_crash(&site, 0).stat();
    assert!(!before.syncing && before.processed == Txn(2), "{before:?}");
    site.settle();
    let answers = owner.answers(&mut site.node);
    assert!(is_alive(&answers, 9), "{answers:?}");
    assert_eq!(site.stat().acknowledged, Txn(3));
    assert!(!site.stat().synced);
    // From here on memory is enough, and the log says that it is not.
    owner.send(&mut site.node, &put(4, 3));
    assert_eq!(site.stat().acknowledged, Txn(4));
    for more in [0, usize::MAX] {
        let stat = after_crash(&site, more).stat();
        assert!(stat.syncing && stat.records == 0, "{stat:?}");
    }
    site.node.tick(now());
    site.settle();
    assert_eq!(site.log.as_ref().unwrap().0.borrow().segments.len(), 1);
    // And gets it back, with all that came before and between.
    owner.send(
        &mut site.node,
        &[put(5, 4), duty(true, 10), put(6, 5)].concat(),
    );
    site.settle();
    assert!(is_alive(&owner.answers(&mut site.node), 10));
    let before = site.contents();
    assert_eq!(before[0].1.len(), 5);
    site.crash(0);
    assert_eq!(site.contents(), before);
    assert!(!site.stat().syncing);
}

/// A node that was restarted and has left to its log what that held: records 1 to 100.
fn restarted() -> (Site, Contents) {
    let mut site = Site::new(Some(MemoryLog::new(1 << 10)));
    let (owner, _) = site.welcomed(HELLO);
    owner.send(&mut site.node, &create(1));
    for id in 1..=100 {
        owner.send(&mut site.node, &put(id + 1, id));
        site.settle();
    }
    owner.send(&mut site.node, &request(Request::Complete, 8));
    site.settle();
    let before = site.contents();
    site.spill = Some(MemorySpill::new(1));
    site.crash(0);
    let segments = &site.node.groups[0].store.segments;
    assert!(segments.iter().any(|(_, segment)| segment.is_in_log()));
    assert!(site.stat().spilled > 10_000, "{:?}", site.stat());
    (site, before)
}

#[test]
fn what_was_left_to_a_log_comes_back_before_it_is_given_up() {
    let (mut site, mut before) = restarted();
    let (mut owner, welcome) = site.welcomed(HELLO);
    assert!(welcome.synced);
    owner.send(&mut site.node, &[duty(false, 9), delete(102, 100)].concat());
    site.node.end_turn(now());
    assert!(!is_alive(&owner.answers(&mut site.node), 9));
    assert!(site.stat().synced, "until all of it is there");
    site.settle();
    assert!(is_alive(&owner.answers(&mut site.node), 9));
    assert!(!site.stat().synced);
    site.node.tick(now());
    site.settle();
    assert_eq!(site.log.as_ref().unwrap().0.borrow().segments.len(), 1);
    before[0].1.pop();
    assert_eq!(site.contents()[0].1, before[0].1);
    assert_eq!(site.node.failure(), None);
}

#[test]
fn a_log_stays_when_its_owner_goes_before_it_was_given_up() {
    let (mut site, _) = restarted();
    let (mut owner, _) = site.welcomed(HELLO);
    owner.send(&mut site.node, &duty(false, 9));
    assert!(!is_alive(&owner.answers(&mut site.node), 9));
    site.node.closed(owner.id);
    site.settle();
    assert!(site.stat().synced);
    // One that says that it is to keep the log is as good.
    let (mut owner, welcome) = site.welcomed(HELLO);
    assert!(welcome.synced);
    owner.send(&mut site.node, &[duty(false, 9), duty(true, 10)].concat());
    site.settle();
    assert!(is_alive(&owner.answers(&mut site.node), 10));
    assert!(site.stat().synced);
    assert!(site.log.as_ref().unwrap().0.borrow().segments.len() > 5);
}

/// The group goes on in memory when the log fails before it holds everything.
#[test]
fn a_log_that_fails_while_it_is_filled_takes_nothing_with_it() {
    let (mut site, mut owner) = in_memory();
    owner.send(&mut site.node, &[duty(true, 9), put(102, 101)].concat());
    site.log.as_ref().unwrap().0.borrow_mut().failed = true;
    site.node.end_turn(now());
    assert_eq!(owner.closed(&mut site.node), Some(CloseReason::NoLog));
    site.node.closed(owner.id);
    assert_eq!(site.node.failure(), None);
    let (mut owner, welcome) = site.welcomed(HELLO);
    assert!(!welcome.synced && !welcome.syncing);
    owner.send(&mut site.node, &put(103, 102));
    assert_eq!(site.stat().acknowledged, Txn(103));
    assert_eq!(site.contents()[0].1.len(), 102);
    owner.send(&mut site.node, &duty(true, 10));
    assert_eq!(owner.closed(&mut site.node), Some(CloseReason::NoLog));
}

#[test]
fn a_node_without_logs_says_so() {
    let mut site = Site::new(None);
    let (mut owner, _) = site.welcomed(HELLO);
    owner.send(&mut site.node, &duty(false, 1));
    assert!(is_alive(&owner.answers(&mut site.node), 1), "so it is");
    owner.send(&mut site.node, &duty(true, 2));
    assert_eq!(owner.closed(&mut site.node), Some(CloseReason::NoLog));
}

/// A group that is being rebuilt gets a log: it is whole when both are done, in either order.
#[test]
fn a_rebuilt_group_may_get_a_log_meanwhile() {
    for early in [false, true] {
        let (mut site, mut owner) = in_memory();
        let reset = encoded(|out| encode_reset(out, Txn(200)));
        let (complete, begin) = (request(Request::Complete, 8), duty(true, 9));
        owner.send(&mut site.node, &[reset, create(201)].concat());
        for id in 1..=100 {
            owner.send(&mut site.node, &put(201 + id, id));
        }
        owner.send(&mut site.node, &begin);
        if early {
            owner.send(&mut site.node, &complete);
            site.settle();
        } else {
            site.settle();
            assert!(is_alive(&owner.answers(&mut site.node), 9));
            let mut copy = Site::with(site.config.clone(), site.log.clone());
            copy.crash(0);
            assert!(copy.stat().syncing);
            owner.send(&mut site.node, &complete);
            site.settle();
        }
        assert!(is_alive(&owner.answers(&mut site.node), 8));
        let before = site.contents();
        assert_eq!(before[0].1.len(), 100);
        site.crash(0);
        assert!(!site.stat().syncing);
        assert_eq!(site.contents(), before);
    }
}

/// COMPLETE of a whole group says that what came before is safe, its owner's coming too, however long the
/// log takes to be filled.
#[test]
fn what_is_safe_is_told_before_the_log_holds_everything() {
    let (mut site, mut owner) = in_memory();
    owner.send(&mut site.node, &duty(true, 9));
    site.node.closed(owner.id);
    let successor = Hello {
        owner: 8,
        epoch: 2,
        ..HELLO
    };
    (owner, _) = site.welcomed(successor);
    owner.send(&mut site.node, &request(Request::Complete, 8));
    let mut turns = 0;
    let answers = loop {
        site.node.end_turn(now());
        site.log.as_ref().unwrap().0.borrow_mut().sync();
        site.node.end_turn(now());
        let answers = owner.answers(&mut site.node);
        if !answers.is_empty() {
            break answers;
        }
        turns += 1;
        assert!(turns < 100, "never told");
    };
    assert!(is_alive(&answers, 8), "{answers:?}");
    assert!(!site.stat().synced && !site.stat().syncing);
    site.crash(0);
    assert_eq!(site.stat().epoch, 2);
}

#[test]
fn a_reset_ends_what_there_is_to_write() {
    let (mut site, mut owner) = in_memory();
    let reset = encoded(|out| encode_reset(out, Txn(200)));
    let octets = [duty(true, 9), reset, create(201), put(202, 5)].concat();
    owner.send(&mut site.node, &octets);
    site.settle();
    assert!(is_alive(&owner.answers(&mut site.node), 9));
    site.crash(0);
    assert!(site.stat().syncing);
    assert_eq!((site.stat().records, site.stat().processed), (1, Txn(202)));
}

/// Sends what the node takes, and gives what is left.
fn push<'a>(site: &mut Site, owner: &Peer, mut rest: &'a [u8]) -> &'a [u8] {
    loop {
        let buffer = site.node.buffer(owner.id);
        let count = rest.len().min(buffer.len());
        if count == 0 {
            return rest;
        }
        buffer[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        site.node.received(owner.id, count, now());
    }
}

/// Sends the rest, and syncs, until so many requests are answered. Gives their numbers.
fn push_all(
    site: &mut Site,
    owner: &mut Peer,
    mut rest: &[u8],
    requests: usize,
    check: impl Fn(&Site),
) -> Vec<u64> {
    let mut answered = Vec::new();
    for _ in 0..4 * requests {
        rest = push(site, owner, rest);
        check(site);
        site.node.end_turn(now());
        check(site);
        site.log.as_ref().unwrap().0.borrow_mut().sync();
        let answers = owner.answers(&mut site.node).into_iter();
        answered.extend(answers.filter_map(|answer| match answer {
            Answer::Alive { seq, .. } => Some(seq.0),
            _ => None,
        }));
        if answered.len() >= requests {
            break;
        }
    }
    assert!(rest.is_empty());
    answered
}

/// Whoever asks for more than may wait for the disk is read no further until some of it is answered.
#[test]
fn answers_that_wait_for_the_disk_are_bounded() {
    let mut site = Site::new(Some(MemoryLog::new(1 << 20)));
    let (mut owner, _) = site.welcomed(HELLO);
    let ask = |seq| request(Request::Complete, seq);
    let mut octets = create(1);
    octets.extend((100..2100).flat_map(ask));
    octets.extend([create(2), ask(2100)].concat());
    let check = |site: &Site| {
        let promises = &site.node.groups[0].log.as_ref().unwrap().promises;
        assert!(promises.len() <= PROMISES_MAX, "{}", promises.len());
    };
    let rest = push(&mut site, &owner, &octets);
    check(&site);
    assert!(!rest.is_empty() && !site.node.takes_input(owner.id));
    assert_eq!(owner.answers(&mut site.node), [], "nothing is synced");
    let answered = push_all(&mut site, &mut owner, rest, 2001, check);
    assert_eq!(answered, (100..=2100).collect::<Vec<_>>());
    assert_eq!(site.stat().acknowledged, Txn(2));
    assert!(site.node.takes_input(owner.id));
}

/// Each of them begins a segment of the log.
#[test]
fn logs_that_come_and_go_are_bounded() {
    let (mut site, mut owner) = in_memory();
    let octets = (0..400).flat_map(|seq| duty(seq % 2 == 0, 100 + seq));
    let octets = octets.collect::<Vec<_>>();
    let segments = |site: &Site| site.log.as_ref().unwrap().0.borrow().segments.len();
    let before = segments(&site);
    let rest = push(&mut site, &owner, &octets);
    assert!(segments(&site) <= before + PROMISES_MAX);
    let answered = push_all(&mut site, &mut owner, rest, 400, |_| {});
    assert_eq!(answered, (100..500).collect::<Vec<_>>());
    assert!(!site.stat().synced);
}

/// A whole group, thinned out, and in what its owner sent the end of everything behind what has to wait.
fn about_to_end() -> (Site, Peer) {
    let mut site = Site::new(Some(MemoryLog::new(1 << 10)));
    let (owner, _) = site.welcomed(HELLO);
    owner.send(&mut site.node, &create(1));
    for id in 1..=240 {
        owner.send(&mut site.node, &put(id + 1, id));
    }
    site.settle();
    let (rest, thinned): (Vec<u64>, Vec<u64>) = (1..=240).partition(|id| id % 3 == 0);
    let ends = |(txn, id): (u64, Vec<u64>)| (txn..).zip(id).flat_map(|(txn, id)| delete(txn, id));
    owner.send(&mut site.node, &ends((242, thinned)).collect::<Vec<_>>());
    // Nearly a segment of memory: all of what comes after it lies in the next one.
    let long = Change::Put {
        queue: QUEUE,
        id: RecordId(241),
        meta: b"meta",
        body: Some(&[1; SEGMENT_LEN_MIN - 500]),
    };
    owner.send(&mut site.node, &change(402, &long));
    let asks = (100..).take(PROMISES_MAX);
    let asks = asks.flat_map(|seq| request(Request::Complete, seq));
    let octets = asks.chain(ends((403, rest))).collect::<Vec<_>>();
    assert!(push(&mut site, &owner, &octets).is_empty());
    assert_eq!(site.stat().records, 81, "the rest is put off");
    (site, owner)
}

/// What is written again while the disk is full waits for room, and stays where it is also when it ended.
#[test]
fn what_waits_for_room_in_the_log_may_end() {
    let mut waited = 0;
    for turns in 0..30 {
        let (mut site, _owner) = about_to_end();
        let log = site.log.clone().unwrap();
        for _ in 0..turns {
            site.node.end_turn(now());
        }
        let full = log.0.borrow().octets();
        log.0.borrow_mut().capacity = full;
        site.node.end_turn(now());
        let kept = site.node.groups[0].log.as_ref().unwrap().kept.len();
        waited += u64::from(kept > 1);
        log.0.borrow_mut().sync();
        let full = log.0.borrow().octets();
        log.0.borrow_mut().capacity = full;
        site.node.end_turn(now());
        assert_eq!(site.stat().records, 1, "the rest is done");

        log.0.borrow_mut().capacity = u64::MAX;
        site.settle();
        let segments = site.node.groups[0].store.segments.iter();
        assert!(segments.into_iter().all(|(_, segment)| segment.pins == 0));
        let before = site.contents();
        site.crash(0);
        assert_eq!(site.contents(), before, "after {turns}");
    }
    assert!(waited > 0);
}
