//! The steps by which the owner rebuilds a node.

use vere_spoolwire::{
    Change, FLAG_KEPT, QueueId, QueueStat, Request, Seq, encode_change, encode_kept_create,
    encode_reset,
};

use super::super::Owner;
use super::super::phase::Phase;
use super::super::question::{Purpose, QUEUES_AT_ONCE};
use super::super::replica::Standing;
use super::super::title::Noted;
use super::{BLOCK_OCTETS, BLOCK_RECORDS, Copied, OUTPUT_MAX, Rebuild, Step};
use vere_spoolwire::Block;

impl Owner {
    /// Advances the rebuild of a node as far as possible.
    pub(crate) fn rebuild(&mut self, target: usize) {
        if !matches!(self.phase, Phase::Open)
            || self.replicas[target].standing != Standing::Syncing
            || !self.replicas[target].is_up()
            || self.replicas[target].fault.is_some()
        {
            return;
        }
        if self.replicas[target].rebuild.is_none() {
            // A replica with an outstanding swap may already be full.
            if self.replicas[target].promised.is_some() || !self.begin_rebuild(target) {
                return;
            }
        }
        self.fill(target);
        self.put_copied(target);
        self.copy_next(target);
    }

    fn begin_rebuild(&mut self, target: usize) -> bool {
        let Some(source) = self.readable() else {
            return false;
        };
        let at = self.replicas[source].position;
        self.assign_duty_of(target, self.now);
        let replica = &mut self.replicas[target];
        if replica.awaited {
            replica.rebuild = Some(Rebuild::of_nothing());
            return true;
        }
        let Some(connection) = replica.active_connection() else {
            return false;
        };
        connection.write(|out| encode_reset(out, at));
        (replica.position, replica.acked, replica.compared) = (at, at, at);
        if let Some(progress) = &mut replica.progress {
            progress.syncing = true;
        }
        replica.rebuild = Some(Rebuild::new(at));
        self.changes.forget_refusals(target);
        true
    }

    /// Restarts every rebuild that copied from `source`, which has lost full status: its undecided
    /// changes may differ from the content of the other replicas.
    pub(crate) fn doubt_copies(&mut self, source: usize) {
        let decided = self.changes.decided();
        for replica in &mut self.replicas {
            let depends = |rebuild: &mut Rebuild| rebuild.depends_on(source, decided);
            // A replica with an outstanding swap to full has only decided changes.
            if replica.promised.is_none() {
                replica.rebuild.take_if(|rebuild| depends(rebuild));
            }
        }
    }

    /// Inserts the copy into the node's stream, once the stream is at the transaction of the copy.
    fn put_copied(&mut self, target: usize) {
        let replica = &mut self.replicas[target];
        let position = replica.position;
        let Some(rebuild) = &mut replica.rebuild else {
            return;
        };
        if rebuild.hold != Some(position) {
            return;
        }
        let Some(copied) = rebuild.copied.take() else {
            return;
        };
        let Some(connection) = replica
            .active
            .and_then(|slot| replica.connections.get_mut(slot))
        else {
            return;
        };
        rebuild.hold = None;
        match copied {
            Copied::Queues(queues, end) => {
                for queue in &queues {
                    connection.write(|out| encode_kept_create(out, position, queue));
                    if queue.length > 0 {
                        rebuild.cursors.insert(queue.id, queue.first);
                    }
                }
                let after = queues
                    .last()
                    .map(|last| QueueId(last.id.0.saturating_add(1)));
                rebuild.unlisted = if end { None } else { after };
            }
            Copied::Records(queue, None) => {
                rebuild.cursors.remove(&queue);
            }
            Copied::Records(queue, Some(block)) => {
                rebuild.records += block.records.len() as u64;
                for record in &block.records {
                    let put = Change::Put {
                        queue,
                        id: record.id,
                        meta: &record.meta,
                        body: Some(&record.body),
                    };
                    connection.write(|out| encode_change(out, position, &put, FLAG_KEPT));
                }
                if block.end {
                    rebuild.cursors.remove(&queue);
                } else {
                    rebuild.cursors.insert(queue, block.next);
                }
            }
        }
    }

