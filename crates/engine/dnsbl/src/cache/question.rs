//! Questions to lists, and their answers.

use std::net::{IpAddr, Ipv4Addr};

use crate::map::{Map, MapName};

/// Octets of an entry beside its content: key, times, links, places in the index.
pub(super) const ENTRY_OCTETS: usize = 160;

/// What a list is asked about a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The map of the client's neighbours (AAAA).
    Map(MapName),
    /// The codes of the client (A).
    Codes(IpAddr),
    /// The text about the client (TXT).
    Text(IpAddr),
}

/// A question: the number of the list's zone, which the caller chose, and the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Question {
    /// The zone.
    pub zone: u32,
    /// The subject.
    pub subject: Subject,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The map; an absent map is empty.
    Map(Map),
    /// The codes; an unlisted client has no code.
    Codes(Box<[Ipv4Addr]>),
    /// The text; empty if there is none.
    Text(Box<str>),
    /// The list does not answer, or with an error.
    Failed,
}

impl Reply {
    /// Octets in memory, those of the entry included.
    pub(super) fn octets(&self) -> usize {
        ENTRY_OCTETS
            + match self {
                Self::Map(_) | Self::Failed => 0,
                Self::Codes(codes) => size_of_val::<[Ipv4Addr]>(codes),
                Self::Text(text) => text.len(),
            }
    }
}
