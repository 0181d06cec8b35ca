//! How many groups there are, whose, and how one ends.

use vere_spoolwire::{Change, CloseReason, Hello, Role, encode_change, encode_create};

use super::peer::{HELLO, Peer, Site, encoded, request};
use super::*;

const QUEUE: QueueId = QueueId(3);

fn two_accounts(groups_max: usize) -> NodeConfig {
    let mut config = NodeConfig {
        groups_max,
        segment_len: SEGMENT_LEN_MIN,
        ..NodeConfig::new(secret())
    };
    config.accounts.push(Account {
        name: "east".to_owned(),
        ..Account::default_with(secret())
    });
    config
}

fn of<'a>(account: &'a str, group: &'a str) -> Hello<'a> {
    Hello {
        account,
        group,
        ..HELLO
    }
}

fn end(records: bool) -> Vec<u8> {
    request(Request::End { records }, 9)
}

/// A queue with one record, by an owner that was welcomed.
fn fill(site: &mut Site, owner: &Peer, body: &[u8]) {
    let create = encoded(|out| encode_create(out, Txn(1), QUEUE, "q", QueueLimits::UNLIMITED));
    let put = Change::Put {
        queue: QUEUE,
        id: RecordId(1),
        meta: b"meta",
        body: Some(body),
    };
    let put = encoded(|out| encode_change(out, Txn(2), &put, 0));
    owner.send(&mut site.node, &[create, put].concat());
    site.settle();
}

fn gone(site: &mut Site, peer: &mut Peer) -> Option<CloseReason> {
    let reason = peer.closed(&mut site.node);
    site.node.closed(peer.id);
    reason
}

#[test]
fn one_account_leaves_half_of_the_groups_to_others() {
    let mut site = Site::with(two_accounts(5), None);
    for group in ["1", "2", "3"] {
        site.welcomed(of("default", group));
    }
    assert_eq!(
        site.rejected(of("default", "4")),
        CloseReason::TooManyGroups
    );
    // What is there already is not refused for that.
    site.welcomed(of("default", "3"));
    site.welcomed(of("east", "4"));
    let (mut last, _) = site.welcomed(of("east", "5"));
    assert_eq!(site.rejected(of("east", "6")), CloseReason::TooManyGroups);
    last.send(&mut site.node, &end(false));
    assert_eq!(gone(&mut site, &mut last), Some(CloseReason::Ended));
    site.welcomed(of("east", "6"));
    assert_eq!(site.node.stats().len(), 5);
}

#[test]
fn one_account_alone_may_have_all_groups() {
    let mut config = two_accounts(3);
    config.accounts[1].makes_groups = false;
    let mut site = Site::with(config, None);
    for group in ["1", "2", "3"] {
        site.welcomed(of("default", group));
    }
    assert_eq!(
        site.rejected(of("default", "4")),
        CloseReason::TooManyGroups
    );
}

#[test]
fn groups_come_and_go_and_leave_nothing() {
    for log in [None, Some(MemoryLog::new(1 << 20))] {
        let mut site = Site::new(log);
        let mut before = None;
        for round in 0..200 {
            let (mut owner, welcome) = site.welcomed(HELLO);
            assert_eq!(welcome.processed, Txn(0), "{round}: a new one");
            fill(&mut site, &owner, &[7; 3_000]);
            owner.answers(&mut site.node);
            owner.send(&mut site.node, &end(true));
            assert_eq!(gone(&mut site, &mut owner), Some(CloseReason::Ended));
            site.settle();
            let now = (site.node.memory.used(), site.node.groups.len());
            assert_eq!(*before.get_or_insert(now), now, "{round}");
            assert_eq!(now, (0, 1));
        }
        assert_eq!(site.node.stats(), []);
    }
}

#[test]
fn an_ended_group_does_not_come_back() {
    let mut site = Site::new(Some(MemoryLog::new(1 << 20)));
    let (mut owner, _) = site.welcomed(HELLO);
    fill(&mut site, &owner, b"body");
    owner.send(&mut site.node, &end(true));
    assert_eq!(gone(&mut site, &mut owner), Some(CloseReason::Ended));
    site.crash(usize::MAX);
    assert_eq!(site.node.stats(), []);
    let reader = Hello {
        role: Role::Reader,
        ..HELLO
    };
    assert_eq!(site.rejected(reader), CloseReason::NoGroup);
    let (_, welcome) = site.welcomed(HELLO);
    assert_eq!(welcome.processed, Txn(0));
}

#[test]
fn a_group_with_records_ends_only_when_that_is_said() {
    let mut site = Site::new(None);
    let (mut owner, _) = site.welcomed(HELLO);
    fill(&mut site, &owner, b"body");
    owner.answers(&mut site.node);
    owner.send(&mut site.node, &end(false));
    assert_eq!(gone(&mut site, &mut owner), Some(CloseReason::NotEmpty));
    assert_eq!(site.stat().records, 1);
}

