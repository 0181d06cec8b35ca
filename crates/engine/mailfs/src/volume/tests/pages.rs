//! Pages come when a program needs them, and whoever needs none waits for none.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use vere_ports::files::RenameMode;
use vere_ports::storage::Storage as _;

use super::*;
use crate::pages::PageTree;

const ROOT: Inode = Inode::ROOT;
const FOLDERS: usize = 8;
const FILES: usize = 50;

fn folder_name(number: usize) -> String {
    format!("folder-{number}")
}

fn content(folder: usize, file: usize) -> Vec<u8> {
    noise((folder * FILES + file) as u64, 40)
}

/// A volume with about 30 leaves, unmounted; the machine's folder is lost.
fn filled() -> World {
    let mut world = World::new(1);
    for folder in 0..FOLDERS {
        let inode = make_folder(&mut world, ROOT, &folder_name(folder), 0o755);
        for file in 0..FILES {
            let name = file.to_string();
            world.put(inode, &name, &content(folder, file));
            let inode = world.lookup(inode, &name).unwrap().inode;
            set_xattr(&mut world, inode, "long", noise(file as u64, 2_000));
        }
    }
    assert_eq!(world.finish(), Ok(Reply::Done));
    world.lose_folder();
    world
}

/// Counts the pages that accounts are asked for, and has them come or not.
fn watch(world: &mut World, luck: &Rc<Cell<Luck>>) -> Rc<Cell<usize>> {
    let count = Rc::new(Cell::new(0));
    let (counter, luck) = (count.clone(), luck.clone());
    world.fortune = Box::new(move |_, request| match request {
        Request::Read { mailbox, .. } if mailbox == "pages" => {
            counter.set(counter.get() + 1);
            luck.get()
        }
        _ => Luck::Good,
    });
    count
}

fn good() -> Rc<Cell<Luck>> {
    Rc::new(Cell::new(Luck::Good))
}

fn expect_all(world: &mut World) {
    for folder in 0..FOLDERS {
        let inode = world.lookup(ROOT, &folder_name(folder)).unwrap().inode;
        for file in 0..FILES {
            let found = world.get(inode, &file.to_string());
            assert!(found == Ok(content(folder, file)), "{folder}/{file}");
        }
    }
}

#[test]
fn a_mount_reads_the_pages_that_programs_need() {
    let mut world = filled();
    let pages = watch(&mut world, &good());
    world.mount().unwrap();
    let at_first = pages.get();
    assert!(at_first <= 4, "{at_first} pages");
    let folder = world.lookup(ROOT, &folder_name(3)).unwrap().inode;
    world.lookup(folder, "7").unwrap();
    let one = pages.get() - at_first;
    assert!(one <= 4, "{one} pages");
    expect_all(&mut world);
    let all = pages.get();
    assert!(all >= 20, "{all} pages");
    expect_all(&mut world);
    assert_eq!(pages.get(), all);
    // The next mount has the pages on its disk.
    world.kill();
    world.mount().unwrap();
    expect_all(&mut world);
    assert_eq!(pages.get(), all);
}

#[test]
fn a_call_whose_pages_are_there_waits_for_no_other() {
    let mut world = filled();
    let luck = good();
    watch(&mut world, &luck);
    world.mount().unwrap();
    let near = world.lookup(ROOT, &folder_name(0)).unwrap().inode;
    world.lookup(near, "0").unwrap();
    let far = world.lookup(ROOT, &folder_name(7)).unwrap().inode;
    luck.set(Luck::Lost);
    let name = |name: &str| name.as_bytes().to_vec();
    let waits = world.begin(Call::Lookup {
        parent: far,
        name: name("49"),
    });
    world.settle();
    assert!(!world.replies.contains_key(&waits));
    let goes = world.begin(Call::Lookup {
        parent: near,
        name: name("0"),
    });
    world.settle();
    assert!(world.replies.remove(&goes).unwrap().is_ok());
    luck.set(Luck::Good);
    assert!(world.reply(waits).is_ok());
    // Without the account a call fails in time, and nothing else is broken.
    luck.set(Luck::Lost);
    let far = world.lookup(ROOT, &folder_name(4)).unwrap().inode;
    let begun = world.now;
    assert_eq!(world.lookup(far, "20"), Err(Errno::Io));
    assert!((59_000..=61_000).contains(&(world.now - begun)));
    luck.set(Luck::Good);
    world.pass(Duration::from_secs(120));
    expect_all(&mut world);
}

