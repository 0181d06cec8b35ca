//! The session protocol machine (SPM): establishment, data and aborts; what a TSDU holds.

use std::collections::VecDeque;

use bytes::Bytes;

use super::parameters::SpduError;
use super::spdu::{USER_DATA_MAX, disconnect, requirement, version};
use super::tokens::Position;
use super::{
    Abort, Accept, ActivityResume, Connect, ConnectionIdentifier, Enclosure, Exception, Incoming,
    Item, OverflowAccept, Refuse, RefuseReason, Spdu, State, Tokens,
};
use crate::pieces::Pieces;

/// User data of a connection above this travel in CONNECT DATA OVERFLOW SPDUs (X.225 clause 8.3.3).
const OVERFLOW: usize = 10_240;
/// User data of one CONNECT DATA OVERFLOW SPDU: its length fits 16 bits.
const OVERFLOW_PART: usize = 65_000;
/// The most octets of user data of an SPDU other than DATA TRANSFER and CONNECT.
const PART_MAX: usize = 65_000;
/// User data of ABORT in version 1.
const ABORT_USER_DATA_MAX: usize = 9;
/// TSDUs that a TSDU maximum size leaves room for headers in.
const TSDU_MIN: usize = 64;
/// Headers of a segment of user information: GIVE TOKENS, DATA TRANSFER with an enclosure item.
const SEGMENT_HEADER: usize = 7;

/// What bounds a session, and the versions it speaks.
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

/// Who ended a session without being asked.
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
    acceptor: bool,
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
    connecting: Option<Connecting>,
    request: Option<Connect>,
    overflow: Pieces,
    /// Octets of user data in a segment that is sent; 0 without segmenting.
    segment: usize,
    assembly: Assembly,
    sending: Sending,
    events: VecDeque<SessionEvent>,
    output: VecDeque<(Pieces, bool)>,
}

/// What has arrived of a TSDU.
#[derive(Debug, Default)]
struct Assembly {
    collected: Pieces,
    token: Option<Spdu>,
    /// The SPDU that is neither a token SPDU nor DATA TRANSFER. It counts when the TSDU ends.
    spdu: Option<Spdu>,
    /// The enclosure of the DATA TRANSFER SPDU whose user information arrives.
    data: Option<Enclosure>,
    /// Whether the user information is thrown away.
    discards: bool,
    /// Whether an SSDU has begun and not ended.
    open: bool,
}

/// What has been sent of an SSDU.
#[derive(Debug, Default)]
struct Sending {
    begun: bool,
    waiting: Pieces,
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

    /// S-CONNECT request. The CONNECT SPDU is sent when the transport connection is there. User data above 512 octets propose
    /// version 2 alone.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] in another state than STA 01, and for user data above the limit of the version.
    pub fn connect(&mut self, request: Connecting) -> Result<(), NotAllowed> {
        let length = request.user_data.len();
        let two = self.config.versions & version::TWO != 0;
        let fits = length <= USER_DATA_MAX || (two && length <= self.config.connect_user_data_max);
        if self.state != State::Sta01 || self.acceptor || !fits {
            return Err(self.refuse_request("S-CONNECT request"));
        }
        self.connecting = Some(request);
        self.state = State::Sta01B;
        Ok(())
    }

    /// T-CONNECT confirm.
    pub fn transport_connected(&mut self) {
        let (State::Sta01B, Some(request)) = (self.state, self.connecting.take()) else {
            return;
        };
        let mut user_data = Pieces::from(request.user_data);
        let overflow = user_data.len() > OVERFLOW;
        let versions = match user_data.len() > USER_DATA_MAX {
            true => version::TWO,
            false => self.config.versions,
        };
        let connect = Connect {
            identifier: request.identifier,
            item: Item {
                versions,
                token_setting: if request.responder_has_tokens {
                    0x15
                } else {
                    0
                },
                ..Item::default()
            },
            requirements: super::REQUIREMENTS,
            calling: request.calling,
            called: request.called,
            overflow,
            user_data: user_data.take(OVERFLOW).into_bytes(),
        };
        self.overflow = user_data;
        self.send(&Spdu::Connect(connect.clone()));
        self.request = Some(connect);
        self.state = if overflow {
            State::Sta02B
        } else {
            State::Sta02A
        };
    }

