//! Keys of rows. Numbers in keys are big-endian, so that keys in octet order are in the order of their numbers.

use vere_ports::files::Inode;

use super::octets::{Reader, RowError};

/// A place of inodes and entries side by side: writer u12, block u28.
pub type Home = u64;

/// Bits of a [`Home`].
pub const HOME_BITS: u32 = 40;
/// Bits of a slot, an inode's place in a home.
pub const SLOT_BITS: u32 = 24;
/// The highest slot of a home.
pub const SLOT_MAX: u32 = (1 << SLOT_BITS) - 1;
/// The home of the root folder's entries; the root folder is slot 1 in this home.
pub const ROOT_HOME: Home = 0;
/// Octets of a name of an entry or of an extended attribute.
pub const NAME_OCTETS_MAX: usize = 255;
/// Octets of a key.
pub const KEY_OCTETS_MAX: usize = 300;

const VOLUME: u8 = 1;
const TREE: u8 = 2;
const PACK: u8 = 3;
const UNNAMED: u8 = 4;
const TOMBSTONE: u8 = 5;

const ENTRY: u8 = 1;
const INODE: u8 = 2;
const XATTR: u8 = 3;
const EXTENTS: u8 = 4;

/// The home of an inode.
#[must_use]
pub fn home_of(inode: Inode) -> Home {
    inode.0 >> SLOT_BITS
}

/// The slot of an inode.
#[must_use]
pub fn slot_of(inode: Inode) -> u32 {
    u32::try_from(inode.0 & u64::from(SLOT_MAX)).unwrap_or(SLOT_MAX)
}

/// The inode in a slot of a home.
#[must_use]
pub fn inode_of(home: Home, slot: u32) -> Inode {
    Inode((home << SLOT_BITS) | u64::from(slot & SLOT_MAX))
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "names of the format's page")]
pub enum Key<'a> {
    /// Settings of the volume.
    Settings,
    Account(u16),
    Group(u16),
    Writer(u16),
    Snapshot(&'a [u8]),
    Mailbox {
        account: u16,
        mailbox: u16,
    },
    /// A key slot.
    Slot(u8),
    Lease,
    /// A checkpoint, by the generation that the checkpoint covers.
    State(u64),
    /// When upkeep ran last.
    Upkeep,
    /// The account whose log orders the commits.
    Lead,
    Entry {
        home: Home,
        name: &'a [u8],
    },
    Inode(Inode),
    Xattr {
        inode: Inode,
        name: &'a [u8],
    },
    /// Extents from this offset of the file on.
    Extents {
        inode: Inode,
        offset: u64,
    },
    Pack(u64),
    /// A file that is open and has no name.
    Unnamed {
        writer: u16,
        inode: Inode,
    },
    Tombstone(u64),
}

impl<'a> Key<'a> {
    /// The octets of the key.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let volume = |part: u8, rest: &[u8]| [&[VOLUME, part][..], rest].concat();
        match *self {
            Self::Settings => volume(1, &[]),
            Self::Account(account) => volume(2, &account.to_be_bytes()),
            Self::Group(group) => volume(3, &group.to_be_bytes()),
            Self::Writer(writer) => volume(4, &writer.to_be_bytes()),
            Self::Snapshot(name) => volume(5, name),
            Self::Mailbox { account, mailbox } => {
                volume(6, &[account.to_be_bytes(), mailbox.to_be_bytes()].concat())
            }
            Self::Slot(slot) => volume(7, &[slot]),
            Self::Lease => volume(8, &[]),
            Self::State(generation) => volume(9, &generation.to_be_bytes()),
            Self::Upkeep => volume(10, &[]),
            Self::Lead => volume(11, &[]),
            Self::Entry { home, name } => entry_key(home, name),
            Self::Inode(inode) => inode_key(inode).to_vec(),
            Self::Xattr { inode, name } => xattr_key(inode, name),
            Self::Extents { inode, offset } => extents_key(inode, offset).to_vec(),
            Self::Pack(pack) => [&[PACK][..], &pack.to_be_bytes()].concat(),
            Self::Unnamed { writer, inode } => unnamed_key(writer, inode).to_vec(),
            Self::Tombstone(pack) => [&[TOMBSTONE][..], &pack.to_be_bytes()].concat(),
        }
    }

    /// Reads a key.
    ///
    /// # Errors
    ///
    /// The first field that no key has.
    pub fn decode(octets: &'a [u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        let key = match reader.u8("a table of rows")? {
            VOLUME => return volume_key(reader),
            TREE => return tree_key(reader),
            PACK => Self::Pack(number(&mut reader)?),
            UNNAMED => Self::Unnamed {
                writer: account(&mut reader)?,
                inode: Inode(number(&mut reader)?),
            },
            TOMBSTONE => Self::Tombstone(number(&mut reader)?),
            other => return Err(RowError::new("a table of rows, 1 to 5", other.to_string())),
        };
        reader.end()?;
        Ok(key)
    }
}

