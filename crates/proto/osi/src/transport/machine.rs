//! The machine of a transport connection, in both roles.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use vere_ber::Pieces;

use super::tpdu::{DT, EOT, TPKT_LEN};
use super::{Connection, DisconnectReason, RejectCause, Tpdu, TpduError, TpduSize};

/// The largest TPDU: what fits a packet (RFC 1006 section 6).
pub const TPDU_SIZE_MAX: u32 = 65_531;
/// Octets of the header of a data TPDU.
const DATA_HEADER: usize = 3;
/// The largest packet with another TPDU than DT: its length octet, the header, and user data, which class 0 has not.
const CONTROL_MAX: usize = 512;
/// Octets that are copied when they come alone.
const COPIED_MAX: usize = 512;
/// The largest size that parameter 0xC0 proposes: X.224 clause 13.3.4 b) does not allow 4,096 and 8,192 in class 0, and strict
/// peers end the connection on them. Peers that propose them get them.
const POWER_MAX: u32 = 2048;

/// The states of X.224 Annex A in class 0. The network connection is there before the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// CLOSED: no connection yet, or none any more.
    Closed,
    /// WFCC: waits for the CC TPDU.
    Wfcc,
    /// WFTRESP: waits for the T-CONNECT response.
    Wftresp,
    /// OPEN.
    Open,
    /// CLOSING: the network connection is to be closed.
    Closing,
}

/// Properties of a transport entity.
#[derive(Debug, Clone)]
pub struct TransportConfig {
    /// The reference of this connection, not 0.
    pub reference: u16,
    /// The largest TPDU that is sent and received: 128 to 65,531.
    pub tpdu_size: u32,
}

impl Default for TransportConfig {
    /// The largest TPDUs: each costs seven octets and a wake-up.
    fn default() -> Self {
        Self {
            reference: 1,
            tpdu_size: TPDU_SIZE_MAX,
        }
    }
}

/// An event of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportEvent {
    /// T-CONNECT indication: the peer asks for a connection.
    ConnectIndication(Connection),
    /// T-CONNECT confirm: the peer has accepted.
    ConnectConfirm(Connection),
    /// T-DATA indication: a piece of a TSDU.
    Data {
        /// The octets; may be empty with the end mark.
        octets: Bytes,
        /// Whether the TSDU ends with this piece.
        end: bool,
    },
    /// T-DISCONNECT indication: the network connection is to be closed.
    Disconnected(TransportError),
}

/// Why the connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The peer has refused or ended the connection.
    #[error("the peer ended the transport connection: {0}")]
    Refused(DisconnectReason),
    /// The peer has rejected a TPDU.
    #[error("the peer rejected a TPDU: {0}")]
    Rejected(RejectCause),
    /// The peer has sent something that is no TPDU.
    #[error(transparent)]
    Malformed(#[from] TpduError),
    /// The peer has sent a TPDU that has no place in this state.
    #[error("expected another TPDU in state {0:?}")]
    Unexpected(State),
    /// The network connection has ended.
    #[error("the network connection ended")]
    Network,
}

#[derive(Debug, Clone, Copy)]
enum Reading {
    Packet,
    Data { left: usize, end: bool },
}

/// A transport connection.
#[derive(Debug)]
pub struct Transport {
    state: State,
    config: TransportConfig,
    /// The largest TPDU to send.
    size: u32,
    request: Option<Connection>,
    /// Whether the network connection has ended: nothing follows the input.
    ended: bool,
    input: Pieces,
    reading: Reading,
    events: VecDeque<TransportEvent>,
    output: Pieces,
    /// Octets of the TSDU that fill no TPDU yet.
    unsent: Pieces,
    headers: BytesMut,
}

