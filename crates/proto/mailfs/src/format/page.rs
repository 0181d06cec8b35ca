//! A page: rows in the order of their keys, or the pages below.
//!
//! ```text
//! page     0  version u8 = 1 | level u8 (0 leaf) | rows u16 | common prefix: v length, octets
//!          .  leaf:  rows x { key rest v length, octets | value v length, octets }
//!          .  inner: rows x { key rest v length, octets | locator | inodes v | octets v }
//! ```
//!
//! The key of an inner row is the least key that its page had when the row was written. Keys below the first row belong to the
//! first row's page. A locator with pack 0 names a page of the same mail.

use bytes::Bytes;

use super::bounds::{KEY_OCTETS_MAX, VALUE_OCTETS_MAX};
use super::error::FormatError;
use super::ids::{MailId, PackNumber};
use super::locator::Locator;
use super::wire::{Reader, put_counted, put_v, within};

/// Levels of a tree.
pub const LEVELS_MAX: u8 = 8;
/// Octets of a page that a reader accepts: pages are cut at 32 KiB, and a single row may have 72 KiB.
const PAGE_OCTETS_MAX: usize = 128 << 10;

/// A page below an inner page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child {
    /// Where the page is.
    pub place: Locator,
    /// Inodes in the page and below.
    pub inodes: u64,
    /// Octets of their files.
    pub octets: u64,
}

/// A page, verified and opened.
#[derive(Debug, Clone)]
pub struct Page {
    level: u8,
    octets: Bytes,
    prefix: Span,
    rows: Vec<Slot>,
    /// The pages below, a row each; empty in a leaf.
    children: Vec<Child>,
}

/// A range of the page's octets.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: u32,
    to: u32,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The key without the common prefix.
    rest: Span,
    value: Span,
}

impl Page {
    /// Reads the page at a place. Places of the same mail become whole.
    ///
    /// # Errors
    ///
    /// If the octets are no page: the first wrong field.
    pub fn decode(octets: Bytes, at: &Locator) -> Result<Self, FormatError> {
        within("octets of a page", octets.len(), PAGE_OCTETS_MAX)?;
        let mut reader = Reader::new("page", &octets);
        reader.version("format of a page")?;
        let level = reader.u8()?;
        within("level of a page", level.into(), (LEVELS_MAX - 1).into())?;
        let count = reader.u16()?;
        let prefix = counted(&octets, &mut reader, "octets of a key", KEY_OCTETS_MAX)?;
        let rest_max = KEY_OCTETS_MAX.saturating_sub(prefix.len());
        // A cache holds pages for long: room for rows that do not come would be a seventh of the memory. A row has two octets or
        // more, whatever the count tells.
        let most = usize::from(count).min(octets.len() / 2);
        let mut rows = Vec::with_capacity(most);
        let mut children = Vec::with_capacity(if level == 0 { 0 } else { most });
        let mut before: Option<Span> = None;
        for _ in 0..count {
            let rest = counted(&octets, &mut reader, "octets of a key", rest_max)?;
            if before.is_some_and(|before| before.of(&octets) >= rest.of(&octets)) {
                return Err(ORDER);
            }
            before = Some(rest);
            let value = if level == 0 {
                counted(&octets, &mut reader, "octets of a value", VALUE_OCTETS_MAX)?
            } else {
                children.push(child(&mut reader, at)?);
                Span { from: 0, to: 0 }
            };
            rows.push(Slot { rest, value });
        }
        reader.end()?;
        if rows.is_empty() {
            return Err(FormatError::Below {
                what: "rows of a page",
                min: 1,
                found: 0,
            });
        }
        Ok(Self {
            level,
            prefix,
            rows,
            children,
            octets,
        })
    }

    /// The level; 0 for a leaf.
    #[must_use]
    pub const fn level(&self) -> u8 {
        self.level
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Octets in memory, about.
    #[must_use]
    pub fn weight(&self) -> usize {
        let rows = self.rows.len().saturating_mul(size_of::<Slot>());
        let children = self.children.len().saturating_mul(size_of::<Child>());
        self.octets
            .len()
            .saturating_add(rows)
            .saturating_add(children)
    }

    /// The key of a row; none beyond the last row.
    #[must_use]
    pub fn key(&self, row: usize) -> Option<Vec<u8>> {
        let slot = self.rows.get(row)?;
        Some([self.prefix.of(&self.octets), slot.rest.of(&self.octets)].concat())
    }

    /// The value of a row of a leaf.
    #[must_use]
    pub fn value(&self, row: usize) -> Option<Bytes> {
        let slot = self.rows.get(row)?;
        let (from, to) = (slot.value.from as usize, slot.value.to as usize);
        Some(self.octets.slice(from..to))
    }

    /// The page of a row of an inner page.
    #[must_use]
    pub fn child(&self, row: usize) -> Option<&Child> {
        self.children.get(row)
    }

    /// The row of a key, or else the row before which the key would stand.
    ///
    /// # Errors
    ///
    /// The place of an absent key.
    pub fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let prefix = self.prefix.of(&self.octets);
        match key.strip_prefix(prefix) {
            Some(rest) => self
                .rows
                .binary_search_by(|slot| slot.rest.of(&self.octets).cmp(rest)),
            None if key < prefix => Err(0),
            None => Err(self.rows.len()),
        }
    }

