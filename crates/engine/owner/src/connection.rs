//! A connection to a node: handshake, input, output, and signs of life.
//!
//! ```text
//! state         GREETING          WELCOME             ACK, BLOCK, ...
//! Down          -                 -                   -
//! Greeting      Welcome           protocol error      protocol error
//! Welcome       protocol error    Up                  protocol error
//! Up            protocol error    protocol error      told
//! ```

use std::time::Duration;

use bytes::Bytes;
use vere_spoolwire::{
    Answer, Charter, CloseReason, Greeting, Hello, Incarnation, Request, Role, SECRET_LEN, Seq,
    SharedSecret, Txn, VERSION, Welcome,
};
use vere_units::Timestamp;

use super::config::OwnerError;
use super::incoming::{Incoming, Message};
use super::outgoing::Outgoing;
use vere_spoolwire::Block;

/// Time limit of a handshake, in heartbeats.
const HANDSHAKE_BEATS: u32 = 10;

/// Sequence number of heartbeats; all other requests have higher numbers.
pub(super) const HEARTBEAT: Seq = Seq(0);

/// Content of a HELLO.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) group: &'a str,
    pub(super) account: &'a str,
    pub(super) secret: &'a SharedSecret,
    pub(super) charter: Charter<'a>,
    pub(super) life: u64,
    pub(super) epoch: u64,
    /// `None`: no HELLO for now.
    pub(super) role: Option<Role>,
    /// The memory to which `acknowledged` refers.
    pub(super) incarnation: Option<Incarnation>,
    /// Incarnations of other nodes' memories.
    pub(super) taken: &'a [Incarnation],
    pub(super) acknowledged: Txn,
    pub(super) frame_max: u32,
}

/// Message from the node.
#[derive(Debug)]
pub(super) enum Said {
    /// The handshake is over.
    Welcome(Incarnation, Welcome),
    Answer(Answer),
    Block(Seq, Option<Block>),
}

#[derive(Debug)]
enum State {
    Down,
    /// Waits for the greeting; the nonce for the reply.
    Greeting([u8; SECRET_LEN]),
    /// Waits for the welcome; the proof that the welcome must contain.
    Welcome {
        incarnation: Incarnation,
        proof: [u8; SECRET_LEN],
    },
    Up,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    state: State,
    /// Role announced in the HELLO.
    pub(super) role: Role,
    /// Incarnation of the node's memory that answered.
    pub(super) incarnation: Option<Incarnation>,
    incoming: Incoming,
    out: Outgoing,
    /// Time of the last received octets.
    pub(super) heard: Timestamp,
    /// Time of the next sign of life.
    pub(super) heartbeat_at: Timestamp,
    /// Heartbeats requested and answered; answers arrive in order.
    beats_asked: u64,
    beats_given: u64,
    /// First heartbeat requested since [`Connection::confirmed`], and its send time.
    probe: Option<(u64, Timestamp)>,
    /// Send time of the last answered heartbeat: at that time the node knew of no later owner.
    pub(super) confirmed: Option<Timestamp>,
}

impl Connection {
    pub(super) fn new() -> Self {
        Self {
            state: State::Down,
            role: Role::Owner,
            incarnation: None,
            incoming: Incoming::default(),
            out: Outgoing::default(),
            heard: Timestamp::ZERO,
            heartbeat_at: Timestamp::MAX,
            beats_asked: 0,
            beats_given: 0,
            probe: None,
            confirmed: None,
        }
    }

    pub(super) fn connected(
        &mut self,
        nonce: [u8; SECRET_LEN],
        now: Timestamp,
        heartbeat: Duration,
    ) {
        self.disconnected();
        self.state = State::Greeting(nonce);
        (self.heard, self.heartbeat_at) = (now, now + heartbeat * HANDSHAKE_BEATS);
    }

    pub(super) fn disconnected(&mut self) {
        *self = Self::new();
    }

    pub(super) const fn is_down(&self) -> bool {
        matches!(self.state, State::Down)
    }

    /// Whether the handshake is over.
    pub(super) const fn is_up(&self) -> bool {
        matches!(self.state, State::Up)
    }

    /// Whether the node has received a HELLO with the role, or is about to.
    pub(super) const fn said_hello(&self) -> bool {
        matches!(self.state, State::Welcome { .. } | State::Up)
    }

    pub(super) fn received(&mut self, octets: &[u8], now: Timestamp) {
        self.heard = now;
        self.incoming.extend(octets);
    }

