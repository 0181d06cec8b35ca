//! Values that upkeep of a volume goes by: checkpoints, and the time of the last runs.
//!
//! ```text
//! 01 09 generation u64   version u8 = 1 | covered commit (16) | UID of the commit u32 | time i64 (ms) | superseded i64 (ms, 0: not seen yet)
//!                        | root page: locator (40), zeros when the pages are gone
//! 01 0a                  version u8 = 1 | time of the volume i64 (ms) | last collection i64 (ms) | last check i64 (ms)
//!                        | octets of packs u64 | octets of these that files need u64
//! ```

use super::inode::version;
use super::octets::{Reader, RowError};
use super::volume::RowValue;
use crate::format::{Locator, MailCopy, MailId, PackNumber};

/// A checkpoint. The row outlives the pages, so that a machine can tell a volume that was set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateRow {
    /// The newest commit that the checkpoint covers.
    pub commit: MailId,
    /// The UID of the commit in the lead's log.
    pub uid: u32,
    /// When the checkpoint was made: milliseconds since 1970.
    pub time_ms: i64,
    /// When a collection first saw a newer checkpoint, in time of the volume; 0 before.
    pub superseded_ms: i64,
    /// The page above all others; all zeros when the pages are gone.
    pub root: Locator,
}

impl StateRow {
    /// Whether the pages of the checkpoint are kept.
    #[must_use]
    pub fn has_pages(&self) -> bool {
        self.root != Locator::default()
    }
}

/// The last runs of upkeep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UpkeepRow {
    /// The time of the volume: the sum of the times between collections, each counted with care.
    pub volume_ms: i64,
    /// The clock of the last collection: milliseconds since 1970; 0 if there was none.
    pub collected_ms: i64,
    /// The clock of the last check; 0 if there was none.
    pub checked_ms: i64,
    /// Octets of all packs, each once, as of the last collection.
    pub octets: u64,
    /// Octets of these that files need.
    pub live_octets: u64,
}

impl RowValue for StateRow {
    fn encode(&self) -> Vec<u8> {
        let mut row = vec![1];
        row.extend_from_slice(&self.commit.0);
        row.extend_from_slice(&self.uid.to_le_bytes());
        row.extend_from_slice(&self.time_ms.to_le_bytes());
        row.extend_from_slice(&self.superseded_ms.to_le_bytes());
        self.root.encode(&mut row);
        row
    }

    fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        version(&mut reader)?;
        let row = Self {
            commit: MailId(reader.array("a commit")?),
            uid: reader.u32("a UID")?,
            time_ms: reader.i64("a time")?,
            superseded_ms: reader.i64("a time")?,
            root: Locator {
                pack: PackNumber(reader.u64("a pack")?),
                mail: MailId(reader.array("a mail")?),
                copy: MailCopy {
                    account: reader.u16("an account")?,
                    mailbox: reader.u16("a mailbox")?,
                    uid: reader.u32("a UID")?,
                },
                at: reader.u32("a place in the pack")?,
                sealed_len: reader.u32("a sealed length")?,
            },
        };
        reader.end()?;
        Ok(row)
    }
}

impl RowValue for UpkeepRow {
    fn encode(&self) -> Vec<u8> {
        let mut row = vec![1];
        for time in [self.volume_ms, self.collected_ms, self.checked_ms] {
            row.extend_from_slice(&time.to_le_bytes());
        }
        row.extend_from_slice(&self.octets.to_le_bytes());
        row.extend_from_slice(&self.live_octets.to_le_bytes());
        row
    }

    fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        version(&mut reader)?;
        let row = Self {
            volume_ms: reader.i64("a time")?,
            collected_ms: reader.i64("a time")?,
            checked_ms: reader.i64("a time")?,
            octets: reader.u64("a number of octets")?,
            live_octets: reader.u64("a number of octets")?,
        };
        reader.end()?;
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::exact;
    use super::*;

    #[test]
    fn values_come_back_and_nothing_else_is_read() {
        let state = StateRow {
            commit: MailId([7; 16]),
            uid: 9,
            time_ms: -1,
            superseded_ms: 3,
            root: Locator {
                at: 68,
                ..Locator::default()
            },
        };
        assert_eq!(state.encode().len(), 77);
        exact(&state, &state.encode());
        assert!(state.has_pages());
        let upkeep = UpkeepRow {
            volume_ms: 1,
            collected_ms: 2,
            checked_ms: 3,
            octets: 4,
            live_octets: 5,
        };
        exact(&upkeep, &upkeep.encode());
    }
}
