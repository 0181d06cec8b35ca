//! Unsent octets on the way to the servers.

use vere_ports::files::{Call, Inode};

use super::rig::{ROOT, Rig};
use crate::content::{JOINED_OCTETS_MAX, load};
use crate::rows::extents_prefix;

fn stored_size(rig: &mut Rig, inode: Inode) -> (u64, u64) {
    let row = rig.files.sent_inode_row(inode).unwrap().unwrap();
    (row.size, row.generation)
}

fn stored_octets(rig: &mut Rig, inode: Inode) -> Vec<u8> {
    let (size, _) = stored_size(rig, inode);
    let content = load(rig.files.tree(), inode, size).unwrap();
    let pieces = content.plan(0, size);
    pieces
        .into_iter()
        .flat_map(|piece| rig.octets(piece))
        .collect()
}

#[test]
fn the_servers_have_the_old_content_until_all_is_sent() {
    let mut rig = Rig::new();
    let (file, handle) = rig.file(ROOT, "a");
    rig.write(handle, 0, b"old content");
    assert_eq!(stored_size(&mut rig, file), (0, 0));
    assert_eq!(rig.attributes(file).size, 11);
    rig.upload_all();
    assert_eq!(stored_size(&mut rig, file), (11, 1));
    rig.write(handle, 0, b"new");
    rig.write(handle, 20, b"end");
    let changes = rig.files.tree_mut().take_changes();
    assert!(
        changes
            .iter()
            .all(|change| !change.key.starts_with(&extents_prefix(file)))
    );
    assert_eq!(stored_octets(&mut rig, file), b"old content");
    let mut ranges = rig.files.unsent_of(file);
    assert_eq!(ranges.len(), 2);
    let last = ranges.pop().unwrap();
    let extent = rig.chunk(&last);
    rig.stored(file, last, extent);
    assert_eq!(stored_octets(&mut rig, file), b"old content");
    assert_eq!(rig.files.unsent_octets_of(file), 3);
    rig.upload_all();
    assert_eq!(
        stored_octets(&mut rig, file),
        b"new content\0\0\0\0\0\0\0\0\0end"
    );
    assert_eq!(stored_size(&mut rig, file), (23, 2));
    assert_eq!(rig.files.unsent().octets(), 0);
}

#[test]
fn octets_written_during_an_upload_stay_unsent() {
    let mut rig = Rig::new();
    let (file, handle) = rig.file(ROOT, "a");
    rig.write(handle, 0, &[1; 1000]);
    let range = rig.files.unsent_of(file).remove(0);
    let extent = rig.chunk(&range);
    rig.write(handle, 100, &[2; 10]);
    rig.write(handle, 1000, &[3; 10]);
    rig.stored(file, range, extent);
    let unsent = rig.files.unsent_of(file);
    let places: Vec<_> = unsent
        .iter()
        .map(|range| (range.offset, range.length))
        .collect();
    assert_eq!(places, [(100, 10), (1000, 10)]);
    rig.upload_all();
    rig.call(Call::Release { handle }).unwrap();
    let expected = [&[1; 100][..], &[2; 10], &[1; 890], &[3; 10]].concat();
    assert_eq!(stored_octets(&mut rig, file), expected);
}

#[test]
fn short_writes_in_sequence_share_buffers() {
    let mut rig = Rig::new();
    let (file, handle) = rig.file(ROOT, "a");
    for at in 0..1024 {
        rig.write(handle, at * 1000, &[7; 1000]);
    }
    let pieces = rig.files.unsent_of(file).remove(0).pieces;
    let most = 1_024_000 / (JOINED_OCTETS_MAX - 1000) + 1;
    assert!(pieces.len() <= most, "{} pieces", pieces.len());
    assert_eq!(rig.files.unsent().octets_in_memory(), 1_024_000);
    assert_eq!(rig.read(handle, 0, 2_000_000), vec![7; 1_024_000]);
}

#[test]
fn dirty_files_come_in_the_order_of_their_first_write() {
    let mut rig = Rig::new();
    let (a, first) = rig.file(ROOT, "a");
    let (b, second) = rig.file(ROOT, "b");
    rig.write(second, 0, b"1");
    let since = rig.now;
    rig.write(first, 0, b"2");
    rig.write(second, 50, b"3");
    let dirty: Vec<_> = rig.files.dirty().collect();
    assert_eq!(
        (dirty[0].inode, dirty[0].octets, dirty[0].since),
        (b, 2, since)
    );
    assert_eq!(dirty[1].inode, a);
    rig.upload(b);
    rig.write(second, 0, b"4");
    let order: Vec<_> = rig.files.dirty().map(|file| file.inode).collect();
    assert_eq!(order, [a, b]);
}

#[test]
fn spilled_octets_keep_their_name() {
    let mut rig = Rig::new();
    let (file, handle) = rig.file(ROOT, "a");
    rig.write(handle, 0, &[7; 100]);
    let pieces = rig.files.unsent_of(file).remove(0).pieces;
    let crate::content::Source::Unsent { id, .. } = pieces[0].source else {
        panic!("no unsent piece");
    };
    rig.files.unsent_mut().spill(id);
    let unsent = rig.files.unsent();
    assert_eq!((unsent.octets(), unsent.octets_in_memory()), (100, 0));
    assert!(unsent.get(id, 0, 100).is_none() && unsent.contains(id));
    // A write that goes on needs a buffer of its own, since the octets before are elsewhere.
    rig.write(handle, 100, &[8; 100]);
    assert_eq!(rig.files.unsent_of(file).remove(0).pieces.len(), 2);
    rig.call(Call::Unlink {
        parent: ROOT,
        name: b"a".to_vec(),
    })
    .unwrap();
    rig.call(Call::Release { handle }).unwrap();
    rig.call(Call::Forget {
        inode: file,
        lookups: 1,
    })
    .unwrap();
    let unsent = rig.files.unsent();
    assert_eq!((unsent.octets(), unsent.octets_in_memory()), (0, 0));
}
