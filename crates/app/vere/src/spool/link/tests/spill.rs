//! More than fits into memory, through a real node and a real file.

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
    let mut node = start(durability.clone(), directory);
    let link = connect(options(node.address)).await;
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
            0 => batch.delete(queue, id),
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
    let link = connect(options(node.address)).await;
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
    };
    let durability = Durability::Synced {
        directory: directory.path().to_owned(),
        log,
    };
    local(work(durability, directory.path()));
}
