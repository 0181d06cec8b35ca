//! Mounts that begin from the local disk, and compare with the log later.

use vere_keep::commit_store::{CommitStore, KeptCommit};

use super::rig::Several;
use super::*;
use crate::volume::Local;

const ROOT: Inode = Inode::ROOT;
const OUT: fn(AccountId, &Request) -> Luck = |_, _| Luck::Lost;

impl World {
    /// Mounts again by the local disk alone. Requests of the volume wait.
    fn start_locally(&mut self, how: Local) -> Result<(), OpenError> {
        self.starts += 1;
        let random = [self.starts; 16];
        let (terms, of) = (self.terms.clone(), self.of.clone());
        let opening = Opening::local(terms, of, (self.disk.clone(), random), (how, 0));
        if !opening.is_local() {
            return Err(OpenError::Unsure);
        }
        let now = self.moment();
        self.volume = Some(Volume::open(opening, now)?);
        self.use_cache();
        Ok(())
    }

    fn is_unconfirmed(&mut self) -> bool {
        self.volume().status().unconfirmed
    }

    /// Nobody answers any more.
    fn cut_off(&mut self) {
        self.fortune = Box::new(OUT);
    }

    fn come_back(&mut self) {
        self.fortune = Box::new(|_, _| Luck::Good);
        // The account is tried again after its pause.
        for _ in 0..4 {
            self.pass(Duration::from_secs(1_000));
        }
    }
}

/// A world with two files that a commit has, the newest one without a checkpoint.
fn world() -> World {
    let mut world = World::new(2);
    world.put(ROOT, "a", b"one");
    world.finish().unwrap();
    world.put(ROOT, "b", b"two");
    world.sync().unwrap();
    world
}

#[test]
fn a_mount_works_without_any_account() {
    let mut world = world();
    world.kill();
    world.cut_off();
    world.start_locally(Local::Fresh).unwrap();
    assert!(world.lookup(ROOT, "b").is_ok());
    assert!(world.is_unconfirmed());
    let before = world.appended;
    let (_, handle) = world.create(ROOT, "c");
    world.write(handle, 0, b"three");
    assert_eq!(world.fsync(handle), Err(Errno::Io));
    world.close(handle);
    assert_eq!(world.get(ROOT, "c").unwrap(), b"three");
    // Once more, with changes that nobody has seen.
    world.kill();
    world.start_locally(Local::Fresh).unwrap();
    assert_eq!(world.get(ROOT, "c").unwrap(), b"three");
    assert_eq!(world.appended, before);
    world.come_back();
    assert!(!world.is_unconfirmed());
    world.sync().unwrap();
    assert_eq!(world.get(ROOT, "a").unwrap(), b"one");
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "c").unwrap(), b"three");
}

#[test]
fn a_mount_without_changes_ends_without_any_account() {
    let mut world = world();
    world.finish().unwrap();
    world.kill();
    world.cut_off();
    world.start_locally(Local::Fresh).unwrap();
    world.finish().unwrap();
}

fn folder(name: &str) -> Call {
    Call::MakeFolder {
        parent: ROOT,
        name: name.into(),
        mode: 0o755,
    }
}

/// A volume with the newest commit on the lead alone.
fn lacking_a_copy(copies: usize, strong: bool) -> World {
    let mut world = World::new(2);
    world.remount_with(|terms| {
        terms.metadata_accounts = 2;
        terms.sync_copies = copies;
        terms.strong = strong;
        terms.groups = vec![GroupTerms {
            group: 1,
            accounts: vec![1, 2],
        }];
    });
    world.put(ROOT, "a", b"one");
    world.finish().unwrap();
    world.fortune = Box::new(|account, _| match account.0 {
        2 => Luck::Lost,
        _ => Luck::Good,
    });
    let made = world.call(folder("b"));
    assert_eq!(made.is_ok(), copies == 1 || !strong);
    let expected = if copies == 1 {
        Ok(Reply::Done)
    } else {
        Err(Errno::Io)
    };
    assert_eq!(world.sync(), expected);
    world.kill();
    world.cut_off();
    world.start_locally(Local::Fresh).unwrap();
    world
}

