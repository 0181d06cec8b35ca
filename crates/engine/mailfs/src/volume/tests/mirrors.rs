//! Copies of commits and pages on further metadata accounts.

use std::collections::BTreeSet;

use super::*;
use crate::breakage::{Breakage, break_by};
use crate::format::{Kind, MailId, Subject};
use vere_ports::mail_accounts::UidRange;

/// Ids and parents of the mails of a mailbox, in the order of UIDs.
pub(super) fn mails(account: &mut MemoryAccount, mailbox: &str) -> Vec<(MailId, Option<MailId>)> {
    let request = Request::List {
        mailbox: mailbox.to_owned(),
        range: UidRange {
            first: 1,
            last: None,
        },
    };
    let Ok(Answer::Listed { mails, .. }) = account.carry_out(&request) else {
        panic!("no listing");
    };
    let subjects = mails
        .iter()
        .map(|mail| Subject::parse(&mail.subject).unwrap());
    subjects
        .filter(|subject| matches!(subject.kind, Kind::Commit | Kind::Pages))
        .map(|subject| (subject.mail, subject.parent))
        .collect()
}

/// A commit of a log and all before.
fn chain_of(account: &mut MemoryAccount, head: MailId) -> BTreeSet<MailId> {
    let parents: BTreeMap<MailId, Option<MailId>> = mails(account, "log").into_iter().collect();
    let mut chain = BTreeSet::new();
    let mut at = Some(head);
    while let Some((mail, parent)) = at.and_then(|at| parents.get_key_value(&at)) {
        chain.insert(*mail);
        at = *parent;
    }
    chain
}

fn world(accounts: u16) -> World {
    let mut world = World::new(accounts);
    world.remount_with(|terms| terms.metadata_accounts = 2);
    world
}

impl World {
    pub(super) fn remount_with(&mut self, change: impl Fn(&mut Terms)) {
        change(&mut self.terms);
        self.remount();
        self.settle();
    }

    pub(super) fn remount(&mut self) {
        self.kill();
        self.mount().unwrap();
    }

    fn put_root(&mut self, name: &str, data: &[u8]) {
        self.put(Inode::ROOT, name, data);
    }

    pub(super) fn status(&mut self) -> crate::volume::Status {
        self.volume().status()
    }

    fn ids(&mut self, account: u16, mailbox: &str) -> Vec<MailId> {
        let mailbox = match account {
            1 => mailbox.to_owned(),
            _ => format!("{mailbox}-copy"),
        };
        let mailbox = mailbox.as_str();
        let account = self.accounts.get_mut(&account).unwrap();
        mails(account, mailbox)
            .into_iter()
            .map(|(mail, _)| mail)
            .collect()
    }

    /// Both accounts have equal commits and pages, each once.
    fn check_copies(&mut self) {
        for mailbox in ["log", "pages"] {
            let (lead, copy) = (self.ids(1, mailbox), self.ids(2, mailbox));
            let lead: BTreeSet<MailId> = lead.into_iter().collect();
            let set: BTreeSet<MailId> = copy.iter().copied().collect();
            assert_eq!(lead, set, "{mailbox}");
            assert_eq!(set.len(), copy.len(), "{mailbox}: a mail is there twice");
        }
    }
}

#[test]
fn commits_and_pages_are_copied() {
    let mut world = world(2);
    for number in 0..5 {
        world.put_root(&format!("f{number}"), b"short content");
        world.sync().unwrap();
    }
    world.settle();
    world.check_copies();
    let log = {
        let account = world.accounts.get_mut(&2).unwrap();
        mails(account, "log-copy")
    };
    assert!(log.len() >= 3);
    let follows = |pair: &[(MailId, Option<MailId>)]| pair[1].1 == Some(pair[0].0);
    assert!(log.windows(2).all(follows), "in the order of the chain");
    world.finish().unwrap();
    world.check_copies();
    assert!(!world.ids(2, "pages").is_empty());
    let status = world.status();
    let mirror = &status.mirrors[0];
    assert_eq!(mirror.generation, Some(status.generation));
    assert!(mirror.is_level);
}

