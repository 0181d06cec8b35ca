//! Packs that are not where a server has told: programs read them all the same, a check corrects the rows, and no collection takes
//! the mail for garbage.

use super::*;

/// A volume whose data accounts tell a wrong UID of each pack, with two files.
fn told(wrong: fn(u32) -> u32) -> (World, Vec<(&'static str, Vec<u8>)>) {
    let mut world = World::new(2);
    world.lie = Box::new(move |_, _, request, truth| match (request, truth) {
        (Request::Append { mailbox, .. }, Ok(Answer::Appended(Some((validity, uid)))))
            if mailbox == "data-0001" =>
        {
            Ok(Answer::Appended(Some((validity, wrong(uid)))))
        }
        (_, truth) => truth,
    });
    let files = vec![("a", noise(1, 2 << 20)), ("b", noise(2, 100_000))];
    for (name, content) in &files {
        world.put(ROOT, name, content);
    }
    world.sync().unwrap();
    world.lie = Box::new(|_, _, _, truth| truth);
    (world, files)
}

/// Another machine reads every file by the accounts alone.
fn assert_read(world: &mut World, files: &[(&str, Vec<u8>)]) {
    world.lose_folder();
    world.mount().unwrap();
    for (name, content) in files {
        assert!(world.get(ROOT, name).unwrap() == *content, "{name}");
    }
}

#[test]
fn a_wrong_uid_of_a_pack_harms_nothing() {
    let wrong: [fn(u32) -> u32; 5] = [|uid| uid + 1, |uid| uid + 1_000, |_| u32::MAX, |_| 1, |_| 2];
    for wrong in wrong {
        let (mut world, files) = told(wrong);
        assert_read(&mut world, &files);
        assert!(world.count("find") > 0);
        let report = world.check(false, false);
        assert_eq!(kinds(&report), ["moved"], "{report:?}");
        // Nothing goes before the row is right.
        for _ in 0..2 {
            assert_eq!(world.collect().unwrap().removed, 0);
            world.days(3);
        }
        assert_read(&mut world, &files);
        assert!(world.check(false, true).repaired > 0);
        assert_eq!(world.check(true, false).findings, []);
        for _ in 0..2 {
            assert_eq!(world.collect().unwrap().removed, 0);
            world.days(3);
        }
        world.sync().unwrap();
        let finds = world.count("find");
        assert_read(&mut world, &files);
        assert_eq!(world.count("find"), finds, "rows are right");
    }
}

/// Each account is searched once, and only for a program that waits.
#[test]
fn a_pack_that_is_nowhere_is_searched_once_on_each_account() {
    let (mut world, _) = told(|uid| uid);
    world.lose_folder();
    world.mount().unwrap();
    for account in [1, 2] {
        let account = world.accounts.get_mut(&account).unwrap();
        if let Some(shelf) = account.mailbox("data-0001") {
            shelf.mails.clear();
        }
    }
    assert_eq!(world.get(ROOT, "b"), Err(Errno::Io));
    assert_eq!(world.count("find"), 1);
    let is_named = |notice: &Notice| matches!(notice, Notice::Unreadable { .. });
    assert!(world.notices.iter().any(is_named));
}
