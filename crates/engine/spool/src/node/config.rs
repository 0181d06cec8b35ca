//! Configuration of a node.

use std::time::Duration;

use vere_ports::spool_log::{
    LogError, LogPosition, LogRead, LogRoom, LogStretch, SpoolLog, SpoolLogStore,
};
use vere_spoolwire::{HANDSHAKE_FRAME_MAX, SharedSecret};

use super::account::Account;

/// Limits of a node.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Accounts that may connect, with distinct names.
    pub accounts: Vec<Account>,
    /// Memory for segments and index of all groups, in octets; at least 16 segments.
    pub memory_max: u64,
    /// Length of a memory segment, in octets; at least [`SEGMENT_LEN_MIN`].
    pub segment_len: usize,
    /// Memory use, in octets, from which on half-empty segments are compacted; default half of the
    /// memory.
    pub compact_above: Option<u64>,
    /// Memory use, in octets, from which on cold segments are written to the spill store, if
    /// configured; default three quarters of the memory.
    pub spill_above: Option<u64>,
    /// Maximum length of a frame, and so of a record or batch.
    pub frame_max: u32,
    /// Maximum size of the records in one BLOCK, in octets.
    pub block_max: u32,
    /// Maximum number of groups. One account gets at most half of them if several accounts may
    /// create groups.
    pub groups_max: usize,
    /// Maximum number of queues of one group.
    pub queues_max: usize,
    /// Maximum number of connections, including reserved places for all strangers and for one owner
    /// per group.
    pub connections_max: usize,
    /// Maximum number of unauthenticated connections.
    pub strangers_max: usize,
    /// Time limit for the authentication of a peer.
    pub handshake_timeout: Duration,
    /// Time limit for the silence of a peer.
    pub idle_timeout: Duration,
    /// Maximum delay of the sync for changes that only end records: no client waits for them. Such
    /// changes share the sync of other changes, and their acknowledgement waits as long.
    pub sync_delay: Duration,
    /// Octets of log that a group may have in addition to a multiple of its living octets.
    pub log_spare: u64,
}

/// Minimum of [`NodeConfig::segment_len`]: the smallest read buffer must hold the data that a peer
/// sends along with the HELLO.
pub const SEGMENT_LEN_MIN: usize = 4 * HANDSHAKE_FRAME_MAX;

/// Default of [`NodeConfig::sync_delay`]: long compared with a sync, short compared with usual
/// waits for an acknowledgement.
const SYNC_DELAY: Duration = Duration::from_millis(50);

impl NodeConfig {
    /// Creates a configuration with defaults and one account with this secret.
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
    /// Maximum number of groups of one account: half of all if several accounts may create groups.
    pub(super) fn groups_of_one_max(&self) -> usize {
        let makers = self.accounts.iter().filter(|account| account.makes_groups);
        match makers.count() {
            0 | 1 => self.groups_max,
            _ => self.groups_max.div_ceil(2),
        }
    }

    /// Maximum number of authenticated connections that are no owner's. The remaining places
    /// suffice for all strangers and for the owner of each group, which a stranger may turn out to
    /// be.
    pub(super) fn readers_max(&self) -> usize {
        let kept = self.strangers_max.saturating_add(self.groups_max);
        self.connections_max.saturating_sub(kept).max(1)
    }

    /// Maximum number of such connections of one account: half of all if several accounts exist.
    pub(super) fn readers_of_one_max(&self) -> usize {
        match self.accounts.len() {
            0 | 1 => self.readers_max(),
            _ => self.readers_max().div_ceil(2),
        }
    }
}

/// The absent log store of a node that acknowledges records in memory.
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
