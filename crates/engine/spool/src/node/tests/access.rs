//! What accounts may do, and how much a group may hold.

use vere_spoolwire::{
    Change, Charter, Grants, Hello, Right, Role, SharedSecret, Txn, encode_batch, encode_change,
    encode_create,
};
use vere_units::Secret;

use super::peer::{HELLO, Peer, Site, encoded, owner_of, request};
use super::*;
use crate::node::{Account, Denial};

pub(super) const EAST: u8 = 1;
pub(super) const WEST: u8 = 2;
pub(super) const WATCH: u8 = 3;
pub(super) const BILL: u8 = 4;

fn secret_of(seed: u8) -> SharedSecret {
    Secret::new([seed; 32])
}

/// A node that knows `east`, `west` and, which make no groups, `watch` and `bill`.
pub(super) fn site(log: Option<MemoryLog>) -> Site {
    let account = |name: &str, seed, makes_groups| Account {
        name: name.to_owned(),
        secret: secret_of(seed),
        makes_groups,
    };
    let mut config = Site::new(None).config;
    config.accounts.extend([
        account("east", EAST, true),
        account("west", WEST, true),
        account("watch", WATCH, false),
        account("bill", BILL, false),
    ]);
    Site::with(config, log)
}

/// `west` may adopt, `watch` may read.
pub(super) fn grants() -> Vec<u8> {
    Grants::encode([("west", Right::Adopt), ("watch", Right::Read)]).unwrap()
}

pub(super) fn charter(grants: &[u8], bytes_max: u64) -> Charter<'_> {
    Charter {
        bytes_max,
        grants: Grants::read(grants).unwrap(),
    }
}

pub(super) fn says(site: &mut Site, hello: Hello<'_>, seed: u8) -> Result<Peer, CloseReason> {
    let mut peer = Peer::new(&mut site.node).unwrap();
    match peer.say_with(&mut site.node, hello, &secret_of(seed)) {
        Some(_) => Ok(peer),
        None => Err(peer.closed(&mut site.node).expect("a reason")),
    }
}

pub(super) fn hello<'a>(
    account: &'a str,
    role: Role,
    epoch: u64,
    charter: Charter<'a>,
) -> Hello<'a> {
    Hello {
        account,
        role,
        charter,
        ..owner_of(if role == Role::Reader { 0 } else { epoch }, epoch)
    }
}

pub(super) fn denials(site: &mut Site) -> Vec<String> {
    std::iter::from_fn(|| site.node.take_denial())
        .map(|denial: Denial| denial.to_string())
        .collect()
}

#[test]
fn an_account_is_proven_by_its_own_secret_only() {
    let mut site = site(None);
    for (account, seed) in [("east", WEST), ("nobody", EAST), ("", EAST)] {
        let hello = hello(account, Role::Owner, 1, Charter::OWN);
        let reason = says(&mut site, hello, seed).err();
        let wanted = if account.is_empty() {
            CloseReason::Malformed
        } else {
            CloseReason::NotAuthenticated
        };
        assert_eq!(reason, Some(wanted), "{account}");
    }
    assert!(
        denials(&mut site).is_empty(),
        "strangers are not written down"
    );
    assert!(site.node.stats().is_empty());
}

#[test]
fn who_made_a_group_says_who_else_may_have_it() {
    let given = grants();
    for log in [None, Some(MemoryLog::new(1 << 10))] {
        let restarts = log.is_some();
        let mut site = site(log);
        let with = charter(&given, u64::MAX);
        let denied = says(&mut site, hello("watch", Role::Owner, 1, with), WATCH);
        assert_eq!(denied.err(), Some(CloseReason::MayNotMake));
        says(&mut site, hello("east", Role::Owner, 1, with), EAST).unwrap();
        for restarted in [false, true] {
            if restarted && restarts {
                site.settle();
                site.crash(0);
            }
            let mut tries = |account: &str, seed, role, epoch| {
                says(&mut site, hello(account, role, epoch, Charter::OWN), seed).err()
            };
            let own = Some(CloseReason::MayNotOwn);
            assert_eq!(tries("watch", WATCH, Role::Owner, 9), own);
            assert_eq!(tries("watch", WATCH, Role::Standby, 1), own);
            assert_eq!(tries("watch", WATCH, Role::Reader, 0), None);
            assert_eq!(tries("west", WEST, Role::Reader, 0), None);
            assert_eq!(tries("east", EAST, Role::Reader, 0), None);
        }
        let default = Hello {
            role: Role::Reader,
            owner: 0,
            ..HELLO
        };
        let mut peer = Peer::new(&mut site.node).unwrap();
        assert_eq!(peer.say(&mut site.node, default), None);
        assert_eq!(
            peer.closed(&mut site.node),
            Some(CloseReason::MayNotRead),
            "nor may who has the one secret"
        );
        assert_eq!(site.stat().epoch, 1, "none of that fenced the owner");
        // A takeover does not make the group its own: nothing of what holds changes.
        says(&mut site, hello("west", Role::Owner, 2, Charter::OWN), WEST).unwrap();
        let reads = hello("watch", Role::Reader, 0, Charter::OWN);
        let mut watch = says(&mut site, reads, WATCH).unwrap();
        assert_eq!(watch.closed(&mut site.node), None);
        // Its maker may say otherwise.
        says(&mut site, hello("east", Role::Owner, 3, Charter::OWN), EAST).unwrap();
        assert_eq!(
            watch.closed(&mut site.node),
            Some(CloseReason::MayNotRead),
            "who may read no more does not go on either"
        );
        if restarts {
            site.settle();
            site.crash(0);
        }
        let west = says(&mut site, hello("west", Role::Owner, 4, with), WEST);
        assert_eq!(west.err(), Some(CloseReason::MayNotOwn));
        let watch = says(&mut site, hello("watch", Role::Reader, 0, with), WATCH);
        assert_eq!(watch.err(), Some(CloseReason::MayNotRead));
    }
}

