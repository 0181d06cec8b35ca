//! The machine: the layers one above the other.

use std::collections::VecDeque;

use bytes::Bytes;

use super::event::{AbortCause, Event, Output, Timer};
use super::phase::Phase;
use super::request::ResponderConfig;
use crate::limits::Limits;
use crate::presentation::DataReader;
use crate::rtse::{Incoming, IncomingState, Outgoing, OutgoingState};
use crate::session::{
    NotAllowed, Session, SessionConfig, SessionEvent, SessionTimer, State as SessionState, version,
};
use crate::transport::{
    DisconnectReason, Transport, TransportConfig, TransportError, TransportEvent,
};

/// A request that has no place now: the fault of the host. Nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssociationError {
    /// The session does not allow the request.
    #[error(transparent)]
    Session(#[from] NotAllowed),
    /// The association is not open, or was opened before.
    #[error("{0} has no place in this phase of the association")]
    Phase(&'static str),
    /// A transfer is in progress, or none is.
    #[error("{0} has no place while a transfer is, or is not, in progress")]
    Transfer(&'static str),
    /// The dialogue is a monologue.
    #[error("{0} has no place in a monologue")]
    Monologue(&'static str),
    /// An APDU has no octets, or more checkpoints than there are serial numbers.
    #[error("expected an APDU of at least one octet and at most 999,998 checkpoints")]
    Length,
    /// No checkpoint has this number.
    #[error("expected a checkpoint that awaits its confirmation; found {0}")]
    Checkpoint(u32),
}

/// One association over one TCP connection.
#[derive(Debug)]
pub struct Association {
    pub(super) limits: Limits,
    pub(super) transport: Transport,
    pub(super) session: Session,
    pub(super) responder: Option<ResponderConfig>,
    pub(super) phase: Phase,
    pub(super) outgoing: Option<Outgoing>,
    pub(super) incoming: Option<Incoming>,
    /// Reads the P-DATA that arrive, in normal mode.
    pub(super) reader: Option<DataReader>,
    /// Whether the last transfer of the peer was confirmed.
    pub(super) confirmed_last: bool,
    /// Whether the host has to answer before anything else happens.
    pub(super) paused: bool,
    pub(super) next_activity: u32,
    /// The calling and called transport selectors.
    pub(super) transport_addresses: (Option<Bytes>, Option<Bytes>),
    events: VecDeque<Event>,
    /// Whether the host was told that the association has ended.
    told: bool,
    closing: bool,
    closed: bool,
}

impl Association {
    /// An association of the caller of the TCP connection, begun by [`open`](Self::open).
    #[must_use]
    pub fn initiator(limits: Limits) -> Self {
        let session = Session::initiator(session_config(&limits, version::ONE | version::TWO));
        Self::new(limits, session, None)
    }

    /// An association of the side that has accepted the TCP connection.
    #[must_use]
    pub fn responder(limits: Limits, config: ResponderConfig) -> Self {
        let session = Session::responder(session_config(&limits, config.session_versions));
        Self::new(limits, session, Some(config))
    }

    fn new(limits: Limits, session: Session, responder: Option<ResponderConfig>) -> Self {
        let transport = Transport::new(TransportConfig {
            tpdu_size: limits.tpdu_size,
            ..TransportConfig::default()
        });
        Self {
            limits,
            transport,
            session,
            responder,
            phase: Phase::Idle,
            outgoing: None,
            incoming: None,
            reader: None,
            confirmed_last: false,
            paused: false,
            next_activity: 1,
            transport_addresses: (None, None),
            events: VecDeque::new(),
            told: false,
            closing: false,
            closed: false,
        }
    }

    /// Takes octets from the TCP connection. They are looked at by [`poll`](Self::poll).
    pub fn receive(&mut self, octets: Bytes) {
        self.transport.receive(octets);
    }

    /// The TCP connection has ended.
    pub fn ended(&mut self) {
        self.paused = false;
        self.transport.ended();
    }

    /// Whether octets are welcome. While the association waits for an answer to a `ResumeIndication`, received octets would only
    /// pile up.
    #[must_use]
    pub const fn wants_octets(&self) -> bool {
        !self.paused && !self.closing
    }

    /// Octets that wait to be written.
    #[must_use]
    pub const fn unwritten(&self) -> usize {
        self.transport.unwritten()
    }

    /// Whether this side has the turn: it may begin a transfer.
    #[must_use]
    pub const fn has_turn(&self) -> bool {
        matches!(self.phase, Phase::Open(_)) && self.session.has_tokens()
    }

    /// The presentation context of an abstract syntax, in normal mode.
    #[must_use]
    pub fn context(&self, abstract_syntax: &vere_ber::ObjectIdentifier) -> Option<i64> {
        match &self.phase {
            Phase::Open(agreement) => agreement.contexts.of(abstract_syntax),
            _ => None,
        }
    }

    /// The next thing to do; `None` when the host has to do something first: supply octets, answer, wait.
    pub fn poll(&mut self) -> Option<Output> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Output::Event(event));
            }
            if self.advance() {
                continue;
            }
            self.flush();
            if self.transport.unwritten() > 0 {
                return Some(Output::Write(self.transport.take_output()));
            }
            return match self.closing && !self.closed {
                true => {
                    self.closed = true;
                    Some(Output::Close)
                }
                false => None,
            };
        }
    }

    /// The next event, without octets to write.
    #[cfg(test)]
    pub(super) fn poll_events(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if !self.advance() {
                return None;
            }
        }
    }

    /// Takes the next event of the session or of the transport; false if there is none.
    fn advance(&mut self) -> bool {
        if self.paused {
            return false;
        }
        if let Some(event) = self.session.poll() {
            self.session_event(event);
            return true;
        }
        self.flush();
        match self.transport.poll() {
            Some(event) => self.transport_event(event),
            None => return false,
        }
        true
    }

    /// Gives the octets of the session to the transport.
    pub(super) fn flush(&mut self) {
        while let Some((octets, end)) = self.session.take_output() {
            self.transport.send(octets, end);
        }
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    fn transport_event(&mut self, event: TransportEvent) {
        match event {
            TransportEvent::Data { octets, end } => self.session.receive(octets, end),
            TransportEvent::ConnectConfirm(_) => self.session.transport_connected(),
            TransportEvent::ConnectIndication(request) => self.transport_requested(&request),
            TransportEvent::Disconnected(error) => self.transport_ended(error),
        }
    }

    fn transport_requested(&mut self, request: &crate::transport::Connection) {
        let selectors = self
            .responder
            .as_ref()
            .map(|config| &config.transport_selectors);
        let called = request.called.clone().unwrap_or_default();
        match selectors {
            Some(known) if known.is_empty() || known.contains(&called) => {
                self.set_addresses(request);
                self.transport.accept();
            }
            _ => {
                self.transport.disconnect(DisconnectReason::AddressUnknown);
                self.close();
            }
        }
    }

    fn transport_ended(&mut self, error: TransportError) {
        match &self.phase {
            Phase::Opening(..) => self.reject_locally(error),
            Phase::Idle | Phase::Ended => {}
            _ if matches!(
                self.session.state(),
                SessionState::Sta16 | SessionState::Sta01
            ) => {}
            _ => self.end(AbortCause::Transport(error)),
        }
        self.session.transport_disconnected();
        while self.session.poll().is_some() {}
        self.close();
    }

    /// Tells the host once that the association has ended.
    pub(super) fn end(&mut self, cause: AbortCause) {
        let broken = self.broken();
        self.incoming = None;
        self.reader = None;
        self.outgoing = None;
        let told = std::mem::replace(&mut self.told, true);
        if !told && !matches!(self.phase, Phase::Idle) {
            self.tell(Event::Aborted(cause, broken));
        }
        self.paused = false;
        self.phase = Phase::Ended;
    }

    /// Ends the association as asked: nothing more is told.
    pub(super) fn finish(&mut self) {
        self.told = true;
        self.phase = Phase::Ended;
    }

    pub(super) const fn close(&mut self) {
        self.closing = true;
        self.paused = false;
    }

    fn session_event(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::ConnectIndication(connect) => self.requested(connect),
            SessionEvent::ConnectConfirm(accept) => self.confirmed(&accept),
            SessionEvent::Refused(refuse) => self.refused(refuse),
            SessionEvent::Data(octets, end) => self.data(octets, end),
            SessionEvent::TokenPlease(_, data) => self.turn_pleased(&data),
            SessionEvent::TokenGive(_) => self.protocol_error(),
            SessionEvent::ControlGive => self.turn_given(),
            SessionEvent::SyncMinor(serial, explicit) => self.checkpoint(serial, explicit),
            SessionEvent::SyncMinorConfirm(serial) => self.checkpoint_confirmed(serial),
            SessionEvent::ActivityStart(activity) => self.transfer_begins(activity),
            SessionEvent::ActivityResume(resume) => self.transfer_resumes(&resume),
            SessionEvent::ActivityEnd(_) => self.transfer_ended(),
            SessionEvent::ActivityEndConfirm => self.transferred(),
            SessionEvent::ActivityInterrupt(reason) => self.transfer_interrupted(reason),
            SessionEvent::ActivityInterruptConfirm => self.interrupt_confirmed(),
            SessionEvent::ActivityDiscard(reason) => self.transfer_discarded(reason),
            SessionEvent::ActivityDiscardConfirm => self.discard_confirmed(),
            SessionEvent::UserException(reason, _) => self.exception(reason),
            SessionEvent::ProviderException => {
                self.exception(crate::session::Exception::NonSpecific)
            }
            SessionEvent::Release(data) => self.release_indicated(&data),
            SessionEvent::ReleaseConfirm(_) => self.release_confirmed(),
            SessionEvent::UserAbort(data) => self.aborted(&data),
            SessionEvent::ProviderAbort(fault) => self.end(AbortCause::Session(fault)),
            SessionEvent::TransportDisconnect => {
                self.transport.disconnect(DisconnectReason::Normal);
                self.close();
            }
        }
    }

    /// The timer that the association wants now. A host starts each new timer, and calls
    /// [`expired`](Self::expired) at the end of the timer; the length is the host's policy.
    #[must_use]
    pub fn timer(&self) -> Option<Timer> {
        if self.closing {
            return None;
        }
        match (&self.phase, self.session.state()) {
            (_, SessionState::Sta16) => Some(Timer::Tim),
            (_, SessionState::Sta03) => Some(Timer::Release),
            (_, SessionState::Sta18) => Some(Timer::Turn),
            (Phase::Idle, _) if self.responder.is_some() => Some(Timer::Association),
            (Phase::Opening(..), _) => Some(Timer::Association),
            _ if self.transfer_waits() => Some(Timer::Transfer),
            _ => None,
        }
    }

    /// Whether a transfer waits for the peer, and not for the host.
    fn transfer_waits(&self) -> bool {
        let Phase::Open(agreement) = &self.phase else {
            return false;
        };
        let window = usize::try_from(agreement.window).unwrap_or(usize::MAX);
        let sent = |outgoing: &Outgoing| {
            outgoing.state() != OutgoingState::Sending || outgoing.room() == 0
        };
        let receives = |incoming: &Incoming| match incoming.state() {
            IncomingState::Ended => false,
            IncomingState::Receiving => incoming.unsecured() < window,
            _ => !self.paused,
        };
        self.outgoing.as_ref().is_some_and(sent) || self.incoming.as_ref().is_some_and(receives)
    }

    /// A timer has run out. The association is aborted, or closed after its end.
    pub fn expired(&mut self, timer: Timer) {
        if self.timer() != Some(timer) {
            return;
        }
        match timer {
            Timer::Tim => self.session.expired(SessionTimer::Tim),
            _ => {
                self.send_abort(&crate::rtse::Rtab::because(
                    crate::rtse::AbortReason::TemporaryProblem,
                ));
                self.end(AbortCause::Expired(timer));
                if self.is_unconnected() {
                    self.transport.disconnect(DisconnectReason::Normal);
                    self.close();
                }
            }
        }
    }

    /// Whether there is no session connection to end.
    fn is_unconnected(&self) -> bool {
        matches!(
            self.session.state(),
            SessionState::Sta01
                | SessionState::Sta01B
                | SessionState::Sta01C
                | SessionState::Sta01D
        )
    }
}

fn session_config(limits: &Limits, versions: u8) -> SessionConfig {
    SessionConfig {
        versions,
        spdu_max: limits.spdu_max,
        connect_user_data_max: limits.connect_user_data_max,
    }
}
