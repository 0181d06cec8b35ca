//! SPDUs (X.225 clause 8.3).

use bytes::Bytes;

use super::Incoming;
use super::tokens::Tokens;

mod read;
mod write;

/// Bits of the session user requirements (PI 20).
pub mod requirement {
    /// Half-duplex.
    pub const HALF_DUPLEX: u16 = 0x0001;
    /// Minor synchronize.
    pub const MINOR_SYNCHRONIZE: u16 = 0x0008;
    /// Activity management.
    pub const ACTIVITY_MANAGEMENT: u16 = 0x0040;
    /// Exceptions.
    pub const EXCEPTIONS: u16 = 0x0200;
}

/// The requirements of RTSE (X.228): half-duplex, minor synchronize, activity management, exceptions.
pub const REQUIREMENTS: u16 = 0x0249;

/// Bits of the version number (PI 22).
pub mod version {
    /// Protocol version 1.
    pub const ONE: u8 = 0x01;
    /// Protocol version 2.
    pub const TWO: u8 = 0x02;
}

/// Bits of the transport disconnect item (PI 17).
pub mod disconnect {
    /// The transport connection is released.
    pub const RELEASED: u8 = 0x01;
    /// The user aborts.
    pub const USER_ABORT: u8 = 0x02;
    /// Protocol error.
    pub const PROTOCOL_ERROR: u8 = 0x04;
    /// No reason.
    pub const NO_REASON: u8 = 0x08;
}

/// The most octets of user data in PGI 193 of a CONNECT SPDU.
pub(super) const USER_DATA_MAX: usize = 512;

/// The session connection identifier (PGI 1): references that the users agree on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectionIdentifier {
    /// The reference of the calling or called SS-user: up to 64 octets.
    pub user: Option<Bytes>,
    /// The common reference: up to 64 octets.
    pub common: Option<Bytes>,
    /// Additional reference information: up to 4 octets.
    pub additional: Option<Bytes>,
}

/// The connect/accept item (PGI 5).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Item {
    /// Protocol options: bit 1 is the ability to receive extended concatenation.
    pub options: u8,
    /// The TSDU maximum sizes from initiator to responder and back; 0 has no limit.
    pub tsdu_maximum: (u16, u16),
    /// The versions proposed, or the version selected.
    pub versions: u8,
    /// The initial serial number.
    pub initial_serial: Option<u32>,
    /// Where the tokens are at first: two bits each, 0 initiator, 1 responder, 2 choice of the called user. ACCEPT may leave it
    /// out.
    pub token_setting: Option<u8>,
}

/// CONNECT.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Connect {
    /// The connection identifier.
    pub identifier: ConnectionIdentifier,
    /// The connect item.
    pub item: Item,
    /// The session user requirements.
    pub requirements: u16,
    /// The calling session selector.
    pub calling: Option<Bytes>,
    /// The called session selector.
    pub called: Option<Bytes>,
    /// Whether more than 10,240 octets of user data are to come in CONNECT DATA OVERFLOW SPDUs.
    pub overflow: bool,
    /// The user data.
    pub user_data: Bytes,
}

/// ACCEPT.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accept {
    /// The connection identifier.
    pub identifier: ConnectionIdentifier,
    /// The accept item.
    pub item: Item,
    /// Tokens that the responder asks for.
    pub please: Tokens,
    /// The session user requirements.
    pub requirements: u16,
    /// The responding session selector.
    pub responding: Option<Bytes>,
    /// The user data.
    pub user_data: Bytes,
}

/// Why a session connection was refused (PI 50 of REFUSE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefuseReason {
    /// By the called user, without a reason.
    User,
    /// By the called user, because of temporary congestion.
    UserCongestion,
    /// By the called user; the user data say more.
    UserData,
    /// The session selector is unknown.
    SelectorUnknown,
    /// No user is attached to the SSAP.
    NotAttached,
    /// The provider is congested.
    ProviderCongestion,
    /// The proposed versions are not supported.
    Version,
    /// By the provider, without a reason.
    Provider,
    /// By the provider, because of a restriction of the implementation.
    Restriction,
    /// Another reason.
    Other(u8),
}

