//! Checks and repair.

use super::super::super::{MailPlace, Weight};
use super::*;

/// Folder, name and content of a file.
type Content = (Inode, &'static str, Vec<u8>);

/// A folder with a file of several packs, a small file inside a commit, and a removed file.
fn filled() -> (World, Vec<Content>) {
    let mut world = replicated();
    let call = Call::MakeFolder {
        parent: ROOT,
        name: b"folder".to_vec(),
        mode: 0o755,
    };
    let folder = match world.call(call).unwrap() {
        Reply::Entry(attributes) => attributes.inode,
        reply => panic!("{reply:?}"),
    };
    let files = vec![
        (folder, "long", noise(1, 2 << 20)),
        (ROOT, "middle", noise(2, 100_000)),
        (ROOT, "short", noise(3, 500)),
    ];
    for (parent, name, content) in &files {
        world.put(*parent, name, content);
        world.sync().unwrap();
    }
    assert_eq!(world.volume().status().copies_missing, 0);
    (world, files)
}

fn assert_whole(world: &mut World, files: &[(Inode, &str, Vec<u8>)]) {
    for (parent, name, content) in files {
        assert!(world.get(*parent, name).unwrap() == *content, "{name}");
    }
}

#[test]
fn a_good_volume_is_clean() {
    let (mut world, _) = filled();
    for data in [false, true] {
        let report = world.check(data, false);
        assert_eq!(report.findings, []);
        assert_eq!(report.verified > 0, data);
        assert_eq!(report.inodes, 5);
    }
    world.kill();
    world.mount().unwrap();
    assert_eq!(world.check(true, true).findings, []);
}

#[test]
fn every_deleted_pack_is_named_and_made_good() {
    for account in [2, 3] {
        let (mut world, files) = filled();
        for uid in world.mails(account, "data-0001") {
            world.shelf(account, "data-0001").mails.remove(&uid);
            let report = world.check(false, false);
            let [Finding::Missing { place, paths, .. }] = report.findings.as_slice() else {
                panic!("{report:?}");
            };
            assert_eq!((place.account, place.uid), (account, uid));
            let path = if paths[0].ends_with("long") {
                "/folder/long"
            } else {
                "/middle"
            };
            assert_eq!(paths, &[path]);
            let report = world.check(false, true);
            assert!(report.repaired > 0);
            assert_eq!(world.check(true, false).findings, [], "{uid}");
        }
        // The other account is not needed any more.
        world.sync().unwrap();
        world.lose_folder();
        let other = 5 - account;
        world.fortune = Box::new(move |of, _| {
            if of.0 == other {
                Luck::Lost
            } else {
                Luck::Good
            }
        });
        world.mount().unwrap();
        assert_whole(&mut world, &files);
    }
}

#[test]
fn every_altered_pack_is_named_and_made_good() {
    let (mut world, files) = filled();
    for uid in world.mails(2, "data-0001") {
        let mail = world.shelf(2, "data-0001").mails.get_mut(&uid).unwrap();
        let mut octets = mail.to_vec();
        let middle = octets.len() / 2;
        octets[middle] ^= 1;
        *mail = octets.into();
        assert_eq!(world.check(false, false).findings, []);
        let report = world.check(true, true);
        let [Finding::Damaged { place, paths, .. }] = report.findings.as_slice() else {
            panic!("{report:?}");
        };
        assert_eq!((place.account, place.uid, paths.len()), (2, uid, 1));
        assert_eq!(world.check(true, false).findings, []);
    }
    // The damaged mails go at last.
    world.collect().unwrap();
    world.days(2);
    let packs = world.mails(3, "data-0001").len();
    assert_eq!(world.collect().unwrap().removed, packs);
    assert_eq!(world.mails(2, "data-0001").len(), packs);
    assert_eq!(world.check(true, false).findings, []);
    assert_whole(&mut world, &files);
}

#[test]
fn every_doubled_mail_is_named() {
    let (mut world, files) = filled();
    for mailbox in ["data-0001", "log"] {
        let account = if mailbox == "log" { 1 } else { 2 };
        for uid in world.mails(account, mailbox) {
            let shelf = world.shelf(account, mailbox);
            let mail = shelf.mails[&uid].clone();
            let copy = shelf.uid_next;
            shelf.uid_next += 1;
            shelf.mails.insert(copy, mail);
            let report = world.check(true, false);
            let place = MailPlace {
                account,
                mailbox: mailbox.to_owned(),
                uid: copy,
            };
            assert_eq!(report.findings, [Finding::Duplicate { place, of: uid }]);
            assert!(report.is_clean());
            world.shelf(account, mailbox).mails.remove(&copy);
        }
    }
    assert_whole(&mut world, &files);
}

#[test]
fn every_deleted_or_altered_commit_is_named() {
    let (mut world, _) = filled();
    for uid in world.mails(1, "log") {
        let good = world.shelf(1, "log").mails.remove(&uid).unwrap();
        let report = world.check(false, false);
        let is_chain = |finding: &Finding| matches!(finding, Finding::Chain { .. });
        assert!(report.findings.iter().any(is_chain), "{uid}: {report:?}");
        let mut octets = good.to_vec();
        let end = octets.len() - 5;
        octets[end] ^= 1;
        world.shelf(1, "log").mails.insert(uid, octets.into());
        assert_eq!(world.check(false, false).findings, []);
        assert_eq!(kinds(&world.check(true, false)), ["forged"]);
        world.shelf(1, "log").mails.insert(uid, good);
        assert_eq!(world.check(true, false).findings, []);
    }
}

#[test]
fn content_without_any_copy_is_lost_by_path() {
    let (mut world, files) = filled();
    let first = world.shelf(2, "data-0001").mails[&1].clone();
    for account in [2, 3] {
        world
            .shelf(account, "data-0001")
            .mails
            .retain(|_, mail| *mail != first);
    }
    let report = world.check(false, true);
    assert_eq!(report.worst(), Some(Weight::Loss));
    let lost: Vec<String> = report
        .findings
        .iter()
        .filter(|finding| finding.weight() == Weight::Loss)
        .map(ToString::to_string)
        .collect();
    assert_eq!(lost.len(), 1);
    assert!(
        lost[0].starts_with("/folder/long: no account has the octets from "),
        "{lost:?}"
    );
    assert_whole(&mut world, &files[1..]);
}

#[test]
fn a_mailbox_with_other_numbers_is_corrected() {
    let (mut world, files) = filled();
    let shelf = world.shelf(2, "data-0001");
    shelf.uid_validity += 100;
    let mails = std::mem::take(&mut shelf.mails);
    shelf.mails = mails
        .into_values()
        .enumerate()
        .map(|(at, mail)| (50 - at as u32, mail))
        .collect();
    shelf.uid_next = 51;
    let report = world.check(false, true);
    assert_eq!(kinds(&report), ["renumbered", "moved"]);
    assert_eq!(world.check(true, false).findings, []);
    world.sync().unwrap();
    world.lose_folder();
    world.fortune = Box::new(|of, _| if of.0 == 3 { Luck::Lost } else { Luck::Good });
    world.mount().unwrap();
    assert_whole(&mut world, &files);
}

#[test]
fn foreign_mails_and_wrong_subjects_are_named_and_left_alone() {
    let (mut world, files) = filled();
    let uid = world.mails(2, "data-0001")[0];
    let shelf = world.shelf(2, "data-0001");
    shelf
        .mails
        .insert(90, Bytes::from_static(b"Subject: lunch?\r\n\r\nat one\r\n"));
    let text = String::from_utf8_lossy(&shelf.mails[&uid].slice(..300)).into_owned();
    let subject = text
        .lines()
        .find(|line| line.starts_with("Subject: "))
        .unwrap();
    // A subject of ours around another body.
    let id = subject
        .split(' ')
        .find(|word| word.starts_with('i'))
        .unwrap();
    let forged = subject
        .replace(id, "i0123456789abcdef0123456789abcdef")
        .replace(" s0", " sf");
    shelf
        .mails
        .insert(91, Bytes::from(format!("{forged}\r\n\r\nnonsense\r\n")));
    shelf.uid_next = 92;
    assert_eq!(kinds(&world.check(true, true)), ["orphan", "foreign"]);
    for _ in 0..3 {
        let report = world.collect().unwrap();
        assert_eq!((report.forged, report.orphans, report.removed), (1, 0, 0));
        world.days(10);
    }
    assert!(world.mails(2, "data-0001").ends_with(&[90, 91]));
    assert_whole(&mut world, &files);
}

#[test]
fn an_account_that_cannot_be_read_is_named_and_nothing_is_said_about_its_mails() {
    let (mut world, files) = filled();
    world.fortune = Box::new(|of, _| if of.0 == 2 { Luck::Lost } else { Luck::Good });
    let report = world.check(true, true);
    assert_eq!(kinds(&report), ["unread"]);
    world.fortune = Box::new(|_, _| Luck::Good);
    assert_eq!(world.check(true, false).findings, []);
    assert_whole(&mut world, &files);
}

/// The journal tells that an inode is gone, and not that its extents are.
#[test]
fn a_file_removed_before_a_kill_leaves_no_content() {
    let (mut world, _) = filled();
    world.remove("middle");
    world.kill();
    world.mount().unwrap();
    world.sync().unwrap();
    assert_eq!(world.check(false, false).findings, []);
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.check(false, false).findings, []);
}
