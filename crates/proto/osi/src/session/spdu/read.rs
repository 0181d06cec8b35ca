//! Reads SPDUs.

use bytes::Bytes;

use super::super::parameters::{Parameters, SpduError, code};
use super::super::tokens::Tokens;
use super::{
    Abort, Accept, ActivityResume, Connect, ConnectionIdentifier, Enclosure, Exception, Item,
    OverflowAccept, Refuse, RefuseReason, Spdu, disconnect, version,
};

/// The requirements of a CONNECT or ACCEPT SPDU without PI 20: those of RTSE and capability data (X.225 clause 8.3.1.18).
const REQUIREMENTS_DEFAULT: u16 = 0x0349;
/// The most octets of a session selector.
const SELECTOR_MAX: usize = 16;
/// The most octets of a reference in a connection identifier.
const REFERENCE_MAX: usize = 64;
/// The most octets of an activity identifier.
const ACTIVITY_MAX: usize = 6;

impl Spdu {
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
        50 => Spdu::MinorSyncAck(serial()?),
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
        token_setting: from.octet(group, code::TOKEN_SETTING)?,
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
