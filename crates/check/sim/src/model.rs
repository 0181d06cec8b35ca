//! The client's knowledge: all submitted changes, and their outcomes.
//!
//! The history of a group is a single sequence of transactions. An owner that opens continues after
//! some transaction; the changes of its predecessors beyond that transaction never happened, and the
//! earlier changes happened unless refused. A refusal of such an earlier change remains unknown until
//! the records are read.
//!
//! ```text
//! status    becomes   when
//! Flying    Done      its owner acknowledged it
//! Flying    Void      its owner refused it; what some replicas did is being taken back
//! Void      Gone      that is acknowledged as well
//! Flying    Adopted   another owner went on after it
//! Flying    Fenced    another owner went on before it
//! Adopted   Done/Gone somebody read it, or did not find it
//! ```

use std::collections::BTreeMap;

use bytes::Bytes;
use vere_spoolwire::{QueueId, RecordId, Txn};

/// A place in the order of everything that happens in a run.
pub(crate) type Step = u64;

/// A submitted change.
pub(crate) type OpId = usize;

/// A queue, from creation to end.
pub(crate) type QueueIndex = usize;

/// A record.
pub(crate) type Key = (QueueIndex, u64);

/// The outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Flying,
    Done(Step),
    /// Until that transaction is acknowledged, some replicas may show the change.
    Void(Txn),
    Gone,
    Adopted(Step),
    Fenced,
}

/// One change.
#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) life: u64,
    pub(crate) txn: Txn,
    pub(crate) status: Status,
    pub(crate) effects: Effects,
}

/// The effects of a change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Effects {
    pub(crate) makes: Vec<(Key, Made)>,
    pub(crate) ends: Vec<Key>,
    pub(crate) replaces: Vec<(Key, Bytes)>,
    pub(crate) creates: Option<QueueIndex>,
    pub(crate) drops: Option<QueueIndex>,
}

/// The content of a new record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Made {
    pub(crate) meta: Bytes,
    pub(crate) body: Bytes,
}

/// A record and its changes.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) made: OpId,
    pub(crate) ended: Option<OpId>,
    pub(crate) metas: Vec<(OpId, Bytes)>,
    pub(crate) body: Bytes,
}

/// A queue.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) id: QueueId,
    pub(crate) name: String,
    pub(crate) made: Option<OpId>,
    pub(crate) dropped: Option<OpId>,
    pub(crate) records: BTreeMap<u64, Record>,
}

/// All submitted changes.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) ops: Vec<Op>,
    pub(crate) queues: Vec<Queue>,
    /// The valid transactions of the group, in order.
    lineage: Vec<OpId>,
    /// Unsettled changes of each owner, in order.
    open: BTreeMap<u64, Vec<OpId>>,
    /// The owner that opened with the highest epoch, and the epoch.
    head: u64,
    epoch: u64,
    /// Everything up to here was acknowledged, or stood when an owner opened.
    floor: Txn,
    /// Changes acknowledged.
    pub(crate) acknowledged: u64,
    /// Changes refused.
    pub(crate) refused: u64,
}

impl Model {
    pub(crate) const fn head(&self) -> u64 {
        self.head
    }

    pub(crate) fn status(&self, op: OpId) -> Status {
        self.ops.get(op).map_or(Status::Gone, |op| op.status)
    }

    /// Unsettled changes of an owner.
    pub(crate) fn flying(&self, life: u64) -> usize {
        self.open.get(&life).map_or(0, Vec::len)
    }

    /// Adds a queue that is being created.
    pub(crate) fn add_queue(&mut self, id: QueueId, name: String) -> QueueIndex {
        self.queues.push(Queue {
            id,
            name,
            made: None,
            dropped: None,
            records: BTreeMap::new(),
        });
        self.queues.len() - 1
    }

    /// Records a change.
    ///
    /// # Errors
    ///
    /// If a record gets a number that another record of the queue had before.
    pub(crate) fn submit(&mut self, life: u64, txn: Txn, effects: Effects) -> Result<OpId, String> {
        let op = self.ops.len();
        let head = life == self.head;
        let status = if head { Status::Flying } else { Status::Fenced };
        if head {
            for (key, made) in &effects.makes {
                self.make(op, *key, made)?;
            }
            for key in &effects.ends {
                if let Some(record) = self.record_mut(*key) {
                    record.ended = Some(op);
                }
            }
            for (key, meta) in &effects.replaces {
                if let Some(record) = self.record_mut(*key) {
                    record.metas.push((op, meta.clone()));
                }
            }
            if let Some(queue) = effects.creates.and_then(|queue| self.queues.get_mut(queue)) {
                queue.made = Some(op);
            }
            if let Some(queue) = effects.drops.and_then(|queue| self.queues.get_mut(queue)) {
                queue.dropped = Some(op);
            }
            self.lineage.push(op);
        }
        self.ops.push(Op {
            life,
            txn,
            status,
            effects,
        });
        self.open.entry(life).or_default().push(op);
        Ok(op)
    }

