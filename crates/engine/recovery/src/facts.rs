//! The facts of a volume as its mails tell them, and the end of a recovery.

use std::collections::BTreeMap;

use vere_ports::mail_accounts::AccountId;

use super::slots::SlotReport;
use crate::format::slot::{Slot, SlotKeys};
use crate::format::volume::Facts;
use crate::format::{FormatError, Kind, MailId, PackNumber, VolumeId, open};
use crate::rows::{AccountRow, GroupRow, Key, RowValue, SlotRow};

/// Why a volume cannot be recovered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    /// No account has a slot.
    #[error("expected a key slot in mailbox head of an account; found none")]
    NoSlot,
    /// The secret opens no slot.
    #[error(
        "expected a passphrase or key file that opens one of {found} key slots; found another one ({tried} slots tried)"
    )]
    Closed {
        /// Slots that accounts have.
        found: usize,
        /// Slots that were tried.
        tried: usize,
    },
    /// The secret opens revoked slots only.
    #[error("the passphrase or key file belongs to key slot {number}, which is revoked")]
    Revoked {
        /// The number of a slot.
        number: u8,
    },
    /// No account has the facts.
    #[error(
        "expected the mail with the facts of the volume in mailbox head of an account; found none that the key opens"
    )]
    NoFacts,
}

/// What the accounts tell about a volume.
#[derive(Debug)]
pub struct Recovered {
    /// The volume.
    pub volume: VolumeId,
    /// The slot that opens the volume.
    pub slot: Slot,
    /// The keys in the slot.
    pub keys: SlotKeys,
    /// The newest facts.
    pub facts: Facts,
    /// Every slot.
    pub slots: Vec<SlotReport>,
    /// Accounts whose facts are older or missing.
    pub behind: Vec<AccountId>,
    /// Accounts that could not be read, with the reason.
    pub faults: BTreeMap<AccountId, String>,
}

/// The order of facts: newer ones are greater. The key epoch comes first, since a revoked key makes facts of its own epoch.
pub(super) type Rank = (u16, u32, u64, PackNumber, MailId);

/// Facts of a mail that the key opens.
#[derive(Debug, Clone)]
pub(super) struct Authentic {
    pub(super) rank: Rank,
    pub(super) facts: Facts,
}

/// Reads the facts in a body.
pub(super) fn read(
    body: &[u8],
    volume: VolumeId,
    keys: &crate::format::Keys,
) -> Result<(crate::format::Head, Authentic), FormatError> {
    let opened = open(body, keys, None)?;
    if opened.head.volume != volume || opened.head.kind != Kind::Volume {
        return Err(FormatError::Form {
            what: "mail with facts",
            expected: "a mail of this volume and kind",
        });
    }
    let facts = Facts::decode(opened.last())?;
    let head = opened.head;
    let rank = (
        head.epoch,
        facts.lead_epoch,
        facts.generation,
        head.pack,
        head.mail,
    );
    Ok((head, Authentic { rank, facts }))
}

/// Whether the rows of a volume know a slot. Rows without any slot know every slot.
pub(super) fn knows_slot(rows: &[(Vec<u8>, Vec<u8>)], number: u8, mail: MailId) -> bool {
    let mut lists = false;
    for (key, value) in rows {
        if let Ok(Key::Slot(of)) = Key::decode(key) {
            lists = true;
            if of == number && SlotRow::decode(value).is_ok_and(|row| row.mail == mail) {
                return true;
            }
        }
    }
    !lists
}

/// The accounts of a volume by its rows.
#[must_use]
pub fn account_rows(rows: &[(Vec<u8>, Vec<u8>)]) -> Vec<(u16, AccountRow)> {
    let account = |(key, value): &(Vec<u8>, Vec<u8>)| match Key::decode(key) {
        Ok(Key::Account(number)) => Some((number, AccountRow::decode(value).ok()?)),
        _ => None,
    };
    rows.iter().filter_map(account).collect()
}

/// The groups of a volume by its rows.
#[must_use]
pub fn group_rows(rows: &[(Vec<u8>, Vec<u8>)]) -> Vec<(u16, GroupRow)> {
    let group = |(key, value): &(Vec<u8>, Vec<u8>)| match Key::decode(key) {
        Ok(Key::Group(number)) => Some((number, GroupRow::decode(value).ok()?)),
        _ => None,
    };
    rows.iter().filter_map(group).collect()
}
