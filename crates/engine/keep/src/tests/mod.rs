//! The local disk's content, and its use by the next start.

mod chunks;
mod local;
mod records;

use bytes::Bytes;
use vere_ports::storage::{Storage, StorageFile};

use crate::format::{
    Builder, Codec, HEAD_OCTETS, Keys, Kind, MailId, PackNumber, Place, VolumeId, VolumeKey,
};

fn keys() -> Keys {
    Keys::derive(&VolumeKey([7; 32]))
}

/// A chunk in a mail: the mail, the place, the head, the sealed frame.
fn sealed(content: &[u8]) -> (MailId, Place, Vec<u8>, Vec<u8>) {
    let mut builder = Builder::new(Kind::Data, VolumeId([3; 16]), 1, 0, PackNumber(1));
    let content = Bytes::copy_from_slice(content);
    let place = builder.push(Codec::Plain, content).unwrap();
    let sealed = builder.finish(Bytes::from_static(b"index"), &keys());
    let sealed = sealed.unwrap();
    let (head, frames) = sealed.body.split_at(HEAD_OCTETS);
    let frame = frames[..place.octets() as usize].to_vec();
    (sealed.mail_id(), place, head.to_vec(), frame)
}

fn names(storage: &impl Storage, prefix: &str) -> Vec<String> {
    let mut names = storage.list().unwrap();
    names.retain(|name| name.starts_with(prefix));
    names.sort_unstable();
    names
}

/// Octets of all files with a prefix.
fn octets(storage: &impl Storage, prefix: &str) -> u64 {
    let names = names(storage, prefix);
    let each = names.iter().map(|name| {
        let file = storage.open(name).unwrap();
        file.len().unwrap()
    });
    each.sum()
}
