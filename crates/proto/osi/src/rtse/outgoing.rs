//! A transfer as its sender sees it.

use std::collections::VecDeque;

use super::SessionConnectionIdentifier;

/// A checkpoint: the serial number of a minor synchronization point, and the octets of the APDU before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// The serial number; 0 is the beginning of the APDU.
    pub serial: u32,
    /// Octets before it.
    pub position: u64,
}

/// The knowledge of the sender about a transfer that did not end: enough to resume or to discard the transfer, on any association.
/// A host that wants to resume after its own end keeps it on stable storage, together with the APDU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The session connection in which the activity was in progress.
    pub session: SessionConnectionIdentifier,
    /// The number of the activity.
    pub activity: u32,
    /// The last checkpoint that was confirmed. Before the first, the transfer cannot be resumed.
    pub checkpoint: Checkpoint,
    /// Octets of the APDU.
    pub length: u64,
    /// Whether the end of the activity was sent: the receiver may have the whole APDU.
    pub ended: bool,
}

impl Broken {
    /// Whether the transfer can be resumed.
    #[must_use]
    pub const fn is_resumable(&self) -> bool {
        self.checkpoint.serial > 0
    }
}

/// The state of a transfer at its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutgoingState {
    /// Nothing: it sends, as far as the window lets it.
    Sending,
    /// The confirmation of the end.
    Ended,
    /// The confirmation of the interruption.
    Interrupting,
    /// The confirmation that the activity is discarded.
    Discarding,
}

/// The next element behind octets that were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// Further octets of the segment.
    Open,
    /// A checkpoint.
    Checkpoint,
    /// The end of the activity.
    Last,
}

/// A transfer of this side.
#[derive(Debug)]
pub struct Outgoing {
    activity: u32,
    length: u64,
    position: u64,
    /// Octets of a segment; 0 for one segment.
    segment: u64,
    segment_end: u64,
    begun: bool,
    window: usize,
    unconfirmed: VecDeque<Checkpoint>,
    confirmed: Checkpoint,
    state: OutgoingState,
}

impl Outgoing {
    /// A transfer of an APDU of this length, from its beginning.
    #[must_use]
    pub fn new(activity: u32, length: u64, segment: u64, window: u32) -> Self {
        Self::from(activity, length, Checkpoint::default(), segment, window)
    }

    /// A transfer that continues behind the last confirmed checkpoint.
    #[must_use]
    pub fn resumed(activity: u32, broken: &Broken, segment: u64, window: u32) -> Self {
        Self::from(activity, broken.length, broken.checkpoint, segment, window)
    }

    fn from(activity: u32, length: u64, from: Checkpoint, segment: u64, window: u32) -> Self {
        let mut outgoing = Self {
            activity,
            length,
            position: from.position,
            segment,
            segment_end: 0,
            begun: false,
            window: usize::try_from(window.max(1)).unwrap_or(1),
            unconfirmed: VecDeque::new(),
            confirmed: from,
            state: OutgoingState::Sending,
        };
        outgoing.begin_segment();
        outgoing
    }

    fn begin_segment(&mut self) {
        self.begun = false;
        self.segment_end = match self.segment {
            0 => self.length,
            segment => self.position.saturating_add(segment).min(self.length),
        };
    }

    /// The number of the activity.
    #[must_use]
    pub const fn activity(&self) -> u32 {
        self.activity
    }

    /// The state of a transfer at its sender.
    #[must_use]
    pub const fn state(&self) -> OutgoingState {
        self.state
    }

    /// Octets of the APDU that were sent.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Octets that may be sent now: the rest of the segment, or nothing while the window is full.
    #[must_use]
    pub fn room(&self) -> u64 {
        let open = self.state == OutgoingState::Sending && self.unconfirmed.len() < self.window;
        match open {
            true => self.segment_end.saturating_sub(self.position),
            false => 0,
        }
    }

    /// The length of the segment that begins with the next octets, if they begin it.
    pub fn begins(&mut self) -> Option<u64> {
        let length = self.segment_end.saturating_sub(self.position);
        let begins = !self.begun;
        self.begun = true;
        Some(length).filter(|_| begins)
    }

    /// Octets that the segment lacks, if it has begun and not ended.
    #[must_use]
    pub const fn lacks(&self) -> u64 {
        match self.begun {
            true => self.segment_end.saturating_sub(self.position),
            false => 0,
        }
    }

    /// Octets were sent, at most [`room`](Self::room).
    pub const fn advance(&mut self, octets: u64) -> Segment {
        self.position = self.position.saturating_add(octets);
        if self.position < self.segment_end {
            Segment::Open
        } else if self.position < self.length {
            Segment::Checkpoint
        } else {
            Segment::Last
        }
    }

    /// A checkpoint was sent behind the last octets.
    pub fn checkpoint(&mut self, serial: u32) {
        let position = self.position;
        self.unconfirmed.push_back(Checkpoint { serial, position });
        self.begin_segment();
    }

    /// The peer has confirmed a checkpoint, and with it all before.
    pub fn confirm(&mut self, serial: u32) {
        while let Some(point) = self.unconfirmed.front().copied() {
            if point.serial > serial {
                break;
            }
            self.confirmed = point;
            self.unconfirmed.pop_front();
        }
    }

    /// Changes the state.
    pub const fn wait_for(&mut self, state: OutgoingState) {
        self.state = state;
    }

    /// The rest of the transfer, as if it ended now.
    #[must_use]
    pub fn broken(&self, session: &SessionConnectionIdentifier) -> Broken {
        Broken {
            session: session.clone(),
            activity: self.activity,
            checkpoint: self.confirmed,
            length: self.length,
            ended: self.position == self.length,
        }
    }
}
