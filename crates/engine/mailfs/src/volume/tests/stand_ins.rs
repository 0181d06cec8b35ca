//! Volumes opened from a copy of commits and pages, because the lead does not answer.

use super::*;

const ROOT: Inode = Inode::ROOT;

/// A volume whose data and metadata lie on both accounts.
pub(super) fn world() -> World {
    let mut world = World::new(2);
    world.remount_with(|terms| {
        terms.metadata_accounts = 2;
        terms.groups = vec![GroupTerms {
            group: 1,
            accounts: vec![1, 2],
        }];
    });
    world
}

/// An account does not answer.
pub(super) fn lose(world: &mut World, lost: u16) {
    world.fortune = Box::new(move |account, _| match account.0 == lost {
        true => Luck::Lost,
        false => Luck::Good,
    });
}

impl World {
    /// Opens from the copy on the second account.
    pub(super) fn mount_copy(&mut self) -> Result<(), OpenError> {
        self.starts += 1;
        let storage = (self.disk.clone(), [self.starts; 16]);
        let copy = (2, "cut".to_owned(), 1 << 32);
        let opening = Opening::standing_in(self.terms.clone(), self.of.clone(), storage, copy);
        self.open_by(opening)
    }
}

/// Several checkpoints, and commits behind; content in commits and in packs.
pub(super) fn fill(world: &mut World) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for round in 0..3_u64 {
        for number in 0..40 {
            let name = format!("f{round}-{number}");
            let octets = if number == 0 { 200_000 } else { 50 };
            let content = noise(round * 100 + number, octets);
            world.put(ROOT, &name, &content);
            let inode = world.lookup(ROOT, &name).unwrap().inode;
            set_xattr(world, inode, "long", noise(number, 1_000));
            files.push((name, content));
        }
        world.sync().unwrap();
        if round < 2 {
            world.finish().unwrap();
            world.remount();
        }
    }
    for _ in 0..3 {
        world.pass(Duration::from_secs(60));
    }
    files
}

pub(super) fn check(world: &mut World, files: &[(String, Vec<u8>)]) {
    for (name, content) in files {
        assert_eq!(world.get(ROOT, name).as_ref(), Ok(content), "{name}");
    }
}

#[test]
fn a_copy_has_the_whole_volume() {
    let mut world = world();
    let files = fill(&mut world);
    for new_machine in [false, true] {
        world.kill();
        if new_machine {
            world.lose_folder();
        }
        lose(&mut world, 1);
        world.mount_copy().unwrap();
        check(&mut world, &files);
        let call = Call::MakeFolder {
            parent: ROOT,
            name: b"new".to_vec(),
            mode: 0o755,
        };
        assert_eq!(world.call(call), Err(Errno::RoFs));
        let reason = world.status().read_only.unwrap();
        assert!(
            reason.contains("account 1, does not answer (cut)"),
            "{reason}"
        );
        for _ in 0..5 {
            world.pass(Duration::from_secs(60));
        }
        assert_eq!(world.finish(), Ok(Reply::Done));
    }
}

/// Nothing reaches any account while a copy stands in, and the journal keeps what waits.
#[test]
fn changes_of_the_journal_wait_for_the_lead() {
    let mut world = world();
    let mut files = fill(&mut world);
    world.put(ROOT, "waits", b"not sent");
    world.kill();
    lose(&mut world, 1);
    let before = world.accounts.clone();
    let mails = |accounts: &BTreeMap<u16, MemoryAccount>| {
        accounts
            .values()
            .map(MemoryAccount::mails)
            .collect::<Vec<_>>()
    };
    for _ in 0..2 {
        world.mount_copy().unwrap();
        files.push(("waits".to_owned(), b"not sent".to_vec()));
        check(&mut world, &files);
        for _ in 0..5 {
            world.pass(Duration::from_secs(60));
        }
        world.kill();
        files.pop();
    }
    assert_eq!(mails(&world.accounts), mails(&before));
    world.fortune = Box::new(|_, _| Luck::Good);
    world.mount().unwrap();
    world.sync().unwrap();
    world.finish().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    files.push(("waits".to_owned(), b"not sent".to_vec()));
    check(&mut world, &files);
    assert!(world.status().read_only.is_none());
}

