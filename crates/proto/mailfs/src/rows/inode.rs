//! Values of inodes and entries.

use vere_ports::files::{FileKind, FileTime, Inode};

use super::key::HOME_BITS;
use super::octets::{Reader, RowError};

/// The version of the values.
const VERSION: u8 = 1;
/// Octets of an inode's value, without the target of a symbolic link.
const INODE_OCTETS: usize = 96;
/// The highest size of a file.
pub const FILE_SIZE_MAX: u64 = i64::MAX.cast_unsigned();
/// Octets of a symbolic link's target.
pub const SYMLINK_OCTETS_MAX: usize = 4095;
/// Octets of the value of an extended attribute.
pub const XATTR_OCTETS_MAX: usize = 64 * 1024;
/// Bits of the permissions with set-id bits and sticky bit.
const MODE_MAX: u16 = 0o7777;
/// Nanoseconds of a second.
const NANOSECONDS: u32 = 1_000_000_000;

/// The value of an inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InodeRow {
    /// The type.
    pub kind: FileKind,
    /// Permissions with set-id bits and sticky bit.
    pub mode: u16,
    /// Hard links.
    pub links: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The length of a file or a target.
    pub size: u64,
    /// The home of a folder's entries, or a device's number.
    pub home_or_device: u64,
    /// The folder above a folder; the root folder is above the root folder. 0 for others.
    pub parent: u64,
    /// How often the stored content of a file has changed.
    pub generation: u64,
    /// Last access.
    pub atime: FileTime,
    /// Last change of content.
    pub mtime: FileTime,
    /// Last change of facts.
    pub ctime: FileTime,
    /// Creation.
    pub btime: FileTime,
    /// The target of a symbolic link.
    pub target: Vec<u8>,
}

impl InodeRow {
    /// The octets of the value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(INODE_OCTETS.saturating_add(self.target.len()));
        row.extend_from_slice(&[VERSION, self.kind as u8]);
        row.extend_from_slice(&self.mode.to_le_bytes());
        for number in [self.links, self.uid, self.gid] {
            row.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.size, self.home_or_device, self.parent, self.generation] {
            row.extend_from_slice(&number.to_le_bytes());
        }
        for time in [self.atime, self.mtime, self.ctime, self.btime] {
            row.extend_from_slice(&time.seconds.to_le_bytes());
            row.extend_from_slice(&time.nanoseconds.to_le_bytes());
        }
        row.extend_from_slice(&self.target);
        row
    }

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// The first field that no inode has.
    pub fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        version(&mut reader)?;
        let kind = kind(&mut reader)?;
        let mode = reader.u16("a mode")?;
        if mode > MODE_MAX {
            return Err(RowError::new("a mode of 12 bits", format!("{mode:#o}")));
        }
        let links = reader.u32("a number of links")?;
        let uid = reader.u32("an owner")?;
        let gid = reader.u32("a group")?;
        let size = reader.u64("a size")?;
        if size > FILE_SIZE_MAX {
            return Err(RowError::new("a size below 2^63", size.to_string()));
        }
        let home_or_device = reader.u64("a home or a device")?;
        let parent = reader.u64("a parent")?;
        let row = Self {
            kind,
            mode,
            links,
            uid,
            gid,
            size,
            home_or_device,
            parent,
            generation: reader.u64("a content generation")?,
            atime: time(&mut reader)?,
            mtime: time(&mut reader)?,
            ctime: time(&mut reader)?,
            btime: time(&mut reader)?,
            target: reader.rest().to_vec(),
        };
        row.checked()
    }

    /// Compares the fields with the type.
    fn checked(self) -> Result<Self, RowError> {
        let number = self.home_or_device;
        match self.kind {
            FileKind::Folder if number >> HOME_BITS != 0 => {
                return Err(RowError::new("a home of 40 bits", number.to_string()));
            }
            FileKind::CharDevice | FileKind::BlockDevice if u32::try_from(number).is_err() => {
                return Err(RowError::new("a device of 32 bits", number.to_string()));
            }
            FileKind::Symlink => {
                let octets = self.target.len();
                if octets == 0 || octets > SYMLINK_OCTETS_MAX {
                    let found = format!("{octets} octets");
                    return Err(RowError::new("a target of 1 to 4095 octets", found));
                }
                if u64::try_from(octets) != Ok(self.size) {
                    let found = format!("{octets} octets for the size {}", self.size);
                    return Err(RowError::new("a target of the size", found));
                }
                return Ok(self);
            }
            _ => {}
        }
        if !self.target.is_empty() {
            let found = format!("{} octets", self.target.len());
            return Err(RowError::new("the row's end", found));
        }
        Ok(self)
    }

    /// The device's number; 0 for anything but devices.
    #[must_use]
    pub fn device(&self) -> u32 {
        match self.kind {
            FileKind::CharDevice | FileKind::BlockDevice => {
                u32::try_from(self.home_or_device).unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Whether the inode is a folder.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.kind == FileKind::Folder
    }
}

/// The value of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryRow {
    /// The inode.
    pub inode: Inode,
    /// The type.
    pub kind: FileKind,
}

/// The octets of an entry's value.
#[must_use]
pub fn encode_entry(entry: EntryRow) -> Vec<u8> {
    let mut row = Vec::with_capacity(9);
    row.extend_from_slice(&entry.inode.0.to_le_bytes());
    row.push(entry.kind as u8);
    row
}

