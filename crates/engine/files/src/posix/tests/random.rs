//! Random calls on the tree and on the model: every reply and the final trees are equal, through uploads that lag behind and
//! remounts from the journal.

use bytes::Bytes;
use proptest::prelude::*;
use vere_ports::files::{
    Allocate, Call, Changes, Entry, Errno, FileKind, FileTime, Handle, Inode, OpenFlags,
    RenameMode, Reply, SetTime, XattrMode,
};

use super::super::UnsentRange;
use super::model::Model;
use super::rig::{BOTH, ROOT, Rig, SUPERUSER, USER};
use crate::rows::Extent;

/// Parameters of an operation; which of them matter depends on the first.
type Op = (u8, u8, u8, u8, u16, u16);

const NAMES: [&[u8]; 4] = [b"a", b"b", b"c", b"dd"];

struct Run {
    rig: Rig,
    model: Model,
    /// All inodes ever seen, and the open files.
    inodes: Vec<Inode>,
    handles: Vec<Handle>,
    /// Chunks that the servers have and the tree does not know yet.
    late: Vec<(Inode, UnsentRange, Extent)>,
    serial: u8,
}

fn name(at: u8) -> Vec<u8> {
    NAMES[usize::from(at) % NAMES.len()].to_vec()
}

fn flags(at: u8) -> OpenFlags {
    OpenFlags {
        read: !at.is_multiple_of(5),
        write: !at.is_multiple_of(3),
        truncate: at.is_multiple_of(7),
        append: at.is_multiple_of(11),
        sync: at.is_multiple_of(13),
    }
}

impl Run {
    fn new(rig: Rig) -> Self {
        let model = Model::new(rig.now);
        Self {
            rig,
            model,
            inodes: vec![ROOT],
            handles: Vec::new(),
            late: Vec::new(),
            serial: 0,
        }
    }

    fn inode(&self, at: u8) -> Inode {
        self.inodes[usize::from(at) % self.inodes.len()]
    }

    fn handle(&self, at: u8) -> Handle {
        let some = self
            .handles
            .get(usize::from(at) % self.handles.len().max(1));
        some.copied().unwrap_or(Handle(999))
    }

    fn data(&mut self, length: u16) -> Bytes {
        self.serial = self.serial.wrapping_add(1);
        let serial = self.serial;
        let octet = |at: usize| serial.wrapping_mul(31).wrapping_add((at % 251) as u8) | 1;
        (0..usize::from(length))
            .map(octet)
            .collect::<Vec<u8>>()
            .into()
    }

    fn step(&mut self, op: Op) {
        let (what, a, b, c, x, y) = op;
        self.rig.caller = if a % 4 == 0 { USER } else { SUPERUSER };
        let call = match what % 40 {
            0..=24 => self.call_on_names(op),
            25..=29 => {
                // Writes are short, long, or far behind the end.
                let length = if c % 8 == 0 { y } else { y % 300 };
                let data = self.data(length);
                let handle = self.handle(a);
                let offset = u64::from(x) * if b % 8 == 0 { 5 } else { 1 } % 200_000;
                Call::Write {
                    handle,
                    offset,
                    data,
                    kill_set_id: b % 3 == 0,
                }
            }
            30 | 31 => Call::Read {
                handle: self.handle(a),
                offset: u64::from(x),
                size: u32::from(y) * 4,
            },
            32 => Call::Release {
                handle: self.handle(a),
            },
            33 => Call::Allocate {
                handle: self.handle(a),
                offset: u64::from(x),
                length: u64::from(y),
                mode: [
                    Allocate::Plain,
                    Allocate::KeepSize,
                    Allocate::PunchHole,
                    Allocate::ZeroRange {
                        keep_size: c % 2 == 0,
                    },
                ][usize::from(b) % 4],
            },
            34 => Call::CopyRange {
                from: self.handle(a),
                from_offset: u64::from(x),
                to: self.handle(b),
                to_offset: u64::from(y),
                length: u64::from(c) * 200,
            },
            35 => Call::Forget {
                inode: self.inode(a),
                lookups: u64::MAX,
            },
            36 => return self.list(self.inode(a), usize::from(b) % 5 + 1),
            37 => return self.begin_upload(a, usize::from(b)),
            38 => return self.end_upload(a),
            _ => return self.rare(b),
        };
        self.both(call);
    }

