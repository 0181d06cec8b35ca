//! Opens associations.

use std::net::SocketAddr;

use bytes::Bytes;
use vere_ber::Ia5String;
use vere_net::connect::{ConnectError, ConnectOptions, connect};
use vere_net::tls::ClientTls;
use vere_osi::Limits;
use vere_osi::acse::Diagnostic;
use vere_osi::association::{
    Addresses, Association, Event, Mode, OpenRequest, Opened, Rejected, Rejection,
};
use vere_osi::presentation::RejectReason;
use vere_osi::rtse::{ConnectionData, DialogueMode, RefuseReason, SessionConnectionIdentifier};
use vere_osi::session::RefuseReason as SessionRefusal;
use vere_osi::transport::TransportError;
use vere_units::Secret;
use vere_x400::{
    BindForm, Credentials, MtaBindArgument, MtaBindError, MtaBindResult, MtaInitiator, Password,
};

use crate::bounds::Bounds;
use crate::driver::{Driver, Feed, Happening, Stream};
use crate::end::End;
use crate::open::{Facts, OpenAssociation, Remote};

/// A peer, as its caller knows it.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The addresses, tried in this order.
    pub addresses: Vec<SocketAddr>,
    /// TLS from the first octet, with the name that the certificate must have.
    pub tls: Option<(ClientTls, String)>,
    /// The mode: normal, or X.410 with application protocol 12 or 1.
    pub mode: Mode,
    /// Selectors of this side.
    pub calling: Addresses,
    /// Selectors of the peer.
    pub called: Addresses,
    /// The introduction of this side.
    pub bind: MtaBindArgument,
    /// The introduction that the peer must answer with; none takes every answer, for a host that looks itself.
    pub expected: Option<Expected>,
    /// Whether the peer may transfer over the association.
    pub dialogue_mode: DialogueMode,
    /// The largest checkpoint size, in units of 1,024 octets; 0 leaves it to the peer.
    pub checkpoint_size: u32,
    /// The largest window.
    pub window_size: u32,
    /// The session versions that are offered: 1, 2, or 3 for both.
    pub session_versions: u8,
    /// Bounds of the machine.
    pub limits: Limits,
    /// Bounds of the waits.
    pub bounds: Bounds,
}

impl Peer {
    /// A peer at these addresses, in normal mode, two-way alternate, with checkpoints of 64 KiB and a window of 3.
    #[must_use]
    pub fn new(addresses: Vec<SocketAddr>, bind: MtaBindArgument) -> Self {
        Self {
            addresses,
            tls: None,
            mode: Mode::Normal,
            calling: Addresses::default(),
            called: Addresses::default(),
            bind,
            expected: None,
            dialogue_mode: DialogueMode::TwoWayAlternate,
            checkpoint_size: 64,
            window_size: 3,
            session_versions: 3,
            limits: Limits::default(),
            bounds: Bounds::default(),
        }
    }

    fn request(&self, session: SessionConnectionIdentifier) -> OpenRequest {
        let bind = self.bind.encode(form(self.mode));
        OpenRequest {
            mode: self.mode,
            session_versions: self.session_versions,
            calling: self.calling.clone(),
            dialogue_mode: self.dialogue_mode,
            checkpoint_size: self.checkpoint_size,
            window_size: self.window_size,
            data: ConnectionData::Open(Some(bind)),
            ..OpenRequest::new(self.called.clone(), session)
        }
    }
}

/// The introduction that a peer must answer with.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The name of the peer.
    pub name: String,
    /// The password of the peer, if it has one.
    pub password: Option<Secret<Bytes>>,
}

impl Expected {
    fn is(&self, result: &MtaBindResult) -> bool {
        let MtaBindResult::Authenticated(responder) = result else {
            return false;
        };
        let given = &responder.responder_credentials;
        let fits = |password: &Secret<Bytes>| matches!(given, Credentials::Simple(given) if given.is(password.expose()));
        responder.responder_name.text() == self.name.as_str()
            && self.password.as_ref().is_none_or(fits)
    }
}

/// The form of binds in this mode.
pub(crate) const fn form(mode: Mode) -> BindForm {
    match mode {
        Mode::Normal => BindForm::Tagged,
        Mode::X410(_) => BindForm::Plain,
    }
}

