//! SPDUs (X.225 clause 8.3).

use bytes::{BufMut, Bytes, BytesMut};

use super::Incoming;
use super::parameters::{Parameters, SpduError, Writer, code, put_length};
use super::tokens::Tokens;

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
/// What a CONNECT or ACCEPT SPDU without PI 20 asks for: the above and capability data (X.225 clause 8.3.1.18).
const REQUIREMENTS_DEFAULT: u16 = 0x0349;

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

/// The most octets of a session selector.
const SELECTOR_MAX: usize = 16;
/// The most octets of a reference in a connection identifier.
const REFERENCE_MAX: usize = 64;
/// The most octets of an activity identifier.
const ACTIVITY_MAX: usize = 6;
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
    /// Where the tokens are at first: two bits each, 0 initiator, 1 responder, 2 choice of the called user.
    pub token_setting: u8,
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

    /// Reads an SPDU: as many octets as [`length`](Self::length) says.
    ///
    /// Identifiers have two meanings: `second` says that the SPDU stands behind GIVE TOKENS or PLEASE TOKENS.
    ///
    /// # Errors
    ///
    /// [`SpduError`] for octets that are no SPDU.
    pub fn read(octets: &Bytes, second: bool) -> Result<Self, SpduError> {
        let Some((&identifier, _)) = octets.split_first() else {
            return Err(SpduError::Length);
        };
        let header = if octets.get(1) == Some(&255) { 4 } else { 2 };
        if octets.len() < header {
            return Err(SpduError::Length);
        }
        let parameters = Parameters::read(&octets.slice(header..))?;
        match second {
            true => read_second(identifier, &parameters),
            false => read_first(identifier, &parameters),
        }
    }

    /// Writes the SPDU, and the token SPDU before one of category 2: GIVE TOKENS before what the owner of the tokens
    /// sends, PLEASE TOKENS before its answers (X.225 clause 6.3.7).
    #[must_use]
    pub fn write(&self) -> Bytes {
        let mut octets = BytesMut::new();
        match self.kind() {
            Incoming::MIA
            | Incoming::AIA
            | Incoming::ADA
            | Incoming::AEA
            | Incoming::ED
            | Incoming::ER => {
                octets.put_slice(&[2, 0]);
            }
            kind if kind.category() == 2 => octets.put_slice(&[1, 0]),
            _ => {}
        }
        let mut writer = Writer::default();
        let identifier = self.parameters(&mut writer);
        let mut length = Vec::with_capacity(3);
        put_length(&mut length, writer.0.len());
        octets.put_u8(identifier);
        octets.put_slice(&length);
        octets.put_slice(&writer.0);
        octets.freeze()
    }

    /// Writes the parameters and gives the identifier.
    fn parameters(&self, to: &mut Writer) -> u8 {
        match self {
            Self::Connect(connect) => put_connect(to, connect),
            Self::ConnectDataOverflow(data, end) => {
                to.put(code::ENCLOSURE, &[u8::from(*end) << 1]);
                to.put_user_data(code::USER_DATA, data);
                15
            }
            Self::OverflowAccept(accept) => {
                put_tsdu_maximum(to, accept.tsdu_maximum);
                to.put(code::VERSION, &[accept.versions]);
                16
            }
            Self::Accept(accept) => put_accept(to, accept),
            Self::Refuse(refuse) => put_refuse(to, refuse),
            Self::Finish(disconnect, data) => {
                to.put(code::TRANSPORT_DISCONNECT, &[*disconnect]);
                to.put_user_data(code::USER_DATA, data);
                9
            }
            Self::Disconnect(data) => {
                to.put_user_data(code::USER_DATA, data);
                10
            }
            Self::NotFinished(data) => {
                to.put_user_data(code::USER_DATA, data);
                8
            }
            Self::Abort(abort) => {
                to.put(code::TRANSPORT_DISCONNECT, &[abort.disconnect]);
                to.put_user_data(code::REFLECT, &abort.reflect);
                to.put_user_data(code::USER_DATA, &abort.user_data);
                25
            }
            Self::AbortAccept | Self::ActivityInterruptAck => 26,
            _ => self.connected_parameters(to),
        }
    }

    /// The same, of SPDUs of an established connection.
    fn connected_parameters(&self, to: &mut Writer) -> u8 {
        match self {
            Self::DataTransfer(enclosure) => {
                if *enclosure != Enclosure::WHOLE {
                    to.put(code::ENCLOSURE, &[enclosure.item()]);
                }
                1
            }
            Self::GiveTokens(tokens) => {
                put_tokens(to, *tokens);
                1
            }
            Self::PleaseTokens(tokens, data) => {
                put_tokens(to, *tokens);
                to.put_user_data(code::USER_DATA, data);
                2
            }
            Self::GiveTokensConfirm(data) => {
                to.put_user_data(code::USER_DATA, data);
                21
            }
            Self::GiveTokensAck => 22,
            Self::MinorSyncPoint(serial, explicit) => {
                if !explicit {
                    to.put(code::SYNC_TYPE, &[1]);
                }
                to.put_serial(code::SERIAL, *serial);
                49
            }
            Self::MinorSyncAck(serial) => {
                to.put_serial(code::SERIAL, *serial);
                50
            }
            Self::ActivityEnd(serial) => {
                to.put_serial(code::SERIAL, *serial);
                41
            }
            Self::ActivityEndAck(serial) => {
                to.put_serial(code::SERIAL, *serial);
                42
            }
            _ => self.activity_parameters(to),
        }
    }

    /// The same, of activities and exceptions.
    fn activity_parameters(&self, to: &mut Writer) -> u8 {
        match self {
            Self::ActivityStart(activity) => {
                to.put(code::ACTIVITY, activity);
                45
            }
            Self::ActivityResume(resume) => put_resume(to, resume),
            Self::ActivityInterrupt(reason) => {
                to.put(code::REASON, &[reason.code()]);
                25
            }
            Self::ActivityDiscard(reason) => {
                to.put(code::REASON, &[reason.code()]);
                57
            }
            Self::ActivityDiscardAck => 58,
            Self::ExceptionData(reason, data) => {
                to.put(code::REASON, &[reason.code()]);
                to.put_user_data(code::USER_DATA, data);
                48
            }
            Self::ExceptionReport(reflect) => {
                to.put_user_data(code::REFLECT, reflect);
                0
            }
            // Every other SPDU has been written.
            _ => 0,
        }
    }
}