impl RefuseReason {
    /// The octet on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::User => 0,
            Self::UserCongestion => 1,
            Self::UserData => 2,
            Self::SelectorUnknown => 129,
            Self::NotAttached => 130,
            Self::ProviderCongestion => 131,
            Self::Version => 132,
            Self::Provider => 133,
            Self::Restriction => 134,
            Self::Other(code) => code,
        }
    }

    /// The meaning of the octet.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::User,
            1 => Self::UserCongestion,
            2 => Self::UserData,
            129 => Self::SelectorUnknown,
            130 => Self::NotAttached,
            131 => Self::ProviderCongestion,
            132 => Self::Version,
            133 => Self::Provider,
            134 => Self::Restriction,
            other => Self::Other(other),
        }
    }
}

/// REFUSE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refuse {
    /// The connection identifier.
    pub identifier: ConnectionIdentifier,
    /// The transport disconnect item.
    pub disconnect: u8,
    /// The session user requirements.
    pub requirements: Option<u16>,
    /// The versions.
    pub versions: Option<u8>,
    /// The reason.
    pub reason: RefuseReason,
    /// The user data, with [`RefuseReason::UserData`] only.
    pub user_data: Bytes,
}

/// ABORT.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Abort {
    /// The transport disconnect item, see [`disconnect`].
    pub disconnect: u8,
    /// The beginning of what was wrong, up to nine octets.
    pub reflect: Bytes,
    /// The user data: up to nine octets in version 1.
    pub user_data: Bytes,
}

/// OVERFLOW ACCEPT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OverflowAccept {
    /// The TSDU maximum sizes.
    pub tsdu_maximum: (u16, u16),
    /// The version selected.
    pub versions: u8,
}

/// ACTIVITY RESUME: continues an activity of this session connection, or of an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActivityResume {
    /// The reference of the called SS-user in the old session connection.
    pub called: Option<Bytes>,
    /// The identifier of the old session connection, if it was another; its user reference is that of the calling SS-user.
    pub connection: ConnectionIdentifier,
    /// The old activity identifier.
    pub old_activity: Bytes,
    /// The serial number of the last synchronization point that was confirmed.
    pub serial: u32,
    /// The new activity identifier.
    pub activity: Bytes,
}

/// Which part of an SSDU a TSDU has (PI 25).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enclosure {
    /// The beginning.
    pub begin: bool,
    /// The end.
    pub end: bool,
}

impl Enclosure {
    /// The whole SSDU.
    pub const WHOLE: Self = Self {
        begin: true,
        end: true,
    };

    const fn item(self) -> u8 {
        (self.begin as u8) | ((self.end as u8) << 1)
    }
}

/// Reasons of exceptions, interrupted and discarded activities (X.225 clause 8.3.30).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exception {
    /// No specific reason.
    NonSpecific,
    /// The ability of the user to receive is in jeopardy.
    ReceivingAbilityJeopardized,
    /// The user has found a wrong sequence.
    UserSequenceError,
    /// A local error of the SS-user.
    LocalUserError,
    /// An unrecoverable procedural error.
    UnrecoverableProceduralError,
    /// The data token is demanded.
    DemandDataToken,
    /// Another reason.
    Other(u8),
}

impl Exception {
    /// The octet on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::NonSpecific => 0,
            Self::ReceivingAbilityJeopardized => 1,
            Self::UserSequenceError => 3,
            Self::LocalUserError => 5,
            Self::UnrecoverableProceduralError => 6,
            Self::DemandDataToken => 128,
            Self::Other(code) => code,
        }
    }

    /// The meaning of the octet.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::NonSpecific,
            1 => Self::ReceivingAbilityJeopardized,
            3 => Self::UserSequenceError,
            5 => Self::LocalUserError,
            6 => Self::UnrecoverableProceduralError,
            128 => Self::DemandDataToken,
            other => Self::Other(other),
        }
    }
}