    fn call_on_names(&mut self, (what, a, b, c, x, y): Op) -> Call {
        let (parent, name, inode) = (self.inode(a), name(b), self.inode(c));
        match what % 40 {
            0 => Call::Lookup { parent, name },
            1 => Call::GetAttributes { inode },
            2 | 3 => {
                let changes = self.changes((b, x, y));
                Call::SetAttributes { inode, changes }
            }
            4 => {
                let kinds = [
                    FileKind::File,
                    FileKind::Fifo,
                    FileKind::Socket,
                    FileKind::CharDevice,
                ];
                let kind = kinds[usize::from(c) % 4];
                let device = if kind == FileKind::CharDevice {
                    u32::from(x)
                } else {
                    0
                };
                Call::MakeNode {
                    parent,
                    name,
                    kind,
                    mode: y & 0o7777,
                    device,
                }
            }
            5..=7 => Call::MakeFolder {
                parent,
                name,
                mode: y & 0o7777,
            },
            8 => Call::Symlink {
                parent,
                name,
                target: x.to_string().into(),
            },
            9 => Call::ReadLink { inode },
            10 | 11 => Call::Link {
                inode,
                parent,
                name,
            },
            12 | 13 => Call::Unlink { parent, name },
            14 => Call::RemoveFolder { parent, name },
            _ => self.call_on_opens((what, a, b, c, x, y)),
        }
    }

    fn call_on_opens(&mut self, (what, a, b, c, x, y): Op) -> Call {
        let (parent, name, inode) = (self.inode(a), name(b), self.inode(c));
        match what % 40 {
            15..=17 => Call::Rename {
                parent,
                name,
                new_parent: inode,
                new_name: self::name((x % 256) as u8),
                mode: [
                    RenameMode::Replace,
                    RenameMode::NoReplace,
                    RenameMode::Exchange,
                ][usize::from(y) % 3],
            },
            18 => Call::Open {
                inode,
                flags: flags(b),
            },
            19 => Call::Open { inode, flags: BOTH },
            20..=22 => Call::Create {
                parent,
                name,
                mode: y & 0o7777,
                flags: BOTH,
            },
            23 => {
                let mode = [XattrMode::Any, XattrMode::Create, XattrMode::Replace];
                let mode = mode[usize::from(x) % 3];
                let name = [b"user.", &name[..]].concat();
                Call::SetXattr {
                    inode,
                    name,
                    value: vec![b],
                    mode,
                }
            }
            _ => match x % 3 {
                0 => Call::GetXattr {
                    inode,
                    name: [b"user.", &name[..]].concat(),
                },
                1 => Call::ListXattrs { inode },
                _ => Call::RemoveXattr {
                    inode,
                    name: [b"user.", &name[..]].concat(),
                },
            },
        }
    }

    fn changes(&self, (which, x, y): (u8, u16, u16)) -> Changes {
        let time = FileTime {
            seconds: i64::from(x) * 40,
            nanoseconds: u32::from(y),
        };
        let bit = |bit: u8| which & (1 << bit) != 0;
        Changes {
            mode: bit(0).then_some(x & 0o7777),
            uid: bit(1).then_some(u32::from(y)),
            gid: bit(2).then_some(u32::from(x)),
            size: bit(3).then_some(u64::from(x) * 2),
            atime: bit(4).then_some(SetTime::To(time)),
            mtime: bit(5).then_some(if bit(6) {
                SetTime::Now
            } else {
                SetTime::To(time)
            }),
            kill_set_id: bit(7),
        }
    }

    /// Calls the tree and the model.
    fn both(&mut self, call: Call) {
        let mut reply = self.rig.call(call.clone());
        let (mut fresh, mut handle) = (None, None);
        match &mut reply {
            Ok(Reply::Entry(facts) | Reply::Attributes(facts)) => {
                facts.allocated = 0;
                fresh = Some(facts.inode);
            }
            Ok(Reply::Created(facts, opened)) => {
                facts.allocated = 0;
                fresh = Some(facts.inode);
                handle = Some(*opened);
            }
            Ok(Reply::Opened { handle: opened, .. }) => handle = Some(*opened),
            _ => {}
        }
        let now = self.rig.now;
        let expected = self.model.call(self.rig.caller, &call, now, fresh, handle);
        assert_eq!(reply, expected, "{call:?}");
        if let Some(inode) = fresh.filter(|inode| !self.inodes.contains(inode)) {
            self.inodes.push(inode);
        }
        self.handles.extend(handle);
        if let Call::Release { handle } = call {
            self.handles.retain(|other| *other != handle);
        }
    }

