//! Accounts that may read single queues.

use vere_spoolwire::{Charter, Grants, QueueCharter, Right, Role, encode_create, encode_purge};

use super::access::{
    BILL, EAST, WATCH, WEST, charter, denials, grants, hello, put_into, says, site,
};
use super::peer::{Peer, Site, encoded, request};
use super::*;

const PLAIN: QueueId = QueueId(0);
const BILLED: QueueId = QueueId(1);
const WATCHED: QueueId = QueueId(2);

fn create(txn: u64, queue: QueueId, reader: Option<&str>) -> Vec<u8> {
    let grants = Grants::encode(reader.map(|name| (name, Right::Read))).unwrap();
    let readers = Grants::read(&grants).unwrap();
    let limits = QueueLimits::UNLIMITED;
    let charter = QueueCharter { limits, readers };
    let name = format!("queue-{queue}");
    encoded(|out| encode_create(out, Txn(txn), queue, &name, charter))
}

/// A group of `east`, which `watch` may read and `west` adopt, with three queues: one of nobody's own, one that
/// names `bill`, one that names `watch`. Each has a record.
fn with_queues(log: Option<MemoryLog>) -> (Site, Peer) {
    let mut site = site(log);
    let given = grants();
    let made = hello("east", Role::Owner, 1, charter(&given, u64::MAX));
    let owner = says(&mut site, made, EAST).unwrap();
    let frames = [
        create(1, PLAIN, None),
        create(2, BILLED, Some("bill")),
        create(3, WATCHED, Some("watch")),
        put_into(PLAIN, 4, 1, 100),
        put_into(BILLED, 5, 1, 20),
        put_into(WATCHED, 6, 1, 3),
    ];
    owner.send(&mut site.node, &frames.concat());
    site.settle();
    (site, owner)
}

fn reader(site: &mut Site, account: &str, seed: u8) -> Result<Peer, CloseReason> {
    says(site, hello(account, Role::Reader, 0, Charter::OWN), seed)
}

fn ask(site: &mut Site, peer: &mut Peer, asked: Request) -> Result<Answer, CloseReason> {
    peer.send(&mut site.node, &request(asked, 9));
    match peer.answers(&mut site.node).pop() {
        Some(Answer::Close(reason)) => Err(reason),
        answer => Ok(answer.expect("an answer")),
    }
}

/// The records of a queue, or why there are none for him.
fn fetch(site: &mut Site, peer: &mut Peer, queue: QueueId) -> Result<u32, CloseReason> {
    let from = RecordId(0);
    let (records, octets) = (10, 1000);
    let asked = Request::Fetch {
        queue,
        from,
        records,
        octets,
    };
    peer.send(&mut site.node, &request(asked, 9));
    let answers = peer.answers(&mut site.node);
    match answers.first() {
        Some(Answer::Block { head, .. }) if head.known => Ok(head.records),
        Some(Answer::Close(reason)) => Err(*reason),
        other => panic!("{other:?}"),
    }
}

/// Names of the queues that somebody is shown.
fn listed(site: &mut Site, peer: &mut Peer) -> Vec<String> {
    let asked = Request::Queues {
        from: QueueId(0),
        count: 100,
    };
    match ask(site, peer, asked) {
        Ok(Answer::QueueList {
            queues, end: true, ..
        }) => queues.into_iter().map(|queue| queue.name).collect(),
        other => panic!("{other:?}"),
    }
}