/// Who reads it, or stands by, hears why; what a reader is being given it gets.
#[test]
fn everybody_is_told_that_a_group_ended() {
    let mut site = Site::new(None);
    let (mut owner, _) = site.welcomed(HELLO);
    fill(&mut site, &owner, &[5; 4_000]);
    owner.answers(&mut site.node);
    let (mut reader, _) = site.welcomed(Hello {
        role: Role::Reader,
        ..HELLO
    });
    let (mut standby, _) = site.welcomed(Hello {
        role: Role::Standby,
        ..HELLO
    });
    let fetch = Request::Fetch {
        queue: QUEUE,
        from: RecordId(1),
        records: 1,
        octets: 1 << 20,
    };
    reader.send(&mut site.node, &request(fetch, 4));
    owner.send(&mut site.node, &end(true));
    // Its place is nobody's before that is out.
    let (mut next, _) = site.welcomed(Hello {
        group: "next",
        ..HELLO
    });
    assert_eq!(site.node.groups.len(), 2);
    let frames = reader.frames(&mut site.node);
    let block = frames.iter().any(|frame| frame.len() > 4_000);
    assert!(block, "the record that it was given");
    site.node.closed(reader.id);
    assert_eq!(gone(&mut site, &mut standby), Some(CloseReason::Ended));
    assert_eq!(gone(&mut site, &mut owner), Some(CloseReason::Ended));
    fill(&mut site, &next, b"body");
    assert!(!next.answers(&mut site.node).is_empty());
    site.welcomed(Hello {
        group: "third",
        ..HELLO
    });
    assert_eq!(site.node.groups.len(), 2, "the place is free now");
}

/// As an END among changes that follow one another: what comes after it is not done.
#[test]
fn nothing_is_done_after_an_end() {
    let mut site = Site::new(Some(MemoryLog::new(1 << 20)));
    let (mut owner, _) = site.welcomed(HELLO);
    let create = encoded(|out| encode_create(out, Txn(1), QUEUE, "q", QueueLimits::UNLIMITED));
    let again = encoded(|out| encode_create(out, Txn(2), QueueId(4), "p", QueueLimits::UNLIMITED));
    owner.send(&mut site.node, &[create, end(false), again].concat());
    site.settle();
    assert_eq!(gone(&mut site, &mut owner), Some(CloseReason::Ended));
    assert_eq!(site.node.stats(), []);
}

#[test]
fn a_log_that_stays_keeps_its_group() {
    let mut site = Site::new(Some(MemoryLog::new(1 << 20)));
    let (mut owner, _) = site.welcomed(HELLO);
    fill(&mut site, &owner, b"body");
    owner.answers(&mut site.node);
    site.log.as_ref().unwrap().0.borrow_mut().failed = true;
    owner.send(&mut site.node, &end(true));
    assert_eq!(gone(&mut site, &mut owner), Some(CloseReason::LogFailed));
    assert_eq!(site.node.stats().len(), 1);
}

/// A group of which much lies in the spill store, or is on the way there.
#[test]
fn what_was_spilled_goes_with_its_group() {
    for finish in [false, true] {
        let config = NodeConfig {
            segment_len: SEGMENT_LEN_MIN,
            memory_max: 32 * SEGMENT_LEN_MIN as u64,
            ..NodeConfig::new(secret())
        };
        let mut site = Site::with(config, None);
        let spill = MemorySpill::new(1 << 20);
        site.node.set_spill_store(Box::new(spill.clone()));
        site.spill = Some(spill);
        let (mut owner, _) = site.welcomed(HELLO);
        fill(&mut site, &owner, &[1; 3_000]);
        for txn in 3..27 {
            let put = Change::Put {
                queue: QUEUE,
                id: RecordId(txn),
                meta: b"meta",
                body: Some(&[2; 3_000]),
            };
            owner.send(
                &mut site.node,
                &encoded(|out| encode_change(out, Txn(txn), &put, 0)),
            );
            site.node.end_turn(now());
            if finish {
                site.settle();
            }
        }
        owner.answers(&mut site.node);
        let segments = &site.node.groups[0].store.segments;
        assert!(segments.is_any_away(), "something was written out");
        owner.send(&mut site.node, &end(true));
        assert_eq!(gone(&mut site, &mut owner), Some(CloseReason::Ended));
        let (other, _) = site.welcomed(Hello {
            group: "next",
            ..HELLO
        });
        fill(&mut site, &other, &[3; 3_000]);
        site.settle();
        assert_eq!(site.node.spilled(), 0);
        assert_eq!(site.stat().records, 1);
        assert_eq!(site.contents_of("next")[0].1[0].2, [3; 3_000]);
    }
}
