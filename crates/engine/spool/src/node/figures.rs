//! Reports about a group: progress and figures.

use vere_ports::spool_log::{LogRoom, SpoolLog};
use vere_spoolwire::{Answer, Incarnation, NodeStat, Seq};

use super::group::Group;
use super::memory::{FULL, Memory};
use super::output::Output;

impl<L: SpoolLog> Group<L> {
    pub(super) fn alive(&self, seq: Seq, output: &mut Output) {
        let alive = Answer::Alive {
            seq,
            processed: self.store.processed,
            acknowledged: self.acknowledged,
        };
        output.write(|out| alive.encode(out));
    }

    pub(super) fn stat(&self, memory: &Memory, incarnation: Incarnation) -> NodeStat {
        let disk_full = self
            .journal()
            .is_some_and(|log| log.log.room() == LogRoom::Reserve);
        let full = disk_full || memory.is_full(0);
        NodeStat {
            incarnation,
            processed: self.store.processed,
            acknowledged: self.acknowledged,
            queues: self.store.queue_count() as u64,
            records: self.store.records,
            bytes: self.store.octets,
            memory_used: memory.used(),
            memory_max: memory.max(),
            log_bytes: self.log.as_ref().map_or(0, |journal| journal.log.octets()),
            epoch: self.store.title.epoch,
            spilled: self.store.segments.spilled(),
            bytes_max: self.store.group_charter.bytes_max,
            synced: self.is_logged(),
            syncing: self.store.syncing,
            fill: if full { FULL } else { memory.fill() },
            full,
            damaged: self.mending.is_some(),
        }
    }
}
