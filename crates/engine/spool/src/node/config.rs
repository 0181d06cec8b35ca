//! What a node is told at its start.

use std::time::Duration;

use vere_ports::spool_log::{
    LogError, LogPosition, LogRead, LogRoom, LogStretch, SpoolLog, SpoolLogStore,
};
use vere_spoolwire::{HANDSHAKE_FRAME_MAX, SharedSecret};

use super::account::Account;

/// Limits of a node.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Who may connect, each under another name.
    pub accounts: Vec<Account>,
    /// Octets of memory for segments and index, of all groups; at least 16 segments.
    pub memory_max: u64,
    /// Octets of a segment of memory; at least [`SEGMENT_LEN_MIN`].
    pub segment_len: usize,
    /// Octets of memory from which on half-empty segments are closed up; half of all by default.
    pub compact_above: Option<u64>,
    /// Octets of memory from which on cold segments are written out, where there is a spill store;
    /// three quarters of all by default.
    pub spill_above: Option<u64>,
    /// Longest frame, so the longest record or batch.
    pub frame_max: u32,
    /// Octets of records in one BLOCK, at most.
    pub block_max: u32,
    /// Groups; of one account no more than half of them where others may make some.
    pub groups_max: usize,
    /// Queues of one group.
    pub queues_max: usize,
    /// Connections. A place for every stranger and for an owner of every group is kept of these.
    pub connections_max: usize,
    /// Connections that have not proven themselves.
    pub strangers_max: usize,
    /// How long a peer may take to prove itself.
    pub handshake_timeout: Duration,
    /// How long a peer may be silent.
    pub idle_timeout: Duration,
    /// How long a change that nobody waits for, one that only ends records, may wait for a sync that
    /// is made for others. Its acknowledgement waits as long.
    pub sync_delay: Duration,
    /// Octets of log that a group may have beyond a multiple of what lives in it.
    pub log_spare: u64,
}

/// The least that [`NodeConfig::segment_len`] may be: what a peer sends along with its HELLO must fit
/// into the least room that is read into.
pub const SEGMENT_LEN_MIN: usize = 4 * HANDSHAKE_FRAME_MAX;

/// The default of [`NodeConfig::sync_delay`]: long beside a sync, short beside everything that waits for
/// acknowledgements in general.
const SYNC_DELAY: Duration = Duration::from_millis(50);

impl NodeConfig {
    /// Defaults for everything but the secret of the one account.
    #[must_use]
    pub fn new(secret: SharedSecret) -> Self {
        Self {
            accounts: vec![Account::default_with(secret)],
            memory_max: 1 << 30,
            segment_len: 4 << 20,
            compact_above: None,
            spill_above: None,
            frame_max: 64 << 20,
            block_max: 4 << 20,
            groups_max: 64,
            queues_max: 131_072,
            connections_max: 1_024,
            strangers_max: 64,
            handshake_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
            sync_delay: SYNC_DELAY,
            log_spare: 256 << 20,
        }
    }
}

impl NodeConfig {
    /// How many groups may be of one account: half where others may make some.
    pub(super) fn groups_of_one_max(&self) -> usize {
        let makers = self.accounts.iter().filter(|account| account.makes_groups);
        match makers.count() {
            0 | 1 => self.groups_max,
            _ => self.groups_max.div_ceil(2),
        }
    }

    /// Connections that are no owner's and have proven themselves. With as many there is a place for every
    /// stranger, and for the owner of each group that one may turn out to be.
    pub(super) fn readers_max(&self) -> usize {
        let kept = self.strangers_max.saturating_add(self.groups_max);
        self.connections_max.saturating_sub(kept).max(1)
    }

    /// How many of these may be of one account: half where there are others.
    pub(super) fn readers_of_one_max(&self) -> usize {
        match self.accounts.len() {
            0 | 1 => self.readers_max(),
            _ => self.readers_max().div_ceil(2),
        }
    }
}

/// The log store of a node that acknowledges what is in memory: there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLog {}

impl SpoolLog for NoLog {
    fn append(&mut self, _: &[u8]) -> Result<LogPosition, LogError> {
        match *self {}
    }

    fn start_sync(&mut self) {
        match *self {}
    }

    fn synced(&self) -> Result<LogPosition, LogError> {
        match *self {}
    }

    fn newest(&self) -> u64 {
        match *self {}
    }

    fn wants_roll(&self) -> bool {
        match *self {}
    }

    fn roll(&mut self, _: &[u8]) -> Result<(), LogError> {
        match *self {}
    }

    fn remove_before(&mut self, _: u64) -> Result<(), LogError> {
        match *self {}
    }

    fn keep_house(&mut self) {
        match *self {}
    }

    fn octets(&self) -> u64 {
        match *self {}
    }

    fn room(&self) -> LogRoom {
        match *self {}
    }

    fn read_back(&mut self, _: LogStretch, _: Vec<u8>) {
        match *self {}
    }

    fn poll_read(&mut self) -> Option<LogRead> {
        match *self {}
    }
}

impl SpoolLogStore for NoLog {
    type Log = Self;

    fn create(&mut self, _: &str, _: &[u8]) -> Result<Self, LogError> {
        match *self {}
    }

    fn replace(&mut self, _: &str, _: &[u8]) -> Result<Self, LogError> {
        match *self {}
    }

    fn remove(&mut self, _: &str) -> Result<(), LogError> {
        match *self {}
    }

    fn is_aside(&self, _: &str) -> bool {
        match *self {}
    }

    fn discard(&mut self, _: &str) {
        match *self {}
    }
}