    /// Lists a folder through a host that passes on `taken` entries of each reply.
    fn list(&mut self, inode: Inode, taken: usize) {
        let opened = self.rig.call(Call::OpenFolder { inode });
        let Some(node) = self.model.nodes.get_mut(&inode) else {
            assert_eq!(opened, Err(Errno::Stale));
            return;
        };
        if node.facts.kind != FileKind::Folder {
            assert_eq!(opened, Err(Errno::NotDir));
            return;
        }
        let Ok(Reply::Opened { handle, .. }) = opened else {
            panic!("{opened:?}");
        };
        let mut names = Vec::new();
        let mut cursor = 0;
        loop {
            let with_attributes = false;
            let reply = self.rig.call(Call::ReadFolder {
                handle,
                cursor,
                with_attributes,
            });
            node.accessed(self.rig.now);
            let Ok(Reply::Entries(entries)) = reply else {
                panic!("{reply:?}");
            };
            let Some(last) = entries.iter().take(taken).next_back() else {
                break;
            };
            cursor = last.cursor;
            let name = |entry: Entry| (entry.name, entry.inode);
            names.extend(entries.into_iter().take(taken).map(name));
        }
        self.rig.call(Call::ReleaseFolder { handle }).unwrap();
        if node.facts.links == 0 {
            assert!(names.is_empty());
            return;
        }
        let expected = node
            .entries
            .iter()
            .map(|(name, inode)| (name.clone(), *inode));
        assert_eq!(names[2..], expected.collect::<Vec<_>>());
    }

    /// Sends a dirty file, or one of the file's ranges.
    fn begin_upload(&mut self, which: u8, range: usize) {
        let dirty: Vec<Inode> = self.rig.files.dirty().map(|file| file.inode).collect();
        let Some(inode) = dirty.get(usize::from(which) % dirty.len().max(1)) else {
            return;
        };
        let mut ranges = self.rig.files.unsent_of(*inode);
        if range.is_multiple_of(3) {
            let range = ranges.swap_remove(range % ranges.len());
            ranges = vec![range];
        }
        for range in ranges {
            let extent = self.rig.chunk(&range);
            self.late.push((*inode, range, extent));
        }
    }

    fn end_upload(&mut self, which: u8) {
        if !self.late.is_empty() {
            let at = usize::from(which) % self.late.len();
            let (inode, range, extent) = self.late.swap_remove(at);
            self.rig.stored(inode, range, extent);
        }
    }

    fn rare(&mut self, which: u8) {
        match which % 8 {
            0 => self.remount(),
            1 => self.rig.now.seconds += 90_000,
            2 => self.rig.upload_all(),
            3 | 4 => self.rig.checkpoint(),
            _ => {}
        }
        self.compare();
    }

    fn remount(&mut self) {
        self.rig.settle_atimes();
        // The tick makes the journal take the times.
        let _ = self.rig.call(Call::Statistics);
        self.rig.remount();
        self.handles.clear();
        for (_, (inode, _)) in std::mem::take(&mut self.model.handles) {
            self.both(Call::Forget { inode, lookups: 0 });
            self.model.closed(inode);
        }
        let all: Vec<Inode> = self.model.nodes.keys().copied().collect();
        for inode in all {
            self.both(Call::Forget { inode, lookups: 0 });
        }
    }

    /// Compares all facts and all octets.
    fn compare(&mut self) {
        let mut all: Vec<Inode> = self.model.nodes.keys().copied().collect();
        all.sort();
        for inode in all {
            let mut facts = self.rig.attributes(inode);
            facts.allocated = 0;
            let node = &self.model.nodes[&inode];
            assert_eq!(facts, node.facts);
            if node.facts.kind != FileKind::File {
                continue;
            }
            let data = node.data.clone();
            let handle = self.rig.open(inode, BOTH);
            let read = self.rig.read(handle, 0, u32::MAX);
            self.rig.call(Call::Release { handle }).unwrap();
            assert!(
                read == data,
                "{inode:?}: {} and {} octets",
                read.len(),
                data.len()
            );
            let now = FileTime {
                nanoseconds: self.rig.now.nanoseconds - 1,
                ..self.rig.now
            };
            if !data.is_empty() {
                self.model.nodes.get_mut(&inode).unwrap().accessed(now);
            }
            self.model.end_if_unused(inode);
        }
    }
}

fn ops(longest: usize) -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(any::<Op>(), 1..longest)
}

fn run(rig: Rig, ops: Vec<Op>) {
    let mut run = Run::new(rig);
    for op in ops {
        run.step(op);
    }
    run.compare();
    run.rig.upload_all();
    run.compare();
    run.rig.checkpoint();
    run.compare();
    run.remount();
    run.compare();
    // The journal knows nothing of uploads.
    run.rig.upload_all();
    assert!(run.rig.files.take_damage().is_empty());
    assert_eq!(run.rig.files.unsent().octets(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_tree_answers_as_the_model_does(ops in ops(400)) {
        run(Rig::new(), ops);
    }

    /// Every row lies in a page of its own, and memory holds those pages only that were read ahead of the call.
    #[test]
    fn a_call_reads_what_was_read_ahead_of_it(ops in ops(400)) {
        run(Rig::with_pages(), ops);
    }
}
