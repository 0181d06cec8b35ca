//! The session protocol machine (SPM): data and aborts.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use vere_ber::Pieces;

use super::parameters::SpduError;
use super::spdu::{USER_DATA_MAX, disconnect, version};
use super::tokens::Position;
use super::{
    Abort, Accept, ActivityResume, Connect, ConnectionIdentifier, Enclosure, Exception, Incoming,
    Refuse, Spdu, State, Tokens,
};

/// The most octets of user data of an SPDU other than DATA TRANSFER and CONNECT.
const PART_MAX: usize = 65_000;
/// User data of ABORT in version 1.
const ABORT_USER_DATA_MAX: usize = 9;

/// Bounds and versions of a session.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// The versions offered and accepted, see [`version`].
    pub versions: u8,
    /// The most octets of an SPDU other than DATA TRANSFER, which alone is not held.
    pub spdu_max: usize,
    /// The most octets of user data of a connection.
    pub connect_user_data_max: usize,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            versions: version::ONE | version::TWO,
            spdu_max: 66_000,
            connect_user_data_max: 131_072,
        }
    }
}

/// S-CONNECT request.
#[derive(Debug, Clone, Default)]
pub struct Connecting {
    /// The session connection identifier.
    pub identifier: ConnectionIdentifier,
    /// The calling session selector.
    pub calling: Option<Bytes>,
    /// The called session selector.
    pub called: Option<Bytes>,
    /// Whether the tokens are at the responder at first.
    pub responder_has_tokens: bool,
    /// The user data.
    pub user_data: Bytes,
}

/// S-CONNECT response.
#[derive(Debug, Clone, Default)]
pub struct Accepting {
    /// The session connection identifier.
    pub identifier: ConnectionIdentifier,
    /// The responding session selector.
    pub responding: Option<Bytes>,
    /// The user data.
    pub user_data: Bytes,
}

/// A request that has no place in this state: the fault of the caller. Nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{primitive} has no place in state {state:?}, or the tokens for it are not here")]
pub struct NotAllowed {
    /// The service primitive.
    pub primitive: &'static str,
    /// The state.
    pub state: State,
}

/// Indications and confirms of the session service (X.215).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEvent {
    /// S-CONNECT indication.
    ConnectIndication(Connect),
    /// S-CONNECT confirm, accepted.
    ConnectConfirm(Accept),
    /// S-CONNECT confirm, refused.
    Refused(Refuse),
    /// S-DATA indication: a piece of an SSDU, and whether it ends.
    Data(Bytes, bool),
    /// S-TOKEN-PLEASE indication.
    TokenPlease(Tokens, Bytes),
    /// S-TOKEN-GIVE indication.
    TokenGive(Tokens),
    /// S-CONTROL-GIVE indication.
    ControlGive,
    /// S-SYNC-MINOR indication: serial number, and whether it is to be confirmed.
    SyncMinor(u32, bool),
    /// S-SYNC-MINOR confirm.
    SyncMinorConfirm(u32),
    /// S-ACTIVITY-START indication.
    ActivityStart(Bytes),
    /// S-ACTIVITY-RESUME indication.
    ActivityResume(ActivityResume),
    /// S-ACTIVITY-INTERRUPT indication.
    ActivityInterrupt(Exception),
    /// S-ACTIVITY-INTERRUPT confirm.
    ActivityInterruptConfirm,
    /// S-ACTIVITY-DISCARD indication.
    ActivityDiscard(Exception),
    /// S-ACTIVITY-DISCARD confirm.
    ActivityDiscardConfirm,
    /// S-ACTIVITY-END indication.
    ActivityEnd(u32),
    /// S-ACTIVITY-END confirm.
    ActivityEndConfirm,
    /// S-U-EXCEPTION-REPORT indication.
    UserException(Exception, Bytes),
    /// S-P-EXCEPTION-REPORT indication.
    ProviderException,
    /// S-RELEASE indication.
    Release(Bytes),
    /// S-RELEASE confirm.
    ReleaseConfirm(Bytes),
    /// S-U-ABORT indication.
    UserAbort(Bytes),
    /// S-P-ABORT indication: the peer's provider has found this side at fault, or the other way round.
    ProviderAbort(Fault),
    /// T-DISCONNECT request: the transport connection is to be closed.
    TransportDisconnect,
}

/// The fault that ended a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The peer's provider aborted. The octet is the transport disconnect item.
    Peer(u8),
    /// The transport connection ended.
    Transport,
    /// The peer sent octets that are no SPDU.
    Malformed(SpduError),
    /// The peer sent an SPDU that has no place in this state.
    Unexpected(Incoming, State),
}