/// Reads an entry's value.
///
/// # Errors
///
/// The first field that no entry has.
pub fn decode_entry(octets: &[u8]) -> Result<EntryRow, RowError> {
    let mut reader = Reader::new(octets);
    let inode = Inode(reader.u64("an inode")?);
    if inode.0 == 0 {
        return Err(RowError::new("an inode above 0", "0"));
    }
    let kind = kind(&mut reader)?;
    reader.end()?;
    Ok(EntryRow { inode, kind })
}

pub(super) fn version(reader: &mut Reader<'_>) -> Result<(), RowError> {
    match reader.u8("a version")? {
        VERSION => Ok(()),
        other => Err(RowError::new("version 1", format!("version {other}"))),
    }
}

fn kind(reader: &mut Reader<'_>) -> Result<FileKind, RowError> {
    Ok(match reader.u8("a type")? {
        1 => FileKind::File,
        2 => FileKind::Folder,
        3 => FileKind::Symlink,
        4 => FileKind::Fifo,
        5 => FileKind::Socket,
        6 => FileKind::CharDevice,
        7 => FileKind::BlockDevice,
        other => return Err(RowError::new("a type from 1 to 7", other.to_string())),
    })
}

fn time(reader: &mut Reader<'_>) -> Result<FileTime, RowError> {
    let seconds = reader.i64("seconds")?;
    let nanoseconds = reader.u32("nanoseconds")?;
    if nanoseconds >= NANOSECONDS {
        let expected = "nanoseconds below 1,000,000,000";
        return Err(RowError::new(expected, nanoseconds.to_string()));
    }
    Ok(FileTime {
        seconds,
        nanoseconds,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(kind: FileKind) -> InodeRow {
        let time = |seconds| FileTime {
            seconds,
            nanoseconds: 999_999_999,
        };
        InodeRow {
            kind,
            mode: 0o4755,
            links: 2,
            uid: 3,
            gid: 4,
            size: 5,
            home_or_device: 6,
            parent: 7,
            generation: 8,
            atime: time(-1),
            mtime: time(2),
            ctime: time(3),
            btime: time(4),
            target: Vec::new(),
        }
    }

    #[test]
    fn an_inode_has_these_octets() {
        let row = sample(FileKind::File).encode();
        assert_eq!(row.len(), INODE_OCTETS);
        assert_eq!(
            &row[..16],
            [1, 1, 0xed, 9, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]
        );
        assert_eq!((row[16], row[24], row[32], row[40]), (5, 6, 7, 8));
        assert_eq!(
            &row[48..60],
            [
                255, 255, 255, 255, 255, 255, 255, 255, 0xff, 0xc9, 0x9a, 0x3b
            ]
        );
        assert_eq!(InodeRow::decode(&row), Ok(sample(FileKind::File)));
    }

    #[test]
    fn wrong_inodes_are_named() {
        let good = sample(FileKind::File).encode();
        let found = |at: usize, octet: u8| {
            let mut row = good.clone();
            row[at] = octet;
            InodeRow::decode(&row).unwrap_err().to_string()
        };
        assert_eq!(found(0, 2), "expected version 1; found version 2");
        assert_eq!(found(1, 8), "expected a type from 1 to 7; found 8");
        assert_eq!(found(3, 0xff), "expected a mode of 12 bits; found 0o177755");
        assert_eq!(
            found(23, 0xff),
            "expected a size below 2^63; found 18374686479671623685"
        );
        assert_eq!(
            found(59, 0xff),
            "expected nanoseconds below 1,000,000,000; found 4288334335"
        );
        let longer = [&good[..], &[0]].concat();
        let found = InodeRow::decode(&longer).unwrap_err().to_string();
        assert_eq!(found, "expected the row's end; found 1 octets");
        let link = sample(FileKind::Symlink).encode();
        let found = InodeRow::decode(&link).unwrap_err().to_string();
        assert_eq!(
            found,
            "expected a target of 1 to 4095 octets; found 0 octets"
        );
    }

    #[test]
    fn an_entry_has_these_octets() {
        let entry = EntryRow {
            inode: Inode(0x0102),
            kind: FileKind::Folder,
        };
        let row = encode_entry(entry);
        assert_eq!(row, [2, 1, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(decode_entry(&row), Ok(entry));
        assert!(decode_entry(&[0; 9]).is_err());
        assert!(decode_entry(&row[..8]).is_err());
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(
            octets in proptest::collection::vec(any::<u8>(), 0..120),
            kind in 1u8..=7,
        ) {
            let forms = [octets.clone(), [&[1, kind][..], &octets].concat()];
            for form in forms {
                if let Ok(row) = InodeRow::decode(&form) {
                    prop_assert_eq!(row.encode(), form.clone());
                }
                if let Ok(row) = decode_entry(&form) {
                    prop_assert_eq!(encode_entry(row), form);
                }
            }
        }

        #[test]
        fn a_link_comes_back(target in proptest::collection::vec(any::<u8>(), 1..200)) {
            let mut row = sample(FileKind::Symlink);
            row.size = target.len() as u64;
            row.target = target;
            prop_assert_eq!(InodeRow::decode(&row.encode()), Ok(row));
        }
    }
}