    /// The row whose page has a key, in an inner page.
    #[must_use]
    pub fn row_for(&self, key: &[u8]) -> usize {
        match self.search(key) {
            Ok(row) => row,
            Err(row) => row.saturating_sub(1),
        }
    }
}

const ORDER: FormatError = FormatError::Form {
    what: "page",
    expected: "keys in rising order",
};

impl Span {
    fn of(self, octets: &[u8]) -> &[u8] {
        octets
            .get(self.from as usize..self.to as usize)
            .unwrap_or_default()
    }

    const fn len(self) -> usize {
        self.to.saturating_sub(self.from) as usize
    }
}

/// The range of octets behind their length.
fn counted(
    octets: &Bytes,
    reader: &mut Reader<'_>,
    what: &'static str,
    max: usize,
) -> Result<Span, FormatError> {
    let field = reader.counted(what, max)?;
    let to = octets.len().saturating_sub(reader.left());
    let narrow = |number| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(Span {
        from: narrow(to.saturating_sub(field.len())),
        to: narrow(to),
    })
}

fn child(reader: &mut Reader<'_>, at: &Locator) -> Result<Child, FormatError> {
    let mut place = Locator::read(reader)?;
    if place.pack == PackNumber(0) && place.mail == MailId::NONE {
        place = Locator {
            at: place.at,
            sealed_len: place.sealed_len,
            ..*at
        };
    }
    Ok(Child {
        place,
        inodes: reader.v()?,
        octets: reader.v()?,
    })
}

/// The octets of a leaf. Keys rise.
pub fn encode_leaf(rows: &[(&[u8], &[u8])]) -> Vec<u8> {
    let keys = (rows.first(), rows.last());
    let prefix = common(
        keys.0.map_or(&[], |row| row.0),
        keys.1.map_or(&[], |row| row.0),
    );
    let mut out = begin(0, rows.len(), prefix);
    for (key, value) in rows {
        put_counted(&mut out, key.get(prefix.len()..).unwrap_or_default());
        put_counted(&mut out, value);
    }
    // The page goes into a cache: an octet vector grown by doubling would have up to as much room again.
    out.shrink_to_fit();
    out
}

/// The octets of an inner page. Keys rise.
pub fn encode_inner(level: u8, rows: &[(&[u8], Child)]) -> Vec<u8> {
    let keys = (rows.first(), rows.last());
    let prefix = common(
        keys.0.map_or(&[], |row| row.0),
        keys.1.map_or(&[], |row| row.0),
    );
    let mut out = begin(level, rows.len(), prefix);
    for (key, child) in rows {
        put_counted(&mut out, key.get(prefix.len()..).unwrap_or_default());
        child.place.encode(&mut out);
        put_v(&mut out, child.inodes);
        put_v(&mut out, child.octets);
    }
    out.shrink_to_fit();
    out
}

fn begin(level: u8, rows: usize, prefix: &[u8]) -> Vec<u8> {
    let mut out = vec![1, level];
    out.extend_from_slice(&u16::try_from(rows).unwrap_or(u16::MAX).to_le_bytes());
    put_counted(&mut out, prefix);
    out
}

