//! Mailbox `head` as accounts show the mailbox, and the mails among all that count.

use vere_ports::mail_accounts::{Answer, Fault, Listed, RequestId};

use super::*;
use crate::facts::{account_rows, group_rows, knows_slot};
use crate::format::MailId;
use crate::rows::{AccountRow, GroupRow};

/// Waiting requests, and notices.
fn steps(recovery: &mut Recovery) -> (Vec<RequestId>, Vec<String>) {
    let (mut asked, mut notices) = (Vec::new(), Vec::new());
    while let Some(step) = recovery.poll() {
        match step {
            OpenStep::Ask(id, ..) => asked.push(id),
            OpenStep::Log(notice) => notices.push(notice.to_string()),
        }
    }
    (asked, notices)
}

fn listed(uid: u32, subject: &Subject, size: u32) -> Listed {
    Listed {
        uid,
        size,
        subject: subject.to_string(),
    }
}

/// Slots and facts of a likely size are read; a mailbox full of anything else costs nobody a transfer.
#[test]
fn only_mails_that_can_count_are_read() {
    let slot = Subject::of(&slot(1, &[1], "phrase").head, None, None);
    let of = |kind| Subject { kind, ..slot };
    let other_volume = Subject {
        volume: TAG ^ 1,
        ..slot
    };
    let mails = vec![
        listed(1, &slot, 64 << 10),
        listed(2, &slot, (64 << 10) + 1),
        listed(3, &of(Kind::Volume), 6 << 20),
        listed(4, &of(Kind::Volume), u32::MAX),
        listed(5, &of(Kind::Probe), 100),
        listed(6, &of(Kind::Data), 100),
        listed(7, &other_volume, 100),
    ];
    let mut recovery = Recovery::new([AccountId(1)], TAG);
    assert_eq!((recovery.progress(), recovery.is_idle()), ((0, 1), false));
    let (asked, _) = steps(&mut recovery);
    let answer = Answer::Listed {
        uid_validity: 7,
        uid_next: 8,
        mails,
    };
    recovery.answered(asked[0], Ok(answer));
    let (asked, notices) = steps(&mut recovery);
    // The slot; facts are read once a key is there.
    assert_eq!(asked.len(), 1);
    assert_eq!((recovery.progress(), recovery.is_idle()), ((1, 2), false));
    assert_eq!(notices.len(), 4, "{notices:?}");
    for (notice, uid) in notices.iter().zip([2, 4, 6, 7]) {
        assert!(notice.contains(&format!("UID {uid}")), "{notice}");
    }
    recovery.answered(asked[0], Ok(Answer::Gone));
    assert!(recovery.is_idle());
    assert_eq!(recovery.progress(), (2, 2));
}

/// An account out of reach is told as such, and not as one without the newest facts.
#[test]
fn an_account_out_of_reach_is_not_behind() {
    let slot = slot(1, &[1], "phrase");
    let mut account = MemoryAccount::new();
    put_slot(&mut account, &slot);
    put_facts(&mut account, 1, &facts(4, &[&slot]), 4);
    let mut recovery = Recovery::new([AccountId(1), AccountId(2)], TAG);
    let carry = |recovery: &mut Recovery, account: &mut MemoryAccount| {
        while let Some(step) = recovery.poll() {
            match step {
                OpenStep::Ask(id, AccountId(1), _, request) => {
                    recovery.answered(id, account.carry_out(&request));
                }
                OpenStep::Ask(id, ..) => {
                    let fault = Fault::Unreachable("no route".to_owned());
                    recovery.answered(id, Err(fault));
                }
                OpenStep::Log(notice) => panic!("{notice}"),
            }
        }
    };
    carry(&mut recovery, &mut account);
    recovery.unlock(SlotSecret::Passphrase(b"phrase")).unwrap();
    carry(&mut recovery, &mut account);
    let recovered = recovery.finish().unwrap();
    assert_eq!(recovered.behind, []);
    let faults: Vec<_> = recovered.faults.keys().copied().collect();
    assert_eq!(faults, [AccountId(2)]);
}

/// Facts of another volume with an equal tag, sealed with keys of the slot.
#[test]
fn facts_of_another_volume_do_not_count() {
    let slot = slot(1, &[1], "phrase");
    let mut other = VOLUME;
    other.0[15] ^= 1;
    let mail = Builder::new(Kind::Volume, other, 1, 0, PackNumber(2));
    let octets = facts(4, &[&slot]).encode().unwrap();
    let sealed = mail.finish(octets.into(), &Keys::derive(&key(1))).unwrap();
    let subject = Subject::of(&sealed.head, None, Some(4));
    let mut all = accounts(1);
    let account = all.get_mut(&1).unwrap();
    put_slot(account, &slot);
    append(account, &subject, Encoding::EightBit, &sealed.body);
    let (recovered, notices) = recover(&mut all, "phrase");
    assert_eq!(recovered.unwrap_err(), RecoveryError::NoFacts);
    assert_eq!(notices.len(), 1, "{notices:?}");
}

/// A slot counts if its row names its mail; before rows of slots there was none to name.
#[test]
fn a_row_names_the_mail_of_a_slot() {
    let row = |number: u8, mail: u8| {
        let row = SlotRow {
            mail: MailId([mail; 16]),
            method: 1,
            label: String::new(),
        };
        (Key::Slot(number).encode(), row.encode())
    };
    let rows = [row(1, 10), row(2, 20)];
    let knows = |number, mail| knows_slot(&rows, number, MailId([mail; 16]));
    assert!(knows(1, 10) && knows(2, 20));
    assert!(!knows(1, 20) && !knows(2, 10) && !knows(3, 10));
    assert!(knows_slot(&[], 1, MailId([10; 16])));
}

#[test]
fn rows_of_accounts_and_groups_are_found() {
    let account = AccountRow {
        security: 1,
        encoding: 1,
        state: 0,
        port: 993,
        mail_octets_max: 4 << 20,
        host: "imap.example.org".to_owned(),
        user: "alice".to_owned(),
        groups: vec![1],
    };
    let group = GroupRow {
        strategy: 1,
        sync_copies: 1,
        accounts: vec![3],
    };
    let rows = [
        (Key::Account(3).encode(), account.encode()),
        (Key::Group(1).encode(), group.encode()),
        // An unknown version.
        (Key::Account(4).encode(), vec![99]),
        (Key::Group(4).encode(), vec![99]),
    ];
    assert_eq!(account_rows(&rows), [(3, account)]);
    assert_eq!(group_rows(&rows), [(1, group)]);
}
