//! XCLIENT: a trusted proxy says who the client really is (Postfix's XCLIENT_README).
//!
//! The attributes replace what the connection showed; the session then begins anew with a greeting.

use std::net::{IpAddr, Ipv6Addr};

use crate::address::DomainOrLiteral;
use crate::command::CommandError;

/// The attributes announced after EHLO.
pub const ATTRIBUTES: &str = "NAME ADDR PORT PROTO HELO LOGIN DESTADDR DESTPORT";

/// Octets of the longest attribute value, decoded.
const VALUE_OCTETS_MAX: usize = 255;

/// The attributes of XCLIENT; an absent attribute changes no value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct XclientAttributes {
    /// `NAME=`: the client's name in the DNS; inner nothing for `[UNAVAILABLE]` and `[TEMPUNAVAIL]`.
    pub name: Option<Option<String>>,
    /// `ADDR=`: the client's address.
    pub address: Option<IpAddr>,
    /// `PORT=`: the client's port.
    pub port: Option<u16>,
    /// `PROTO=`: whether the client said EHLO to the proxy.
    pub esmtp: Option<bool>,
    /// `HELO=`: the name given by the client; an inner `None` for `[UNAVAILABLE]`.
    pub helo: Option<Option<DomainOrLiteral>>,
    /// `LOGIN=`: the account the client has proved to be; inner nothing for `[UNAVAILABLE]`.
    pub login: Option<Option<String>>,
    /// `DESTADDR=`: the address the client connected to.
    pub local_address: Option<IpAddr>,
    /// `DESTPORT=`: the port the client connected to.
    pub local_port: Option<u16>,
}

impl XclientAttributes {
    /// Parses the text behind `XCLIENT` and a space.
    ///
    /// ```text
    /// xclient-command = XCLIENT 1*( SP attribute-name "=" attribute-value )
    /// attribute-name  = ( NAME | ADDR | PORT | PROTO | HELO | LOGIN | DESTADDR | DESTPORT )
    /// attribute-value = xtext
    /// ```
    ///
    /// # Errors
    ///
    /// [`CommandError::Usage`] without any attribute, [`CommandError::XclientAttribute`] for an unknown,
    /// repeated or malformed attribute.
    pub fn parse(argument: &str) -> Result<Self, CommandError> {
        if argument.is_empty() {
            return Err(CommandError::Usage("XCLIENT attribute=value..."));
        }
        let mut attributes = Self::default();
        for part in argument.split(' ').filter(|part| !part.is_empty()) {
            attributes.set(part).ok_or(CommandError::XclientAttribute)?;
        }
        Ok(attributes)
    }

    fn set(&mut self, part: &str) -> Option<()> {
        let (name, value) = part.split_once('=')?;
        let value = decode(value)?;
        let available = (!is_unavailable(&value)).then_some(value.as_str());
        match name.to_ascii_uppercase().as_str() {
            "NAME" => once(&mut self.name, available.map(str::to_owned)),
            "ADDR" => once(&mut self.address, address(available?)?),
            "PORT" => once(&mut self.port, available.map_or(Some(0), port)?),
            "PROTO" => once(&mut self.esmtp, protocol(available?)?),
            "HELO" => {
                let helo = available.map(DomainOrLiteral::parse).transpose().ok()?;
                once(&mut self.helo, helo)
            }
            "LOGIN" => once(&mut self.login, available.map(str::to_owned)),
            "DESTADDR" => once(&mut self.local_address, address(available?)?),
            "DESTPORT" => once(&mut self.local_port, available.map_or(Some(0), port)?),
            _ => None,
        }
    }
}

fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    if place.is_some() {
        return None;
    }
    *place = Some(value);
    Some(())
}

/// The text behind xtext; refused when it is empty, too long, not UTF-8 or has control characters.
fn decode(value: &str) -> Option<String> {
    let text = String::from_utf8(crate::command::decode_xtext(value)?).ok()?;
    let fits = !text.is_empty() && text.len() <= VALUE_OCTETS_MAX;
    (fits && !text.chars().any(char::is_control)).then_some(text)
}

fn is_unavailable(value: &str) -> bool {
    value.eq_ignore_ascii_case("[UNAVAILABLE]") || value.eq_ignore_ascii_case("[TEMPUNAVAIL]")
}

fn address(text: &str) -> Option<IpAddr> {
    match text.split_at_checked("IPV6:".len()) {
        Some((tag, rest)) if tag.eq_ignore_ascii_case("IPV6:") => {
            rest.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
        }
        _ => text.parse().ok(),
    }
}

fn port(text: &str) -> Option<u16> {
    text.bytes()
        .all(|octet| octet.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

fn protocol(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("ESMTP") {
        Some(true)
    } else if text.eq_ignore_ascii_case("SMTP") {
        Some(false)
    } else {
        None
    }
}
