//! The spool as a model: queues of records, changed by whole batches in order.

use std::collections::BTreeMap;

use bytes::Bytes;
use vere_delivery::is_lines;
use vere_queue::Envelope;
use vere_queue::order::ORDERS_QUEUE;
use vere_spoolwire::{
    Batch, Block, KeptGrants, NodeRefusal, Operation, QueueId, QueueLimits, QueueStat, Record,
    RecordId,
};

/// Whether a queue of this name holds mail, and neither orders nor lines for other systems.
fn is_mail(name: &str) -> bool {
    name != ORDERS_QUEUE && !is_lines(name)
}

/// A queue.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    pub(crate) name: String,
    /// The number of the next record.
    pub(crate) next: u64,
    pub(crate) records: BTreeMap<u64, (Bytes, Bytes)>,
}

/// All queues of the group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spool {
    pub(crate) queues: BTreeMap<u32, Queue>,
    /// Queues at most.
    pub(crate) queues_max: usize,
    /// Records at most; moves and ends are done beyond.
    pub(crate) records_max: usize,
}

impl Spool {
    pub(crate) fn records(&self) -> usize {
        self.queues.values().map(|queue| queue.records.len()).sum()
    }

    /// Makes a queue under a number that the owner chose.
    pub(crate) fn create(&mut self, number: u32, name: &str) -> Result<(), NodeRefusal> {
        if self.queues.contains_key(&number) {
            return Ok(());
        }
        if self.queues.len() >= self.queues_max {
            return Err(NodeRefusal::TooManyQueues);
        }
        let queue = Queue {
            name: name.to_owned(),
            next: 1,
            records: BTreeMap::new(),
        };
        self.queues.insert(number, queue);
        Ok(())
    }

    /// Removes an empty queue.
    pub(crate) fn remove(&mut self, number: u32) -> Result<(), NodeRefusal> {
        match self.queues.get(&number) {
            None => Err(NodeRefusal::NoQueue),
            Some(queue) if !queue.records.is_empty() => Err(NodeRefusal::QueueNotEmpty),
            Some(_) => {
                self.queues.remove(&number);
                Ok(())
            }
        }
    }

    /// Makes all changes of a batch or none. `ids`: the numbers of the new records.
    pub(crate) fn apply(&mut self, batch: &Batch, ids: &[RecordId]) -> Result<(), NodeRefusal> {
        self.check(batch)?;
        self.apply_some(batch.operations(), ids);
        Ok(())
    }

    /// Makes changes that were checked, or some of them.
    pub(crate) fn apply_some(&mut self, operations: &[Operation], ids: &[RecordId]) {
        let (mut ids, mut last) = (ids.iter(), Bytes::new());
        for operation in operations {
            match operation {
                Operation::Put { queue, meta, body } => {
                    last = body.clone().unwrap_or(last);
                    if let Some(id) = ids.next() {
                        self.insert(*queue, *id, (meta.clone(), last.clone()));
                    }
                }
                Operation::Delete { queue, id } => {
                    self.take(*queue, *id);
                }
                Operation::Replace { queue, id, meta } => {
                    if let Some((_, body)) = self.take(*queue, *id) {
                        self.insert(*queue, *id, (meta.clone(), body));
                    }
                }
                Operation::Move {
                    queue,
                    id,
                    to,
                    meta,
                } => {
                    let (taken, new) = (self.take(*queue, *id), ids.next());
                    if let (Some((old, body)), Some(new)) = (taken, new) {
                        self.insert(*to, *new, (meta.clone().unwrap_or(old), body));
                    }
                }
            }
        }
    }

    fn insert(&mut self, queue: QueueId, id: RecordId, record: (Bytes, Bytes)) {
        if let Some(queue) = self.queues.get_mut(&queue.0) {
            queue.next = queue.next.max(id.0 + 1);
            queue.records.insert(id.0, record);
        }
    }

    fn take(&mut self, queue: QueueId, id: RecordId) -> Option<(Bytes, Bytes)> {
        self.queues.get_mut(&queue.0)?.records.remove(&id.0)
    }

