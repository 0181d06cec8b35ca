//! A node that is whole and one that is rebuilt from it, while everything changes.

use vere_spoolwire::{
    Change, FLAG_KEPT, Grants, Mutation, QueueCharter, Right, Txn, encode_batch, encode_change,
    encode_create, encode_kept_create, encode_purge, encode_reset,
};

use super::peer::{HELLO, Peer, Site, encoded, request};
use super::*;

/// A cursor beyond which nothing is to be copied.
const DONE: u64 = u64::MAX;

#[derive(Debug, Clone)]
enum Step {
    Create(u32, u64),
    Changes(Vec<Kind>),
    Purge(u32, prop::sample::Index, bool),
    /// Reads so many records of some queue that is not copied yet.
    Fetch(u32),
    /// Carries over what was read.
    CarryOver,
    /// Sends transactions to the one that is rebuilt, in pieces.
    Carry(usize, usize),
    Sync,
    Crash(usize),
}

#[derive(Debug, Clone)]
struct Kind {
    what: u8,
    queue: u32,
    to: u32,
    at: prop::sample::Index,
    len: usize,
}

fn kind() -> impl Strategy<Value = Kind> {
    let numbers = (0..6_u8, 0..3_u32, 0..3_u32, 0..300_usize);
    (numbers, any::<prop::sample::Index>()).prop_map(|((what, queue, to, len), at)| Kind {
        what,
        queue,
        to,
        at,
        len,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>();
    prop_oneof![
        1 => (0..3_u32, 10_000..20_000_u64).prop_map(|(id, max)| Step::Create(id, max)),
        8 => proptest::collection::vec(kind(), 1..5).prop_map(Step::Changes),
        1 => (0..3_u32, index, any::<bool>()).prop_map(|(id, at, drop)| Step::Purge(id, at, drop)),
        4 => (1..4_u32).prop_map(Step::Fetch),
        4 => Just(Step::CarryOver),
        3 => (1..9_usize, 1..200_usize).prop_map(|(many, piece)| Step::Carry(many, piece)),
        2 => Just(Step::Sync),
        1 => (0..4_usize).prop_map(Step::Crash),
    ]
}

/// Records read at a position of the stream, in which they have to be carried over.
struct Block {
    at: u64,
    frames: Vec<u8>,
}

struct Pair {
    source: Site,
    target: Site,
    owner: Peer,
    copier: Peer,
    /// The last transaction the source was sent.
    submitted: u64,
    /// The last one the target was sent.
    carried: u64,
    /// What the target was not sent yet.
    stream: Vec<(u64, Vec<u8>)>,
    /// From which record on each queue is to be copied.
    cursors: BTreeMap<u32, u64>,
    block: Option<Block>,
}

impl Pair {
    fn new(source: Site, target: Site) -> Self {
        let (mut source, mut target) = (source, target);
        let (owner, _) = source.welcomed(HELLO);
        let (copier, _) = target.welcomed(HELLO);
        let mut pair = Self {
            source,
            target,
            owner,
            copier,
            submitted: 0,
            carried: 0,
            stream: Vec::new(),
            cursors: BTreeMap::new(),
            block: None,
        };
        for id in 0..3 {
            pair.create(id, 10_000);
        }
        let put = |at: u64, queue| Change::Put {
            queue: QueueId(queue),
            id: RecordId(at),
            meta: &[b'm'; 20][..at as usize % 20],
            body: Some(&[7; 99]),
        };
        for at in 1..40 {
            pair.submit(|out, txn| encode_change(out, txn, &put(at, at as u32 % 3), 0));
        }
        pair.begin();
        pair
    }

    fn submit(&mut self, write: impl FnOnce(&mut Vec<u8>, Txn)) {
        self.submitted += 1;
        let frame = encoded(|out| write(out, Txn(self.submitted)));
        self.owner.send(&mut self.source.node, &frame);
        self.stream.push((self.submitted, frame));
    }

    /// The target forgets everything, and gets the queues.
    fn begin(&mut self) {
        self.stream.clear();
        self.block = None;
        self.cursors.clear();
        self.carried = self.submitted;
        let at = Txn(self.submitted);
        let mut octets = encoded(|out| encode_reset(out, at));
        for queue in self.source.node.queues("gateway") {
            self.cursors.insert(queue.id.0, 0);
            encode_kept_create(&mut octets, at, &queue);
        }
        self.copier.send(&mut self.target.node, &octets);
    }

    fn create(&mut self, id: u32, max: u64) {
        let limits = QueueLimits {
            length_max: max,
            bytes_max: max * 1000,
        };
        let name = format!("queue-{id}");
        // Every other time it is made it has a reader.
        let grants = Grants::encode([("reader", Right::Read)]).unwrap();
        let read = if max.is_multiple_of(2) {
            &grants[..]
        } else {
            &[]
        };
        let readers = Grants::read(read).unwrap();
        let charter = QueueCharter { limits, readers };
        self.submit(|out, txn| encode_create(out, txn, QueueId(id), &name, charter));
        // A new queue has nothing to copy.
        self.cursors.entry(id).or_insert(DONE);
    }

    fn living(&self, queue: u32, at: prop::sample::Index) -> Option<RecordId> {
        let queue = self.source.node.groups[0].store.queue(QueueId(queue))?;
        let ids: Vec<_> = queue.iter_from(RecordId(0)).map(|(id, _)| id).collect();
        (!ids.is_empty()).then(|| ids[at.index(ids.len())])
    }

    /// What comes over the wire must not be refused: the source and the target would part.
    fn changes(&mut self, kinds: &[Kind]) {
        let body: Vec<u8> = (0..=255).cycle().take(400).collect();
        let (mut named, mut next) = (Vec::new(), BTreeMap::new());
        for queue in self.source.node.queues("gateway") {
            next.insert(queue.id.0, queue.next.0);
        }
        let mut changes = Vec::new();
        for kind in kinds {
            let (queue, to) = (QueueId(kind.queue), QueueId(kind.to));
            let meta = &body[kind.len / 2..kind.len];
            if kind.what < 2 {
                let Some(id) = next.get_mut(&kind.queue) else {
                    continue;
                };
                let shared = changes
                    .iter()
                    .any(|change| matches!(change, Change::Put { .. }));
                let own = kind.what == 0 || !shared;
                changes.push(Change::Put {
                    queue,
                    id: RecordId(*id),
                    meta,
                    body: own.then_some(&body[..kind.len]),
                });
                *id += 1 + kind.len as u64 % 2;
                continue;
            }
            let Some(id) = self.living(kind.queue, kind.at) else {
                continue;
            };
            if named.contains(&(queue, id)) {
                continue;
            }
            named.push((queue, id));
            changes.push(match kind.what {
                2 => Change::Delete { queue, id },
                3 => Change::Replace { queue, id, meta },
                _ => {
                    let Some(to_next) = next.get_mut(&kind.to) else {
                        continue;
                    };
                    let to_id = RecordId(*to_next);
                    *to_next += 1;
                    // The target may not have it: then it has to be read where it goes.
                    if self.cursors[&kind.queue] <= id.0 {
                        let cursor = self.cursors.get_mut(&kind.to).unwrap();
                        *cursor = to_id.0.min(*cursor);
                    }
                    Change::Move {
                        queue,
                        id,
                        to,
                        to_id,
                        meta: (kind.what == 4).then_some(meta),
                    }
                }
            });
        }
        match changes[..] {
            [] => {}
            [one] => self.submit(|out, txn| encode_change(out, txn, &one, 0)),
            _ => self.submit(|out, txn| encode_batch(out, txn, changes.iter().copied(), 0)),
        }
    }

    fn purge(&mut self, id: u32, at: prop::sample::Index, drop: bool) {
        let Some(queue) = self.source.node.groups[0].store.queue(QueueId(id)) else {
            return;
        };
        let through = if drop {
            queue.next
        } else {
            at.index(queue.next as usize) as u64
        };
        let through = RecordId(through);
        self.submit(|out, txn| encode_purge(out, txn, QueueId(id), through, drop));
        if drop {
            self.cursors.remove(&id);
        }
    }

    fn fetch(&mut self, records: u32) {
        let to_copy = |(_, cursor): &(&u32, &u64)| **cursor != DONE;
        let Some((&id, &from)) = self.cursors.iter().find(to_copy) else {
            return;
        };
        if self.block.is_some() {
            return;
        }
        let fetch = Request::Fetch {
            queue: QueueId(id),
            from: RecordId(from),
            records,
            octets: 1 << 20,
        };
        self.owner.frames(&mut self.source.node);
        self.owner.send(&mut self.source.node, &request(fetch, 1));
        let mut frames = Vec::new();
        for octets in self.owner.frames(&mut self.source.node) {
            let frame = Frame::read(&octets, 1 << 20).unwrap().unwrap();
            match Answer::decode(&frame) {
                Ok(Answer::Block { head, .. }) => {
                    let cursor = if head.end { DONE } else { head.next.0 };
                    self.cursors.insert(id, cursor);
                }
                Ok(_) => {}
                Err(_) => {
                    let Ok(Mutation::Change(put)) = Mutation::decode_logged(&frame) else {
                        panic!("no record")
                    };
                    encode_change(&mut frames, Txn(self.submitted), &put, FLAG_KEPT);
                }
            }
        }
        let at = self.submitted;
        self.block = Some(Block { at, frames });
    }

    /// Sends the target transactions up to `through`.
    fn carry(&mut self, through: u64, piece: usize) {
        let count = self.stream.partition_point(|(txn, _)| *txn <= through);
        let octets: Vec<u8> = self
            .stream
            .drain(..count)
            .flat_map(|(_, frame)| frame)
            .collect();
        for piece in octets.chunks(piece) {
            self.copier.send(&mut self.target.node, piece);
        }
        self.carried = self.carried.max(through);
    }

    fn carry_over(&mut self) {
        if let Some(block) = self.block.take() {
            self.carry(block.at, 1000);
            self.copier.send(&mut self.target.node, &block.frames);
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Create(id, max) => self.create(*id, *max),
            Step::Changes(kinds) => self.changes(kinds),
            Step::Purge(id, at, drop) => self.purge(*id, *at, *drop),
            Step::Fetch(records) => self.fetch(*records),
            Step::CarryOver => self.carry_over(),
            Step::Carry(many, piece) => {
                // Not beyond where a block belongs.
                let most = self.block.as_ref().map_or(self.submitted, |block| block.at);
                let through = most.min(self.carried + *many as u64);
                self.carry(through, *piece);
            }
            Step::Sync => {
                self.source.settle();
                self.target.settle();
            }
            Step::Crash(more) if self.target.log.is_some() => {
                self.target.crash(*more);
                (self.copier, _) = self.target.welcomed(HELLO);
                // What was not synced is gone, and nobody knows how much that is.
                self.begin();
            }
            Step::Crash(_) => {}
        }
        self.source.node.end_turn(now());
        self.target.node.end_turn(now());
        assert_eq!(self.copier.closed(&mut self.target.node), None);
        assert_eq!(self.owner.closed(&mut self.source.node), None);
        assert!(self.target.stat().syncing);
    }

    fn finish(&mut self) {
        self.carry_over();
        while self.cursors.values().any(|cursor| *cursor != DONE) {
            self.fetch(9);
            self.carry_over();
        }
        self.carry(self.submitted, 777);
        self.copier
            .send(&mut self.target.node, &request(Request::Complete, 5));
        self.target.settle();
        self.source.settle();
        let answers = self.copier.answers(&mut self.target.node);
        let last = Txn(self.submitted);
        let alive = Answer::Alive {
            seq: Seq(5),
            processed: last,
            acknowledged: last,
        };
        assert!(answers.contains(&alive), "{answers:?}");
        self.assert_same();
        if self.target.log.is_some() {
            self.target.crash(0);
            self.assert_same();
            (self.copier, _) = self.target.welcomed(HELLO);
        }
        // And it stays so.
        self.create(9, 10_000);
        self.carry(self.submitted, 50);
        self.target.settle();
        self.assert_same();
    }

    fn assert_same(&self) {
        let (stat, other) = (self.target.stat(), self.source.stat());
        assert!(!stat.syncing);
        assert_eq!(stat.processed, other.processed);
        assert_eq!((stat.records, stat.bytes), (other.records, other.bytes));
        assert_eq!(self.target.contents(), self.source.contents());
        assert!(
            self.source.node.groups[0]
                .store
                .refused(Txn(0), Txn(u64::MAX))
                .is_empty()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 200 } else { 5000 }))]

    /// The one that is rebuilt ends with what the other holds, whatever happens meanwhile.
    #[test]
    fn a_rebuilt_group_is_the_same(steps in proptest::collection::vec(step(), 1..80)) {
        let mut pair = Pair::new(Site::new(None), Site::new(None));
        for step in &steps {
            pair.step(step);
        }
        pair.finish();
    }

    /// The same with a log that rolls and is compacted all the time, and with crashes.
    #[test]
    fn a_rebuilt_group_with_a_log_is_the_same(steps in proptest::collection::vec(step(), 1..80)) {
        let log = || Some(MemoryLog::new(1 << 10));
        let mut pair = Pair::new(Site::new(log()), Site::new(log()));
        for step in &steps {
            pair.step(step);
        }
        pair.finish();
    }
}
