//! The account whose log orders the commits, after a change of the lead.
//!
//! ```text
//! 01 0b   version u8 = 1 | account u16 | lead epoch u32 | generation of the change u64
//! ```

use super::inode::version;
use super::octets::{Reader, RowError};
use super::volume::RowValue;

/// The lead since its last change. A volume without the row has the lead of its first commit, in epoch 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeadRow {
    /// The account.
    pub account: u16,
    /// The epoch of the lead, from 2 on: one more with every change.
    pub epoch: u32,
    /// The generation of the commit that made the change. UIDs that name commits of this generation and later ones are those of
    /// the account; earlier ones are of a log before.
    pub since: u64,
}

impl RowValue for LeadRow {
    fn encode(&self) -> Vec<u8> {
        let mut row = vec![1];
        row.extend_from_slice(&self.account.to_le_bytes());
        row.extend_from_slice(&self.epoch.to_le_bytes());
        row.extend_from_slice(&self.since.to_le_bytes());
        row
    }

    fn decode(octets: &[u8]) -> Result<Self, RowError> {
        let mut reader = Reader::new(octets);
        version(&mut reader)?;
        let row = Self {
            account: reader.u16("an account")?,
            epoch: reader.u32("a lead epoch")?,
            since: reader.u64("a generation")?,
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
        let row = LeadRow {
            account: 3,
            epoch: 2,
            since: 9,
        };
        exact(&row, &[1, 3, 0, 2, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    }
}
