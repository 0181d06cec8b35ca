//! Batches in the form of the log; `docs/internals/store-log.md` draws the format.

use vere_ports::mail_meta::{Batch, Partition, RowChange};

use crate::log::format::{u32_at, u64_at};

/// The version of the payload.
const VERSION: u8 = 1;
/// Octets before the name of the partition.
const HEAD: usize = 16;
/// The flag of a batch that begins by removing all rows.
const CLEAR: u8 = 1;
/// The length of a value that says: the row is removed.
const REMOVED: u32 = u32::MAX;

/// Octets of the payload of a batch with these rows, for the encoded partition `name`.
pub(crate) fn len(name: &[u8], rows: &[RowChange]) -> usize {
    let row = |row: &RowChange| 6 + row.key.len() + row.value.as_ref().map_or(0, Vec::len);
    HEAD + name.len() + rows.iter().map(row).sum::<usize>()
}

/// The payload of a batch's record; version and hints are not in it.
pub(crate) fn encode(
    partition: &Partition,
    expected: u64,
    clear: bool,
    rows: &[RowChange],
) -> Vec<u8> {
    let name = partition.encode();
    let mut octets = Vec::with_capacity(len(&name, rows));
    octets.extend_from_slice(&[VERSION, if clear { CLEAR } else { 0 }]);
    octets.extend_from_slice(&(name.len() as u16).to_le_bytes());
    octets.extend_from_slice(&(rows.len() as u32).to_le_bytes());
    octets.extend_from_slice(&expected.to_le_bytes());
    octets.extend_from_slice(&name);
    for row in rows {
        let length = row
            .value
            .as_ref()
            .map_or(REMOVED, |value| value.len() as u32);
        octets.extend_from_slice(&(row.key.len() as u16).to_le_bytes());
        octets.extend_from_slice(&length.to_le_bytes());
        octets.extend_from_slice(&row.key);
        octets.extend_from_slice(row.value.as_deref().unwrap_or_default());
    }
    octets
}

/// Octets at the beginning of a payload that suffice to decode the partition.
pub(crate) const PEEK: usize = 1_024;

/// The partition of a payload with this beginning, and whether the batch has all rows of the
/// partition.
pub(crate) fn partition(octets: &[u8]) -> Option<(Partition, bool)> {
    let (head, rest) = octets.split_at_checked(HEAD)?;
    let name = rest.get(..usize::from(u16::from_le_bytes([head[2], head[3]])))?;
    let (partition, behind) = Partition::decode(name)?;
    let known = head[0] == VERSION && behind.is_empty();
    known.then_some((partition, head[1] & CLEAR != 0))
}

/// Reads the payload of the record at `version`.
pub(crate) fn decode(payload: &[u8], version: u64) -> Option<Batch> {
    let (head, rest) = payload.split_at_checked(HEAD)?;
    if head[0] != VERSION {
        return None;
    }
    let name_len = usize::from(u16::from_le_bytes([head[2], head[3]]));
    let (name, mut rest) = rest.split_at_checked(name_len)?;
    let (partition, behind) = Partition::decode(name)?;
    let mut rows = Vec::new();
    for _ in 0..u32_at(head, 4) {
        let (lengths, behind) = rest.split_at_checked(6)?;
        let key_len = usize::from(u16::from_le_bytes([lengths[0], lengths[1]]));
        let (key, behind) = behind.split_at_checked(key_len)?;
        let (value, behind) = match u32_at(lengths, 2) {
            REMOVED => (None, behind),
            length => {
                let (value, behind) = behind.split_at_checked(length as usize)?;
                (Some(value.to_vec()), behind)
            }
        };
        let key = key.to_vec();
        rows.push(RowChange { key, value });
        rest = behind;
    }
    let whole = behind.is_empty() && rest.is_empty();
    whole.then_some(Batch {
        partition,
        expected: u64_at(head, 8),
        version,
        clear: head[1] & CLEAR != 0,
        rows,
        hints: Vec::new(),
    })
}

/// A row to write.
pub(crate) fn put(key: impl Into<Vec<u8>>, value: Vec<u8>) -> RowChange {
    RowChange {
        key: key.into(),
        value: Some(value),
    }
}

/// A row to remove.
pub(crate) fn remove(key: impl Into<Vec<u8>>) -> RowChange {
    RowChange {
        key: key.into(),
        value: None,
    }
}

/// A change of a partition in the making.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) partition: Partition,
    pub(crate) expected: u64,
    pub(crate) clear: bool,
    pub(crate) rows: Vec<RowChange>,
    pub(crate) hints: Vec<(Partition, RowChange)>,
}

impl Change {
    pub(crate) fn new(partition: Partition, expected: u64) -> Self {
        Self {
            partition,
            expected,
            clear: false,
            rows: Vec::new(),
            hints: Vec::new(),
        }
    }

    pub(crate) fn put(&mut self, key: impl Into<Vec<u8>>, value: Vec<u8>) {
        self.rows.push(put(key, value));
    }

    pub(crate) fn remove(&mut self, key: impl Into<Vec<u8>>) {
        self.rows.push(remove(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn batches_come_back_and_no_other_octets_do(
            rows in proptest::collection::btree_map(
                proptest::collection::vec(any::<u8>(), 1..9),
                proptest::option::of(proptest::collection::vec(any::<u8>(), 0..9)),
                0..9,
            ),
            clear: bool,
            cut in 0..200_usize,
        ) {
            let rows: Vec<_> = rows.into_iter().map(|(key, value)| RowChange { key, value }).collect();
            let partition = Partition::Mailbox(5);
            let octets = encode(&partition, 9, clear, &rows);
            prop_assert_eq!(octets.len(), len(&partition.encode(), &rows));
            let batch = decode(&octets, 11).unwrap();
            prop_assert_eq!((batch.expected, batch.version, batch.clear), (9, 11, clear));
            prop_assert_eq!(batch.rows, rows);
            let peek = &octets[..octets.len().min(PEEK)];
            prop_assert_eq!(super::partition(peek), Some((partition, clear)));
            if cut < octets.len() {
                prop_assert_eq!(decode(&octets[..cut], 11), None);
            }
        }
    }
}