/// The introduction of an MTA with a name and a password, for [`Peer::bind`].
///
/// # Errors
///
/// For a name that is no IA5 text.
pub fn introduction(name: &str, password: &[u8]) -> Result<MtaBindArgument, vere_ber::StringError> {
    Ok(MtaBindArgument::Authenticated(MtaInitiator {
        initiator_name: Ia5String::new(name)?,
        initiator_credentials: Credentials::Simple(Password::ia5(password)),
        ..MtaInitiator::default()
    }))
}

/// Why an address did not lead to an association.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No TCP connection.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// No TLS connection.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// Refused by the transport.
    #[error("refused by the transport: {0}")]
    Transport(TransportError),
    /// Refused by the session.
    #[error("refused by the session: {0:?}")]
    Session(SessionRefusal),
    /// Rejected by the presentation.
    #[error("rejected by the presentation: {0:?}")]
    Presentation(RejectReason),
    /// Rejected by the association control, without a reason of the MTA.
    #[error("rejected by the association control: {0:?}")]
    Association(Diagnostic, bool),
    /// Refused by the reliable transfer, in X.410 mode.
    #[error("refused by the reliable transfer: {0:?}")]
    ReliableTransfer(RefuseReason),
    /// Refused by the MTA.
    #[error("bind refused: {}", .0.name().unwrap_or("unknown reason"))]
    Bind(MtaBindError),
    /// The answer of the MTA has wrong octets.
    #[error("expected an MTABind result; found other octets")]
    Result,
    /// The introduction of the MTA is not the expected one.
    #[error("the peer answers with another name or password than expected")]
    Unexpected,
    /// The association ended before it was open.
    #[error(transparent)]
    Ended(#[from] End),
}

impl Refusal {
    /// Whether another address of the same peer may answer otherwise: the MTA of the peer has not spoken.
    #[must_use]
    pub const fn concerns_address(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_)
                | Self::Tls(_)
                | Self::Transport(_)
                | Self::Session(_)
                | Self::Unexpected
                | Self::Ended(_)
        )
    }

    /// Whether the same attempt may succeed later without a change of settings.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Tls(_) | Self::Transport(_) | Self::Ended(_) => true,
            Self::Session(reason) => !matches!(
                reason,
                SessionRefusal::SelectorUnknown | SessionRefusal::Version
            ),
            Self::Presentation(reason) => matches!(reason, RejectReason::TemporaryCongestion),
            Self::Association(_, transient) => *transient,
            Self::ReliableTransfer(reason) => matches!(reason, RefuseReason::RtsBusy),
            Self::Bind(error) => matches!(error, MtaBindError::Busy),
            Self::Result | Self::Unexpected => false,
        }
    }
}

/// No association: the refusal of each address that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenError {
    /// Address and refusal, in order; empty for a peer without addresses.
    pub attempts: Vec<(SocketAddr, Refusal)>,
}

impl OpenError {
    /// The last refusal, which ended the attempts.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        self.attempts.last().map(|(_, refusal)| refusal)
    }
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.attempts.is_empty() {
            return f.write_str("no address to connect to");
        }
        for (place, (address, refusal)) in self.attempts.iter().enumerate() {
            let separator = if place == 0 { "" } else { "; " };
            write!(f, "{separator}{address}: {refusal}")?;
        }
        Ok(())
    }
}

impl std::error::Error for OpenError {}

/// Opens an association with a peer, and gives it with the peer's introduction. Addresses are tried in order; an answer of the
/// peer's MTA ends the attempts. The name of the session connection must be new.
///
/// # Errors
///
/// [`OpenError`] with the refusal of each address.
pub async fn initiate(
    peer: &Peer,
    session: SessionConnectionIdentifier,
) -> Result<(OpenAssociation, MtaBindResult), OpenError> {
    let mut attempts = Vec::new();
    for address in &peer.addresses {
        match initiate_at(peer, *address, session.clone()).await {
            Ok(open) => return Ok(open),
            Err(refusal) => {
                let last = !refusal.concerns_address();
                attempts.push((*address, refusal));
                if last {
                    break;
                }
            }
        }
    }
    Err(OpenError { attempts })
}

