//! The thesis's three loss cases ("Consistency and Failure Recovery", Figure 3.3): an update of a file whose mails with
//! data, with metadata, or both are lost. EMFS marks a file dirty by one metadata mail, clean by another, and repairs by the
//! status; here the one commit names its parent and follows its packs (docs/internals/mailfs.md, section 4).

use super::*;

const ROOT: Inode = Inode::ROOT;

fn before() -> Vec<u8> {
    noise(21, 700_000)
}

fn after() -> Vec<u8> {
    noise(22, 700_000)
}

/// Which mails an account loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    Data,
    Metadata,
    Both,
}

impl Lost {
    fn has(self, request: &Request) -> bool {
        match request {
            Request::Append { mailbox, .. } if mailbox == "log" => self != Self::Data,
            Request::Append { .. } => self != Self::Metadata,
            _ => false,
        }
    }
}

/// A file at its first version, then an update whose mails are lost: `fsync` says so.
fn update(lost: Lost) -> World {
    let mut world = World::new(2);
    world.put(ROOT, "f", &before());
    world.sync().unwrap();
    let commits = world.accounts.get_mut(&1).unwrap().mailbox("log").unwrap();
    let commits = commits.mails.len();
    world.fortune = Box::new(move |_, request| match lost.has(request) {
        true => Luck::Lost,
        false => Luck::Good,
    });
    let inode = world.lookup(ROOT, "f").unwrap().inode;
    let handle = world.open(inode);
    world.write(handle, 0, &after());
    assert_eq!(world.fsync(handle), Err(Errno::Io), "{lost:?}");
    let log = world.accounts.get_mut(&1).unwrap().mailbox("log").unwrap();
    assert_eq!(log.mails.len(), commits, "a commit without its packs");
    world
}

fn packs(world: &mut World) -> usize {
    let accounts = world.accounts.values_mut();
    let boxes = accounts.filter_map(|account| account.mailbox("data-0001"));
    boxes.map(|data| data.mails.len()).sum()
}

/// What another machine sees: the version before, whole.
fn assert_the_version_before(world: &mut World, lost: Lost) {
    let folder = (world.disk.clone(), world.cache.clone());
    world.lose_folder();
    world.fortune = Box::new(|_, _| Luck::Good);
    world.mount().unwrap();
    assert!(world.get(ROOT, "f").unwrap() == before(), "{lost:?}");
    world.kill();
    (world.disk, world.cache) = folder;
}

/// The machine itself goes on: the journal has the update. Returns how many packs were sent for the update.
fn resume(world: &mut World, lost: Lost) -> usize {
    world.mount().unwrap();
    assert!(world.get(ROOT, "f").unwrap() == after(), "{lost:?}");
    let sent = world.count("pack");
    world.sync().unwrap();
    let sent = world.count("pack") - sent;
    world.lose_folder();
    world.mount().unwrap();
    assert!(world.get(ROOT, "f").unwrap() == after(), "{lost:?}");
    sent
}

#[test]
fn without_both_the_version_before_stays_and_everything_is_sent_again() {
    let mut world = update(Lost::Both);
    assert_the_version_before(&mut world, Lost::Both);
    assert!(resume(&mut world, Lost::Both) > 0);
}

#[test]
fn without_the_data_no_metadata_is_sent() {
    let mut world = update(Lost::Data);
    assert_the_version_before(&mut world, Lost::Data);
    assert!(resume(&mut world, Lost::Data) > 0);
}

#[test]
fn without_the_metadata_the_data_wait_for_the_commit() {
    let mut world = update(Lost::Metadata);
    assert_the_version_before(&mut world, Lost::Metadata);
    assert_eq!(resume(&mut world, Lost::Metadata), 0, "packs are there");
}

/// The journal is lost with the machine: the packs are orphans, and go after a day.
#[test]
fn data_without_metadata_and_journal_are_garbage() {
    let mut world = World::new(2);
    world.put(ROOT, "f", &before());
    world.sync().unwrap();
    let needed = packs(&mut world);
    let mut world = update(Lost::Metadata);
    assert!(packs(&mut world) > needed);
    world.lose_folder();
    world.fortune = Box::new(|_, _| Luck::Good);
    world.mount().unwrap();
    world.collect().unwrap();
    assert!(packs(&mut world) > needed, "a slow writer may need them");
    world.days(2);
    world.collect().unwrap();
    assert_eq!(packs(&mut world), needed);
    assert!(world.get(ROOT, "f").unwrap() == before());
}

/// An account that acknowledges a pack and loses it, which the thesis excludes: EIO and the name of the file, until the mail
/// is back; other files are whole.
#[test]
fn acknowledged_data_that_are_lost_are_told_by_the_file() {
    let mut world = World::new(2);
    world.put(ROOT, "g", &before());
    world.sync().unwrap();
    let kept = world.accounts.clone();
    world.put(ROOT, "f", &after());
    world.sync().unwrap();
    let mut lost = Vec::new();
    for (number, account) in &mut world.accounts {
        let Some(data) = account.mailbox("data-0001") else {
            continue;
        };
        let had = kept[number]
            .clone()
            .mailbox("data-0001")
            .map(|had| had.mails.clone());
        let had = had.unwrap_or_default();
        lost.push((*number, data.mails.clone()));
        data.mails.retain(|uid, _| had.contains_key(uid));
    }
    world.kill();
    world.cache = MemoryDisk::default();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "f"), Err(Errno::Io));
    let is_named = |notice: &Notice| matches!(notice, Notice::Unreadable { .. });
    assert!(world.notices.iter().any(is_named));
    assert!(world.get(ROOT, "g").unwrap() == before());
    for (number, mails) in lost {
        let data = world
            .accounts
            .get_mut(&number)
            .unwrap()
            .mailbox("data-0001");
        data.unwrap().mails = mails;
    }
    world.pass(Duration::from_secs(120));
    assert!(world.get(ROOT, "f").unwrap() == after());
}