#[test]
fn changes_of_a_file_keep_their_order() {
    let mut world = filled();
    let luck = good();
    watch(&mut world, &luck);
    world.mount().unwrap();
    let folder = world.lookup(ROOT, &folder_name(5)).unwrap().inode;
    let inode = world.lookup(folder, "30").unwrap().inode;
    // Memory and disk forget all pages.
    let tree = world.volume().files.tree_mut();
    let root = tree.pages().root().copied();
    *tree.pages_mut() = PageTree::default();
    tree.pages_mut().set_root(root);
    luck.set(Luck::Lost);
    let mode = |mode| Call::SetAttributes {
        inode,
        changes: vere_ports::files::Changes {
            mode: Some(mode),
            ..Default::default()
        },
    };
    let calls = [mode(0o600), mode(0o640), Call::GetAttributes { inode }];
    let ids = calls.map(|call| world.begin(call));
    world.settle();
    assert!(ids.iter().all(|id| !world.replies.contains_key(id)));
    luck.set(Luck::Good);
    let replies = ids.map(|id| match world.reply(id) {
        Ok(Reply::Attributes(attributes)) => attributes.mode,
        reply => panic!("{reply:?}"),
    });
    assert_eq!(replies, [0o600, 0o640, 0o640]);
}

#[test]
fn a_lost_page_costs_its_files_until_the_next_mount() {
    let mut world = filled();
    let account = world.accounts.get_mut(&1).unwrap();
    for mail in account.mailbox("pages").unwrap().mails.values_mut() {
        let mut octets = mail.to_vec();
        let middle = octets.len() / 3;
        octets[middle] ^= 1;
        *mail = octets.into();
    }
    world.mount().unwrap();
    let mut lost = 0;
    for folder in 0..FOLDERS {
        let Ok(facts) = world.lookup(ROOT, &folder_name(folder)) else {
            lost += 1;
            continue;
        };
        for file in 0..FILES {
            match world.get(facts.inode, &file.to_string()) {
                Ok(found) => assert!(found == content(folder, file)),
                Err(errno) => {
                    assert_eq!(errno, Errno::Io);
                    lost += 1;
                }
            }
        }
    }
    assert!((1..FOLDERS * FILES / 4).contains(&lost), "{lost} lost");
    let is_told = |notice: &Notice| matches!(notice, Notice::Unreadable { .. });
    assert!(world.notices.iter().any(is_told));
    assert!(world.volume().read_only().is_none());
    // The next mount inspects the checkpoint, and reads the log instead.
    world.kill();
    world.mount().unwrap();
    expect_all(&mut world);
}

/// Folders with files and their contents.
type Model = BTreeMap<(usize, u8), Vec<u8>>;

struct Run {
    world: World,
    model: Model,
    folders: Vec<Inode>,
    seeded: Seeded,
}

impl Run {
    fn random(&mut self, below: u64) -> usize {
        usize::try_from(self.seeded.next_u64() % below).unwrap()
    }

    fn place(&mut self) -> (usize, u8) {
        (self.random(FOLDERS as u64), self.random(12) as u8)
    }

    fn step(&mut self) {
        // A call may add to the bound what its own rows need.
        let octets = self.world.volume().files.tree().pages().octets();
        assert!(octets < 600_000, "{octets} octets");
        let (at, to) = (self.place(), self.place());
        let (parent, name) = (self.folders[at.0], at.1.to_string());
        match self.random(12) {
            0..4 => self.write(at),
            4 => {
                let call = Call::Unlink {
                    parent,
                    name: name.into(),
                };
                let is_there = self.model.remove(&at).is_some();
                assert_eq!(self.world.call(call).is_ok(), is_there);
            }
            5 | 6 => {
                let call = Call::Rename {
                    parent,
                    name: name.into(),
                    new_parent: self.folders[to.0],
                    new_name: to.1.to_string().into(),
                    mode: RenameMode::Replace,
                };
                let moved = self.model.get(&at).cloned();
                assert_eq!(self.world.call(call).is_ok(), moved.is_some());
                if let Some(content) = moved.filter(|_| at != to) {
                    self.model.remove(&at);
                    self.model.insert(to, content);
                }
            }
            7 => assert_eq!(self.world.sync(), Ok(Reply::Done)),
            8 if self.random(4) == 0 => self.remount(),
            _ => {
                let found = self.world.get(parent, &name).ok();
                assert_eq!(found.as_ref(), self.model.get(&at));
            }
        }
    }