fn logs(world: &mut World) -> [Option<crate::format::MailId>; 2] {
    [(1, "log"), (2, "log-copy")].map(|(account, mailbox)| {
        let account = world.accounts.get_mut(&account).unwrap();
        let mails = super::mirrors::mails(account, mailbox);
        mails.last().map(|(mail, _)| *mail)
    })
}

/// An fsync without changes once was answered before the comparison with the log, though the wanted copy lacked the newest commit.
#[test]
fn a_file_without_changes_waits_for_the_copy_that_the_user_wants() {
    let mut world = lacking_a_copy(2, false);
    assert!(world.lookup(ROOT, "b").is_ok());
    assert_eq!(world.sync(), Err(Errno::Io));
    assert!(world.is_unconfirmed());
    let [lead, copy] = logs(&mut world);
    assert_ne!(lead, copy);
    world.come_back();
    assert_eq!(world.sync(), Ok(Reply::Done));
    let [lead, copy] = logs(&mut world);
    assert_eq!(lead, copy);
    // The machine remembers a whole lead, and the user wants no second copy.
    let mut world = lacking_a_copy(1, false);
    let begun = world.now;
    assert_eq!(world.sync(), Ok(Reply::Done));
    assert!(world.is_unconfirmed());
    assert_eq!(world.now, begun);
}

/// An fsync that waits for the comparison is answered behind the comparison.
#[test]
fn an_fsync_goes_on_when_the_lead_answers() {
    let mut world = lacking_a_copy(2, false);
    let inode = world.lookup(ROOT, "a").unwrap().inode;
    let handle = world.open(inode);
    let call = Call::Fsync {
        handle,
        data_only: false,
    };
    let id = world.begin(call);
    world.settle();
    assert!(!world.replies.contains_key(&id));
    world.fortune = Box::new(|_, _| Luck::Good);
    for _ in 0..55 {
        world.pass(Duration::from_secs(1));
    }
    assert_eq!(world.replies.remove(&id), Some(Ok(Reply::Done)));
    let [lead, copy] = logs(&mut world);
    assert_eq!(lead, copy);
}

/// Programs that read only do not wait at their close, in either mode.
#[test]
fn a_close_without_changes_waits_for_nobody() {
    for strong in [false, true] {
        let mut world = lacking_a_copy(2, strong);
        let begun = world.now;
        let inode = world.lookup(ROOT, "a").unwrap().inode;
        let handle = world.open(inode);
        world.close(handle);
        assert_eq!(world.now, begun);
        // Neither does the end of a mount without changes.
        let mut world = lacking_a_copy(2, strong);
        let begun = world.now;
        assert_eq!(world.finish(), Ok(Reply::Done));
        assert_eq!(world.now, begun);
    }
    let mut world = lacking_a_copy(2, true);
    assert_eq!(world.call(folder("c")), Err(Errno::Io));
    let inode = world.lookup(ROOT, "a").unwrap().inode;
    let handle = world.open(inode);
    assert_eq!(world.call(Call::Flush { handle }), Err(Errno::Io));
}

/// The log lacks a commit that the machine remembers: an fsync must not vouch for the servers.
#[test]
fn an_fsync_fails_where_the_log_was_set_back() {
    let mut world = world();
    let old = world.accounts.clone();
    world.put(ROOT, "c", b"three");
    world.sync().unwrap();
    world.kill();
    world.accounts = old;
    world.cut_off();
    world.start_locally(Local::Fresh).unwrap();
    assert_eq!(world.sync(), Ok(Reply::Done));
    world.come_back();
    assert!(world.volume().refused_log().is_some());
    assert_eq!(world.sync(), Err(Errno::Io));
    assert!(world.lookup(ROOT, "c").is_ok());
}

