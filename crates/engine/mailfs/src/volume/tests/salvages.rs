//! Volumes whose log and pages are gone: the content comes back without names.

use std::sync::Arc;

use super::*;
use crate::volume::{Placed, Salvage, SalvageStep, Salvaged, Upkept};

const ROOT: Inode = Inode::ROOT;

/// Reads all mails with content.
pub(super) fn read(world: &mut World) -> Arc<Salvaged> {
    let mut salvage = Salvage::new(&world.terms.accounts, of().volume, of().keys);
    while !salvage.is_over() {
        let Some(SalvageStep::Ask(id, account, urgency, request)) = salvage.poll() else {
            let wake = salvage.next_wake().expect("the salvage stands still");
            world.now = wake.as_millis();
            salvage.wake(wake);
            continue;
        };
        assert_eq!(urgency, vere_ports::mail_accounts::Urgency::Waited);
        let answer = world.carry_out(account, &request);
        salvage.answered(Timestamp::from_millis(world.now), id, answer);
    }
    Arc::new(salvage.finish())
}

/// A new tree behind the lost one.
pub(super) fn begin_anew(world: &mut World, found: &Salvaged) {
    world.lose_folder();
    let mark = crate::volume::begun_writer(found.last_writer(), found.generation());
    let rows = vec![mark];
    let (terms, disk, now) = (world.terms.clone(), world.disk.clone(), world.moment());
    let first = (found.generation(), rows.as_slice());
    let volume = Volume::create_behind(of(), first, terms, disk, [77; 16], (CALLER, now));
    world.volume = Some(volume.unwrap());
    world.settle();
    assert!(world.volume().is_quiet());
}

pub(super) fn place(world: &mut World, found: &Arc<Salvaged>) -> Placed {
    place_behind(world, found, 0)
}

/// Puts the findings into the tree. The chain has everything up to a generation.
pub(super) fn place_behind(world: &mut World, found: &Arc<Salvaged>, known: u64) -> Placed {
    let now = world.moment();
    let placed = world.volume().salvage(now, CALLER, found, known).unwrap();
    for _ in 0..100 {
        world.settle();
        match world.volume().take_upkept() {
            Some(upkept) => {
                assert_eq!(upkept, Upkept::Written);
                return placed;
            }
            None => world.pass(Duration::from_secs(1)),
        }
    }
    panic!("the rows are not written");
}

pub(super) fn names(world: &mut World, folder: Inode) -> Vec<String> {
    let Ok(Reply::Opened { handle, .. }) = world.call(Call::OpenFolder { inode: folder }) else {
        panic!("no folder");
    };
    let (mut names, mut cursor) = (Vec::new(), 0);
    loop {
        let call = Call::ReadFolder {
            handle,
            cursor,
            with_attributes: false,
        };
        let Ok(Reply::Entries(entries)) = world.call(call) else {
            panic!("no entries");
        };
        let Some(last) = entries.last() else {
            names.retain(|name: &String| !name.starts_with('.'));
            return names;
        };
        cursor = last.cursor;
        let texts = entries.iter();
        names.extend(texts.map(|entry| String::from_utf8_lossy(&entry.name).into_owned()));
    }
}

pub(super) fn lose(world: &mut World, mailbox: &str) {
    for account in world.accounts.values_mut() {
        if let Some(mailbox) = account.mailbox(mailbox) {
            mailbox.mails.clear();
        }
    }
}

#[test]
fn content_comes_back_without_log_and_pages() {
    let mut world = World::new(3);
    let long = noise(1, 3 << 20);
    world.put(ROOT, "long", &long);
    world.sync().unwrap();
    world.put(ROOT, "other", &noise(2, 200_000));
    world.sync().unwrap();
    // A part is written anew: the newest octets count.
    let inode = world.lookup(ROOT, "other").unwrap().inode;
    let handle = world.open(inode);
    world.write(handle, 50_000, &noise(3, 100_000));
    world.close(handle);
    world.finish().unwrap();
    world.kill();
    lose(&mut world, "log");
    lose(&mut world, "pages");
    world.lose_folder();
    assert!(matches!(world.mount(), Err(OpenError::NoVolume(1))));
    let found = read(&mut world);
    assert_eq!(found.report().unusable, Vec::<String>::new());
    assert_eq!(found.report().frames_damaged, 0);
    begin_anew(&mut world, &found);
    let placed = place(&mut world, &found);
    assert_eq!((placed.files, placed.folder.as_str()), (2, "lost+found"));
    // Another machine sees the same, and the volume is sound.
    world.finish().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    let folder = world.lookup(ROOT, "lost+found").unwrap().inode;
    let mut expected = noise(2, 200_000);
    expected.splice(50_000..150_000, noise(3, 100_000));
    let mut contents = Vec::new();
    for name in names(&mut world, folder) {
        assert!(name.starts_with("inode-"), "{name}");
        contents.push(world.get(folder, &name).unwrap());
    }
    contents.sort_by_key(Vec::len);
    assert!(contents == [expected, long]);
    world.put(folder, "new", b"x");
    world.sync().unwrap();
    assert_clean(&mut world);
}

