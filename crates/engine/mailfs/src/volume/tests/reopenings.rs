//! A volume is opened anew in the place of one that has stopped: open files, look-ups and waiting calls go over.

use std::cell::Cell;
use std::rc::Rc;

use vere_ports::files::Invalidate;

use super::rig::Several;
use super::*;
use crate::volume::Reopen;

const ROOT: Inode = Inode::ROOT;
const MINUTE: Duration = Duration::from_secs(60);

impl World {
    /// Stops the volume for a reason that a fresh opening mends.
    fn stop(&mut self) {
        self.volume().fail(Notice::Behind);
    }

    /// An attempt as hosts make one, with calls that come while the opening reads. Nothing of the old volume's requests is
    /// answered.
    fn reopen_with(&mut self, meanwhile: impl FnOnce(&mut Self)) -> Result<Reopen, OpenError> {
        let now = self.moment();
        let begun = self.volume().begin_reopening(now);
        let (reason, of) = begun.expect("a reason for another opening");
        self.take_steps();
        self.waiting.clear();
        self.starts = self.starts.wrapping_add(1);
        let (terms, disk) = (self.terms.clone(), self.disk.clone());
        let opening = Opening::new(terms, of, disk, [self.starts; 16]);
        let opening = self.read_for(opening);
        meanwhile(self);
        self.take_steps();
        let now = self.moment();
        let old = self.volume.as_mut().unwrap();
        let volume = Volume::reopen(opening, old, now)?;
        self.waiting.clear();
        self.volume = Some(volume);
        Ok(reason)
    }

    fn reopen(&mut self) -> Result<Reopen, OpenError> {
        self.reopen_with(|_| {})
    }

    fn read_at(&mut self, handle: Handle, offset: u64) -> Result<Vec<u8>, Errno> {
        let size = 1 << 20;
        let call = Call::Read {
            handle,
            offset,
            size,
        };
        match self.call(call)? {
            Reply::Octets(octets) => Ok(octets.to_vec()),
            reply => panic!("{reply:?}"),
        }
    }

    fn unlink(&mut self, name: &str) {
        let name = name.into();
        let call = Call::Unlink { parent: ROOT, name };
        assert_eq!(self.call(call), Ok(Reply::Done));
    }
}

fn writes(handle: Handle, offset: u64, data: &'static [u8]) -> Call {
    Call::Write {
        handle,
        offset,
        data: Bytes::from_static(data),
        kill_set_id: false,
    }
}

fn syncs(handle: Handle) -> Call {
    let data_only = false;
    Call::Fsync { handle, data_only }
}

