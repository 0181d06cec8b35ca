//! Long runs in which everything moves: segments of memory and log fill, empty, are closed up and go,
//! under records that are replaced, moved and shared, with crashes in between.

use super::*;

/// Random enough, and the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

pub(super) struct Busy {
    pub(super) run: Run,
    dice: Dice,
    body: Bytes,
}

const QUEUES: usize = 3;

impl Busy {
    fn new(seed: u64, log: Option<MemoryLog>) -> Self {
        Self::with(seed, Run::new(log))
    }

    pub(super) fn with(seed: u64, run: Run) -> Self {
        let body: Vec<u8> = (0..4000_u32).map(|at| (at * at / 7) as u8).collect();
        let mut busy = Self {
            run,
            dice: Dice(seed | 1 << 40),
            body: Bytes::from(body),
        };
        for id in 0..QUEUES {
            let name = format!("queue-{id}");
            let limits = QueueLimits::UNLIMITED;
            let (queue, txn) = busy.run.pair.owner.create_queue(&name, limits).unwrap();
            busy.run.submit(txn, Submitted::Create(queue.0, limits));
        }
        busy
    }

    fn meta(&mut self) -> Bytes {
        let len = self.dice.below(100);
        self.body.slice(len..2 * len)
    }

    /// A living record, not named in this batch yet. The older the likelier: queues are worked off.
    fn living(&mut self, named: &mut Vec<(u32, u64)>) -> Option<(QueueId, RecordId)> {
        let queue = self.dice.below(QUEUES) as u32;
        let records = &self.run.model.queues[&queue].records;
        let most = records.len().min(12);
        if most == 0 {
            return None;
        }
        let nth = self.dice.below(most);
        let id = *records.keys().nth(nth)?;
        if named.contains(&(queue, id)) {
            return None;
        }
        named.push((queue, id));
        Some((QueueId(queue), RecordId(id)))
    }

    fn batch(&mut self) -> Batch {
        let (mut batch, mut named) = (Batch::new(), Vec::new());
        let population: usize = self
            .run
            .model
            .queues
            .values()
            .map(|queue| queue.records.len())
            .sum();
        let mut body = self.body.clone();
        for _ in 0..self.dice.below(5) + 1 {
            let kind = self.dice.below(10);
            // Grows to a hundred or so, then shrinks as fast.
            let put = kind < if population > 100 { 2 } else { 4 };
            if put {
                if self.dice.below(3) > 0 {
                    let len = self.dice.below(1500);
                    body = self.body.slice(len..2 * len);
                }
                let (queue, meta) = (QueueId(self.dice.below(QUEUES) as u32), self.meta());
                batch.put(queue, meta, body.clone());
                continue;
            }
            let meta = self.meta();
            let to = QueueId(self.dice.below(QUEUES) as u32);
            let Some((queue, id)) = self.living(&mut named) else {
                continue;
            };
            match kind {
                4 | 5 => batch.replace(queue, id, meta),
                6 => batch.move_to(queue, id, to, None),
                7 => batch.move_to(queue, id, to, Some(meta)),
                _ => batch.delete(queue, id),
            };
        }
        if batch.is_empty() {
            batch.put(QueueId(0), Bytes::new(), body);
        }
        batch
    }

    pub(super) fn round(&mut self) {
        let batch = self.batch();
        let committed = self.run.pair.owner.commit(batch.clone()).unwrap();
        self.run
            .submit(committed.txn, Submitted::Batch(batch, committed.ids));
        match self.dice.below(40) {
            0 => self.run.step(&Step::Cut),
            1 => {
                let more = self.dice.below(3);
                self.run.step(&Step::Crash(more));
            }
            2..6 => self.run.step(&Step::Sync),
            6..12 => self.run.step(&Step::LogSync),
            12..30 => {
                let (up, down) = (self.dice.below(3000), self.dice.below(3000));
                self.run.step(&Step::Carry(up, down));
            }
            _ => {
                self.run.pair.settle();
                self.run.pair.node.tick(now());
            }
        }
    }
}

/// What is not living is given back: an open segment or two, and holes that are not worth it.
fn assert_compact(busy: &mut Busy) {
    for _ in 0..200 {
        busy.run.pair.node.tick(now());
        busy.run.pair.sync();
    }
    let node = &busy.run.pair.node;
    let living = node.groups[0].store.segments.live_octets();
    let used = node.memory.used();
    assert!(
        used <= 3 * living + 10 * SEGMENT_LEN_MIN as u64,
        "{used} for {living}"
    );
}

pub(super) fn seeds() -> std::ops::Range<u64> {
    0..if cfg!(debug_assertions) { 25 } else { 1000 }
}

#[test]
fn busy_in_memory() {
    for seed in seeds() {
        let mut busy = Busy::new(seed, None);
        for _ in 0..8 {
            (0..60).for_each(|_| busy.round());
            busy.run.finish();
            assert_compact(&mut busy);
        }
    }
}

#[test]
fn busy_with_a_log() {
    let mut removed = 0;
    for seed in seeds() {
        let log = MemoryLog::new(2 << 10);
        let mut busy = Busy::new(seed, Some(log.clone()));
        for _ in 0..8 {
            (0..60).for_each(|_| busy.round());
            busy.run.finish();
            assert_compact(&mut busy);
            busy.run.pair.crash(0);
            busy.run.pair.connect();
            busy.run.finish();
        }
        removed += log.0.borrow().removed;
        let living = busy.run.pair.node.groups[0].store.segments.live_octets();
        assert!(
            log.0.borrow().octets() < 4 * living + (64 << 10),
            "seed {seed}"
        );
    }
    assert!(removed > 1000, "{removed}");
}
