//! Which account a pack goes to and is read from, as faults, quotas and budgets come and go.

use std::time::Duration;

use vere_ports::mail_accounts::{Fault, Request, Urgency};
use vere_units::Timestamp;

use crate::accounts::{
    AccountTerms, Accounts, FIRST_DATA_MAILBOX, GroupTerms, HEAD_MAILBOX, LOG_MAILBOX,
    PAGES_MAILBOX, mailbox_name,
};
use crate::format::{Encoding, MailCopy, PackNumber};
use crate::rates::{Began, Direction};
use crate::scarcity::comes_back;
use crate::strategy::Strategy;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn group(group: u16, accounts: &[u16]) -> GroupTerms {
    GroupTerms {
        group,
        accounts: accounts.to_vec(),
    }
}

fn terms(account: u16) -> AccountTerms {
    let encoding = if account == 3 {
        Encoding::Base64
    } else {
        Encoding::EightBit
    };
    AccountTerms { account, encoding }
}

/// Accounts 1 and 2 in group 1, accounts 3 and 4 in group 2.
fn accounts() -> Accounts {
    let all = [1, 2, 3, 4].map(terms);
    let mut accounts = Accounts::new(&all, &[group(1, &[1, 2]), group(2, &[3, 4])]);
    accounts.now = at(100);
    accounts
}

fn copy(account: u16) -> MailCopy {
    MailCopy {
        account,
        mailbox: 16,
        uid: 1,
    }
}

#[test]
fn content_has_no_place_where_the_lead_or_every_member_is_read_only() {
    let mut accounts = accounts();
    let fault = Fault::ReadOnly("no".to_owned());
    for account in [2, 3, 4] {
        accounts.refuses_mail(account, &fault);
        accounts.refuses_mail(1, &unreachable());
        assert!(!accounts.are_read_only(1), "{account}");
    }
    assert!(accounts.are_read_only(3));
    accounts.refuses_mail(1, &fault);
    assert!(accounts.are_read_only(9));
    // An answer to a read says nothing; a mail that is taken does.
    accounts.answered_well(2);
    assert!(accounts.are_read_only(9));
    accounts.takes(2, 1);
    assert!(!accounts.are_read_only(2) && accounts.are_read_only(3));
    assert!(!Accounts::new(&[terms(1)], &[]).are_read_only(1));
}

fn unreachable() -> Fault {
    Fault::Unreachable("no route".to_owned())
}

fn scarce(urgency: Urgency) -> Fault {
    Fault::Scarce("no octets".to_owned(), urgency, 5_000)
}

#[test]
fn mailboxes_have_the_names_of_the_format() {
    let names = [
        (LOG_MAILBOX, "log"),
        (PAGES_MAILBOX, "pages"),
        (HEAD_MAILBOX, "head"),
        (FIRST_DATA_MAILBOX, "data-0001"),
        (FIRST_DATA_MAILBOX + 41, "data-0042"),
    ];
    for (number, name) in names {
        assert_eq!(mailbox_name(number), name);
    }
}

/// A mailbox with another UIDVALIDITY than before has other mails.
#[test]
fn a_change_of_numbers_is_noticed() {
    let mut accounts = accounts();
    assert_eq!(accounts.uid_validity(1, 16), None);
    assert!(accounts.number(1, 16, 7));
    assert!(!accounts.number(1, 16, 7));
    assert!(accounts.number(1, 16, 8));
    assert_eq!(accounts.uid_validity(1, 16), Some(8));
    assert_eq!(accounts.uid_validity(1, 17), None);
}

#[test]
fn a_pack_is_encoded_for_each_account_of_its_group() {
    let mut accounts = accounts();
    assert_eq!(accounts.encodings(1), [Encoding::EightBit]);
    let both = [Encoding::Base64, Encoding::EightBit];
    assert_eq!(accounts.encodings(2), both);
    assert_eq!(accounts.encodings(9), []);
    assert_eq!(accounts.encoding(3), Some(Encoding::Base64));
    assert_eq!(accounts.encoding(9), None);
    // An account joins a running mount; a second time changes nothing.
    accounts.add(&terms(5));
    accounts.asks(5);
    accounts.add(&terms(5));
    assert_eq!(accounts.encoding(5), Some(Encoding::EightBit));
    assert_eq!(accounts.status(at(100))[4].asked, 1);
}

