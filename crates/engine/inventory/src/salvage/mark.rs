//! The row of the last writer of a lost state. The row tells, too, whether the salvage behind a new log has come to an end: a
//! killed salvage is begun again from the lost state, and not from the new tree.

use crate::rows::{Key, RowValue, WriterRow};

/// The name of the writer, for people.
const NAME: &str = "of a lost state";

/// A row by key.
type Row = (Vec<u8>, Vec<u8>);

fn row(number: u16, registered: u64) -> Row {
    let row = WriterRow {
        machine: [0; 16],
        registered,
        last_seen_ms: 0,
        name: NAME.to_owned(),
    };
    (Key::Writer(number).encode(), row.encode())
}

/// The row of the last writer of a lost state: later writers have higher numbers.
#[must_use]
pub fn lost_writer(number: u16) -> Row {
    row(number, 0)
}

/// As [`lost_writer`], at the beginning of a new log behind a lost state of a generation. [`lost_writer`] ends the salvage.
#[must_use]
pub fn begun_writer(number: u16, generation: u64) -> Row {
    row(number, generation.max(1))
}

/// The generation of the lost state behind which a salvage has begun; `Some(None)` after the end. Real writers have no such row.
#[must_use]
pub fn begun(value: &[u8]) -> Option<Option<u64>> {
    let row = WriterRow::decode(value).ok()?;
    let generation = (row.registered != 0).then_some(row.registered);
    (row.name == NAME).then_some(generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_salvage_begins_and_ends() {
        let (key, value) = begun_writer(7, 40);
        assert_eq!(key, Key::Writer(7).encode());
        assert_eq!(begun(&value), Some(Some(40)));
        assert_eq!(begun(&begun_writer(0, 0).1), Some(Some(1)));
        let (key, value) = lost_writer(7);
        assert_eq!((key, begun(&value)), (Key::Writer(7).encode(), Some(None)));
        let other = WriterRow {
            machine: [1; 16],
            registered: 40,
            last_seen_ms: 0,
            name: "home".to_owned(),
        };
        assert_eq!(begun(&other.encode()), None);
        assert_eq!(begun(b""), None);
    }
}