/// A timer that a session wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionTimer {
    /// TIM: the peer has not closed the transport connection after an end of the session (X.225 clause 6.1.4).
    Tim,
}

/// A session connection over a transport connection that is used for nothing else.
#[derive(Debug)]
pub struct Session {
    pub(super) state: State,
    pub(super) config: SessionConfig,
    /// Vtca: this side accepted the transport connection.
    pub(super) acceptor: bool,
    pub(super) version: u8,
    pub(super) requirements: u16,
    pub(super) tokens: Position,
    /// Vact: an activity is in progress.
    pub(super) activity: bool,
    /// V(A), V(M), V(R) and Vsc of X.225 Annex A clause A.5.4.
    pub(super) va: u32,
    pub(super) vm: u32,
    pub(super) vr: u32,
    pub(super) vsc: bool,
    pub(super) connecting: Option<Connecting>,
    pub(super) request: Option<Connect>,
    /// User data that are still to be sent in CONNECT DATA OVERFLOW SPDUs.
    pub(super) overflow: Pieces,
    /// User data that have arrived in such SPDUs, copied: slices would keep the whole buffers of the host.
    pub(super) overflowing: Vec<u8>,
    /// Octets of user data in a segment that is sent; 0 without segmenting.
    pub(super) segment: usize,
    pub(super) assembly: Assembly,
    pub(super) sending: Sending,
    events: VecDeque<SessionEvent>,
    output: VecDeque<(Pieces, bool)>,
}

/// The part of a TSDU that has arrived.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// The beginning of an SPDU, copied: slices would keep the whole buffers of the host.
    pub(super) held: BytesMut,
    pub(super) token: Option<Spdu>,
    /// The SPDU that is neither a token SPDU nor DATA TRANSFER. It counts when the TSDU ends.
    pub(super) spdu: Option<Spdu>,
    /// The enclosure of the DATA TRANSFER SPDU whose user information arrives.
    pub(super) data: Option<Enclosure>,
    /// Whether the user information is thrown away.
    pub(super) discards: bool,
    /// Whether an SSDU has begun and not ended.
    pub(super) open: bool,
}

/// The part of an SSDU that has been sent.
#[derive(Debug, Default)]
pub(super) struct Sending {
    pub(super) begun: bool,
    pub(super) waiting: Pieces,
}

impl Session {
    /// A session of the side that opens the transport connection.
    #[must_use]
    pub fn initiator(config: SessionConfig) -> Self {
        Self::new(config, false, State::Sta01)
    }

    /// A session of the side that has accepted a transport connection.
    #[must_use]
    pub fn responder(config: SessionConfig) -> Self {
        Self::new(config, true, State::Sta01C)
    }

