//! The APDUs of RTSE (X.228 clause 9).
//!
//! ```text
//! RTORQ  [16] IMPLICIT SET { [0] checkpoint size DEFAULT 0, [1] window size DEFAULT 3, [2] dialogue mode DEFAULT monologue,
//!                            [3] connection data, [4] application protocol }      -- the last in X.410 mode only
//! RTOAC  [17] IMPLICIT SET { [0] checkpoint size, [1] window size, [2] connection data }
//! RTORJ  [18] IMPLICIT SET { [0] refuse reason (X.410 mode), [1] user data (normal mode) }
//! RTTP   INTEGER, the priority
//! RTTR   OCTET STRING
//! RTAB   [22] IMPLICIT SET { [0] abort reason, [1] reflected parameter, [2] user data }
//! connection data  [0] user data, or [1] IMPLICIT SEQUENCE { user reference, common reference UTCTime, [0] T61String }
//! ```
//!
//! In X.410 mode the components stand in the PPDUs without their tag. The functions `components` and `from_components` are for
//! that mode, `write` and `read` for normal mode.

use bytes::Bytes;
use vere_ber::{Element, Fault, Pieces, Reader, Tag, write};

mod connection;

pub use connection::{ConnectionData, SessionConnectionIdentifier};

/// The largest checkpoint size, window and priority that is read.
const NUMBER_MAX: u32 = i32::MAX as u32;

/// Whether both sides may transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DialogueMode {
    /// The side with the initial turn transfers, the other never.
    Monologue,
    /// The side that has the turn transfers.
    #[default]
    TwoWayAlternate,
}

/// RTORQ: the request for an association.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rtorq {
    /// The checkpoint size in units of 1,024 octets; 0 leaves it to the responder.
    pub checkpoint_size: u32,
    /// The most checkpoints that await their confirmation.
    pub window_size: u32,
    /// The dialogue mode.
    pub dialogue_mode: DialogueMode,
    /// The connection data.
    pub connection_data: ConnectionData,
    /// The application protocol, in X.410 mode: 12 mts-transfer-protocol, 1 mts-transfer-protocol-1984 (X.419).
    pub application_protocol: Option<i64>,
}

/// RTOAC: an association is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rtoac {
    /// The checkpoint size in units of 1,024 octets; 0 is no checkpoints.
    pub checkpoint_size: u32,
    /// The most checkpoints that await their confirmation.
    pub window_size: u32,
    /// The connection data.
    pub connection_data: ConnectionData,
}

/// Why an association is refused in X.410 mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefuseReason {
    /// The responder is busy.
    RtsBusy,
    /// The association cannot be recovered.
    CannotRecover,
    /// The user data were not accepted.
    ValidationFailure,
    /// The dialogue mode is not accepted.
    UnacceptableDialogueMode,
    /// Another reason.
    Other(i64),
}

impl RefuseReason {
    const fn code(self) -> i64 {
        match self {
            Self::RtsBusy => 0,
            Self::CannotRecover => 1,
            Self::ValidationFailure => 2,
            Self::UnacceptableDialogueMode => 3,
            Self::Other(code) => code,
        }
    }

    const fn from_code(code: i64) -> Self {
        match code {
            0 => Self::RtsBusy,
            1 => Self::CannotRecover,
            2 => Self::ValidationFailure,
            3 => Self::UnacceptableDialogueMode,
            other => Self::Other(other),
        }
    }
}

/// RTORJ: an association is refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rtorj {
    /// The reason, in X.410 mode.
    pub reason: Option<RefuseReason>,
    /// The user data, in normal mode: one BER value.
    pub user_data: Option<Bytes>,
}

/// Why an association is aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbortReason {
    /// A problem of the local system.
    LocalSystemProblem,
    /// An invalid parameter, which is reflected.
    InvalidParameter,
    /// An activity is not recognized.
    UnrecognizedActivity,
    /// No session connection can be accepted for some time.
    TemporaryProblem,
    /// A protocol error of RTSE.
    ProtocolError,
    /// The provider aborts for good. In normal mode only.
    PermanentProblem,
    /// The user aborts. In normal mode only.
    UserError,
    /// The activity cannot be discarded: the transfer is completed.
    TransferCompleted,
    /// Another reason.
    Other(i64),
}