    fn write(&mut self, at: (usize, u8)) {
        let (parent, name) = (self.folders[at.0], at.1.to_string());
        let octets = self.random(3_000);
        let data = noise(self.seeded.next_u64(), octets + 1);
        let (inode, handle) = match self.world.lookup(parent, &name) {
            Ok(facts) => (facts.inode, self.world.open(facts.inode)),
            Err(_) => {
                let (facts, handle) = self.world.create(parent, &name);
                (facts.inode, handle)
            }
        };
        self.world.write(handle, 0, &data);
        let old = self.model.entry(at).or_default();
        let length = old.len().max(data.len());
        old.resize(length, 0);
        old[..data.len()].copy_from_slice(&data);
        let value = noise(self.seeded.next_u64(), 2_000);
        set_xattr(&mut self.world, inode, "long", value);
        if self.random(3) == 0 {
            assert_eq!(self.world.fsync(handle), Ok(Reply::Done));
        }
        self.world.close(handle);
    }

    /// The mount ends, and the next one has no page on its disk, and room for a few in memory.
    fn remount(&mut self) {
        assert_eq!(self.world.finish(), Ok(Reply::Done));
        self.world.lose_folder();
        self.world.mount().unwrap();
        let volume = self.world.volume();
        volume.pages.octets_max = 300_000;
        let tree = volume.files.tree_mut();
        let root = tree.pages().root().copied();
        *tree.pages_mut() = PageTree::default();
        tree.pages_mut().set_root(root);
    }
}

#[test]
fn a_mount_with_a_few_pages_in_memory_answers_as_any_other() {
    for seed in 0..3 {
        let mut world = World::new(2);
        let names = (0..FOLDERS).map(folder_name);
        let folders = names
            .map(|name| make_folder(&mut world, ROOT, &name, 0o755))
            .collect();
        let mut run = Run {
            world,
            model: Model::new(),
            folders,
            seeded: Seeded(seed),
        };
        for folder in 0..FOLDERS {
            for file in 0..12 {
                run.write((folder, file));
            }
        }
        run.remount();
        for _ in 0..250 {
            run.step();
        }
        run.remount();
        for (at, content) in run.model {
            let found = run.world.get(run.folders[at.0], &at.1.to_string());
            assert!(found == Ok(content), "{at:?}");
        }
        assert!(run.world.volume().read_only().is_none());
    }
}

/// Mounts, and counts how often the opening waits for the account.
fn rounds(world: &mut World) -> usize {
    world.starts += 1;
    let random = [world.starts; 16];
    let mut opening = Opening::new(world.terms.clone(), of(), world.disk.clone(), random);
    let mut rounds = 0;
    while !opening.is_over() {
        let mut asked = Vec::new();
        while let Some(step) = opening.poll() {
            if let OpenStep::Ask(id, account, _, request) = step {
                asked.push((id, account, request));
            }
        }
        assert!(!asked.is_empty(), "the opening stands still");
        for (id, account, request) in asked {
            let answer = world.carry_out(account, &request);
            opening.answered(id, answer);
        }
        rounds += 1;
    }
    let now = world.moment();
    world.volume = Some(Volume::open(opening, now).unwrap());
    world.settle();
    rounds
}

#[test]
fn an_opening_waits_for_few_answers() {
    let mut world = filled();
    assert!(rounds(&mut world) <= 6);
    expect_all(&mut world);
    // With a journal the end of the log is known.
    for keeps_pages in [true, false] {
        assert_eq!(world.finish(), Ok(Reply::Done));
        world.kill();
        let names = world.disk.list().unwrap();
        let pages = names.iter().filter(|name| name.starts_with("pages-"));
        for name in pages.filter(|_| !keeps_pages) {
            world.disk.remove(name).unwrap();
        }
        let rounds = rounds(&mut world);
        assert!(rounds <= if keeps_pages { 2 } else { 3 }, "{rounds}");
        expect_all(&mut world);
    }
    // Another machine has committed since.
    let disk = world.disk.clone();
    world.kill();
    world.disk = MemoryDisk::default();
    world.mount().unwrap();
    world.put(ROOT, "new", b"of another machine");
    assert_eq!(world.finish(), Ok(Reply::Done));
    world.kill();
    world.disk = disk;
    assert!(rounds(&mut world) <= 4);
    expect_all(&mut world);
    assert_eq!(world.get(ROOT, "new"), Ok(b"of another machine".to_vec()));
}