#[test]
fn an_account_that_returns_gets_what_is_missing() {
    let mut world = world(2);
    world.put_root("first", b"1");
    world.sync().unwrap();
    world.fortune = Box::new(|account, _| match account.0 {
        2 => Luck::Lost,
        _ => Luck::Good,
    });
    for round in 0..3 {
        world.put_root(&format!("away{round}"), b"2");
        world.sync().unwrap();
        world.finish().unwrap();
        world.remount();
    }
    let status = world.status();
    assert!(!status.mirrors[0].is_level);
    world.fortune = Box::new(|_, _| Luck::Good);
    for _ in 0..20 {
        world.pass(Duration::from_secs(60));
    }
    world.check_copies();
    assert!(world.status().mirrors[0].is_level);
}

#[test]
fn a_second_account_of_an_old_volume_gets_everything() {
    let mut world = World::new(2);
    for round in 0..4 {
        world.put_root(&format!("f{round}"), b"inline");
        world.sync().unwrap();
    }
    world.finish().unwrap();
    world.remount_with(|terms| terms.metadata_accounts = 2);
    world.pass(Duration::from_secs(1));
    world.check_copies();
}

#[test]
fn every_request_of_a_copy_may_fail() {
    for at in 0..14 {
        for luck in [Luck::Lost, Luck::Unanswered] {
            let mut world = world(2);
            world.put_root("before", b"1");
            world.sync().unwrap();
            let mut left = at;
            world.fortune = Box::new(move |account, _| {
                if account.0 == 2 {
                    left -= 1;
                }
                if left == -1 && account.0 == 2 {
                    luck
                } else {
                    Luck::Good
                }
            });
            for number in 0..3 {
                world.put_root(&format!("f{number}"), b"2");
                world.sync().unwrap();
            }
            world.finish().unwrap();
            for _ in 0..5 {
                world.pass(Duration::from_secs(60));
            }
            let (lead, copy) = (world.ids(1, "log"), world.ids(2, "log"));
            let set = |all: &[MailId]| all.iter().copied().collect::<BTreeSet<_>>();
            assert_eq!(set(&lead), set(&copy), "request {at} {luck:?}");
            assert_eq!(set(&world.ids(1, "pages")), set(&world.ids(2, "pages")));
        }
    }
}

#[test]
fn fsync_waits_for_a_copy_where_the_user_wants_two() {
    let mut world = World::new(2);
    world.remount_with(|terms| {
        terms.metadata_accounts = 2;
        terms.sync_copies = 2;
        terms.groups = vec![GroupTerms {
            group: 1,
            accounts: vec![1, 2],
        }];
    });
    for number in 0..5 {
        world.put_root(&format!("f{number}"), b"x");
        world.sync().unwrap();
        let (lead, copy) = (world.ids(1, "log"), world.ids(2, "log"));
        assert_eq!(lead.last(), copy.last(), "{number}");
    }
}

/// Several commits are appended at once, one fails, and later ones are stored.
#[test]
fn a_hole_in_a_copy_is_filled() {
    for at in 0..4 {
        let mut world = world(2);
        world.put_root("first", b"1");
        world.sync().unwrap();
        world.pass(Duration::from_secs(60));
        world.fortune = Box::new(|account, _| match account.0 {
            2 => Luck::Lost,
            _ => Luck::Good,
        });
        for round in 0..5 {
            world.put_root(&format!("away{round}"), b"2");
            world.sync().unwrap();
        }
        let mut left = at;
        world.fortune = Box::new(move |account, request| {
            let is_copy = |mailbox: &str| account.0 == 2 && mailbox == "log-copy";
            match request {
                Request::Append { mailbox, .. } if is_copy(mailbox) => {
                    left -= 1;
                    match left {
                        -1 => Luck::Lost,
                        _ => Luck::Good,
                    }
                }
                _ => Luck::Good,
            }
        });
        for _ in 0..20 {
            world.pass(Duration::from_secs(60));
        }
        world.check_copies();
        let status = world.status();
        assert_eq!(status.mirrors[0].generation, Some(status.generation));
        assert!(status.mirrors[0].is_level);
    }
}

