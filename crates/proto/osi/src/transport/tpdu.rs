//! TPDUs of class 0 (X.224 clause 13) and their packets (RFC 1006 section 6).

use bytes::{BufMut, Bytes, BytesMut};

/// Octets of the header of a packet.
pub const TPKT_LEN: usize = 4;

pub(super) const CR: u8 = 0xe0;
pub(super) const CC: u8 = 0xd0;
pub(super) const DR: u8 = 0x80;
pub(super) const ER: u8 = 0x70;
pub(super) const DT: u8 = 0xf0;
/// The end mark of a data TPDU.
pub(super) const EOT: u8 = 0x80;

const TPDU_SIZE: u8 = 0xc0;
const CALLING: u8 = 0xc1;
const CALLED: u8 = 0xc2;
const ALTERNATIVE_CLASSES: u8 = 0xc7;
const PREFERRED_SIZE: u8 = 0xf0;
const INVALID_TPDU: u8 = 0xc1;

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
            /// A code without a name.
            Other(u8),
        }

        impl $name {
            /// The code on the wire.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self {
                    $(Self::$variant => $code,)*
                    Self::Other(code) => code,
                }
            }

            /// The meaning of a code.
            #[must_use]
            pub const fn from_code(code: u8) -> Self {
                match code {
                    $($code => Self::$variant,)*
                    other => Self::Other(other),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$variant => f.write_str($text),)*
                    Self::Other(code) => write!(f, "code {code}"),
                }
            }
        }
    };
}

codes! {
    /// Why a connection was refused or ended (X.224 clause 13.5.3).
    DisconnectReason {
        /// No reason.
        NotSpecified = 0, "reason not specified";
        /// Congestion at the TSAP.
        Congestion = 1, "congestion at the TSAP";
        /// No session entity at the TSAP.
        NotAttached = 2, "session entity not attached to the TSAP";
        /// The address is unknown.
        AddressUnknown = 3, "address unknown";
        /// Normal disconnect, initiated by the session entity.
        Normal = 128, "normal disconnect";
        /// Congestion of the remote transport entity.
        RemoteCongestion = 129, "remote transport entity congested";
        /// The proposed classes are not supported.
        NegotiationFailed = 130, "proposed class not supported";
        /// A protocol error.
        ProtocolError = 133, "protocol error";
        /// Refused on this network connection.
        Refused = 136, "connection request refused on this network connection";
        /// A header or a parameter has an invalid length.
        InvalidLength = 138, "header or parameter length invalid";
    }
}

codes! {
    /// Why a TPDU was rejected (X.224 clause 13.12.3).
    RejectCause {
        /// No reason.
        NotSpecified = 0, "reason not specified";
        /// An invalid parameter code.
        ParameterCode = 1, "invalid parameter code";
        /// An invalid kind of TPDU.
        TpduType = 2, "invalid TPDU type";
        /// An invalid value of a parameter.
        ParameterValue = 3, "invalid parameter value";
    }
}

/// Octets that are no TPDU of class 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TpduError {
    /// The packet has another version.
    #[error("expected a packet of version 3; found version {0}")]
    Version(u8),
    /// A packet or header is too short for its fields, or longer than allowed.
    #[error("expected a packet as long as its fields; found another length")]
    Length,
    /// A TPDU of this code is not one of class 0.
    #[error("expected a TPDU of class 0; found code {0:#x}")]
    Code(u8),
    /// A parameter has an invalid value.
    #[error("expected a valid value of parameter {0:#x}; found another")]
    Value(u8),
}

/// The sizes of TPDUs that a connection request proposes, or a confirm selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TpduSize {
    /// Parameter 0xC0: a power of two.
    pub power: Option<u32>,
    /// Parameter 0xF0, the preferred maximum: a multiple of 128.
    pub preferred: Option<u32>,
}

/// A connection request or confirm.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Connection {
    /// The reference of the receiver; 0 in a request.
    pub destination: u16,
    /// The reference of the sender.
    pub source: u16,
    /// Class in the high four bits, options in the low ones.
    pub class: u8,
    /// Whether class 0 is among the alternative classes.
    pub alternative: bool,
    /// The calling TSAP selector.
    pub calling: Option<Bytes>,
    /// The called TSAP selector.
    pub called: Option<Bytes>,
    /// The sizes.
    pub size: TpduSize,
}

/// A TPDU without the user data of a data TPDU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tpdu {
    /// CR.
    ConnectionRequest(Connection),
    /// CC.
    ConnectionConfirm(Connection),
    /// DR.
    DisconnectRequest(DisconnectReason),
    /// ER.
    Error(RejectCause),
}

impl Tpdu {
    /// Reads a TPDU other than DT: the octets of a packet behind its header.
    ///
    /// # Errors
    ///
    /// [`TpduError`] for octets that are no such TPDU.
    pub fn read(packet: &Bytes) -> Result<Self, TpduError> {
        let length = usize::from(*packet.first().ok_or(TpduError::Length)?);
        let header = packet
            .get(1..length.saturating_add(1))
            .ok_or(TpduError::Length)?;
        let (&code, fields) = header.split_first().ok_or(TpduError::Length)?;
        match code & 0xf0 {
            CR => connection(packet, fields).map(Self::ConnectionRequest),
            CC => connection(packet, fields).map(Self::ConnectionConfirm),
            DR => match fields {
                [_, _, _, _, reason, ..] => Ok(Self::DisconnectRequest(
                    DisconnectReason::from_code(*reason),
                )),
                _ => Err(TpduError::Length),
            },
            ER => match fields {
                [_, _, cause, ..] => Ok(Self::Error(RejectCause::from_code(*cause))),
                _ => Err(TpduError::Length),
            },
            _ => Err(TpduError::Code(code)),
        }
    }

