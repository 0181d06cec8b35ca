//! The rows of partitions: keys and encoded values. `docs/internals/store-log.md` draws the encoding.

mod codec;
mod kept;
pub(crate) mod keys;

use codec::{Reader, Writer};
pub(crate) use kept::{AsideRow, KEPT_ROW_MAX, KeptCount, KeptRow, Referring};

use crate::model::{BlobId, InternalDate, MailboxId, ModSeq, SpecialUse, SystemFlags, Uid};

/// The most UIDs in one value: as many messages as a mailbox may have.
const UIDS_MAX: usize = crate::limits::MESSAGES_MAX as usize;
/// The version of the rows.
const VERSION: u8 = 1;

/// The account's own row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AccountHead {
    /// The greatest UIDVALIDITY ever assigned.
    pub(crate) uid_validity: u32,
}

impl AccountHead {
    pub(crate) fn encode(&self) -> Vec<u8> {
        Writer::new(VERSION).u32(self.uid_validity).done()
    }

    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(octets, VERSION)?;
        Some(Self {
            uid_validity: reader.u32()?,
        })
    }
}

/// A mailbox in the list of its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MailboxRow {
    pub(crate) id: MailboxId,
    pub(crate) special_use: Option<SpecialUse>,
}

impl MailboxRow {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let use_ = SpecialUse::octet(self.special_use);
        Writer::new(VERSION).u8(use_).u64(self.id.0).done()
    }

    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(octets, VERSION)?;
        let special_use = SpecialUse::from_octet(reader.u8()?);
        Some(Self {
            id: MailboxId(reader.u64()?),
            special_use,
        })
    }
}

/// The counters of a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MailboxHead {
    pub(crate) uid_validity: u32,
    /// The UID of the next message.
    pub(crate) uid_next: Uid,
    /// The newest change.
    pub(crate) mod_seq: ModSeq,
    /// The history of expunged UIDs begins after this mod-sequence; earlier entries were dropped.
    pub(crate) floor: ModSeq,
    pub(crate) messages: u32,
    pub(crate) unseen: u32,
    pub(crate) deleted: u32,
    /// The first UID that no session has reported as `\Recent` yet.
    pub(crate) recent: Uid,
    /// Octets of all messages.
    pub(crate) octets: u64,
    /// The number of UIDs in the history of expunged messages.
    pub(crate) expunged: u32,
    /// The range of numbers of remembered operations: the oldest and the next.
    pub(crate) operations: (u64, u64),
    /// Expunged messages that are kept. A program without kept messages leaves the number unknown.
    pub(crate) kept: Option<KeptCount>,
}

impl MailboxHead {
    pub(crate) fn new(uid_validity: u32) -> Self {
        Self {
            uid_validity,
            uid_next: Uid::FIRST,
            mod_seq: ModSeq(1),
            floor: ModSeq(1),
            messages: 0,
            unseen: 0,
            deleted: 0,
            recent: Uid::FIRST,
            octets: 0,
            expunged: 0,
            operations: (0, 0),
            kept: Some(KeptCount::default()),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let writer = Writer::new(VERSION)
            .u32(self.uid_validity)
            .u32(self.uid_next.get())
            .u64(self.mod_seq.0)
            .u64(self.floor.0)
            .u32(self.messages)
            .u32(self.unseen)
            .u32(self.deleted)
            .u32(self.recent.get())
            .u64(self.octets)
            .u32(self.expunged)
            .u64(self.operations.0)
            .u64(self.operations.1);
        match self.kept {
            None => writer.done(),
            // Older programs ignore octets behind the fields that they know.
            Some(kept) => writer.u32(kept.messages).u64(kept.octets).done(),
        }
    }

    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(octets, VERSION)?;
        Some(Self {
            uid_validity: reader.u32()?,
            uid_next: Uid::new(reader.u32()?)?,
            mod_seq: ModSeq(reader.u64()?),
            floor: ModSeq(reader.u64()?),
            messages: reader.u32()?,
            unseen: reader.u32()?,
            deleted: reader.u32()?,
            recent: Uid::new(reader.u32()?)?,
            octets: reader.u64()?,
            expunged: reader.u32()?,
            operations: (reader.u64()?, reader.u64()?),
            kept: match reader.is_empty() {
                true => None,
                false => Some(KeptCount {
                    messages: reader.u32()?,
                    octets: reader.u64()?,
                }),
            },
        })
    }

    /// Adds a message with these flags to the counters.
    pub(crate) fn count_in(&mut self, flags: SystemFlags, octets: u32) {
        self.messages += 1;
        self.octets += u64::from(octets);
        self.count_flags(SystemFlags::SEEN, flags);
    }

