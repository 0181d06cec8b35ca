//! A nearly full disk lets kept messages go by parts, the oldest first. After a part that had messages the next one
//! waits until reclaiming has come to rest, so that no more goes than the room that is needed.

use std::time::{Duration, Instant};

use vere_store::Position;

use super::ages::Ages;

/// How long a part waits for the one before, though reclaiming has come to rest.
const WAIT_MIN: Duration = Duration::from_secs(15);
/// How long a part waits for the one before when reclaiming does not come to rest.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// Into how many parts the log is divided where no marks say how old it is.
const PARTS: u64 = 64;
/// The most of these parts that go at once: half of what is left.
const PARTS_MAX: u64 = PARTS / 2;

/// The room on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Room {
    /// Whether no message is taken in for want of room.
    pub(crate) is_scarce: bool,
    /// Octets that are free.
    pub(crate) free: u64,
    /// How often reclaiming came to rest: a pass ended, or nothing was worth one.
    pub(crate) rests: u64,
    /// Whether a pass is under way.
    pub(crate) is_reclaiming: bool,
}

/// The parts that go while room is scarce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scarce {
    /// Nothing is kept from before this position.
    reached: Position,
    /// The next part ends at the mark of this number after `reached`.
    number: usize,
    wait: Wait,
}

/// What the next part waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Nothing,
    /// The walk under way.
    Walk,
    /// The room of what went at a time, when so much was free, until reclaiming has come to rest so often.
    Room {
        since: Instant,
        free: u64,
        rests: u64,
    },
}

impl Scarce {
    pub(super) const fn new() -> Self {
        Self {
            reached: Position(0),
            number: 0,
            wait: Wait::Nothing,
        }
    }

    /// The end of the part that goes now, if one is due.
    pub(super) fn part(
        &mut self,
        ages: &Ages,
        end: Position,
        room: &Room,
        now: Instant,
    ) -> Option<Position> {
        match self.wait {
            Wait::Nothing => {}
            Wait::Walk => return None,
            Wait::Room { since, free, rests } => {
                let waited = now.saturating_duration_since(since);
                let is_due = waited >= WAIT_MIN && room.rests >= rests;
                if !is_due && waited < WAIT_MAX {
                    return None;
                }
                self.number = match room.free > free {
                    true => 0,
                    false => self.number.saturating_mul(2).saturating_add(1),
                };
            }
        }
        let part = self.end_of_part(ages, end);
        (self.reached, self.wait) = (part, Wait::Walk);
        Some(part)
    }

    fn end_of_part(&self, ages: &Ages, end: Position) -> Position {
        if let Some(mark) = ages.after(self.reached, self.number) {
            return mark;
        }
        let marks = ages.count_after(self.reached);
        let begin = ages.newest().unwrap_or_default().max(self.reached);
        let left = end.0.saturating_sub(begin.0);
        if left < PARTS {
            return end;
        }
        let parts = u64::try_from(self.number.saturating_sub(marks)).unwrap_or(u64::MAX);
        let parts = parts.saturating_add(1).min(PARTS_MAX);
        Position(begin.0 + left / PARTS * parts)
    }

    /// Notes the end of the walk: whether messages went, and when the oldest were expunged that are kept. Where none
    /// went, no room is to be waited for, unless none are left.
    pub(super) fn walked(
        &mut self,
        has_gone: bool,
        oldest: Option<Position>,
        room: &Room,
        now: Instant,
    ) {
        self.reached = self.reached.max(oldest.unwrap_or_default());
        self.wait = match has_gone || oldest.is_none() {
            true => Wait::Room {
                since: now,
                free: room.free,
                // A pass under way has seen the messages that went.
                rests: room.rests + 1 + u64::from(room.is_reclaiming),
            },
            false => Wait::Nothing,
        };
    }
}