#[test]
fn an_older_copy_does_not_stand_in() {
    let mut world = world();
    fill(&mut world);
    world.fortune = Box::new(|account, _| match account.0 {
        2 => Luck::Lost,
        _ => Luck::Good,
    });
    world.put(ROOT, "newer", b"on the lead alone");
    world.sync().unwrap();
    world.kill();
    lose(&mut world, 1);
    let error = world.mount_copy().unwrap_err();
    assert!(
        matches!(error, OpenError::CopyBehind { account: 2, .. }),
        "{error}"
    );
    // Another machine has seen nothing newer.
    world.lose_folder();
    world.mount_copy().unwrap();
}

/// A mount under way reads pages and short contents from the copy.
#[test]
fn a_mount_reads_from_the_copy_while_the_lead_is_away() {
    let mut world = world();
    let files = fill(&mut world);
    world.finish().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    lose(&mut world, 1);
    check(&mut world, &files);
}

#[test]
fn pages_that_the_lead_has_lost_come_from_the_copy() {
    let mut world = world();
    let files = fill(&mut world);
    world.finish().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    let lead = world.accounts.get_mut(&1).unwrap();
    lead.mailbox("pages").unwrap().mails.clear();
    check(&mut world, &files);
}

/// A copy whose mails are damaged is no volume, and says so.
#[test]
fn a_damaged_copy_is_noticed() {
    let mut world = world();
    let files = fill(&mut world);
    world.lose_folder();
    lose(&mut world, 1);
    let copy = world.accounts.get_mut(&2).unwrap();
    let pages = copy.mailbox("pages-copy").unwrap();
    let newest = *pages.mails.keys().last().unwrap();
    pages.mails.remove(&newest);
    // An older checkpoint serves, with more commits behind.
    world.mount_copy().unwrap();
    check(&mut world, &files);
}

/// A machine whose description names another lead finds no log there, and does not take the copy for one.
#[test]
fn a_copy_is_no_log() {
    let mut world = world();
    fill(&mut world);
    world.finish().unwrap();
    world.kill();
    world.terms.lead = 2;
    let error = world.mount().unwrap_err();
    assert!(matches!(error, OpenError::NoVolume(2)), "{error}");
}

/// The lead goes away at any request and comes back later: nothing that a call has acknowledged is lost, and the copy is whole.
#[test]
fn the_lead_may_go_away_at_every_request() {
    for at in 0..20 {
        let mut world = world();
        world.put(ROOT, "before", b"1");
        world.sync().unwrap();
        let left = std::rc::Rc::new(std::cell::Cell::new(at));
        let counter = left.clone();
        world.fortune = Box::new(move |account, _| {
            if account.0 != 1 || counter.get() == i32::MAX {
                return Luck::Good;
            }
            counter.set(counter.get().saturating_sub(1));
            match counter.get() {
                0.. => Luck::Good,
                -1 => Luck::Unanswered,
                _ => Luck::Lost,
            }
        });
        let mut files = vec![("before".to_owned(), b"1".to_vec())];
        for number in 0..3 {
            let (name, content) = (format!("f{number}"), noise(number, 300));
            world.put(ROOT, &name, &content);
            files.push((name, content));
            // Without the lead a sync fails in time, and the change waits.
            let _ended = world.sync();
        }
        left.set(i32::MAX);
        for _ in 0..20 {
            world.pass(Duration::from_secs(60));
        }
        assert_eq!(world.finish(), Ok(Reply::Done), "request {at}");
        world.lose_folder();
        lose(&mut world, 1);
        world.mount_copy().unwrap();
        check(&mut world, &files);
    }
}

