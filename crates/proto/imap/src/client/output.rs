//! The send queue: octets, and the points where the server has to give leave.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;

use super::command::Part;

/// Octets of a literal that may be sent without leave where LITERAL- is offered (RFC 7888 section 5).
const SMALL_LITERAL_MAX: u64 = 4_096;

/// Octets up to which shared octets are copied behind their command: a packet with both costs less than a copy.
const COPIED_MAX: usize = 16 * 1024;

/// The literals that may be sent without leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Literals {
    Go,
    GoSmall,
    Wait,
}

impl Literals {
    const fn wait(self, octets: u64) -> bool {
        match self {
            Self::Go => false,
            Self::GoSmall => octets > SMALL_LITERAL_MAX,
            Self::Wait => true,
        }
    }
}

#[derive(Debug)]
enum Item {
    Octets(Vec<u8>),
    /// Octets that the host keeps as well.
    Shared(Bytes),
    /// Octets behind this point wait for leave from the server.
    Leave,
}

impl Item {
    fn octets(&self) -> &[u8] {
        match self {
            Self::Octets(octets) => octets,
            Self::Shared(octets) => octets,
            Self::Leave => &[],
        }
    }
}

/// The send queue, each item with the number of its command.
#[derive(Debug, Default)]
pub(super) struct Output {
    items: VecDeque<(u32, Item)>,
    /// Octets of all items, including octets already sent of the first.
    octets: usize,
    /// Octets of the first item already sent.
    sent: usize,
}

impl Output {
    pub(super) fn pending(&self) -> &[u8] {
        let first = self.items.front().map(|(_, item)| item.octets());
        first
            .and_then(|octets| octets.get(self.sent..))
            .unwrap_or_default()
    }

    /// The octets to send now, in the pieces that the queue has; at most `max` pieces.
    pub(super) fn slices(&self, max: usize) -> Vec<IoSlice<'_>> {
        let free = self.items.iter().take(max);
        let free = free.take_while(|(_, item)| !matches!(item, Item::Leave));
        let mut skipped = self.sent;
        let slices = free.map(|(_, item)| {
            let octets = item.octets();
            IoSlice::new(
                octets
                    .get(std::mem::take(&mut skipped)..)
                    .unwrap_or_default(),
            )
        });
        slices.collect()
    }

    pub(super) fn sent(&mut self, octets: usize) {
        self.sent = self.sent.saturating_add(octets);
        while let Some((_, first)) = self.items.front()
            && !matches!(first, Item::Leave)
            && self.sent >= first.octets().len()
        {
            let whole = first.octets().len();
            self.sent = self.sent.saturating_sub(whole);
            self.octets = self.octets.saturating_sub(whole);
            self.items.pop_front();
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.octets.saturating_sub(self.sent)
    }

    /// Adds octets of a command.
    pub(super) fn octets(&mut self, number: u32, octets: &[u8]) {
        if octets.is_empty() {
            return;
        }
        self.octets = self.octets.saturating_add(octets.len());
        match self.items.back_mut() {
            Some((of, Item::Octets(last))) if *of == number => last.extend_from_slice(octets),
            _ => self
                .items
                .push_back((number, Item::Octets(octets.to_vec()))),
        }
    }

    /// Adds octets of a command without copying more than a few.
    pub(super) fn shared(&mut self, number: u32, octets: Bytes) {
        if octets.len() <= COPIED_MAX {
            return self.octets(number, &octets);
        }
        self.octets = self.octets.saturating_add(octets.len());
        self.items.push_back((number, Item::Shared(octets)));
    }

    /// Holds what follows back until leave.
    pub(super) fn hold(&mut self, number: u32) {
        self.items.push_back((number, Item::Leave));
    }

    pub(super) fn literal_head(
        &mut self,
        number: u32,
        octets: u64,
        binary: bool,
        literals: Literals,
    ) {
        let wait = literals.wait(octets);
        let tilde = if binary { "~" } else { "" };
        let plus = if wait { "" } else { "+" };
        self.octets(number, format!("{tilde}{{{octets}{plus}}}\r\n").as_bytes());
        if wait {
            self.hold(number);
        }
    }

    /// Adds a whole command.
    pub(super) fn command(&mut self, number: u32, parts: &[Part], literals: Literals) {
        self.command_without_end(number, parts, literals);
        self.octets(number, b"\r\n");
    }

    pub(super) fn command_without_end(&mut self, number: u32, parts: &[Part], literals: Literals) {
        self.octets(number, format!("c{number} ").as_bytes());
        for part in parts {
            match part {
                Part::Text(text) => self.octets(number, text),
                Part::Literal(octets) => {
                    let length = u64::try_from(octets.len()).unwrap_or(u64::MAX);
                    self.literal_head(number, length, false, literals);
                    self.octets(number, octets);
                }
            }
        }
    }

    pub(super) fn waits_for_leave(&self) -> bool {
        matches!(self.items.front(), Some((_, Item::Leave)))
    }

    /// Records leave from the server; returns whether the queue waited for leave.
    pub(super) fn leave(&mut self) -> bool {
        let waits = self.waits_for_leave();
        if waits {
            self.items.pop_front();
        }
        waits
    }

    /// Records the end of a command. If the command was waiting for leave, the leave will not come: the rest
    /// of the command is dropped and the result is `true`. With non-synchronizing literals the server reads
    /// past the refused octets.
    pub(super) fn ended(&mut self, number: u32) -> bool {
        let waits = matches!(self.items.front(), Some((of, Item::Leave)) if *of == number);
        if waits {
            self.items.retain(|(of, item)| {
                let stays = *of != number;
                if !stays {
                    self.octets = self.octets.saturating_sub(item.octets().len());
                }
                stays
            });
        }
        waits
    }
}

/// The number of a command, read from the tag.
pub(super) fn number(tag: &[u8]) -> Option<u32> {
    std::str::from_utf8(tag.strip_prefix(b"c")?)
        .ok()?
        .parse()
        .ok()
}