impl Transport {
    /// A connection over a network connection that is there.
    #[must_use]
    pub fn new(config: TransportConfig) -> Self {
        let tpdu_size = config.tpdu_size.clamp(128, TPDU_SIZE_MAX);
        Self {
            state: State::Closed,
            config: TransportConfig {
                tpdu_size,
                ..config
            },
            size: 128,
            request: None,
            ended: false,
            input: Pieces::new(),
            reading: Reading::Packet,
            events: VecDeque::new(),
            output: Pieces::new(),
            unsent: Pieces::new(),
            headers: BytesMut::new(),
        }
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The largest TPDU to send, as negotiated.
    #[must_use]
    pub const fn tpdu_size(&self) -> u32 {
        self.size
    }

    /// Octets that wait to be written.
    #[must_use]
    pub const fn unwritten(&self) -> usize {
        self.output.len()
    }

    /// Octets that were received and not looked at yet.
    #[must_use]
    pub const fn unread(&self) -> usize {
        self.input.len()
    }

    /// Takes the octets to write.
    pub fn take_output(&mut self) -> Pieces {
        std::mem::take(&mut self.output)
    }

    /// T-CONNECT request.
    pub fn connect(&mut self, calling: Option<Bytes>, called: Option<Bytes>) {
        if self.state == State::Closed && self.request.is_none() {
            let request = Connection {
                source: self.config.reference,
                calling,
                called,
                size: proposal(self.config.tpdu_size),
                ..Connection::default()
            };
            self.output
                .push(Tpdu::ConnectionRequest(request.clone()).write());
            self.request = Some(request);
            self.state = State::Wfcc;
        }
    }

    /// T-CONNECT response.
    pub fn accept(&mut self) {
        let (State::Wftresp, Some(request)) = (self.state, &self.request) else {
            return;
        };
        let (size, selected) = selection(self.config.tpdu_size, request.size);
        let confirm = Connection {
            destination: request.source,
            source: self.config.reference,
            calling: request.calling.clone(),
            called: request.called.clone(),
            size: selected,
            ..Connection::default()
        };
        self.output.push(Tpdu::ConnectionConfirm(confirm).write());
        self.size = size;
        self.state = State::Open;
    }

    /// T-DISCONNECT request. A connection that is not accepted is refused with the reason; an open one ends with its
    /// network connection, as class 0 has it.
    pub fn disconnect(&mut self, reason: DisconnectReason) {
        if self.state == State::Wftresp {
            self.output.push(Tpdu::DisconnectRequest(reason).write());
        }
        self.state = State::Closing;
        self.input = Pieces::new();
    }

    /// T-DATA request: a piece of a TSDU. TPDUs are sent full, and at the end of the TSDU.
    pub fn send(&mut self, octets: Pieces, end: bool) {
        if self.state != State::Open {
            return;
        }
        self.unsent.append(octets);
        let room = usize::try_from(self.size)
            .unwrap_or(usize::MAX)
            .saturating_sub(DATA_HEADER);
        while self.unsent.len() > room {
            self.send_tpdu(room, 0);
        }
        if end {
            self.send_tpdu(room, EOT);
        }
    }

    fn send_tpdu(&mut self, room: usize, mark: u8) {
        let data = self.unsent.take(room);
        let total = data
            .len()
            .saturating_add(TPKT_LEN)
            .saturating_add(DATA_HEADER);
        self.headers.put_slice(&[3, 0]);
        self.headers
            .put_u16(u16::try_from(total).unwrap_or(u16::MAX));
        self.headers.put_slice(&[2, DT, mark]);
        self.output.push(self.headers.split().freeze());
        self.output.append(data);
    }

    /// Takes octets from the network. They are looked at by [`poll`](Self::poll).
    ///
    /// A few octets are copied: a slice would keep the whole buffer of the host.
    pub fn receive(&mut self, octets: Bytes) {
        if self.state == State::Closing {
            return;
        }
        self.input.push(match octets.len() {
            0..=COPIED_MAX => Bytes::copy_from_slice(&octets),
            _ => octets,
        });
    }

    /// The network connection has ended. [`poll`](Self::poll) looks at the octets that arrived before, and tells the end then.
    pub const fn ended(&mut self) {
        self.ended = true;
    }

    /// The next event. `None` when further octets are needed, or the connection waits for
    /// [`accept`](Self::accept).
    pub fn poll(&mut self) -> Option<TransportEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let waits = self.state == State::Wftresp;
            if self.state == State::Closing || (waits && !self.ended) {
                return None;
            }
            match if waits { Ok(false) } else { self.read() } {
                Ok(true) => {}
                Ok(false) if self.ended => self.fail(TransportError::Network),
                Ok(false) => return None,
                Err(error) => self.reject(error),
            }
        }
    }

    /// Looks at the next octets; false when there are not enough.
    fn read(&mut self) -> Result<bool, TransportError> {
        match self.reading {
            Reading::Data { left, end } => Ok(self.read_data(left, end)),
            Reading::Packet => self.read_packet(),
        }
    }

    fn read_data(&mut self, left: usize, end: bool) -> bool {
        let piece = match left {
            0 => Bytes::new(),
            _ => match self.input.pop_at_most(left) {
                Some(piece) => piece,
                None => return false,
            },
        };
        let left = left.saturating_sub(piece.len());
        self.reading = match left {
            0 => Reading::Packet,
            _ => Reading::Data { left, end },
        };
        let end = end && left == 0;
        if end || !piece.is_empty() {
            self.events
                .push_back(TransportEvent::Data { octets: piece, end });
        }
        true
    }

    fn read_packet(&mut self) -> Result<bool, TransportError> {
        let mut head = [0; TPKT_LEN + DATA_HEADER];
        let found = self.input.peek(&mut head);
        if found < head.len() {
            return Ok(false);
        }
        let [version, _, l0, l1, length, code, mark] = head;
        if version != 3 {
            return Err(TpduError::Version(version).into());
        }
        let total = usize::from(u16::from_be_bytes([l0, l1]));
        let left = total.checked_sub(head.len()).ok_or(TpduError::Length)?;
        if code & 0xf0 == DT {
            return self.begin_data(length, mark, left);
        }
        if total > CONTROL_MAX {
            return Err(TpduError::Length.into());
        }
        if self.input.len() < total {
            return Ok(false);
        }
        let packet = self.input.take(total).into_bytes();
        let tpdu = Tpdu::read(&packet.slice(TPKT_LEN.min(packet.len())..));
        match tpdu
            .map_err(TransportError::from)
            .and_then(|tpdu| self.control(tpdu))
        {
            Ok(()) => Ok(true),
            Err(error) => {
                // The rejection repeats octets of this packet, not of the one behind it.
                self.input = Pieces::from(packet);
                Err(error)
            }
        }
    }

    fn begin_data(&mut self, length: u8, mark: u8, left: usize) -> Result<bool, TransportError> {
        if self.state != State::Open {
            return Err(TransportError::Unexpected(self.state));
        }
        if usize::from(length) != DATA_HEADER.saturating_sub(1) {
            return Err(TpduError::Length.into());
        }
        let _head = self.input.take(TPKT_LEN.saturating_add(DATA_HEADER));
        let end = mark & EOT != 0;
        self.reading = Reading::Data { left, end };
        Ok(true)
    }

    fn control(&mut self, tpdu: Tpdu) -> Result<(), TransportError> {
        match (self.state, tpdu) {
            (State::Closed, Tpdu::ConnectionRequest(request)) => self.requested(request),
            (State::Wfcc, Tpdu::ConnectionConfirm(confirm)) => self.confirmed(confirm),
            (_, Tpdu::DisconnectRequest(reason)) => self.fail(TransportError::Refused(reason)),
            (_, Tpdu::Error(cause)) => self.fail(TransportError::Rejected(cause)),
            (state, _) => return Err(TransportError::Unexpected(state)),
        }
        Ok(())
    }

    fn requested(&mut self, request: Connection) {
        self.state = State::Wftresp;
        if request.class >> 4 != 0 && !request.alternative {
            self.disconnect(DisconnectReason::NegotiationFailed);
            let failed = TransportError::Refused(DisconnectReason::NegotiationFailed);
            self.events.push_back(TransportEvent::Disconnected(failed));
            return;
        }
        self.request = Some(request.clone());
        self.events
            .push_back(TransportEvent::ConnectIndication(request));
    }

    /// Deviates: X.224 clause 6.5.5 has the references compared; here the TCP connection tells connections apart.
    fn confirmed(&mut self, confirm: Connection) {
        let proposed = proposal(self.config.tpdu_size);
        let power = proposed.power.unwrap_or(128);
        let size = match (confirm.size.preferred, confirm.size.power) {
            (Some(preferred), _) => preferred,
            (None, Some(power)) => power,
            // The peer has not gone below the proposal, and the default of RFC 1006 is above it.
            (None, None) => power,
        };
        self.size = size.min(self.config.tpdu_size);
        self.state = State::Open;
        self.events
            .push_back(TransportEvent::ConnectConfirm(confirm));
    }

    /// Answers octets that are no TPDU, or none for this state, with an ER TPDU, and ends the connection.
    fn reject(&mut self, error: TransportError) {
        let cause = match error {
            TransportError::Malformed(TpduError::Value(_)) => RejectCause::ParameterValue,
            TransportError::Malformed(TpduError::Code(_)) | TransportError::Unexpected(_) => {
                RejectCause::TpduType
            }
            _ => RejectCause::NotSpecified,
        };
        let mut rejected = [0; TPKT_LEN + DATA_HEADER];
        let found = self.input.peek(&mut rejected);
        let rejected = rejected.get(TPKT_LEN..found).unwrap_or(&[]);
        self.output.push(Tpdu::rejection(cause, rejected));
        self.fail(error);
    }

    fn fail(&mut self, error: TransportError) {
        if self.state != State::Closing {
            self.state = State::Closing;
            self.input = Pieces::new();
            self.events.push_back(TransportEvent::Disconnected(error));
        }
    }
}

