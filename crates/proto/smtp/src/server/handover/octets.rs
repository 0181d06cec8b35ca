//! Numbers, texts and addresses of a hand-over, as octets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use super::error::HandoverError;

/// The most octets of a text that is no command.
const TEXT_OCTETS_MAX: usize = 1_024;
/// The most octets of a command. The longest MAIL command has less than 3,400: two addresses of at most 768 octets,
/// the second in xtext, thrice as long, and less than 250 for all else.
const COMMAND_OCTETS_MAX: usize = 4_096;

/// Names of fields that the encoder checks as well.
pub(super) const NAME: &str = "name of the client";
pub(super) const TLS_VERSION: &str = "TLS version";
pub(super) const TLS_CIPHER: &str = "TLS cipher suite";
pub(super) const TLS_SERVER_NAME: &str = "TLS server name";
pub(super) const ACCOUNT: &str = "account";
pub(super) const LOGIN: &str = "XCLIENT LOGIN";

const IPV4: u8 = 4;
const IPV6: u8 = 6;

/// Whether a text fits into a hand-over.
pub(super) fn is_text(text: &str) -> bool {
    text.len() <= TEXT_OCTETS_MAX && !text.chars().any(char::is_control)
}

/// Appends a value that may be missing.
pub(super) fn put_option<T>(to: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    to.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(to, value);
    }
}

pub(super) fn put_bool(to: &mut Vec<u8>, value: bool) {
    to.push(u8::from(value));
}

pub(super) fn put_text(to: &mut Vec<u8>, text: &str) {
    put_octets(to, text.as_bytes());
}

/// Appends octets behind their number.
pub(super) fn put_octets(to: &mut Vec<u8>, octets: &[u8]) {
    // The decoder refuses an impossible length.
    let length = u16::try_from(octets.len()).unwrap_or(u16::MAX);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(octets);
}

/// Appends a command without CRLF.
pub(super) fn put_command(to: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>)) {
    put_octets(to, &command_line(encode));
}

/// The octets of a command without CRLF.
pub(super) fn command_line(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut line = Vec::new();
    encode(&mut line);
    if line.ends_with(b"\r\n") {
        line.truncate(line.len().saturating_sub(2));
    }
    line
}

/// Appends a count; a count above the range becomes the greatest.
pub(super) fn put_count(to: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    to.extend_from_slice(&count.to_le_bytes());
}

pub(super) fn put_address(to: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            to.push(IPV4);
            to.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            to.push(IPV6);
            to.extend_from_slice(&ip.octets());
        }
    }
    to.extend_from_slice(&address.port().to_le_bytes());
    if let SocketAddr::V6(address) = address {
        to.extend_from_slice(&address.flowinfo().to_le_bytes());
        to.extend_from_slice(&address.scope_id().to_le_bytes());
    }
}

/// The octets not read yet.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, field: &'static str, wanted: usize) -> Result<&'a [u8], HandoverError> {
        let found = self.0.len();
        let (taken, rest) = self
            .0
            .split_at_checked(wanted)
            .ok_or(HandoverError::Short {
                field,
                wanted,
                found,
            })?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], HandoverError> {
        let found = self.0.len();
        let (taken, rest) = self.0.split_first_chunk().ok_or(HandoverError::Short {
            field,
            wanted: N,
            found,
        })?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn octet(&mut self, field: &'static str) -> Result<u8, HandoverError> {
        self.array(field).map(u8::from_le_bytes)
    }

    /// A number of at most `max`.
    pub(super) fn short(
        &mut self,
        field: &'static str,
        max: usize,
    ) -> Result<usize, HandoverError> {
        let found = self.array(field).map(u16::from_le_bytes)?.into();
        match found <= max {
            true => Ok(found),
            false => Err(HandoverError::TooMuch { field, max, found }),
        }
    }

    pub(super) fn count(&mut self, field: &'static str) -> Result<usize, HandoverError> {
        let count = self.array(field).map(u32::from_le_bytes)?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    pub(super) fn bool(&mut self, field: &'static str) -> Result<bool, HandoverError> {
        match self.octet(field)? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(HandoverError::Tag {
                field,
                expected: "0 or 1",
                found,
            }),
        }
    }

    /// A value that may be missing.
    pub(super) fn option<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T, HandoverError>,
    ) -> Result<Option<T>, HandoverError> {
        match self.bool(field)? {
            true => read(self).map(Some),
            false => Ok(None),
        }
    }

    /// At most `max` octets behind their number.
    pub(super) fn octets(
        &mut self,
        field: &'static str,
        max: usize,
    ) -> Result<&'a [u8], HandoverError> {
        let length = self.short(field, max)?;
        self.take(field, length)
    }

    pub(super) fn text(&mut self, field: &'static str) -> Result<&'a str, HandoverError> {
        self.text_up_to(field, TEXT_OCTETS_MAX)
    }

    pub(super) fn owned(&mut self, field: &'static str) -> Result<String, HandoverError> {
        self.text(field).map(str::to_owned)
    }

    /// The line of a command.
    pub(super) fn command(&mut self, field: &'static str) -> Result<&'a str, HandoverError> {
        self.text_up_to(field, COMMAND_OCTETS_MAX)
    }

    fn text_up_to(&mut self, field: &'static str, max: usize) -> Result<&'a str, HandoverError> {
        let octets = self.octets(field, max)?;
        let text = std::str::from_utf8(octets).map_err(|error| HandoverError::Utf8 {
            field,
            at: error.valid_up_to(),
        })?;
        match text.chars().find(|c| c.is_control()) {
            Some(found) => Err(HandoverError::Control {
                field,
                found: found.into(),
            }),
            None => Ok(text),
        }
    }

    pub(super) fn address(&mut self, field: &'static str) -> Result<SocketAddr, HandoverError> {
        match self.octet(field)? {
            IPV4 => {
                let ip = self.array(field).map(Ipv4Addr::from_octets)?;
                let port = self.array(field).map(u16::from_le_bytes)?;
                Ok((ip, port).into())
            }
            IPV6 => {
                let ip = self.array(field).map(Ipv6Addr::from_octets)?;
                let port = self.array(field).map(u16::from_le_bytes)?;
                let flow = self.array(field).map(u32::from_le_bytes)?;
                let scope = self.array(field).map(u32::from_le_bytes)?;
                Ok(SocketAddrV6::new(ip, port, flow, scope).into())
            }
            found => Err(HandoverError::Tag {
                field,
                expected: "4 or 6",
                found,
            }),
        }
    }

    pub(super) fn end(&self) -> Result<(), HandoverError> {
        match self.0.len() {
            0 => Ok(()),
            more => Err(HandoverError::Trailing(more)),
        }
    }
}