impl AbortReason {
    const fn code(self) -> i64 {
        match self {
            Self::LocalSystemProblem => 0,
            Self::InvalidParameter => 1,
            Self::UnrecognizedActivity => 2,
            Self::TemporaryProblem => 3,
            Self::ProtocolError => 4,
            Self::PermanentProblem => 5,
            Self::UserError => 6,
            Self::TransferCompleted => 7,
            Self::Other(code) => code,
        }
    }

    const fn from_code(code: i64) -> Self {
        match code {
            0 => Self::LocalSystemProblem,
            1 => Self::InvalidParameter,
            2 => Self::UnrecognizedActivity,
            3 => Self::TemporaryProblem,
            4 => Self::ProtocolError,
            5 => Self::PermanentProblem,
            6 => Self::UserError,
            7 => Self::TransferCompleted,
            other => Self::Other(other),
        }
    }
}

/// RTAB: an association is aborted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rtab {
    /// The reason.
    pub reason: Option<AbortReason>,
    /// The user data, in normal mode with [`AbortReason::UserError`]: one BER value.
    pub user_data: Option<Bytes>,
}

/// A component that is not at its default.
fn unless(default: u32, place: u32, number: u32) -> Option<Pieces> {
    let number = Some(number).filter(|number| *number != default);
    number.map(|number| write::integer(Tag::context(place), i64::from(number)))
}

fn join(fields: impl IntoIterator<Item = Option<Pieces>>) -> Bytes {
    let mut all = Pieces::new();
    for field in fields.into_iter().flatten() {
        all.append(field);
    }
    all.into_bytes()
}

/// The components of a refusal or an abort: the reason, and user data with their tag.
fn reason_and_data(reason: Option<i64>, (tag, data): (u32, Option<&Bytes>)) -> Bytes {
    let data = data.map(write::encoded);
    join([
        reason.map(|code| write::integer(Tag::context(0), code)),
        data.map(|data| write::constructed(Tag::context(tag), [data])),
    ])
}

fn tagged(tag: u32, components: Bytes) -> Bytes {
    write::constructed(Tag::context(tag), [Pieces::from(components)]).into_bytes()
}

fn components_of(tag: u32, octets: &Bytes) -> Result<Bytes, Fault> {
    let mut reader = Reader::new(octets);
    let element = reader.expect(Tag::context(tag))?;
    reader.end()?;
    Ok(element.contents_to_bytes())
}