fn put_tokens(to: &mut Writer, tokens: Tokens) {
    if !tokens.is_none() {
        to.put(code::TOKEN_ITEM, &[tokens.item()]);
    }
}

fn put_tsdu_maximum(to: &mut Writer, (to_responder, to_initiator): (u16, u16)) {
    if (to_responder, to_initiator) != (0, 0) {
        let sizes = (u32::from(to_responder) << 16) | u32::from(to_initiator);
        to.put(code::TSDU_MAXIMUM, &sizes.to_be_bytes());
    }
}

fn put_identifier(to: &mut Writer, reference: u8, identifier: &ConnectionIdentifier) {
    let mut group = Writer::default();
    group.put_some(reference, identifier.user.as_deref());
    group.put_some(code::COMMON_REFERENCE, identifier.common.as_deref());
    group.put_some(code::ADDITIONAL_REFERENCE, identifier.additional.as_deref());
    to.put_group(code::CONNECTION_IDENTIFIER, &group);
}

fn put_item(to: &mut Writer, item: &Item) {
    let mut group = Writer::default();
    group.put(code::PROTOCOL_OPTIONS, &[item.options]);
    put_tsdu_maximum(&mut group, item.tsdu_maximum);
    group.put(code::VERSION, &[item.versions]);
    if let Some(serial) = item.initial_serial {
        group.put_serial(code::INITIAL_SERIAL, serial);
    }
    group.put(code::TOKEN_SETTING, &[item.token_setting]);
    to.put_group(code::CONNECT_ACCEPT_ITEM, &group);
}

