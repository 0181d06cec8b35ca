//! Connections cut anywhere, and a node process killed at any moment: every acknowledgement counts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener as TokioListener, TcpStream};

use super::*;

/// Where a node process of the test keeps its log; the process is the test program itself.
const NODE_DIRECTORY: &str = "VERE_TEST_NODE_DIRECTORY";
/// Where it listens.
const NODE_ADDRESS: &str = "VERE_TEST_NODE_ADDRESS";
/// From here on every new record replaces an old one: a fast machine must not fill the node.
const MOST_RECORDS: usize = 2_000;

/// Random enough, and the same in every run.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// What the queue must hold in the end.
#[derive(Default)]
pub(super) struct Expected {
    records: BTreeMap<RecordId, String>,
    commits: usize,
    refused: usize,
}

impl Expected {
    pub(super) async fn check(&self, link: &SpoolLink, queue: QueueId) {
        let (mut from, mut found) = (RecordId(0), BTreeMap::new());
        loop {
            let block = link.fetch(queue, from, 500, 1 << 20).await.unwrap();
            for record in block.records {
                let text = String::from_utf8(record.body.to_vec()).unwrap();
                assert!(found.insert(record.id, text).is_none());
            }
            from = block.next;
            if block.end {
                break;
            }
        }
        assert_eq!(found, self.records);
    }
}

/// Stores and deletes with much in flight until `until`; waits for every acknowledgement.
pub(super) async fn load(
    link: &SpoolLink,
    queue: QueueId,
    dice: &mut Dice,
    until: impl Fn(usize) -> bool,
) -> Expected {
    let mut expected = Expected::default();
    let mut number = 0;
    while !until(expected.commits) {
        let mut waiting = Vec::new();
        for _ in 0..dice.below(60) + 1 {
            number += 1;
            let text = format!("{number} {}", "x".repeat(dice.below(3000)));
            let mut batch = put(queue, &text);
            let oldest = expected.records.keys().next().copied();
            let tenths = if expected.records.len() < MOST_RECORDS {
                6
            } else {
                10
            };
            let gone = oldest.filter(|_| dice.below(10) < tenths);
            if let Some(id) = gone {
                batch.delete(queue, id);
                expected.records.remove(&id);
            }
            // One in ten is refused: all of it, or the queue would lose a record.
            let refused = dice.below(10) == 0 && gone.is_none();
            if refused {
                batch.delete(queue, RecordId(u64::MAX - 1));
            }
            waiting.push((link.commit(batch), text, refused));
        }
        for (commit, text, refused) in waiting {
            expected.commits += 1;
            match commit.await {
                Ok(committed) => {
                    assert!(!refused);
                    expected.records.insert(committed.ids[0], text);
                }
                Err(SpoolError::Refused(NodeRefusal::NoRecord)) => {
                    assert!(refused);
                    expected.refused += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    expected
}

/// Passes connections on and cuts each after a random number of octets in each direction.
pub(super) async fn cutting_proxy(listener: TokioListener, node: SocketAddr) {
    let mut dice = Dice(0x1234_5678_9abc_def1);
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let Ok(mut server) = TcpStream::connect(node).await else {
            continue;
        };
        let (mut up, mut down) = (dice.below(60_000), dice.below(6_000) + 100);
        tokio::task::spawn_local(async move {
            let (mut above, mut below) = (vec![0; 4096], vec![0; 4096]);
            while up > 0 && down > 0 {
                let (most_up, most_down) = (up.min(4096), down.min(4096));
                tokio::select! {
                    count = client.read(&mut above[..most_up]) => {
                        let Ok(count @ 1..) = count else { return };
                        up -= count;
                        if server.write_all(&above[..count]).await.is_err() { return }
                    }
                    count = server.read(&mut below[..most_down]) => {
                        let Ok(count @ 1..) = count else { return };
                        down -= count;
                        if client.write_all(&below[..count]).await.is_err() { return }
                    }
                }
            }
        });
    }
}

#[test]
fn every_commit_survives_cuts() {
    let directory = tempfile::tempdir().unwrap();
    for durability in [Durability::Memory, synced(directory.path())] {
        let register = TestRegister::new();
        local(async {
            let mut node = RunningNode::start(durability, config());
            let proxy = TokioListener::bind("127.0.0.1:0").await.unwrap();
            let address = proxy.local_addr().unwrap();
            tokio::task::spawn_local(cutting_proxy(proxy, node.address));
            let fast = LinkOptions {
                backoff_min: Duration::from_millis(1),
                backoff_max: Duration::from_millis(5),
                commit_timeout: Duration::from_secs(60),
                ..options(address, &register)
            };
            let link = connect(fast).await;
            let queue = link
                .create_queue("a.test", QueueLimits::UNLIMITED)
                .await
                .unwrap();
            let mut dice = Dice(0xfeed_beef_0000_0001);
            let expected = load(&link, queue, &mut dice, |commits| commits > 3_000).await;
            assert!(expected.refused > 50);
            link.close();
            let link = connect(options(node.address, &register)).await;
            expected.check(&link, queue).await;
            link.close();
            node.end();
        });
    }
}

/// Not a separate test: the node process of the test below.
#[test]
fn node_process() {
    let Some(directory) = std::env::var_os(NODE_DIRECTORY) else {
        return;
    };
    let address = std::env::var(NODE_ADDRESS).unwrap();
    let durability = synced(&PathBuf::from(directory));
    let options = NodeOptions {
        config: config(),
        durability,
        spill: None,
        encryption: None,
        alive: || {},
    };
    let listener = TcpListener::bind(address).unwrap();
    serve(options, vec![listener], Stop::default(), || {}).unwrap();
}

fn start_process(directory: &Path, address: SocketAddr) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "link::tests::faults::node_process",
            "--exact",
            "--test-threads=1",
        ])
        .env(NODE_DIRECTORY, directory)
        .env(NODE_ADDRESS, address.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn every_commit_survives_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    // The port is free again when this returns, and nobody else is given it so soon.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let register = TestRegister::new();
    local(async {
        let mut process = start_process(directory.path(), address);
        let fast = LinkOptions {
            backoff_max: Duration::from_millis(50),
            commit_timeout: Duration::from_secs(60),
            ..options(address, &register)
        };
        let link = connect(fast).await;
        let queue = link
            .create_queue("a.test", QueueLimits::UNLIMITED)
            .await
            .unwrap();
        let mut dice = Dice(0xabcd_0000_1111_2222);
        let kills = std::cell::Cell::new(0);
        let killing = async {
            let mut dice = Dice(0x7777_0000_1111_2222);
            while kills.get() < 10 {
                tokio::time::sleep(Duration::from_millis(30 + dice.below(250) as u64)).await;
                process.kill().unwrap();
                process.wait().unwrap();
                process = start_process(directory.path(), address);
                link.state().wait_for(|state| state.is_up()).await.unwrap();
                kills.set(kills.get() + 1);
            }
        };
        let loading = load(&link, queue, &mut dice, |_| kills.get() >= 10);
        let ((), expected) = tokio::join!(killing, loading);
        assert!(expected.commits > 100, "{}", expected.commits);
        expected.check(&link, queue).await;
        // And once more, from the disk alone.
        process.kill().unwrap();
        process.wait().unwrap();
        let mut process = start_process(directory.path(), address);
        expected.check(&link, queue).await;
        link.close();
        process.kill().unwrap();
        process.wait().unwrap();
    });
}
