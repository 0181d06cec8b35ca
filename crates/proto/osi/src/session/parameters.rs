//! PGI and PI units (X.225 clause 8.2).

use bytes::Bytes;

/// Octets that are no SPDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpduError {
    /// No supported SPDU has this identifier.
    #[error("expected a session PDU; found identifier {0}")]
    Identifier(u8),
    /// The lengths of parameters do not add up.
    #[error("expected parameters as long as their lengths say; found other octets")]
    Length,
    /// A parameter is missing.
    #[error("expected parameter {0}; found none")]
    Missing(u8),
    /// A parameter has an invalid length or value.
    #[error("expected a valid value of parameter {0}; found another")]
    Value(u8),
    /// SPDUs are concatenated that must not be.
    #[error("expected one session PDU behind a token PDU; found another concatenation")]
    Concatenation,
    /// The SPDU, or the user data of a connection, is longer than the limit.
    #[error("expected at most {0} octets; found more")]
    TooLong(usize),
}

/// Identifiers of PGI and PI units (X.225 clause 8.3 and Annex B).
pub(super) mod code {
    pub(in super::super) const CONNECTION_IDENTIFIER: u8 = 1;
    pub(in super::super) const CONNECT_ACCEPT_ITEM: u8 = 5;
    pub(in super::super) const CALLED_REFERENCE: u8 = 9;
    pub(in super::super) const CALLING_REFERENCE: u8 = 10;
    pub(in super::super) const COMMON_REFERENCE: u8 = 11;
    pub(in super::super) const ADDITIONAL_REFERENCE: u8 = 12;
    pub(in super::super) const SYNC_TYPE: u8 = 15;
    pub(in super::super) const TOKEN_ITEM: u8 = 16;
    pub(in super::super) const TRANSPORT_DISCONNECT: u8 = 17;
    pub(in super::super) const PROTOCOL_OPTIONS: u8 = 19;
    pub(in super::super) const USER_REQUIREMENTS: u8 = 20;
    pub(in super::super) const TSDU_MAXIMUM: u8 = 21;
    pub(in super::super) const VERSION: u8 = 22;
    pub(in super::super) const INITIAL_SERIAL: u8 = 23;
    pub(in super::super) const ENCLOSURE: u8 = 25;
    pub(in super::super) const TOKEN_SETTING: u8 = 26;
    pub(in super::super) const LINKING: u8 = 33;
    pub(in super::super) const ACTIVITY: u8 = 41;
    pub(in super::super) const SERIAL: u8 = 42;
    pub(in super::super) const REFLECT: u8 = 49;
    pub(in super::super) const REASON: u8 = 50;
    pub(in super::super) const CALLING_SELECTOR: u8 = 51;
    pub(in super::super) const CALLED_SELECTOR: u8 = 52;
    pub(in super::super) const DATA_OVERFLOW: u8 = 60;
    pub(in super::super) const USER_DATA: u8 = 193;
    pub(in super::super) const EXTENDED_USER_DATA: u8 = 194;
}

/// The most parameters of an SPDU.
const COUNT_MAX: usize = 64;

/// The parameters of an SPDU: group or 0, identifier, value. Those without a meaning are kept and never asked for, as the
/// rules of extensibility have it.
#[derive(Debug, Default)]
pub(super) struct Parameters(Vec<(u8, u8, Bytes)>);

impl Parameters {
    pub(super) fn read(octets: &Bytes) -> Result<Self, SpduError> {
        let mut parameters = Self::default();
        parameters.read_units(octets, 0)?;
        Ok(parameters)
    }

    fn read_units(&mut self, octets: &Bytes, group: u8) -> Result<(), SpduError> {
        let mut rest = octets.clone();
        while !rest.is_empty() {
            let (identifier, value) = unit(&mut rest)?;
            match identifier {
                code::CONNECTION_IDENTIFIER | code::CONNECT_ACCEPT_ITEM | code::LINKING
                    if group == 0 =>
                {
                    self.read_units(&value, identifier)?;
                }
                _ if self.0.len() >= COUNT_MAX => return Err(SpduError::Length),
                _ => self.0.push((group, identifier, value)),
            }
        }
        Ok(())
    }

