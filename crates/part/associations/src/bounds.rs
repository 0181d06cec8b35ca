//! Bounds of every wait.

use std::time::Duration;

use vere_osi::association::Timer;

/// How long each wait lasts at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// A TCP connection to one address. Default 30 s.
    pub connect: Duration,
    /// From the TCP connection to the bind or its answer. Default 60 s.
    pub open: Duration,
    /// The decision of the host about a bind; without one the peer is told that this side is busy. Default 30 s.
    pub decide: Duration,
    /// A transfer without progress: fewer than `progress` octets were received, written or confirmed. The confirmation of an APDU
    /// has as long, from its last octet on. Default 120 s.
    pub transfer: Duration,
    /// Octets that count as progress of a transfer or of a write. Default 16,384.
    pub progress: u64,
    /// Octets that wait for the peer's TCP without progress. Default 60 s.
    pub write: Duration,
    /// The acknowledgement of a given turn. Default 60 s.
    pub turn: Duration,
    /// The host with octets of an APDU that it has not yet come back from. Default 60 s.
    pub hold: Duration,
    /// An open association without any event. The host decides what happens then. Default 10 minutes.
    pub idle: Duration,
    /// The end of an association: last octets, the peer's close. Default 5 s.
    pub close: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connect: seconds(30),
            open: seconds(60),
            decide: seconds(30),
            transfer: seconds(120),
            progress: 16_384,
            write: seconds(60),
            turn: seconds(60),
            hold: seconds(60),
            idle: seconds(600),
            close: seconds(5),
        }
    }
}

impl Bounds {
    pub(crate) const fn of(&self, wait: Wait) -> Duration {
        match wait {
            Wait::Open => self.open,
            Wait::Decide => self.decide,
            Wait::Transfer => self.transfer,
            Wait::Write => self.write,
            Wait::Turn => self.turn,
            Wait::Hold => self.hold,
            Wait::Idle => self.idle,
            Wait::Close => self.close,
        }
    }
}

/// A wait that has a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Wait {
    /// `Bounds::open`
    #[error("the association was not opened in time")]
    Open,
    /// `Bounds::decide`
    #[error("the host did not decide about the bind in time")]
    Decide,
    /// `Bounds::transfer`
    #[error("the transfer made no progress")]
    Transfer,
    /// `Bounds::write`
    #[error("the peer did not read")]
    Write,
    /// `Bounds::turn`
    #[error("the peer did not acknowledge the turn in time")]
    Turn,
    /// `Bounds::hold`
    #[error("the host held received octets too long")]
    Hold,
    /// `Bounds::idle`
    #[error("the association was idle")]
    Idle,
    /// `Bounds::close`
    #[error("the peer did not end the association in time")]
    Close,
}

impl From<Timer> for Wait {
    fn from(timer: Timer) -> Self {
        match timer {
            Timer::Association => Self::Open,
            Timer::Transfer => Self::Transfer,
            Timer::Turn => Self::Turn,
            Timer::Release | Timer::Tim => Self::Close,
        }
    }
}
