//! A tree with servers of its own: reads fetch their octets, uploads store chunks, a remount replays a journal.

use std::collections::HashMap;

use bytes::Bytes;
use vere_ports::files::{Call, Caller, Errno, FileTime, Handle, Inode, OpenFlags, Reply};

use super::super::{ContentChange, Files, Numbers, Outcome, UnsentRange, root_folder};
use crate::content::{Piece, Source};
use crate::format::PackNumber;
use crate::pages::tests::Store;
use crate::rows::{Extent, Key};
use crate::tree::{Change, Tree};

pub(super) const ROOT: Inode = Inode::ROOT;
pub(super) const SUPERUSER: Caller = Caller { uid: 0, gid: 0 };
pub(super) const USER: Caller = Caller {
    uid: 1000,
    gid: 100,
};
pub(super) const BOTH: OpenFlags = OpenFlags {
    read: true,
    write: true,
    truncate: false,
    append: false,
    sync: false,
};

/// What a call left for the journal, at the call's time.
type Record = (Vec<ContentChange>, Vec<Change>, FileTime);

pub(super) struct Rig {
    pub(super) files: Files,
    pub(super) now: FileTime,
    pub(super) caller: Caller,
    chunks: HashMap<u64, Vec<u8>>,
    journal: Vec<Record>,
    next_pack: u64,
    /// Where pages lie; with pages, memory holds those only that were read ahead of a call.
    pages: Option<Store>,
}

impl Rig {
    pub(super) fn new() -> Self {
        let now = FileTime {
            seconds: 1_000_000,
            nanoseconds: 0,
        };
        let (key, value) = root_folder(SUPERUSER, 0o755, now);
        let mut files = Files::new(Tree::new(), Numbers::new(1, 0, 1 << 20));
        files.tree_mut().put(&key, value).unwrap();
        let mut rig = Self {
            files,
            now,
            caller: SUPERUSER,
            chunks: HashMap::new(),
            journal: Vec::new(),
            next_pack: 1,
            pages: None,
        };
        rig.write_journal();
        rig
    }

    fn write_journal(&mut self) {
        let contents = self.files.take_content_changes();
        let rows = self.files.tree_mut().take_changes();
        if !contents.is_empty() || !rows.is_empty() {
            self.journal.push((contents, rows, self.now));
        }
    }

    /// A tree whose rows go into pages, a row in each, by [`Rig::checkpoint`].
    pub(super) fn with_pages() -> Self {
        let mut store = Store::new();
        store.leaves = 1;
        let pages = Some(store);
        Self {
            pages,
            ..Self::new()
        }
    }

    /// All rows go into the chain, and from there into pages.
    pub(super) fn checkpoint(&mut self) {
        let Some(store) = &mut self.pages else {
            return;
        };
        let tree = self.files.tree_mut();
        let keys: Vec<Vec<u8>> = tree.local_keys().map(<[u8]>::to_vec).collect();
        for key in keys {
            let value = tree.get(&key).unwrap().map(Vec::from);
            tree.apply(Change { key, value }, 1).unwrap();
        }
        assert_eq!(tree.local_keys().count(), 0);
        let changes = tree.cover().into_iter().collect();
        store.checkpoint(tree.pages_mut(), changes);
        let root = tree.pages().root().copied();
        assert_eq!(tree.covered(root, 1), 0);
        assert_eq!(tree.chain_keys().count(), 0);
    }

    /// Brings the pages that were missed. Returns whether any was missed.
    fn bring(&mut self) -> bool {
        let missing = self.files.tree().take_missing();
        for at in &missing {
            let store = self.pages.as_mut().unwrap();
            store.bring(self.files.tree().pages(), at);
        }
        !missing.is_empty()
    }

    /// Has memory hold the pages that a call needs, and no others.
    fn touch(&mut self, call: &Call) {
        self.files.tree().pages().trim(0);
        while !self.files.touch(call) {
            assert!(self.bring());
        }
    }

    pub(super) fn settle_atimes(&mut self) {
        loop {
            let _ = self.files.tree().keys(&[]);
            if !self.bring() {
                break;
            }
        }
        self.files.settle_atimes().unwrap();
    }

    pub(super) fn tick(&mut self) {
        self.now.nanoseconds += 1;
    }

    pub(super) fn outcome(&mut self, call: Call) -> Outcome {
        self.tick();
        self.touch(&call);
        let name = format!("{call:?}");
        let outcome = self.files.call(self.caller, call, self.now);
        assert!(self.files.tree().has_all(), "{name} misses a page");
        self.write_journal();
        outcome
    }

    pub(super) fn call(&mut self, call: Call) -> Result<Reply, Errno> {
        match self.outcome(call) {
            Outcome::Reply(reply) => reply,
            Outcome::Sync { reply, .. } => Ok(reply),
            Outcome::Read(plan) => {
                let octets = plan.pieces.iter().flat_map(|piece| self.octets(*piece));
                Ok(Reply::Octets(octets.collect::<Vec<_>>().into()))
            }
        }
    }

