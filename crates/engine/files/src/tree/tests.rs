use std::collections::BTreeMap;

use vere_faults::Seeded;

use super::*;
use crate::pages::tests::Store;

type Model = BTreeMap<Vec<u8>, Bytes>;

fn put(key: &[u8], value: &[u8]) -> Change {
    Change {
        key: key.to_vec(),
        value: Some(value.to_vec()),
    }
}

fn octets(value: &'static [u8]) -> Option<Bytes> {
    Some(Bytes::from_static(value))
}

#[test]
fn changes_come_in_order_and_once() {
    let mut tree = Tree::new();
    tree.put(b"b", b"1".to_vec()).unwrap();
    tree.put(b"a", b"2".to_vec()).unwrap();
    tree.put(b"b", b"3".to_vec()).unwrap();
    assert_eq!(tree.take_changes(), [put(b"b", b"3"), put(b"a", b"2")]);
    assert!(tree.remove(b"a").unwrap());
    assert!(!tree.remove(b"a").unwrap());
    let gone = Change {
        key: b"a".to_vec(),
        value: None,
    };
    assert_eq!(tree.take_changes(), [gone]);
    assert_eq!(tree.get(b"b"), Ok(octets(b"3")));
    tree.change(put(b"c", b"4")).unwrap();
    tree.apply(put(b"d", b"4"), 1).unwrap();
    assert!(tree.take_changes().is_empty());
}

#[test]
fn changes_of_the_mount_lie_above_the_chain() {
    let mut tree = Tree::new();
    tree.apply(put(b"a", b"1"), 1).unwrap();
    tree.put(b"a", b"2".to_vec()).unwrap();
    tree.put(b"b", b"3".to_vec()).unwrap();
    assert_eq!(tree.in_chain(b"a"), Ok(octets(b"1")));
    assert_eq!(tree.confirm(put(b"a", b"9"), 2), Ok(octets(b"1")));
    assert_eq!(tree.get(b"a"), Ok(octets(b"2")));
    assert_eq!(tree.confirm(put(b"b", b"3"), 2), Ok(None));
    let keys: Vec<&[u8]> = tree.local_keys().collect();
    assert_eq!(keys, [b"a"]);
    let local = tree.take_local().unwrap();
    let side = Side {
        base: octets(b"9"),
        now: octets(b"2"),
    };
    assert_eq!(local, Sides::from([(b"a".to_vec(), side)]));
    assert_eq!(tree.get(b"a"), Ok(octets(b"9")));
    assert_eq!(tree.get(b"b"), Ok(octets(b"3")));
}