/// Every group is used once before any twice, then the one with the fewest octets on the way.
#[test]
fn packs_are_striped_over_groups() {
    let mut accounts = accounts();
    let next = |accounts: &mut Accounts| accounts.best_group(Urgency::Background);
    let chosen = [1, 2, 3, 4].map(|_| next(&mut accounts));
    assert_eq!(chosen, [1, 2, 1, 2]);
    accounts.group_begins(1, 1_000);
    accounts.group_begins(2, 999);
    assert_eq!([next(&mut accounts), next(&mut accounts)], [2, 2]);
    accounts.group_ends(1, 2);
    assert_eq!([next(&mut accounts), next(&mut accounts)], [1, 1]);
    // A group of resting accounts comes last.
    accounts.failed(1, &unreachable());
    assert_eq!(next(&mut accounts), 1, "2 is left");
    accounts.failed(2, &unreachable());
    assert_eq!(next(&mut accounts), 2);
    assert!(accounts.has_better_group(1, Urgency::Background));
    assert!(!accounts.has_better_group(2, Urgency::Background));
    assert_eq!(Accounts::new(&[], &[]).best_group(Urgency::Waited), 0);
}

#[test]
fn a_new_grouping_keeps_what_is_known_of_a_group() {
    let mut accounts = accounts();
    accounts.set_strategy(1, Strategy::All);
    accounts.group_begins(1, 1_000);
    accounts.regroup(&[group(1, &[1, 3]), group(5, &[4])]);
    let groups: Vec<_> = accounts.groups().collect();
    assert_eq!(groups, [(1, &[1, 3][..]), (5, &[4][..])]);
    assert_eq!(
        (accounts.members(1), accounts.members(2)),
        (vec![1, 3], vec![])
    );
    let strategies: Vec<_> = accounts.strategies().collect();
    assert_eq!(strategies, [(1, Strategy::All), (5, Strategy::One)]);
    let chosen = [1, 2].map(|_| accounts.best_group(Urgency::Background));
    assert_eq!(chosen, [5, 5], "1 has octets on the way");
}

#[test]
fn a_copy_goes_to_an_account_that_has_none_and_has_least_to_do() {
    let mut accounts = accounts();
    let best = |accounts: &Accounts, has: &[MailCopy], asked: &[u16]| {
        accounts.best_member(1, has, asked, Urgency::Idle)
    };
    assert_eq!(best(&accounts, &[], &[]), Some(1));
    accounts.asks(1);
    assert_eq!(best(&accounts, &[], &[]), Some(2));
    accounts.answers(1);
    assert_eq!(best(&accounts, &[], &[]), Some(1));
    assert_eq!(best(&accounts, &[copy(1)], &[]), Some(2));
    assert_eq!(best(&accounts, &[], &[1]), Some(2));
    assert_eq!(best(&accounts, &[copy(1)], &[2]), None);
    accounts.failed(1, &unreachable());
    assert_eq!(best(&accounts, &[], &[]), Some(2));
    accounts.failed(2, &scarce(Urgency::Synced));
    assert_eq!(best(&accounts, &[], &[]), None);
    let urgent = accounts.best_member(1, &[], &[], Urgency::Waited);
    assert_eq!(urgent, Some(2), "budgets keep octets for urgent requests");
    assert_eq!(accounts.best_member(9, &[], &[], Urgency::Waited), None);
}

/// With `fast`, the measured time of a chunk counts before the number of requests.
#[test]
fn a_fast_group_prefers_the_faster_account() {
    let mut accounts = accounts();
    for (account, millis) in [(1, 400), (2, 100), (3, 400), (4, 100)] {
        let took = Duration::from_millis(millis);
        for direction in [Direction::Up, Direction::Down] {
            let of = (account, direction);
            accounts.rates.measured(of, 512 << 10, took, at(100));
        }
    }
    accounts.set_strategy(2, Strategy::Fast);
    for account in [2, 4] {
        accounts.asks(account);
    }
    let best = |group| accounts.best_member(group, &[], &[], Urgency::Idle);
    assert_eq!([best(1), best(2)], [Some(1), Some(4)]);
    let time = Duration::from_millis;
    assert_eq!(accounts.cost(2), (false, time(0), 1));
    assert_eq!(accounts.cost(4), (false, time(100), 1));
    assert_eq!(accounts.cost(3), (false, time(400), 0));
    assert_eq!(accounts.cost(9), (true, time(0), u32::MAX));
}

