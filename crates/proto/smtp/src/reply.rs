//! Replies (RFC 5321 section 4.2) with enhanced status codes (RFC 3463, RFC 2034).

mod parser;

use std::fmt;
use std::str::FromStr;

pub use parser::{ReplyError, ReplyLimits, ReplyParser};

/// Octets of the longest reply line sent, with CRLF (RFC 5321 section 4.5.3.1.5).
pub const REPLY_LINE_OCTETS_MAX: usize = 512;

/// The result of a command, by the first digit of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReplyClass {
    /// 2yz: done.
    Completion,
    /// 3yz: accepted, more is expected.
    Intermediate,
    /// 4yz: refused now, may succeed later.
    Transient,
    /// 5yz: refused for good.
    Permanent,
}

/// An enhanced status code `class.subject.detail` (RFC 3463 section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EnhancedStatusCode {
    /// 2, 4 or 5.
    pub class: u8,
    /// The subject, 0 to 999.
    pub subject: u16,
    /// The detail of the subject, 0 to 999.
    pub detail: u16,
}

impl EnhancedStatusCode {
    /// Puts a code together; the parts are not checked.
    #[must_use]
    pub const fn new(class: u8, subject: u16, detail: u16) -> Self {
        Self {
            class,
            subject,
            detail,
        }
    }

    fn push(self, out: &mut Vec<u8>) {
        push_decimal(out, u16::from(self.class));
        out.push(b'.');
        push_decimal(out, self.subject);
        out.push(b'.');
        push_decimal(out, self.detail);
    }
}

impl fmt::Display for EnhancedStatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(9);
        self.push(&mut text);
        f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// The text is no enhanced status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an enhanced status code")]
pub struct NotAStatusCode;

impl FromStr for EnhancedStatusCode {
    type Err = NotAStatusCode;

    /// ```text
    /// status-code = class "." subject "." detail
    /// class       = "2"/"4"/"5"
    /// subject     = 1*3digit
    /// detail      = 1*3digit
    /// ```
    fn from_str(text: &str) -> Result<Self, NotAStatusCode> {
        let part = |part: Option<&str>| {
            part.filter(|p| (1..=3).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|p| p.parse::<u16>().ok())
                .ok_or(NotAStatusCode)
        };
        let mut parts = text.split('.');
        let class = match parts.next() {
            Some("2") => 2,
            Some("4") => 4,
            Some("5") => 5,
            _ => return Err(NotAStatusCode),
        };
        let code = Self::new(class, part(parts.next())?, part(parts.next())?);
        if parts.next().is_some() {
            Err(NotAStatusCode)
        } else {
            Ok(code)
        }
    }
}

/// A reply: three digits, perhaps an enhanced status code, and lines of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// 200 to 599.
    pub code: u16,
    /// The enhanced status code, the same on every line.
    pub enhanced: Option<EnhancedStatusCode>,
    /// The lines without codes and line ends; no line at all means one empty line.
    pub text: Vec<String>,
}

impl Reply {
    /// A reply of a single line.
    #[must_use]
    pub fn new(
        code: u16,
        enhanced: impl Into<Option<EnhancedStatusCode>>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            code,
            enhanced: enhanced.into(),
            text: vec![text.into()],
        }
    }

    /// A reply of several lines without an enhanced status code, as EHLO is answered.
    #[must_use]
    pub fn lines(code: u16, text: Vec<String>) -> Self {
        Self {
            code,
            enhanced: None,
            text,
        }
    }

    /// The class by the first digit; a code out of range is taken as permanent.
    #[must_use]
    pub fn class(&self) -> ReplyClass {
        match self.code {
            200..=299 => ReplyClass::Completion,
            300..=399 => ReplyClass::Intermediate,
            400..=499 => ReplyClass::Transient,
            _ => ReplyClass::Permanent,
        }
    }

    /// Whether the command was carried out (2yz).
    #[must_use]
    pub fn is_completion(&self) -> bool {
        self.class() == ReplyClass::Completion
    }

    /// Whether the server waits for more of the same command (3yz).
    #[must_use]
    pub fn is_intermediate(&self) -> bool {
        self.class() == ReplyClass::Intermediate
    }

    /// Whether trying later may help (4yz).
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.class() == ReplyClass::Transient
    }

    /// Whether trying again is of no use (5yz).
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.class() == ReplyClass::Permanent
    }

    /// Appends the reply as it goes over the wire, with CRLF after each line.
    ///
    /// A control character in the text becomes `?`, so that no text can end a line, and text beyond
    /// [`REPLY_LINE_OCTETS_MAX`] is cut.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self.text.split_last() {
            None => encode_line(out, self.code, self.enhanced, "", true),
            Some((last, before)) => {
                for line in before {
                    encode_line(out, self.code, self.enhanced, line, false);
                }
                encode_line(out, self.code, self.enhanced, last, true);
            }
        }
    }
}

/// Appends a line of a reply; see [`Reply::encode`].
pub(crate) fn encode_line(
    out: &mut Vec<u8>,
    code: u16,
    enhanced: Option<EnhancedStatusCode>,
    text: &str,
    last: bool,
) {
    let start = out.len();
    push_decimal(out, code.clamp(200, 599));
    out.push(if last { b' ' } else { b'-' });
    if let Some(status) = enhanced {
        status.push(out);
        out.push(b' ');
    }
    let used = out.len().saturating_sub(start).saturating_add(2);
    let room = REPLY_LINE_OCTETS_MAX.saturating_sub(used);
    let text = text
        .get(..text.floor_char_boundary(room))
        .unwrap_or_default();
    out.extend(
        text.bytes()
            .map(|b| if b.is_ascii_control() { b'?' } else { b }),
    );
    out.extend_from_slice(b"\r\n");
}

/// Appends a number without the cost of the formatting machinery.
fn push_decimal(out: &mut Vec<u8>, number: u16) {
    let digit = |divisor: u16| {
        let digit = number.checked_div(divisor).unwrap_or_default() % 10;
        b'0'.saturating_add(u8::try_from(digit).unwrap_or_default())
    };
    for divisor in [10_000, 1000, 100, 10] {
        if number >= divisor {
            out.push(digit(divisor));
        }
    }
    out.push(digit(1));
}

impl fmt::Display for Reply {
    /// The reply on a single line, as for a log: `550 5.1.1 no such mailbox`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(status) = self.enhanced {
            write!(f, " {status}")?;
        }
        for line in &self.text {
            write!(f, " {}", line.escape_debug())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
