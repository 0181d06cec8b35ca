//! Values about the volume: accounts, groups, writers, snapshots, mailboxes, the lease, and packs.

use super::inode::version;
use super::octets::{Reader, RowError, put_variable};
use crate::format::{Locator, MailCopy, MailId, PackNumber};

/// Octets of a text, such as a host's name.
pub const TEXT_OCTETS_MAX: usize = 255;
/// Accounts of a group, groups of an account, copies of a mail.
pub const MEMBERS_MAX: usize = 255;

/// The settings of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsRow {
    /// Features that a reader must know.
    pub reader_features: u32,
    /// Features that a writer must know.
    pub writer_features: u32,
    /// Seconds for which old states are kept.
    pub keep_versions_s: u64,
    /// Seconds for which a file stays readable that is open on a mount and removed on another.
    pub keep_deleted_s: u64,
}

/// An account, without its password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRow {
    /// How connections are secured; the numbers are those of the settings.
    pub security: u8,
    /// The encoding of mails.
    pub encoding: u8,
    /// Whether the account takes mails.
    pub state: u8,
    /// The port.
    pub port: u16,
    /// Octets of the largest decoded mail.
    pub mail_octets_max: u32,
    /// The host.
    pub host: String,
    /// The user.
    pub user: String,
    /// The groups.
    pub groups: Vec<u16>,
}

/// A group of accounts that hold equal packs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRow {
    /// The strategy.
    pub strategy: u8,
    /// Copies before a commit.
    pub sync_copies: u8,
    /// The accounts.
    pub accounts: Vec<u16>,
}

/// An installation that writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterRow {
    /// The id of the machine's state folder.
    pub machine: [u8; 16],
    /// The generation of the registration.
    pub registered: u64,
    /// Milliseconds since 1970.
    pub last_seen_ms: i64,
    /// The machine's name.
    pub name: String,
}

/// A kept state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotRow {
    /// The generation.
    pub generation: u64,
    /// Milliseconds since 1970.
    pub time_ms: i64,
    /// The page above all others.
    pub root: Locator,
    /// Inodes in all.
    pub inodes: u64,
    /// Octets of files in all.
    pub octets: u64,
}

/// The right of a single mount to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRow {
    /// The writer.
    pub writer: u16,
    /// Milliseconds since 1970.
    pub until_ms: i64,
}

/// A key slot that counts; a slot without such a row is revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRow {
    /// The mail of the slot.
    pub mail: MailId,
    /// How the key comes about: 1 passphrase, 2 key file.
    pub method: u8,
    /// A name for people.
    pub label: String,
}

/// A mail with data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackRow {
    /// The mail.
    pub mail: MailId,
    /// The kind of the mail.
    pub kind: u8,
    /// The group.
    pub group: u16,
    /// Octets of the decoded mail.
    pub octets: u32,
    /// Where the mail is kept.
    pub copies: Vec<MailCopy>,
}

/// A pack that is being deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TombstoneRow {
    /// The mail.
    pub mail: MailId,
    /// The generation that ended the pack.
    pub generation: u64,
    /// Milliseconds since 1970.
    pub time_ms: i64,
    /// Copies still to be deleted.
    pub copies: Vec<MailCopy>,
}

/// A value of a row with fixed octets.
pub trait RowValue: Sized {
    /// The octets of the value. Lists and texts above their bounds are cut.
    fn encode(&self) -> Vec<u8>;

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// The first field that no such value has.
    fn decode(octets: &[u8]) -> Result<Self, RowError>;
}

impl RowValue for SettingsRow {
    fn encode(&self) -> Vec<u8> {
        let mut row = vec![1];
        row.extend_from_slice(&self.reader_features.to_le_bytes());
        row.extend_from_slice(&self.writer_features.to_le_bytes());
        row.extend_from_slice(&self.keep_versions_s.to_le_bytes());
        row.extend_from_slice(&self.keep_deleted_s.to_le_bytes());
        row
    }

    fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        version(&mut reader)?;
        let row = Self {
            reader_features: reader.u32("features for readers")?,
            writer_features: reader.u32("features for writers")?,
            keep_versions_s: reader.u64("a retention of states")?,
            keep_deleted_s: reader.u64("a retention of removed files")?,
        };
        reader.end()?;
        Ok(row)
    }
}

impl RowValue for AccountRow {
    fn encode(&self) -> Vec<u8> {
        let mut row = vec![1, self.security, self.encoding, self.state];
        row.extend_from_slice(&self.port.to_le_bytes());
        row.extend_from_slice(&self.mail_octets_max.to_le_bytes());
        put_text(&mut row, &self.host);
        put_text(&mut row, &self.user);
        put_numbers(&mut row, &self.groups);
        row
    }

    fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        version(&mut reader)?;
        let row = Self {
            security: reader.u8("a security")?,
            encoding: reader.u8("an encoding")?,
            state: reader.u8("a state")?,
            port: reader.u16("a port")?,
            mail_octets_max: reader.u32("a size of mails")?,
            host: text(&mut reader, "a host")?,
            user: text(&mut reader, "a user")?,
            groups: numbers(&mut reader, "a group")?,
        };
        reader.end()?;
        Ok(row)
    }
}

impl RowValue for GroupRow {
    fn encode(&self) -> Vec<u8> {
        let mut row = vec![1, self.strategy, self.sync_copies];
        put_numbers(&mut row, &self.accounts);
        row
    }

    fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        version(&mut reader)?;
        let row = Self {
            strategy: reader.u8("a strategy")?,
            sync_copies: reader.u8("a number of copies")?,
            accounts: numbers(&mut reader, "an account")?,
        };
        reader.end()?;
        Ok(row)
    }
}

impl RowValue for WriterRow {
    fn encode(&self) -> Vec<u8> {
        let mut row = vec![1];
        row.extend_from_slice(&self.machine);
        row.extend_from_slice(&self.registered.to_le_bytes());
        row.extend_from_slice(&self.last_seen_ms.to_le_bytes());
        put_text(&mut row, &self.name);
        row
    }

    fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        version(&mut reader)?;
        let row = Self {
            machine: reader.array("a machine")?,
            registered: reader.u64("a generation")?,
            last_seen_ms: reader.i64("a time")?,
            name: text(&mut reader, "a machine's name")?,
        };
        reader.end()?;
        Ok(row)
    }
}

impl RowValue for SnapshotRow {
    fn encode(&self) -> Vec<u8> {
        let mut row = vec![1];
        row.extend_from_slice(&self.generation.to_le_bytes());
        row.extend_from_slice(&self.time_ms.to_le_bytes());
        self.root.encode(&mut row);
        row.extend_from_slice(&self.inodes.to_le_bytes());
        row.extend_from_slice(&self.octets.to_le_bytes());
        row
    }

    fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        version(&mut reader)?;
        let row = Self {
            generation: reader.u64("a generation")?,
            time_ms: reader.i64("a time")?,
            root: Locator {
                pack: PackNumber(reader.u64("a pack")?),
                mail: MailId(reader.array("a mail")?),
                copy: copy(&mut reader)?,
                at: reader.u32("a place in the pack")?,
                sealed_len: reader.u32("a sealed length")?,
            },
            inodes: reader.u64("a number of inodes")?,
            octets: reader.u64("a number of octets")?,
        };
        reader.end()?;
        Ok(row)
    }
}

impl RowValue for LeaseRow {
    fn encode(&self) -> Vec<u8> {
        let mut row = self.writer.to_le_bytes().to_vec();
        row.extend_from_slice(&self.until_ms.to_le_bytes());
        row
    }

    fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        let row = Self {
            writer: reader.u16("a writer")?,
            until_ms: reader.i64("a time")?,
        };
        reader.end()?;
        Ok(row)
    }
}

impl RowValue for PackRow {
    fn encode(&self) -> Vec<u8> {
        let mut row = self.mail.0.to_vec();
        row.push(self.kind);
        row.extend_from_slice(&self.group.to_le_bytes());
        row.extend_from_slice(&self.octets.to_le_bytes());
        put_copies(&mut row, &self.copies);
        row
    }

    fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        let row = Self {
            mail: MailId(reader.array("a mail")?),
            kind: reader.u8("a kind of mail")?,
            group: reader.u16("a group")?,
            octets: reader.u32("a number of octets")?,
            copies: copies(&mut reader)?,
        };
        reader.end()?;
        Ok(row)
    }
}

impl RowValue for TombstoneRow {
    fn encode(&self) -> Vec<u8> {
        let mut row = self.mail.0.to_vec();
        row.extend_from_slice(&self.generation.to_le_bytes());
        row.extend_from_slice(&self.time_ms.to_le_bytes());
        put_copies(&mut row, &self.copies);
        row
    }

    fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        let row = Self {
            mail: MailId(reader.array("a mail")?),
            generation: reader.u64("a generation")?,
            time_ms: reader.i64("a time")?,
            copies: copies(&mut reader)?,
        };
        reader.end()?;
        Ok(row)
    }
}

/// The UIDVALIDITY of a mailbox.
impl RowValue for u32 {
    fn encode(&self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }

    fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        let row = reader.u32("a UIDVALIDITY")?;
        reader.end()?;
        Ok(row)
    }
}

impl RowValue for SlotRow {
    fn encode(&self) -> Vec<u8> {
        let mut row = self.mail.0.to_vec();
        row.push(self.method);
        put_text(&mut row, &self.label);
        row
    }

    fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        let row = Self {
            mail: MailId(reader.array("a mail")?),
            method: reader.u8("a method of a key slot")?,
            label: text(&mut reader, "a label")?,
        };
        reader.end()?;
        Ok(row)
    }
}

fn put_text(row: &mut Vec<u8>, text: &str) {
    let end = text.floor_char_boundary(TEXT_OCTETS_MAX);
    let text = text.get(..end).unwrap_or_default();
    put_variable(row, text.len() as u64);
    row.extend_from_slice(text.as_bytes());
}

fn text(reader: &mut Reader<'_>, expected: &'static str) -> Result<String, RowError> {
    let octets = reader.variable(expected)?;
    let length = usize::try_from(octets).ok();
    let Some(length) = length.filter(|length| *length <= TEXT_OCTETS_MAX) else {
        return Err(RowError::new(
            "a text of 255 octets",
            format!("{octets} octets"),
        ));
    };
    let octets = reader.take(length, expected)?;
    let text = str::from_utf8(octets);
    text.map(str::to_owned)
        .map_err(|error| RowError::new(expected, error.to_string()))
}

fn count(row: &mut Vec<u8>, members: usize) -> usize {
    let members = members.min(MEMBERS_MAX);
    row.push(u8::try_from(members).unwrap_or(u8::MAX));
    members
}

fn put_numbers(row: &mut Vec<u8>, numbers: &[u16]) {
    let members = count(row, numbers.len());
    for number in numbers.iter().take(members) {
        row.extend_from_slice(&number.to_le_bytes());
    }
}

fn numbers(reader: &mut Reader<'_>, expected: &'static str) -> Result<Vec<u16>, RowError> {
    let members = reader.u8("a number of members")?;
    (0..members).map(|_| reader.u16(expected)).collect()
}

fn put_copies(row: &mut Vec<u8>, copies: &[MailCopy]) {
    let members = count(row, copies.len());
    for copy in copies.iter().take(members) {
        copy.encode(row);
    }
}

fn copies(reader: &mut Reader<'_>) -> Result<Vec<MailCopy>, RowError> {
    let members = reader.u8("a number of copies")?;
    (0..members).map(|_| copy(reader)).collect()
}

