//! Compares the records and queues that a client read with the model.

use std::collections::BTreeMap;

use vere_spoolwire::Block;
use vere_spoolwire::{QueueStat, RecordId};

use crate::model::{Model, OpId, QueueIndex, Record, Status, Step};
use crate::workload::is_read_by_its_own;

/// Whether the model requires a record or queue in a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Must {
    Yes,
    No,
    /// Present exactly if the change was done (`true`), or was not done (`false`).
    If(OpId, bool),
    Perhaps,
}

impl Model {
    /// The effect of a change on a read that was requested at `since`.
    fn seen(&self, op: OpId, since: Step) -> Must {
        match self.status(op) {
            Status::Done(at) if at <= since => Must::Yes,
            Status::Done(_) | Status::Void(_) => Must::Perhaps,
            Status::Flying | Status::Adopted(_) => Must::If(op, true),
            Status::Gone | Status::Fenced => Must::No,
        }
    }

    /// The changes to a record, as text for an error.
    fn story(&self, record: &Record) -> String {
        let tell = |op: &OpId| {
            let known = self.ops.get(*op);
            known.map_or_else(String::new, |op| {
                format!("{}/{} {:?}", op.life, op.txn, op.status)
            })
        };
        let metas: Vec<String> = record.metas.iter().map(|(op, _)| tell(op)).collect();
        let ended = record.ended.as_ref().map(tell);
        format!(
            "made {}, metadata {metas:?}, ended {ended:?}",
            tell(&record.made)
        )
    }

    /// The history of all records that a change touches, as text for an error.
    pub(crate) fn stories(&self, op: OpId) -> String {
        let Some(known) = self.ops.get(op) else {
            return String::new();
        };
        let ends = known.effects.ends.iter();
        let keys = ends.chain(known.effects.replaces.iter().map(|(key, _)| key));
        let story = |key| self.record(key).map(|record| (key, self.story(record)));
        format!(
            "{:?}",
            keys.filter_map(|key| story(*key)).collect::<Vec<_>>()
        )
    }

    fn presence(&self, record: &Record, since: Step) -> Must {
        let made = self.seen(record.made, since);
        let ended = record.ended.map_or(Must::No, |op| self.seen(op, since));
        match (made, ended) {
            (Must::No, _) | (_, Must::Yes) => Must::No,
            (made, Must::No) => made,
            (Must::Yes, Must::If(op, done)) => Must::If(op, !done),
            _ => Must::Perhaps,
        }
    }

    /// Compares a block with the model. The block was requested at `since`, from record `from` on.
    ///
    /// # Errors
    ///
    /// A description of the first difference.
    pub(crate) fn check_block(
        &mut self,
        queue: QueueIndex,
        from: RecordId,
        block: &Block,
        since: Step,
    ) -> Result<(), String> {
        let mut last = None;
        for record in &block.records {
            if Some(record.id) <= last || record.id < from || record.id >= block.next {
                return Err(format!("queue {queue}: record {} out of order", record.id));
            }
            last = Some(record.id);
        }
        let mut evidence = BTreeMap::new();
        let there: BTreeMap<u64, _> = block.records.iter().map(|r| (r.id.0, r)).collect();
        for (id, record) in &there {
            self.check_record(queue, *id, record, since, &mut evidence)?;
        }
        let end = if block.end { u64::MAX } else { block.next.0 };
        let Some(known) = self.queues.get(queue) else {
            return Err(format!("queue {queue} was never made"));
        };
        let ids = known.records.range(from.0..end).map(|(id, _)| *id);
        for id in ids.collect::<Vec<_>>() {
            if !there.contains_key(&id) {
                self.check_absence(queue, id, since, &mut evidence)?;
            }
        }
        Ok(())
    }

    fn check_record(
        &mut self,
        queue: QueueIndex,
        id: u64,
        there: &vere_spoolwire::Record,
        since: Step,
        evidence: &mut BTreeMap<OpId, bool>,
    ) -> Result<(), String> {
        let Some(record) = self.record((queue, id)) else {
            return Err(format!("queue {queue}: record {id} was never submitted"));
        };
        let presence = self.presence(record, since);
        if record.body != there.body {
            return Err(format!("queue {queue}: record {id} has another body"));
        }
        if presence == Must::No {
            let story = self.story(record);
            return Err(format!(
                "queue {queue}: record {id} is there and must not be: {story}"
            ));
        }
        let meta = self.check_meta(queue, id, record, &there.meta, since)?;
        self.prove(presence, true, evidence)?;
        self.prove(meta, true, evidence)
    }

