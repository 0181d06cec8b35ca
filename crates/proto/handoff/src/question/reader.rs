//! Whole frames out of the octets of a stream socket.

use super::{Frame, WireError};

/// Octets that a [`Reader`] holds: the most of one read, some hundred questions.
pub const BUFFER_OCTETS: usize = 16_384;

/// A bounded buffer between a stream socket and its frames. The socket writes into the buffer, and frames borrow from the
/// buffer, so that only an incomplete frame at the end is ever moved.
///
/// Usage, in a loop: read from the socket into [`space`](Self::space), report the count to [`filled`](Self::filled), take
/// frames by [`frame`](Self::frame) until there is none.
#[derive(Debug)]
pub struct Reader {
    buffer: Box<[u8]>,
    /// The end of the frames that were taken.
    taken: usize,
    /// The end of the octets that were read.
    filled: usize,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            buffer: vec![0; BUFFER_OCTETS].into_boxed_slice(),
            taken: 0,
            filled: 0,
        }
    }
}

impl Reader {
    /// Returns the place for the next octets: at least `BUFFER_OCTETS` without a frame of the greatest length, once every
    /// whole frame is taken. With whole frames left the place may be empty.
    pub fn space(&mut self) -> &mut [u8] {
        self.buffer.copy_within(self.taken..self.filled, 0);
        self.filled = self.filled.saturating_sub(self.taken);
        self.taken = 0;
        self.buffer.get_mut(self.filled..).unwrap_or_default()
    }

    /// Takes note that the first `octets` of the place hold octets of the peer. A count beyond the place counts as the
    /// whole place.
    pub fn filled(&mut self, octets: usize) {
        self.filled = self.filled.saturating_add(octets).min(self.buffer.len());
    }

    /// Returns the next frame; `None` until more octets come.
    ///
    /// # Errors
    /// [`WireError`] as from [`Frame::read`]; the connection is unusable then, and the error comes again.
    pub fn frame(&mut self) -> Result<Option<Frame<'_>>, WireError> {
        let rest = self.buffer.get(self.taken..self.filled).unwrap_or_default();
        let frame = Frame::read(rest)?;
        if let Some(frame) = frame {
            self.taken = self.taken.saturating_add(frame.octets);
        }
        Ok(frame)
    }

    /// Returns whether octets of an incomplete frame, or whole frames, are left. At the end of the stream such octets show
    /// that the peer broke off.
    #[must_use]
    pub const fn has_rest(&self) -> bool {
        self.taken < self.filled
    }
}