    fn make(&mut self, op: OpId, key: Key, made: &Made) -> Result<(), String> {
        if let Some(record) = self.record(key) {
            let before = self.status(record.made);
            if !matches!(before, Status::Gone | Status::Fenced | Status::Adopted(_)) {
                return Err(format!(
                    "number {} of queue {} is given out twice",
                    key.1, key.0
                ));
            }
        }
        let record = Record {
            made: op,
            ended: None,
            metas: vec![(op, made.meta.clone())],
            body: made.body.clone(),
        };
        if let Some(queue) = self.queues.get_mut(key.0) {
            queue.records.insert(key.1, record);
        }
        Ok(())
    }

    pub(crate) fn record(&self, key: Key) -> Option<&Record> {
        self.queues.get(key.0)?.records.get(&key.1)
    }

    fn record_mut(&mut self, key: Key) -> Option<&mut Record> {
        self.queues.get_mut(key.0)?.records.get_mut(&key.1)
    }

    /// Records an owner's acknowledgement up to a transaction.
    ///
    /// # Errors
    ///
    /// If the acknowledgement covers changes that another owner did not adopt.
    pub(crate) fn acked(&mut self, life: u64, through: Txn, step: Step) -> Result<(), String> {
        if life == self.head {
            self.floor = self.floor.max(through);
        }
        let mut rest = Vec::new();
        for op in self.open.remove(&life).unwrap_or_default() {
            let Some(known) = self.ops.get(op) else {
                continue;
            };
            let (txn, status) = (known.txn, known.status);
            match status {
                Status::Void(until) if until <= through => self.settle(op, Status::Gone),
                Status::Flying if txn <= through => {
                    self.acknowledged += 1;
                    self.settle(op, Status::Done(step));
                }
                Status::Adopted(at) if txn <= through => self.settle(op, Status::Done(at)),
                Status::Fenced if txn <= through => {
                    return Err(format!(
                        "owner {life} acknowledged transaction {txn} after owner {} had opened \
                         without it",
                        self.head
                    ));
                }
                Status::Flying | Status::Void(_) | Status::Fenced | Status::Adopted(_) => {
                    rest.push(op);
                }
                Status::Done(_) | Status::Gone => {}
            }
        }
        if !rest.is_empty() {
            self.open.insert(life, rest);
        }
        Ok(())
    }

    /// An owner refused a change; whatever was done of it is taken back by a transaction not above
    /// `until`.
    pub(crate) fn refused(&mut self, life: u64, txn: Txn, until: Txn) -> Option<OpId> {
        let open = self.open.get_mut(&life)?;
        let known = |op: &OpId| self.ops.get(*op).is_some_and(|known| known.txn == txn);
        let place = open.iter().position(known)?;
        let op = *open.get(place)?;
        self.refused += 1;
        if matches!(
            self.ops.get(op)?.status,
            Status::Adopted(_) | Status::Fenced
        ) {
            // Another owner has adopted or fenced the change. Later acknowledgements of this owner do
            // not concern the change.
            open.remove(place);
        }
        if self.status(op) == Status::Flying {
            let made = self
                .ops
                .get(op)
                .is_some_and(|op| !op.effects.makes.is_empty());
            let status = if made {
                Status::Void(until)
            } else {
                Status::Gone
            };
            self.settle(op, status);
        }
        Some(op)
    }

    /// An owner opens and goes on after `base`.
    ///
    /// # Errors
    ///
    /// If an acknowledged change lies behind `base` (R5).
    pub(crate) fn open(
        &mut self,
        (life, epoch): (u64, u64),
        base: Txn,
        step: Step,
    ) -> Result<(), String> {
        if epoch < self.epoch {
            // The owner does not know yet that another owner has opened since.
            return Ok(());
        }
        self.epoch = epoch;
        if base < self.floor {
            return Err(format!(
                "owner {life} opened after transaction {base}, but {} had been acknowledged",
                self.floor
            ));
        }
        self.floor = base;
        for op in std::mem::take(&mut self.lineage) {
            let Some(known) = self.ops.get(op) else {
                continue;
            };
            let stands = known.txn <= base;
            match known.status {
                Status::Flying if stands => self.settle(op, Status::Adopted(step)),
                Status::Flying => self.settle(op, Status::Fenced),
                Status::Void(_) if stands => self.split(op, step),
                Status::Void(_) => self.settle(op, Status::Gone),
                Status::Adopted(_) if !stands => self.settle(op, Status::Gone),
                Status::Done(_) | Status::Gone | Status::Adopted(_) | Status::Fenced => {}
            }
            if stands {
                self.lineage.push(op);
            }
        }
        self.head = life;
        Ok(())
    }

