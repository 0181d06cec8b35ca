//! One connection of a node: identity, input and output.

use vere_spoolwire::{CloseReason, Greeting, HANDSHAKE_FRAME_MAX, Request, Seq};
use vere_units::Timestamp;

use super::output::Output;

/// Input buffer for connections other than an owner's, in octets.
const INPUT_LEN: usize = HANDSHAKE_FRAME_MAX;

/// A connection of a node; the host's name for a socket until [`closed`](super::Node::closed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub usize);

/// State and purpose of a connection.
#[derive(Debug)]
pub(super) enum Phase {
    /// Greeted; authentication is outstanding.
    Greeted(Greeting),
    /// Connection of the owner of this group.
    Owner(usize),
    /// Reader of this group.
    Reader(usize),
    /// Standby connection of the owner of this group.
    Standby(usize),
    /// Closes when its output is written.
    Closing,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) phase: Phase,
    /// Received octets, except an owner's: they go to the segments of the group.
    pub(super) input: Box<[u8]>,
    pub(super) fill: usize,
    pub(super) output: Output,
    /// Request whose answer is not in memory; later requests wait behind it.
    pub(super) waiting: Option<(Seq, Request)>,
    /// Authenticated account, or empty.
    pub(super) account: Box<str>,
    /// Group whose segments the output may refer to.
    pub(super) group: Option<usize>,
    /// Time of the last input; for an unauthenticated connection the time of its start.
    pub(super) heard: Timestamp,
    /// Whether the connection is in the list of connections that the host must serve.
    pub(super) touched: bool,
    /// Reason sent to the peer when closing.
    pub(super) told: Option<CloseReason>,
}

impl Connection {
    pub(super) fn new(greeting: Greeting, now: Timestamp) -> Self {
        let mut output = Output::default();
        output.write(|out| greeting.encode(out));
        Self {
            phase: Phase::Greeted(greeting),
            input: vec![0; INPUT_LEN].into_boxed_slice(),
            fill: 0,
            output,
            waiting: None,
            account: Box::default(),
            group: None,
            heard: now,
            touched: false,
            told: None,
        }
    }

    /// Whether the connection can start the next request.
    pub(super) fn is_served(&self) -> bool {
        self.waiting.is_none() && !self.output.is_over()
    }

    /// Removes the octets before `end` from the input.
    pub(super) fn consume(&mut self, end: usize) {
        self.input.copy_within(end..self.fill, 0);
        self.fill -= end;
    }
}
