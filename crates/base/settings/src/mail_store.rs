//! How the mail store keeps its files.

use vere_units::ByteSize;

use crate::assemble::Assembly;

/// Among whom a body with the same content is stored once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodySharing {
    /// Within an account.
    Account,
    /// Among all accounts.
    All,
}

/// How the mail store keeps its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailStore {
    /// Room of the disk that is kept for removing messages.
    pub reserve: ByteSize,
    /// Percent of the log that nothing needs from which room is reclaimed.
    pub reclaim_from: u32,
    /// Percent of the time that reclaiming works.
    pub reclaim_share: u32,
    /// Who shares what arrives separately.
    pub sharing: BodySharing,
}

impl Assembly {
    pub(crate) fn mail_store(&self) -> MailStore {
        MailStore {
            reserve: self.need("store.reserve"),
            reclaim_from: self.need("store.reclaim_from"),
            reclaim_share: self.need("store.reclaim_share"),
            sharing: self.choice("store.sharing", |text| match text {
                "account" => Some(BodySharing::Account),
                "all" => Some(BodySharing::All),
                _ => None,
            }),
        }
    }
}