async fn initiate_at(
    peer: &Peer,
    address: SocketAddr,
    session: SessionConnectionIdentifier,
) -> Result<(OpenAssociation, MtaBindResult), Refusal> {
    let options = ConnectOptions {
        timeout: peer.bounds.connect,
        in_order: true,
        ..ConnectOptions::default()
    };
    let unreachable = |error: ConnectError| Refusal::Unreachable(error.to_string());
    let stream = connect(&[address], &options).await.map_err(unreachable)?;
    let (stream, tls): (Box<dyn Stream>, _) = match &peer.tls {
        None => (Box::new(stream), None),
        Some((client, name)) => {
            let secured = client.connect(name, stream).await;
            let (stream, info) = secured.map_err(|error| Refusal::Tls(error.to_string()))?;
            (Box::new(stream), Some(info))
        }
    };
    open_over(peer, stream, Remote { address, tls }, session).await
}

/// As [`initiate`], over a connection that exists.
///
/// # Errors
///
/// [`Refusal`]
pub async fn open_over(
    peer: &Peer,
    stream: Box<dyn Stream>,
    remote: Remote,
    session: SessionConnectionIdentifier,
) -> Result<(OpenAssociation, MtaBindResult), Refusal> {
    let mut machine = Association::initiator(peer.limits.clone());
    let opened = machine.open(peer.request(session.clone()));
    opened.map_err(|error| Refusal::Ended(error.into()))?;
    let mut driver = Driver::new(stream, machine, peer.bounds.clone());
    let opened = match opened_by(&mut driver).await {
        Ok(opened) => opened,
        Err(refusal) => {
            driver.finish().await;
            return Err(refusal);
        }
    };
    let Some(result) = bind_result(opened.user_data.as_ref()) else {
        driver.machine.abort(None);
        driver.finish().await;
        return Err(Refusal::Result);
    };
    if peer
        .expected
        .as_ref()
        .is_some_and(|expected| !expected.is(&result))
    {
        driver.machine.abort(None);
        driver.finish().await;
        return Err(Refusal::Unexpected);
    }
    let facts = Facts {
        remote,
        mode: peer.mode,
        session: Some(session),
    };
    Ok((OpenAssociation::new(driver, facts), result))
}

async fn opened_by(driver: &mut Driver) -> Result<Box<Opened>, Refusal> {
    loop {
        match driver.next(&mut Feed::new()).await {
            Happening::Event(Event::Opened(opened)) => return Ok(opened),
            Happening::Event(Event::Rejected(rejected)) => return Err(refusal(driver, rejected)),
            Happening::Event(Event::Aborted(cause, _)) => {
                return Err(driver.end(Some(cause)).into());
            }
            Happening::Closed => return Err(End::Closed.into()),
            Happening::Event(_) | Happening::Late => {}
        }
    }
}

fn refusal(driver: &Driver, rejected: Rejected) -> Refusal {
    let said = rejected.user_data.as_ref();
    if let Some((error, _)) = said.and_then(|data| MtaBindError::decode(data).ok()) {
        return Refusal::Bind(error);
    }
    match rejected.by {
        Rejection::Transport(TransportError::Network) => Refusal::Ended(driver.end(None)),
        Rejection::Transport(error) => Refusal::Transport(error),
        Rejection::Session(reason) => Refusal::Session(reason),
        Rejection::Presentation(reason) => Refusal::Presentation(reason),
        Rejection::ReliableTransfer(RefuseReason::ValidationFailure) => {
            Refusal::Bind(MtaBindError::AuthenticationError)
        }
        Rejection::ReliableTransfer(RefuseReason::RtsBusy) => Refusal::Bind(MtaBindError::Busy),
        Rejection::ReliableTransfer(RefuseReason::UnacceptableDialogueMode) => {
            Refusal::Bind(MtaBindError::UnacceptableDialogueMode)
        }
        Rejection::ReliableTransfer(reason) => Refusal::ReliableTransfer(reason),
        Rejection::Association(diagnostic) => Refusal::Association(diagnostic, rejected.transient),
        _ => Refusal::Result,
    }
}

/// The introduction of the peer. Without one the peer is not authenticated.
fn bind_result(user_data: Option<&Bytes>) -> Option<MtaBindResult> {
    match user_data {
        None => Some(MtaBindResult::default()),
        Some(data) => MtaBindResult::decode(data).ok().map(|(result, _)| result),
    }
}
