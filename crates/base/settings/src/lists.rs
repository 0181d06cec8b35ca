//! The settings of lists of clients in the DNS.

use vere_units::{ByteSize, Span};

use crate::answers::AnswerPattern;

/// Lists of clients in the DNS (RFC 5782), for the front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockLists {
    /// The lists; without a list nobody is asked.
    pub lists: Vec<BlockList>,
    /// Sum of the weights from which a client counts as listed.
    pub threshold: i32,
    /// Sum of the weights up to which a client is not greylisted.
    pub allow_threshold: Option<i32>,
    /// Treatment of a listed client.
    pub treatment: ListTreatment,
    /// Whether clients are told to try again while a list does not answer.
    pub defers_unavailable: bool,
    /// Longest wait for all lists.
    pub timeout: Span,
    /// Whether a refusal has the list's text about the client.
    pub adds_text: bool,
    /// The least time for which an answer is kept.
    pub ttl_min: Span,
    /// The longest time for which an answer is kept.
    pub ttl_max: Span,
    /// Memory for kept answers.
    pub cache: ByteSize,
    /// Whether lists are asked about private addresses too.
    pub asks_private: bool,
}

/// A list of clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockList {
    /// The zone of the list.
    pub zone: String,
    /// The name in replies, logs and metrics.
    pub name: String,
    /// The weight of an entry, below zero in favour of the client.
    pub weight: i16,
    /// The counted answers; every answer if empty.
    pub answers: Vec<AnswerPattern>,
    /// Whether the list is asked for maps of neighbours.
    pub maps: ListMaps,
}

impl BlockList {
    /// A list as by its zone alone: weight 1, every answer counts.
    #[must_use]
    pub fn of_zone(zone: &str) -> Self {
        Self {
            zone: zone.to_owned(),
            name: zone.to_owned(),
            weight: 1,
            answers: Vec::new(),
            maps: ListMaps::Auto,
        }
    }
}

/// Whether a list is asked for maps of 128 neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListMaps {
    /// Where the test entries of the list are in a map.
    Auto,
    /// Always.
    Yes,
    /// Never.
    No,
}

/// Treatment of a listed client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListTreatment {
    /// Its recipients are refused for good.
    Refuse,
    /// Its recipients are refused for now.
    Defer,
    /// The log and the metrics say so, and nothing else happens.
    Note,
}
