//! The keys of rows: an octet for the kind, then the unique part, most significant octet first, so that
//! rows sort by their subjects.

use vere_ports::mail_meta::Partition;

use crate::model::{MailboxId, MailboxName, ModSeq, OperationId, Uid};

/// Account: the row of the account itself.
pub(crate) const ACCOUNT_HEAD: &[u8] = &[0x01];
/// Account: the mailboxes, by name.
pub(crate) const MAILBOXES: &[u8] = &[0x02];
/// Account: the names subscribed to.
pub(crate) const SUBSCRIPTIONS: &[u8] = &[0x03];
/// Account: deleted mailboxes whose partition is not empty yet.
pub(crate) const PURGES: &[u8] = &[0x04];
/// Account: deleted mailboxes whose messages are kept.
pub(crate) const ASIDE: &[u8] = &[0x07];
/// Account, a hint: the body with a given content. In [`EVERYBODY`] if all accounts share bodies.
pub(crate) const CONTENTS: u8 = 0x05;
/// Account, a hint: the thread that a message id belongs to.
pub(crate) const THREADS: u8 = 0x06;

/// The partition of a mailbox that never exists, with hints only: ids of mailboxes are positions in the
/// log, which begins behind this number.
pub(crate) const EVERYBODY: Partition = Partition::Mailbox(0);

/// Whether account rows of this kind are hints.
pub(crate) fn is_hint(kind: u8) -> bool {
    matches!(kind, CONTENTS | THREADS)
}

/// Mailbox: the owning account.
pub(crate) const OWNER: &[u8] = &[0x01];
/// Mailbox: the counters.
pub(crate) const HEAD: &[u8] = &[0x02];
/// Mailbox: the keywords, by bit.
pub(crate) const KEYWORDS: &[u8] = &[0x03];
/// Mailbox: the messages, by UID.
pub(crate) const MESSAGES: &[u8] = &[0x04];
/// Mailbox: the recipients' own fields, by UID.
const FIELDS: u8 = 0x05;
/// Mailbox: expunged messages, by mod-sequence.
pub(crate) const EXPUNGED: &[u8] = &[0x06];
/// Mailbox: the results of operations, by id.
const OPERATIONS: u8 = 0x07;
/// Mailbox: the ids of operations, in order.
const ORDER: u8 = 0x08;

/// Both: the position of the newest record that has all rows of the partition.
pub(crate) const SNAPSHOT: &[u8] = &[0x09];
/// Mailbox: expunged messages that are kept, by the position of the log at their change and the first UID.
pub(crate) const KEPT: &[u8] = &[0x0a];
/// The greatest kind.
const KIND_MAX: u8 = 0x0a;

/// The next kind of rows that are in the log.
pub(crate) fn next_kind(partition: &Partition, kind: u8) -> Option<u8> {
    let hint = |kind| matches!(partition, Partition::Account(_)) && is_hint(kind);
    let other = |kind| hint(kind) || SNAPSHOT.contains(&kind);
    (kind + 1..=KIND_MAX).find(|kind| !other(*kind))
}

fn key(kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + rest.len());
    key.push(kind);
    key.extend_from_slice(rest);
    key
}

pub(crate) fn mailbox(name: &MailboxName) -> Vec<u8> {
    key(MAILBOXES[0], name.as_str().as_bytes())
}

pub(crate) fn subscription(name: &MailboxName) -> Vec<u8> {
    key(SUBSCRIPTIONS[0], name.as_str().as_bytes())
}

pub(crate) fn purge(id: MailboxId) -> Vec<u8> {
    key(PURGES[0], &id.0.to_be_bytes())
}

pub(crate) fn aside(id: MailboxId) -> Vec<u8> {
    key(ASIDE[0], &id.0.to_be_bytes())
}

pub(crate) fn kept(at: u64, first: Uid) -> Vec<u8> {
    let rest = [&at.to_be_bytes()[..], &first.get().to_be_bytes()].concat();
    key(KEPT[0], &rest)
}

pub(crate) fn content(hash: &[u8; 16]) -> Vec<u8> {
    key(CONTENTS, hash)
}

pub(crate) fn thread(reference: u64) -> Vec<u8> {
    key(THREADS, &reference.to_be_bytes())
}

pub(crate) fn keyword(bit: u8) -> Vec<u8> {
    key(KEYWORDS[0], &[bit])
}

pub(crate) fn message(uid: Uid) -> Vec<u8> {
    key(MESSAGES[0], &uid.get().to_be_bytes())
}

pub(crate) fn fields(uid: Uid) -> Vec<u8> {
    key(FIELDS, &uid.get().to_be_bytes())
}

pub(crate) fn expunged(at: ModSeq) -> Vec<u8> {
    key(EXPUNGED[0], &at.0.to_be_bytes())
}

pub(crate) fn operation(id: OperationId) -> Vec<u8> {
    key(OPERATIONS, &id.0)
}

pub(crate) fn order(number: u64) -> Vec<u8> {
    key(ORDER, &number.to_be_bytes())
}

/// The UID in the key of a message.
pub(crate) fn uid_of(key: &[u8]) -> Option<Uid> {
    let number = key.get(1..)?.first_chunk()?;
    Uid::new(u32::from_be_bytes(*number))
}

/// The mod-sequence in the key of an expunged message.
pub(crate) fn mod_seq_of(key: &[u8]) -> Option<ModSeq> {
    let number = key.get(1..)?.first_chunk()?;
    Some(ModSeq(u64::from_be_bytes(*number)))
}

/// The position and the first UID in the key of kept messages.
pub(crate) fn kept_of(key: &[u8]) -> Option<(u64, Uid)> {
    let (at, uid) = key.get(1..)?.split_first_chunk()?;
    let uid = Uid::new(u32::from_be_bytes(*uid.first_chunk()?))?;
    Some((u64::from_be_bytes(*at), uid))
}

/// The mailbox in the key of a purge or of a deleted mailbox that is kept.
pub(crate) fn mailbox_of(key: &[u8]) -> Option<MailboxId> {
    let number = key.get(1..)?.first_chunk()?;
    Some(MailboxId(u64::from_be_bytes(*number)))
}

/// The name in the key of a mailbox or a subscription.
pub(crate) fn name_of(key: &[u8]) -> Option<MailboxName> {
    MailboxName::new(std::str::from_utf8(key.get(1..)?).ok()?).ok()
}