/// The octets with which both keys begin.
fn common<'a>(first: &'a [u8], last: &[u8]) -> &'a [u8] {
    let same = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    first.get(..same).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::MailCopy;

    fn at() -> Locator {
        Locator {
            pack: PackNumber(9),
            mail: MailId(*b"sixteen octets.."),
            copy: MailCopy {
                account: 1,
                mailbox: 2,
                uid: 3,
            },
            at: 68,
            sealed_len: 100,
        }
    }

    #[test]
    fn octets_of_a_leaf() {
        let octets = encode_leaf(&[(b"abc", b"1"), (b"abd", b"")]);
        assert_eq!(octets, b"\x01\x00\x02\x00\x02ab\x01c\x011\x01d\x00");
        let page = Page::decode(octets.clone().into(), &at()).unwrap();
        assert_eq!((page.level(), page.rows()), (0, 2));
        assert_eq!(page.key(1).unwrap(), b"abd");
        assert_eq!(page.value(0).unwrap(), "1");
        let found = [&b"abc"[..], b"abd", b"a", b"abcd", b"b"].map(|key| page.search(key));
        assert_eq!(found, [Ok(0), Ok(1), Err(0), Err(1), Err(2)]);
        for cut in 0..octets.len() {
            let cut = Bytes::copy_from_slice(&octets[..cut]);
            assert!(Page::decode(cut, &at()).is_err());
        }
    }

    /// Pages stay in memory for long, new ones as encoded and old ones as decoded.
    #[test]
    fn a_page_has_no_spare_room() {
        let keys: Vec<[u8; 8]> = (0..700_u64).map(u64::to_be_bytes).collect();
        let rows: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (&key[..], &[7; 30][..])).collect();
        let octets = encode_leaf(&rows);
        assert_eq!(octets.capacity(), octets.len());
        let page = Page::decode(octets.into(), &at()).unwrap();
        assert_eq!((page.rows.capacity(), page.children.capacity()), (700, 0));
        // A count beyond the octets takes no memory.
        let liar = Bytes::from_static(&[1, 0, 0xff, 0xff, 0, 1]);
        assert!(Page::decode(liar, &at()).is_err());
    }

    #[test]
    fn a_place_in_the_same_mail_becomes_whole() {
        let near = Locator {
            at: 7,
            sealed_len: 8,
            ..Locator::default()
        };
        let far = Locator { at: 900, ..at() };
        let child = |place| Child {
            place,
            inodes: 3,
            octets: 300,
        };
        let octets = encode_inner(1, &[(b"a", child(near)), (b"c", child(far))]);
        assert_eq!(octets.len(), 4 + 1 + 2 * (2 + Locator::OCTETS + 1 + 2));
        let page = Page::decode(octets.into(), &at()).unwrap();
        let whole = Locator {
            at: 7,
            sealed_len: 8,
            ..at()
        };
        assert_eq!(page.child(0), Some(&child(whole)));
        assert_eq!(page.child(1), Some(&child(far)));
        assert_eq!(
            [&b"A"[..], b"a", b"b", b"c"].map(|key| page.row_for(key)),
            [0, 0, 0, 1]
        );
    }

    #[test]
    fn wrong_pages_are_named() {
        let found = |octets: &[u8]| {
            let page = Page::decode(Bytes::copy_from_slice(octets), &at());
            page.unwrap_err().to_string()
        };
        assert_eq!(
            found(b"\x02"),
            "format of a page: expected version 1; found 2"
        );
        assert_eq!(
            found(b"\x01\x08"),
            "level of a page: expected at most 7; found 8"
        );
        assert_eq!(
            found(b"\x01\0\0\0\0"),
            "rows of a page: expected at least 1; found 0"
        );
        assert_eq!(
            found(b"\x01\0\x02\0\0\x01b\0\x01a\0"),
            "page: expected keys in rising order; found other octets"
        );
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Page::decode(octets.into(), &at());
        }
    }

    /// A key has the common prefix, and is within its bound as a whole.
    #[test]
    fn the_prefix_counts_for_the_bound_of_keys() {
        let page = |prefix: usize, rest: usize| {
            let mut octets = vec![1, 0, 1, 0];
            put_counted(&mut octets, &vec![b'p'; prefix]);
            put_counted(&mut octets, &vec![b'k'; rest]);
            put_counted(&mut octets, b"value");
            Page::decode(octets.into(), &at())
        };
        assert!(page(200, KEY_OCTETS_MAX - 200).is_ok());
        assert!(page(200, KEY_OCTETS_MAX - 199).is_err());
        assert!(page(KEY_OCTETS_MAX + 1, 0).is_err());
    }

    /// Only a place without pack and mail is one of the same mail.
    #[test]
    fn places_of_other_mails_stay() {
        let other = |pack, mail| Child {
            place: Locator {
                pack: PackNumber(pack),
                mail: MailId([mail; 16]),
                at: 700,
                sealed_len: 30,
                ..Locator::default()
            },
            inodes: 0,
            octets: 0,
        };
        for (pack, mail, is_here) in [(0, 0, true), (0, 5, false), (5, 0, false), (5, 5, false)] {
            let child = other(pack, mail);
            let octets = encode_inner(3, &[(b"key", child)]);
            let page = Page::decode(octets.into(), &at()).unwrap();
            assert_eq!(page.level(), 3);
            let mut expected = child.place;
            if is_here {
                expected = Locator {
                    at: 700,
                    sealed_len: 30,
                    ..at()
                };
            }
            assert_eq!(page.child(0).unwrap().place, expected);
        }
    }

    /// The cache of pages counts what a page takes in memory.
    #[test]
    fn a_page_weighs_what_it_holds() {
        let leaf = encode_leaf(&[(b"a", &[0; 10_000]), (b"b", b"")]);
        let octets = leaf.len();
        let leaf = Page::decode(leaf.into(), &at()).unwrap();
        assert!((octets..octets + 200).contains(&leaf.weight()));
        let child = Child {
            place: at(),
            inodes: 1,
            octets: 1,
        };
        let keys: Vec<[u8; 1]> = (0..100).map(|key| [key]).collect();
        let rows: Vec<(&[u8], Child)> = keys.iter().map(|key| (&key[..], child)).collect();
        let inner = encode_inner(1, &rows);
        let octets = inner.len();
        let inner = Page::decode(inner.into(), &at()).unwrap();
        assert!(inner.weight() >= octets + 100 * size_of::<Child>());
    }
}