#[test]
fn nothing_is_sent_to_a_log_that_was_set_back() {
    for is_other in [false, true] {
        let mut world = world();
        let old = world.accounts.clone();
        world.put(ROOT, "c", b"three");
        world.sync().unwrap();
        world.kill();
        if is_other {
            let log = world.accounts.get_mut(&1).unwrap();
            log.mailbox("log").unwrap().uid_validity += 1;
        } else {
            world.accounts = old;
        }
        world.cut_off();
        world.start_locally(Local::Fresh).unwrap();
        world.put(ROOT, "d", &noise(1, 5 << 20));
        let before = world.appended;
        world.come_back();
        let begun = world.now;
        assert_eq!(world.sync(), Err(Errno::Io));
        assert_eq!(world.now, begun, "nobody waits in vain");
        let reason = world.volume().refused_log();
        assert_eq!(reason, world.status().read_only);
        assert!(reason.is_some());
        assert_eq!(world.appended, before);
        assert!(world.volume().read_only().is_some());
        // The next mount reads the log, which tells more.
        world.kill();
        let again = world.start_locally(Local::Old);
        assert!(matches!(again, Err(OpenError::Unsure)), "{again:?}");
        assert_eq!(world.mount().is_ok(), is_other);
    }
}

/// The fate of a commit that was begun is not known: the log decides, and nothing is lost or there twice.
#[test]
fn begun_commits_are_decided_by_the_log() {
    for luck in [Luck::Lost, Luck::Unanswered] {
        for has_rival in [false, true] {
            let mut several = Several::new(2);
            several.put(0, "a", "one");
            several.sync(0).unwrap();
            several.quiet();
            several.put(0, "b", "two");
            if has_rival {
                several.put(1, "c", "three");
                several.sync(1).unwrap();
            }
            several.begin_sync(0);
            several.until_append(0);
            match luck {
                Luck::Lost => several.kill(0),
                _ => {
                    several.send_unanswered(0);
                    several.kill(0);
                }
            }
            several.mount_locally(0).unwrap();
            several.quiet();
            let tree = several.tree(0);
            assert_eq!(tree, several.tree(1));
            assert_eq!(tree["b"], "two", "{luck:?}, {has_rival}");
            assert_eq!(tree.len(), if has_rival { 3 } else { 2 }, "{tree:?}");
            assert!(several.conflicts(0).is_empty());
        }
    }
}

#[test]
fn commits_of_others_are_followed() {
    let mut several = Several::new(2);
    several.put(0, "a", "one");
    several.sync(0).unwrap();
    several.quiet();
    several.kill(0);
    several.put(1, "a", " two");
    several.put(1, "b", "three");
    several.sync(1).unwrap();
    several.mounts[0].is_held = true;
    several.mount_locally(0).unwrap();
    assert_eq!(several.tree(0).len(), 1);
    several.put(0, "c", "four");
    several.quiet();
    let tree = several.tree(0);
    assert_eq!(tree, several.tree(1));
    assert_eq!((&*tree["a"], &*tree["c"]), ("one two", "four"));
}

/// A commit that lost a race and whose mount is gone is found below the newest commit of the local disk.
#[test]
fn open_commits_below_the_newest_one_are_adopted() {
    let mut several = Several::new(3);
    several.put(0, "a", "one");
    several.sync(0).unwrap();
    several.quiet();
    several.put(1, "b", "two");
    several.begin_sync(1);
    several.until_append(1);
    several.put(2, "c", "three");
    several.sync(2).unwrap();
    several.send_unanswered(1);
    several.kill(1);
    several.put(2, "d", "four");
    several.sync(2).unwrap();
    several.pass(10);
    several.kill(0);
    several.kill(2);
    several.mount_locally(0).unwrap();
    several.quiet();
    let tree = several.tree(0);
    assert_eq!(tree.get("b").map(String::as_str), Some("two"), "{tree:?}");
}

/// What the local disk lacks sends the mount to the log.
#[test]
fn a_local_disk_that_does_not_suffice_leads_to_the_log() {
    for lost in ["commits-", "pages-", "journal-"] {
        let mut world = world();
        world.kill();
        for name in vere_ports::storage::Storage::list(&world.disk).unwrap() {
            if name.starts_with(lost) {
                vere_ports::storage::Storage::remove(&world.disk, &name).unwrap();
            }
        }
        let local = world.start_locally(Local::Fresh);
        assert!(matches!(local, Err(OpenError::Unsure)), "{lost}: {local:?}");
        world.mount().unwrap();
        assert_eq!(world.get(ROOT, "b").unwrap(), b"two");
    }
}

