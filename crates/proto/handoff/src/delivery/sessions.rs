//! Connections to the hosts of domains, for reports about TLS (RFC 8460).

use std::net::IpAddr;

use super::texts::{put_text, text, value};
use crate::octets::{HandoffError, Reader, put_length};

/// The most octets of a text; longer texts are cut.
const TEXT_OCTETS_MAX: usize = 255;
/// The most lines and patterns; further ones are left out.
const LINES_MAX: usize = 16;
/// The kinds of policies.
const POLICIES: u8 = 3;
/// The kinds of failures.
pub const FAILURES: u8 = 11;

/// Connections of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSessions {
    /// Their number.
    pub sessions: u32,
    /// The kind of the policy: 0 DANE, 1 MTA-STS, 2 none.
    pub policy: u8,
    /// The domain of the recipients.
    pub domain: String,
    /// The lines of the policy.
    pub lines: Vec<String>,
    /// The patterns of hosts.
    pub mx: Vec<String>,
    /// Why the connections failed; `None` for success.
    pub failed: Option<TlsFailed>,
}

/// Why connections failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFailed {
    /// The kind, below [`FAILURES`].
    pub kind: u8,
    /// Our address.
    pub sender: Option<IpAddr>,
    /// The address of the host.
    pub receiver: Option<IpAddr>,
    /// The name of the host.
    pub host: String,
    /// The reason; empty where the kind says all.
    pub reason: String,
}

impl TlsSessions {
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.sessions.to_le_bytes());
        to.push(self.policy);
        put_text(to, &self.domain, TEXT_OCTETS_MAX);
        for list in [&self.lines, &self.mx] {
            put_length(to, list.len().min(LINES_MAX));
            for line in list.iter().take(LINES_MAX) {
                put_text(to, line, TEXT_OCTETS_MAX);
            }
        }
        to.push(u8::from(self.failed.is_some()));
        if let Some(failed) = &self.failed {
            to.push(failed.kind);
            put_address(to, failed.sender);
            put_address(to, failed.receiver);
            put_text(to, &failed.host, TEXT_OCTETS_MAX);
            put_text(to, &failed.reason, TEXT_OCTETS_MAX);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, HandoffError> {
        Ok(Self {
            sessions: reader.count("connections")?,
            policy: number(reader, "policy", "0, 1 or 2", POLICIES)?,
            domain: text(reader, "domain", TEXT_OCTETS_MAX)?,
            lines: list(reader, "lines of a policy")?,
            mx: list(reader, "patterns of hosts")?,
            failed: match reader.flag("failure of connections")? {
                true => Some(TlsFailed::decode(reader)?),
                false => None,
            },
        })
    }
}

impl TlsFailed {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, HandoffError> {
        Ok(Self {
            kind: number(reader, "kind of a failure", "at most 10", FAILURES)?,
            sender: address(reader)?,
            receiver: address(reader)?,
            host: text(reader, "host", TEXT_OCTETS_MAX)?,
            reason: text(reader, "reason", TEXT_OCTETS_MAX)?,
        })
    }
}

fn number(
    reader: &mut Reader<'_>,
    field: &'static str,
    expected: &'static str,
    end: u8,
) -> Result<u8, HandoffError> {
    match reader.octet(field)? {
        found if found < end => Ok(found),
        found => Err(value(field, expected, found)),
    }
}

fn list(reader: &mut Reader<'_>, field: &'static str) -> Result<Vec<String>, HandoffError> {
    let count = reader.length(field, LINES_MAX)?;
    (0..count)
        .map(|_| text(reader, field, TEXT_OCTETS_MAX))
        .collect()
}

fn address(reader: &mut Reader<'_>) -> Result<Option<IpAddr>, HandoffError> {
    match reader.flag("presence of an address")? {
        true => reader.address("address").map(Some),
        false => Ok(None),
    }
}

fn put_address(to: &mut Vec<u8>, address: Option<IpAddr>) {
    to.push(u8::from(address.is_some()));
    let octets = match address {
        Some(IpAddr::V4(address)) => address.to_ipv6_mapped().octets(),
        Some(IpAddr::V6(address)) => address.octets(),
        None => return,
    };
    to.extend_from_slice(&octets);
}