fn put_connect(to: &mut Writer, connect: &Connect) -> u8 {
    put_identifier(to, code::CALLING_REFERENCE, &connect.identifier);
    put_item(to, &connect.item);
    to.put(code::USER_REQUIREMENTS, &connect.requirements.to_be_bytes());
    to.put_some(code::CALLING_SELECTOR, connect.calling.as_deref());
    to.put_some(code::CALLED_SELECTOR, connect.called.as_deref());
    if connect.overflow {
        to.put(code::DATA_OVERFLOW, &[1]);
    }
    match connect.user_data.len() {
        0..=USER_DATA_MAX => to.put_user_data(code::USER_DATA, &connect.user_data),
        _ => to.put(code::EXTENDED_USER_DATA, &connect.user_data),
    }
    13
}

fn put_accept(to: &mut Writer, accept: &Accept) -> u8 {
    put_identifier(to, code::CALLED_REFERENCE, &accept.identifier);
    put_item(to, &accept.item);
    put_tokens(to, accept.please);
    to.put(code::USER_REQUIREMENTS, &accept.requirements.to_be_bytes());
    to.put_some(code::CALLED_SELECTOR, accept.responding.as_deref());
    to.put_user_data(code::USER_DATA, &accept.user_data);
    14
}

fn put_refuse(to: &mut Writer, refuse: &Refuse) -> u8 {
    put_identifier(to, code::CALLED_REFERENCE, &refuse.identifier);
    to.put(code::TRANSPORT_DISCONNECT, &[refuse.disconnect]);
    if let Some(requirements) = refuse.requirements {
        to.put(code::USER_REQUIREMENTS, &requirements.to_be_bytes());
    }
    if let Some(versions) = refuse.versions {
        to.put(code::VERSION, &[versions]);
    }
    let mut reason = vec![refuse.reason.code()];
    reason.extend_from_slice(&refuse.user_data);
    to.put(code::REASON, &reason);
    12
}

fn put_resume(to: &mut Writer, resume: &ActivityResume) -> u8 {
    let mut linking = Writer::default();
    linking.put_some(code::CALLED_REFERENCE, resume.called.as_deref());
    let old = &resume.connection;
    linking.put_some(code::CALLING_REFERENCE, old.user.as_deref());
    linking.put_some(code::COMMON_REFERENCE, old.common.as_deref());
    linking.put_some(code::ADDITIONAL_REFERENCE, old.additional.as_deref());
    linking.put(code::ACTIVITY, &resume.old_activity);
    linking.put_serial(code::SERIAL, resume.serial);
    to.put_group(code::LINKING, &linking);
    to.put(code::ACTIVITY, &resume.activity);
    29
}

/// SPDUs that begin a TSDU: categories 0 and 1.
fn read_first(identifier: u8, from: &Parameters) -> Result<Spdu, SpduError> {
    let data = || from.user_data();
    let tokens = || {
        Ok(Tokens::from_item(
            from.octet(0, code::TOKEN_ITEM)?.unwrap_or(0),
        ))
    };
    Ok(match identifier {
        1 => Spdu::GiveTokens(tokens()?),
        2 => Spdu::PleaseTokens(tokens()?, data()),
        8 => Spdu::NotFinished(data()),
        9 => Spdu::Finish(read_disconnect(from)?, data()),
        10 => Spdu::Disconnect(data()),
        12 => Spdu::Refuse(read_refuse(from)?),
        13 => Spdu::Connect(read_connect(from)?),
        14 => Spdu::Accept(read_accept(from)?),
        15 => {
            let enclosure = from.octet(0, code::ENCLOSURE)?;
            Spdu::ConnectDataOverflow(data(), enclosure.is_none_or(|item| item & 2 != 0))
        }
        16 => Spdu::OverflowAccept(OverflowAccept {
            tsdu_maximum: read_tsdu_maximum(from)?,
            versions: from.octet(0, code::VERSION)?.unwrap_or(version::TWO),
        }),
        21 => Spdu::GiveTokensConfirm(data()),
        22 => Spdu::GiveTokensAck,
        25 => Spdu::Abort(Abort {
            disconnect: read_disconnect(from)?,
            reflect: from.octets(0, code::REFLECT, 9)?.unwrap_or_default(),
            user_data: data(),
        }),
        26 => Spdu::AbortAccept,
        other => return Err(SpduError::Identifier(other)),
    })
}

