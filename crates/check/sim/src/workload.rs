//! Changes as a gateway makes them: new mail for several queues with one body, results that end a
//! record and create a report, new delivery times, new next hops.

use bytes::Bytes;
use vere_owner::SubmitError;
use vere_spoolwire::Batch;
use vere_spoolwire::{Grants, QueueCharter, QueueLimits, QueueStat, RecordId, Right};

use crate::model::{Effects, Key, Made, Model, QueueIndex};
use crate::world::World;

/// The longest metadata, and a usual length.
pub(crate) const META_MAX: u64 = 400;

/// Queues at once, about.
const QUEUES: usize = 6;
/// Records at once, about.
const RECORDS: usize = 150;

/// The account that may read some of the queues.
const READER: &str = "reader";

/// Whether the queue of this index has readers of its own.
const fn is_named(queue: QueueIndex) -> bool {
    queue % 2 == 1
}

/// Whether a node's queue of this index has the correct readers.
pub(crate) fn is_read_by_its_own(queue: QueueIndex, stat: &QueueStat) -> bool {
    let readers = stat.readers.get();
    let named = readers.iter().map(|(account, _)| account);
    named.eq(is_named(queue).then_some(READER))
}

/// A batch under construction.
#[derive(Debug, Default)]
struct Making {
    batch: Batch,
    effects: Effects,
    /// The queues of the new records, in order.
    to: Vec<(QueueIndex, Made)>,
    taken: Vec<Key>,
}

impl World {
    /// Submits one change.
    ///
    /// # Errors
    ///
    /// When the owner gives out a number twice.
    pub(crate) fn submit_something(&mut self, owner: usize) -> Result<(), String> {
        let queues = self.model.usable_queues();
        let choice = self.owners[owner].client.random.below(100);
        match choice {
            _ if queues.is_empty() => self.submit_create(owner),
            0..4 if queues.len() < QUEUES => self.submit_create(owner),
            4..8 => self.submit_purge(owner, &queues),
            _ => self.submit_batch(owner, &queues),
        }
    }

    fn submit_create(&mut self, owner: usize) -> Result<(), String> {
        let name = format!("queue-{}", self.model.queues.len());
        let tight = self.scenario.tight;
        let state = &mut self.owners[owner];
        let mut limits = QueueLimits::UNLIMITED;
        if tight && state.client.random.percent(50) {
            limits.length_max = state.client.random.span(1..50);
        }
        // Every second queue has readers of its own: replicas must agree on the readers as well.
        let reader = is_named(self.model.queues.len()).then_some((READER, Right::Read));
        let octets = Grants::encode(reader).unwrap_or_default();
        let readers = Grants::read(&octets).unwrap_or_default();
        let charter = QueueCharter { limits, readers };
        let Ok((id, txn)) = state.machine.create_queue(&name, charter) else {
            return Ok(());
        };
        let life = state.life;
        let queue = self.model.add_queue(id, name);
        let effects = Effects {
            creates: Some(queue),
            ..Effects::default()
        };
        self.model.submit(life, txn, effects).map(|_| ())
    }

    fn submit_purge(&mut self, owner: usize, queues: &[QueueIndex]) -> Result<(), String> {
        let Some(queue) = self.owners[owner].client.random.pick(queues) else {
            return Ok(());
        };
        let Some(known) = self.model.queues.get(queue) else {
            return Ok(());
        };
        let records = known.records.iter();
        let live = records
            .filter(|(_, record)| !self.model.is_over(record))
            .collect::<Vec<_>>();
        let idle = live
            .iter()
            .take_while(|(_, record)| self.model.is_idle(record));
        let idle: Vec<u64> = idle.map(|(id, _)| **id).collect();
        let whole = idle.len() == live.len();
        let random = &mut self.owners[owner].client.random;
        let drop = whole && random.percent(40);
        let count = if drop {
            idle.len()
        } else {
            random.below(idle.len() + 1)
        };
        let through = idle.get(..count).and_then(<[u64]>::last).copied();
        let Some(through) = through.or_else(|| drop.then_some(0)) else {
            return Ok(());
        };
        let (id, state) = (known.id, &mut self.owners[owner]);
        let Ok(txn) = state.machine.purge(id, RecordId(through), drop) else {
            return Ok(());
        };
        let effects = Effects {
            ends: idle.iter().take(count).map(|id| (queue, *id)).collect(),
            drops: drop.then_some(queue),
            ..Effects::default()
        };
        self.model.submit(state.life, txn, effects).map(|_| ())
    }