/// The sizes in a connection request: a power of two that every peer knows, and the preferred maximum (X.224 clause
/// 13.3.4) if it is larger.
fn proposal(size: u32) -> TpduSize {
    let power = 1_u32 << size.min(POWER_MAX).checked_ilog2().unwrap_or(7);
    let preferred = size.saturating_sub(size % 128);
    TpduSize {
        power: Some(power),
        preferred: Some(preferred).filter(|preferred| *preferred > power),
    }
}

/// The size to use, and the parameters that say so in a connection confirm.
fn selection(ours: u32, proposed: TpduSize) -> (u32, TpduSize) {
    match (proposed.preferred, proposed.power) {
        (Some(preferred), _) => {
            let size = preferred.min(ours.saturating_sub(ours % 128));
            let selected = TpduSize {
                power: None,
                preferred: Some(size),
            };
            (size, selected)
        }
        (None, Some(power)) => {
            let power = power.min(1 << ours.checked_ilog2().unwrap_or(7));
            let selected = TpduSize {
                power: Some(power),
                preferred: None,
            };
            (power.min(ours), selected)
        }
        // The default of RFC 1006 is the largest size.
        (None, None) if ours == TPDU_SIZE_MAX => (ours, TpduSize::default()),
        (None, None) => {
            let power = proposal(ours).power;
            (
                power.unwrap_or(128),
                TpduSize {
                    power,
                    preferred: None,
                },
            )
        }
    }
}