    /// Chooses the source of copies: a replica that was not late if possible, the slow one last.
    fn source_of(&self, target: usize) -> Option<usize> {
        let rebuild = self.replicas[target].rebuild.as_ref();
        let late = |index: &usize| rebuild.is_some_and(|rebuild| rebuild.late.contains(index));
        let sources = (0..self.replicas.len()).filter(|index| self.replicas[*index].is_sound());
        let prompt = sources.filter(|index| !late(index));
        let chosen = prompt.min_by_key(|index| self.replicas[*index].pace.is_slow());
        chosen.or_else(|| self.readable())
    }

    /// Requests the next piece from the source, or the confirmation that everything is safe from
    /// the node.
    fn copy_next(&mut self, target: usize) {
        let Some(source) = self.source_of(target) else {
            return;
        };
        let at = self.replicas[source].position;
        let (seq, decided) = (self.next_seq, self.changes.decided());
        let replica = &mut self.replicas[target];
        let position = replica.position;
        let Some(rebuild) = &mut replica.rebuild else {
            return;
        };
        let busy = rebuild.asked.is_some() || rebuild.copied.is_some();
        if busy || !matches!(rebuild.step, Step::Copying) {
            return;
        }
        let Some(connection) = replica
            .active
            .and_then(|slot| replica.connections.get_mut(slot))
        else {
            return;
        };
        let request = match (rebuild.unlisted, rebuild.cursors.first_key_value()) {
            (Some(from), _) => Request::Queues {
                from,
                count: QUEUES_AT_ONCE,
            },
            (None, Some((&queue, &from))) => Request::Fetch {
                queue,
                from,
                records: BLOCK_RECORDS,
                octets: BLOCK_OCTETS,
            },
            // The node would count from its answer on, and the group would wait for its missed
            // changes.
            (None, None) if replica.awaited && position < decided => return,
            (None, None) => {
                connection.write(|out| Request::Complete.encode(out, seq));
                rebuild.step = Step::Completing(seq);
                replica.whole_after = position;
                rebuild.hold = None;
                self.next_seq = Seq(seq.0 + 1);
                return;
            }
        };
        // A copy must not be older than the stream of the node.
        if at < position || connection.waiting() > OUTPUT_MAX {
            return;
        }
        rebuild.hold = Some(at);
        rebuild.asked = Some(seq);
        rebuild.sources.insert(source, at);
        let purpose = match request {
            Request::Fetch { queue, .. } => Purpose::CopyRecords(target, queue),
            _ => Purpose::CopyQueues(target),
        };
        self.ask(source, request, purpose);
    }

    /// Receives queues from the source.
    pub(crate) fn copied_queues(
        &mut self,
        target: usize,
        seq: Seq,
        queues: Vec<QueueStat>,
        end: bool,
    ) {
        self.copied(target, seq, Copied::Queues(queues, end));
    }

    /// Receives records from the source.
    pub(crate) fn copied_records(
        &mut self,
        target: usize,
        seq: Seq,
        queue: QueueId,
        block: Option<Block>,
    ) {
        self.copied(target, seq, Copied::Records(queue, block));
    }

    fn copied(&mut self, target: usize, seq: Seq, copied: Copied) {
        if let Some(rebuild) = &mut self.replicas[target].rebuild
            && rebuild.asked == Some(seq)
        {
            rebuild.asked = None;
            rebuild.copied = Some(copied);
        }
    }

    /// Handles the node's confirmation that everything before is safe.
    pub(crate) fn completed(&mut self, target: usize, seq: Seq) {
        let replica = &mut self.replicas[target];
        if let Some(rebuild) = &mut replica.rebuild
            && matches!(rebuild.step, Step::Completing(asked) if asked == seq)
        {
            rebuild.step = Step::Complete;
            replica.noted = Noted::Safe;
            if let Some(progress) = &mut replica.progress {
                progress.syncing = false;
            }
        }
    }
}