    /// Subtracts a message with these flags from the counters.
    pub(crate) fn count_out(&mut self, flags: SystemFlags, octets: u32) {
        self.messages -= 1;
        self.octets -= u64::from(octets);
        self.count_flags(flags, SystemFlags::SEEN);
    }

    /// Counts a change of flags. A message that is seen and not deleted counts in neither number.
    pub(crate) fn count_flags(&mut self, before: SystemFlags, after: SystemFlags) {
        self.unseen -= u32::from(!before.contains(SystemFlags::SEEN));
        self.unseen += u32::from(!after.contains(SystemFlags::SEEN));
        self.deleted -= u32::from(before.contains(SystemFlags::DELETED));
        self.deleted += u32::from(after.contains(SystemFlags::DELETED));
    }
}

/// A message in its mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageRow {
    pub(crate) mod_seq: ModSeq,
    pub(crate) flags: SystemFlags,
    /// A bit for each keyword of the mailbox.
    pub(crate) keywords: u64,
    pub(crate) internal_date: InternalDate,
    pub(crate) size: u32,
    pub(crate) blob: BlobId,
    pub(crate) thread: u64,
    /// Whether there is a row of the recipient's own fields.
    pub(crate) own_fields: bool,
}

/// The bit beside the flags that marks a message with own fields.
const OWN_FIELDS: u8 = 0x80;

impl MessageRow {
    pub(crate) fn encode(&self) -> Vec<u8> {
        Writer::new(VERSION)
            .u8(self.flags.bits() | if self.own_fields { OWN_FIELDS } else { 0 })
            .variable(self.mod_seq.0)
            .variable(self.keywords)
            .u64(self.internal_date.seconds.cast_unsigned())
            .u16(self.internal_date.zone_minutes.cast_unsigned())
            .u32(self.size)
            .variable(self.blob.0)
            .u64(self.thread)
            .done()
    }

    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(octets, VERSION)?;
        let flags = reader.u8()?;
        Some(Self {
            flags: SystemFlags::from_bits(flags),
            own_fields: flags & OWN_FIELDS != 0,
            mod_seq: ModSeq(reader.variable()?),
            keywords: reader.variable()?,
            internal_date: InternalDate {
                seconds: reader.u64()?.cast_signed(),
                zone_minutes: reader.u16()?.cast_signed(),
            },
            size: reader.u32()?,
            blob: BlobId(reader.variable()?),
            thread: reader.u64()?,
        })
    }
}

/// The header fields of a recipient's copy that the shared body lacks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecipientFields {
    /// The reverse path, without angle brackets; `Return-Path` (RFC 5321 section 4.4).
    pub return_path: Option<Box<[u8]>>,
    /// The address that the message was delivered for; `Delivered-To` (RFC 9228).
    pub delivered_to: Option<Box<[u8]>>,
}

impl RecipientFields {
    /// Whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.return_path.is_none() && self.delivered_to.is_none()
    }

    /// The fields in the form in front of the shared header.
    #[must_use]
    pub fn render(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        if let Some(path) = &self.return_path {
            octets.extend_from_slice(b"Return-Path: <");
            octets.extend_from_slice(path);
            octets.extend_from_slice(b">\r\n");
        }
        if let Some(address) = &self.delivered_to {
            octets.extend_from_slice(b"Delivered-To: ");
            octets.extend_from_slice(address);
            octets.extend_from_slice(b"\r\n");
        }
        octets
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        Writer::new(VERSION)
            .optional(self.return_path.as_deref())
            .optional(self.delivered_to.as_deref())
            .done()
    }

    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(octets, VERSION)?;
        Some(Self {
            return_path: reader.optional()?.map(Into::into),
            delivered_to: reader.optional()?.map(Into::into),
        })
    }
}

/// The effect of an operation in the mailbox to which the operation added messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OperationRow {
    /// Identifies the operation's content; an operation that reuses the id with other content is a collision.
    pub(crate) content: [u8; 16],
    /// The first of `count` consecutive UIDs assigned by the operation.
    pub(crate) first: Uid,
    pub(crate) count: u32,
    /// The UIDs of the copied messages, in the order of the assigned UIDs.
    pub(crate) sources: Vec<Uid>,
}

impl OperationRow {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let writer = Writer::new(VERSION)
            .octets(&self.content)
            .u32(self.first.get())
            .u32(self.count);
        encode_uids(writer, &self.sources).done()
    }

    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(octets, VERSION)?;
        Some(Self {
            content: *reader.take(16)?.first_chunk()?,
            first: Uid::new(reader.u32()?)?,
            count: reader.u32()?,
            sources: decode_uids(&mut reader)?,
        })
    }
}

