//! Octets between a socket and a machine.

/// The space first reserved for a connection that sends.
const FIRST: usize = 16 * 1024;

/// A growing buffer that a socket reads into in place and a machine consumes from the front.
///
/// The buffer reserves no memory before the first octet and never shrinks: a connection that carried a large message
/// keeps the space for the next message.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    octets: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// Octets received and not yet consumed.
    pub(crate) fn data(&self) -> &[u8] {
        &self.octets[self.start..self.end]
    }

    /// Forgets the first `count` octets of [`Buffer::data`].
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Free space behind the data, at least 4 KiB: moves the data to the front when the move is enough, else doubles
    /// the buffer.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.octets.len() - self.end < 4096 {
            if self.start >= self.octets.len() / 2 {
                self.octets.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            if self.octets.len() - self.end < 4096 {
                self.octets.resize((self.octets.len() * 2).max(FIRST), 0);
            }
        }
        &mut self.octets[self.end..]
    }

    /// Records that `count` octets were written to the front of [`Buffer::space`].
    pub(crate) fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.octets.len());
    }
}

#[cfg(test)]
mod tests {
    use super::Buffer;

    #[test]
    fn data_survives_growth_and_moves() {
        let mut buffer = Buffer::default();
        let mut expected: Vec<u8> = Vec::new();
        let mut next = 0_u8;
        for round in 0..200_usize {
            let part: Vec<u8> = (0..997)
                .map(|_| {
                    next = next.wrapping_add(1);
                    next
                })
                .collect();
            buffer.space()[..part.len()].copy_from_slice(&part);
            buffer.filled(part.len());
            expected.extend_from_slice(&part);
            let gone = (round * 13) % expected.len();
            buffer.consume(gone);
            expected.drain(..gone);
            assert_eq!(buffer.data(), expected);
        }
    }
}