/// An SPDU. User information of DATA TRANSFER follows it and is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spdu {
    /// CONNECT, SI 13.
    Connect(Connect),
    /// CONNECT DATA OVERFLOW, SI 15: further user data, and whether they end.
    ConnectDataOverflow(Bytes, bool),
    /// OVERFLOW ACCEPT, SI 16.
    OverflowAccept(OverflowAccept),
    /// ACCEPT, SI 14.
    Accept(Accept),
    /// REFUSE, SI 12.
    Refuse(Refuse),
    /// FINISH, SI 9: transport disconnect item and user data.
    Finish(u8, Bytes),
    /// DISCONNECT, SI 10: user data.
    Disconnect(Bytes),
    /// NOT FINISHED, SI 8: user data.
    NotFinished(Bytes),
    /// ABORT, SI 25.
    Abort(Abort),
    /// ABORT ACCEPT, SI 26.
    AbortAccept,
    /// DATA TRANSFER, SI 1.
    DataTransfer(Enclosure),
    /// GIVE TOKENS, SI 1. Without a token, it only stands before another SPDU.
    GiveTokens(Tokens),
    /// PLEASE TOKENS, SI 2: tokens and user data.
    PleaseTokens(Tokens, Bytes),
    /// GIVE TOKENS CONFIRM, SI 21: user data.
    GiveTokensConfirm(Bytes),
    /// GIVE TOKENS ACK, SI 22.
    GiveTokensAck,
    /// MINOR SYNC POINT, SI 49: serial number, and whether it is to be confirmed.
    MinorSyncPoint(u32, bool),
    /// MINOR SYNC ACK, SI 50: serial number.
    MinorSyncAck(u32),
    /// ACTIVITY START, SI 45: activity identifier.
    ActivityStart(Bytes),
    /// ACTIVITY RESUME, SI 29.
    ActivityResume(ActivityResume),
    /// ACTIVITY INTERRUPT, SI 25.
    ActivityInterrupt(Exception),
    /// ACTIVITY INTERRUPT ACK, SI 26.
    ActivityInterruptAck,
    /// ACTIVITY DISCARD, SI 57.
    ActivityDiscard(Exception),
    /// ACTIVITY DISCARD ACK, SI 58.
    ActivityDiscardAck,
    /// ACTIVITY END, SI 41: serial number.
    ActivityEnd(u32),
    /// ACTIVITY END ACK, SI 42: serial number.
    ActivityEndAck(u32),
    /// EXCEPTION REPORT, SI 0.
    ExceptionReport(Bytes),
    /// EXCEPTION DATA, SI 48: reason and user data.
    ExceptionData(Exception, Bytes),
}

impl Spdu {
    /// The kind, as X.225 abbreviates it.
    #[must_use]
    pub const fn kind(&self) -> Incoming {
        match self {
            Self::Connect(_) => Incoming::CN,
            Self::ConnectDataOverflow(..) => Incoming::CDO,
            Self::OverflowAccept(_) => Incoming::OA,
            Self::Accept(_) => Incoming::AC,
            Self::Refuse(_) => Incoming::RF,
            Self::Finish(..) => Incoming::FN,
            Self::Disconnect(_) => Incoming::DN,
            Self::NotFinished(_) => Incoming::NF,
            Self::Abort(_) => Incoming::AB,
            Self::AbortAccept => Incoming::AA,
            Self::DataTransfer(_) => Incoming::DT,
            Self::GiveTokens(_) => Incoming::GT,
            Self::PleaseTokens(..) => Incoming::PT,
            Self::GiveTokensConfirm(_) => Incoming::GTC,
            Self::GiveTokensAck => Incoming::GTA,
            Self::MinorSyncPoint(..) => Incoming::MIP,
            Self::MinorSyncAck(_) => Incoming::MIA,
            Self::ActivityStart(_) => Incoming::AS,
            Self::ActivityResume(_) => Incoming::AR,
            Self::ActivityInterrupt(_) => Incoming::AI,
            Self::ActivityInterruptAck => Incoming::AIA,
            Self::ActivityDiscard(_) => Incoming::AD,
            Self::ActivityDiscardAck => Incoming::ADA,
            Self::ActivityEnd(_) => Incoming::AE,
            Self::ActivityEndAck(_) => Incoming::AEA,
            Self::ExceptionReport(_) => Incoming::ER,
            Self::ExceptionData(..) => Incoming::ED,
        }
    }

    /// The length of an SPDU without user information, header included, of its first octets. `None` for fewer than
    /// these.
    #[must_use]
    pub fn length(octets: &[u8]) -> Option<usize> {
        match *octets {
            [_, 255, high, low, ..] => {
                Some(usize::from(u16::from_be_bytes([high, low])).saturating_add(4))
            }
            [_, length, ..] if length != 255 => Some(usize::from(length).saturating_add(2)),
            _ => None,
        }
    }
}