#[test]
fn open_files_and_waiting_calls_go_over() {
    let mut world = World::new(1);
    // A program has asked for a part only, so that the part is not in memory yet.
    let long = noise(1, 9 << 20);
    world.put(ROOT, "long", &long);
    world.sync().unwrap();
    world.cache = MemoryDisk::default();
    world.remount();
    world.volume().allow_reopening();
    let (_, changed) = world.create(ROOT, "changed");
    world.write(changed, 0, b"one");
    let (_, unnamed) = world.create(ROOT, "unnamed");
    world.write(unnamed, 0, b"without a name");
    world.unlink("unnamed");
    world.put(ROOT, "known", b"known to the kernel");
    let known = world.lookup(ROOT, "known").unwrap();
    world.unlink("known");
    let inode = world.lookup(ROOT, "long").unwrap().inode;
    let reader = world.open(inode);
    // A sync and a read wait for accounts.
    let sync = world.begin(syncs(changed));
    let read = world.begin(Call::Read {
        handle: reader,
        offset: 4 << 20,
        size: 300_000,
    });
    world.stop();
    let write = world.begin(writes(changed, 3, b", two"));
    world.take_steps();
    assert_eq!(world.replies.keys().next(), None);
    let mut late = None;
    let reopened = world.reopen_with(|world| {
        // Whatever needs no change is served meanwhile.
        let seen = world.begin(Call::GetAttributes { inode });
        world.take_steps();
        assert!(world.replies.remove(&seen).unwrap().is_ok());
        late = Some(world.begin(writes(unnamed, 14, b" at all")));
        world.take_steps();
        assert_eq!(world.replies.keys().next(), None);
    });
    assert_eq!(reopened.unwrap(), Reopen::Behind);
    world.settle();
    assert_eq!(world.replies.remove(&sync), Some(Ok(Reply::Done)));
    assert_eq!(world.replies.remove(&write), Some(Ok(Reply::Written(5))));
    let late = world.replies.remove(&late.unwrap());
    assert_eq!(late, Some(Ok(Reply::Written(7))));
    let octets = world.replies.remove(&read).unwrap().unwrap();
    let part = long[4 << 20..][..300_000].to_vec();
    assert!(octets == Reply::Octets(part.into()));
    assert_eq!(world.read_at(changed, 0).unwrap(), b"one, two");
    assert_eq!(world.read_at(unnamed, 0).unwrap(), b"without a name at all");
    let inode = known.inode;
    let seen = world.call(Call::GetAttributes { inode });
    assert!(matches!(seen, Ok(Reply::Attributes(of)) if of.links == 0 && of.size == 19));
    assert!(world.status().read_only.is_none());
    // The file without a name ends with its last close, and with its rows.
    let rows = |world: &mut World| world.volume().files.tree().keys(&[4]).unwrap().len();
    assert_eq!(rows(&mut world), 1);
    world.close(unnamed);
    assert_eq!(rows(&mut world), 0);
    world.sync().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "changed").unwrap(), b"one, two");
    assert_eq!(world.lookup(ROOT, "unnamed"), Err(Errno::NoEnt));
}

/// A close in strong mode has done its work: the next volume does none of it again, and its commit ends the wait.
#[test]
fn a_close_in_strong_mode_waits_for_the_next_volume() {
    let mut world = World::new(1);
    world.volume().allow_reopening();
    let now = world.moment();
    world.volume().set_strong(now, true);
    let made = world.begin(Call::MakeFolder {
        parent: ROOT,
        name: b"made".to_vec(),
        mode: 0o755,
    });
    world.stop();
    world.reopen().unwrap();
    world.settle();
    let reply = world.replies.remove(&made).unwrap();
    assert!(matches!(reply, Ok(Reply::Entry(_))), "{reply:?}");
    assert!(world.status().strong);
    world.lose_folder();
    world.mount().unwrap();
    world.lookup(ROOT, "made").unwrap();
}

/// Without a host that opens volumes anew, and for a reason that an opening does not mend, a stop is final.
#[test]
fn other_stops_are_final() {
    let mut world = World::new(1);
    let (_, handle) = world.create(ROOT, "file");
    world.write(handle, 0, b"x");
    let sync = world.begin(syncs(handle));
    world.stop();
    world.take_steps();
    assert_eq!(world.replies.remove(&sync), Some(Err(Errno::Io)));
    assert_eq!(world.volume().reopening_wanted(), None);
    let mut world = World::new(1);
    world.volume().allow_reopening();
    world.volume().fail(Notice::Journal("lost".to_owned()));
    assert_eq!(world.volume().reopening_wanted(), None);
    let (reason, now) = (Notice::Revoked(1), world.moment());
    world.volume().fail(reason);
    assert!(world.volume().begin_reopening(now).is_none());
}

