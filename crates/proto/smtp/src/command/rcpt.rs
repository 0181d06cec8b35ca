//! RCPT TO: who receives (RFC 5321 section 4.1.1.3), with NOTIFY and ORCPT (RFC 3461 sections 4.1 and
//! 4.2, RFC 6533 section 3).

use std::fmt;

use super::parameter::{parameters, set_once, split_path};
use super::{CommandError, Workarounds, xtext};
use crate::address::ForwardPath;

/// Octets of the longest ORCPT (RFC 3461 section 4.2).
pub const ORCPT_OCTETS_MAX: usize = 500;

/// The events about which the sender wants a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Notify {
    /// `NOTIFY=NEVER`
    Never,
    /// `NOTIFY=` with at least one event.
    On {
        /// `SUCCESS`
        success: bool,
        /// `FAILURE`
        failure: bool,
        /// `DELAY`
        delay: bool,
    },
}

impl Notify {
    /// ```text
    /// notify-esmtp-value  = "NEVER" / 1#notify-list-element
    /// notify-list-element = "SUCCESS" / "FAILURE" / "DELAY"
    /// ```
    fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("NEVER") {
            return Some(Self::Never);
        }
        let (mut success, mut failure, mut delay) = (false, false, false);
        for element in text.split(',') {
            let place = if element.eq_ignore_ascii_case("SUCCESS") {
                &mut success
            } else if element.eq_ignore_ascii_case("FAILURE") {
                &mut failure
            } else if element.eq_ignore_ascii_case("DELAY") {
                &mut delay
            } else {
                return None;
            };
            *place = true;
        }
        Some(Self::On {
            success,
            failure,
            delay,
        })
    }
}

impl fmt::Display for Notify {
    /// The value of `NOTIFY=`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::On {
            success,
            failure,
            delay,
        } = *self
        else {
            return f.write_str("NEVER");
        };
        let words = [(success, "SUCCESS"), (failure, "FAILURE"), (delay, "DELAY")];
        for (index, (_, word)) in words.into_iter().filter(|(set, _)| *set).enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            f.write_str(word)?;
        }
        Ok(())
    }
}

/// The original recipient, `addr-type ";" xtext`, checked, as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Orcpt(Box<str>);

impl Orcpt {
    /// Parses an original recipient of at most [`ORCPT_OCTETS_MAX`] octets; `None` for invalid text.
    ///
    /// ```text
    /// original-recipient-address = addr-type ";" xtext
    /// addr-type                  = atom
    /// utf-8-addr-xtext           = *( QCHAR / EmbeddedUnicodeChar )  ; type utf-8, RFC 6533
    /// utf-8-addr-unitext         = *( QUCHAR / EmbeddedUnicodeChar )
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, address) = text.split_once(';')?;
        let atom = !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let fits = text.len() <= ORCPT_OCTETS_MAX && !address.is_empty();
        let valid = if kind.eq_ignore_ascii_case("utf-8") {
            is_unitext(address)
        } else {
            xtext::decode(address).is_some()
        };
        (atom && fits && valid).then(|| Self(text.into()))
    }

    /// Type and address as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The type of the address, as `rfc822`.
    #[must_use]
    pub fn address_type(&self) -> &str {
        self.0.split_once(';').map_or("", |(kind, _)| kind)
    }

    /// The address with xtext decoded; an address of type `utf-8` as written.
    #[must_use]
    pub fn address(&self) -> String {
        let (kind, address) = self.0.split_once(';').unwrap_or_default();
        match xtext::decode(address) {
            Some(octets) if !kind.eq_ignore_ascii_case("utf-8") => {
                String::from_utf8_lossy(&octets).into_owned()
            }
            _ => address.to_owned(),
        }
    }

    /// Whether the value can be sent without SMTPUTF8.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.0.is_ascii()
    }
}

impl fmt::Display for Orcpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// ```text
/// QUCHAR              = QCHAR / UTF8-2 / UTF8-3 / UTF8-4
/// QCHAR               = %x21-2a / %x2c-3c / %x3e-5b / %x5d-7e
/// EmbeddedUnicodeChar = %x5C.78 "{" HEXPOINT "}"
/// ```
fn is_unitext(text: &str) -> bool {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '\\' => {
                let embedded = rest
                    .strip_prefix("x{")
                    .and_then(|rest| rest.split_once('}'));
                let Some((point, after)) = embedded else {
                    return false;
                };
                let hex = (1..=6).contains(&point.len())
                    && point
                        .bytes()
                        .all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F'));
                if !hex {
                    return false;
                }
                rest = after;
            }
            '+' | '=' | ' ' => return false,
            c if c.is_control() => return false,
            _ => {}
        }
    }
    true
}

/// The arguments of RCPT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RcptTo {
    /// Who receives.
    pub forward_path: ForwardPath,
    /// `NOTIFY=`
    pub notify: Option<Notify>,
    /// `ORCPT=`
    pub orcpt: Option<Orcpt>,
}

impl RcptTo {
    /// The command without parameters.
    #[must_use]
    pub fn new(forward_path: ForwardPath) -> Self {
        Self {
            forward_path,
            notify: None,
            orcpt: None,
        }
    }

    /// Parses the text behind `RCPT` and a space.
    ///
    /// ```text
    /// rcpt = "RCPT TO:" ( "<Postmaster@" Domain ">" / "<Postmaster>" / Forward-path )
    ///        [SP Rcpt-parameters] CRLF
    /// ```
    ///
    /// # Errors
    ///
    /// The error in the path or a parameter.
    pub fn parse(argument: &str, workarounds: Workarounds) -> Result<Self, CommandError> {
        let (path, rest) = split_path(argument, "TO:", workarounds)
            .ok_or(CommandError::Usage("RCPT TO:<address>"))?;
        let forward_path = ForwardPath::parse(&path).map_err(CommandError::ForwardPath)?;
        let mut rcpt = Self::new(forward_path);
        for (keyword, value) in parameters(rest) {
            if keyword.eq_ignore_ascii_case("NOTIFY") {
                set_once(&mut rcpt.notify, "NOTIFY", value.and_then(Notify::parse))?;
            } else if keyword.eq_ignore_ascii_case("ORCPT") {
                set_once(&mut rcpt.orcpt, "ORCPT", value.and_then(Orcpt::parse))?;
            } else {
                return Err(CommandError::UnknownParameter);
            }
        }
        Ok(rcpt)
    }

    /// Whether the command has any parameter, which only EHLO sessions may use.
    #[must_use]
    pub fn has_parameters(&self) -> bool {
        self.notify.is_some() || self.orcpt.is_some()
    }

    /// Whether the command can be sent without SMTPUTF8.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.forward_path.is_ascii() && self.orcpt.as_ref().is_none_or(Orcpt::is_ascii)
    }

    /// Appends the command with CRLF.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut push = |text: &str| out.extend_from_slice(text.as_bytes());
        push("RCPT TO:<");
        push(self.forward_path.as_str());
        push(">");
        if let Some(notify) = self.notify {
            push(" NOTIFY=");
            push(&notify.to_string());
        }
        if let Some(orcpt) = &self.orcpt {
            push(" ORCPT=");
            push(orcpt.as_str());
        }
        push("\r\n");
    }
}
