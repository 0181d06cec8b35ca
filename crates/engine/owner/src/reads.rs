//! Reads: which replica received a request, and the handling of missing answers.

use std::time::Duration;

use vere_spoolwire::{Request, Seq};
use vere_units::Timestamp;

use super::Owner;
use super::config::Link;
use super::config::OwnerError;
use super::connection::Connection;
use super::question::{Purpose, Read};

/// Time for which a rebuild waits for its source. A source may need seconds to read spilled
/// records.
const PATIENCE: Duration = Duration::from_secs(10);

impl Owner {
    /// Returns unanswered reads of a lost replica to the queue, and ends those of rebuilds.
    pub(super) fn unasked(&mut self, index: usize) {
        let mut lost = Vec::new();
        self.reads.retain(|seq, read| {
            if read.asked != Some(index) {
                return true;
            }
            read.asked = None;
            match read.purpose {
                Purpose::Caller => true,
                Purpose::Learn => false,
                Purpose::CopyQueues(target) | Purpose::CopyRecords(target, _) => {
                    lost.push((target, *seq));
                    false
                }
            }
        });
        for (target, seq) in lost {
            if let Some(rebuild) = &mut self.replicas[target].rebuild {
                rebuild.source_lost(seq);
            }
        }
    }

    /// Restarts the timeout of a read whose block is arriving, however long that takes.
    pub(super) fn note_arriving(&mut self, link: Link, now: Timestamp) {
        let arriving = self.connection(link).and_then(Connection::arriving);
        if let Some(read) = arriving.and_then(|seq| self.reads.get_mut(&seq))
            && read.asked == Some(link.node)
        {
            read.asked_at = now;
        }
    }

    /// Repeats reads of a rebuild that exceed their timeout, with another replica if possible. The
    /// host has its own timeout for its reads.
    pub(super) fn ask_late_anew(&mut self, now: Timestamp) {
        let late = |read: &Read| now.saturating_since(read.asked_at) >= PATIENCE;
        let copies = |read: &Read| match read.purpose {
            Purpose::CopyQueues(target) | Purpose::CopyRecords(target, _) => Some(target),
            Purpose::Caller | Purpose::Learn => None,
        };
        let waits = self.reads.iter().filter(|(_, read)| late(read));
        let waits = waits.filter_map(|(seq, read)| Some((*seq, copies(read)?, read.asked?)));
        for (seq, target, source) in waits.collect::<Vec<_>>() {
            self.reads.remove(&seq);
            if let Some(rebuild) = &mut self.replicas[target].rebuild {
                rebuild.source_late(seq, source);
            }
        }
    }

    /// Removes and returns the read that a node's answer belongs to, unless another node has the
    /// read now.
    ///
    /// # Errors
    ///
    /// [`OwnerError::Protocol`] for an answer that does not fit the request; the read stays
    /// outstanding.
    pub(super) fn take_read(
        &mut self,
        seq: Seq,
        node: usize,
        fits: impl FnOnce(&Request) -> bool,
    ) -> Result<Option<Read>, OwnerError> {
        match self.reads.get(&seq) {
            Some(read) if read.asked != Some(node) => Ok(None),
            Some(read) if !fits(&read.request) => Err(OwnerError::Protocol),
            _ => Ok(self.reads.remove(&seq)),
        }
    }
}
