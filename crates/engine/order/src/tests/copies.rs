//! What a copy on a further account has, lacks and asks for.

use vere_placement::accounts::{LOG_COPY_MAILBOX, LOG_MAILBOX, mailbox_name};
use vere_ports::mail_accounts::{Answer, Fault, Request};
use vere_units::Timestamp;

use super::*;
use crate::copies::{Copy, Next as Step, Ticket};
use crate::recent::{Known, Recent};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn parent_of(number: u8) -> MailId {
    match number {
        1 => MailId::NONE,
        _ => id(number - 1),
    }
}

/// Commits of another mount, with the UID that each has on the lead.
fn recent(generations: std::ops::RangeInclusive<u8>) -> Recent {
    let mut recent = Recent::default();
    for number in generations {
        recent.note(Known {
            won: won(number, number.into(), number.into()),
            parent: parent_of(number),
            mail: None,
            is_own: false,
            since: Timestamp::ZERO,
        });
    }
    recent
}

/// Mails of a log, in the order of UIDs.
fn log(first: u32, numbers: &[u8]) -> Vec<Listed> {
    let mail = |(uid, number): (u32, &u8)| {
        let head = head_of(*number, Kind::Commit);
        let parent = Some(parent_of(*number));
        Listed {
            uid,
            size: 1_000,
            subject: Subject::of(&head, parent, Some((*number).into())).to_string(),
        }
    };
    (first..).zip(numbers).map(mail).collect()
}

fn listing(uid_next: u32, mails: Vec<Listed>) -> Result<Answer, Fault> {
    Ok(Answer::Listed {
        uid_validity: NUMBERS,
        uid_next,
        mails,
    })
}

fn ask(copy: &mut Copy, recent: &Recent) -> (Ticket, Request) {
    match copy.poll(recent, NOW, true) {
        Some(Step::Ask(ticket, request) | Step::AskLead(ticket, request)) => (ticket, request),
        other => panic!("{other:?}"),
    }
}

fn answer(copy: &mut Copy, recent: &Recent, ticket: Ticket, answer: Result<Answer, Fault>) {
    let next = copy.answered(ticket, answer, (recent, NOW));
    assert!(matches!(next, Ok(None)), "{next:?}");
}

/// A copy whose log ends with these mails.
fn copy_with(recent: &Recent, mails: Vec<Listed>) -> Copy {
    let mut copy = Copy::default();
    let uid_next = mails.last().map_or(1, |last| last.uid + 1);
    let (end, _) = ask(&mut copy, recent);
    answer(&mut copy, recent, end, listing(uid_next, Vec::new()));
    let (tail, _) = ask(&mut copy, recent);
    answer(&mut copy, recent, tail, listing(uid_next, mails));
    copy
}

fn uid_of(request: &Request, of: u16) -> u32 {
    match request {
        Request::Read { mailbox, uid, .. } if *mailbox == mailbox_name(of) => *uid,
        other => panic!("{other:?}"),
    }
}

/// Reads the next missing mail from the lead. The mail is as the lead has it, or none.
fn fill(copy: &mut Copy, recent: &Recent, mail: Option<Bytes>) -> u32 {
    let (ticket, request) = ask(copy, recent);
    let uid = uid_of(&request, LOG_MAILBOX);
    let read = Ok(Answer::Read(vec![Bytes::from_static(b"mail")]));
    let fetched = copy.answered(ticket, read, (recent, NOW)).unwrap().unwrap();
    let is_made = mail.is_some();
    copy.made(fetched.ticket, mail);
    if is_made {
        let (ticket, request) = ask(copy, recent);
        let Request::Append { mailbox, .. } = request else {
            panic!("{request:?}");
        };
        assert_eq!(mailbox, mailbox_name(LOG_COPY_MAILBOX));
        answer(copy, recent, ticket, Ok(Answer::Appended(None)));
    }
    uid
}

#[test]
fn a_hole_before_the_newest_commit_is_no_proof_of_all_before() {
    let recent = recent(1..=6);
    let mut copy = copy_with(&recent, log(1, &[2, 4, 5, 6]));
    assert_eq!(copy.has(), Some(0));
    assert_eq!(copy.behind(&recent).0, 2);
    assert_eq!(fill(&mut copy, &recent, Some(mail(1))), 1);
    assert_eq!(copy.has(), Some(2));
    assert_eq!(fill(&mut copy, &recent, Some(mail(3))), 3);
    assert_eq!(copy.has(), Some(6));
}

