//! A transfer, from the view of the receiver.

use std::collections::VecDeque;

use bytes::Bytes;

use super::outgoing::Checkpoint;

/// The state of a transfer at its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncomingState {
    /// It takes the APDU.
    Receiving,
    /// The APDU is complete; the user has not confirmed it.
    Ended,
    /// A segment ended before its content did: only an interruption, a discard or an abort may follow.
    Cut,
    /// The user has the APDU from before: everything is confirmed and nothing told.
    Completed,
    /// An exception was reported: everything is thrown away until the sender interrupts or discards.
    Refused,
}

/// A transfer of the peer.
#[derive(Debug)]
pub struct Incoming {
    /// The activity identifier.
    activity: Bytes,
    position: u64,
    points: VecDeque<Checkpoint>,
    secured: Checkpoint,
    state: IncomingState,
}

impl Incoming {
    /// A transfer that continues behind this checkpoint; a new one has [`Checkpoint::default`].
    #[must_use]
    pub const fn new(activity: Bytes, from: Checkpoint, state: IncomingState) -> Self {
        Self {
            activity,
            position: from.position,
            points: VecDeque::new(),
            secured: from,
            state,
        }
    }

    /// The activity identifier.
    #[must_use]
    pub const fn activity(&self) -> &Bytes {
        &self.activity
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> IncomingState {
        self.state
    }

    /// Octets of the APDU that have arrived.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The last checkpoint that was confirmed.
    #[must_use]
    pub const fn secured(&self) -> Checkpoint {
        self.secured
    }

    /// Checkpoints that await the user.
    #[must_use]
    pub fn unsecured(&self) -> usize {
        self.points.len()
    }

    /// Octets have arrived.
    pub fn advance(&mut self, octets: usize) {
        let octets = u64::try_from(octets).unwrap_or(u64::MAX);
        self.position = self.position.saturating_add(octets);
    }

    /// A checkpoint has arrived.
    pub fn checkpoint(&mut self, serial: u32) -> Checkpoint {
        let position = self.position;
        let point = Checkpoint { serial, position };
        self.points.push_back(point);
        point
    }

    /// The user has the octets before this checkpoint. False for a number that awaits nothing.
    pub fn secure(&mut self, serial: u32) -> bool {
        if !self.points.iter().any(|point| point.serial == serial) {
            return false;
        }
        while let Some(point) = self.points.pop_front() {
            self.secured = point;
            if point.serial == serial {
                break;
            }
        }
        true
    }

    /// Changes the state.
    pub const fn set_state(&mut self, state: IncomingState) {
        self.state = state;
    }
}
