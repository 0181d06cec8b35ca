//! Checks of volumes with faults.

mod compares;
mod fits;

use vere_ports::files::{FileKind, FileTime, Inode};

use crate::format::{MailCopy, MailId, PackNumber};
use crate::rows::{
    EntryRow, Extent, Home, InodeRow, Key, PackRow, ROOT_HOME, RowValue, Run, encode_entry,
    encode_extents, entry_key, extents_key, inode_key, inode_of,
};
use crate::tree::Tree;

/// The home of the folder `/d`.
const HOME: Home = 77;

fn folder() -> Inode {
    inode_of(ROOT_HOME, 2)
}

/// The file `/d/f`, with a chunk in pack 5.
fn file() -> Inode {
    inode_of(HOME, 1)
}

/// An open file without a name.
fn unnamed() -> Inode {
    inode_of(HOME, 2)
}

fn inode(kind: FileKind, links: u32, home: Home, parent: Inode) -> InodeRow {
    let time = FileTime {
        seconds: 1,
        nanoseconds: 0,
    };
    InodeRow {
        kind,
        mode: 0o644,
        links,
        uid: 0,
        gid: 0,
        size: 0,
        home_or_device: home,
        parent: parent.0,
        generation: 1,
        atime: time,
        mtime: time,
        ctime: time,
        btime: time,
        target: Vec::new(),
    }
}

fn put_inode(tree: &mut Tree, number: Inode, row: &InodeRow) {
    tree.put(&inode_key(number), row.encode()).unwrap();
}

fn put_entry(tree: &mut Tree, home: Home, name: &[u8], inode: Inode, kind: FileKind) {
    let entry = encode_entry(EntryRow { inode, kind });
    tree.put(&entry_key(home, name), entry).unwrap();
}

/// Octets of a file from an offset on, in a frame of a pack up to octet 168.
fn put_extents(tree: &mut Tree, inode: Inode, offset: u64, pack: u64) {
    let run = |length, pack| Run {
        length,
        skip: 0,
        extent: (pack != 0).then_some(Extent {
            pack: PackNumber(pack),
            at: 68,
            sealed_len: 96,
        }),
    };
    let runs = encode_extents(&[run(5, 0), run(10, pack)]);
    tree.put(&extents_key(inode, offset), runs).unwrap();
}

fn mail(number: u8) -> MailId {
    MailId([number; 16])
}

fn put_pack(tree: &mut Tree, pack: u64, octets: u32, copies: Vec<MailCopy>) {
    let row = PackRow {
        mail: mail(u8::try_from(pack).unwrap()),
        kind: 5,
        group: 1,
        octets,
        copies,
    };
    tree.put(&Key::Pack(pack).encode(), row.encode()).unwrap();
}

/// `/d/f`, and a file without a name: no fault.
fn tree() -> Tree {
    let mut tree = Tree::new();
    let root = inode(FileKind::Folder, 3, ROOT_HOME, Inode::ROOT);
    put_inode(&mut tree, Inode::ROOT, &root);
    put_entry(&mut tree, ROOT_HOME, b"d", folder(), FileKind::Folder);
    let below = inode(FileKind::Folder, 2, HOME, Inode::ROOT);
    put_inode(&mut tree, folder(), &below);
    put_entry(&mut tree, HOME, b"f", file(), FileKind::File);
    put_inode(&mut tree, file(), &inode(FileKind::File, 1, 0, Inode(0)));
    put_extents(&mut tree, file(), 0, 5);
    put_pack(&mut tree, 5, 168, Vec::new());
    let open = inode(FileKind::File, 0, 0, Inode(0));
    put_inode(&mut tree, unnamed(), &open);
    let key = Key::Unnamed {
        writer: 1,
        inode: unnamed(),
    };
    tree.put(&key.encode(), Vec::new()).unwrap();
    tree
}
