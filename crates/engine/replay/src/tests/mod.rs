//! Journals against chains, both written down.

mod bases;
mod chains;
mod memory;
mod pending;

use vere_files::posix::ContentChange;
use vere_files::tree::Change;
use vere_keep::record::{Begun, Brought, Part, Won};
use vere_order::found::Found;
use vere_ports::files::Inode;

use crate::format::commit::{Record, RecordKind};
use crate::format::{Head, Index, Kind, MailId, PackNumber, VolumeId};

const WRITER: u16 = 3;
/// A sequence that the journal's writer had reserved.
const RESERVED: u64 = 100;

fn id(of: u8) -> MailId {
    MailId([of; 16])
}

fn won(of: u8) -> Won {
    Won {
        commit: id(of),
        generation: of.into(),
        uid_validity: 7,
        uid: u32::from(of) * 10,
    }
}

fn begun(of: u8, through: u64, exceptions: &[(u64, u64)]) -> Part {
    Part::Begun(Begun {
        commit: id(of),
        parent: id(of - 1),
        through,
        exceptions: exceptions.to_vec(),
    })
}

fn brought(of: u8, through: u64, exceptions: &[(u64, u64)]) -> Part {
    Part::Brought(Brought {
        won: won(of),
        through,
        exceptions: exceptions.to_vec(),
    })
}

fn reserved() -> Part {
    Part::Reserved {
        writer: WRITER,
        sequence: RESERVED,
        block: 5,
    }
}

fn row(key: &[u8], value: &[u8]) -> Part {
    Part::Row(Change {
        key: key.to_vec(),
        value: Some(value.to_vec()),
    })
}

fn cut(inode: u64) -> Part {
    Part::Content(ContentChange::Cut {
        inode: Inode(inode),
        from: 0,
        to: 9,
    })
}

/// A commit of another writer, behind the commit of the number before.
fn found(of: u8) -> Found {
    found_of(of, 9, 1, &[])
}

fn found_of(of: u8, writer: u16, sequence: u64, merged: &[u8]) -> Found {
    Found {
        uid: u32::from(of) * 10,
        head: Head {
            kind: Kind::Commit,
            volume: VolumeId([1; 16]),
            mail: id(of),
            epoch: 1,
            group: 0,
            frames: 1,
            last_sealed_len: 20,
            pack: PackNumber::new(writer, sequence).unwrap(),
        },
        octets: 100,
        record: Record {
            kind: RecordKind::Change,
            lead_epoch: 1,
            generation: of.into(),
            parent: id(of - 1),
            time: 0,
            checkpoint: None,
            merged: merged.iter().map(|of| id(*of)).collect(),
            ancestors: Vec::new(),
            rows: Vec::new(),
            index: Index::default(),
        },
    }
}