    /// S-CONNECT response, accepted.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] in another state than STA 08, and for user data above the limit of the version.
    pub fn accept(&mut self, response: Accepting) -> Result<(), NotAllowed> {
        let (State::Sta08, true) = (self.state, self.fits(&response.user_data)) else {
            return Err(self.refuse_request("S-CONNECT response"));
        };
        let request = self.request.take().unwrap_or_default();
        let accept = Accept {
            identifier: response.identifier,
            item: Item {
                options: 0,
                versions: self.version,
                // A choice that is left to the called user is taken as the initiator's.
                token_setting: request.item.token_setting & 0x15,
                tsdu_maximum: request.item.tsdu_maximum,
                initial_serial: request.item.initial_serial,
            },
            please: Tokens::NONE,
            requirements: super::REQUIREMENTS & request.requirements,
            responding: response.responding,
            user_data: response.user_data,
        };
        self.send(&Spdu::Accept(accept.clone()));
        self.established(&accept, accept.item.tsdu_maximum.1);
        Ok(())
    }

    /// S-CONNECT response, refused. The user data must fit the version; those of version 1 are cut off at 512 octets.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] in another state than STA 08.
    pub fn refuse(&mut self, reason: RefuseReason, user_data: Bytes) -> Result<(), NotAllowed> {
        if self.state != State::Sta08 {
            return Err(self.refuse_request("S-CONNECT response"));
        }
        let fits = self.fits(&user_data);
        self.send_refuse(reason, if fits { user_data } else { Bytes::new() });
        Ok(())
    }