    /// Writes the packet. References of DR and ER are 0: the TCP connection tells connections apart.
    #[must_use]
    pub fn write(&self) -> Bytes {
        let mut header = BytesMut::new();
        match self {
            Self::ConnectionRequest(connection) => put_connection(&mut header, CR, connection),
            Self::ConnectionConfirm(connection) => put_connection(&mut header, CC, connection),
            Self::DisconnectRequest(reason) => {
                header.put_slice(&[DR, 0, 0, 0, 0, reason.code()]);
            }
            Self::Error(cause) => header.put_slice(&[ER, 0, 0, cause.code()]),
        }
        packet(&header)
    }

    /// Writes an ER packet with the rejected TPDU, or the beginning of it.
    #[must_use]
    pub fn rejection(cause: RejectCause, rejected: &[u8]) -> Bytes {
        let mut header = BytesMut::new();
        header.put_slice(&[ER, 0, 0, cause.code()]);
        let kept = rejected.get(..32).unwrap_or(rejected);
        put_parameter(&mut header, INVALID_TPDU, kept);
        packet(&header)
    }
}

fn packet(header: &[u8]) -> Bytes {
    let total = header.len().saturating_add(TPKT_LEN).saturating_add(1);
    let mut octets = BytesMut::with_capacity(total);
    octets.put_slice(&[3, 0]);
    octets.put_u16(u16::try_from(total).unwrap_or(u16::MAX));
    octets.put_u8(u8::try_from(header.len()).unwrap_or(u8::MAX));
    octets.put_slice(header);
    octets.freeze()
}

fn put_connection(to: &mut BytesMut, code: u8, connection: &Connection) {
    to.put_u8(code);
    to.put_u16(connection.destination);
    to.put_u16(connection.source);
    to.put_u8(connection.class);
    if let Some(size) = connection.size.power {
        let power = u8::try_from(size.checked_ilog2().unwrap_or(7)).unwrap_or(7);
        put_parameter(to, TPDU_SIZE, &[power]);
    }
    if let Some(selector) = &connection.calling {
        put_parameter(to, CALLING, selector);
    }
    if let Some(selector) = &connection.called {
        put_parameter(to, CALLED, selector);
    }
    if connection.alternative {
        put_parameter(to, ALTERNATIVE_CLASSES, &[0]);
    }
    if let Some(size) = connection.size.preferred {
        let units = (size / 128).to_be_bytes();
        let zeros = units.iter().take_while(|octet| **octet == 0).count();
        put_parameter(to, PREFERRED_SIZE, units.get(zeros..).unwrap_or_default());
    }
}

fn put_parameter(to: &mut BytesMut, code: u8, value: &[u8]) {
    to.put_u8(code);
    to.put_u8(u8::try_from(value.len()).unwrap_or(u8::MAX));
    to.put_slice(value);
}

fn connection(packet: &Bytes, fields: &[u8]) -> Result<Connection, TpduError> {
    let Some((fixed, mut rest)) = fields.split_first_chunk::<5>() else {
        return Err(TpduError::Length);
    };
    let [d0, d1, s0, s1, class] = *fixed;
    let mut connection = Connection {
        destination: u16::from_be_bytes([d0, d1]),
        source: u16::from_be_bytes([s0, s1]),
        class,
        ..Connection::default()
    };
    while let Some((&[code, length], after)) = rest.split_first_chunk::<2>() {
        let (value, after) = after
            .split_at_checked(usize::from(length))
            .ok_or(TpduError::Length)?;
        parameter(&mut connection, code, packet.slice_ref(value))?;
        rest = after;
    }
    match rest {
        [] => Ok(connection),
        _ => Err(TpduError::Length),
    }
}

/// Takes a parameter; an unknown one of CR is ignored (X.224 clause 13.2.3).
fn parameter(to: &mut Connection, code: u8, value: Bytes) -> Result<(), TpduError> {
    match (code, value.as_ref()) {
        (TPDU_SIZE, [power @ 7..=16]) => to.size.power = Some(1 << power),
        (PREFERRED_SIZE, [_] | [_, _] | [_, _, _] | [_, _, _, _]) => {
            let units = value
                .iter()
                .fold(0_u32, |sum, octet| (sum << 8) | u32::from(*octet));
            match units {
                0 => return Err(TpduError::Value(code)),
                units => to.size.preferred = Some(units.min(u32::MAX / 128).saturating_mul(128)),
            }
        }
        (TPDU_SIZE | PREFERRED_SIZE, _) => return Err(TpduError::Value(code)),
        (CALLING, _) => to.calling = Some(value),
        (CALLED, _) => to.called = Some(value),
        (ALTERNATIVE_CLASSES, classes) => {
            to.alternative = classes.iter().any(|class| class >> 4 == 0)
        }
        _ => {}
    }
    Ok(())
}
