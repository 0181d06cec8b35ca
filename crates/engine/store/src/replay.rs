//! Replaying the log into the metadata.

use std::collections::HashMap;

use vere_ports::mail_meta::{Batch, MetaEngine, Partition};

use crate::batch;
use crate::log::format::{RecordHead, RecordKind};
use crate::log::{OpenError, Replay};

/// Octets of batches applied at once.
const APPLY_OCTETS: usize = 4 * 1024 * 1024;

/// The treatment of a batch whose predecessor is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gap {
    /// Wait for a later batch with all rows of the partition: reclaiming has dropped the missing batches.
    Wait,
    /// Apply the batch: earlier batches are lost, and the remaining batches count.
    Pass,
}

/// Applies the batches of the log that the metadata engine lacks.
#[derive(Debug)]
pub(crate) struct Applying<'a, M> {
    meta: &'a mut M,
    gap: Gap,
    batches: Vec<Batch>,
    octets: usize,
    versions: HashMap<Partition, u64>,
    /// Partitions with a gap, and the position of the gap.
    waiting: HashMap<Partition, u64>,
}

impl<'a, M: MetaEngine> Applying<'a, M> {
    pub(crate) fn new(meta: &'a mut M, gap: Gap) -> Self {
        Self {
            meta,
            gap,
            batches: Vec::new(),
            octets: 0,
            versions: HashMap::new(),
            waiting: HashMap::new(),
        }
    }

    /// Applies a batch from outside the log, before any batch of the log; marks the log as applied up to `upto`.
    pub(crate) fn take(&mut self, batch: Batch, upto: u64) -> Result<(), OpenError> {
        self.batch(batch)
            .and_then(|()| self.apply(upto))
            .map_err(|reason| damaged(upto, reason))
    }

    fn apply(&mut self, upto: u64) -> Result<(), String> {
        self.octets = 0;
        let batches = std::mem::take(&mut self.batches);
        self.meta
            .apply(&batches, upto)
            .map_err(|error| error.to_string())
    }

    /// Queues a batch. A batch with all rows of its partition fits after any version.
    fn batch(&mut self, mut batch: Batch) -> Result<(), String> {
        let found = match self.versions.get(&batch.partition) {
            Some(version) => *version,
            None => self
                .meta
                .version(&batch.partition)
                .map_err(|error| error.to_string())?,
        };
        if batch.version <= found {
            return Ok(());
        }
        if batch.clear {
            self.waiting.remove(&batch.partition);
        } else if batch.expected != found && self.gap == Gap::Wait {
            self.waiting.entry(batch.partition).or_insert(batch.version);
            return Ok(());
        }
        batch.expected = found;
        self.versions.insert(batch.partition.clone(), batch.version);
        self.batches.push(batch);
        Ok(())
    }

    /// Applies the rest.
    pub(crate) fn finish(mut self, upto: u64) -> Result<(), OpenError> {
        if let Some((partition, at)) = self.waiting.iter().min_by_key(|(_, at)| **at) {
            let reason = format!("changes of {partition:?} are missing before this position");
            return Err(damaged(*at, reason));
        }
        self.apply(upto).map_err(|reason| damaged(upto, reason))
    }
}

fn damaged(offset: u64, reason: String) -> OpenError {
    OpenError::Damaged {
        file: "log".to_owned(),
        offset,
        reason,
    }
}

impl<M: MetaEngine> Replay for Applying<'_, M> {
    fn record(&mut self, head: &RecordHead, payload: &[u8]) -> Result<(), String> {
        if head.kind == RecordKind::Body {
            return Ok(());
        }
        let batch = batch::decode(payload, head.position);
        self.batch(batch.ok_or("not a batch that can be read")?)?;
        self.octets += payload.len();
        if self.octets > APPLY_OCTETS {
            self.apply(head.end())?;
        }
        Ok(())
    }
}
