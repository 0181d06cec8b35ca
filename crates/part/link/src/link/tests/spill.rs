//! More than fits into memory, through a real node and a real file.

use std::time::Instant;

use super::*;

const BODY: usize = 64 << 10;
const RECORDS: u64 = 3200;

/// Four megabytes of segment, 64 of memory, 200 of records.
fn start(durability: Durability, directory: &Path) -> RunningNode {
    let config = config();
    let options = SpillOptions {
        room: 1 << 30,
        spare: 0,
        block_len: config.segment_len,
    };
    let spill = Some((directory.to_owned(), options));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    RunningNode::start_with(listener, durability, spill, config)
}

/// The body of a record; no two are alike.
fn body(number: u64) -> Bytes {
    let mut octets = vec![number as u8; BODY - (number % 1000) as usize];
    octets[..8].copy_from_slice(&number.to_le_bytes());
    octets.into()
}

async fn fill(link: &SpoolLink, queue: QueueId) -> Vec<RecordId> {
    let mut ids = Vec::new();
    for first in (0..RECORDS).step_by(100) {
        let commits: Vec<_> = (first..first + 100)
            .map(|number| {
                let mut batch = Batch::new();
                batch.put(queue, Bytes::from(number.to_string()), body(number));
                link.commit(batch)
            })
            .collect();
        for commit in commits {
            ids.extend(commit.await.unwrap().ids);
        }
    }
    ids
}

/// Reads a queue in blocks and says which bodies, with which metadata, it holds.
async fn contents(link: &SpoolLink, queue: QueueId) -> Vec<(u64, String)> {
    let (mut from, mut found) = (RecordId(0), Vec::new());
    loop {
        let block = link.fetch(queue, from, 1000, 1 << 20).await.unwrap();
        for record in &block.records {
            let number = u64::from_le_bytes(*record.body.first_chunk().unwrap());
            assert!(record.body == body(number), "record {number}");
            found.push((number, String::from_utf8(record.meta.to_vec()).unwrap()));
        }
        from = block.next;
        if block.end {
            return found;
        }
    }
}

async fn work(durability: Durability, directory: &Path) {
    let register = TestRegister::new();
    let mut node = start(durability.clone(), directory);
    let link = connect(options(node.address, &register)).await;
    let (queue, other) = (
        link.create_queue("a.test", QueueLimits::UNLIMITED)
            .await
            .unwrap(),
        link.create_queue("b.test", QueueLimits::UNLIMITED)
            .await
            .unwrap(),
    );
    let ids = fill(&link, queue).await;
    let stat = link.stat().await.unwrap();
    assert!(stat.bytes > 3 * stat.memory_max, "{stat:?}");
    assert!(
        stat.memory_used <= stat.memory_max && !stat.full,
        "{stat:?}"
    );
    let all: Vec<_> = (0..RECORDS)
        .map(|number| (number, number.to_string()))
        .collect();
    assert!(contents(&link, queue).await == all);

    // What lies on disk by now is ended, changed and moved where it lies.
    for number in 0..RECORDS {
        let (mut batch, id) = (Batch::new(), ids[number as usize]);
        match number % 4 {
            0 => {
                // Nobody waits for it alone: its sync is that of the next change.
                batch.delete(queue, id);
                link.post(batch).unwrap();
                continue;
            }
            1 => batch.replace(queue, id, Bytes::from("later")),
            2 => batch.move_to(queue, id, other, None),
            _ => continue,
        };
        link.commit(batch).await.unwrap();
    }
    let mut node = match durability {
        Durability::Memory => node,
        Durability::Synced { .. } => {
            link.close();
            node.end();
            start(durability, directory)
        }
    };
    let link = connect(options(node.address, &register)).await;
    let kept = (0..RECORDS).filter(|number| number % 4 % 2 == 1);
    let meta = |number: u64| match number % 4 {
        1 => (number, "later".to_owned()),
        _ => (number, number.to_string()),
    };
    assert!(contents(&link, queue).await == kept.map(meta).collect::<Vec<_>>());
    let moved = (0..RECORDS).filter(|number| number % 4 == 2);
    assert!(contents(&link, other).await == moved.map(meta).collect::<Vec<_>>());
    let stat = link.stat().await.unwrap();
    assert!(stat.memory_used <= stat.memory_max, "{stat:?}");
    link.close();
    node.end();
}