    fn submit_batch(&mut self, owner: usize, queues: &[QueueIndex]) -> Result<(), String> {
        let idle = self.model.idle_records();
        let mut making = Making::default();
        let random = &mut self.owners[owner].client.random;
        let choice = random.below(100);
        // The more records exist, the more records are ended.
        let full = idle.len() >= RECORDS;
        if self.calm && self.scenario.tight && idle.len() > 10 {
            // Shared bodies take more space after copying: free some space.
            self.add_end(owner, &idle, &mut making);
        }
        match choice {
            _ if !making.batch.is_empty() => {}
            0..45 if !full => self.add_mail(owner, queues, &mut making),
            0..70 => self.add_end(owner, &idle, &mut making),
            70..75 => {
                self.add_end(owner, &idle, &mut making);
                self.add_mail(owner, queues, &mut making);
            }
            75..85 => self.add_replace(owner, &idle, &mut making),
            85..95 => self.add_move(owner, &idle, queues, &mut making),
            _ => {
                for _ in 0..4 {
                    self.add_end(owner, &idle, &mut making);
                    self.add_replace(owner, &idle, &mut making);
                    self.add_move(owner, &idle, queues, &mut making);
                }
                self.add_mail(owner, queues, &mut making);
            }
        }
        let state = &mut self.owners[owner];
        let committed = match state.machine.commit(making.batch) {
            Ok(committed) => committed,
            Err(SubmitError::Busy | SubmitError::Unknown | SubmitError::Invalid) => return Ok(()),
        };
        let mut effects = making.effects;
        for (id, (queue, made)) in committed.ids.iter().zip(making.to) {
            effects.makes.push(((queue, id.0), made));
        }
        self.model
            .submit(state.life, committed.txn, effects)
            .map(|_| ())
    }

    /// Makes octets unlike any other octets.
    fn octets(&mut self, owner: usize, len: u64) -> Bytes {
        let random = &mut self.owners[owner].client.random;
        let tag = random.next().to_le_bytes();
        tag.iter().copied().cycle().take(8 + len as usize).collect()
    }

    fn add_mail(&mut self, owner: usize, queues: &[QueueIndex], making: &mut Making) {
        let body_max = self.scenario.body_max;
        let random = &mut self.owners[owner].client.random;
        let copies = if random.percent(60) {
            1
        } else {
            1 + random.below(5)
        };
        let len = random.span(1..body_max);
        let mut body = self.octets(owner, len);
        for _ in 0..copies {
            let random = &mut self.owners[owner].client.random;
            let Some(queue) = random.pick(queues) else {
                return;
            };
            let (other, meta_len) = (random.percent(20), random.span(1..META_MAX));
            if other {
                body = self.octets(owner, len / 2);
            }
            let meta = self.octets(owner, meta_len);
            making
                .batch
                .put(self.model.queue_id(queue), meta.clone(), body.clone());
            let body = body.clone();
            making.to.push((queue, Made { meta, body }));
        }
    }

    /// A record without a change in the batch so far.
    fn take(&mut self, owner: usize, idle: &[Key], making: &mut Making) -> Option<Key> {
        let random = &mut self.owners[owner].client.random;
        let key = random.pick(idle)?;
        let free = !making.taken.contains(&key);
        free.then(|| {
            making.taken.push(key);
            key
        })
    }

    fn add_end(&mut self, owner: usize, idle: &[Key], making: &mut Making) {
        if let Some(key) = self.take(owner, idle, making) {
            making
                .batch
                .delete(self.model.queue_id(key.0), Model::key_id(key));
            making.effects.ends.push(key);
        }
    }

    fn add_replace(&mut self, owner: usize, idle: &[Key], making: &mut Making) {
        if let Some(key) = self.take(owner, idle, making) {
            let len = self.owners[owner].client.random.span(1..META_MAX);
            let meta = self.octets(owner, len);
            making
                .batch
                .replace(self.model.queue_id(key.0), Model::key_id(key), meta.clone());
            making.effects.replaces.push((key, meta));
        }
    }

    fn add_move(&mut self, owner: usize, idle: &[Key], queues: &[QueueIndex], making: &mut Making) {
        let Some(to) = self.owners[owner].client.random.pick(queues) else {
            return;
        };
        let Some(key) = self.take(owner, idle, making) else {
            return;
        };
        let Some(record) = self.model.record(key) else {
            return;
        };
        let mut made = Made {
            meta: self.model.meta_of(record),
            body: record.body.clone(),
        };
        let mut meta = None;
        if self.owners[owner].client.random.percent(50) {
            let len = self.owners[owner].client.random.span(1..META_MAX);
            made.meta = self.octets(owner, len);
            meta = Some(made.meta.clone());
        }
        let (from_id, to_id) = (self.model.queue_id(key.0), self.model.queue_id(to));
        making
            .batch
            .move_to(from_id, Model::key_id(key), to_id, meta);
        making.effects.ends.push(key);
        making.to.push((to, made));
    }
}
