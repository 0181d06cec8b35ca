//! The part of an envelope that the schedule reads, whatever protocol the message came by.

use std::time::Duration;

use vere_units::{Timestamp, TraceId};

/// The lowest priority of a message (RFC 6710 section 3).
pub const PRIORITY_MIN: i8 = -9;
/// The highest.
pub const PRIORITY_MAX: i8 = 9;

/// By so much an acceptance may be in the future before that is written down: clocks of two machines differ.
const AHEAD_MIN: Duration = Duration::from_secs(30);

/// Why a message is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HoldCause {
    /// An operator wants it, or an older program has held the message.
    #[default]
    Operator,
    /// The account is over its bounds of an hour.
    Sending,
    /// The message is in the quarantine: the judgement keeps the message aside.
    Quarantine,
}

impl HoldCause {
    /// The word for reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Sending => "sending",
            Self::Quarantine => "quarantine",
        }
    }

    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Operator => 0,
            Self::Sending => 1,
            Self::Quarantine => 2,
        }
    }

    /// The cause of a number; of one that this program does not know an operator decides as well.
    pub(super) const fn of_number(number: u8) -> Self {
        match number {
            1 => Self::Sending,
            2 => Self::Quarantine,
            _ => Self::Operator,
        }
    }
}

/// When a message may leave, and what became of it so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleHead {
    /// Names the message in logs, in the reply to its sender and in `vere trace`.
    pub trace: TraceId,
    /// The time of acceptance, from which the age counts ([`ScheduleHead::accepted_by`]).
    pub accepted: Timestamp,
    /// The first time at which a clock behind `accepted` saw the message. One of the two clocks was wrong, and both
    /// times are kept because the wrong clock is unknown.
    pub seen: Option<Timestamp>,
    /// The end of attempts at this message, by the clock of `accepted`. The end counts in place of the age at which
    /// messages expire ([`Policy::expire`](crate::Policy::expire)), whether earlier or later. As a time of the record it cannot be the epoch.
    pub expires: Option<Timestamp>,
    /// The earliest time of the next attempt.
    pub not_before: Option<Timestamp>,
    /// The end of a hold ([`FOREVER`](crate::order::FOREVER): until released).
    pub held_until: Option<Timestamp>,
    /// The beginning of a hold, if recorded.
    pub held_since: Option<Timestamp>,
    /// The cause of a hold.
    pub held_for: HoldCause,
    /// Whether a person has released the message from the quarantine.
    pub is_released: bool,
    /// Attempts made.
    pub attempts: u16,
    /// Whether the sender has received a delay notice.
    pub delay_noticed: bool,
    /// Higher ones leave first, from [`PRIORITY_MIN`] to [`PRIORITY_MAX`] (RFC 6710).
    pub priority: i8,
    /// Octets of the body.
    pub size: u32,
    /// The last reply of the destination, cut to a limited length.
    pub last_reply: Option<String>,
}

impl ScheduleHead {
    /// The head of a message of `size` octets before its first attempt, which may be made at once.
    #[must_use]
    pub fn new(trace: TraceId, accepted: Timestamp, size: usize) -> Self {
        Self {
            trace,
            accepted,
            seen: None,
            expires: None,
            not_before: None,
            held_until: None,
            held_since: None,
            held_for: HoldCause::Operator,
            is_released: false,
            attempts: 0,
            delay_noticed: false,
            priority: 0,
            size: u32::try_from(size).unwrap_or(u32::MAX),
            last_reply: None,
        }
    }

    /// Whether the message is in the quarantine.
    #[must_use]
    pub fn is_quarantined(&self) -> bool {
        self.held_until.is_some() && self.held_for == HoldCause::Quarantine
    }

    /// The age at which the message expires, if the message has an end of its own.
    #[must_use]
    pub fn lifetime(&self) -> Option<Duration> {
        let lifetime = |end: Timestamp| end.saturating_since(self.accepted);
        self.expires.map(lifetime)
    }

    /// The end of attempts by the clock of `accepted`. `age`: the age at which other messages expire.
    #[must_use]
    pub fn end(&self, age: Duration) -> Timestamp {
        self.expires.unwrap_or(self.accepted + age)
    }

    /// Replaces the time of acceptance, by another clock. The lifetime stays.
    pub fn accept_at(&mut self, accepted: Timestamp) {
        self.expires = self.lifetime().map(|lifetime| accepted + lifetime);
        self.accepted = accepted;
    }

    /// The time of acceptance, by a clock that reads `now`. For an acceptance in the future, either the accepting
    /// clock was ahead or the present clock is behind: the age counts from the first sight of the message.
    #[must_use]
    pub fn accepted_by(&self, now: Timestamp) -> Timestamp {
        if self.accepted <= now {
            return self.accepted;
        }
        self.seen.map_or(now, |seen| seen.min(now))
    }

    /// Records the first sight of the message by a clock that reads `now`, if the clock is behind the acceptance.
    /// True if the record must be written again: otherwise the age would count again from each start.
    pub fn see(&mut self, now: Timestamp) -> bool {
        let ahead = self.accepted.saturating_since(now) >= AHEAD_MIN;
        let first = ahead && self.seen.is_none_or(|seen| seen > now);
        if first {
            self.seen = Some(now);
        }
        first
    }
}
