//! Reads: what was asked of which replica, and what becomes of it without an answer.

use std::time::Duration;

use vere_spoolwire::{Request, Seq};
use vere_units::Timestamp;

use super::Owner;
use super::config::Link;
use super::config::OwnerError;
use super::connection::Connection;
use super::question::{Purpose, Read};

/// How long a rebuild waits for an answer of its source. Reading back what is spilled may take seconds.
const PATIENCE: Duration = Duration::from_secs(10);

impl Owner {
    /// What was asked of a replica will not be answered: others are asked.
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

    /// A block that is on its way is not late, however long it takes.
    pub(super) fn note_arriving(&mut self, link: Link, now: Timestamp) {
        let arriving = self.connection(link).and_then(Connection::arriving);
        if let Some(read) = arriving.and_then(|seq| self.reads.get_mut(&seq))
            && read.asked == Some(link.node)
        {
            read.asked_at = now;
        }
    }

    /// What a rebuild waits for too long is asked anew, of another replica if there is one. A caller has a
    /// time of its own.
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

    /// The read that a node answers, unless another one was asked since.
    ///
    /// # Errors
    ///
    /// [`OwnerError::Protocol`] for an answer that does not fit; the read waits for another one.
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