fn copy(reader: &mut Reader<'_>) -> Result<MailCopy, RowError> {
    Ok(MailCopy {
        account: reader.u16("an account")?,
        mailbox: reader.u16("a mailbox")?,
        uid: reader.u32("a UID")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::exact;

    use proptest::prelude::*;

    use super::*;

    /// Octets that are a value come from that value; cut and longer octets are refused.
    #[test]
    fn values_have_these_octets() {
        let copy = MailCopy {
            account: 1,
            mailbox: 16,
            uid: 3,
        };
        let account = AccountRow {
            security: 2,
            encoding: 1,
            state: 0,
            port: 993,
            mail_octets_max: 0x0040_0000,
            host: "mx".into(),
            user: "ä".into(),
            groups: vec![7],
        };
        exact(
            &account,
            b"\x01\x02\x01\0\xe1\x03\0\0\x40\0\x02mx\x02\xc3\xa4\x01\x07\0",
        );
        let group = GroupRow {
            strategy: 1,
            sync_copies: 2,
            accounts: vec![1, 258],
        };
        exact(&group, &[1, 1, 2, 2, 1, 0, 2, 1]);
        let pack = PackRow {
            mail: MailId([9; 16]),
            kind: 5,
            group: 1,
            octets: 70,
            copies: vec![copy],
        };
        let octets = [
            &[9; 16][..],
            &[5, 1, 0, 70, 0, 0, 0, 1, 1, 0, 16, 0, 3, 0, 0, 0],
        ]
        .concat();
        exact(&pack, &octets);
        let tombstone = TombstoneRow {
            mail: MailId([9; 16]),
            generation: 4,
            time_ms: -1,
            copies: Vec::new(),
        };
        exact(
            &tombstone,
            &[&[9; 16][..], &[4, 0, 0, 0, 0, 0, 0, 0], &[255; 8], &[0]].concat(),
        );
        exact(
            &LeaseRow {
                writer: 1,
                until_ms: 2,
            },
            &[1, 0, 2, 0, 0, 0, 0, 0, 0, 0],
        );
        exact(&7u32, &[7, 0, 0, 0]);
        let slot = SlotRow {
            mail: MailId([1; 16]),
            method: 2,
            label: "key".into(),
        };
        exact(&slot, &[&[1; 16][..], &[2, 3], b"key"].concat());
    }

    #[test]
    fn further_values_come_back() {
        let settings = SettingsRow {
            reader_features: 1,
            writer_features: 2,
            keep_versions_s: 3,
            keep_deleted_s: 4,
        };
        exact(&settings, &settings.encode());
        let writer = WriterRow {
            machine: [3; 16],
            registered: 1,
            last_seen_ms: 2,
            name: "desk".into(),
        };
        exact(&writer, &writer.encode());
        let snapshot = SnapshotRow {
            generation: 1,
            time_ms: 2,
            root: Locator {
                at: 68,
                sealed_len: 17,
                ..Locator::default()
            },
            inodes: 3,
            octets: 4,
        };
        exact(&snapshot, &snapshot.encode());
        assert_eq!(snapshot.encode().len(), 73);
    }

    #[test]
    fn a_wrong_text_is_named() {
        let found = AccountRow::decode(b"\x01\x02\x01\0\xe1\x03\0\0\x40\0\x02\xff\xff\0\0");
        assert!(
            found
                .unwrap_err()
                .to_string()
                .starts_with("expected a host; found invalid utf-8")
        );
        let found = AccountRow::decode(b"\x01\x02\x01\0\xe1\x03\0\0\x40\0\x80\x02");
        assert_eq!(
            found.unwrap_err().to_string(),
            "expected a text of 255 octets; found 256 octets"
        );
    }

    fn read_or_refused<V: RowValue>(octets: &[u8]) {
        if let Ok(value) = V::decode(octets) {
            assert_eq!(value.encode(), octets);
        }
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(mut octets in prop::collection::vec(any::<u8>(), 1..90)) {
            for _ in 0..2 {
                read_or_refused::<SettingsRow>(&octets);
                read_or_refused::<AccountRow>(&octets);
                read_or_refused::<GroupRow>(&octets);
                read_or_refused::<WriterRow>(&octets);
                read_or_refused::<SnapshotRow>(&octets);
                read_or_refused::<LeaseRow>(&octets);
                read_or_refused::<PackRow>(&octets);
                read_or_refused::<TombstoneRow>(&octets);
                read_or_refused::<SlotRow>(&octets);
                octets[0] = 1;
            }
        }
    }
}
