//! Listings of accounts against the rows of packs.

use vere_placement::accounts::{AccountTerms, Accounts, GroupTerms};
use vere_ports::mail_accounts::{Answer, Fault, Listed, Request};

use super::*;
use crate::compare::{Comparison, Mount, compare};
use crate::finding::CheckReport;
use crate::format::{Encoding, Head, Kind, Subject, VolumeId};
use crate::rows::TombstoneRow;
use crate::survey::{Inventory, Survey};

const VOLUME: VolumeId = VolumeId([3; 16]);

/// Accounts 1 and 2 in a group, both with UIDVALIDITY 7.
fn accounts() -> Accounts {
    let terms = [1, 2].map(|account| AccountTerms {
        account,
        encoding: Encoding::EightBit,
    });
    let group = GroupTerms {
        group: 1,
        accounts: vec![1, 2],
    };
    let mut accounts = Accounts::new(&terms, &[group]);
    for account in [1, 2] {
        accounts.number(account, 16, 7);
    }
    accounts
}

fn copy(account: u16, uid: u32) -> MailCopy {
    MailCopy {
        account,
        mailbox: 16,
        uid,
    }
}

fn subject(kind: Kind, pack: u64, id: MailId, group: u16) -> String {
    let head = Head {
        kind,
        volume: VOLUME,
        mail: id,
        epoch: 1,
        group,
        frames: 1,
        last_sealed_len: 20,
        pack: PackNumber(pack),
    };
    Subject::of(&head, None, None).to_string()
}

/// A mail of a pack, as its row tells.
fn pack(number: u8) -> String {
    subject(Kind::Data, number.into(), mail(number), 1)
}

type Shelf<'a> = &'a [(u32, String)];

