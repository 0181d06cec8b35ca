use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use bytes::Bytes;
use vere_faults::Seeded;

use super::*;
use crate::format::{
    Keys, Locator, MailCopy, MailId, PackNumber, VolumeId, VolumeKey, open, open_frame,
};

/// An account that keeps the mails of checkpoints.
pub(crate) struct Store {
    keys: Keys,
    mails: HashMap<MailId, Bytes>,
    sequence: u64,
    uid: u32,
    /// Pages and octets written.
    written: (usize, usize),
    reads: usize,
    /// Octets of rows in a leaf.
    pub(crate) leaves: usize,
}

type Rows = BTreeMap<Vec<u8>, Bytes>;
pub(crate) type Changes = BTreeMap<Vec<u8>, Option<Bytes>>;

impl Store {
    pub(crate) fn new() -> Self {
        Self {
            keys: Keys::derive(&VolumeKey([7; 32])),
            mails: HashMap::new(),
            sequence: 0,
            uid: 0,
            written: (0, 0),
            reads: 0,
            leaves: 32 << 10,
        }
    }

    fn page(&self, at: &Locator) -> Option<Bytes> {
        let body = self.mails.get(&at.mail)?;
        let from = at.at as usize;
        let frame = body.get(from..from + 4 + at.sealed_len as usize)?;
        open_frame(&body[..68], frame, at.at, &self.keys, at.mail).ok()
    }

    pub(crate) fn bring(&mut self, tree: &PageTree, at: &Locator) {
        self.reads += 1;
        let page = self.page(at).expect("a page that exists");
        tree.put(at, page).unwrap();
    }