/// While the lead fails, reads go on, changes are refused, a sync ends in time, and the lead's answer is the sign for the next
/// attempt.
#[test]
fn a_failed_attempt_leaves_a_volume_that_reads() {
    let mut world = World::new(1);
    world.volume().allow_reopening();
    world.put(ROOT, "old", b"stored");
    world.sync().unwrap();
    let (_, handle) = world.create(ROOT, "new");
    world.write(handle, 0, b"unsent");
    let sync = world.begin(syncs(handle));
    world.fortune = Box::new(|_, _| Luck::Lost);
    world.stop();
    let write = world.begin(writes(handle, 0, b"U"));
    let error = world.reopen().unwrap_err();
    assert!(matches!(error, OpenError::Account(1, _)), "{error}");
    let now = world.moment();
    world.volume().reopening_failed(now, true);
    world.take_steps();
    assert_eq!(world.replies.remove(&write), Some(Err(Errno::RoFs)));
    assert_eq!(world.call(writes(handle, 0, b"U")), Err(Errno::RoFs));
    assert_eq!(world.get(ROOT, "old").unwrap(), b"stored");
    assert_eq!(world.read_at(handle, 0).unwrap(), b"unsent");
    assert_eq!(world.volume().reopening_wanted(), None);
    world.pass(MINUTE);
    assert_eq!(world.replies.remove(&sync), Some(Err(Errno::Io)));
    assert_eq!(world.volume().reopening_wanted(), None);
    let mails = world.accounts[&1].mails();
    world.fortune = Box::new(|_, _| Luck::Good);
    world.pass(MINUTE);
    // The old volume sends nothing.
    assert_eq!(world.accounts[&1].mails(), mails);
    assert_eq!(world.volume().reopening_wanted(), Some(Reopen::Behind));
    world.reopen().unwrap();
    world.settle();
    assert_eq!(world.call(writes(handle, 0, b"U")), Ok(Reply::Written(1)));
    assert_eq!(world.fsync(handle), Ok(Reply::Done));
    assert_eq!(world.get(ROOT, "new").unwrap(), b"Unsent");
}

/// A host that gives up leaves nobody waiting.
#[test]
fn nobody_waits_for_an_attempt_that_never_comes() {
    let mut world = World::new(1);
    world.volume().allow_reopening();
    let (_, handle) = world.create(ROOT, "new");
    world.write(handle, 0, b"unsent");
    let sync = world.begin(syncs(handle));
    world.stop();
    let write = world.begin(writes(handle, 0, b"U"));
    let now = world.moment();
    world.volume().give_up_reopening(now);
    world.take_steps();
    assert_eq!(world.replies.remove(&sync), Some(Err(Errno::Io)));
    assert_eq!(world.replies.remove(&write), Some(Err(Errno::RoFs)));
    assert_eq!(world.volume().reopening_wanted(), None);
}

/// A call that waits for an attempt ends with its own time.
#[test]
fn no_call_waits_longer_for_an_attempt() {
    let mut world = World::new(1);
    world.volume().allow_reopening();
    let (_, handle) = world.create(ROOT, "new");
    world.write(handle, 0, b"unsent");
    let sync = world.begin(syncs(handle));
    world.stop();
    let now = world.moment();
    world.volume().begin_reopening(now).unwrap();
    let write = world.begin(writes(handle, 0, b"U"));
    world.pass(MINUTE);
    assert_eq!(world.replies.remove(&sync), Some(Err(Errno::Io)));
    assert_eq!(world.replies.remove(&write), Some(Err(Errno::Io)));
}

fn replicated() -> World {
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

/// A mount from a copy goes over to the lead that answers, with an open file.
#[test]
fn a_copy_gives_way_to_the_lead() {
    let mut world = replicated();
    world.put(ROOT, "file", b"stored");
    world.sync().unwrap();
    for _ in 0..3 {
        world.pass(MINUTE);
    }
    world.put(ROOT, "waits", b"unsent");
    world.kill();
    world.fortune = Box::new(|account, _| match account.0 {
        1 => Luck::Lost,
        _ => Luck::Good,
    });
    world.mount_copy().unwrap();
    world.volume().allow_reopening();
    let inode = world.lookup(ROOT, "file").unwrap().inode;
    let handle = world.open(inode);
    for _ in 0..3 {
        world.pass(MINUTE);
        assert_eq!(world.volume().reopening_wanted(), None);
        assert!(world.volume().waits_for_lead());
    }
    assert_eq!(world.call(writes(handle, 0, b"S")), Err(Errno::RoFs));
    world.fortune = Box::new(|_, _| Luck::Good);
    world.pass(MINUTE);
    assert_eq!(world.volume().reopening_wanted(), Some(Reopen::StandIn));
    let mut write = None;
    let reopened = world.reopen_with(|world| write = Some(world.begin(writes(handle, 0, b"S"))));
    assert_eq!(reopened.unwrap(), Reopen::StandIn);
    world.settle();
    let write = world.replies.remove(&write.unwrap());
    assert_eq!(write, Some(Ok(Reply::Written(1))));
    assert_eq!(world.fsync(handle), Ok(Reply::Done));
    world.sync().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "file").unwrap(), b"Stored");
    assert_eq!(world.get(ROOT, "waits").unwrap(), b"unsent");
}