/// The account answers everything, and takes no mail.
#[test]
fn a_full_copy_is_tried_rarely() {
    let mut world = world(2);
    world.put_root("first", b"1");
    world.sync().unwrap();
    let tries = std::rc::Rc::new(std::cell::Cell::new(0_usize));
    let count = std::rc::Rc::clone(&tries);
    world.lie = Box::new(move |accounts, account, request, said| match request {
        Request::Append { mailbox, .. } if account.0 == 2 && mailbox == "log-copy" => {
            count.set(count.get() + 1);
            let log = accounts.get_mut(&2).and_then(|of| of.mailbox("log-copy"));
            log.unwrap().mails.pop_last();
            Err(Fault::OverQuota("full".to_owned()))
        }
        _ => said,
    });
    world.put_root("second", b"2");
    world.sync().unwrap();
    for _ in 0..3_600 {
        world.pass(Duration::from_secs(1));
    }
    // 1, 2, 4 and so on to 15 minutes.
    let tried = tries.get();
    assert!((8..=14).contains(&tried), "{tried}");
    world.lie = Box::new(|_, _, _, said| said);
    world.pass(Duration::from_secs(900));
    world.pass(Duration::from_secs(1));
    world.check_copies();
    assert!(world.status().mirrors[0].is_level);
}

/// The octets of the day for work without hurry are used up; a program waits for the copy.
#[test]
fn a_copy_that_programs_wait_for_is_no_idle_work() {
    let mut world = World::new(2);
    world.lie = Box::new(|_, account, request, said| match request {
        Request::List { mailbox, .. } if account.0 == 2 && mailbox == "log-copy" => {
            let text = "the budget is used up".to_owned();
            Err(Fault::Scarce(text, Urgency::Idle, 10_800_000))
        }
        _ => said,
    });
    world.remount_with(|terms| {
        terms.metadata_accounts = 2;
        terms.sync_copies = 2;
        terms.groups = vec![GroupTerms {
            group: 1,
            accounts: vec![1, 2],
        }];
    });
    world.lie = Box::new(|_, _, _, said| said);
    world.put_root("file", b"x");
    assert_eq!(world.sync(), Ok(Reply::Done));
    assert_eq!(world.ids(1, "log").last(), world.ids(2, "log").last());
}

/// A call that has failed makes copies no more urgent.
#[test]
fn nobody_waits_for_a_copy_after_the_time_of_calls() {
    let mut world = World::new(2);
    world.remount_with(|terms| {
        terms.metadata_accounts = 2;
        terms.sync_copies = 2;
    });
    world.fortune = Box::new(|account, request| match request {
        Request::Append { mailbox, .. } if account.0 == 2 && mailbox == "log-copy" => Luck::Lost,
        _ => Luck::Good,
    });
    world.put_root("file", b"x");
    assert_eq!(world.sync(), Err(Errno::Io));
    assert!(world.volume().mirrors.waiters.is_empty());
}

/// What another mount has won is copied by its own mount, or by another mount later.
#[test]
fn commits_of_other_mounts_are_copied_once() {
    let mut several = rig::Several::new(2);
    several.terms.metadata_accounts = 2;
    for number in 0..2 {
        several.kill(number);
        several.mount(number).unwrap();
    }
    several.settle();
    for round in 0..4 {
        several.put(round % 2, &format!("f{round}"), "content");
        several.sync(round % 2).unwrap();
        several.settle();
    }
    several.put(1, "last", "content");
    several.sync(1).unwrap();
    several.kill(1);
    several.quiet();
    let head = several.volume(0).chain.head().0;
    let chain = chain_of(several.accounts.get_mut(&1).unwrap(), head);
    let copy = mails(several.accounts.get_mut(&2).unwrap(), "log-copy");
    let copy: BTreeSet<MailId> = copy.into_iter().map(|(mail, _)| mail).collect();
    assert_eq!(chain, copy);
}