    /// Writes a checkpoint and makes it the tree's root.
    pub(crate) fn checkpoint(&mut self, tree: &mut PageTree, changes: Changes) {
        let mut draft = Draft::new(5, changes).with_leaves(self.leaves);
        loop {
            let sequence = &mut self.sequence;
            let mut next = || {
                *sequence += 1;
                PackNumber::new(1, *sequence).unwrap()
            };
            let mut lot = Lot {
                volume: VolumeId([3; 16]),
                epoch: 1,
                keys: &self.keys,
                next: &mut next,
            };
            match draft.advance(tree, &mut lot) {
                Ok(Progress::Done(root)) => return tree.set_root(root),
                Ok(Progress::Stores) => {
                    let all: Vec<_> = draft
                        .unstored()
                        .map(|(number, mail)| (number, mail.clone()))
                        .collect();
                    assert!(!all.is_empty());
                    // The last comes first, as accounts may have it.
                    for (number, mail) in all.into_iter().rev() {
                        let opened = open(&mail.body, &self.keys, Some(mail.head.mail)).unwrap();
                        self.written.0 += opened.frames.len() - 1;
                        self.written.1 += mail.body.len();
                        self.mails.insert(mail.head.mail, mail.body);
                        self.uid += 1;
                        let copy = MailCopy {
                            account: 1,
                            mailbox: 2,
                            uid: self.uid,
                        };
                        draft.stored(number, copy);
                    }
                }
                Err(DraftError::Missing(at)) => self.bring(tree, &at),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Does what may miss pages, as often as it takes.
    fn with<T>(&mut self, tree: &PageTree, run: impl Fn(&PageTree) -> Result<T, Missing>) -> T {
        loop {
            match run(tree) {
                Ok(value) => return value,
                Err(Missing(at)) => self.bring(tree, &at),
            }
        }
    }

    fn all(&mut self, tree: &PageTree) -> Rows {
        self.with(tree, |tree| {
            let mut rows = Rows::new();
            tree.visit::<Missing>(b"", &mut |key, value| {
                assert!(rows.insert(key.to_vec(), value).is_none());
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(rows)
        })
    }
}

fn row(seeded: &mut Seeded, keys: u64) -> (Vec<u8>, Option<Bytes>) {
    let number = seeded.next_u64() % keys;
    let key = format!("{:03}/{}", number / 50, number).into_bytes();
    let kind = seeded.next_u64() % 16;
    let length = match kind {
        0..4 => return (key, None),
        4 => 20_000 + seeded.next_u64() % 50_000,
        _ => seeded.next_u64() % 200,
    };
    let seed = seeded.next_u64().to_le_bytes();
    let value = seed.iter().copied().cycle().take(length as usize);
    (key, Some(value.collect()))
}

fn apply(rows: &mut Rows, changes: &Changes) {
    for (key, value) in changes {
        match value {
            Some(value) => drop(rows.insert(key.clone(), value.clone())),
            None => drop(rows.remove(key)),
        }
    }
}

#[test]
fn pages_have_the_rows_of_a_map() {
    for seed in 0..3 {
        let mut seeded = Seeded(seed);
        let (mut store, mut tree, mut rows) = (Store::new(), PageTree::default(), Rows::new());
        for round in 0..16 {
            let keys = [40, 400, 4_000][seed as usize % 3];
            let count = [1, 10, 300, 2_000][(seeded.next_u64() % 4) as usize];
            let mut changes: Changes = (0..count).map(|_| row(&mut seeded, keys)).collect();
            if round % 8 == 7 {
                // Whole ranges go, and once everything.
                let first = rows
                    .keys()
                    .nth(rows.len() / 2 * (seed as usize % 2))
                    .cloned();
                let gone = rows.range(first.unwrap_or_default()..);
                changes.extend(gone.map(|(key, _)| (key.clone(), None)));
            }
            apply(&mut rows, &changes);
            store.checkpoint(&mut tree, changes);
            assert_eq!(tree.root().is_none(), rows.is_empty());
            tree.trim((seeded.next_u64() % 400_000) as usize);
            let (key, _) = row(&mut seeded, keys);
            let found = store.with(&tree, |tree| tree.get(&key));
            assert_eq!(found.as_ref(), rows.get(&key), "seed {seed}, round {round}");
            if round % 4 == 3 {
                assert!(store.all(&tree) == rows, "seed {seed}, round {round}");
            }
        }
        // Another machine has nothing but the root.
        let mut fresh = PageTree::default();
        fresh.set_root(tree.root().copied());
        assert!(store.all(&fresh) == rows, "seed {seed}");
    }
}

#[test]
fn a_change_writes_its_path_only() {
    let (mut store, mut tree) = (Store::new(), PageTree::default());
    let value = |number: u32| Some(Bytes::from(number.to_le_bytes().repeat(25)));
    let key = |number: u32| format!("{number:08}").into_bytes();
    let all = (0..60_000)
        .map(|number| (key(number), value(number)))
        .collect();
    store.checkpoint(&mut tree, all);
    let levels = store.with(&tree, |tree| tree.top()).unwrap();
    assert_eq!(levels, 1);
    let pages = store.written.0;
    assert!((190..240).contains(&pages), "{pages} pages");
    store.written = (0, 0);
    store.checkpoint(&mut tree, Changes::from([(key(30_000), value(7))]));
    assert_eq!(store.written.0, 2);
    // Equal values, and the removal of what is not there, write nothing.
    store.written = (0, 0);
    let none = Changes::from([(key(30_000), value(7)), (b"absent".to_vec(), None)]);
    let root = tree.root().copied();
    store.checkpoint(&mut tree, none);
    assert_eq!((store.written.0, tree.root().copied()), (0, root));
    // A cold look-up reads a page of each level.
    tree.trim(0);
    store.reads = 0;
    assert_eq!(store.with(&tree, |tree| tree.get(&key(5))), value(5));
    assert_eq!(store.reads, 2);
}

#[test]
fn appended_rows_fill_pages() {
    let (mut store, mut tree) = (Store::new(), PageTree::default());
    let mut rows = Rows::new();
    for round in 0..60_u32 {
        let of = |number: u32| {
            let value = Bytes::from(vec![number as u8; 100]);
            (format!("{round:04}/{number:04}").into_bytes(), Some(value))
        };
        let changes: Changes = (0..500).map(of).collect();
        apply(&mut rows, &changes);
        store.checkpoint(&mut tree, changes);
    }
    let octets: usize = rows
        .iter()
        .map(|(key, value)| key.len() + value.len() + 4)
        .sum();
    let leaves = store.with(&tree, |tree| {
        let root = tree.page(tree.root().unwrap(), None)?;
        Ok(root.rows())
    });
    assert!(
        leaves * (32 << 10) < octets * 3 / 2,
        "{leaves} leaves for {octets} octets"
    );
    assert!(store.all(&tree) == rows);
}

#[test]
fn an_altered_page_is_no_page() {
    let (mut store, mut tree) = (Store::new(), PageTree::default());
    let changes = Changes::from([(b"key".to_vec(), Some(Bytes::from_static(b"value")))]);
    store.checkpoint(&mut tree, changes);
    let root = *tree.root().unwrap();
    let whole = store.mails[&root.mail].clone();
    let (from, to) = (root.at as usize, (root.at + root.sealed_len) as usize + 4);
    for at in (0..68).chain(from..to) {
        let mut torn = whole.to_vec();
        torn[at] ^= 1;
        store.mails.insert(root.mail, torn.into());
        assert_eq!(store.page(&root), None, "octet {at}");
    }
    for cut in 0..to {
        store.mails.insert(root.mail, whole.slice(..cut.max(68)));
        assert_eq!(store.page(&root), None, "{cut} octets");
    }
    store.mails.insert(root.mail, whole);
    assert!(store.page(&root).is_some());
}

/// Resident octets of this process.
fn resident() -> u64 {
    #[allow(
        clippy::disallowed_methods,
        reason = "the kernel alone knows the memory"
    )]
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    number.unwrap_or(0) << 10
}

/// The rows of a file: entry, inode, extents.
fn file(number: u64, seeded: &mut Seeded) -> Vec<(Vec<u8>, Option<Bytes>)> {
    let (home, slot) = (number / 1_000 + 1, (number % 1_000) as u32 + 2);
    let inode = crate::rows::inode_of(home, slot);
    let mut random = |octets: usize, rest: usize| {
        let mut value = Vec::new();
        while value.len() < octets {
            value.extend_from_slice(&seeded.next_u64().to_le_bytes());
        }
        value.resize(octets + rest, 0);
        Some(Bytes::from(value))
    };
    let name = format!("message-{number:07}.eml");
    vec![
        (crate::rows::entry_key(home, name.as_bytes()), random(0, 9)),
        (crate::rows::inode_key(inode).to_vec(), random(24, 72)),
        (crate::rows::extents_key(inode, 0).to_vec(), random(8, 16)),
    ]
}

/// `cargo test -p vere-mailfs --lib -- --ignored --nocapture a_million_files`
#[test]
#[ignore = "takes minutes and prints figures"]
fn a_million_files() {
    const CACHE: usize = 64 << 20;
    let (mut store, mut tree, mut seeded) = (Store::new(), PageTree::default(), Seeded(1));
    let mut logical = 0;
    for batch in 0..250_u64 {
        let files = batch * 4_000..(batch + 1) * 4_000;
        let changes: Changes = files.flat_map(|number| file(number, &mut seeded)).collect();
        let octets = |(key, value): (&Vec<u8>, &Option<Bytes>)| {
            key.len() + value.as_ref().map_or(0, Bytes::len)
        };
        logical += changes.iter().map(octets).sum::<usize>();
        store.checkpoint(&mut tree, changes);
        tree.trim(CACHE);
    }
    let mut tree_of = |root: Option<Locator>| {
        let mut fresh = PageTree::default();
        fresh.set_root(root);
        let before = resident();
        for _ in 0..20_000 {
            let number = seeded.next_u64() % 1_000_000;
            let key = file(number, &mut Seeded(1)).swap_remove(1).0;
            assert!(store.with(&fresh, |tree| tree.get(&key)).is_some());
            fresh.trim(CACHE);
        }
        (fresh.octets(), resident().saturating_sub(before))
    };
    let (cached, resident) = tree_of(tree.root().copied());
    let levels = store.with(&tree, PageTree::top).unwrap() + 1;
    println!(
        "rows {logical} octets; {} pages, {} octets written in 250 checkpoints; {levels} levels; cache {cached} octets, {resident} resident; {} reads",
        store.written.0, store.written.1, store.reads,
    );
    assert!(cached <= CACHE);
}