/// SPDUs behind GIVE TOKENS or PLEASE TOKENS: category 2.
fn read_second(identifier: u8, from: &Parameters) -> Result<Spdu, SpduError> {
    let missing = |what| move || SpduError::Missing(what);
    let serial = || {
        from.serial(0, code::SERIAL)?
            .ok_or_else(missing(code::SERIAL))
    };
    let activity = || {
        from.octets(0, code::ACTIVITY, ACTIVITY_MAX)?
            .ok_or_else(missing(code::ACTIVITY))
    };
    let reason = || {
        let code = from.octet(0, code::REASON)?;
        Ok(code.map_or(Exception::NonSpecific, Exception::from_code))
    };
    Ok(match identifier {
        0 => Spdu::ExceptionReport(
            from.octets(0, code::REFLECT, usize::MAX)?
                .unwrap_or_default(),
        ),
        1 => Spdu::DataTransfer(read_enclosure(from)?),
        25 => Spdu::ActivityInterrupt(reason()?),
        26 => Spdu::ActivityInterruptAck,
        29 => Spdu::ActivityResume(read_resume(from, activity()?)?),
        // A sync type item makes it MAJOR SYNC POINT, whose functional unit is not supported.
        41 if from.octet(0, code::SYNC_TYPE)?.is_none() => Spdu::ActivityEnd(serial()?),
        42 => Spdu::ActivityEndAck(serial()?),
        45 => Spdu::ActivityStart(activity()?),
        48 => Spdu::ExceptionData(reason()?, from.user_data()),
        49 => {
            let kind = from.octet(0, code::SYNC_TYPE)?.unwrap_or(0);
            Spdu::MinorSyncPoint(serial()?, kind & 1 == 0)
        }
        50 => {
            from.octets(0, code::MIA_USER_DATA, usize::MAX)?;
            Spdu::MinorSyncAck(serial()?)
        }
        57 => Spdu::ActivityDiscard(reason()?),
        58 => Spdu::ActivityDiscardAck,
        other => return Err(SpduError::Identifier(other)),
    })
}

fn read_disconnect(from: &Parameters) -> Result<u8, SpduError> {
    let item = from.octet(0, code::TRANSPORT_DISCONNECT)?;
    Ok(item.unwrap_or(disconnect::RELEASED))
}

fn read_enclosure(from: &Parameters) -> Result<Enclosure, SpduError> {
    let item = from.octet(0, code::ENCLOSURE)?;
    Ok(item.map_or(Enclosure::WHOLE, |item| Enclosure {
        begin: item & 1 != 0,
        end: item & 2 != 0,
    }))
}

fn read_tsdu_maximum(from: &Parameters) -> Result<(u16, u16), SpduError> {
    match from
        .get(code::CONNECT_ACCEPT_ITEM, code::TSDU_MAXIMUM)
        .map(Bytes::as_ref)
    {
        None | Some([]) => Ok((0, 0)),
        Some([a, b, c, d]) => Ok((u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]))),
        Some(_) => Err(SpduError::Value(code::TSDU_MAXIMUM)),
    }
}

