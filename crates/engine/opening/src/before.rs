//! The values of rows before a commit, in a single piece of memory for each commit.
//!
//! A vector for each row would cost about 90 octets beside key and value, and a value cut out of a page would keep the
//! whole page in memory: a mount that creates many files would hold 100 MB of history.

use bytes::Bytes;

/// Values of rows before a commit.
pub type Before = Vec<(Vec<u8>, Option<Bytes>)>;

/// The length of an absent row.
const ABSENT: u32 = u32::MAX;
/// Octets of a row besides key and value: length of the key u32, of the value u32.
const ROW_OCTETS: usize = 8;

/// The values, packed.
#[derive(Debug, Default)]
pub(crate) struct Packed(Box<[u8]>);

impl Packed {
    pub(crate) fn of(before: &[(Vec<u8>, Option<Bytes>)]) -> Self {
        let lengths = before.iter().map(|(key, value)| {
            let value = value.as_ref().map_or(0, Bytes::len);
            key.len().saturating_add(value).saturating_add(ROW_OCTETS)
        });
        let mut octets = Vec::with_capacity(lengths.fold(0, usize::saturating_add));
        for (key, value) in before {
            let length = value.as_ref().map_or(ABSENT, |value| length_of(value));
            octets.extend_from_slice(&length_of(key).to_le_bytes());
            octets.extend_from_slice(&length.to_le_bytes());
            octets.extend_from_slice(key);
            octets.extend_from_slice(value.as_deref().unwrap_or_default());
        }
        Self(octets.into_boxed_slice())
    }

    /// Octets in memory.
    pub(crate) const fn octets(&self) -> usize {
        self.0.len()
    }

    /// Keys and values in the order of the commit.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (key, behind) = rest.split_first_chunk()?;
            let (value, behind) = behind.split_first_chunk()?;
            let (key, value) = (u32::from_le_bytes(*key), u32::from_le_bytes(*value));
            let (key, behind) = behind.split_at_checked(key.try_into().ok()?)?;
            if value == ABSENT {
                rest = behind;
                return Some((key, None));
            }
            let (value, behind) = behind.split_at_checked(value.try_into().ok()?)?;
            rest = behind;
            Some((key, Some(value)))
        })
    }
}

/// The length of a key or a value; both have bounds far below 4 GiB.
fn length_of(octets: &[u8]) -> u32 {
    u32::try_from(octets.len()).unwrap_or(ABSENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were() {
        let rows: Before = vec![
            (b"a".to_vec(), None),
            (b"b".to_vec(), Some(Bytes::new())),
            (Vec::new(), Some(Bytes::from_static(b"value"))),
            (vec![7; 300], Some(vec![8; 72 << 10].into())),
        ];
        let packed = Packed::of(&rows);
        let expected = rows.iter();
        let expected = expected.map(|(key, value)| (key.as_slice(), value.as_deref()));
        assert!(packed.rows().eq(expected));
        assert_eq!(Packed::of(&[]).rows().count(), 0);
    }

    /// A million new files have two rows each, absent before.
    #[test]
    fn rows_of_new_files_cost_little_more_than_their_keys() {
        let rows: Before = (0..1_000_u64)
            .map(|number| ([&[2][..], &number.to_be_bytes()].concat(), None))
            .collect();
        let packed = Packed::of(&rows);
        assert_eq!(packed.octets(), 1_000 * (9 + ROW_OCTETS));
        assert_eq!(size_of::<Packed>(), 16);
    }
}