/// The accounts' listings of `data-0001`; none for an unreadable account.
fn inventory(shelves: [Option<(u32, Shelf<'_>)>; 2]) -> Inventory {
    let mut survey = Survey::new([1, 2].into_iter(), VOLUME.tag());
    while let Some((account, look)) = survey.poll() {
        let answer = match (&shelves[usize::from(account) - 1], look.request()) {
            (None, _) => Err(Fault::Refused("no".to_owned())),
            (Some(_), Request::Mailboxes) => Ok(Answer::Mailboxes(vec![
                "data-0001".to_owned(),
                "holiday".to_owned(),
            ])),
            (Some((uid_validity, mails)), Request::List { range, .. }) => {
                let within = mails.iter().filter(|(uid, _)| {
                    range.first <= *uid && range.last.is_none_or(|last| *uid <= last)
                });
                let mails = within.map(|(uid, subject)| Listed {
                    uid: *uid,
                    size: 100,
                    subject: subject.clone(),
                });
                Ok(Answer::Listed {
                    uid_validity: *uid_validity,
                    uid_next: 1_000,
                    mails: mails.collect(),
                })
            }
            (_, request) => panic!("{request:?}"),
        };
        survey.answered(account, look, answer);
    }
    assert!(survey.is_over());
    survey.finish()
}

fn rows(packs: &[(u64, &[MailCopy])]) -> Tree {
    let mut tree = Tree::new();
    for (pack, copies) in packs {
        put_pack(&mut tree, *pack, 168, copies.to_vec());
    }
    tree
}

fn compared(tree: &Tree, inventory: &Inventory) -> (Comparison, Vec<String>) {
    let accounts = accounts();
    let mount = Mount {
        accounts: &accounts,
        is_under_way: &|pack, account| pack == 30 && account != Some(1),
        is_new: &|pack| pack == 8,
    };
    let mut comparison = compare(tree, inventory, &mount).unwrap();
    let mut report = CheckReport::default();
    comparison.report(&mut report);
    let mut found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    found.retain(|line| !line.contains("holiday"));
    found.sort();
    (comparison, found)
}

#[test]
fn mails_that_are_where_rows_say_are_good() {
    let tree = rows(&[(5, &[copy(1, 9), copy(2, 4)])]);
    let (first, second) = ([(9, pack(5))], [(4, pack(5))]);
    let listings = inventory([Some((7, &first)), Some((7, &second))]);
    assert_eq!(listings.mails(), 2);
    let (comparison, found) = compared(&tree, &listings);
    assert_eq!(found, [""; 0]);
    assert_eq!(comparison.packs[&5].good, [copy(1, 9), copy(2, 4)]);
    assert_eq!(comparison.packs[&5].corrected(), [copy(1, 9), copy(2, 4)]);
    assert!(comparison.wrong_packs().is_empty());
}

/// The row is told to be corrected, and a mail elsewhere is not told as lost.
#[test]
fn a_copy_is_gone_or_has_moved_or_was_never_named() {
    let tree = rows(&[(5, &[copy(1, 9)]), (6, &[copy(1, 10)]), (8, &[copy(2, 5)])]);
    let first = [(12, pack(6))];
    let second = [(4, pack(5)), (5, pack(8))];
    let (comparison, found) = compared(&tree, &inventory([Some((7, &first)), Some((7, &second))]));
    let expected = [
        "account 1 has no copy of pack 8 yet",
        "account 1, mailbox data-0001, UID 10: the copy of pack 6 has UID 12 now",
        "account 2 has no copy of pack 6 yet",
        "account 2, mailbox data-0001, UID 4: a copy of pack 5 that no row names",
    ];
    assert_eq!(found, expected);
    assert_eq!(comparison.packs[&5].missing, [copy(1, 9)]);
    assert_eq!(comparison.packs[&5].corrected(), [copy(2, 4)]);
    assert_eq!(comparison.packs[&6].corrected(), [copy(1, 12)]);
    assert_eq!(comparison.wrong_packs(), [PackNumber(5)].into());
}

/// A server has told a wrong UID, or has lost its newest mails. A row that is younger than the listing says nothing.
#[test]
fn behind_the_end_of_a_mailbox_there_is_no_mail() {
    let rows = rows(&[
        (5, &[copy(1, 2_000)]),
        (6, &[copy(1, u32::MAX)]),
        (8, &[copy(1, 2_000), copy(2, 2_000)]),
    ]);
    let first = [(12, pack(6)), (13, pack(8))];
    let (comparison, found) = compared(&rows, &inventory([Some((7, &first)), Some((7, &[]))]));
    assert_eq!(comparison.packs[&5].missing, [copy(1, 2_000)]);
    assert_eq!(comparison.packs[&6].corrected(), [copy(1, 12)]);
    let both = [copy(1, 2_000), copy(2, 2_000)];
    assert_eq!(comparison.packs[&8].corrected(), both);
    assert_eq!(comparison.wrong_packs(), [PackNumber(5)].into());
    let moved = "account 1, mailbox data-0001, UID 4294967295: the copy of pack 6 has UID 12 now";
    assert!(found.iter().any(|line| line == moved), "{found:?}");
}

/// Nothing is concluded from an account's silence.
#[test]
fn an_account_that_cannot_be_read_has_its_copies() {
    let tree = rows(&[(5, &[copy(1, 9), copy(2, 4)])]);
    let first = [(9, pack(5))];
    let listings = inventory([Some((7, &first)), None]);
    assert!(listings.is_read(1) && !listings.is_read(2));
    let (comparison, found) = compared(&tree, &listings);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("account 2 was not read: "),
        "{found:?}"
    );
    assert_eq!(comparison.packs[&5].unknown, [copy(2, 4)]);
    assert_eq!(comparison.packs[&5].corrected(), [copy(1, 9), copy(2, 4)]);
}

#[test]
fn other_numbers_of_a_mailbox_are_told() {
    let tree = rows(&[(5, &[copy(1, 9), copy(2, 4)])]);
    let (first, second) = ([(9, pack(5))], [(4, pack(5))]);
    let (comparison, found) = compared(&tree, &inventory([Some((8, &first)), Some((7, &second))]));
    let text = "account 1, mailbox data-0001: expected UIDVALIDITY 7; found 8";
    assert!(found.iter().any(|line| line == text), "{found:?}");
    assert_eq!(comparison.renumbered, [((1, 16), (7, 8))].into());
}

#[test]
fn mails_that_no_row_names_are_told_apart() {
    let mut tree = rows(&[(5, &[copy(1, 9)])]);
    let buried = TombstoneRow {
        mail: mail(40),
        generation: 3,
        time_ms: 0,
        copies: vec![copy(1, 14)],
    };
    tree.put(&Key::Tombstone(40).encode(), buried.encode())
        .unwrap();
    let first = [
        (9, pack(5)),
        // Stored twice: the lower UID is the one of the row.
        (10, pack(5)),
        (11, "lunch photos".to_owned()),
        (12, pack(20)),
        // The mount is sending the pack.
        (13, pack(30)),
        // Being deleted, and an equal mail elsewhere.
        (14, pack(40)),
        (15, pack(40)),
        (16, subject(Kind::Pages, 50, mail(50), 1)),
        // The number of a known pack, and another mail.
        (17, subject(Kind::Data, 5, mail(60), 1)),
    ];
    let (comparison, found) = compared(&tree, &inventory([Some((7, &first)), Some((7, &[]))]));
    let orphans: Vec<u32> = comparison
        .orphans
        .iter()
        .map(|(_, copy)| copy.uid)
        .collect();
    assert_eq!(orphans, [12, 15, 17]);
    let duplicates = comparison.duplicates.iter();
    let duplicates: Vec<_> = duplicates
        .map(|of| (of.pack, of.kept.uid, of.extra.uid))
        .collect();
    assert_eq!(duplicates, [(5, 9, 10)]);
    let at = |uid: u32| format!("account 1, mailbox data-0001, UID {uid}: ");
    let expected = [
        at(10) + "a duplicate of UID 9",
        at(11) + "no mail of this volume: `lunch photos`",
        at(16) + "wrong subject: expected a mail of kind data; found pages",
    ];
    for line in expected {
        assert!(found.contains(&line), "{line}\n{found:#?}");
    }
    assert_eq!(
        found.len(),
        3 + 3 + 1,
        "orphans, and account 2 lacks pack 5"
    );
}

#[test]
fn a_subject_that_contradicts_its_row_is_told() {
    let tree = rows(&[(5, &[copy(1, 9), copy(2, 4)])]);
    let first = [(9, subject(Kind::Data, 5, mail(5), 2))];
    let second = [(4, pack(5))];
    let (_, found) = compared(&tree, &inventory([Some((7, &first)), Some((7, &second))]));
    let text = "account 1, mailbox data-0001, UID 9: wrong subject: group: expected 1; found 2";
    assert_eq!(found, [text]);
}

/// A copy on the way to an account needs no row yet, and account 2 does not count as lacking.
#[test]
fn copies_on_the_way_are_no_finding() {
    let tree = rows(&[(30, &[copy(1, 9)])]);
    let (first, second) = ([(9, pack(30))], [(4, pack(30))]);
    let (comparison, _) = compared(&tree, &inventory([Some((7, &first)), Some((7, &second))]));
    assert!(comparison.packs[&30].unnamed.is_empty());
    assert_eq!(comparison.packs[&30].good, [copy(1, 9)]);
}