fn read_identifier(
    from: &Parameters,
    group: u8,
    reference: u8,
) -> Result<ConnectionIdentifier, SpduError> {
    Ok(ConnectionIdentifier {
        user: from.octets(group, reference, REFERENCE_MAX)?,
        common: from.octets(group, code::COMMON_REFERENCE, REFERENCE_MAX)?,
        additional: from.octets(group, code::ADDITIONAL_REFERENCE, 4)?,
    })
}

fn read_item(from: &Parameters) -> Result<Item, SpduError> {
    let group = code::CONNECT_ACCEPT_ITEM;
    Ok(Item {
        options: from.octet(group, code::PROTOCOL_OPTIONS)?.unwrap_or(0),
        tsdu_maximum: read_tsdu_maximum(from)?,
        versions: from.octet(group, code::VERSION)?.unwrap_or(version::ONE),
        initial_serial: from.serial(group, code::INITIAL_SERIAL)?,
        token_setting: from.octet(group, code::TOKEN_SETTING)?.unwrap_or(0),
    })
}

fn read_connect(from: &Parameters) -> Result<Connect, SpduError> {
    Ok(Connect {
        identifier: read_identifier(from, code::CONNECTION_IDENTIFIER, code::CALLING_REFERENCE)?,
        item: read_item(from)?,
        requirements: from
            .pair(code::USER_REQUIREMENTS)?
            .unwrap_or(REQUIREMENTS_DEFAULT),
        calling: from.octets(0, code::CALLING_SELECTOR, SELECTOR_MAX)?,
        called: from.octets(0, code::CALLED_SELECTOR, SELECTOR_MAX)?,
        overflow: from
            .octet(0, code::DATA_OVERFLOW)?
            .is_some_and(|item| item & 1 != 0),
        user_data: from.user_data(),
    })
}

fn read_accept(from: &Parameters) -> Result<Accept, SpduError> {
    Ok(Accept {
        identifier: read_identifier(from, code::CONNECTION_IDENTIFIER, code::CALLED_REFERENCE)?,
        item: read_item(from)?,
        please: Tokens::from_item(from.octet(0, code::TOKEN_ITEM)?.unwrap_or(0)),
        requirements: from
            .pair(code::USER_REQUIREMENTS)?
            .unwrap_or(REQUIREMENTS_DEFAULT),
        responding: from.octets(0, code::CALLED_SELECTOR, SELECTOR_MAX)?,
        user_data: from.user_data(),
    })
}

fn read_refuse(from: &Parameters) -> Result<Refuse, SpduError> {
    let mut reason = from
        .octets(0, code::REASON, usize::MAX)?
        .unwrap_or_default();
    let user_data = match reason.len() {
        0 => Bytes::new(),
        _ => reason.split_off(1),
    };
    Ok(Refuse {
        identifier: read_identifier(from, code::CONNECTION_IDENTIFIER, code::CALLED_REFERENCE)?,
        disconnect: read_disconnect(from)?,
        requirements: from.pair(code::USER_REQUIREMENTS)?,
        versions: from.octet(0, code::VERSION)?,
        reason: RefuseReason::from_code(reason.first().copied().unwrap_or(0)),
        user_data,
    })
}

fn read_resume(from: &Parameters, activity: Bytes) -> Result<ActivityResume, SpduError> {
    let group = code::LINKING;
    let old_activity = from.octets(group, code::ACTIVITY, ACTIVITY_MAX)?;
    Ok(ActivityResume {
        called: from.octets(group, code::CALLED_REFERENCE, REFERENCE_MAX)?,
        connection: read_identifier(from, group, code::CALLING_REFERENCE)?,
        old_activity: old_activity.ok_or(SpduError::Missing(code::ACTIVITY))?,
        serial: from
            .serial(group, code::SERIAL)?
            .ok_or(SpduError::Missing(code::SERIAL))?,
        activity,
    })
}
