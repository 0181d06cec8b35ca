//! The link against a real node on loopback.

mod damage;
mod faults;
mod figures;
mod host;
mod spill;
mod tls;

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::LocalSet;
use vere_cluster::{FileRegister, Register};
use vere_disk::log::LogOptions;
use vere_disk::spill::SpillOptions;
use vere_owner::{Link, ShutReason};
use vere_spool::node::NodeConfig;
use vere_spoolwire::{NodeStat, QueueLimits};
use vere_units::Secret;

use super::*;
use crate::credentials::Credentials;
use vere_role_node::server::{Durability, NodeError, NodeOptions, Stop, serve};

impl SpoolLink {
    /// The figures of one node, once the group is open.
    async fn stat(&self) -> Result<NodeStat, SpoolError> {
        match self.read(Owner::stat).await? {
            Read::Stat(stat) => Ok(stat),
            Read::Block(_) | Read::Queues(..) => Err(SpoolError::Closed),
        }
    }
}

fn secret() -> Secret<[u8; 32]> {
    Secret::new([9; 32])
}

fn credentials(secret: Secret<[u8; 32]>) -> Credentials {
    Credentials {
        account: vere_spoolwire::DEFAULT_ACCOUNT.to_owned(),
        secret,
    }
}

fn config() -> NodeConfig {
    NodeConfig {
        memory_max: 64 << 20,
        ..NodeConfig::new(secret())
    }
}

/// A node on a thread of this process.
struct RunningNode {
    address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<Result<(), NodeError>>>,
}

impl RunningNode {
    fn start(durability: Durability, config: NodeConfig) -> Self {
        Self::start_at(
            TcpListener::bind("127.0.0.1:0").unwrap(),
            durability,
            config,
        )
    }

    fn start_at(listener: TcpListener, durability: Durability, config: NodeConfig) -> Self {
        Self::start_with(listener, durability, None, config)
    }

    fn start_with(
        listener: TcpListener,
        durability: Durability,
        spill: Option<(PathBuf, SpillOptions)>,
        config: NodeConfig,
    ) -> Self {
        let options = NodeOptions {
            config,
            durability,
            spill,
            encryption: None,
            alive: || {},
        };
        Self::start_options(listener, options)
    }

    fn start_options(listener: TcpListener, options: NodeOptions) -> Self {
        let address = listener.local_addr().unwrap();
        let stop = Stop::default();
        let stopping = stop.clone();
        let thread = std::thread::spawn(move || serve(options, vec![listener], stopping, || {}));
        Self {
            address,
            stop,
            thread: Some(thread),
        }
    }

    fn end(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}

fn synced(directory: &Path) -> Durability {
    let log = LogOptions {
        segment_len: 1 << 20,
        reserve_len: 1 << 20,
        outliner: Some(vere_spool::node::OUTLINER),
        index_behind: 0,
        ..LogOptions::default()
    };
    Durability::Synced {
        directory: directory.to_owned(),
        log,
    }
}

/// An empty membership register.
struct TestRegister(tempfile::TempDir);

impl TestRegister {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> Rc<Register> {
        Rc::new(Register::File(FileRegister::open(self.0.path()).unwrap()))
    }
}

/// A group on these nodes, named `a`, `b` and so on.
fn options_for(nodes: &[SocketAddr], register: &TestRegister) -> LinkOptions {
    let named = nodes
        .iter()
        .zip('a'..)
        .enumerate()
        .map(|(machine, (address, name))| NodeAddresses {
            name: name.to_string(),
            machine,
            addresses: vec![*address],
            encryption: None,
        });
    LinkOptions::new(
        named.collect(),
        register.open(),
        "gateway",
        credentials(secret()),
    )
}

fn options(address: SocketAddr, register: &TestRegister) -> LinkOptions {
    options_for(&[address], register)
}

async fn up(link: &SpoolLink) {
    let mut state = link.state();
    let wait = state.wait_for(|state| state.is_up());
    tokio::time::timeout(Duration::from_secs(20), wait)
        .await
        .unwrap()
        .unwrap();
}

/// Runs a test on one thread, as the gateway runs.
fn local<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test)
}