    /// Returns the next message of the node.
    ///
    /// # Errors
    ///
    /// Reason for ending the connection.
    pub(super) fn next(
        &mut self,
        terms: &Terms<'_>,
        heartbeat: Duration,
    ) -> Result<Option<Said>, OwnerError> {
        loop {
            let in_handshake = matches!(self.state, State::Greeting(_) | State::Welcome { .. });
            let Some(message) = self.incoming.next(in_handshake, terms.frame_max)? else {
                return Ok(None);
            };
            match message {
                Message::Greeting(greeting) => self.greeted(&greeting, terms)?,
                Message::Welcome(welcome) => {
                    let said = self.welcomed(welcome)?;
                    self.heartbeat_at = self.heard + heartbeat;
                    return Ok(Some(said));
                }
                Message::Answer(Answer::Close(reason)) => return Err(OwnerError::Closed(reason)),
                Message::Answer(_) | Message::Block { .. } if !self.is_up() => {
                    return Err(OwnerError::Protocol);
                }
                Message::Answer(answer) => return Ok(Some(Said::Answer(answer))),
                Message::Block { seq, block } => return Ok(Some(Said::Block(seq, block))),
            }
        }
    }

    fn greeted(&mut self, greeting: &Greeting, terms: &Terms<'_>) -> Result<(), OwnerError> {
        let State::Greeting(nonce) = self.state else {
            return Err(OwnerError::Protocol);
        };
        if !(greeting.version_min..=greeting.version_max).contains(&VERSION) {
            return Err(OwnerError::Closed(CloseReason::Version));
        }
        let role = terms.role.ok_or(OwnerError::NotWanted)?;
        let known = terms.incarnation == Some(greeting.incarnation);
        let other = role == Role::Standby && !known;
        if other || terms.taken.contains(&greeting.incarnation) {
            return Err(OwnerError::AnotherNode);
        }
        let hello = Hello {
            acknowledged: if known { terms.acknowledged } else { Txn(0) },
            version: VERSION,
            role,
            owner: terms.life,
            epoch: terms.epoch,
            logged: true,
            group: terms.group,
            account: terms.account,
            charter: terms.charter,
            nonce,
            proof: [0; SECRET_LEN],
        };
        let hello = hello.sign(greeting, terms.secret);
        self.write(|out| hello.encode(out));
        (self.role, self.incarnation) = (role, Some(greeting.incarnation));
        self.state = State::Welcome {
            incarnation: greeting.incarnation,
            proof: hello.answer(greeting, terms.secret),
        };
        Ok(())
    }

    fn welcomed(&mut self, welcome: Welcome) -> Result<Said, OwnerError> {
        let State::Welcome { incarnation, proof } = self.state else {
            return Err(OwnerError::Protocol);
        };
        if !vere_units::constant_time_eq(&welcome.proof, &proof) {
            return Err(OwnerError::NotTheNode);
        }
        self.state = State::Up;
        Ok(Said::Welcome(incarnation, welcome))
    }

    /// Excludes `silence` from the node's measured silence.
    pub(super) fn forgive(&mut self, silence: Duration, now: Timestamp) {
        self.heard = self.heard.max((self.heard + silence).min(now));
    }

    /// Requests a sign of life when one is due.
    ///
    /// # Errors
    ///
    /// [`OwnerError::Silent`] after a silence of three heartbeats, or when the handshake takes too
    /// long.
    pub(super) fn timed_out(
        &mut self,
        now: Timestamp,
        heartbeat: Duration,
    ) -> Result<(), OwnerError> {
        if now < self.heartbeat_at {
            return Ok(());
        }
        if !self.is_up() {
            return Err(OwnerError::Silent);
        }
        let silent_at = self.heard + heartbeat * 3;
        if now >= silent_at {
            return Err(OwnerError::Silent);
        }
        self.heartbeat_at = silent_at.min(now + heartbeat);
        self.beats_asked += 1;
        self.probe.get_or_insert((self.beats_asked, now));
        self.write(|out| Request::Heartbeat.encode(out, HEARTBEAT));
        Ok(())
    }

    /// Sequence number of the read whose answer has arrived only in part.
    pub(super) fn arriving(&self) -> Option<Seq> {
        self.incoming.arriving()
    }

    /// Whether a heartbeat is unanswered.
    pub(super) const fn is_asked(&self) -> bool {
        self.beats_given < self.beats_asked
    }

    /// Counts an answered heartbeat.
    pub(super) fn beat(&mut self) {
        self.beats_given += 1;
        if let Some((_, sent)) = self.probe.take_if(|(beat, _)| *beat <= self.beats_given) {
            self.confirmed = Some(sent);
        }
    }

    /// Appends a frame.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.out.write(write);
    }

    /// Appends a long frame, without a copy.
    pub(super) fn push(&mut self, frame: Bytes) {
        self.out.push(frame);
    }

    /// Octets not written yet.
    pub(super) const fn waiting(&self) -> usize {
        self.out.waiting()
    }

    pub(super) fn output(&self) -> &[u8] {
        self.out.next()
    }

    /// Records that the socket accepted `count` octets. Output longer than the socket buffer drains
    /// only as fast as the node reads. So progress is a sign of life while the node's answers wait
    /// for the end of a long frame. Output written in one piece is no sign of life.
    pub(super) fn sent(&mut self, count: usize, now: Timestamp) {
        self.out.sent(count);
        if self.out.waiting() > 0 && count > 0 {
            self.heard = self.heard.max(now);
        }
    }
}