#[test]
fn a_commit_waits_for_the_copies_of_its_strategy() {
    let all = [1, 2, 3].map(terms);
    let mut accounts = Accounts::new(&all, &[group(1, &[1, 2, 3])]);
    assert_eq!(
        [0, 1, 2, 9].map(|sync| accounts.copies_wanted(1, &[], sync)),
        [1, 1, 2, 3]
    );
    accounts.set_strategy(1, Strategy::All);
    assert_eq!(accounts.copies_wanted(1, &[], 1), 3);
    // Accounts out of reach are not waited for, unless they have a copy already.
    accounts.failed(3, &unreachable());
    assert_eq!(accounts.copies_wanted(1, &[], 1), 2);
    assert_eq!(accounts.copies_wanted(1, &[copy(3)], 1), 3);
    assert_eq!(accounts.copies_wanted(1, &[copy(1)], 1), 2);
    for account in [1, 2] {
        accounts.failed(account, &unreachable());
    }
    assert_eq!(accounts.copies_wanted(1, &[], 1), 1, "a copy at least");
    assert_eq!(accounts.copies_wanted(1, &[], 2), 2, "as the user wants");
    assert_eq!(accounts.copies_wanted(9, &[], 2), 1);
}

/// A failing account rests for a second, then for twice as long each time, up to a quarter of an hour.
#[test]
fn an_account_that_fails_rests_for_longer_each_time() {
    let mut accounts = accounts();
    assert!(accounts.may_try(1));
    assert_eq!(accounts.rests_until(1), None);
    assert_eq!(accounts.next_trial(), None);
    assert!(accounts.failed(1, &unreachable()), "news");
    assert!(!accounts.may_try(1));
    // Requests that were under way together fail together.
    assert!(!accounts.failed(1, &unreachable()));
    assert_eq!(accounts.rests_until(1), Some(at(101)));
    assert_eq!(accounts.next_trial(), Some(at(101)));
    let mut rests = Vec::new();
    for _ in 0..12 {
        let until = accounts.rests_until(1).unwrap();
        accounts.now = until;
        assert!(accounts.may_try(1));
        assert_eq!(accounts.next_trial(), None, "the next request tries");
        assert!(!accounts.failed(1, &unreachable()), "no news");
        rests.push(
            accounts
                .rests_until(1)
                .unwrap()
                .saturating_since(until)
                .as_secs(),
        );
    }
    assert_eq!(rests, [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
    let status = &accounts.status(accounts.now)[0];
    assert_eq!(
        status.failing.as_deref(),
        Some("the account cannot be reached: no route")
    );
    assert_eq!(status.failing_for, accounts.now.saturating_since(at(100)));
    assert_eq!(status.next_attempt, 900 * SECOND);
    assert!(accounts.answered_well(1), "news");
    assert!(!accounts.answered_well(1));
    assert!(accounts.may_try(1));
    assert_eq!(accounts.status(accounts.now)[0].failing, None);
    assert!(!accounts.failed(9, &unreachable()));
    assert!(!accounts.may_try(9));
}

/// An account that has no room tells its quota all the same.
#[test]
fn a_told_quota_ends_no_rest() {
    let mut accounts = accounts();
    accounts.now = at(100);
    let full = Fault::OverQuota("full".to_owned());
    for (fault, is_over) in [(unreachable(), true), (full, false)] {
        assert!(accounts.failed(1, &fault));
        assert!(!accounts.told_quota(1), "the account rests");
        let until = accounts.rests_until(1).unwrap();
        accounts.now = until;
        assert_eq!(accounts.told_quota(1), is_over);
        assert_eq!(accounts.answered_well(1), !is_over);
        assert!(!accounts.told_quota(1));
    }
}

#[test]
fn an_account_that_asks_for_patience_gets_the_time_it_asks_for() {
    let mut accounts = accounts();
    let fault = Fault::Throttled("slow down".to_owned(), 90_000);
    assert!(accounts.failed(1, &fault));
    assert_eq!(accounts.rests_until(1), Some(at(190)));
}

/// A budget without octets for a kind of request is no fault of the account.
#[test]
fn a_scarce_account_serves_urgent_requests() {
    let mut accounts = accounts();
    assert!(accounts.failed(1, &scarce(Urgency::Background)));
    assert!(!accounts.failed(1, &scarce(Urgency::Background)));
    let may = |accounts: &Accounts| {
        [Urgency::Synced, Urgency::Background, Urgency::Idle]
            .map(|urgency| accounts.may(1, urgency))
    };
    assert_eq!(may(&accounts), [true, false, false]);
    assert!(accounts.may_try(1));
    assert_eq!(accounts.next_trial(), Some(at(105)));
    let status = &accounts.status(at(101))[0];
    assert_eq!(status.scarce, Some(("no octets".to_owned(), 4 * SECOND)));
    assert_eq!(accounts.status(at(105))[0].scarce, None);
    accounts.now = at(105);
    assert_eq!(may(&accounts), [true; 3]);
    assert_eq!(accounts.next_trial(), None);
    assert!(
        accounts.failed(1, &scarce(Urgency::Background)),
        "news again"
    );
    accounts.failed(1, &unreachable());
    assert_eq!(may(&accounts), [false; 3]);
    assert!(!accounts.failed(9, &scarce(Urgency::Idle)));
    assert!(!accounts.may(9, Urgency::Commit));
}

#[test]
fn faults_that_pass_are_told_from_faults_that_stay() {
    let throttled = Fault::Throttled(String::new(), 1);
    for fault in [unreachable(), throttled, scarce(Urgency::Idle)] {
        assert!(comes_back(&fault), "{fault}");
    }
    let login = Fault::Login(String::new());
    for fault in [
        login,
        Fault::OverQuota(String::new()),
        Fault::ReadOnly(String::new()),
    ] {
        assert!(!comes_back(&fault), "{fault}");
    }
}

#[test]
fn a_postponed_pack_is_tried_once_when_accounts_have_rested() {
    let mut accounts = accounts();
    for number in [5, 6, 5] {
        accounts.postpone(PackNumber(number));
    }
    assert_eq!(accounts.rested(), [PackNumber(5), PackNumber(6)]);
    assert_eq!(accounts.rested(), []);
}

/// Free octets: as told by the account, less the octets sent since.
#[test]
fn room_is_that_of_the_fullest_account_of_each_group() {
    let mut accounts = accounts();
    assert_eq!(accounts.free(1), None);
    let unknown = accounts.room();
    assert!(unknown.free >= 1 << 40, "no account tells a limit");
    accounts.quota(1, Some((300, 1_000)));
    accounts.quota(2, Some((100, 2_000)));
    accounts.quota(3, Some((50, 500)));
    assert_eq!(accounts.free(1), Some(700));
    let room = accounts.room();
    assert_eq!((room.free, room.octets), (700 + 450, 1_000 + 500));
    accounts.takes(1, 100);
    accounts.takes(1, 50);
    assert_eq!(accounts.free(1), Some(550));
    assert_eq!(accounts.room().free, 550 + 450);
    assert_eq!(accounts.room().inodes, accounts.room().inodes_free);
    accounts.takes(1, 10_000);
    assert_eq!(accounts.free(1), Some(0));
    // The account tells anew, the sent octets included.
    accounts.quota(1, Some((450, 1_000)));
    assert_eq!(accounts.free(1), Some(550));
    assert_eq!(accounts.status(at(100))[0].quota, Some((450, 1_000)));
}

/// With less than a fifth free, an account has no room for content with another place.
#[test]
fn an_account_is_short_below_a_fifth() {
    let mut accounts = accounts();
    assert!(!accounts.is_short(1), "nothing is told");
    for (used, is_short) in [(0, false), (800, false), (801, true), (1_000, true)] {
        accounts.quota(1, Some((used, 1_000)));
        assert_eq!(accounts.is_short(1), is_short, "{used}");
    }
}

#[test]
fn the_octets_of_an_append_are_those_of_its_mail() {
    let append = Request::Append {
        mailbox: "log".to_owned(),
        mail: b"twelve octets"[..].into(),
        alone: true,
    };
    let began = Began::of(&append, at(7));
    assert_eq!((began.at, began.octets), (at(7), 13));
    assert_eq!(Began::of(&Request::Quota, at(7)).octets, 0);
}

/// At least a quarter of the time is that of the octets: the round trip was measured at another moment.
#[test]
fn a_round_trip_explains_three_quarters_of_the_time_at_most() {
    let mut accounts = accounts();
    let of = (1, Direction::Up);
    let millis = Duration::from_millis;
    accounts.rates.measured(of, 1_000, millis(1_000), at(100));
    accounts
        .rates
        .measured(of, 512 << 10, millis(1_000), at(100));
    let speed = accounts.rates.octets_per_second(1, Direction::Up).unwrap();
    assert!(speed.abs_diff((512 << 10) * 4) < 100, "{speed}");
    assert_eq!(accounts.status(at(100))[0].up, Some(speed));
    assert_eq!(accounts.status(at(100))[0].down, None);
    // A measurement counts for a minute.
    let expected = |at| accounts.rates.expected(1, Direction::Up, at);
    assert!(expected(at(160)).is_some());
    assert!(expected(at(161)).is_none());
}
