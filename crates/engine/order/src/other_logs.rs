//! Logs on further metadata accounts: an account that another machine has made the lead has one, and so has a former lead.

use std::collections::{BTreeMap, VecDeque};

use vere_units::Timestamp;

/// What a request about such a log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogTicket {
    /// A listing.
    List,
    /// A commit.
    Read(u32),
    /// A commit for the lead's log, which lies under this UID now.
    Forward(u32),
    /// The removal of a mail.
    Removed,
}

/// The log of a further metadata account.
#[derive(Debug, Default)]
pub struct OtherLog {
    /// UIDVALIDITY of the last listing.
    pub uid_validity: u32,
    /// Mails up to here were looked at.
    pub known: u32,
    /// The highest UID of the last listing.
    pub listed: u32,
    /// Mails of the last listing to be read.
    pub unread: VecDeque<u32>,
    /// Whether an answer is awaited.
    pub is_busy: bool,
    /// When the log is listed next.
    pub at: Timestamp,
}

/// All of them, by account.
pub type OtherLogs = BTreeMap<u16, OtherLog>;