/// Commits before the first UID that was listed may be there.
#[test]
fn the_end_of_a_long_log_tells_of_holes_behind_its_beginning() {
    let recent = recent(1..=6);
    let copy = copy_with(&recent, log(1_000, &[3, 4, 5, 6]));
    assert_eq!(copy.has(), Some(6));
    let mut copy = copy_with(&recent, log(1_000, &[3, 5, 6]));
    assert_eq!(copy.has(), Some(3));
    assert_eq!(fill(&mut copy, &recent, Some(mail(4))), 4);
    assert_eq!(copy.has(), Some(6));
}

#[test]
fn a_commit_that_cannot_be_made_is_never_there() {
    let recent = recent(1..=3);
    let mut copy = copy_with(&recent, log(1, &[1]));
    let (look, _) = ask(&mut copy, &recent);
    answer(&mut copy, &recent, look, listing(2, Vec::new()));
    assert_eq!(fill(&mut copy, &recent, None), 2);
    assert_eq!(fill(&mut copy, &recent, Some(mail(3))), 3);
    assert_eq!(copy.has(), Some(1));
    assert!(!copy.is_level(&recent));
}

#[test]
fn many_holes_are_found_by_whole_logs() {
    let recent = recent(1..=60);
    let mut copy = copy_with(&recent, log(1, &[1, 60]));
    let (_, request) = ask(&mut copy, &recent);
    let Request::List { mailbox, .. } = request else {
        panic!("{request:?}");
    };
    assert_eq!(mailbox, mailbox_name(LOG_MAILBOX));
}

/// A listing of the lead that lacks every commit in memory tells nothing about the copy.
#[test]
fn a_listing_without_the_chain_is_no_proof() {
    let recent = recent(5..=6);
    let mut copy = copy_with(&recent, log(1_000, &[1, 2]));
    let (lead, _) = ask(&mut copy, &recent);
    let (all, _) = ask(&mut copy, &recent);
    answer(&mut copy, &recent, lead, listing(3, log(1, &[1, 2])));
    answer(&mut copy, &recent, all, listing(1_002, log(1, &[1, 2])));
    let never = &mut |_: &Subject| Ok::<bool, ()>(false);
    assert_eq!(copy.compare((&recent, NOW), never), Ok(true));
    assert_eq!(copy.has(), None);
    assert_eq!(copy.poll(&recent, NOW, true), None);
    assert!(copy.due(&recent, NOW).is_some_and(|due| due > NOW));
}

/// An account that answers everything, and takes no mail.
#[test]
fn an_account_that_takes_no_mail_is_tried_ever_less() {
    let recent = recent(1..=2);
    let mut copy = Copy::default();
    let mut now = NOW;
    for seconds in [1, 2, 4, 8, 16] {
        let mut is_refused = false;
        while !is_refused {
            let step = copy.poll(&recent, now, true);
            let Some(Step::Ask(ticket, request) | Step::AskLead(ticket, request)) = step else {
                panic!("{step:?}");
            };
            let said = match &request {
                Request::Append { .. } => Err(Fault::TooBig("no".to_owned(), None)),
                Request::Read { .. } => Ok(Answer::Read(vec![Bytes::from_static(b"mail")])),
                _ => listing(1, Vec::new()),
            };
            is_refused = said.is_err();
            match copy.answered(ticket, said, (&recent, now)) {
                Ok(Some(fetched)) => copy.made(fetched.ticket, Some(mail(1))),
                Ok(None) => {}
                Err((is_copy, _)) => assert!(is_copy),
            }
        }
        assert!(copy.pauses(now));
        assert_eq!(copy.poll(&recent, now, true), None);
        now = copy.due(&recent, now).unwrap();
        assert_eq!(now.saturating_since(NOW).as_secs(), 2 * seconds - 1);
        assert!(!copy.pauses(now));
    }
}

/// After a rollback the copy has the branch that the chain has left.
#[test]
fn a_copy_with_another_branch_is_told_apart() {
    let mut recent = recent(1..=3);
    let mut mails = log(1, &[1, 2, 3, 4, 5]);
    mails[3].subject = Subject::of(&head_of(77, Kind::Commit), Some(id(3)), Some(4)).to_string();
    let mut copy = copy_with(&recent, mails);
    assert_eq!(copy.has(), Some(3));
    // The commits may be newer ones of another mount.
    assert!(!copy.has_other_branch(&recent));
    for number in [4, 5] {
        recent.note(Known {
            won: won(number, number.into(), number.into()),
            parent: parent_of(number),
            mail: None,
            is_own: false,
            since: Timestamp::ZERO,
        });
        assert!(copy.has_other_branch(&recent));
    }
    copy.reset();
    assert!(!copy.has_other_branch(&recent));
}