/// The kernel forgets what another machine has changed meanwhile.
#[test]
fn the_kernel_forgets_what_has_changed() {
    let mut several = Several::new(2);
    several.folder(0, "f").unwrap();
    for name in ["f/same", "f/moved", "f/changed"] {
        several.put(0, name, "1");
    }
    several.sync(0).unwrap();
    several.quiet();
    let folder = several.at(1, "f").unwrap();
    let same = several.at(1, "f/same").unwrap();
    let changed = several.at(1, "f/changed").unwrap();
    several.at(1, "f/moved").unwrap();
    several.mounts[1].is_held = true;
    several.rename(0, "f/moved", "f/away").unwrap();
    several.put(0, "f/changed", "2");
    several.sync(0).unwrap();
    several.volume(1).allow_reopening();
    several.volume(1).fail(Notice::Behind);
    several.reopen(1).unwrap();
    let mut stale = Vec::new();
    while let Some(step) = several.volume(1).poll() {
        if let Step::Invalidate(what) = step {
            stale.push(what);
        }
    }
    let name = |name: &str, parent| Invalidate::Entry {
        parent,
        name: name.into(),
    };
    assert!(stale.contains(&name("moved", folder)), "{stale:?}");
    assert!(stale.contains(&name("f", ROOT)), "{stale:?}");
    assert!(stale.contains(&Invalidate::Inode(changed)), "{stale:?}");
    assert!(!stale.contains(&name("same", folder)), "{stale:?}");
    assert!(!stale.contains(&Invalidate::Inode(same)), "{stale:?}");
}

/// A volume stops at any request, with whatever is under way, and is opened anew at once: no call is answered twice, none fails,
/// and nothing that a sync has confirmed is missing from the accounts.
#[test]
fn a_volume_may_stop_at_every_request() {
    for at in 0..20 {
        let mut world = World::new(2);
        world.volume().allow_reopening();
        let left = Rc::new(Cell::new(at));
        let counter = left.clone();
        world.fortune = Box::new(move |_, _| {
            counter.set(counter.get() - 1);
            Luck::Good
        });
        let mut files = Vec::new();
        let mut stops = 0;
        for number in 0..16_u64 {
            let name = format!("f{number}");
            let octets = if number % 2 == 0 { 200 } else { 90_000 };
            let content = noise(number, octets);
            let (_, handle) = world.create(ROOT, &name);
            for (part, data) in content.chunks(30_000).enumerate() {
                world.write(handle, part as u64 * 30_000, data);
            }
            let sync = world.begin(syncs(handle));
            let reply = loop {
                if left.get() < 0 {
                    stops += 1;
                    world.stop();
                    world.reopen().unwrap();
                    // The next volume gets further, whatever the opening has cost.
                    left.set(9);
                }
                if let Some(reply) = world.replies.remove(&sync) {
                    break reply;
                }
                if !world.step() {
                    world.now += 1_000;
                    let now = world.moment();
                    world.volume().wake(now);
                }
            };
            assert_eq!(reply, Ok(Reply::Done), "request {at}, file {number}");
            if number == 3 {
                world.unlink(&name);
            } else {
                files.push((name, content.clone()));
            }
            assert!(world.read_at(handle, 0).unwrap() == content);
            if number % 3 != 0 {
                world.close(handle);
            }
        }
        assert!(stops > 0, "request {at}");
        world.lose_folder();
        world.mount().unwrap();
        for (name, content) in &files {
            assert!(
                world.get(ROOT, name).as_ref() == Ok(content),
                "request {at}, {name}"
            );
        }
    }
}