fn figures(site: &mut Site, peer: &mut Peer) -> vere_spoolwire::NodeStat {
    match ask(site, peer, Request::Stat) {
        Ok(Answer::Stats { stat, .. }) => stat,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_queue_that_names_accounts_is_read_by_these_and_by_who_may_own_its_group() {
    let all = [PLAIN, BILLED, WATCHED];
    for log in [None, Some(MemoryLog::new(1 << 10))] {
        let lasts = log.is_some();
        let (mut site, _owner) = with_queues(log);
        for restarted in [false, true] {
            if restarted && lasts {
                site.crash(0);
            }
            for (account, seed, sees) in [
                ("east", EAST, &all[..]),
                ("west", WEST, &all[..]),
                ("watch", WATCH, &[PLAIN, WATCHED][..]),
                ("bill", BILL, &[BILLED][..]),
            ] {
                let mut peer = reader(&mut site, account, seed).unwrap();
                let names: Vec<_> = sees.iter().map(|queue| format!("queue-{queue}")).collect();
                assert_eq!(listed(&mut site, &mut peer), names, "{account}");
                for queue in all {
                    let mut peer = reader(&mut site, account, seed).unwrap();
                    let got = fetch(&mut site, &mut peer, queue);
                    let wanted = if sees.contains(&queue) {
                        Ok(1)
                    } else {
                        Err(CloseReason::MayNotReadQueue)
                    };
                    assert_eq!(got, wanted, "{account}, {queue}");
                }
            }
        }
    }
}

#[test]
fn who_reads_one_queue_learns_nothing_else_of_the_group() {
    let (mut site, _owner) = with_queues(Some(MemoryLog::new(1 << 10)));
    let mut bill = reader(&mut site, "bill", BILL).unwrap();
    let mut watch = reader(&mut site, "watch", WATCH).unwrap();
    let (seen, whole) = (
        figures(&mut site, &mut bill),
        figures(&mut site, &mut watch),
    );
    assert_eq!((seen.queues, seen.records, seen.bytes), (1, 1, 20));
    assert_eq!((seen.log_bytes, seen.bytes_max), (0, u64::MAX));
    assert_eq!((whole.queues, whole.records, whole.bytes), (3, 3, 123));
    assert!(whole.log_bytes > 0);
    // It owns nothing, and stands by for nobody.
    for role in [Role::Owner, Role::Standby] {
        let denied = says(&mut site, hello("bill", role, 9, Charter::OWN), BILL);
        assert_eq!(denied.err(), Some(CloseReason::MayNotOwn));
    }
    assert_eq!(site.stat().epoch, 1);
    // What was denied names account and queue, once.
    drop(denials(&mut site));
    for _ in 0..2 {
        let mut bill = reader(&mut site, "bill", BILL).unwrap();
        let denied = fetch(&mut site, &mut bill, WATCHED);
        assert_eq!(denied, Err(CloseReason::MayNotReadQueue));
    }
    assert_eq!(
        denials(&mut site),
        [
            "account \"bill\", group \"gateway\", queue \"queue-2\": the account may not read the queue"
        ]
    );
}

#[test]
fn a_queue_made_again_names_others_and_one_that_goes_names_nobody() {
    for log in [None, Some(MemoryLog::new(1 << 10))] {
        let lasts = log.is_some();
        let (mut site, owner) = with_queues(log);
        let mut bill = reader(&mut site, "bill", BILL).unwrap();
        assert_eq!(fetch(&mut site, &mut bill, BILLED), Ok(1));
        owner.send(&mut site.node, &create(7, BILLED, Some("watch")));
        site.settle();
        let denied = fetch(&mut site, &mut bill, BILLED);
        assert_eq!(denied, Err(CloseReason::MayNotReadQueue), "at once");
        let gone = reader(&mut site, "bill", BILL).err();
        assert_eq!(gone, Some(CloseReason::MayNotRead), "nothing names it");
        owner.send(&mut site.node, &create(8, PLAIN, Some("bill")));
        site.settle();
        if lasts {
            site.crash(0);
        }
        let mut bill = reader(&mut site, "bill", BILL).unwrap();
        assert_eq!(listed(&mut site, &mut bill), ["queue-0"]);
        let again = hello("east", Role::Owner, 2, Charter::OWN);
        let owner = says(&mut site, again, EAST).unwrap();
        let bill = reader(&mut site, "bill", BILL);
        assert!(bill.is_ok(), "a queue's accounts are not the group's");
        let ends = encoded(|out| encode_purge(out, Txn(9), PLAIN, RecordId(1), true));
        owner.send(&mut site.node, &ends);
        site.settle();
        let gone = reader(&mut site, "bill", BILL).err();
        assert_eq!(gone, Some(CloseReason::MayNotRead));
    }
}