    pub(super) fn octets(&self, piece: Piece) -> Vec<u8> {
        let length = piece.length as usize;
        match piece.source {
            Source::Zero => vec![0; length],
            Source::Chunk { extent, skip } => {
                self.chunks[&extent.pack.0][skip as usize..][..length].to_vec()
            }
            Source::Unsent { id, skip } => {
                let octets = self.files.unsent().get(id, skip, piece.length);
                octets.expect("octets in memory").to_vec()
            }
        }
    }

    /// A chunk on the servers, of the first octets of a range.
    pub(super) fn chunk(&mut self, range: &UnsentRange) -> Extent {
        let pack = self.next_pack;
        self.next_pack += 1;
        let octets = range.pieces.iter().flat_map(|piece| self.octets(*piece));
        let octets: Vec<u8> = octets.collect();
        assert_eq!(octets.len() as u64, range.length);
        self.chunks.insert(pack, octets);
        let sealed = range.length as u32 + 17;
        Extent {
            pack: PackNumber(pack),
            at: 68,
            sealed_len: sealed,
        }
    }

    pub(super) fn stored(&mut self, inode: Inode, range: UnsentRange, extent: Extent) {
        let UnsentRange { offset, pieces, .. } = range;
        self.files.tree().pages().trim(0);
        loop {
            self.files.touch_stored(inode);
            if !self.bring() {
                break;
            }
        }
        self.files.stored(inode, offset, &pieces, extent).unwrap();
        self.write_journal();
    }

    pub(super) fn upload(&mut self, inode: Inode) {
        for range in self.files.unsent_of(inode) {
            let extent = self.chunk(&range);
            self.stored(inode, range, extent);
        }
    }

    pub(super) fn upload_all(&mut self) {
        let dirty: Vec<Inode> = self.files.dirty().map(|file| file.inode).collect();
        for inode in dirty {
            self.upload(inode);
        }
        assert_eq!(self.files.dirty().count(), 0);
    }

    /// A kill of the client and a mount from the journal.
    pub(super) fn remount(&mut self) {
        let block = self.files.numbers().next_block();
        let numbers = Numbers::new(1, block, 1 << 20);
        self.files = Files::new(Tree::new(), numbers);
        for (contents, rows, at) in &self.journal {
            for change in contents {
                self.files.replay(change.clone(), *at).unwrap();
            }
            for change in rows {
                // Rows of extents follow from the changes of content.
                if !matches!(Key::decode(&change.key), Ok(Key::Extents { .. })) {
                    self.files.replay_row(change.clone()).unwrap();
                }
            }
        }
        self.files.end_replay().unwrap();
        self.files.end_nameless().unwrap();
        self.write_journal();
    }

    pub(super) fn folder(&mut self, parent: Inode, name: &str) -> Inode {
        let call = Call::MakeFolder {
            parent,
            name: name.into(),
            mode: 0o755,
        };
        entry(self.call(call).unwrap())
    }

    pub(super) fn file(&mut self, parent: Inode, name: &str) -> (Inode, Handle) {
        let call = Call::Create {
            parent,
            name: name.into(),
            mode: 0o644,
            flags: BOTH,
        };
        let Reply::Created(attributes, handle) = self.call(call).unwrap() else {
            panic!("no created file");
        };
        (attributes.inode, handle)
    }

    pub(super) fn open(&mut self, inode: Inode, flags: OpenFlags) -> Handle {
        let Ok(Reply::Opened { handle, .. }) = self.call(Call::Open { inode, flags }) else {
            panic!("no open file");
        };
        handle
    }

    pub(super) fn write(&mut self, handle: Handle, offset: u64, data: &[u8]) {
        let data = Bytes::copy_from_slice(data);
        let call = Call::Write {
            handle,
            offset,
            data,
            kill_set_id: false,
        };
        self.call(call).unwrap();
    }

    pub(super) fn read(&mut self, handle: Handle, offset: u64, size: u32) -> Bytes {
        let Reply::Octets(octets) = self
            .call(Call::Read {
                handle,
                offset,
                size,
            })
            .unwrap()
        else {
            panic!("no octets");
        };
        octets
    }

    pub(super) fn attributes(&mut self, inode: Inode) -> vere_ports::files::Attributes {
        let Reply::Attributes(facts) = self.call(Call::GetAttributes { inode }).unwrap() else {
            panic!("no facts");
        };
        facts
    }
}

pub(super) fn entry(reply: Reply) -> Inode {
    match reply {
        Reply::Entry(facts) => facts.inode,
        other => panic!("no entry: {other:?}"),
    }
}