/// The commits on a disk.
fn kept(disk: &MemoryDisk) -> Vec<KeptCommit> {
    let mut all = Vec::new();
    CommitStore::open(disk.clone(), |kept| all.push(kept));
    all.sort_by_key(|kept| kept.uid);
    all
}

/// Commits below a checkpoint leave the disk in whole segments, and openings by the log write some of them again: a commit may be
/// there without its child. The chain once ended at the gap, and the mount read the log each time.
#[test]
fn gaps_below_the_checkpoint_do_not_matter() {
    for lost in [vec![2], vec![1, 3], vec![1, 2, 3]] {
        let mut world = world();
        for name in ["c", "d", "e"] {
            world.put(ROOT, name, b"more");
            world.sync().unwrap();
        }
        world.finish().unwrap();
        world.kill();
        let all = kept(&world.disk);
        assert!(all.len() >= 6, "{all:?}");
        let mut store = CommitStore::open(world.disk.clone(), |_| {});
        store.forget();
        for kept in all.iter().filter(|kept| !lost.contains(&kept.uid)) {
            store.put((kept.uid_validity, kept.uid), 0, &kept.body);
        }
        world.cut_off();
        world.start_locally(Local::Fresh).unwrap();
        assert!(world.lookup(ROOT, "e").is_ok());
        world.put(ROOT, "f", b"new");
        world.come_back();
        // Commits of the chain that the disk lacks were read, and are no open commits.
        assert!(!world.is_unconfirmed());
        assert_eq!(world.status().commits_open, 0, "{lost:?}");
        let stranded = |notice: &Notice| matches!(notice, Notice::Stranded(_));
        assert!(!world.notices.iter().any(stranded), "{lost:?}");
        world.sync().unwrap();
        world.lose_folder();
        world.mount().unwrap();
        assert_eq!(world.get(ROOT, "f").unwrap(), b"new");
    }
}

/// With a commit behind a missing one the mount would take the missing one for read.
#[test]
fn a_gap_behind_the_newest_commit_leads_to_the_log() {
    let mut several = Several::new(2);
    several.put(0, "a", "one");
    several.sync(0).unwrap();
    several.quiet();
    several.kill(0);
    for name in ["b", "c"] {
        several.put(1, name, "two");
        several.sync(1).unwrap();
    }
    let disk = several.mounts[0].disk.clone();
    let newest = kept(&several.mounts[1].disk).pop().unwrap();
    let mut store = CommitStore::open(disk, |_| {});
    store.put((newest.uid_validity, newest.uid), 0, &newest.body);
    assert!(matches!(several.mount_locally(0), Err(OpenError::Unsure)));
}

/// People are told why a mount takes longer than the one before.
#[test]
fn a_mount_that_reads_the_log_says_why() {
    let mut world = world();
    world.kill();
    for name in vere_ports::storage::Storage::list(&world.disk).unwrap() {
        if name.starts_with("pages-") {
            vere_ports::storage::Storage::remove(&world.disk, &name).unwrap();
        }
    }
    let (terms, of) = (world.terms.clone(), world.of.clone());
    let storage = (world.disk.clone(), [99; 16]);
    let mut opening = Opening::local(terms, of, storage, (Local::Fresh, 0));
    assert!(!opening.is_local());
    let Some(OpenStep::Log(notice)) = opening.poll() else {
        panic!("no reason");
    };
    let expected = "the local disk lacks a page, octet 68 of UID 1 of the pages: the mount reads the log of the lead account";
    assert_eq!(notice.to_string(), expected);
}

#[test]
fn a_long_sleep_leads_to_the_log_first() {
    let mut world = world();
    world.kill();
    world.now += 25 * 3_600 * 1_000;
    let local = world.start_locally(Local::Fresh);
    assert!(matches!(local, Err(OpenError::Unsure)), "{local:?}");
    world.cut_off();
    world.start_locally(Local::Old).unwrap();
    assert!(world.lookup(ROOT, "b").is_ok());
    world.come_back();
    assert!(!world.is_unconfirmed());
}