/// A commit on the left branch.
fn stray(uid: u32, number: u8, (parent, generation): (MailId, u64)) -> Listed {
    let head = head_of(number, Kind::Commit);
    Listed {
        uid,
        size: 1_000,
        subject: Subject::of(&head, Some(parent), Some(generation)).to_string(),
    }
}

/// Compares whole logs; the copy is listed before the lead.
fn leave(copy: &mut Copy, recent: &Recent, lead: Vec<Listed>, of_copy: Vec<Listed>) {
    copy.leave_branch();
    let uid_next = of_copy.last().map_or(1, |last| last.uid + 1);
    let (end, _) = ask(copy, recent);
    answer(copy, recent, end, listing(uid_next, Vec::new()));
    let (tail, _) = ask(copy, recent);
    answer(copy, recent, tail, listing(uid_next, of_copy.clone()));
    let mut of_copy = Some(of_copy);
    let mut lead = Some(lead);
    for mailbox in [LOG_COPY_MAILBOX, LOG_MAILBOX] {
        let (ticket, request) = ask(copy, recent);
        let Request::List { mailbox: of, .. } = request else {
            panic!("{request:?}");
        };
        assert_eq!(of, mailbox_name(mailbox));
        let mails = if mailbox == LOG_MAILBOX {
            lead.take()
        } else {
            of_copy.take()
        };
        answer(copy, recent, ticket, listing(uid_next, mails.unwrap()));
    }
    let never = &mut |_: &Subject| Ok::<bool, ()>(false);
    assert_eq!(copy.compare((recent, NOW), never), Ok(true));
}

#[test]
fn the_branch_that_the_chain_has_left_leaves_the_copy() {
    let recent = recent(1..=5);
    let mut mails = log(1, &[1, 2, 3]);
    mails.push(stray(4, 74, (id(3), 4)));
    mails.push(stray(5, 75, (id(74), 5)));
    mails.push(stray(6, 76, (id(75), 6)));
    let mut copy = copy_with(&recent, mails.clone());
    assert!(copy.has_other_branch(&recent));
    leave(&mut copy, &recent, log(1, &[1, 2, 3, 4, 5]), mails);
    assert!(!copy.is_level(&recent));
    let (ticket, request) = ask(&mut copy, &recent);
    let expected = Request::Remove {
        mailbox: mailbox_name(LOG_COPY_MAILBOX),
        uid_validity: NUMBERS,
        uids: vec![4, 5, 6],
    };
    assert_eq!(request, expected);
    assert_eq!(copy.poll(&recent, NOW, false), None);
    answer(&mut copy, &recent, ticket, Ok(Answer::Removed));
    assert!(!copy.has_other_branch(&recent));
    // The chain's own commits follow.
    assert_eq!(fill(&mut copy, &recent, Some(mail(4))), 4);
    assert_eq!(fill(&mut copy, &recent, Some(mail(5))), 5);
    assert_eq!(copy.has(), Some(5));
}

#[test]
fn commits_that_the_lead_still_lists_stay_in_the_copy() {
    let recent = recent(3..=5);
    // An open commit beside the chain, a newer commit of a second mount, and a commit of long ago.
    let open = stray(5, 74, (id(3), 4));
    let newer = stray(6, 76, (id(5), 6));
    let mut mails = log(1, &[2, 3, 4, 5]);
    mails.extend([open.clone(), newer.clone()]);
    let mut lead = log(1, &[3, 4, 5]);
    lead.extend([open, newer]);
    let mut copy = copy_with(&recent, mails.clone());
    leave(&mut copy, &recent, lead, mails);
    assert!(!matches!(
        copy.poll(&recent, NOW, true),
        Some(Step::Ask(_, Request::Remove { .. }))
    ));
    assert!(copy.has_other_branch(&recent));
}

#[test]
fn a_removal_that_fails_is_tried_again() {
    let recent = recent(1..=4);
    let mut mails = log(1, &[1, 2, 3]);
    mails.push(stray(4, 74, (id(3), 4)));
    let mut copy = copy_with(&recent, mails.clone());
    leave(&mut copy, &recent, log(1, &[1, 2, 3, 4]), mails.clone());
    let (ticket, _) = ask(&mut copy, &recent);
    let cut = Err(Fault::Unreachable("cut".to_owned()));
    assert!(copy.answered(ticket, cut, (&recent, NOW)).is_err());
    assert!(!copy.is_level(&recent));
    leave(&mut copy, &recent, log(1, &[1, 2, 3, 4]), mails);
    let (_, request) = ask(&mut copy, &recent);
    assert!(matches!(request, Request::Remove { uids, .. } if uids == [4]));
}
