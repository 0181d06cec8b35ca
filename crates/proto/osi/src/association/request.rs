//! Requests of a host.

use bytes::Bytes;
use vere_ber::ObjectIdentifier;

use crate::acse::{Authentication, EntityTitle, UserDiagnostic};
use crate::names;
use crate::rtse::{
    Checkpoint, ConnectionData, DialogueMode, RefuseReason, SessionConnectionIdentifier,
};

/// The mode of presentation and RTSE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Normal mode, with ACSE.
    Normal,
    /// X.410-1984 mode, with the application protocol: 12 mts-transfer-protocol, 1 mts-transfer-protocol-1984 (X.419).
    X410(i64),
}

/// An application context and its abstract syntaxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The application context.
    pub application_context: ObjectIdentifier,
    /// The abstract syntax of RTSE with the bind of the application.
    pub rtse: ObjectIdentifier,
    /// The abstract syntaxes of the APDUs.
    pub apdus: Vec<ObjectIdentifier>,
}

impl Profile {
    /// Message transfer between MTAs: mts-transfer (X.419).
    #[must_use]
    pub fn mts_transfer() -> Self {
        Self {
            application_context: names::MTS_TRANSFER,
            rtse: names::MTA_RTSE,
            apdus: vec![names::MTSE],
        }
    }
}

/// The selectors of one side.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Addresses {
    /// The transport selector: up to 32 octets.
    pub transport: Option<Bytes>,
    /// The session selector: up to 16 octets.
    pub session: Option<Bytes>,
    /// The presentation selector: up to 32 octets. Not in X.410 mode.
    pub presentation: Option<Bytes>,
}

/// RT-OPEN request.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    /// The mode.
    pub mode: Mode,
    /// The protocol versions of the session that are offered. X.410 mode has version 1 only.
    pub session_versions: u8,
    /// The application context and its abstract syntaxes. Not in X.410 mode.
    pub profile: Profile,
    /// The calling selectors.
    pub calling: Addresses,
    /// The called selectors.
    pub called: Addresses,
    /// The calling entity. Not in X.410 mode.
    pub calling_title: EntityTitle,
    /// The called entity. Not in X.410 mode.
    pub called_title: EntityTitle,
    /// The credentials of the caller. Not in X.410 mode.
    pub authentication: Authentication,
    /// The name of the session connection: different for every connection of the caller.
    pub identifier: SessionConnectionIdentifier,
    /// Whether both sides may transfer.
    pub dialogue_mode: DialogueMode,
    /// Whether the responder has the turn at first.
    pub responder_has_turn: bool,
    /// The largest checkpoint size that is proposed, in units of 1,024 octets; 0 leaves the size to the responder.
    pub checkpoint_size: u32,
    /// The largest window that is proposed.
    pub window_size: u32,
    /// The user data, or the session connection to recover.
    pub data: ConnectionData,
}

impl OpenRequest {
    /// A request with these selectors and this name, in normal mode, two-way alternate, with checkpoints of 64 KiB and a
    /// window of 3.
    #[must_use]
    pub fn new(called: Addresses, identifier: SessionConnectionIdentifier) -> Self {
        Self {
            mode: Mode::Normal,
            session_versions: 3,
            profile: Profile::mts_transfer(),
            calling: Addresses::default(),
            called,
            calling_title: EntityTitle::default(),
            called_title: EntityTitle::default(),
            authentication: Authentication::default(),
            identifier,
            dialogue_mode: DialogueMode::TwoWayAlternate,
            responder_has_turn: false,
            checkpoint_size: 64,
            window_size: 3,
            data: ConnectionData::Open(None),
        }
    }
}

/// Properties of a responder: other calls are refused without a question to the host.
#[derive(Debug, Clone)]
pub struct ResponderConfig {
    /// The application context and its abstract syntaxes.
    pub profile: Profile,
    /// The protocol versions of the session that are accepted.
    pub session_versions: u8,
    /// The called transport selectors that exist; none accepts every selector.
    pub transport_selectors: Vec<Bytes>,
    /// The called session selectors that exist; none accepts every selector.
    pub session_selectors: Vec<Bytes>,
}

impl ResponderConfig {
    /// A responder for this profile at every selector.
    #[must_use]
    pub const fn new(profile: Profile) -> Self {
        Self {
            profile,
            session_versions: 3,
            transport_selectors: Vec::new(),
            session_selectors: Vec::new(),
        }
    }
}

/// RT-OPEN indication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenIndication {
    /// The mode.
    pub mode: Mode,
    /// The calling selectors.
    pub calling: Addresses,
    /// The called selectors.
    pub called: Addresses,
    /// The calling entity.
    pub calling_title: EntityTitle,
    /// The called entity.
    pub called_title: EntityTitle,
    /// The credentials of the caller.
    pub authentication: Authentication,
    /// The name of the session connection, if the caller gave one.
    pub identifier: Option<SessionConnectionIdentifier>,
    /// Whether both sides may transfer.
    pub dialogue_mode: DialogueMode,
    /// Whether this side has the turn at first.
    pub turn: bool,
    /// The checkpoint size that is proposed.
    pub checkpoint_size: u32,
    /// The window that is proposed.
    pub window_size: u32,
    /// The user data, or the session connection to recover.
    pub data: ConnectionData,
}

/// RT-OPEN response, accepted.
#[derive(Debug, Clone, Default)]
pub struct AcceptRequest {
    /// The responding presentation selector.
    pub presentation: Option<Bytes>,
    /// The responding entity.
    pub title: EntityTitle,
    /// The credentials of the responder.
    pub authentication: Authentication,
    /// The largest checkpoint size that is accepted, in units of 1,024 octets; 0 is no checkpoints.
    pub checkpoint_size: u32,
    /// The largest window that is accepted.
    pub window_size: u32,
    /// The user data. A recovered association has none.
    pub user_data: Option<Bytes>,
}

/// RT-OPEN response, rejected.
#[derive(Debug, Clone)]
pub struct RejectRequest {
    /// The reason, in X.410 mode.
    pub reason: RefuseReason,
    /// Whether the caller may try again later. In normal mode.
    pub transient: bool,
    /// The diagnostic, in normal mode.
    pub diagnostic: UserDiagnostic,
    /// The user data, in normal mode: one BER value.
    pub user_data: Option<Bytes>,
}

impl RejectRequest {
    /// A rejection for this reason, without user data.
    #[must_use]
    pub const fn because(reason: RefuseReason) -> Self {
        Self {
            reason,
            transient: matches!(reason, RefuseReason::RtsBusy),
            diagnostic: UserDiagnostic::NoReason,
            user_data: None,
        }
    }
}

/// The beginning of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferFrom {
    /// The number of the activity.
    pub activity: u32,
    /// The checkpoint behind which the host supplies octets.
    pub checkpoint: Checkpoint,
}
