//! Negotiation: changes that the filter may ask for, events for the filter, and events with answers.

use crate::packet::{number, put, text};
use crate::session::Event;
use crate::{MilterError, Packet};

/// The version that this code speaks.
pub(crate) const VERSION: u32 = 6;
/// The oldest version that a filter may speak; version 1 has other codes.
const VERSION_MIN: u32 = 2;

/// Actions: changes that a filter may ask for (`SMFIF_*`).
pub(crate) mod action {
    pub(crate) const ADD_HEADERS: u32 = 1;
    pub(crate) const CHANGE_BODY: u32 = 1 << 1;
    pub(crate) const ADD_RECIPIENTS: u32 = 1 << 2;
    pub(crate) const DELETE_RECIPIENTS: u32 = 1 << 3;
    pub(crate) const CHANGE_HEADERS: u32 = 1 << 4;
    pub(crate) const QUARANTINE: u32 = 1 << 5;
    pub(crate) const CHANGE_FROM: u32 = 1 << 6;
    pub(crate) const ADD_RECIPIENTS_WITH_PARAMETERS: u32 = 1 << 7;
    /// All actions, and the choice of macros.
    pub(crate) const ALL: u32 = (1 << 9) - 1;
}

/// Protocol flags (`SMFIP_*`) beside those of single events.
pub(crate) mod protocol {
    pub(crate) const SKIP: u32 = 1 << 10;
    pub(crate) const REJECTED_RECIPIENTS: u32 = 1 << 11;
    pub(crate) const LEADING_SPACE: u32 = 1 << 20;
    /// All flags but the rejected recipients: a refused recipient never reaches a filter.
    pub(crate) const OFFERED: u32 = ((1 << 21) - 1) & !REJECTED_RECIPIENTS;
}

/// Stages that have macros, in the order of their numbers (`SMFIM_*`).
const STAGES: [Event; 7] = [
    Event::Connect,
    Event::Helo,
    Event::Mail,
    Event::Recipient,
    Event::Data,
    Event::EndOfMessage,
    Event::EndOfHeader,
];

/// The agreement of both sides. Kept for a further message on the same connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    version: u32,
    actions: u32,
    protocol: u32,
    /// The names of macros that the filter wants, where the filter says so.
    symbols: [Option<Vec<String>>; STAGES.len()],
}

impl Options {
    /// Appends the offer.
    pub(crate) fn offer(out: &mut Vec<u8>) {
        let words = [VERSION, action::ALL, protocol::OFFERED];
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        put(out, b'O', &data);
    }

    /// Reads the filter's answer to the offer.
    ///
    /// # Errors
    /// The answer is cut, has another version, or more than was offered.
    pub fn read(packet: &Packet<'_>) -> Result<Self, MilterError> {
        let mut data = packet.data;
        let mut word = || number(&mut data).ok_or(MilterError::Cut("the negotiation"));
        let (version, actions, protocol) = (word()?, word()?, word()?);
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return Err(MilterError::Version(version));
        }
        if actions & !action::ALL != 0 {
            return Err(MilterError::Actions(actions & !action::ALL));
        }
        if protocol & !protocol::OFFERED != 0 {
            return Err(MilterError::Protocol(protocol & !protocol::OFFERED));
        }
        let mut symbols: [Option<Vec<String>>; STAGES.len()] = Default::default();
        while !data.is_empty() {
            let cut = MilterError::Cut("the list of macros");
            let stage = number(&mut data).ok_or(cut)? as usize;
            let names = text(&mut data).ok_or(cut)?;
            let names = std::str::from_utf8(names).map_err(|_| MilterError::NotText)?;
            let place = symbols.get_mut(stage).ok_or(MilterError::Stage(stage))?;
            let names = names.split([' ', ',']).filter(|name| !name.is_empty());
            *place = Some(names.map(without_braces).collect());
        }
        Ok(Self {
            version,
            actions,
            protocol,
            symbols,
        })
    }

    /// Whether the filter may ask for these changes.
    pub(crate) const fn allows(&self, actions: u32) -> bool {
        self.actions & actions != 0
    }

    pub(crate) const fn has(&self, flag: u32) -> bool {
        self.protocol & flag != 0
    }

    /// Whether the filter gets this event.
    pub(crate) fn sends(&self, event: Event) -> bool {
        // DATA is an event since version 4.
        let known = event != Event::Data || self.version >= 4;
        known && event.unwanted_flag().is_none_or(|flag| !self.has(flag))
    }

    /// Whether the filter answers this event.
    pub(crate) fn answers(&self, event: Event) -> bool {
        event.unanswered_flag().is_none_or(|flag| !self.has(flag))
    }

    /// The macros that the filter wants with an event, if the filter named macros.
    pub(crate) fn symbols(&self, event: Event) -> Option<&[String]> {
        let stage = STAGES.iter().position(|stage| *stage == event)?;
        self.symbols.get(stage)?.as_deref()
    }
}

/// Names of several letters are written in braces or without.
pub(crate) fn without_braces(name: &str) -> String {
    name.trim_start_matches('{')
        .trim_end_matches('}')
        .to_owned()
}
