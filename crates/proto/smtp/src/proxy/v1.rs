//! Version 1, a line of text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use super::{Header, ProxyError};

pub(super) const SIGNATURE: &[u8] = b"PROXY ";

/// Octets of the longest line, with CRLF (section 2.1, the UNKNOWN case).
const LINE_LENGTH_MAX: usize = 107;

/// Reads the line.
///
/// ```text
/// line  = "PROXY " ( known / "UNKNOWN" *( %x20-7E ) ) CRLF
/// known = ( "TCP4" / "TCP6" ) SP source SP destination SP source-port SP destination-port
/// port  = "0" / ( %x31-39 *4DIGIT )        ; to 65535
/// ```
pub(super) fn decode(octets: &[u8]) -> Result<Option<(Header, usize)>, ProxyError> {
    let within = octets.get(..LINE_LENGTH_MAX).unwrap_or(octets);
    let Some(end) = memchr::memchr(b'\n', within) else {
        return if octets.len() < LINE_LENGTH_MAX {
            Ok(None)
        } else {
            Err(ProxyError::TooLong(LINE_LENGTH_MAX))
        };
    };
    let line = within.get(..end).and_then(|line| line.strip_suffix(b"\r"));
    let line = line.ok_or(ProxyError::Line("line end"))?;
    let header = parse(
        line.strip_prefix(SIGNATURE)
            .ok_or(ProxyError::NoSignature)?,
    )?;
    Ok(Some((header, end.saturating_add(1))))
}

fn parse(line: &[u8]) -> Result<Header, ProxyError> {
    let line = std::str::from_utf8(line)
        .ok()
        .filter(|text| text.bytes().all(|octet| matches!(octet, b' '..=b'~')))
        .ok_or(ProxyError::Line("character"))?;
    let mut fields = line.split(' ');
    let address = match fields.next() {
        Some("TCP4") => address::<Ipv4Addr>,
        Some("TCP6") => address::<Ipv6Addr>,
        // The rest of the line must be skipped, whatever the content.
        Some("UNKNOWN") => return Ok(Header::Unknown),
        _ => return Err(ProxyError::Line("protocol")),
    };
    let (source, destination) = (address(fields.next())?, address(fields.next())?);
    let (source_port, destination_port) = (port(fields.next())?, port(fields.next())?);
    if fields.next().is_some() {
        return Err(ProxyError::Line("end"));
    }
    Ok(Header::Proxied {
        source: SocketAddr::new(source, source_port),
        destination: SocketAddr::new(destination, destination_port),
    })
}

fn address<A: FromStr + Into<IpAddr>>(field: Option<&str>) -> Result<IpAddr, ProxyError> {
    let parsed = field.and_then(|text| text.parse::<A>().ok());
    parsed.map(Into::into).ok_or(ProxyError::Line("address"))
}

fn port(field: Option<&str>) -> Result<u16, ProxyError> {
    field
        .filter(|text| *text == "0" || !text.starts_with(['0', '+']))
        .and_then(|text| text.parse().ok())
        .ok_or(ProxyError::Line("port"))
}
