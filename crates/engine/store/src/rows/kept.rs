//! Rows of expunged messages, and of deleted mailboxes, that are kept for a while.

use vere_units::Timestamp;

use super::codec::{Reader, Writer};
use super::{MessageRow, VERSION, keys};
use crate::model::{MailboxName, SpecialUse, Uid};

/// The most messages in one row.
pub(crate) const KEPT_ROW_MAX: usize = 256;

/// Kept messages of a mailbox, or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct KeptCount {
    pub(crate) messages: u32,
    pub(crate) octets: u64,
}

impl KeptCount {
    pub(crate) fn add(&mut self, octets: u32) {
        self.messages = self.messages.saturating_add(1);
        self.octets = self.octets.saturating_add(u64::from(octets));
    }

    pub(crate) fn remove(&mut self, octets: u32) {
        self.messages = self.messages.saturating_sub(1);
        self.octets = self.octets.saturating_sub(u64::from(octets));
    }
}

/// Messages that one change expunged, at most [`KEPT_ROW_MAX`], with rising UIDs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptRow {
    /// The clock at the change. Only people read it: no age is measured with a clock.
    pub(crate) expunged: Timestamp,
    /// The messages as they were.
    pub(crate) messages: Vec<(Uid, MessageRow)>,
}

impl KeptRow {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new(VERSION).u64(self.expunged.as_millis());
        let mut before = 0;
        for (uid, row) in &self.messages {
            let row = row.encode();
            writer = writer
                .variable(u64::from(uid.get() - before))
                .optional(Some(&row));
            before = uid.get();
        }
        writer.done()
    }

    /// Reads a row; `None` for a malformed row and for one without messages.
    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(octets, VERSION)?;
        let expunged = Timestamp::from_millis(reader.u64()?);
        let (mut messages, mut before) = (Vec::new(), 0_u32);
        while !reader.is_empty() && messages.len() < KEPT_ROW_MAX {
            let gap = u32::try_from(reader.variable()?).ok()?;
            before = before.checked_add(gap).filter(|_| gap > 0)?;
            let row = MessageRow::decode(reader.optional()??)?;
            messages.push((Uid::new(before)?, row));
        }
        let whole = reader.is_empty() && !messages.is_empty();
        whole.then_some(Self { expunged, messages })
    }

    /// The sum over the messages.
    pub(crate) fn count(&self) -> KeptCount {
        let mut count = KeptCount::default();
        self.messages
            .iter()
            .for_each(|(_, row)| count.add(row.size));
        count
    }
}

/// The kinds of rows that refer to bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Referring {
    Messages,
    /// Expunged messages that are kept.
    Kept,
}

impl Referring {
    pub(crate) fn prefix(self) -> &'static [u8] {
        match self {
            Self::Messages => keys::MESSAGES,
            Self::Kept => keys::KEPT,
        }
    }

    /// The messages of a row; `None` for a malformed row.
    pub(crate) fn messages(self, value: &[u8]) -> Option<Vec<MessageRow>> {
        match self {
            Self::Messages => MessageRow::decode(value).map(|row| vec![row]),
            Self::Kept => {
                let messages = KeptRow::decode(value)?.messages;
                Some(messages.into_iter().map(|(_, row)| row).collect())
            }
        }
    }

    /// The kind of a row of a mailbox.
    pub(crate) fn of(key: &[u8]) -> Option<Self> {
        let kinds = [Self::Messages, Self::Kept];
        kinds
            .into_iter()
            .find(|kind| key.starts_with(kind.prefix()))
    }

    /// The messages that a row of a mailbox refers to; none of a row of another kind.
    pub(crate) fn all_of(key: &[u8], value: Option<&[u8]>) -> Vec<MessageRow> {
        let kind = Self::of(key).zip(value);
        let messages = kind.and_then(|(kind, value)| kind.messages(value));
        messages.unwrap_or_default()
    }
}

/// A deleted mailbox whose messages are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AsideRow {
    /// The clock at the deletion, for people.
    pub(crate) deleted: Timestamp,
    /// The end of the log at the deletion, which is its age.
    pub(crate) at: u64,
    pub(crate) special_use: Option<SpecialUse>,
    /// The name that the mailbox had.
    pub(crate) name: MailboxName,
}

impl AsideRow {
    pub(crate) fn encode(&self) -> Vec<u8> {
        Writer::new(VERSION)
            .u64(self.deleted.as_millis())
            .u64(self.at)
            .u8(SpecialUse::octet(self.special_use))
            .optional(Some(self.name.as_str().as_bytes()))
            .done()
    }

    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(octets, VERSION)?;
        Some(Self {
            deleted: Timestamp::from_millis(reader.u64()?),
            at: reader.u64()?,
            special_use: SpecialUse::from_octet(reader.u8()?),
            name: MailboxName::new(std::str::from_utf8(reader.optional()??).ok()?).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{BlobId, InternalDate, ModSeq, SystemFlags};

    fn message(number: u32) -> MessageRow {
        MessageRow {
            mod_seq: ModSeq(u64::from(number)),
            flags: SystemFlags::DELETED,
            keywords: 1 << 63,
            internal_date: InternalDate::default(),
            size: number,
            blob: BlobId(u64::from(number) << 20),
            thread: 3,
            own_fields: number.is_multiple_of(2),
        }
    }

    proptest! {
        #[test]
        fn rows_come_back(numbers in proptest::collection::btree_set(1_u32.., 1..KEPT_ROW_MAX)) {
            let uids = numbers.into_iter().filter_map(Uid::new);
            let row = KeptRow {
                expunged: Timestamp::from_millis(7),
                messages: uids.map(|uid| (uid, message(uid.get()))).collect(),
            };
            prop_assert_eq!(KeptRow::decode(&row.encode()), Some(row));
        }

        #[test]
        fn no_octets_make_a_row_panic(octets in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut octets = octets;
            octets.insert(0, VERSION);
            let _ = (KeptRow::decode(&octets), AsideRow::decode(&octets));
        }
    }

    #[test]
    fn deleted_mailboxes_come_back() {
        let row = AsideRow {
            deleted: Timestamp::from_millis(9),
            at: 64,
            special_use: Some(SpecialUse::Trash),
            name: MailboxName::new("Entwürfe/alt und neu").unwrap(),
        };
        assert_eq!(AsideRow::decode(&row.encode()), Some(row));
    }
}