fn account(reader: &mut Reader<'_>) -> Result<u16, RowError> {
    reader.array("a number of 16 bits").map(u16::from_be_bytes)
}

fn number(reader: &mut Reader<'_>) -> Result<u64, RowError> {
    reader.array("a number of 64 bits").map(u64::from_be_bytes)
}

fn volume_key(mut reader: Reader<'_>) -> Result<Key<'_>, RowError> {
    let key = match reader.u8("a kind of fact about the volume")? {
        1 => Key::Settings,
        2 => Key::Account(account(&mut reader)?),
        3 => Key::Group(account(&mut reader)?),
        4 => Key::Writer(account(&mut reader)?),
        5 => return name(reader).map(Key::Snapshot),
        6 => Key::Mailbox {
            account: account(&mut reader)?,
            mailbox: account(&mut reader)?,
        },
        7 => Key::Slot(reader.u8("a key slot")?),
        8 => Key::Lease,
        9 => Key::State(number(&mut reader)?),
        10 => Key::Upkeep,
        11 => Key::Lead,
        other => {
            let expected = "a kind of fact about the volume, 1 to 11";
            return Err(RowError::new(expected, other.to_string()));
        }
    };
    reader.end()?;
    Ok(key)
}

fn tree_key(mut reader: Reader<'_>) -> Result<Key<'_>, RowError> {
    let [a, b, c, d, e] = reader.array("a home")?;
    let home = u64::from_be_bytes([0, 0, 0, a, b, c, d, e]);
    let kind = reader.u8("a kind of row in a home")?;
    if kind == ENTRY {
        let name = name(reader)?;
        if name.iter().any(|octet| matches!(octet, 0 | b'/')) || matches!(name, b"." | b"..") {
            let found = String::from_utf8_lossy(name).into_owned();
            return Err(RowError::new("a name of a file", found));
        }
        return Ok(Key::Entry { home, name });
    }
    if !(INODE..=EXTENTS).contains(&kind) {
        let expected = "a kind of row in a home, 1 to 4";
        return Err(RowError::new(expected, kind.to_string()));
    }
    let [a, b, c] = reader.array("a slot")?;
    let inode = inode_of(home, u32::from_be_bytes([0, a, b, c]));
    match kind {
        XATTR => name(reader).map(|name| Key::Xattr { inode, name }),
        EXTENTS => {
            let offset = number(&mut reader)?;
            reader.end()?;
            Ok(Key::Extents { inode, offset })
        }
        _ => {
            reader.end()?;
            Ok(Key::Inode(inode))
        }
    }
}

fn name(reader: Reader<'_>) -> Result<&[u8], RowError> {
    let name = reader.rest();
    if name.is_empty() || name.len() > NAME_OCTETS_MAX {
        let found = format!("{} octets", name.len());
        return Err(RowError::new("a name of 1 to 255 octets", found));
    }
    Ok(name)
}

fn in_home(home: Home, kind: u8) -> [u8; 7] {
    let [_, _, _, a, b, c, d, e] = home.to_be_bytes();
    [TREE, a, b, c, d, e, kind]
}

fn in_slot(inode: Inode, kind: u8) -> [u8; 10] {
    let [h0, h1, h2, h3, h4, s0, s1, s2] = inode.0.to_be_bytes();
    [TREE, h0, h1, h2, h3, h4, kind, s0, s1, s2]
}

/// The beginning of the keys of all entries in a home.
#[must_use]
pub fn entries_prefix(home: Home) -> [u8; 7] {
    in_home(home, ENTRY)
}

/// The key of an entry.
#[must_use]
pub fn entry_key(home: Home, name: &[u8]) -> Vec<u8> {
    let prefix = entries_prefix(home);
    let mut key = Vec::with_capacity(prefix.len().saturating_add(name.len()));
    key.extend_from_slice(&prefix);
    key.extend_from_slice(name);
    key
}

/// The key of an inode.
#[must_use]
pub fn inode_key(inode: Inode) -> [u8; 10] {
    in_slot(inode, INODE)
}

/// The beginning of the keys of all extended attributes of an inode.
#[must_use]
pub fn xattrs_prefix(inode: Inode) -> [u8; 10] {
    in_slot(inode, XATTR)
}

/// The key of an extended attribute.
#[must_use]
pub fn xattr_key(inode: Inode, name: &[u8]) -> Vec<u8> {
    [&xattrs_prefix(inode)[..], name].concat()
}

/// The beginning of the keys of all extents of an inode.
#[must_use]
pub fn extents_prefix(inode: Inode) -> [u8; 10] {
    in_slot(inode, EXTENTS)
}

/// The key of the extents from an offset on.
#[must_use]
pub fn extents_key(inode: Inode, offset: u64) -> [u8; 18] {
    let mut key = [0; 18];
    let (prefix, number) = key.split_at_mut(10);
    prefix.copy_from_slice(&extents_prefix(inode));
    number.copy_from_slice(&offset.to_be_bytes());
    key
}

/// The beginning of the keys of all packs.
#[must_use]
pub const fn packs_prefix() -> [u8; 1] {
    [PACK]
}

/// The beginning of the keys of all tombstones.
#[must_use]
pub const fn tombstones_prefix() -> [u8; 1] {
    [TOMBSTONE]
}

/// The beginning of the keys of all entries, inodes, attributes and extents.
#[must_use]
pub const fn tree_prefix() -> [u8; 1] {
    [TREE]
}

/// The beginning of the keys of all mailboxes' numbers.
#[must_use]
pub const fn mailboxes_prefix() -> [u8; 2] {
    [VOLUME, 6]
}

/// The beginning of the keys of all facts about the volume.
#[must_use]
pub const fn facts_prefix() -> [u8; 1] {
    [VOLUME]
}

/// The beginning of the keys of all key slots.
#[must_use]
pub const fn slots_prefix() -> [u8; 2] {
    [VOLUME, 7]
}

/// The beginning of the keys of all checkpoints.
#[must_use]
pub const fn states_prefix() -> [u8; 2] {
    [VOLUME, 9]
}

/// The beginning of the keys of all snapshots.
#[must_use]
pub const fn snapshots_prefix() -> [u8; 2] {
    [VOLUME, 5]
}

/// The beginning of the keys of all writers.
#[must_use]
pub const fn writers_prefix() -> [u8; 2] {
    [VOLUME, 4]
}

/// The beginning of the keys of a writer's open files without names.
#[must_use]
pub fn unnamed_prefix(writer: u16) -> [u8; 3] {
    let [high, low] = writer.to_be_bytes();
    [UNNAMED, high, low]
}

/// The key of an open file without a name.
#[must_use]
pub fn unnamed_key(writer: u16, inode: Inode) -> [u8; 11] {
    let mut key = [0; 11];
    let (prefix, number) = key.split_at_mut(3);
    prefix.copy_from_slice(&unnamed_prefix(writer));
    number.copy_from_slice(&inode.0.to_be_bytes());
    key
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_have_these_octets() {
        let inode = inode_of(0x01_0000_0002, 3);
        let vectors: [(Key<'_>, &[u8]); 14] = [
            (Key::Settings, &[1, 1]),
            (Key::Account(258), &[1, 2, 1, 2]),
            (Key::Snapshot(b"now"), b"\x01\x05now"),
            (
                Key::Mailbox {
                    account: 1,
                    mailbox: 16,
                },
                &[1, 6, 0, 1, 0, 16],
            ),
            (Key::Slot(9), &[1, 7, 9]),
            (Key::State(258), &[1, 9, 0, 0, 0, 0, 0, 0, 1, 2]),
            (Key::Upkeep, &[1, 10]),
            (
                Key::Entry {
                    home: 5,
                    name: b"a",
                },
                &[2, 0, 0, 0, 0, 5, 1, b'a'],
            ),
            (Key::Inode(Inode::ROOT), &[2, 0, 0, 0, 0, 0, 2, 0, 0, 1]),
            (Key::Inode(inode), &[2, 1, 0, 0, 0, 2, 2, 0, 0, 3]),
            (
                Key::Xattr {
                    inode,
                    name: b"user.a",
                },
                b"\x02\x01\0\0\0\x02\x03\0\0\x03user.a",
            ),
            (
                Key::Extents { inode, offset: 256 },
                &[2, 1, 0, 0, 0, 2, 4, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 0],
            ),
            (Key::Pack(1), &[3, 0, 0, 0, 0, 0, 0, 0, 1]),
            (
                Key::Unnamed {
                    writer: 1,
                    inode: Inode::ROOT,
                },
                &[4, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1],
            ),
        ];
        for (key, octets) in vectors {
            assert_eq!(key.encode(), octets);
            assert_eq!(Key::decode(octets), Ok(key));
        }
        assert_eq!((home_of(inode), slot_of(inode)), (0x01_0000_0002, 3));
    }

    #[test]
    fn wrong_keys_are_named() {
        let found = |octets: &[u8]| Key::decode(octets).unwrap_err().to_string();
        assert_eq!(found(&[]), "expected a table of rows; found 0 octets");
        assert_eq!(found(&[6]), "expected a table of rows, 1 to 5; found 6");
        assert_eq!(
            found(&[2, 0, 0, 0, 0, 0, 9]),
            "expected a kind of row in a home, 1 to 4; found 9"
        );
        assert_eq!(
            found(&[2, 0, 0, 0, 0, 0, 1]),
            "expected a name of 1 to 255 octets; found 0 octets"
        );
        assert_eq!(
            found(&[3, 0, 0, 0, 0, 0, 0, 0, 1, 0]),
            "expected the row's end; found 1 octets"
        );
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(key) = Key::decode(&octets) {
                prop_assert_eq!(key.encode(), octets);
            }
        }

        #[test]
        fn octet_order_is_the_order_of_offsets(inode: u64, a: u64, b: u64) {
            let key = |offset| extents_key(Inode(inode), offset);
            prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
        }
    }
}
