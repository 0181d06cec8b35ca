//! Events of an association, and other tasks of a host.

use bytes::Bytes;
use vere_ber::Pieces;

use super::request::OpenIndication;
use crate::acse::{Authentication, Diagnostic, EntityTitle};
use crate::presentation;
use crate::rtse::{AbortReason, Broken, Checkpoint, RefuseReason, SessionConnectionIdentifier};
use crate::session::{Exception, Fault, RefuseReason as SessionRefusal};
use crate::transport::TransportError;

/// A task of the host.
#[derive(Debug)]
pub enum Output {
    /// Write these octets, in order.
    Write(Pieces),
    /// An event.
    Event(Event),
    /// Close the TCP connection. Nothing follows.
    Close,
}

/// A timer, named by its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Timer {
    /// The association is being opened.
    Association,
    /// A transfer waits for the peer: for octets, for confirmations.
    Transfer,
    /// The turn was given, and the peer has not begun to use the turn.
    Turn,
    /// The association is being released.
    Release,
    /// The session has ended, and the peer has not closed the connection: TIM of X.225.
    Tim,
}

/// An event of an association.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// RT-OPEN indication. The host answers with `accept` or `reject`.
    OpenIndication(Box<OpenIndication>),
    /// RT-OPEN confirm: the association is open.
    Opened(Box<Opened>),
    /// RT-OPEN confirm: the association was rejected.
    Rejected(Rejected),
    /// A transfer of the peer begins. The octets are the activity identifier.
    TransferBegins(Bytes),
    /// The peer wants to continue a transfer. The host answers with `continue_from`, `already_received` or
    /// `refuse_transfer`; nothing happens until then.
    ResumeIndication(ResumeIndication),
    /// Octets of the APDU that is received.
    Apdu(Bytes),
    /// A checkpoint of the APDU on its way to here. The host calls `secured` after storing the octets before the checkpoint.
    Checkpoint(Checkpoint),
    /// RT-TRANSFER indication: the APDU is complete, with this many octets. The host calls `confirm` after storing the APDU.
    Received(u64),
    /// The APDU of `already_received` was confirmed once more.
    Reconfirmed(Bytes),
    /// The peer interrupts the transfer, and may resume the transfer behind the checkpoint.
    TransferInterrupted(Checkpoint, Exception),
    /// The peer discards the transfer. The received octets are void.
    TransferDiscarded(Exception),
    /// The peer has confirmed a checkpoint. A host that resumes after its own end keeps the value.
    CheckpointConfirmed(Broken),
    /// RT-TRANSFER confirm: the peer is responsible for the APDU of this activity.
    Transferred(u32),
    /// The transfer has ended and the peer is not responsible; the value is present for a transfer that can be resumed.
    NotTransferred(Option<Broken>),
    /// The peer reports an exception. The transfer is being interrupted or discarded; `NotTransferred` follows.
    Exception(Exception),
    /// RT-TURN-PLEASE indication, with the priority.
    TurnPlease(u32),
    /// RT-TURN-GIVE indication: this side has the turn.
    TurnGiven,
    /// RT-CLOSE indication. The host answers with `accept_release`.
    ReleaseIndication,
    /// RT-CLOSE confirm.
    Released,
    /// The association has ended, with what was left of a transfer of this side.
    Aborted(AbortCause, Option<Broken>),
}

/// RT-OPEN confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Whether this side has the turn.
    pub turn: bool,
    /// The checkpoint size that was agreed on, in units of 1,024 octets.
    pub checkpoint_size: u32,
    /// The window that was agreed on.
    pub window_size: u32,
    /// The responding entity.
    pub title: EntityTitle,
    /// The credentials of the responder.
    pub authentication: Authentication,
    /// Whether an association was recovered.
    pub recovered: bool,
    /// The user data.
    pub user_data: Option<Bytes>,
}

/// An association was not opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The layer of the rejection, and the reason.
    pub by: Rejection,
    /// Whether another attempt may succeed later.
    pub transient: bool,
    /// The user data of the responder.
    pub user_data: Option<Bytes>,
}

/// The layer that has rejected an association, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// The transport.
    Transport(TransportError),
    /// The session provider.
    Session(SessionRefusal),
    /// The presentation provider.
    Presentation(presentation::RejectReason),
    /// The application entity, in normal mode.
    Association(Diagnostic),
    /// The reliable transfer server, in X.410 mode.
    ReliableTransfer(RefuseReason),
}

/// RT-TRANSFER of an activity that was broken off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeIndication {
    /// The session connection of the activity, if different from the present connection.
    pub session: Option<SessionConnectionIdentifier>,
    /// The identifier that the activity had.
    pub old_activity: Bytes,
    /// The identifier of the activity from now on.
    pub activity: Bytes,
    /// The serial number of the checkpoint behind which the peer continues; 0 is the beginning.
    pub checkpoint: u32,
}

/// The cause of the end of an association.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AbortCause {
    /// The user of the peer, with its user data.
    User(Option<Bytes>),
    /// The reliable transfer server of the peer.
    ReliableTransfer(AbortReason),
    /// The association control of the peer.
    Association,
    /// The presentation of the peer, with its reason.
    Presentation(Option<i64>),
    /// The session, here or there.
    Session(Fault),
    /// The transport.
    Transport(TransportError),
    /// This side, because of what the peer sent.
    Ours(AbortReason),
    /// This side, by its host.
    Requested,
    /// This side, because a timer expired.
    Expired(Timer),
}