/// An opening from a copy whose requests fail is no opening, and the next one serves.
#[test]
fn an_opening_from_a_copy_may_fail_at_every_request() {
    let mut world = world();
    let files = fill(&mut world);
    world.lose_folder();
    let mut failed = 0;
    for at in 0..12 {
        let mut left = at;
        world.fortune = Box::new(move |account, _| {
            left -= 1;
            match account.0 {
                2 if left != -1 => Luck::Good,
                _ => Luck::Lost,
            }
        });
        match world.mount_copy() {
            // The request was one ahead of need.
            Ok(()) => {}
            Err(OpenError::Account(2, _)) => failed += 1,
            Err(error) => panic!("request {at}: {error}"),
        }
        world.lose_folder();
    }
    assert!(failed > 3, "{failed}");
    lose(&mut world, 1);
    world.mount_copy().unwrap();
    check(&mut world, &files);
}

/// A copy with a gap is no state of the volume; a check with repair fills the gap.
#[test]
fn a_gap_of_a_copy_is_noticed_and_filled() {
    let mut world = world();
    let files = fill(&mut world);
    for number in 0..4 {
        world.put(ROOT, &format!("g{number}"), b"short");
        world.sync().unwrap();
    }
    world.settle();
    let log = &mut world.shelf(2, "log-copy").mails;
    let all: Vec<u32> = log.keys().copied().collect();
    log.remove(&all[all.len() - 3]);
    world.kill();
    let disk = std::mem::take(&mut world.disk);
    lose(&mut world, 1);
    let error = world.mount_copy().unwrap_err();
    assert!(matches!(error, OpenError::CopyBehind { .. }), "{error}");
    world.fortune = Box::new(|_, _| Luck::Good);
    world.disk = disk;
    world.mount().unwrap();
    world.check(false, true);
    world.settle();
    world.lose_folder();
    lose(&mut world, 1);
    world.mount_copy().unwrap();
    check(&mut world, &files);
}

fn places(world: &World) -> Vec<bool> {
    let mut places = Vec::new();
    let key = *keys().local();
    vere_keep::journal::Journal::inspect(&world.disk, &key, |_, parts| {
        for part in parts {
            if let vere_keep::record::Part::Follows(won) = part {
                places.push(won.has_place());
            }
        }
    })
    .unwrap();
    places
}

/// Commits followed by the copy once were noted with places of the copy: the next mount by the lead read the whole log.
#[test]
fn a_mount_behind_a_stand_in_reads_the_end_of_the_log_alone() {
    let mut world = world();
    for number in 0..100 {
        world.put(ROOT, &format!("f{number}"), b"old");
        world.sync().unwrap();
    }
    world.finish().unwrap();
    world.put(ROOT, "waits", b"not sent");
    world.kill();
    let away = world.disk.copy();
    world.disk = MemoryDisk::default();
    world.mount().unwrap();
    for number in 0..5 {
        world.put(ROOT, &format!("g{number}"), b"of others");
        world.sync().unwrap();
    }
    for _ in 0..3 {
        world.pass(Duration::from_secs(60));
    }
    world.kill();
    world.disk = away;
    lose(&mut world, 1);
    for _ in 0..2 {
        world.mount_copy().unwrap();
        world.pass(Duration::from_secs(1));
        assert_eq!(world.get(ROOT, "g4").unwrap(), b"of others");
        assert_eq!(world.get(ROOT, "waits").unwrap(), b"not sent");
        world.kill();
    }
    let places = places(&world);
    assert!(
        places.contains(&true) && places.contains(&false),
        "{places:?}"
    );
    assert_eq!(places.last(), Some(&false));
    world.fortune = Box::new(|_, _| Luck::Good);
    let before = world.count("read");
    world.mount().unwrap();
    let read = world.count("read") - before;
    assert!(read < 70, "{read} reads of a log of more than 100 commits");
    assert_eq!(world.get(ROOT, "waits").unwrap(), b"not sent");
    world.sync().unwrap();
    assert_eq!(world.check(true, false).findings, []);
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "waits").unwrap(), b"not sent");
    assert_eq!(world.get(ROOT, "g4").unwrap(), b"of others");
}
