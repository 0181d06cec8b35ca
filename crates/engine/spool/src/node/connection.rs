//! One connection of a node: who it is, and what is on its way.

use vere_spoolwire::{CloseReason, Greeting, HANDSHAKE_FRAME_MAX, Request, Seq};
use vere_units::Timestamp;

use super::output::Output;

/// Octets that a peer who is not an owner may send ahead.
const INPUT_LEN: usize = HANDSHAKE_FRAME_MAX;

/// A connection of a node; the host's name for a socket until [`closed`](super::Node::closed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub usize);

/// What a connection is there for.
#[derive(Debug)]
pub(super) enum Phase {
    /// It was greeted and has to prove itself.
    Greeted(Greeting),
    /// It owns this group.
    Owner(usize),
    /// It reads this group.
    Reader(usize),
    /// It may become that of this group's owner.
    Standby(usize),
    /// It goes when its output is out.
    Closing,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) phase: Phase,
    /// What was received, unless an owner's: that goes to its group.
    pub(super) input: Box<[u8]>,
    pub(super) fill: usize,
    pub(super) output: Output,
    /// A request whose answer is not in memory; what comes after it waits too.
    pub(super) waiting: Option<(Seq, Request)>,
    /// Who it is, once that is proven.
    pub(super) account: Box<str>,
    /// The group whose segments the output may point to.
    pub(super) group: Option<usize>,
    /// When something came last; of one that has not proven itself, when it came.
    pub(super) heard: Timestamp,
    /// Whether the host was told that there is something to do.
    pub(super) touched: bool,
    /// Why it is closed.
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

    /// Whether the next request can be taken up.
    pub(super) fn is_served(&self) -> bool {
        self.waiting.is_none() && !self.output.is_over()
    }

    /// Takes the octets before `end` out of the input.
    pub(super) fn consume(&mut self, end: usize) {
        self.input.copy_within(end..self.fill, 0);
        self.fill -= end;
    }
}