    /// Splits a refused change that was being taken back record by record: each record may be present,
    /// or not.
    fn split(&mut self, op: OpId, step: Step) {
        let Some(known) = self.ops.get(op) else {
            return;
        };
        let (life, txn, makes) = (known.life, known.txn, known.effects.makes.clone());
        for (key, made) in makes {
            let part = self.ops.len();
            let effects = Effects {
                makes: vec![(key, made)],
                ..Effects::default()
            };
            self.ops.push(Op {
                life,
                txn,
                status: Status::Adopted(step),
                effects,
            });
            if let Some(record) = self.record_mut(key)
                && record.made == op
            {
                record.made = part;
                for (by, _) in &mut record.metas {
                    if *by == op {
                        *by = part;
                    }
                }
            }
        }
        self.settle(op, Status::Gone);
    }

    /// A change that another owner adopted was found to be done, or not.
    pub(crate) fn resolve(&mut self, op: OpId, done: bool) {
        if let Status::Adopted(step) = self.status(op) {
            self.settle(
                op,
                if done {
                    Status::Done(step)
                } else {
                    Status::Gone
                },
            );
        }
    }

    fn settle(&mut self, op: OpId, status: Status) {
        let Some(known) = self.ops.get_mut(op) else {
            return;
        };
        known.status = status;
        if !matches!(status, Status::Gone | Status::Fenced | Status::Void(_)) {
            return;
        }
        let (ends, drops) = (known.effects.ends.clone(), known.effects.drops);
        for key in ends {
            if let Some(record) = self.record_mut(key)
                && record.ended == Some(op)
            {
                record.ended = None;
            }
        }
        if let Some(queue) = drops.and_then(|queue| self.queues.get_mut(queue))
            && queue.dropped == Some(op)
        {
            queue.dropped = None;
        }
    }

    fn is_settled(&self, op: OpId) -> bool {
        matches!(
            self.status(op),
            Status::Done(_) | Status::Gone | Status::Fenced
        )
    }

    /// Whether a record certainly exists without a change in progress.
    pub(crate) fn is_idle(&self, record: &Record) -> bool {
        matches!(self.status(record.made), Status::Done(_))
            && record.ended.is_none()
            && record.metas.iter().all(|(op, _)| self.is_settled(*op))
    }

    /// Whether a record is gone for sure.
    pub(crate) fn is_over(&self, record: &Record) -> bool {
        let ended = record.ended.map(|op| self.status(op));
        matches!(ended, Some(Status::Done(_)))
            || matches!(self.status(record.made), Status::Gone | Status::Fenced)
    }

    /// Whether a queue is there for sure and will be.
    pub(crate) fn is_usable(&self, queue: &Queue) -> bool {
        let made = queue.made.map(|op| self.status(op));
        matches!(made, Some(Status::Done(_))) && queue.dropped.is_none()
    }

    /// Queues that certainly exist.
    pub(crate) fn usable_queues(&self) -> Vec<QueueIndex> {
        let usable = |index: &QueueIndex| {
            self.queues
                .get(*index)
                .is_some_and(|queue| self.is_usable(queue))
        };
        (0..self.queues.len()).filter(usable).collect()
    }

    /// Records that certainly exist without a change in progress.
    pub(crate) fn idle_records(&self) -> Vec<Key> {
        let mut keys = Vec::new();
        for (index, queue) in self.queues.iter().enumerate() {
            if self.is_usable(queue) {
                let idle = queue
                    .records
                    .iter()
                    .filter(|(_, record)| self.is_idle(record));
                keys.extend(idle.map(|(id, _)| (index, *id)));
            }
        }
        keys
    }

    /// The last certain metadata of a record.
    pub(crate) fn meta_of(&self, record: &Record) -> Bytes {
        let done = |(op, _): &&(OpId, Bytes)| matches!(self.status(*op), Status::Done(_));
        let last = record.metas.iter().rev().find(done);
        last.map(|(_, meta)| meta.clone()).unwrap_or_default()
    }

    pub(crate) fn queue_id(&self, queue: QueueIndex) -> QueueId {
        self.queues
            .get(queue)
            .map_or(QueueId(u32::MAX), |queue| queue.id)
    }

    pub(crate) fn key_id(key: Key) -> RecordId {
        RecordId(key.1)
    }
}
