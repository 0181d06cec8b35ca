mod access;
mod announced;
mod busy;
mod cases;
mod damage;
mod duty;
mod ending;
mod fencing;
mod lazy;
mod outlines;
mod page;
mod peer;
mod peers;
mod readers;
mod rebuilding;
mod spilled;
mod two_nodes;

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use vere_spoolwire::{Frame, NodeRefusal, QueueId, QueueLimits, RecordId, Request, Seq, Txn};

use std::time::Duration;

use super::*;
use crate::owner::OwnerEvent;
use crate::testing::{MemoryLog, MemorySpill, Pair, now, secret};
use vere_spoolwire::{Batch, Operation, Record};

/// What a node should hold: the plain meaning of every operation.
#[derive(Debug, Clone, Default)]
struct Model {
    queues: BTreeMap<u32, ModelQueue>,
}

#[derive(Debug, Clone)]
struct ModelQueue {
    limits: QueueLimits,
    next: u64,
    records: BTreeMap<u64, (Vec<u8>, Vec<u8>)>,
}

impl ModelQueue {
    fn octets(&self) -> u64 {
        self.records
            .values()
            .map(|(meta, body)| (meta.len() + body.len()) as u64)
            .sum()
    }

    fn put(
        &mut self,
        id: u64,
        record: (Vec<u8>, Vec<u8>),
        bounded: bool,
    ) -> Result<(), NodeRefusal> {
        if id < self.next {
            return Err(NodeRefusal::RecordOrder);
        }
        let more = (record.0.len() + record.1.len()) as u64;
        let full = self.records.len() as u64 >= self.limits.length_max
            || self.octets() + more > self.limits.bytes_max;
        if bounded && full {
            return Err(NodeRefusal::QueueFull);
        }
        self.next = id + 1;
        self.records.insert(id, record);
        Ok(())
    }
}

impl Model {
    fn queue(&mut self, id: QueueId) -> Result<&mut ModelQueue, NodeRefusal> {
        self.queues.get_mut(&id.0).ok_or(NodeRefusal::NoQueue)
    }

    fn create(&mut self, id: u32, limits: QueueLimits) {
        let queue = ModelQueue {
            limits,
            next: 1,
            records: BTreeMap::new(),
        };
        self.queues.entry(id).or_insert(queue).limits = limits;
    }

    /// All or nothing, the simple way: on a copy. A record that was named twice is the first reason to refuse.
    fn batch(&mut self, batch: &Batch, ids: &[RecordId]) -> Result<(), NodeRefusal> {
        let mut trial = self.clone();
        let mut named = Vec::new();
        let done = self.operations(&mut trial, batch, ids, &mut named);
        named.sort_unstable();
        if named.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(NodeRefusal::BatchConflict);
        }
        done?;
        *self = trial;
        Ok(())
    }

    fn operations(
        &mut self,
        trial: &mut Self,
        batch: &Batch,
        ids: &[RecordId],
        named: &mut Vec<(QueueId, RecordId)>,
    ) -> Result<(), NodeRefusal> {
        let mut ids = ids.iter().map(|id| id.0);
        let mut body_before = Vec::new();
        for operation in batch.operations() {
            match operation {
                Operation::Put { queue, meta, body } => {
                    let body = body.as_ref().map_or(body_before, |body| body.to_vec());
                    body_before = body.clone();
                    let id = ids.next().unwrap();
                    trial.queue(*queue)?.put(id, (meta.to_vec(), body), true)?;
                }
                Operation::Delete { queue, id } => {
                    self.queue(*queue)?
                        .records
                        .get(&id.0)
                        .ok_or(NodeRefusal::NoRecord)?;
                    named.push((*queue, *id));
                    trial.queue(*queue)?.records.remove(&id.0);
                }
                Operation::Replace { queue, id, meta } => {
                    self.queue(*queue)?
                        .records
                        .get(&id.0)
                        .ok_or(NodeRefusal::NoRecord)?;
                    named.push((*queue, *id));
                    if let Some(record) = trial.queue(*queue)?.records.get_mut(&id.0) {
                        record.0 = meta.to_vec();
                    }
                }
                Operation::Move {
                    queue,
                    id,
                    to,
                    meta,
                } => {
                    self.queue(*queue)?
                        .records
                        .get(&id.0)
                        .ok_or(NodeRefusal::NoRecord)?;
                    named.push((*queue, *id));
                    let record = trial.queue(*queue)?.records.remove(&id.0);
                    let mut record = record.unwrap_or_default();
                    if let Some(meta) = meta {
                        record.0 = meta.to_vec();
                    }
                    let id = ids.next().unwrap();
                    trial.queue(*to)?.put(id, record, to != queue)?;
                }
            }
        }
        Ok(())
    }
}