    /// Whether a batch may be done.
    pub(crate) fn check(&self, batch: &Batch) -> Result<(), NodeRefusal> {
        if batch.has_puts() && self.records() + batch.makes() > self.records_max {
            return Err(NodeRefusal::NodeFull);
        }
        for operation in batch.operations() {
            let (queue, id) = match operation {
                Operation::Put { queue, .. } => (queue, None),
                Operation::Delete { queue, id }
                | Operation::Replace { queue, id, .. }
                | Operation::Move { queue, id, .. } => (queue, Some(id)),
            };
            let known = self.queues.get(&queue.0).ok_or(NodeRefusal::NoQueue)?;
            if id.is_some_and(|id| !known.records.contains_key(&id.0)) {
                return Err(NodeRefusal::NoRecord);
            }
        }
        Ok(())
    }

    /// Reads records.
    pub(crate) fn block(
        &self,
        queue: QueueId,
        from: RecordId,
        records: u32,
        octets: u32,
    ) -> Result<Block, NodeRefusal> {
        let queue = self.queues.get(&queue.0).ok_or(NodeRefusal::NoQueue)?;
        let mut block = Block {
            records: Vec::new(),
            next: from,
            end: true,
        };
        let mut size = 0;
        for (id, (meta, body)) in queue.records.range(from.0..) {
            let full = block.records.len() >= records as usize || size >= octets as usize;
            if full && !block.records.is_empty() {
                block.end = false;
                break;
            }
            size += meta.len() + body.len();
            block.next = RecordId(id + 1);
            block.records.push(Record {
                id: RecordId(*id),
                meta: meta.clone(),
                body: body.clone(),
            });
        }
        Ok(block)
    }

    /// Lists the queues.
    pub(crate) fn list(&self) -> Vec<QueueStat> {
        let stat = |(number, queue): (&u32, &Queue)| QueueStat {
            id: QueueId(*number),
            name: queue.name.clone(),
            limits: QueueLimits::UNLIMITED,
            readers: KeptGrants::default(),
            length: queue.records.len() as u64,
            bytes: 0,
            first: RecordId(queue.records.keys().next().copied().unwrap_or(queue.next)),
            next: RecordId(queue.next),
        };
        self.queues.iter().map(stat).collect()
    }

    /// The records that a batch ends or changes.
    pub(crate) fn named(&self, batch: &Batch) -> Vec<(u32, u64, Envelope)> {
        let operations = batch.operations().iter();
        let named = operations.filter_map(|operation| {
            let (Operation::Delete { queue, id }
            | Operation::Replace { queue, id, .. }
            | Operation::Move { queue, id, .. }) = operation
            else {
                return None;
            };
            let (meta, _) = self.queues.get(&queue.0)?.records.get(&id.0)?;
            Some((queue.0, id.0, Envelope::decode(meta).ok()?))
        });
        named.collect()
    }

    /// Checks that each end of a message is told in the same batch.
    ///
    /// # Errors
    /// When lines are missing.
    pub(crate) fn check_lines(&self, batch: &Batch) -> Result<(), String> {
        let is_of_mail = |queue: &QueueId| {
            let queue = self.queues.get(&queue.0);
            queue.is_some_and(|queue| is_mail(&queue.name))
        };
        let (mut ends, mut lines) = (0, 0);
        for operation in batch.operations() {
            match operation {
                Operation::Delete { queue, .. } => ends += usize::from(is_of_mail(queue)),
                Operation::Move { queue, to, .. } => {
                    ends += usize::from(is_of_mail(queue) && !is_of_mail(to));
                    lines += usize::from(!is_of_mail(to));
                }
                Operation::Put { queue, .. } => lines += usize::from(!is_of_mail(queue)),
                Operation::Replace { .. } => {}
            }
        }
        match ends > lines {
            true => Err(format!("{ends} messages end with {lines} lines about them")),
            false => Ok(()),
        }
    }

    /// Removes one of the records that are mail.
    pub(crate) fn remove_record(&mut self, place: usize) -> Option<Envelope> {
        let queues = self.queues.iter().filter(|(_, queue)| is_mail(&queue.name));
        let mut places = queues.flat_map(|(number, queue)| {
            let records = queue.records.keys();
            records.map(|id| (*number, *id))
        });
        let (number, id) = places.nth(place)?;
        let (meta, _) = self.take(QueueId(number), RecordId(id))?;
        Envelope::decode(&meta).ok()
    }

    /// The number of records that are mail.
    pub(crate) fn mail(&self) -> usize {
        let queues = self.queues.values();
        let mail = queues.filter(|queue| is_mail(&queue.name));
        mail.map(|queue| queue.records.len()).sum()
    }
}
