//! The dialogue of a client that follows its steps.

use std::borrow::Cow;
use std::io;

use memchr::memchr;

use super::visit::{Step, TEXT_END};
use crate::wire::{Buffer, Link, Output, Readiness};

/// Octets of the longest accepted reply, all lines together.
const REPLY_MAX: usize = 16 * 1024;

/// What the server said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// No whole reply yet.
    Nothing,
    /// The reply that the client waits for.
    Expected,
    /// Another reply, with its code.
    Other(u16),
    /// The end of the connection.
    Closed,
}

/// The dialogue of a session.
#[derive(Debug)]
pub(super) struct Talk {
    steps: Vec<Step>,
    /// Replies received.
    step: usize,
    /// The number of replies behind which a handshake of TLS is due.
    handshake: Option<usize>,
    input: Buffer,
    output: Output,
}

impl Talk {
    pub(super) fn new(steps: Vec<Step>) -> Self {
        Self {
            steps,
            step: 0,
            handshake: None,
            input: Buffer::default(),
            output: Output::default(),
        }
    }

    /// The same dialogue behind STARTTLS.
    pub(super) fn encrypted(mut steps: Vec<Step>) -> Self {
        let hello = steps
            .first()
            .map_or(Cow::Borrowed(&b""[..]), |(_, text)| text.clone());
        let starttls = Cow::Borrowed(&b"STARTTLS\r\n"[..]);
        steps.splice(1..1, [("250", starttls), ("220", hello)]);
        Self {
            handshake: Some(3),
            ..Self::new(steps)
        }
    }

    /// Queues a line that comes before everything else.
    pub(super) fn announce(&mut self, line: &str) {
        self.output.push(line.as_bytes());
    }

    /// Whether a handshake of TLS is due now.
    pub(super) fn wants_handshake(&self) -> bool {
        self.handshake == Some(self.step)
    }

    /// Whether the last reply has answered the text of a message.
    pub(super) fn has_accepted(&self) -> bool {
        let answered = self.step.checked_sub(2).and_then(|at| self.steps.get(at));
        answered.is_some_and(|(_, text)| text.ends_with(TEXT_END))
    }

    /// Whether the client closes now.
    pub(super) fn is_over(&self) -> bool {
        self.text().is_empty()
    }

    /// The text to send after the last reply.
    fn text(&self) -> &[u8] {
        let step = self.step.checked_sub(1).and_then(|at| self.steps.get(at));
        step.map_or(&[], |(_, text)| text)
    }

    /// Queues the text that follows the last reply.
    pub(super) fn send(&mut self) {
        if let Some((_, text)) = self.step.checked_sub(1).and_then(|at| self.steps.get(at)) {
            self.output.push(text);
        }
    }

    /// Writes queued text, and reads the next reply.
    pub(super) fn go_on(&mut self, link: &mut Link) -> io::Result<Said> {
        link.write(&mut self.output)?;
        loop {
            let said = self.reply();
            if said != Said::Nothing {
                return Ok(said);
            }
            match link.read(&mut self.input)? {
                Readiness::Closed => return Ok(Said::Closed),
                Readiness::Drained => return Ok(Said::Nothing),
                Readiness::More => {}
            }
        }
    }

    /// Takes a whole reply from the input; its last line counts.
    fn reply(&mut self) -> Said {
        let data = self.input.data();
        let mut at = 0;
        while let Some(length) = memchr(b'\n', &data[at..]) {
            let line = &data[at..at + length];
            at += length + 1;
            if line.get(3) == Some(&b'-') {
                continue;
            }
            let code = line.get(..3).unwrap_or_default();
            let code = std::str::from_utf8(code)
                .ok()
                .and_then(|code| code.parse().ok());
            let expected = self.steps.get(self.step).map(|(expected, _)| *expected);
            let is_expected =
                expected.is_some_and(|expected| line.starts_with(expected.as_bytes()));
            self.input.consume(at);
            self.step += usize::from(is_expected);
            return match is_expected {
                true => Said::Expected,
                false => Said::Other(code.unwrap_or(0)),
            };
        }
        match data.len() > REPLY_MAX {
            true => Said::Other(0),
            false => Said::Nothing,
        }
    }
}
