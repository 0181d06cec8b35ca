//! The phases of an association, and the agreement of both sides.

use bytes::Bytes;
use vere_ber::ObjectIdentifier;

use super::request::{Mode, OpenRequest};
use crate::presentation::{ContextDefinition, Contexts, Negotiation};
use crate::rtse::{Rtorq, SessionConnectionIdentifier};
use crate::session;

/// The agreement of both sides.
#[derive(Debug)]
pub(super) struct Agreement {
    pub(super) mode: Mode,
    pub(super) contexts: Contexts,
    /// The context of ACSE, and that of RTSE; 0 in X.410 mode.
    pub(super) acse: i64,
    pub(super) rtse: i64,
    pub(super) monologue: bool,
    /// Octets of a segment; 0 is no checkpoints.
    pub(super) segment: u64,
    pub(super) window: u32,
    pub(super) identifier: SessionConnectionIdentifier,
}

/// The phase of an association.
#[derive(Debug)]
pub(super) enum Phase {
    /// Before RT-OPEN.
    Idle,
    /// RT-OPEN was requested.
    Opening(Box<OpenRequest>, Vec<ContextDefinition>),
    /// RT-OPEN was indicated; the host has to answer.
    Indicated(Box<Indicated>),
    /// Open.
    Open(Box<Agreement>),
    /// Ended.
    Ended,
}

/// An association that the host has to accept or to reject.
#[derive(Debug)]
pub(super) struct Indicated {
    pub(super) mode: Mode,
    pub(super) negotiation: Negotiation,
    pub(super) acse: i64,
    pub(super) rtse: i64,
    pub(super) application_context: ObjectIdentifier,
    pub(super) rtorq: Rtorq,
    pub(super) identifier: SessionConnectionIdentifier,
    pub(super) session_identifier: session::ConnectionIdentifier,
    pub(super) called_session: Option<Bytes>,
}
