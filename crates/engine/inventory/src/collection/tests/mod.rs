//! Decisions of a collection, each by itself.

mod pasts;
mod plans;
mod removals;
mod walks;

use crate::format::{Head, Kind, MailCopy, MailId, PackNumber, Subject, VolumeId};

fn id(number: u8) -> MailId {
    match number {
        0 => MailId::NONE,
        _ => MailId([number; 16]),
    }
}

fn copy(account: u16, mailbox: u16, uid: u32) -> MailCopy {
    MailCopy {
        account,
        mailbox,
        uid,
    }
}

/// A subject of a mail with this id.
fn subject(kind: Kind, mail: u8, parent: Option<u8>, generation: Option<u64>) -> Subject {
    let head = Head {
        kind,
        volume: VolumeId([3; 16]),
        mail: id(mail),
        epoch: 1,
        group: 1,
        frames: 0,
        pack: PackNumber(mail.into()),
        last_sealed_len: 0,
    };
    Subject::of(&head, parent.map(id), generation)
}

/// A commit with its number as the generation.
fn commit(number: u8) -> Subject {
    subject(Kind::Commit, number, Some(number - 1), Some(number.into()))
}
