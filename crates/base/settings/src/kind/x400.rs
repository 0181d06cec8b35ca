//! Checks of values about X.400: hosts with ports, and texts that other crates read.

use super::outgoing;
use crate::outgoing::NextHop;

/// Octets of an O/R address as a text.
const ADDRESS_MAX: usize = 1_024;
/// Octets of a word.
const WORD_MAX: usize = 255;

/// Checks the text of an O/R address as far as no knowledge of addresses is needed.
pub(super) fn address(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.len() > ADDRESS_MAX {
        return Err(format!("expected 1 to {ADDRESS_MAX} octets"));
    }
    Ok(text.to_owned())
}

/// Checks a word that becomes part of names of queues, files and lines.
pub(super) fn word(text: &str) -> Result<String, String> {
    let is_fit = |octet: u8| octet.is_ascii_graphic() && octet != b'/';
    if text.is_empty()
        || text.len() > WORD_MAX
        || !text.bytes().all(is_fit)
        || text.starts_with('.')
    {
        return Err(format!(
            "expected 1 to {WORD_MAX} visible characters of ASCII without a slash, the first no dot"
        ));
    }
    Ok(text.to_owned())
}

/// Checks a host with or without a port.
pub(super) fn host(text: &str) -> Result<String, String> {
    match outgoing::next_hop(text)? {
        NextHop::Host { .. } => Ok(text.to_owned()),
        _ => Err("expected a host".to_owned()),
    }
}

/// Checks an address without a port.
pub(super) fn ip_address(text: &str) -> Result<String, String> {
    let address = text.parse::<std::net::IpAddr>();
    address
        .map(|address| address.to_string())
        .map_err(|_| "expected an IP address".to_owned())
}

/// Host and port of a checked text.
pub(crate) fn host_and_port(text: &str, default: u16) -> Option<(String, u16)> {
    match outgoing::next_hop(text) {
        Ok(NextHop::Host { host, port: 0 }) => Some((host, default)),
        Ok(NextHop::Host { host, port }) => Some((host, port)),
        _ => None,
    }
}
