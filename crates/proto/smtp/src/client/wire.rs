//! The send queue, and the replies awaited for its commands.

use std::collections::VecDeque;

use bytes::Bytes;

use super::close::Stage;

/// Octets of commands and copied text that may wait; more output is made after these octets are
/// sent.
pub(super) const BUFFER_HIGH: usize = 16 * 1024;

/// Capacity kept by an idle connection.
const BUFFER_IDLE: usize = 1024;

/// The command that a reply answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    Greeting,
    /// EHLO or LHLO.
    Hello,
    /// HELO, after EHLO was not understood.
    Helo,
    StartTls,
    Auth,
    Reset,
    Mail,
    /// RCPT for the recipient of this index.
    Recipient(usize),
    Data,
    /// The message, or the next recipient of the message in LMTP.
    Final,
    /// The empty message that ends a DATA without recipients.
    Lone,
    Quit,
}

impl Awaited {
    pub(super) fn stage(self) -> Stage {
        match self {
            Self::Greeting => Stage::Greeting,
            Self::Hello | Self::Helo => Stage::Hello,
            Self::StartTls => Stage::StartTls,
            Self::Auth => Stage::Auth,
            Self::Reset => Stage::Reset,
            Self::Mail => Stage::Mail,
            Self::Recipient(_) => Stage::Recipient,
            Self::Data => Stage::Data,
            Self::Final | Self::Lone => Stage::Final,
            Self::Quit => Stage::Quit,
        }
    }
}

#[derive(Debug)]
struct Expected {
    awaited: Awaited,
    /// How many octets must have gone before the server can have seen the command.
    from: u64,
}

/// Output and the replies awaited, in order.
#[derive(Debug, Default)]
pub(super) struct Wire {
    buffer: Vec<u8>,
    /// How much of `buffer` has gone.
    start: usize,
    /// A part of the message sent behind `buffer` without being copied.
    direct: Bytes,
    /// Octets ever put in.
    queued: u64,
    /// Octets ever sent.
    sent: u64,
    expected: VecDeque<Expected>,
}

impl Wire {
    pub(super) fn output(&self) -> &[u8] {
        match self.buffer.get(self.start..) {
            Some(rest) if !rest.is_empty() => rest,
            _ => &self.direct,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.output().is_empty()
    }

    /// Says whether more may be made; nothing can be put behind a direct part.
    pub(super) fn has_room(&self) -> bool {
        self.direct.is_empty() && self.buffered() < BUFFER_HIGH
    }

    /// Octets waiting in the buffer.
    pub(super) fn buffered(&self) -> usize {
        self.buffer.len().saturating_sub(self.start)
    }

    /// Records that octets of [`Wire::output`] were sent.
    pub(super) fn sent(&mut self, octets: usize) {
        let octets = octets.min(self.output().len());
        self.sent = self.sent.saturating_add(octets as u64);
        if self.buffered() > 0 {
            self.start = self.start.saturating_add(octets);
            if self.start >= self.buffer.len() {
                self.buffer.clear();
                self.start = 0;
            }
        } else {
            drop(self.direct.split_to(octets));
        }
    }

    /// Appends the output of `write`.
    pub(super) fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(self.direct.is_empty(), "nothing goes behind a direct part");
        let before = self.buffer.len();
        write(&mut self.buffer);
        let added = self.buffer.len().saturating_sub(before);
        self.queued = self.queued.saturating_add(added as u64);
    }

    /// Puts a part of the message behind the buffer.
    pub(super) fn put_direct(&mut self, part: Bytes) {
        debug_assert!(self.direct.is_empty(), "one direct part at a time");
        self.queued = self.queued.saturating_add(part.len() as u64);
        self.direct = part;
    }

    /// Appends a command and awaits the reply.
    pub(super) fn command(&mut self, awaited: Awaited, write: impl FnOnce(&mut Vec<u8>)) {
        self.put(write);
        self.await_reply(awaited);
    }

    /// Awaits a reply to everything put in so far.
    pub(super) fn await_reply(&mut self, awaited: Awaited) {
        let from = self.queued;
        self.expected.push_back(Expected { awaited, from });
    }

    /// Awaits a reply to what is not all put in yet, see [`Wire::release`].
    pub(super) fn hold_reply(&mut self, awaited: Awaited) {
        self.expected.push_back(Expected {
            awaited,
            from: u64::MAX,
        });
    }

    /// Marks the held replies as awaited from here on: all octets of their commands are queued.
    pub(super) fn release(&mut self) {
        for expected in self
            .expected
            .iter_mut()
            .filter(|expected| expected.from == u64::MAX)
        {
            expected.from = self.queued;
        }
    }

    /// Cancels an AUTH exchange before whatever waits (RFC 4954 section 4).
    pub(super) fn cancel_exchange(&mut self) {
        let behind = std::mem::take(&mut self.buffer);
        self.put(|out| out.extend_from_slice(b"*\r\n"));
        self.buffer.extend_from_slice(&behind);
    }

    /// The reply awaited next.
    pub(super) fn awaited(&self) -> Option<Awaited> {
        self.expected.front().map(|expected| expected.awaited)
    }

    pub(super) fn is_awaiting(&self) -> bool {
        !self.expected.is_empty()
    }

    /// Takes the next awaited reply, and returns whether the reply comes before its command was
    /// sent.
    pub(super) fn take_awaited(&mut self) -> Option<(Awaited, bool)> {
        let expected = self.expected.pop_front()?;
        Some((expected.awaited, expected.from > self.sent))
    }

    /// Drops all queued octets and all awaited replies.
    pub(super) fn clear(&mut self) {
        *self = Self {
            queued: self.sent,
            sent: self.sent,
            ..Self::default()
        };
    }

    /// Frees memory that only a message in flight needs.
    pub(super) fn shrink(&mut self) {
        if self.buffer.is_empty() && self.buffer.capacity() > BUFFER_IDLE {
            self.buffer = Vec::new();
        }
    }
}
