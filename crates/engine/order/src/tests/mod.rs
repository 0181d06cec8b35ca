//! The order of commits under several mounts and servers of many kinds.

mod chain;
mod copies;
mod found;
mod strays;

use bytes::Bytes;
use vere_keep::record::Won;
use vere_ports::mail_accounts::Listed;

use crate::chain::{Chain, Child, Next};
use crate::format::{Head, Kind, MailId, PackNumber, Subject, VolumeId};

/// UIDVALIDITY of the log.
const NUMBERS: u32 = 7;
/// The commit at the end of the chain: generation 3, UID 10, everything up to there inspected.
const HEAD: MailId = MailId([1; 16]);

fn id(number: u8) -> MailId {
    MailId([number; 16])
}

fn chain() -> Chain {
    Chain::new(won(1, 3, 10), 10)
}

fn won(number: u8, generation: u64, uid: u32) -> Won {
    Won {
        commit: id(number),
        generation,
        uid_validity: NUMBERS,
        uid,
    }
}

fn child(number: u8, parent: MailId) -> Option<Child> {
    Some(Child {
        id: id(number),
        parent,
        covers: 0,
    })
}

fn mail(number: u8) -> Bytes {
    Bytes::from(vec![number; 3])
}

fn head_of(number: u8, kind: Kind) -> Head {
    Head {
        kind,
        volume: VolumeId([9; 16]),
        mail: id(number),
        epoch: 1,
        group: 0,
        frames: 1,
        last_sealed_len: 100,
        pack: PackNumber(1),
    }
}

/// A mail of a kind in a listing of the log.
fn listed(uid: u32, number: u8, kind: Kind) -> Listed {
    let parent = (kind == Kind::Commit).then_some(HEAD);
    Listed {
        uid,
        size: 1_000,
        subject: Subject::of(&head_of(number, kind), parent, parent.map(|_| 4)).to_string(),
    }
}

fn commit(uid: u32, number: u8) -> Listed {
    listed(uid, number, Kind::Commit)
}

fn note(uid: u32) -> Listed {
    Listed {
        uid,
        size: 1,
        subject: format!("a mail of somebody, {uid}"),
    }
}

/// Sends a commit, and has the chain begin its APPEND.
fn begin(chain: &mut Chain, number: u8) {
    chain.send(id(number), mail(number));
    assert_eq!(chain.poll(), Some(Next::Append(id(number), mail(number))));
}

/// Answers the next listing of the chain.
fn list(chain: &mut Chain, from: u32, mails: &[Listed]) {
    assert_eq!(chain.poll(), Some(Next::List(from)));
    assert!(chain.listed(NUMBERS, mails.to_vec()));
}