/// Reads every record of every queue over the wire, in blocks of a few.
fn contents(pair: &mut Pair, block: u32) -> BTreeMap<u32, Vec<Record>> {
    let queues = pair.node.queues("gateway");
    let mut all = BTreeMap::new();
    for queue in queues {
        let (mut from, mut records) = (RecordId(0), Vec::new());
        loop {
            let seq = pair.owner.fetch(queue.id, from, block, 500);
            let block = settle_block(pair, seq);
            records.extend(block.records);
            from = block.next;
            if block.end {
                break;
            }
        }
        assert_eq!(records.len() as u64, queue.length);
        let octets: usize = records.iter().map(|r| r.meta.len() + r.body.len()).sum();
        assert_eq!(octets as u64, queue.bytes);
        all.insert(queue.id.0, records);
    }
    all
}

fn settle_block(pair: &mut Pair, seq: Seq) -> vere_spoolwire::Block {
    pair.settle();
    let at = pair
        .events
        .iter()
        .rposition(|event| matches!(event, OwnerEvent::Block { seq: found, .. } if *found == seq));
    match pair.events.remove(at.expect("an answer")) {
        OwnerEvent::Block { block, .. } => block.expect("a known queue"),
        _ => unreachable!(),
    }
}

fn assert_holds(pair: &mut Pair, model: &Model) {
    let found = contents(pair, 3);
    let ids: Vec<_> = model.queues.keys().collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), ids);
    for (id, queue) in &model.queues {
        let expected: Vec<_> = queue
            .records
            .iter()
            .map(|(id, (meta, body))| Record {
                id: RecordId(*id),
                meta: meta.clone().into(),
                body: body.clone().into(),
            })
            .collect();
        assert_eq!(found[id], expected, "queue {id}");
    }
    let live = model
        .queues
        .values()
        .map(|queue| queue.records.len() as u64)
        .sum::<u64>();
    assert_eq!(pair.node.memory.records, live);
    let queues = pair.node.groups.iter();
    let queues = queues.flat_map(|group| group.store.queues());
    let counted: u64 = queues.map(|(_, queue)| queue.counted()).sum();
    assert_eq!(pair.node.memory.queues, counted);
    for queue in pair.node.queues("gateway") {
        assert_eq!(
            queue.next.0, model.queues[&queue.id.0].next,
            "numbers are not used twice"
        );
    }
    for group in &pair.node.groups {
        assert!(group.store.renamed_len() as u64 <= 2 * live);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Create(u32, u64),
    Batch(Vec<(u8, u32, u32, prop::sample::Index, usize)>),
    /// Carry a few octets, so that frames are cut everywhere.
    Carry(usize, usize),
    Sync,
    /// The log is synced, and the node hears of it later.
    LogSync,
    Cut,
    Crash(usize),
    Purge(u32, prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let operation = (
        0..6_u8,
        0..4_u32,
        0..4_u32,
        any::<prop::sample::Index>(),
        0..200_usize,
    );
    prop_oneof![
        1 => (0..4_u32, 1..40_u64).prop_map(|(id, max)| Step::Create(id, max)),
        8 => proptest::collection::vec(operation, 1..6).prop_map(Step::Batch),
        4 => (0..300_usize, 0..300_usize).prop_map(|(up, down)| Step::Carry(up, down)),
        2 => Just(Step::Sync),
        2 => Just(Step::LogSync),
        1 => Just(Step::Cut),
        1 => (0..4_usize).prop_map(Step::Crash),
        1 => (0..4_u32, any::<prop::sample::Index>()).prop_map(|(id, at)| Step::Purge(id, at)),
    ]
}

/// One submitted change, to be done to the model when it is known that the node did it.
#[derive(Debug, Clone)]
enum Submitted {
    Create(u32, QueueLimits),
    Batch(Batch, Vec<RecordId>),
    Purge(u32, u64),
}

struct Run {
    pair: Pair,
    /// What the node holds once everything submitted is done.
    model: Model,
    submitted: Vec<Submitted>,
    expected: BTreeMap<Txn, NodeRefusal>,
    body: Bytes,
}

impl Run {
    fn new(log: Option<MemoryLog>) -> Self {
        let config = NodeConfig {
            segment_len: SEGMENT_LEN_MIN,
            compact_above: Some(0),
            ..NodeConfig::new(secret())
        };
        Self::with(Pair::new(config, log))
    }

    fn with(pair: Pair) -> Self {
        Self {
            pair,
            model: Model::default(),
            submitted: Vec::new(),
            expected: BTreeMap::new(),
            body: Bytes::from((0..=255).cycle().take(1000).collect::<Vec<u8>>()),
        }
    }

    fn submit(&mut self, txn: Txn, submitted: Submitted) {
        let result = match &submitted {
            Submitted::Create(id, limits) => {
                self.model.create(*id, *limits);
                Ok(())
            }
            Submitted::Batch(batch, ids) => self.model.batch(batch, ids),
            Submitted::Purge(id, through) => self.model.queue(QueueId(*id)).map(|queue| {
                queue.records = queue.records.split_off(&(through + 1));
            }),
        };
        if let Err(refusal) = result {
            self.expected.insert(txn, refusal);
        }
        self.submitted.push(submitted);
        assert_eq!(txn.0, self.submitted.len() as u64);
    }

    fn known(&self, queue: u32, at: prop::sample::Index) -> RecordId {
        let next = self.model.queues.get(&queue).map_or(1, |queue| queue.next);
        RecordId(at.index(next as usize + 1) as u64)
    }

    fn build(&self, operations: &[(u8, u32, u32, prop::sample::Index, usize)]) -> Batch {
        let mut batch = Batch::new();
        for &(kind, queue, to, at, len) in operations {
            let id = self.known(queue, at);
            let meta = self.body.slice(at.index(100)..100);
            let queue = QueueId(queue);
            match kind {
                0 | 1 => batch.put(queue, meta, self.body.slice(at.index(300)..300 + len)),
                2 => batch.put(queue, meta, self.body.slice(..len)),
                3 => batch.delete(queue, id),
                4 => batch.replace(queue, id, meta),
                _ => batch.move_to(queue, id, QueueId(to), (len % 2 == 0).then_some(meta)),
            };
        }
        batch
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Create(id, max) => {
                let limits = QueueLimits {
                    length_max: *max,
                    bytes_max: *max * 100,
                };
                let name = format!("queue-{id}");
                let (queue, txn) = self.pair.owner.create_queue(&name, limits).unwrap();
                self.submit(txn, Submitted::Create(queue.0, limits));
            }
            Step::Batch(operations) => {
                let batch = self.build(operations);
                let committed = self.pair.owner.commit(batch.clone()).unwrap();
                self.submit(committed.txn, Submitted::Batch(batch, committed.ids));
            }
            Step::Carry(up, down) => {
                self.pair.up(*up);
                self.pair.node.end_turn(now());
                self.pair.down(*down);
            }
            Step::Sync => self.pair.sync(),
            Step::LogSync => {
                if let Some(log) = &self.pair.log {
                    log.0.borrow_mut().sync();
                }
            }
            Step::Cut => {
                self.pair.connect();
                self.pair.up(usize::MAX);
                self.pair.down(usize::MAX);
                self.pair.up(usize::MAX);
            }
            Step::Crash(more) if self.pair.log.is_some() => {
                self.pair.crash(*more);
                self.pair.connect();
            }
            Step::Crash(_) => {}
            Step::Purge(id, at) => {
                let through = self.known(*id, *at);
                let txn = self.pair.owner.purge(QueueId(*id), through, false).unwrap();
                self.submit(txn, Submitted::Purge(*id, through.0));
            }
        }
        assert_eq!(self.pair.error, None);
        if let Some(spill) = &self.pair.spill {
            spill.finish_some();
        }
    }

    fn finish(&mut self) {
        if self.pair.connection.is_none() {
            self.pair.connect();
        }
        self.pair.settle();
        assert_eq!(self.pair.error, None);
        assert_eq!(self.pair.acked().0, self.submitted.len() as u64);
        let refused: BTreeMap<_, _> = self.pair.refused().into_iter().collect();
        assert_eq!(refused, self.expected);
        assert_eq!(self.pair.refused().len(), refused.len(), "told once");
        assert_holds(&mut self.pair, &self.model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 256 } else { 5000 }))]

    /// In memory: every operation, cut into any pieces, with connections cut anywhere.
    #[test]
    fn holds_what_the_model_holds(steps in proptest::collection::vec(step(), 1..60)) {
        let mut run = Run::new(None);
        for step in &steps {
            run.step(step);
        }
        run.finish();
    }

    /// With a log: crashes anywhere lose nothing acknowledged and leave a prefix; segments of the log
    /// are short, so that it rolls and is compacted all the time.
    #[test]
    fn survives_crashes(steps in proptest::collection::vec(step(), 1..60)) {
        let mut run = Run::new(Some(MemoryLog::new(1 << 10)));
        for step in &steps {
            run.step(step);
        }
        run.finish();
        run.pair.crash(0);
        run.pair.connect();
        run.finish();
    }
}