#[test]
fn more_than_memory_without_a_log() {
    let directory = tempfile::tempdir().unwrap();
    local(work(Durability::Memory, directory.path()));
}

#[test]
fn more_than_memory_with_a_log_and_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let log = LogOptions {
        segment_len: 8 << 20,
        reserve_len: 1 << 20,
        outliner: Some(vere_spool::node::OUTLINER),
        index_behind: 0,
        ..LogOptions::default()
    };
    let durability = Durability::Synced {
        directory: directory.path().to_owned(),
        log,
    };
    local(work(durability, directory.path()));
}

const LARGE: usize = 10_000;

/// Prints how fast a queue of ten gigabytes is filled, read, and read and emptied, a twentieth at a
/// time. Run it in release where memory is limited and the disk has room: `SPILL_LARGE=directory`,
/// and `SPILL_RECORDS` for another number than a million.
#[test]
#[ignore = "takes a minute and ten gigabytes of disk"]
fn a_queue_of_ten_gigabytes() {
    let Some(directory) = std::env::var_os("SPILL_LARGE") else {
        return;
    };
    let records = std::env::var("SPILL_RECORDS").map_or(1_000_000, |text| text.parse().unwrap());
    local(large(PathBuf::from(directory), records));
}

async fn large(directory: PathBuf, records: u64) {
    let config = NodeConfig {
        memory_max: 1 << 30,
        ..config()
    };
    let options = SpillOptions {
        room: 16 << 30,
        spare: 1 << 30,
        block_len: config.segment_len,
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let spill = Some((directory, options));
    let mut node = RunningNode::start_with(listener, Durability::Memory, spill, config);
    let register = TestRegister::new();
    let link = connect(super::options(node.address, &register)).await;
    let queue = link
        .create_queue("a.test", QueueLimits::UNLIMITED)
        .await
        .unwrap();
    let mut pace = Pace::new("put", records);
    let (body, mut waiting) = (Bytes::from(vec![0x5A; LARGE]), Vec::new());
    for number in 0..records {
        let (mut batch, meta) = (Batch::new(), number.to_le_bytes());
        batch.put(queue, Bytes::copy_from_slice(&meta), body.clone());
        waiting.push(link.commit(batch));
        if waiting.len() == 400 || number + 1 == records {
            for commit in waiting.drain(..) {
                commit.await.unwrap();
            }
        }
        pace.note(number + 1);
    }
    println!("{:?}", link.stat().await.unwrap());
    read_large(&link, queue, records, false).await;
    read_large(&link, queue, records, true).await;
    link.close();
    node.end();
}

async fn read_large(link: &SpoolLink, queue: QueueId, records: u64, delete: bool) {
    let mut pace = Pace::new(if delete { "drain" } else { "read" }, records);
    let (mut from, mut seen) = (RecordId(0), 0_u64);
    while seen < records {
        let block = link.fetch(queue, from, 1000, 4 << 20).await.unwrap();
        let mut batch = Batch::new();
        for record in &block.records {
            assert_eq!(*record.meta, seen.to_le_bytes());
            assert!(record.body.len() == LARGE && record.body[LARGE - 1] == 0x5A);
            batch.delete(queue, record.id);
            seen += 1;
        }
        if delete {
            link.commit(batch).await.unwrap();
        }
        pace.note(seen);
        from = block.next;
    }
}

/// Prints a rate for every twentieth of something, and for all of it.
struct Pace {
    what: &'static str,
    all: u64,
    begun: Instant,
    told: (u64, Instant),
}

impl Pace {
    fn new(what: &'static str, all: u64) -> Self {
        let begun = Instant::now();
        Self {
            what,
            all,
            begun,
            told: (0, begun),
        }
    }

    fn note(&mut self, count: u64) {
        let rate =
            |(from, since): (u64, Instant)| (count - from) as f64 / since.elapsed().as_secs_f64();
        if (count - self.told.0) * 20 >= self.all {
            println!("{} {count}: {:.0}/s", self.what, rate(self.told));
            self.told = (count, Instant::now());
        }
        if count == self.all {
            println!("{} whole: {:.0}/s", self.what, rate((0, self.begun)));
        }
    }
}
