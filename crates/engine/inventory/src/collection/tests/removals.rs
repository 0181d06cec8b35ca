//! Mails on the way out, and rows on the way in.

use vere_ports::mail_accounts::{Answer, Fault, Listed, Request};

use super::super::rows::{Removing, RowChange, Writing};
use super::{commit, copy, id};
use crate::format::MailId;

const LOG: u16 = 1;
const DATA: u16 = 17;

fn mails(numbers: impl IntoIterator<Item = u8>) -> Vec<(u32, MailId)> {
    numbers
        .into_iter()
        .map(|of| (u32::from(of) * 10, id(of)))
        .collect()
}

fn listed(uid_validity: u32, numbers: &[(u32, u8)]) -> Result<Answer, Fault> {
    let mail = |(uid, number): &(u32, u8)| Listed {
        uid: *uid,
        size: 100,
        subject: commit(*number).to_string(),
    };
    Ok(Answer::Listed {
        uid_validity,
        uid_next: 1_000,
        mails: numbers.iter().map(mail).collect(),
    })
}

fn cut() -> Result<Answer, Fault> {
    Err(Fault::Unreachable("cut".to_owned()))
}

#[test]
fn only_the_expected_mails_go_and_only_after_a_listing() {
    let mut removing = Removing::default();
    removing.add((1, DATA), 7, mails(1..=3));
    let (number, account, request) = removing.poll().unwrap();
    assert_eq!(account, 1);
    let Request::List { mailbox, range } = request else {
        panic!("{request:?}");
    };
    assert_eq!(
        (mailbox.as_str(), range.first, range.last),
        ("data-0002", 10, Some(30))
    );
    assert!(removing.poll().is_none() && !removing.is_over());
    // A stranger's mail has the second UID, the third mail is gone, and a stranger lies between.
    removing.answered(number, listed(7, &[(10, 1), (15, 9), (20, 8)]));
    let (number, _, request) = removing.poll().unwrap();
    let expected = Request::Remove {
        mailbox: "data-0002".to_owned(),
        uid_validity: 7,
        uids: vec![10],
    };
    assert_eq!(request, expected);
    removing.answered(number, Ok(Answer::Removed));
    assert!(removing.is_over());
    assert_eq!(
        (removing.removed, removing.octets, removing.history),
        (1, 100, 0)
    );
    assert_eq!((removing.done(), removing.all()), (1, 1));
    assert!(removing.kept.is_empty() && removing.failed.is_empty());
}

#[test]
fn nothing_goes_from_a_mailbox_with_other_numbers() {
    let mut removing = Removing::default();
    removing.add((1, DATA), 7, mails([1]));
    let (number, ..) = removing.poll().unwrap();
    removing.answered(number, listed(8, &[(10, 1)]));
    assert!(removing.poll().is_none() && removing.is_over());
    assert!(removing.kept.contains(&copy(1, DATA, 10)));
    assert!(removing.failed[&1].contains("expected 7; found 8"));
    // An empty mailbox without numbers has nothing left to remove.
    removing.add((2, DATA), 7, mails([1]));
    let (number, ..) = removing.poll().unwrap();
    removing.answered(number, listed(0, &[]));
    assert!(removing.is_over() && !removing.failed.contains_key(&2));
    // An answer to another request is a failure.
    removing.add((3, DATA), 7, mails([1]));
    let (number, ..) = removing.poll().unwrap();
    removing.answered(number, Ok(Answer::Gone));
    assert!(removing.failed.contains_key(&3));
}

#[test]
fn batches_are_bounded_by_count_and_by_reach() {
    let mut removing = Removing::default();
    let many = (1..=501).map(|uid| (uid, id(1)));
    removing.add((1, DATA), 7, many);
    assert_eq!(removing.all(), 2);
    removing.add((2, DATA), 7, [(1, id(1)), (2_000, id(2)), (2_001, id(3))]);
    assert_eq!(removing.all(), 4);
    // Four requests are under way at once.
    removing.add((3, DATA), 7, mails([1]));
    let numbers: Vec<usize> = std::iter::from_fn(|| removing.poll())
        .map(|(number, ..)| number)
        .collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    removing.answered(0, cut());
    assert_eq!(removing.poll().map(|(number, ..)| number), Some(4));
    removing.answered(99, cut());
}

#[test]
fn the_log_loses_its_oldest_mails_first_and_no_younger_ones_behind_a_failure() {
    let mut removing = Removing::default();
    removing.add((1, LOG), 7, [(1, id(1)), (5_000, id(2))]);
    removing.add((1, DATA), 7, mails([3]));
    let (first, _, request) = removing.poll().unwrap();
    assert!(matches!(request, Request::List { mailbox, .. } if mailbox == "log"));
    // The second batch of the log waits; data do not.
    let (data, _, request) = removing.poll().unwrap();
    assert!(matches!(request, Request::List { mailbox, .. } if mailbox == "data-0002"));
    assert!(removing.poll().is_none());
    removing.answered(first, listed(7, &[(1, 1)]));
    let (first, _, request) = removing.poll().unwrap();
    assert!(matches!(request, Request::Remove { .. }));
    removing.answered(first, Ok(Answer::Removed));
    assert_eq!(removing.history, 1);
    let (second, ..) = removing.poll().unwrap();
    removing.answered(second, cut());
    removing.answered(data, cut());
    assert!(removing.is_over());
    let kept: Vec<_> = removing.kept.iter().copied().collect();
    assert_eq!(kept, [copy(1, LOG, 5_000), copy(1, DATA, 30)]);
    // A failure of the first batch keeps the second.
    let mut removing = Removing::default();
    removing.add((1, LOG), 7, [(1, id(1)), (5_000, id(2))]);
    removing.add((2, LOG), 7, [(1, id(1))]);
    let (first, ..) = removing.poll().unwrap();
    removing.answered(first, cut());
    let (other, account, _) = removing.poll().unwrap();
    assert_eq!((other, account), (2, 2));
    removing.answered(other, cut());
    assert!(removing.is_over());
}

#[test]
fn rows_come_from_the_list_and_then_from_their_source() {
    let row = |number: u8| -> RowChange { (vec![number], None) };
    let mut writing = Writing::new(vec![row(1), row(2)]);
    assert_eq!((writing.done(), writing.all()), (0, 2));
    writing.source = Some(Box::new(vec![row(3)].into_iter()));
    let all: Vec<RowChange> = std::iter::from_fn(|| writing.next_row()).collect();
    assert_eq!(all, [row(1), row(2), row(3)]);
    let mut source = Writing::of_source(Box::new(vec![row(4)].into_iter()), 1);
    assert_eq!(source.all(), 1);
    assert_eq!(source.next_row(), Some(row(4)));
    assert_eq!(source.next_row(), None);
    // A source may give more than was said.
    source.done = 3;
    assert_eq!((source.done(), source.all()), (3, 3));
    let keys = Writing::of_keys(vec![vec![1], vec![2]]);
    assert_eq!((keys.keys.len(), keys.all(), keys.left.len()), (2, 2, 0));
}