async fn connect(options: LinkOptions) -> SpoolLink {
    let (link, driver) = SpoolLink::connect(options);
    tokio::task::spawn_local(driver);
    up(&link).await;
    link
}

fn put(queue: QueueId, text: &str) -> Batch {
    let mut batch = Batch::new();
    batch.put(
        queue,
        Bytes::from_static(b"meta"),
        Bytes::from(text.to_owned()),
    );
    batch
}

async fn all(link: &SpoolLink, queue: QueueId) -> Vec<String> {
    let (mut from, mut bodies) = (RecordId(0), Vec::new());
    loop {
        let block = link.fetch(queue, from, 3, 1 << 20).await.unwrap();
        let text = |body: &Bytes| String::from_utf8(body.to_vec()).unwrap();
        bodies.extend(block.records.iter().map(|record| text(&record.body)));
        from = block.next;
        if block.end {
            return bodies;
        }
    }
}

async fn everything(durability: Durability) {
    let register = TestRegister::new();
    let mut node = RunningNode::start(durability, config());
    let link = connect(options(node.address, &register)).await;
    let queue = link
        .create_queue("a.test", QueueLimits::UNLIMITED)
        .await
        .unwrap();
    let other = link
        .create_queue("b.test", QueueLimits::UNLIMITED)
        .await
        .unwrap();
    assert_eq!(
        link.create_queue("a.test", QueueLimits::UNLIMITED).await,
        Ok(queue)
    );

    let commits: Vec<_> = (0..100)
        .map(|number| link.commit(put(queue, &format!("message {number}"))))
        .collect();
    let mut ids = Vec::new();
    for commit in commits {
        let expected = commit.committed.ids.clone();
        let committed = commit.await.unwrap();
        assert_eq!(committed.ids, expected);
        ids.extend(committed.ids);
    }
    let mut batch = Batch::new();
    for id in &ids[..98] {
        batch.delete(queue, *id);
    }
    batch.move_to(queue, ids[98], other, Some(Bytes::from_static(b"later")));
    let moved = link.commit(batch).await.unwrap().ids[0];
    assert_eq!(all(&link, queue).await, ["message 99"]);
    assert_eq!(all(&link, other).await, ["message 98"]);
    let block = link.fetch(other, moved, 1, 1).await.unwrap();
    assert_eq!(block.records[0].meta.as_ref(), b"later");

    let mut batch = Batch::new();
    batch.delete(queue, ids[0]);
    let error = link.commit(batch).await.unwrap_err();
    assert_eq!(error, SpoolError::Refused(NodeRefusal::NoRecord));
    let missing = link.fetch(QueueId(77), RecordId(0), 1, 1).await;
    assert_eq!(missing, Err(SpoolError::Refused(NodeRefusal::NoQueue)));

    link.purge(other, RecordId(u64::MAX)).await.unwrap();
    link.drop_queue(other).await.unwrap();
    let queues = link.queues().await.unwrap();
    assert_eq!(
        queues
            .iter()
            .map(|queue| queue.name.as_str())
            .collect::<Vec<_>>(),
        ["a.test"]
    );
    assert_eq!(link.stat().await.unwrap().records, 1);
    link.close();
    node.end();
}

#[test]
fn everything_works_in_memory() {
    local(everything(Durability::Memory));
}

#[test]
fn everything_works_synced() {
    let directory = tempfile::tempdir().unwrap();
    local(everything(synced(directory.path())));
}

#[test]
fn commits_outlive_a_restart_of_the_node() {
    let directory = tempfile::tempdir().unwrap();
    let register = TestRegister::new();
    local(async {
        let mut node = RunningNode::start(synced(directory.path()), config());
        let link = connect(options(node.address, &register)).await;
        let queue = link
            .create_queue("a.test", QueueLimits::UNLIMITED)
            .await
            .unwrap();
        link.commit(put(queue, "before")).await.unwrap();
        let mut state = link.state();
        node.end();
        state.wait_for(|state| !state.is_up()).await.unwrap();
        let meanwhile = link.commit(put(queue, "meanwhile"));
        let listener = TcpListener::bind(node.address).unwrap();
        let mut node = RunningNode::start_at(listener, synced(directory.path()), config());
        meanwhile.await.unwrap();
        assert_eq!(all(&link, queue).await, ["before", "meanwhile"]);
        link.close();
        node.end();
    });
}