    fn new(config: SessionConfig, acceptor: bool, state: State) -> Self {
        Self {
            state,
            config,
            acceptor,
            version: version::ONE,
            requirements: 0,
            tokens: Position::default(),
            activity: false,
            va: 0,
            vm: 0,
            vr: 0,
            vsc: false,
            connecting: None,
            request: None,
            overflow: Pieces::new(),
            overflowing: Vec::new(),
            segment: 0,
            assembly: Assembly::default(),
            sending: Sending::default(),
            events: VecDeque::new(),
            output: VecDeque::new(),
        }
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The protocol version: [`version::ONE`] or [`version::TWO`].
    #[must_use]
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// Whether this side has all tokens.
    #[must_use]
    pub const fn has_tokens(&self) -> bool {
        self.tokens.all_here()
    }

    /// The timer that the session wants now.
    #[must_use]
    pub const fn timer(&self) -> Option<SessionTimer> {
        match self.state {
            State::Sta16 => Some(SessionTimer::Tim),
            _ => None,
        }
    }

    /// The next event.
    pub fn poll(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    /// The next octets for the transport, and whether the TSDU ends with them.
    pub fn take_output(&mut self) -> Option<(Pieces, bool)> {
        self.output.pop_front()
    }

    pub(super) fn send(&mut self, spdu: &Spdu) {
        self.output.push_back((Pieces::from(spdu.write()), true));
    }

    pub(super) fn tell(&mut self, event: SessionEvent) {
        self.events.push_back(event);
    }

    pub(super) const fn refuse_request(&self, primitive: &'static str) -> NotAllowed {
        NotAllowed {
            primitive,
            state: self.state,
        }
    }

    /// Whether user data of this length fits one SPDU of the version.
    pub(super) const fn fits(&self, user_data: &Bytes) -> bool {
        match self.version {
            version::ONE => user_data.len() <= USER_DATA_MAX,
            _ => user_data.len() <= PART_MAX,
        }
    }

    /// The versions that the next S-CONNECT request offers.
    pub const fn offer_versions(&mut self, versions: u8) {
        self.config.versions = versions;
    }

    /// S-DATA request: a piece of an SSDU. An SSDU that was begun may be ended after the peer has reported an exception.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] without the data token, and in states without data transfer.
    pub fn data(&mut self, octets: Pieces, end: bool) -> Result<(), NotAllowed> {
        let here = match self.state {
            State::Sta713 => true,
            State::Sta20 => self.sending.begun || !self.sending.waiting.is_empty(),
            _ => false,
        };
        if !here || !self.tokens.may(super::Token::Data) {
            return Err(self.refuse_request("S-DATA request"));
        }
        match self.segment {
            0 => self.send_unsegmented(octets, end),
            segment => self.send_segments(octets, end, segment),
        }
        Ok(())
    }

    fn send_unsegmented(&mut self, octets: Pieces, end: bool) {
        if !self.sending.begun {
            let header = Spdu::DataTransfer(Enclosure::WHOLE).write();
            self.output.push_back((Pieces::from(header), false));
        }
        self.sending.begun = !end;
        self.output.push_back((octets, end));
    }

    fn send_segments(&mut self, octets: Pieces, end: bool, segment: usize) {
        self.sending.waiting.append(octets);
        while self.sending.waiting.len() > segment {
            self.send_segment(segment, false);
        }
        if end {
            self.send_segment(segment, true);
        }
    }

    fn send_segment(&mut self, segment: usize, end: bool) {
        let begin = !self.sending.begun;
        self.sending.begun = !end;
        let header = Spdu::DataTransfer(Enclosure { begin, end }).write();
        let mut tsdu = Pieces::from(header);
        tsdu.append(self.sending.waiting.take(segment));
        self.output.push_back((tsdu, true));
    }

    /// S-U-ABORT request. User data that do not fit the version are left out.
    pub fn abort(&mut self, user_data: Bytes) {
        match self.state {
            State::Sta01 | State::Sta16 => {}
            State::Sta01B | State::Sta01C | State::Sta01D => self.disconnect(),
            _ => {
                let max = match self.version {
                    version::ONE => ABORT_USER_DATA_MAX,
                    _ => PART_MAX,
                };
                let item = disconnect::RELEASED | disconnect::USER_ABORT;
                let fits = user_data.len() <= max;
                self.send_abort(item, if fits { user_data } else { Bytes::new() });
            }
        }
    }

    /// Ends the SSDU that is being sent, so that another SPDU may follow.
    pub(super) fn end_ssdu(&mut self) {
        match self.segment {
            _ if !self.sending.begun && self.sending.waiting.is_empty() => {}
            0 => self.output.push_back((Pieces::new(), true)),
            segment => self.send_segment(segment, true),
        }
        self.sending = Sending::default();
    }

    /// Forgets the SSDU that was being received, and what is still to come of it.
    pub(super) const fn drop_ssdu(&mut self) {
        self.assembly.open = false;
        self.assembly.discards = true;
    }

    fn send_abort(&mut self, disconnect: u8, user_data: Bytes) {
        self.end_ssdu();
        self.send(&Spdu::Abort(Abort {
            disconnect,
            reflect: Bytes::new(),
            user_data,
        }));
        self.state = State::Sta16;
    }

    /// The fault of the peer: S-P-ABORT indication, ABORT SPDU, STA 16 (X.225 Annex A clause A.4.1.2).
    pub(super) fn fail(&mut self, fault: Fault) {
        self.assembly = Assembly::default();
        match self.state {
            State::Sta01 => {}
            State::Sta16 => self.disconnect(),
            State::Sta01B | State::Sta01C | State::Sta01D => {
                self.tell(SessionEvent::ProviderAbort(fault));
                self.disconnect();
            }
            _ => {
                self.send_abort(
                    disconnect::RELEASED | disconnect::PROTOCOL_ERROR,
                    Bytes::new(),
                );
                self.tell(SessionEvent::ProviderAbort(fault));
            }
        }
    }

    pub(super) fn disconnect(&mut self) {
        self.state = State::Sta01;
        self.tell(SessionEvent::TransportDisconnect);
    }

    /// T-DISCONNECT indication: the transport connection has ended.
    pub fn transport_disconnected(&mut self) {
        let told = matches!(
            self.state,
            State::Sta01 | State::Sta01C | State::Sta01D | State::Sta16
        );
        self.state = State::Sta01;
        if !told {
            self.tell(SessionEvent::ProviderAbort(Fault::Transport));
        }
    }

    /// The timer TIM has expired.
    pub fn expired(&mut self, timer: SessionTimer) {
        if self.timer() == Some(timer) {
            self.disconnect();
        }
    }
}
