//! Metadata of a file system in mail accounts: keys and values of rows, and pages of rows. A writer with the keys of
//! the volume, of another version or with a fault, may send any octets.

use bytes::Bytes;
use vere_mailfs::format::page::{Child, Page, encode_inner, encode_leaf};
use vere_mailfs::format::{Locator, MailId};
use vere_mailfs::rows::{
    AccountRow, FILE_SIZE_MAX, GroupRow, InodeRow, Key, LeaseRow, PackRow, RowValue, SettingsRow,
    SlotRow, SnapshotRow, StateRow, TombstoneRow, UpkeepRow, WriterRow, decode_entry,
    decode_extents, encode_entry, encode_extents,
};

pub(crate) const ROW_SEEDS: &[&[u8]] = &[
    // Keys: settings, an account, an entry, extents, an open file.
    b"\x00\x01\x01",
    b"\x00\x01\x02\x00\x05",
    b"\x00\x02\0\0\0\0\x01\x01name",
    b"\x00\x02\0\0\0\0\x01\x04\0\0\x02\0\0\0\0\0\0\0\0",
    b"\x00\x04\0\x01\0\0\0\0\0\0\0\x09",
    // Values: an entry, extents with a hole, a group, a slot.
    b"\x02\x09\0\0\0\0\0\0\0\x01",
    b"\x03\0\0\0\0\0\0\0\0\x01\x02\x0a\0\x05\0\0\0\0\0\0\0\x44\0\0\0\x20\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\x06\x01\x02\x01\x02\x01\0\x02\0",
    b"\x0fmail mail mail m\x01\x05label",
];

pub(crate) const PAGE_SEEDS: &[&[u8]] = &[
    b"\x01\0\x02\0\x01k\x01a\x02va\x01b\0",
    b"\x01\x01\x01\0\x01k\0\0\0\0\0\0\0\0\0mail mail mail m\x01\0\x02\0\x05\0\0\0\x44\0\0\0\x20\0\0\0\x07\x88\x01",
];

/// A decoded key or value is written with the same octets.
pub(crate) fn row(octets: &[u8]) {
    let Some((kind, rest)) = octets.split_first() else {
        return;
    };
    match kind % 16 {
        0 => {
            if let Ok(key) = Key::decode(rest) {
                assert_eq!(key.encode(), rest);
            }
        }
        1 => {
            if let Ok(inode) = InodeRow::decode(rest) {
                assert_eq!(inode.encode(), rest);
            }
        }
        2 => {
            if let Ok(entry) = decode_entry(rest) {
                assert_eq!(encode_entry(entry), rest);
            }
        }
        3 => extents(rest),
        4 => value::<SettingsRow>(rest),
        5 => value::<AccountRow>(rest),
        6 => value::<GroupRow>(rest),
        7 => value::<WriterRow>(rest),
        8 => value::<SnapshotRow>(rest),
        9 => value::<LeaseRow>(rest),
        10 => value::<PackRow>(rest),
        11 => value::<TombstoneRow>(rest),
        12 => value::<StateRow>(rest),
        13 => value::<UpkeepRow>(rest),
        14 => value::<u32>(rest),
        _ => value::<SlotRow>(rest),
    }
}

fn value<R: RowValue>(octets: &[u8]) {
    if let Ok(row) = R::decode(octets) {
        assert_eq!(row.encode(), octets);
    }
}

/// Extents lie one behind the other, below the greatest size of a file.
fn extents(octets: &[u8]) {
    let Some((offset, rest)) = octets.split_first_chunk() else {
        return;
    };
    let offset = u64::from_le_bytes(*offset);
    let Ok(runs) = decode_extents(offset, rest) else {
        return;
    };
    let lengths = runs.iter().map(|run| u128::from(run.length));
    let end = u128::from(offset) + lengths.sum::<u128>();
    assert!(end <= u128::from(FILE_SIZE_MAX));
    assert!(runs.iter().all(|run| run.length > 0));
    assert_eq!(encode_extents(&runs), rest);
}

/// A page has its rows in order and finds each; a page written anew has the same rows.
pub(crate) fn page(octets: &[u8]) {
    let at = Locator {
        mail: MailId(*b"page page page p"),
        ..Locator::default()
    };
    let Ok(page) = Page::decode(Bytes::copy_from_slice(octets), &at) else {
        return;
    };
    let count = page.rows();
    let (Some(keys), Some(values)) = (all(count, |row| page.key(row)), values_of(&page)) else {
        panic!("a row without a key or a value");
    };
    assert!(count > 0 && page.key(count).is_none());
    assert!(keys.is_sorted_by(|a, b| a < b), "keys rise");
    for (row, key) in keys.iter().enumerate() {
        assert_eq!((page.search(key), page.row_for(key)), (Ok(row), row));
        let behind = [&key[..], b"\0"].concat();
        let place = keys.partition_point(|key| *key < behind);
        let expected = if keys.get(place) == Some(&behind) {
            Ok(place)
        } else {
            Err(place)
        };
        assert_eq!(page.search(&behind), expected);
    }
    assert!(page.weight() <= octets.len() * 100 + 1_000);
    let again = match values {
        Values::Leaf(values) => {
            let rows = keys.iter().zip(&values);
            let rows: Vec<(&[u8], &[u8])> =
                rows.map(|(key, value)| (&key[..], &value[..])).collect();
            encode_leaf(&rows)
        }
        Values::Inner(children) => {
            let rows = keys.iter().zip(&children);
            let rows: Vec<(&[u8], Child)> = rows.map(|(key, child)| (&key[..], *child)).collect();
            encode_inner(page.level(), &rows)
        }
    };
    let read = Page::decode(Bytes::from(again), &at);
    let Ok(read) = read else {
        panic!("a page of our own: {read:?}");
    };
    assert_eq!((read.level(), read.rows()), (page.level(), count));
    for row in 0..count {
        assert_eq!(read.key(row), page.key(row));
        assert_eq!(read.value(row), page.value(row));
        assert_eq!(read.child(row), page.child(row));
    }
}

enum Values {
    Leaf(Vec<Bytes>),
    Inner(Vec<Child>),
}

fn values_of(page: &Page) -> Option<Values> {
    if page.level() == 0 {
        return all(page.rows(), |row| page.value(row)).map(Values::Leaf);
    }
    all(page.rows(), |row| page.child(row).copied()).map(Values::Inner)
}

fn all<T>(count: usize, of: impl Fn(usize) -> Option<T>) -> Option<Vec<T>> {
    (0..count).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds decode.
    #[test]
    fn seeds_get_far() {
        for seed in &ROW_SEEDS[..5] {
            assert!(Key::decode(&seed[1..]).is_ok(), "{seed:?}");
        }
        assert!(decode_entry(&ROW_SEEDS[5][1..]).is_ok());
        assert!(decode_extents(0, &ROW_SEEDS[6][9..]).is_ok());
        assert!(GroupRow::decode(&ROW_SEEDS[7][1..]).is_ok());
        assert!(SlotRow::decode(&ROW_SEEDS[8][1..]).is_ok());
        for seed in PAGE_SEEDS {
            let page = Page::decode(Bytes::from_static(seed), &Locator::default());
            assert!(page.is_ok(), "{page:?}");
        }
    }
}
