//! Two nodes, and octets of the log of one that flip while it does not run: found at its start, or later by
//! the thread that looks through old segments. It is filled again from the other one, and counts.

use std::os::unix::fs::FileExt;

use vere_owner::SyncState;

use super::*;

const RECORDS: usize = 60;
/// Octets of a record: a few make a segment.
const LEN: usize = 100_000;

fn start(directory: &Path, listener: TcpListener) -> RunningNode {
    let config = config();
    let spill = SpillOptions {
        room: 64 << 20,
        spare: 0,
        block_len: config.segment_len,
    };
    let spill = Some((directory.to_owned(), spill));
    RunningNode::start_with(listener, synced(directory), spill, config)
}

fn text(number: usize) -> String {
    format!("record {number} {}", "x".repeat(LEN))
}

async fn wait_for(what: &str, done: impl Fn() -> bool) {
    let waited = async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), waited).await;
    waited.unwrap_or_else(|_| panic!("{what}"));
}

fn are_in_sync(link: &SpoolLink) -> bool {
    let table = link.table();
    table.len() == 2 && table.iter().all(|row| row.sync == SyncState::Sync)
}

/// The random number of a segment's log.
fn log_id(segment: &Path) -> Option<[u8; 8]> {
    let mut id = [0; 8];
    let file = std::fs::File::open(segment).ok()?;
    file.read_exact_at(&mut id, 16).ok()?;
    Some(id)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect()
}

async fn repaired(index_stays: bool) {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let register = TestRegister::new();
    let begin = |folder: &tempfile::TempDir| {
        start(folder.path(), TcpListener::bind("127.0.0.1:0").unwrap())
    };
    let [mut sound, mut node] = [begin(&folders[0]), begin(&folders[1])];
    let options = options_for(&[sound.address, node.address], &register);
    let link = connect(options).await;
    wait_for("both to be there", || are_in_sync(&link)).await;
    let queue = link
        .create_queue("a.test", QueueLimits::UNLIMITED)
        .await
        .unwrap();
    for number in 0..RECORDS {
        link.commit(put(queue, &text(number))).await.unwrap();
    }
    let log = folders[1].path().join("group-0001");
    let segment = log.join("0000000000000001.log");
    let index = segment.with_extension("index");
    wait_for("an index", || index.exists()).await;
    node.end();

    let before = log_id(&segment).unwrap();
    let octets = std::fs::read(&segment).unwrap();
    let mark = b"record 3 ";
    let at = octets.windows(mark.len()).position(|part| part == mark);
    let file = std::fs::File::options().write(true).open(&segment).unwrap();
    file.write_all_at(b"y", at.unwrap() as u64 + 5_000).unwrap();
    if !index_stays {
        std::fs::remove_file(&index).unwrap();
    }
    let listener = TcpListener::bind(node.address).unwrap();
    let mut node = start(folders[1].path(), listener);
    wait_for("another log, and nothing aside", || {
        let aside = |name: &String| name.starts_with("damaged") || name.starts_with("gone");
        let another = log_id(&segment).is_some_and(|id| id != before);
        another && !names(folders[1].path()).iter().any(aside)
    })
    .await;
    wait_for("both to count", || are_in_sync(&link)).await;
    link.commit(put(queue, "last")).await.unwrap();

    // What was acknowledged is there without the one that never lost anything.
    sound.end();
    wait_for("the other one to be alone", || {
        link.table()[0].sync == SyncState::Out
    })
    .await;
    let mut expected: Vec<String> = (0..RECORDS).map(text).collect();
    expected.push("last".to_owned());
    assert!(all(&link, queue).await == expected);
    assert!(!link.stat().await.unwrap().damaged);
    link.close();
    node.end();
}

#[test]
fn damage_that_the_start_finds_is_repaired() {
    local(repaired(false));
}

#[test]
fn damage_that_is_found_later_is_repaired() {
    local(repaired(true));
}