    /// The value of a PI unit in this group. A unit of the connect items may stand outside of its group.
    pub(super) fn get(&self, group: u8, identifier: u8) -> Option<&Bytes> {
        let of = |wanted: u8| {
            let mut all = self.0.iter();
            all.find(|(group, found, _)| *group == wanted && *found == identifier)
        };
        let outside = || of(0).filter(|_| group != code::LINKING);
        of(group).or_else(outside).map(|(_, _, value)| value)
    }

    pub(super) fn octet(&self, group: u8, identifier: u8) -> Result<Option<u8>, SpduError> {
        match self.get(group, identifier).map(Bytes::as_ref) {
            None | Some([]) => Ok(None),
            Some([octet]) => Ok(Some(*octet)),
            Some(_) => Err(SpduError::Value(identifier)),
        }
    }

    pub(super) fn pair(&self, identifier: u8) -> Result<Option<u16>, SpduError> {
        match self.get(0, identifier).map(Bytes::as_ref) {
            None | Some([]) => Ok(None),
            Some([high, low]) => Ok(Some(u16::from_be_bytes([*high, *low]))),
            Some(_) => Err(SpduError::Value(identifier)),
        }
    }

    /// A value of at most `max` octets.
    pub(super) fn octets(
        &self,
        group: u8,
        identifier: u8,
        max: usize,
    ) -> Result<Option<Bytes>, SpduError> {
        match self.get(group, identifier) {
            Some(value) if value.len() > max => Err(SpduError::Value(identifier)),
            value => Ok(value.cloned()),
        }
    }

    /// A serial number: one to six digits.
    pub(super) fn serial(&self, group: u8, identifier: u8) -> Result<Option<u32>, SpduError> {
        let Some(digits) = self.get(group, identifier) else {
            return Ok(None);
        };
        let valid = (1..=6).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
        let text = std::str::from_utf8(digits).ok().filter(|_| valid);
        match text.and_then(|text| text.parse().ok()) {
            Some(serial) => Ok(Some(serial)),
            None => Err(SpduError::Value(identifier)),
        }
    }

    /// The user data of any form.
    pub(super) fn user_data(&self) -> Bytes {
        [code::USER_DATA, code::EXTENDED_USER_DATA]
            .iter()
            .find_map(|identifier| self.get(0, *identifier))
            .cloned()
            .unwrap_or_default()
    }
}

/// Reads a unit off the octets: its identifier and its value.
fn unit(rest: &mut Bytes) -> Result<(u8, Bytes), SpduError> {
    let (identifier, length, header) = match *rest.as_ref() {
        [identifier, 255, high, low, ..] => (identifier, u16::from_be_bytes([high, low]), 4),
        [identifier, length, ..] if length != 255 => (identifier, u16::from(length), 2),
        _ => return Err(SpduError::Length),
    };
    let length = usize::from(length);
    match rest.len().checked_sub(header) {
        Some(left) if left >= length => {
            let mut value = rest.split_off(header);
            *rest = value.split_off(length);
            Ok((identifier, value))
        }
        _ => Err(SpduError::Length),
    }
}

/// Writes parameters.
#[derive(Debug, Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn put(&mut self, identifier: u8, value: &[u8]) {
        self.0.push(identifier);
        put_length(&mut self.0, value.len());
        self.0.extend_from_slice(value);
    }

    pub(super) fn put_some(&mut self, identifier: u8, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.put(identifier, value);
        }
    }

    pub(super) fn put_serial(&mut self, identifier: u8, serial: u32) {
        self.put(identifier, serial.to_string().as_bytes());
    }

    /// User data; nothing for no octets.
    pub(super) fn put_user_data(&mut self, identifier: u8, data: &[u8]) {
        if !data.is_empty() {
            self.put(identifier, data);
        }
    }

    pub(super) fn put_group(&mut self, identifier: u8, group: &Self) {
        if !group.0.is_empty() {
            self.put(identifier, &group.0);
        }
    }
}

pub(super) fn put_length(to: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short) if short != 255 => to.push(short),
        _ => {
            to.push(255);
            let long = u16::try_from(length).unwrap_or(u16::MAX);
            to.extend_from_slice(&long.to_be_bytes());
        }
    }
}