pub(super) fn assert_clean(world: &mut World) {
    let now = world.moment();
    let terms = crate::volume::CheckTerms {
        data: true,
        repair: false,
    };
    assert!(world.volume().check(now, terms));
    world.settle();
    let Some(Upkept::Checked(report)) = world.volume().take_upkept() else {
        panic!("no report");
    };
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn what_the_log_still_has_gives_names_and_sizes() {
    let mut world = World::new(1);
    world.put(ROOT, "first", b"in the first commit");
    world.sync().unwrap();
    world.put(ROOT, "letter", b"a long letter");
    world.sync().unwrap();
    let inode = world.lookup(ROOT, "letter").unwrap().inode;
    let size = vere_ports::files::Changes {
        size: Some(6),
        mode: Some(0o640),
        ..Default::default()
    };
    let call = Call::SetAttributes {
        inode,
        changes: size,
    };
    world.call(call).unwrap();
    world.sync().unwrap();
    world.kill();
    // A commit in the middle is gone, and one is damaged in its content.
    let log = world.accounts.get_mut(&1).unwrap().mailbox("log").unwrap();
    let second = *log.mails.keys().nth(1).unwrap();
    log.mails.remove(&second);
    world.lose_folder();
    let found = read(&mut world);
    world
        .mount_with(|opening| opening.writers_above(found.last_writer()))
        .unwrap();
    assert!(found.generation() > world.volume().status().generation);
    world.settle();
    assert_eq!(world.volume().status().writer, 2);
    let placed = place(&mut world, &found);
    assert_eq!((placed.files, placed.octets), (1, 6));
    let folder = world.lookup(ROOT, "lost+found").unwrap().inode;
    let all = names(&mut world, folder);
    let name = all.first().unwrap().clone();
    assert!(name.ends_with("-letter"), "{name}");
    assert_eq!(world.get(folder, &name).unwrap(), b"a long");
    let facts = world.lookup(folder, &name).unwrap();
    assert_eq!((facts.mode, facts.size), (0o640, 6));
    // A second salvage finds nothing more.
    let found = read(&mut world);
    let now = world.moment();
    let again = world.volume().salvage(now, CALLER, &found, 0).unwrap();
    assert_eq!((again.files, again.folder.as_str()), (0, "lost+found-2"));
}

#[test]
fn a_damaged_frame_costs_no_other_and_a_replica_helps() {
    let mut world = World::new(2);
    world.terms.groups = vec![GroupTerms {
        group: 1,
        accounts: vec![1, 2],
    }];
    world.kill();
    world.mount().unwrap();
    let data = noise(4, 2 << 20);
    world.put(ROOT, "data", &data);
    world.sync().unwrap();
    for _ in 0..20 {
        world.pass(Duration::from_secs(1));
    }
    world.kill();
    let damage = |world: &mut World, account: u16| {
        let account = world.accounts.get_mut(&account).unwrap();
        let mailbox = account.mailbox("data-0001").unwrap();
        for mail in mailbox.mails.values_mut() {
            let mut octets = mail.to_vec();
            // Neither the old octet nor the new one ends a line.
            let is_plain = |octet: u8| !matches!(octet, 0 | 1 | 10..=13);
            let at = (5_000..).find(|at| is_plain(octets[*at])).unwrap();
            octets[at] ^= 1;
            *mail = octets.into();
        }
    };
    damage(&mut world, 1);
    let whole = read(&mut world);
    assert_eq!(whole.report().frames_damaged, 0);
    damage(&mut world, 2);
    let partly = read(&mut world);
    let report = partly.report();
    assert!(report.frames_damaged > 0, "{report:?}");
    assert_eq!(report.frames + report.frames_damaged, whole.report().frames);
}

#[test]
fn mails_of_a_stranger_are_no_content() {
    let mut world = World::new(1);
    world.put(ROOT, "data", &noise(5, 300_000));
    world.sync().unwrap();
    world.kill();
    let mailbox = world.accounts.get_mut(&1).unwrap();
    let mailbox = mailbox.mailbox("data-0001").unwrap();
    let (uid, mail) = mailbox.mails.first_key_value().unwrap();
    let (uid, text) = (*uid, String::from_utf8_lossy(mail).into_owned());
    // Another id in the subject, and a body without sense.
    let forged = text.replacen(" i", " i0", 1);
    let forged = forged.replacen(" w0001", " w0009", 1);
    let next = mailbox.uid_next;
    mailbox.mails.insert(next, forged.into_bytes().into());
    let body = text
        .split("\r\n\r\n")
        .next()
        .unwrap()
        .replacen("w0001", "w0008", 1);
    let body = format!("{body}\r\n\r\nlunch\r\n");
    mailbox.mails.insert(next + 1, body.into_bytes().into());
    mailbox.uid_next = next + 2;
    assert!(uid < next);
    let found = read(&mut world);
    assert_eq!(found.last_writer(), 1);
    assert_eq!(
        (found.report().packs, found.report().frames_damaged),
        (1, 0)
    );
}

/// What an account does not give now is not lost.
#[test]
fn a_budget_that_is_used_up_loses_nothing() {
    let mut world = World::new(2);
    let data = noise(6, 3 << 20);
    world.put(ROOT, "data", &data);
    world.put(ROOT, "other", &noise(7, 300_000));
    world.sync().unwrap();
    world.kill();
    let whole = read(&mut world);
    let begin = world.now;
    let hour = Duration::from_secs(3_600);
    let mut number = 0;
    world.fortune = Box::new(move |_, _| {
        number += 1;
        if number % 2 == 0 {
            Luck::Scarce(hour)
        } else {
            Luck::Good
        }
    });
    let late = read(&mut world);
    assert_eq!(late.report(), whole.report());
    assert_eq!(late.report().unusable, Vec::<String>::new());
    assert!(world.now >= begin + 3_600_000);
    // A salvage that is broken off is no salvage.
    let salvage = Salvage::new(&world.terms.accounts, of().volume, of().keys);
    let part = salvage.finish();
    world.fortune = Box::new(|_, _| Luck::Good);
    world.mount().unwrap();
    let now = world.moment();
    let placed = world.volume().salvage(now, CALLER, &Arc::new(part), 0);
    assert_eq!(placed, Err(Errno::Again));
}