#[test]
fn a_commit_that_timed_out_is_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let register = TestRegister::new();
    local(async {
        let mut node = RunningNode::start(synced(directory.path()), config());
        let commit_timeout = Duration::from_millis(50);
        let link = connect(LinkOptions {
            commit_timeout,
            ..options(node.address, &register)
        })
        .await;
        let queue = link
            .create_queue("a.test", QueueLimits::UNLIMITED)
            .await
            .unwrap();
        let kept = link.commit(put(queue, "kept")).await.unwrap();
        node.end();
        link.state().wait_for(|state| !state.is_up()).await.unwrap();
        assert_eq!(
            link.commit(put(queue, "late")).await,
            Err(SpoolError::Timeout)
        );
        drop(link.commit(put(queue, "nobody waits")));
        let mut batch = Batch::new();
        batch.replace(queue, kept.ids[0], Bytes::from_static(b"changed"));
        let stands = link.commit(batch);
        let listener = TcpListener::bind(node.address).unwrap();
        let mut node = RunningNode::start_at(listener, synced(directory.path()), config());
        stands.await.unwrap();
        up(&link).await;
        // A change after the acknowledgement comes after what takes back.
        link.create_queue("b.test", QueueLimits::UNLIMITED)
            .await
            .unwrap();
        link.create_queue("c.test", QueueLimits::UNLIMITED)
            .await
            .unwrap();
        assert_eq!(all(&link, queue).await, ["kept"]);
        link.close();
        node.end();
    });
}

#[test]
fn a_group_whose_only_node_lost_its_memory_stays_shut() {
    let register = TestRegister::new();
    local(async {
        let mut node = RunningNode::start(Durability::Memory, config());
        let link = connect(LinkOptions {
            commit_timeout: Duration::from_millis(50),
            ..options(node.address, &register)
        })
        .await;
        let queue = link
            .create_queue("a.test", QueueLimits::UNLIMITED)
            .await
            .unwrap();
        link.commit(put(queue, "gone")).await.unwrap();
        node.end();
        link.state().wait_for(|state| !state.is_up()).await.unwrap();
        let listener = TcpListener::bind(node.address).unwrap();
        let mut node = RunningNode::start_at(listener, Durability::Memory, config());
        let lost = LinkState::Down(ShutReason::NoFullReplica);
        link.state().wait_for(|state| *state == lost).await.unwrap();
        let waiting = link.commit(put(queue, "never"));
        assert_eq!(waiting.await, Err(SpoolError::Timeout));
        link.close();
        node.end();
    });
}

#[test]
fn another_owner_takes_over_for_good() {
    let register = TestRegister::new();
    local(async {
        let node = RunningNode::start(Durability::Memory, config());
        let first = connect(options(node.address, &register)).await;
        let queue = first
            .create_queue("a.test", QueueLimits::UNLIMITED)
            .await
            .unwrap();
        first.commit(put(queue, "one")).await.unwrap();
        let second = connect(options(node.address, &register)).await;
        let fenced = LinkState::Fenced;
        first
            .state()
            .wait_for(|state| *state == fenced)
            .await
            .unwrap();
        assert_eq!(
            first.commit(put(queue, "two")).await,
            Err(SpoolError::Closed)
        );
        second.commit(put(queue, "three")).await.unwrap();
        assert_eq!(all(&second, queue).await, ["one", "three"]);
        second.close();
    });
}

#[test]
fn a_wrong_secret_is_refused_by_both_sides() {
    let register = TestRegister::new();
    local(async {
        let node = RunningNode::start(Durability::Memory, config());
        let wrong = LinkOptions {
            credentials: credentials(Secret::new([1; 32])),
            ..options(node.address, &register)
        };
        let (link, driver) = SpoolLink::connect(wrong);
        tokio::task::spawn_local(driver);
        let refused = async {
            while !link
                .trouble("a")
                .is_some_and(|text| text.contains("authentication"))
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), refused)
            .await
            .unwrap();
        assert!(!link.state().borrow().is_up());
        assert_eq!(
            link.commit(put(QueueId(0), "x")).await,
            Err(SpoolError::Busy)
        );
        link.close();
    });
}