#[test]
fn a_prefix_bounds_a_visit() {
    let mut tree = Tree::new();
    for key in [&b"a"[..], b"ab", b"ac", b"b"] {
        tree.put(key, Vec::new()).unwrap();
    }
    assert_eq!(tree.keys(b"a").unwrap(), [&b"a"[..], b"ab", b"ac"]);
    let mut behind = Vec::new();
    tree.visit(b"a", Some(b"ab"), &mut |key, _| {
        behind.push(key.to_vec());
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    assert_eq!(behind, [b"ac"]);
    assert!(tree.any(b"b").unwrap() && !tree.any(b"c").unwrap());
}

/// A tree over pages that an account keeps, and what the tree must show.
struct Layers {
    tree: Tree,
    store: Store,
    now: Model,
    chain: Model,
    seeded: Seeded,
    generation: u64,
}

fn set(model: &mut Model, key: &[u8], value: Option<Bytes>) {
    match value {
        Some(value) => drop(model.insert(key.to_vec(), value)),
        None => drop(model.remove(key)),
    }
}

impl Layers {
    fn random(&mut self, below: u64) -> u64 {
        self.seeded.next_u64() % below
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.random(300);
        format!("{:02}/{number}", number / 20).into_bytes()
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.random(1_500)).unwrap();
        let octet = self.seeded.next_u64() as u8;
        (self.random(4) > 0).then(|| vec![octet; length])
    }

    /// Does what may miss pages, as often as it takes.
    fn with<T>(&mut self, run: impl Fn(&mut Tree) -> Result<T, Errno>) -> T {
        loop {
            match run(&mut self.tree) {
                Err(Errno::Again) => {
                    for at in self.tree.take_missing() {
                        self.store.bring(self.tree.pages(), &at);
                    }
                }
                other => return other.unwrap(),
            }
        }
    }

    fn change(&mut self) {
        let (key, value) = (self.key(), self.value());
        set(&mut self.now, &key, value.clone().map(Bytes::from));
        match value {
            Some(value) => self.tree.put(&key, value).unwrap(),
            None => drop(self.with(|tree| tree.remove(&key))),
        }
    }

    /// Some changes reach the chain, and a row of another mount.
    fn commit(&mut self) {
        self.generation += 1;
        let local: Vec<Vec<u8>> = self.tree.local_keys().map(<[u8]>::to_vec).collect();
        for key in local {
            let is_sent = self.random(3) > 0;
            let value = if is_sent {
                self.now.get(&key).map(|value| value.to_vec())
            } else {
                self.value()
            };
            self.confirm(key, value);
        }
        let key = self.key();
        if self.tree.local_keys().all(|local| local != key) {
            let value = self.value();
            set(&mut self.now, &key, value.clone().map(Bytes::from));
            self.confirm(key, value);
        }
    }

    fn confirm(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let change = Change {
            key: key.clone(),
            value: value.clone(),
        };
        let generation = self.generation;
        let old = self.with(|tree| tree.confirm(change.clone(), generation));
        assert_eq!(old.as_ref(), self.chain.get(&key));
        set(&mut self.chain, &key, value.map(Bytes::from));
    }

    fn checkpoint(&mut self) {
        let rows = self.tree.cover();
        let covers = self.generation;
        let root = self.tree.pages().root().copied();
        // Commits arrive while the checkpoint is on the way.
        self.change();
        self.commit();
        let changes = rows.into_iter().collect();
        self.store.checkpoint(self.tree.pages_mut(), changes);
        let new = self.tree.pages().root().copied();
        self.tree.pages_mut().set_root(root);
        self.compare();
        self.tree.covered(new, covers);
    }

    fn take_local(&mut self) {
        let sides = self.with(Tree::take_local);
        for (key, side) in &sides {
            assert_ne!(side.base, side.now);
            assert_eq!(side.base.as_ref(), self.chain.get(key));
            assert_eq!(side.now.as_ref(), self.now.get(key));
        }
        let keys = self.now.keys().chain(self.chain.keys());
        let differs = keys.filter(|key| self.now.get(*key) != self.chain.get(*key));
        assert!(differs.into_iter().all(|key| sides.contains_key(key)));
        self.now.clone_from(&self.chain);
    }

    fn compare(&mut self) {
        let (key, behind) = (self.key(), self.key());
        let prefix = behind[..usize::try_from(self.random(4)).unwrap()].to_vec();
        assert_eq!(
            self.with(|tree| tree.get(&key)).as_ref(),
            self.now.get(&key)
        );
        let in_chain = self.with(|tree| tree.in_chain(&key));
        assert_eq!(in_chain.as_ref(), self.chain.get(&key));
        let behind = (self.random(2) > 0).then_some(behind);
        let found = self.with(|tree| {
            let mut found = Vec::new();
            tree.visit(&prefix, behind.as_deref(), &mut |key, value| {
                found.push((key.to_vec(), Bytes::copy_from_slice(value)));
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(found)
        });
        let rows = self.now.iter();
        let expected = rows.filter(|(key, _)| {
            key.starts_with(&prefix) && behind.as_ref().is_none_or(|behind| *key > behind)
        });
        let expected: Vec<_> = expected
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn rows_of_covered_commits_leave() {
    let mut tree = Tree::new();
    for (key, generation) in [(b"a", 1), (b"b", 2), (b"c", 3), (b"a", 3)] {
        tree.apply(put(key, b"x"), generation).unwrap();
    }
    assert_eq!(tree.covered(None, 2), 2);
    let keys: Vec<&[u8]> = tree.chain_keys().collect();
    assert_eq!(keys, [b"a", b"c"]);
}

#[test]
fn a_row_of_an_upper_layer_hides_the_row_below() {
    for seed in 0..8 {
        let mut layers = Layers {
            tree: Tree::new(),
            store: Store::new(),
            now: Model::new(),
            chain: Model::new(),
            generation: 0,
            seeded: Seeded(seed),
        };
        for _ in 0..400 {
            match layers.random(20) {
                0 => layers.checkpoint(),
                1 => layers.take_local(),
                2 | 3 => layers.commit(),
                4 | 5 => layers.tree.pages().trim(0),
                _ => layers.change(),
            }
            layers.compare();
        }
    }
}