    fn send_refuse(&mut self, reason: RefuseReason, user_data: Bytes) {
        let versions = self.config.versions;
        let request = self.request.take().unwrap_or_default();
        self.send(&Spdu::Refuse(Refuse {
            identifier: request.identifier,
            disconnect: disconnect::RELEASED,
            requirements: Some(super::REQUIREMENTS),
            versions: Some(versions).filter(|_| reason == RefuseReason::Version),
            reason,
            user_data,
        }));
        self.state = State::Sta16;
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
    fn fail(&mut self, fault: Fault) {
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

    /// T-DATA indication: a piece of a TSDU. Pieces of user information become events as they come; the octets of other
    /// SPDUs are collected up to the limit.
    pub fn receive(&mut self, octets: Bytes, end: bool) {
        if self.state == State::Sta01 {
            return;
        }
        match self.assemble(octets, end) {
            Ok(()) if end => {
                self.assembly = Assembly {
                    open: self.assembly.open,
                    ..Assembly::default()
                }
            }
            Ok(()) => {}
            Err(fault) => self.fail(fault),
        }
    }

    fn assemble(&mut self, octets: Bytes, end: bool) -> Result<(), Fault> {
        if let Some(enclosure) = self.assembly.data {
            return self.user_information(enclosure, octets, end);
        }
        self.assembly.collected.push(octets);
        while let Some(spdu) = self.next_spdu()? {
            if let Spdu::DataTransfer(enclosure) = spdu {
                let rest = std::mem::take(&mut self.assembly.collected);
                self.begin_data(enclosure)?;
                return self.user_information(enclosure, rest.into_bytes(), end);
            }
            self.whole_spdu(spdu)?;
        }
        match end && !self.assembly.collected.is_empty() {
            true => Err(Fault::Malformed(SpduError::Length)),
            false if end => self.end_of_tsdu(),
            false => Ok(()),
        }
    }

    fn end_of_tsdu(&mut self) -> Result<(), Fault> {
        if let Some(spdu) = self.assembly.spdu.take() {
            self.spdu(spdu)?;
        }
        self.token_alone()
    }

    /// Takes the next SPDU off the collected octets, if it is there.
    fn next_spdu(&mut self) -> Result<Option<Spdu>, Fault> {
        let collected = &mut self.assembly.collected;
        let mut head = [0; 4];
        let found = collected.peek(&mut head);
        let Some(length) = Spdu::length(head.get(..found).unwrap_or(&head)) else {
            return Ok(None);
        };
        let limit = self.config.spdu_max;
        if length > limit {
            return Err(Fault::Malformed(SpduError::TooLong(limit)));
        }
        if collected.len() < length {
            return Ok(None);
        }
        let octets = collected.take(length).into_bytes();
        let second = self.assembly.token.is_some();
        Spdu::read(&octets, second)
            .map(Some)
            .map_err(Fault::Malformed)
    }

    /// Takes an SPDU that has no user information. Only token SPDUs may have another behind them.
    fn whole_spdu(&mut self, spdu: Spdu) -> Result<(), Fault> {
        let first = self.assembly.token.is_none() && self.assembly.spdu.is_none();
        if first && spdu.kind().category() == 0 {
            self.assembly.token = Some(spdu);
            return Ok(());
        }
        match self.assembly.spdu.replace(spdu) {
            None => Ok(()),
            Some(_) => Err(Fault::Malformed(SpduError::Concatenation)),
        }
    }

    /// Takes the token SPDU, after the SPDU that stands behind it: tokens are given when their rights have been used.
    fn token_alone(&mut self) -> Result<(), Fault> {
        match self.assembly.token.take() {
            Some(Spdu::GiveTokens(tokens)) if tokens.is_none() => Ok(()),
            Some(Spdu::PleaseTokens(tokens, _)) if tokens.is_none() => Ok(()),
            Some(token) => self.spdu(token),
            None => Ok(()),
        }
    }

    fn begin_data(&mut self, enclosure: Enclosure) -> Result<(), Fault> {
        let here = Fault::Unexpected(Incoming::DT, self.state);
        self.assembly.discards = match self.state {
            State::Sta16 | State::Sta19 => true,
            State::Sta05B | State::Sta05C | State::Sta20 if self.peer_may_send() => true,
            State::Sta03 | State::Sta04B | State::Sta713 if self.peer_may_send() => false,
            _ => return Err(here),
        };
        if enclosure.begin == self.assembly.open {
            return Err(Fault::Malformed(SpduError::Concatenation));
        }
        self.assembly.open = !enclosure.end;
        self.assembly.data = Some(enclosure);
        Ok(())
    }

    const fn peer_may_send(&self) -> bool {
        self.tokens.peer_may(super::Token::Data)
    }

    fn user_information(
        &mut self,
        enclosure: Enclosure,
        octets: Bytes,
        end: bool,
    ) -> Result<(), Fault> {
        let ends = end && enclosure.end;
        if !self.assembly.discards && (ends || !octets.is_empty()) {
            self.tell(SessionEvent::Data(octets, ends));
        }
        match end {
            true => self.token_alone(),
            false => Ok(()),
        }
    }

    /// An SPDU has arrived: the table of X.225 Annex A, by kinds.
    fn spdu(&mut self, spdu: Spdu) -> Result<(), Fault> {
        let unexpected = Fault::Unexpected(spdu.kind(), self.state);
        let known = match self.state {
            State::Sta16 => self.ended_spdu(&spdu),
            _ => match spdu {
                Spdu::Abort(abort) => self.aborted(&abort),
                Spdu::Connect(connect) => self.requested(connect)?,
                Spdu::ConnectDataOverflow(data, last) => self.overflowed(data, last)?,
                Spdu::OverflowAccept(accept) => self.overflow_accepted(accept),
                Spdu::Accept(accept) => self.accepted(accept),
                Spdu::Refuse(refuse) => self.refused(refuse),
                Spdu::Finish(_, data) => self.finish(data),
                Spdu::Disconnect(data) => self.released(data),
                other => self.connected_spdu(other),
            },
        };
        if known { Ok(()) } else { Err(unexpected) }
    }

    /// STA 16: the peer ends the transport connection, or agrees with the end.
    fn ended_spdu(&mut self, spdu: &Spdu) -> bool {
        if matches!(spdu, Spdu::Abort(_) | Spdu::AbortAccept | Spdu::Connect(_)) {
            self.disconnect();
        }
        true
    }

    fn aborted(&mut self, abort: &Abort) -> bool {
        if !matches!(self.state, State::Sta01C | State::Sta01D) {
            self.tell(match abort.disconnect & disconnect::USER_ABORT {
                0 => SessionEvent::ProviderAbort(Fault::Peer(abort.disconnect)),
                _ => SessionEvent::UserAbort(abort.user_data.clone()),
            });
        }
        self.disconnect();
        true
    }

    fn requested(&mut self, connect: Connect) -> Result<bool, Fault> {
        if self.state != State::Sta01C || !self.acceptor {
            return Ok(false);
        }
        let common = connect.item.versions & self.config.versions;
        self.version = if common & version::TWO != 0 {
            version::TWO
        } else {
            version::ONE
        };
        if common == 0 {
            self.send_refuse(RefuseReason::Version, Bytes::new());
            return Ok(true);
        }
        if connect.requirements & super::REQUIREMENTS != super::REQUIREMENTS {
            self.send_refuse(RefuseReason::Provider, Bytes::new());
            return Ok(true);
        }
        let limit = self.config.connect_user_data_max;
        if connect.user_data.len() > limit {
            return Err(Fault::Malformed(SpduError::TooLong(limit)));
        }
        if connect.overflow {
            self.overflow = Pieces::from(connect.user_data.clone());
            self.request = Some(connect);
            self.send(&Spdu::OverflowAccept(OverflowAccept {
                tsdu_maximum: (0, 0),
                versions: self.version,
            }));
            self.state = State::Sta01D;
        } else {
            self.indicate(connect);
        }
        Ok(true)
    }

    fn overflowed(&mut self, data: Bytes, last: bool) -> Result<bool, Fault> {
        if self.state != State::Sta01D {
            return Ok(false);
        }
        self.overflow.push(data);
        let limit = self.config.connect_user_data_max;
        if self.overflow.len() > limit {
            return Err(Fault::Malformed(SpduError::TooLong(limit)));
        }
        if last {
            let mut connect = self.request.take().unwrap_or_default();
            connect.user_data = std::mem::take(&mut self.overflow).into_bytes();
            self.indicate(connect);
        }
        Ok(true)
    }

    fn indicate(&mut self, connect: Connect) {
        self.state = State::Sta08;
        self.request = Some(connect.clone());
        self.tell(SessionEvent::ConnectIndication(connect));
    }

    fn overflow_accepted(&mut self, accept: OverflowAccept) -> bool {
        if self.state != State::Sta02B {
            return false;
        }
        let _selected = accept;
        while !self.overflow.is_empty() {
            let part = self.overflow.take(OVERFLOW_PART).into_bytes();
            let last = self.overflow.is_empty();
            self.send(&Spdu::ConnectDataOverflow(part, last));
        }
        self.state = State::Sta02A;
        true
    }

    fn accepted(&mut self, accept: Accept) -> bool {
        if self.state != State::Sta02A {
            return false;
        }
        let proposed = self.request.take().unwrap_or_default();
        let selected = accept.item.versions & proposed.item.versions;
        let all = super::REQUIREMENTS;
        if selected == 0 || accept.requirements & all != all {
            return false;
        }
        self.version = if selected & version::TWO != 0 {
            version::TWO
        } else {
            version::ONE
        };
        self.established(&accept, accept.item.tsdu_maximum.0);
        self.tell(SessionEvent::ConnectConfirm(accept));
        true
    }

    /// Special action 5 of X.225 Annex A.
    fn established(&mut self, accept: &Accept, tsdu_maximum: u16) {
        self.state = State::Sta713;
        self.requirements = accept.requirements;
        let mut available = Tokens::NONE;
        for (unit, token) in [
            (requirement::HALF_DUPLEX, 0x01),
            (requirement::MINOR_SYNCHRONIZE, 0x04),
            (requirement::ACTIVITY_MANAGEMENT, 0x10),
        ] {
            if self.requirements & unit != 0 {
                available = available.union(Tokens::from_item(token));
            }
        }
        let of_responder = Tokens::from_item(accept.item.token_setting);
        let owned = match self.acceptor {
            true => of_responder,
            false => available.without(of_responder),
        };
        self.tokens = Position {
            available,
            owned: available.without(available.without(owned)),
        };
        let serial = accept.item.initial_serial.unwrap_or(0);
        (self.va, self.vm, self.vr, self.vsc) = (serial, serial, 0, false);
        let maximum = usize::from(tsdu_maximum);
        self.segment = match maximum < TSDU_MIN {
            true => 0,
            false => maximum.saturating_sub(SEGMENT_HEADER),
        };
    }

    /// Pretends that a CONNECT SPDU with these versions was sent.
    #[cfg(test)]
    pub(super) fn propose(&mut self, versions: u8) {
        self.request = Some(Connect {
            item: Item {
                versions,
                ..Item::default()
            },
            ..Connect::default()
        });
    }

    fn refused(&mut self, refuse: Refuse) -> bool {
        if !matches!(self.state, State::Sta02A | State::Sta02B) {
            return false;
        }
        self.tell(SessionEvent::Refused(refuse));
        self.disconnect();
        true
    }
}