/// Calls `take` with every component and its place.
fn each(
    components: &Bytes,
    mut take: impl FnMut(u32, Element<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut reader = Reader::new(components);
    while let Some(element) = reader.read()? {
        let number = element.tag.number;
        if element.tag == Tag::context(number) {
            take(number, element)?;
        }
    }
    Ok(())
}

impl Rtorq {
    /// The components.
    #[must_use]
    pub fn components(&self) -> Bytes {
        let x410 = self.application_protocol.is_some();
        let mode = u32::from(self.dialogue_mode == DialogueMode::TwoWayAlternate);
        let protocol = self.application_protocol;
        join([
            unless(0, 0, self.checkpoint_size),
            unless(3, 1, self.window_size),
            unless(0, 2, mode),
            Some(self.connection_data.write(3, x410)),
            protocol.map(|protocol| write::integer(Tag::context(4), protocol)),
        ])
    }

    /// The APDU in normal mode.
    #[must_use]
    pub fn write(&self) -> Bytes {
        tagged(16, self.components())
    }

    /// Reads the components.
    ///
    /// # Errors
    ///
    /// [`Fault`] for other components.
    pub fn from_components(components: &Bytes) -> Result<Self, Fault> {
        let (mut checkpoint_size, mut window_size, mut mode) = (0, 3, 0);
        let (mut data, mut application_protocol) = (None, None);
        each(components, |place, element| {
            match place {
                0 => checkpoint_size = element.number(NUMBER_MAX)?,
                1 => window_size = element.number(NUMBER_MAX)?,
                2 => mode = element.number(1)?,
                3 => data = Some(ConnectionData::read(&element)?),
                4 => application_protocol = Some(element.integer()?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(Self {
            checkpoint_size,
            window_size,
            dialogue_mode: match mode {
                0 => DialogueMode::Monologue,
                _ => DialogueMode::TwoWayAlternate,
            },
            connection_data: data.ok_or(Fault::Absent(Tag::context(3)))?,
            application_protocol,
        })
    }

    /// Reads the APDU in normal mode.
    ///
    /// # Errors
    ///
    /// [`Fault`] for another APDU.
    pub fn read(octets: &Bytes) -> Result<Self, Fault> {
        Self::from_components(&components_of(16, octets)?)
    }
}

impl Rtoac {
    /// The components.
    #[must_use]
    pub fn components(&self, x410: bool) -> Bytes {
        join([
            unless(0, 0, self.checkpoint_size),
            unless(3, 1, self.window_size),
            Some(self.connection_data.write(2, x410)),
        ])
    }

    /// The APDU in normal mode.
    #[must_use]
    pub fn write(&self) -> Bytes {
        tagged(17, self.components(false))
    }

    /// Reads the components.
    ///
    /// # Errors
    ///
    /// [`Fault`] for other components.
    pub fn from_components(components: &Bytes) -> Result<Self, Fault> {
        let (mut checkpoint_size, mut window_size, mut data) = (0, 3, None);
        each(components, |place, element| {
            match place {
                0 => checkpoint_size = element.number(NUMBER_MAX)?,
                1 => window_size = element.number(NUMBER_MAX)?,
                2 => data = Some(ConnectionData::read(&element)?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(Self {
            checkpoint_size,
            window_size,
            connection_data: data.ok_or(Fault::Absent(Tag::context(2)))?,
        })
    }

    /// Reads the APDU in normal mode.
    ///
    /// # Errors
    ///
    /// [`Fault`] for another APDU.
    pub fn read(octets: &Bytes) -> Result<Self, Fault> {
        Self::from_components(&components_of(17, octets)?)
    }
}

impl Rtorj {
    /// The components.
    #[must_use]
    pub fn components(&self) -> Bytes {
        let reason = self.reason.map(RefuseReason::code);
        reason_and_data(reason, (1, self.user_data.as_ref()))
    }

    /// The APDU in normal mode.
    #[must_use]
    pub fn write(&self) -> Bytes {
        tagged(18, self.components())
    }

    /// Reads the components.
    ///
    /// # Errors
    ///
    /// [`Fault`] for other components.
    pub fn from_components(components: &Bytes) -> Result<Self, Fault> {
        let mut rtorj = Self::default();
        each(components, |place, element| {
            match place {
                0 => rtorj.reason = Some(RefuseReason::from_code(element.integer()?)),
                1 => rtorj.user_data = Some(element.inner()?.to_bytes()),
                _ => {}
            }
            Ok(())
        })?;
        Ok(rtorj)
    }

    /// Reads the APDU in normal mode.
    ///
    /// # Errors
    ///
    /// [`Fault`] for another APDU.
    pub fn read(octets: &Bytes) -> Result<Self, Fault> {
        Self::from_components(&components_of(18, octets)?)
    }
}

impl Rtab {
    /// An abort for this reason.
    #[must_use]
    pub const fn because(reason: AbortReason) -> Self {
        Self {
            reason: Some(reason),
            user_data: None,
        }
    }

    /// The components.
    #[must_use]
    pub fn components(&self) -> Bytes {
        let reason = self.reason.map(AbortReason::code);
        reason_and_data(reason, (2, self.user_data.as_ref()))
    }

    /// The APDU in normal mode.
    #[must_use]
    pub fn write(&self) -> Bytes {
        tagged(22, self.components())
    }

    /// Reads the components.
    ///
    /// # Errors
    ///
    /// [`Fault`] for other components.
    pub fn from_components(components: &Bytes) -> Result<Self, Fault> {
        let mut rtab = Self::default();
        each(components, |place, element| {
            match place {
                0 => rtab.reason = Some(AbortReason::from_code(element.integer()?)),
                2 => rtab.user_data = Some(element.inner()?.to_bytes()),
                _ => {}
            }
            Ok(())
        })?;
        Ok(rtab)
    }

    /// Reads the APDU in normal mode.
    ///
    /// # Errors
    ///
    /// [`Fault`] for another APDU.
    pub fn read(octets: &Bytes) -> Result<Self, Fault> {
        Self::from_components(&components_of(22, octets)?)
    }
}

/// Writes RTTP.
#[must_use]
pub fn write_priority(priority: u32) -> Bytes {
    write::integer(Tag::INTEGER, i64::from(priority)).into_bytes()
}

/// Reads RTTP.
///
/// # Errors
///
/// [`Fault`] for another value than an INTEGER that is not negative.
pub fn read_priority(octets: &Bytes) -> Result<u32, Fault> {
    let element = Reader::new(octets).only()?;
    match element.tag {
        Tag::INTEGER => element.number(NUMBER_MAX),
        other => Err(Fault::Misplaced(other)),
    }
}