#[test]
fn what_was_denied_is_told_once() {
    let mut site = site(None);
    says(&mut site, hello("east", Role::Owner, 1, Charter::OWN), EAST).unwrap();
    for _ in 0..3 {
        let _ = says(
            &mut site,
            hello("watch", Role::Reader, 0, Charter::OWN),
            WATCH,
        );
    }
    let _ = says(&mut site, hello("west", Role::Owner, 2, Charter::OWN), WEST);
    let mut told = denials(&mut site);
    told.sort();
    assert_eq!(
        told,
        [
            "account \"watch\", group \"gateway\": the account may not read the group",
            "account \"west\", group \"gateway\": the account may not own the group",
        ]
    );
    assert!(denials(&mut site).is_empty());
}

const QUEUE: QueueId = QueueId(0);

fn put(txn: u64, id: u64, len: usize) -> Vec<u8> {
    put_into(QUEUE, txn, id, len)
}

pub(super) fn put_into(queue: QueueId, txn: u64, id: u64, len: usize) -> Vec<u8> {
    let body = vec![b'b'; len];
    let change = Change::Put {
        queue,
        id: RecordId(id),
        meta: b"",
        body: Some(&body),
    };
    encoded(|out| encode_change(out, Txn(txn), &change, 0))
}

fn delete(txn: u64, id: u64) -> Vec<u8> {
    let id = RecordId(id);
    let change = Change::Delete { queue: QUEUE, id };
    encoded(|out| encode_change(out, Txn(txn), &change, 0))
}

/// One BATCH that ends `ended` and puts a record of so many octets.
fn exchange(txn: u64, ended: Option<u64>, id: u64, len: usize) -> Vec<u8> {
    let body = vec![b'x'; len];
    let end = ended.map(|id| Change::Delete {
        queue: QUEUE,
        id: RecordId(id),
    });
    let put = Change::Put {
        queue: QUEUE,
        id: RecordId(id),
        meta: b"",
        body: Some(&body),
    };
    let changes: Vec<_> = end.into_iter().chain([put]).collect();
    encoded(|out| encode_batch(out, Txn(txn), changes.into_iter(), 0))
}

#[test]
fn a_group_holds_what_it_was_made_for() {
    for log in [None, Some(MemoryLog::new(1 << 10))] {
        let logged = log.is_some();
        let mut site = site(log);
        let made = Hello {
            charter: charter(&[], 800),
            ..HELLO
        };
        let (mut owner, _) = site.welcomed(made);
        let create = encoded(|out| {
            encode_create(out, Txn(1), QUEUE, "q", QueueLimits::UNLIMITED);
        });
        let steps = [
            create,
            put(2, 1, 500),
            put(3, 2, 300),
            put(4, 3, 1),
            exchange(5, None, 3, 1),
            // Ends 300, brings 390: 890 of the 900 that a report may reach.
            exchange(6, Some(2), 3, 390),
            exchange(7, Some(3), 4, 500),
            delete(8, 3),
            put(9, 4, 300),
        ];
        owner.send(&mut site.node, &steps.concat());
        site.settle();
        let refused: Vec<_> = owner
            .answers(&mut site.node)
            .into_iter()
            .flat_map(|answer| match answer {
                Answer::Ack { refused, .. } => refused,
                _ => Vec::new(),
            })
            .collect();
        let full = NodeRefusal::GroupFull;
        assert_eq!(refused, [(Txn(4), full), (Txn(5), full), (Txn(7), full)]);
        let stat = site.stat();
        assert_eq!((stat.bytes, stat.bytes_max, stat.full), (800, 800, false));
        if logged {
            let before = site.contents();
            site.crash(0);
            assert_eq!(site.contents(), before);
            assert_eq!(site.stat().bytes_max, 800);
        }
        // Another limit holds from the next HELLO on; what is beyond it stays and may go.
        let (mut owner, _) = site.welcomed(Hello {
            charter: charter(&[], 100),
            ..HELLO
        });
        owner.send(&mut site.node, &[put(10, 9, 1), delete(11, 1)].concat());
        site.settle();
        let answers = owner.answers(&mut site.node);
        let acks: Vec<_> = answers
            .iter()
            .filter_map(|answer| match answer {
                Answer::Ack { through, refused } => Some((*through, refused.clone())),
                _ => None,
            })
            .collect();
        let last = acks.last().map(|(through, _)| *through);
        let all: Vec<_> = acks.into_iter().flat_map(|(_, refused)| refused).collect();
        assert_eq!((last, all), (Some(Txn(11)), vec![(Txn(10), full)]));
        assert_eq!(site.stat().bytes, 300);
    }
}

#[test]
fn figures_say_what_a_group_may_hold() {
    let mut site = site(None);
    let (mut owner, _) = site.welcomed(Hello {
        charter: charter(&[], 1 << 20),
        ..HELLO
    });
    owner.send(&mut site.node, &request(Request::Stat, 4));
    let answers = owner.answers(&mut site.node);
    assert!(
        matches!(answers[..], [Answer::Stats { stat, .. }] if stat.bytes_max == 1 << 20),
        "{answers:?}"
    );
}