/// Writes rising UIDs as runs: gap, length.
fn encode_uids(mut writer: Writer, uids: &[Uid]) -> Writer {
    let mut before = 0;
    let mut rest = uids;
    while let Some(first) = rest.first() {
        let follows = |at: &usize| {
            rest.get(*at)
                .is_some_and(|uid| Some(uid.get()) == first.get().checked_add(*at as u32))
        };
        let length = (1..rest.len()).take_while(follows).count() + 1;
        writer = writer
            .variable(u64::from(first.get() - before))
            .variable(length as u64);
        // The last UID of the range may be the greatest UID.
        before = first.get() + (length as u32 - 1);
        rest = &rest[length..];
    }
    writer
}

fn decode_uids(reader: &mut Reader<'_>) -> Option<Vec<Uid>> {
    let mut uids = Vec::new();
    let mut before = 0_u32;
    while !reader.is_empty() {
        let first = before.checked_add(u32::try_from(reader.variable()?).ok()?)?;
        let length = u32::try_from(reader.variable()?).ok()?;
        let last = first.checked_add(length.checked_sub(1)?)?;
        if uids.len() + length as usize > UIDS_MAX {
            return None;
        }
        uids.extend((first..=last).filter_map(Uid::new));
        before = last;
    }
    Some(uids)
}

/// UIDs expunged by one change.
pub(crate) fn encode_expunged(uids: &[Uid]) -> Vec<u8> {
    encode_uids(Writer::new(VERSION), uids).done()
}

pub(crate) fn decode_expunged(octets: &[u8]) -> Option<Vec<Uid>> {
    decode_uids(&mut Reader::new(octets, VERSION)?)
}

/// The position of a record that has all rows of a partition.
pub(crate) fn encode_snapshot(position: u64) -> Vec<u8> {
    Writer::new(VERSION).u64(position).done()
}

pub(crate) fn decode_snapshot(octets: &[u8]) -> Option<u64> {
    Reader::new(octets, VERSION)?.u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn uids_come_back(numbers in proptest::collection::btree_set(1_u32..5_000, 0..300)) {
            let uids: Vec<_> = numbers.into_iter().filter_map(Uid::new).collect();
            prop_assert_eq!(decode_expunged(&encode_expunged(&uids)), Some(uids));
        }

        #[test]
        fn no_octets_make_a_row_panic(octets in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut octets = octets;
            octets.insert(0, VERSION);
            let _ = (MessageRow::decode(&octets), OperationRow::decode(&octets));
            let _ = (MailboxHead::decode(&octets), RecipientFields::decode(&octets));
            let _ = (AccountHead::decode(&octets), MailboxRow::decode(&octets));
        }
    }

    #[test]
    fn the_greatest_uid_comes_back() {
        let uids: Vec<_> = [u32::MAX - 1, u32::MAX]
            .into_iter()
            .filter_map(Uid::new)
            .collect();
        assert_eq!(decode_expunged(&encode_expunged(&uids)), Some(uids));
    }

    #[test]
    fn rows_come_back() {
        let message = MessageRow {
            mod_seq: ModSeq(1 << 40),
            flags: SystemFlags::SEEN.with(SystemFlags::DRAFT),
            keywords: 1 << 63,
            internal_date: InternalDate {
                seconds: -5,
                zone_minutes: -720,
            },
            size: u32::MAX,
            blob: BlobId(u64::MAX),
            thread: 3,
            own_fields: true,
        };
        assert_eq!(MessageRow::decode(&message.encode()), Some(message));
        assert_eq!(MessageRow::decode(&message.encode()[1..]), None);
        let mut head = MailboxHead::new(7);
        head.count_in(SystemFlags::DELETED, 10);
        assert_eq!((head.unseen, head.deleted, head.octets), (1, 1, 10));
        assert_eq!(MailboxHead::decode(&head.encode()), Some(head));
        // The counters of a program that kept nothing.
        let older = &head.encode()[..head.encode().len() - 12];
        head.kept = None;
        assert_eq!(MailboxHead::decode(older), Some(head));
        assert_eq!(head.encode(), older);
        let fields = RecipientFields {
            return_path: Some(Box::default()),
            delivered_to: None,
        };
        assert_eq!(RecipientFields::decode(&fields.encode()), Some(fields));
        let operation = OperationRow {
            content: [1; 16],
            first: Uid::FIRST,
            count: 2,
            sources: vec![Uid::FIRST, Uid::FIRST.next().next()],
        };
        assert_eq!(OperationRow::decode(&operation.encode()), Some(operation));
    }
}
