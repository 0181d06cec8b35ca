//! Reading replies off the wire, within bounds.

use super::{EnhancedStatusCode, Reply};

/// The limits of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Octets of a line with CRLF. RFC 5321 allows 512; servers that quote a message in a refusal are
    /// known to send more.
    pub line_octets_max: usize,
    /// Lines of a reply.
    pub lines_max: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self {
            line_octets_max: 2048,
            lines_max: 128,
        }
    }
}

/// What is wrong with a reply; always the server's fault, and the connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// A line exceeds this many octets.
    #[error("reply line longer than {0} octets")]
    LineTooLong(usize),
    /// A reply exceeds this many lines.
    #[error("reply of more than {0} lines")]
    TooManyLines(usize),
    /// A line does not begin with a code from 200 to 599 and a space, a hyphen or its end.
    #[error("reply line without a valid code")]
    BadCode,
    /// A line of a reply has another code than the lines before it.
    #[error("reply code changed from {first} to {now}")]
    CodeChanged {
        /// The code of the first line.
        first: u16,
        /// The code of this line.
        now: u16,
    },
    /// A CR or LF outside CRLF.
    #[error("bare CR or LF in a reply")]
    BareLineEnd,
}

/// Collects a reply from octets in pieces of any size.
///
/// Holds at most `line_octets_max` octets of an unfinished line and `lines_max` finished lines, and
/// no octets between replies.
///
/// ```text
/// Reply-line = *( Reply-code "-" [ textstring ] CRLF ) Reply-code [ SP textstring ] CRLF
/// Reply-code = %x32-35 %x30-35 %x30-39
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReplyParser {
    limits: ReplyLimits,
    /// The beginning of an unfinished line.
    pub(super) partial: Vec<u8>,
    /// The lines so far of a reply whose last line has not arrived.
    reply: Option<Reply>,
}

impl ReplyParser {
    /// A parser with bounds.
    #[must_use]
    pub fn new(limits: ReplyLimits) -> Self {
        Self {
            limits,
            partial: Vec::new(),
            reply: None,
        }
    }

    /// Takes octets up to the end of a reply: returns the number consumed, and the reply if complete.
    ///
    /// Without a complete reply all octets are consumed.
    ///
    /// # Errors
    ///
    /// The server's error; after an error the parser must not be used any more.
    pub fn parse(&mut self, bytes: &[u8]) -> Result<(usize, Option<Reply>), ReplyError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let Some(end) = memchr::memchr(b'\n', rest) else {
                self.keep(rest)?;
                return Ok((bytes.len(), None));
            };
            let (line, after) = rest
                .split_at_checked(end.saturating_add(1))
                .unwrap_or((rest, &[]));
            rest = after;
            if let Some(reply) = self.take_line(line)? {
                return Ok((bytes.len().saturating_sub(rest.len()), Some(reply)));
            }
        }
        Ok((bytes.len(), None))
    }

    /// Whether a reply has begun and not ended.
    #[must_use]
    pub fn is_within_reply(&self) -> bool {
        self.reply.is_some() || !self.partial.is_empty()
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), ReplyError> {
        if self.partial.len().saturating_add(bytes.len()) > self.limits.line_octets_max {
            return Err(ReplyError::LineTooLong(self.limits.line_octets_max));
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes the rest of a line, up to and with its LF.
    fn take_line(&mut self, line: &[u8]) -> Result<Option<Reply>, ReplyError> {
        if self.partial.is_empty() {
            if line.len() > self.limits.line_octets_max {
                return Err(ReplyError::LineTooLong(self.limits.line_octets_max));
            }
            return self.add_line(line);
        }
        self.keep(line)?;
        let line = std::mem::take(&mut self.partial);
        self.add_line(&line)
    }

    fn add_line(&mut self, line: &[u8]) -> Result<Option<Reply>, ReplyError> {
        let line = line.strip_suffix(b"\r\n").ok_or(ReplyError::BareLineEnd)?;
        if memchr::memchr(b'\r', line).is_some() {
            return Err(ReplyError::BareLineEnd);
        }
        let (code, last, text) = split_line(line)?;
        let text = printable(text);
        match &mut self.reply {
            None => {
                let (enhanced, text) = split_enhanced(code, text);
                self.reply = Some(Reply {
                    code,
                    enhanced,
                    text: vec![text],
                });
            }
            Some(reply) if reply.code != code => {
                return Err(ReplyError::CodeChanged {
                    first: reply.code,
                    now: code,
                });
            }
            Some(reply) if reply.text.len() >= self.limits.lines_max => {
                return Err(ReplyError::TooManyLines(self.limits.lines_max));
            }
            Some(reply) => reply.text.push(match reply.enhanced {
                // Some servers repeat the status code on every line, some do not.
                Some(_) => split_enhanced(code, text).1,
                None => text,
            }),
        }
        Ok(if last { self.reply.take() } else { None })
    }
}

fn split_line(line: &[u8]) -> Result<(u16, bool, &[u8]), ReplyError> {
    let (digits, rest) = line.split_at_checked(3).ok_or(ReplyError::BadCode)?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(ReplyError::BadCode);
    }
    let code = digits.iter().fold(0_u16, |code, digit| {
        code.saturating_mul(10)
            .saturating_add(u16::from(digit.saturating_sub(b'0')))
    });
    if !(200..600).contains(&code) {
        return Err(ReplyError::BadCode);
    }
    match rest.split_first() {
        None => Ok((code, true, rest)),
        Some((b' ', text)) => Ok((code, true, text)),
        Some((b'-', text)) => Ok((code, false, text)),
        Some(_) => Err(ReplyError::BadCode),
    }
}

/// Text that is safe to log and to quote: no control characters, and always UTF-8.
fn printable(text: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(text).into_owned();
    if text.chars().any(char::is_control) {
        text = text
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect();
    }
    text
}

/// Takes a status code off the text if the status code agrees with the reply code (RFC 2034 section
/// 4).
fn split_enhanced(code: u16, text: String) -> (Option<EnhancedStatusCode>, String) {
    let (head, tail) = text.split_once(' ').unwrap_or((&text, ""));
    match head.parse::<EnhancedStatusCode>() {
        Ok(status) if u16::from(status.class) == code / 100 => (Some(status), tail.to_owned()),
        _ => (None, text),
    }
}