/// Two mounts race: the loser's commit is in no copy.
fn losers_are_in_no_copy() -> bool {
    let mut several = rig::Several::new(2);
    several.terms.metadata_accounts = 2;
    for number in 0..2 {
        several.kill(number);
        several.mount(number).unwrap();
    }
    several.quiet();
    for number in 0..2 {
        several.mounts[number].is_held = true;
        several.put(number, &format!("f{number}"), "content");
        several.begin_sync(number);
    }
    several.quiet();
    let account = several.accounts.get_mut(&2).unwrap();
    let copy = mails(account, "log-copy");
    // A copy has at most one child of a commit.
    let parents: BTreeSet<Option<MailId>> = copy.iter().map(|(_, parent)| *parent).collect();
    let ids: BTreeSet<MailId> = copy.iter().map(|(mail, _)| *mail).collect();
    parents.len() == ids.len()
}

#[test]
fn lost_commits_are_not_copied() {
    assert!(losers_are_in_no_copy());
}

#[test]
fn the_checker_notices_commits_that_are_copied_before_they_are_won() {
    break_by(Some(Breakage::CopiedEarly));
    let is_right = losers_are_in_no_copy();
    break_by(None);
    assert!(!is_right);
}

/// Only whole logs tell a hole before the end of the copy's log and before the commits in memory.
#[test]
fn a_collection_finds_holes_of_long_ago() {
    let mut world = world(2);
    // An opening reads some commits before its checkpoint.
    for number in 0..60 {
        world.put_root(&format!("f{number}"), b"x");
        world.sync().unwrap();
    }
    world.finish().unwrap();
    let copy = world.accounts.get_mut(&2).unwrap();
    let log = copy.mailbox("log-copy").unwrap();
    let second = *log.mails.keys().nth(1).unwrap();
    log.mails.remove(&second);
    world.lose_folder();
    world.mount().unwrap();
    world.pass(Duration::from_secs(60));
    let (lead, copy) = (world.ids(1, "log"), world.ids(2, "log"));
    assert_eq!(copy.len() + 1, lead.len(), "nobody has looked");
    let now = world.moment();
    let terms = crate::volume::CollectTerms::DEFAULT;
    assert!(world.volume().collect(now, terms));
    for _ in 0..3 {
        world.pass(Duration::from_secs(60));
    }
    world.check_copies();
    assert!(world.status().mirrors[0].is_level);
}

/// A person accepts that the lead was set back: the commits behind leave the copy, and the copy can stand in again.
#[test]
fn a_left_branch_leaves_the_copy() {
    let mut world = world(2);
    world.put_root("first", b"1");
    world.sync().unwrap();
    world.pass(Duration::from_secs(60));
    let lead = world.accounts[&1].clone();
    for number in 0..3 {
        world.put_root(&format!("lost{number}"), b"2");
        world.sync().unwrap();
    }
    world.pass(Duration::from_secs(60));
    let numbers = world.ids(2, "log").len();
    // The provider restores the account. The journal of this machine is set aside.
    world.accounts.insert(1, lead);
    world.lose_folder();
    world.mount().unwrap();
    world.put_root("second", b"3");
    world.sync().unwrap();
    for _ in 0..3 {
        world.pass(Duration::from_secs(60));
    }
    assert!(!world.status().mirrors[0].is_level);
    assert!(world.ids(2, "log").len() > numbers);
    let now = world.moment();
    world.volume().leave_branch(now);
    for _ in 0..3 {
        world.pass(Duration::from_secs(60));
    }
    world.check_copies();
    assert!(world.status().mirrors[0].is_level);
    // The copy stands in for the lead.
    world.put_root("third", b"4");
    world.finish().unwrap();
    world.check_copies();
}
