//! Octets queued for a socket.

/// The output of a machine, first octets first.
#[derive(Debug, Default)]
pub(crate) struct Output {
    octets: Vec<u8>,
    sent: usize,
}

impl Output {
    /// Appends `octets`.
    pub(crate) fn push(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// Queues the whole of `octets` in place of an empty queue, whose space goes back to `octets`.
    pub(crate) fn push_whole(&mut self, octets: &mut Vec<u8>) {
        if self.pending().is_empty() {
            self.octets.clear();
            self.sent = 0;
            std::mem::swap(&mut self.octets, octets);
        } else {
            self.octets.append(octets);
        }
    }

    /// Octets still to be sent.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.octets[self.sent..]
    }

    /// Forgets the first `count` octets of [`Output::pending`].
    pub(crate) fn sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent >= self.octets.len() {
            self.octets.clear();
            self.sent = 0;
        }
    }
}