    /// The change that the metadata proves or disproves.
    fn check_meta(
        &self,
        queue: QueueIndex,
        id: u64,
        record: &Record,
        meta: &[u8],
        since: Step,
    ) -> Result<Must, String> {
        let mut disproved = Must::Perhaps;
        for (op, known) in record.metas.iter().rev() {
            let seen = if *op == record.made {
                Must::Yes
            } else {
                self.seen(*op, since)
            };
            if seen == Must::No {
                continue;
            }
            if known.as_ref() == meta {
                // Changes newer than the block's metadata cannot be done.
                return Ok(if disproved == Must::Perhaps {
                    seen
                } else {
                    disproved
                });
            }
            match seen {
                Must::Yes => break,
                Must::If(op, done) => disproved = Must::If(op, !done),
                Must::No | Must::Perhaps => {}
            }
        }
        let story = self.story(record);
        Err(format!(
            "queue {queue}: record {id} has metadata that it must not have: {story}"
        ))
    }

    fn check_absence(
        &mut self,
        queue: QueueIndex,
        id: u64,
        since: Step,
        evidence: &mut BTreeMap<OpId, bool>,
    ) -> Result<(), String> {
        let Some(record) = self.record((queue, id)) else {
            return Ok(());
        };
        let presence = self.presence(record, since);
        if presence == Must::Yes {
            let txn = self.ops.get(record.made).map(|op| op.txn);
            let story = self.story(record);
            return Err(format!(
                "queue {queue}: record {id} of transaction {txn:?} was acknowledged and is lost: \
                 {story}"
            ));
        }
        self.prove(presence, false, evidence)
    }

    /// Checks that a block shows a single moment: every effect of a change, or no effect.
    fn prove(
        &mut self,
        must: Must,
        there: bool,
        evidence: &mut BTreeMap<OpId, bool>,
    ) -> Result<(), String> {
        let Must::If(op, done) = must else {
            return Ok(());
        };
        let done = done == there;
        if *evidence.entry(op).or_insert(done) != done {
            let txn = self.ops.get(op).map(|op| op.txn);
            return Err(format!("transaction {txn:?} was done by half"));
        }
        self.resolve(op, done);
        Ok(())
    }

    /// Compares the list of all queues with the model. The list was requested at `since`.
    ///
    /// # Errors
    ///
    /// A description of the first difference.
    pub(crate) fn check_queues(&mut self, list: &[QueueStat], since: Step) -> Result<(), String> {
        for index in 0..self.queues.len() {
            let Some(queue) = self.queues.get(index) else {
                break;
            };
            let there = list
                .iter()
                .find(|stat| stat.id == queue.id && stat.name == queue.name);
            let made = queue.made.map_or(Must::No, |op| self.seen(op, since));
            let dropped = queue.dropped.map_or(Must::No, |op| self.seen(op, since));
            let must = match (made, dropped) {
                (Must::No, _) | (_, Must::Yes) => Must::No,
                (made, Must::No) => made,
                (Must::Yes, Must::If(op, done)) => Must::If(op, !done),
                _ => Must::Perhaps,
            };
            let name = &queue.name;
            match (must, there) {
                (Must::Yes, None) => return Err(format!("queue {name} is lost")),
                (Must::No, Some(_)) => return Err(format!("queue {name} must not be there")),
                _ => {}
            }
            if let Some(stat) = there {
                if !is_read_by_its_own(index, stat) {
                    return Err(format!("queue {name} is read by others: {stat:?}"));
                }
                self.check_numbers(index, stat, since)?;
            }
            self.prove(must, there.is_some(), &mut BTreeMap::new())?;
        }
        let known = |stat: &QueueStat| {
            self.queues
                .iter()
                .any(|queue| queue.id == stat.id && queue.name == stat.name)
        };
        match list.iter().find(|stat| !known(stat)) {
            Some(stat) => Err(format!("queue {} was never made", stat.name)),
            None => Ok(()),
        }
    }

    /// Checks that no record number is given out twice.
    fn check_numbers(&self, queue: usize, stat: &QueueStat, since: Step) -> Result<(), String> {
        let Some(known) = self.queues.get(queue) else {
            return Ok(());
        };
        let made = |(_, record): &(&u64, &Record)| self.seen(record.made, since) == Must::Yes;
        let last = known.records.iter().rev().find(made);
        match last {
            Some((id, _)) if *id >= stat.next.0 => Err(format!(
                "queue {}: number {} comes next, but {id} was used",
                known.name, stat.next
            )),
            _ => Ok(()),
        }
    }
}
