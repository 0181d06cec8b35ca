//! Several nodes and one owner: what is acknowledged when one of them goes, and how it comes back.

use std::collections::BTreeMap;

use crate::node::{ConnectionId, Node};
use crate::testing::node_output;

use super::*;

mod absence;
mod duty;
mod found;
mod pace;
mod reads;
mod takeover;
mod ways;

type TestNode = Node<MemoryLog>;

/// The first address of the first node, and of the second.
const FIRST: Link = Link {
    node: 0,
    address: 0,
};
const SECOND: Link = Link {
    node: 1,
    address: 0,
};

/// Nodes, without logs unless they are given some, and one owner at a time.
struct Circle {
    nodes: Vec<Option<TestNode>>,
    incarnations: Vec<Incarnation>,
    logs: Vec<Option<MemoryLog>>,
    /// Nodes whose disks sync nothing for now.
    hung: Vec<usize>,
    /// Connections by node and address; cut links carry nothing and are not connected again.
    connections: BTreeMap<Link, ConnectionId>,
    cut: Vec<Link>,
    /// Links that were given up; time passes before they are tried again.
    resting: Vec<Link>,
    owner: Owner,
    register: MemoryRegister,
    register_reachable: bool,
    events: Vec<OwnerEvent>,
    now: Timestamp,
    nonce: u8,
    lives: u64,
    node_config: NodeConfig,
    /// A node of which nothing but ALIVE is heard.
    stalled: Option<usize>,
    /// A node that answers no reads.
    dumb: Option<usize>,
    /// A link that leads to this node instead of its own.
    astray: Option<(Link, usize)>,
}

impl Circle {
    fn new(nodes: usize, links: usize, adjust: impl FnOnce(&mut OwnerConfig)) -> Self {
        let mut config = owner_config(1);
        config.nodes = (0..nodes)
            .map(|number| NodeName {
                machine: number,
                name: format!("n{number}"),
                links,
            })
            .collect();
        (config.replicas, config.replicas_min) = (2, 1);
        adjust(&mut config);
        let mut circle = Self {
            nodes: Vec::new(),
            incarnations: vec![Incarnation(0); nodes],
            logs: vec![None; nodes],
            hung: Vec::new(),
            connections: BTreeMap::new(),
            cut: Vec::new(),
            resting: Vec::new(),
            owner: Owner::new(config),
            register: MemoryRegister::default(),
            register_reachable: true,
            events: Vec::new(),
            now: now(),
            nonce: 0,
            lives: 100,
            node_config: NodeConfig::new(secret()),
            stalled: None,
            dumb: None,
            astray: None,
        };
        for number in 0..nodes {
            circle.nodes.push(None);
            circle.start(number);
        }
        circle
    }

    /// A node's process starts with nothing in memory, and nothing on its disk.
    fn start(&mut self, number: usize) {
        self.lives += 1;
        self.incarnations[number] = Incarnation(self.lives);
        let log = &mut self.logs[number];
        *log = log.as_ref().map(|_| MemoryLog::new(1 << 12));
        let node = Node::new(
            self.node_config.clone(),
            self.incarnations[number],
            log.clone(),
        );
        self.nodes[number] = Some(node);
    }

    fn kill(&mut self, number: usize) {
        self.nodes[number] = None;
        let links = self.owner.links();
        let links: Vec<Link> = links.filter(|link| self.end(*link) == number).collect();
        for link in links {
            self.disconnect(link);
        }
    }

    /// The node that a link leads to.
    fn end(&self, link: Link) -> usize {
        let astray = self.astray.filter(|(astray, _)| *astray == link);
        astray.map_or(link.node, |(_, node)| node)
    }

    fn disconnect(&mut self, link: Link) {
        let end = self.end(link);
        if let Some(id) = self.connections.remove(&link) {
            if let Some(node) = &mut self.nodes[end] {
                node.closed(id);
            }
            self.owner.disconnected(link, self.now);
        }
    }

    /// Another life of the owner takes over.
    fn succeed(&mut self) {
        let links: Vec<Link> = self.connections.keys().copied().collect();
        for link in links {
            self.disconnect(link);
        }
        self.lives += 1;
        let mut config = self.owner.config.clone();
        config.life = self.lives;
        self.owner = Owner::new(config);
        self.events.clear();
    }

    fn connect(&mut self) -> bool {
        let mut connected = false;
        for link in self.owner.links().collect::<Vec<_>>() {
            let there = self.connections.contains_key(&link)
                || self.cut.contains(&link)
                || self.resting.contains(&link);
            if there || !self.owner.wants(link) {
                continue;
            }
            let end = self.end(link);
            let Some(node) = &mut self.nodes[end] else {
                continue;
            };
            self.nonce = self.nonce.wrapping_add(1);
            let id = node.accept([self.nonce; 32], self.now).unwrap();
            self.connections.insert(link, id);
            self.owner.connected(link, [self.nonce; 32], self.now);
            connected = true;
        }
        connected
    }

    /// Carries what waits on one link, in both directions. True when something moved.
    fn carry(&mut self, link: Link) -> bool {
        let Some(&id) = self.connections.get(&link) else {
            return false;
        };
        if self.cut.contains(&link) {
            return false;
        }
        let end = self.end(link);
        let Some(node) = &mut self.nodes[end] else {
            return false;
        };
        let pending = self.owner.output(link);
        let buffer = node.buffer(id);
        let count = pending.len().min(buffer.len());
        buffer[..count].copy_from_slice(&pending[..count]);
        if count > 0 {
            self.owner.sent(link, count);
            node.received(id, count, self.now);
        }
        node.end_turn(self.now);
        if let Some(log) = &self.logs[end]
            && !self.hung.contains(&end)
        {
            log.0.borrow_mut().sync();
            node.end_turn(self.now);
        }
        let mut octets = node_output(node, id, usize::MAX);
        node.sent(id, octets.len());
        if self.stalled == Some(link.node) {
            octets = without(&octets, &[Op::Ack]);
        }
        if self.dumb == Some(link.node) {
            octets = without(&octets, &[Op::QueueList, Op::Block, Op::Put]);
        }
        let finished = node.is_finished(id);
        let lost = !octets.is_empty() && self.owner.input(link, &octets, self.now).is_err();
        if lost || finished {
            self.resting.push(link);
            self.disconnect(link);
        }
        count > 0 || !octets.is_empty()
    }

    /// Lets everything happen that happens without time.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            let mut moved = self.connect();
            if self.register_reachable {
                moved |= self.register.serve(&mut self.owner, self.now);
            }
            for link in self.owner.links().collect::<Vec<_>>() {
                moved |= self.carry(link);
            }
            while let Some((link, _)) = self.owner.poll_drop() {
                self.disconnect(link);
                moved = true;
            }
            while let Some(event) = self.owner.poll_event() {
                self.events.push(event);
            }
            if !moved {
                return;
            }
        }
        panic!("never comes to rest: {:?}", self.owner.table());
    }

    /// Time passes, in steps of a heartbeat.
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now = self.now + Duration::from_millis(300);
            self.resting.clear();
            self.owner.timed_out(self.now);
            self.settle();
        }
    }

    fn open(&mut self) {
        self.owner.timed_out(self.now);
        self.settle();
        assert!(self.owner.is_open(), "{:?}", self.events);
    }

    fn queue(&mut self, name: &str) -> QueueId {
        let (queue, _) = self
            .owner
            .create_queue(name, QueueLimits::UNLIMITED)
            .unwrap();
        self.settle();
        queue
    }

    fn states(&self) -> Vec<SyncState> {
        self.owner.table().iter().map(|row| row.sync).collect()
    }

    /// Everything a node holds.
    fn held(&self, number: usize) -> Vec<QueueStat> {
        self.nodes[number].as_ref().unwrap().queues("gateway")
    }

    fn told(&self, event: &OwnerEvent) -> bool {
        self.events.contains(event)
    }
}

/// What is left of a node's answers.
fn without(mut octets: &[u8], gone: &[Op]) -> Vec<u8> {
    let mut left = Vec::new();
    while let Ok(Some(header)) = Header::peek(octets, usize::MAX) {
        let (frame, rest) = octets.split_at(header.len);
        if !gone.contains(&header.op) {
            left.extend_from_slice(frame);
        }
        octets = rest;
    }
    left
}

#[test]
fn every_node_that_counts_tells_how_full_it_is() {
    let mut circle = Circle::new(2, 1, |_| {});
    assert!(circle.owner.stats().is_empty());
    circle.open();
    let asked = circle.owner.stats();
    assert_eq!(asked.len(), 2);
    circle.settle();
    for asked in asked {
        let told = circle.events.iter().find_map(|event| match event {
            OwnerEvent::Stat { seq, stat } if *seq == asked => Some(stat.fill),
            _ => None,
        });
        assert!(told.is_some_and(|fill| fill < 1_000), "{told:?}");
    }
}

#[test]
fn what_is_acknowledged_is_on_both() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    for _ in 0..100 {
        circle.owner.commit(put(queue, 1_000)).unwrap();
    }
    assert_eq!(circle.owner.acknowledged(), Txn(1));
    circle.carry(Link {
        node: 0,
        address: 0,
    });
    assert_eq!(
        circle.owner.acknowledged(),
        Txn(1),
        "one of two is not enough"
    );
    circle.settle();
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
    assert_eq!(circle.held(0), circle.held(1));
    assert_eq!(circle.held(0)[0].length, 100);
}

#[test]
fn a_node_that_dies_is_isolated_and_rebuilt_when_it_returns() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let (queue, other) = (circle.queue("q"), circle.queue("r"));
    for number in 0..10_000 {
        circle.owner.commit(put(queue, number % 300)).unwrap();
        if number % 100 == 0 {
            circle.settle();
        }
    }
    circle.settle();
    circle.kill(1);
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    assert!(circle.owner.acknowledged() < circle.owner.submitted());
    circle.pass(Duration::from_secs(4));
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Out]);
    circle.start(1);
    circle.connect();
    // Changes of all kinds while it is being rebuilt.
    for number in 1..2_000_u64 {
        let mut batch = Batch::new();
        match number % 4 {
            0 => batch.delete(queue, RecordId(number * 3)),
            1 => batch.replace(queue, RecordId(number * 4 + 1), Bytes::from_static(b"new")),
            2 => batch.move_to(queue, RecordId(number * 5 + 3), other, None),
            _ => batch.put(other, Bytes::new(), Bytes::from(vec![7; 20])),
        };
        circle.owner.commit(batch).unwrap();
        if number % 50 == 0 {
            circle.carry(Link {
                node: 0,
                address: 0,
            });
            circle.register.serve(&mut circle.owner, circle.now);
            circle.carry(Link {
                node: 1,
                address: 0,
            });
        }
    }
    circle.pass(Duration::from_secs(1));
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
    assert_eq!(circle.held(0), circle.held(1));
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
    // It counts now: the other one may go, for good.
    circle.kill(0);
    circle.pass(Duration::from_secs(4));
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
}

#[test]
fn who_may_read_a_queue_is_on_every_node_and_on_a_rebuilt_one() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let octets = Grants::encode([("bill", Right::Read)]).unwrap();
    let readers = Grants::read(&octets).unwrap();
    let with = |readers| QueueCharter {
        readers,
        ..QueueCharter::default()
    };
    let (given, _) = circle.owner.create_queue("given", with(readers)).unwrap();
    let (taken, _) = circle.owner.create_queue("taken", with(readers)).unwrap();
    circle.queue("plain");
    circle.settle();
    circle.kill(1);
    circle.pass(Duration::from_secs(4));
    // While it is away they change: the same name and number, other accounts.
    circle.queue("taken");
    circle.start(1);
    circle.pass(Duration::from_secs(10));
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
    for node in 0..2 {
        let held = circle.held(node);
        let named: Vec<_> = held
            .iter()
            .filter(|queue| !queue.readers.get().is_empty())
            .collect();
        assert_eq!(held.len(), 3);
        assert_eq!(named.len(), 1, "node {node}");
        assert_eq!((named[0].id, named[0].readers.get()), (given, readers));
        assert_ne!(given, taken);
    }
    // Nobody is let adopt a single queue.
    let octets = Grants::encode([("west", Right::Adopt)]).unwrap();
    let adopts = with(Grants::read(&octets).unwrap());
    let refused = circle.owner.create_queue("adopted", adopts);
    assert_eq!(refused, Err(SubmitError::Invalid));
}

/// A node whose disk hangs answers heartbeats; here one whose answers to changes never arrive.
#[test]
fn a_node_that_lives_and_acknowledges_nothing_is_isolated() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    circle.stalled = Some(1);
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.pass(Duration::from_secs(4));
    assert!(circle.owner.acknowledged() < circle.owner.submitted());
    circle.pass(Duration::from_secs(3));
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
    let isolated = OwnerEvent::Replica {
        node: "n1".to_owned(),
        change: ReplicaChange::Isolated(Fault::Stalled),
    };
    assert!(circle.told(&isolated), "{:?}", circle.events);
    circle.stalled = None;
    circle.pass(Duration::from_secs(10));
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
    assert_eq!(circle.held(0), circle.held(1));
}

/// Two nodes, of which the second one was rebuilt and says no more than that it holds everything. It has not
/// acknowledged a change that came meanwhile, and another one waits for it.
fn stalled_after_its_rebuild(register_reachable: bool) -> Circle {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    circle.kill(1);
    circle.pass(Duration::from_secs(4));
    // What is to be copied is late.
    (circle.dumb, circle.stalled) = (Some(0), Some(1));
    circle.start(1);
    circle.pass(Duration::from_secs(1));
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
    circle.register_reachable = register_reachable;
    circle.dumb = None;
    let complete = |circle: &Circle| {
        let rebuild = circle.owner.replicas[1].rebuild.as_ref();
        rebuild.is_some_and(|rebuild| rebuild.is_complete())
    };
    for _ in 0..60 {
        if !complete(&circle) {
            circle.pass(Duration::from_millis(300));
        }
    }
    assert!(complete(&circle), "{:?}", circle.events);
    circle.owner.commit(put(queue, 10)).unwrap();
    circle
}

/// What counts from its answer to COMPLETE on was looked at only once it was full by the record: who hung
/// before that held up everybody for as long as it did.
#[test]
fn a_node_that_hangs_when_it_is_rebuilt_holds_up_nobody() {
    for register_reachable in [true, false] {
        let mut circle = stalled_after_its_rebuild(register_reachable);
        circle.pass(Duration::from_secs(4));
        assert!(circle.owner.acknowledged() < circle.owner.submitted());
        circle.pass(Duration::from_secs(3));
        assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
        circle.register_reachable = true;
        circle.pass(Duration::from_secs(1));
        let isolated = OwnerEvent::Replica {
            node: "n1".to_owned(),
            change: ReplicaChange::Isolated(Fault::Stalled),
        };
        assert!(circle.told(&isolated), "{:?}", circle.events);
        circle.stalled = None;
        circle.pass(Duration::from_secs(15));
        assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
        assert_eq!(circle.held(0), circle.held(1));
    }
}

/// An operator has decided meanwhile.
#[test]
fn an_owner_that_is_shut_looks_at_the_register_again() {
    let mut circle = Circle::new(1, 1, |config| config.replicas = 1);
    circle.open();
    circle.kill(0);
    circle.start(0);
    circle.pass(Duration::from_secs(2));
    assert!(!circle.owner.is_open());
    let (version, record) = circle.register.value.clone().unwrap();
    let record = Membership::decode(&record).unwrap();
    let incarnation = circle.owner.replicas[0].incarnation.unwrap();
    let salvaged = Membership::new(record.epoch + 1, 0).with("n0", incarnation, MemberState::Full);
    circle.register.value = Some((version + 1, salvaged.encode()));
    circle.pass(Duration::from_secs(6));
    assert!(circle.told(&OwnerEvent::Fenced));
}

#[test]
fn another_node_steps_in() {
    let mut circle = Circle::new(3, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    assert_eq!(circle.states()[2], SyncState::Out);
    circle.kill(0);
    circle.pass(Duration::from_secs(5));
    assert_eq!(
        circle.states(),
        [SyncState::Out, SyncState::Sync, SyncState::Sync]
    );
    assert_eq!(circle.held(1), circle.held(2));
}

#[test]
fn too_few_replicas_shut_the_group() {
    let mut circle = Circle::new(2, 1, |config| config.replicas_min = 2);
    circle.open();
    let queue = circle.queue("q");
    circle.kill(1);
    circle.pass(Duration::from_secs(4));
    assert!(circle.told(&OwnerEvent::Shut(ShutReason::TooFew)));
    let txn = circle.owner.commit(put(queue, 10)).unwrap().txn;
    circle.pass(Duration::from_secs(1));
    assert!(circle.owner.acknowledged() < txn);
    circle.start(1);
    circle.pass(Duration::from_secs(1));
    assert!(circle.owner.is_open());
    assert_eq!(circle.owner.acknowledged(), txn);
    assert_eq!(circle.held(0), circle.held(1));
}

#[test]
fn without_the_register_membership_is_frozen() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    circle.register_reachable = false;
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    assert_eq!(
        circle.owner.acknowledged(),
        circle.owner.submitted(),
        "receipt goes on"
    );
    circle.kill(1);
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.pass(Duration::from_secs(10));
    assert!(circle.owner.acknowledged() < circle.owner.submitted());
    assert!(!circle.owner.is_open());
    circle.register_reachable = true;
    circle.pass(Duration::from_secs(1));
    assert!(circle.owner.is_open());
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
}

#[test]
fn a_successor_adopts_the_longer_prefix_and_fences_who_was_before() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    for _ in 0..10 {
        circle.owner.commit(put(queue, 10)).unwrap();
    }
    // Only one of them has them.
    circle.carry(Link {
        node: 1,
        address: 0,
    });
    let acked = circle.owner.acknowledged();
    assert_eq!(circle.held(1)[0].length, 10);
    let mut config = circle.owner.config.clone();
    config.life = 77;
    let old = std::mem::replace(&mut circle.owner, Owner::new(config));
    let old_connections = std::mem::take(&mut circle.connections);
    circle.open();
    assert!(circle.owner.acknowledged() > acked);
    circle.pass(Duration::from_secs(1));
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
    assert_eq!(circle.held(0), circle.held(1));
    assert_eq!(circle.held(0)[0].length, 10);
    // The one before is not heard any more.
    let new = std::mem::replace(&mut circle.owner, old);
    let new_connections = std::mem::replace(&mut circle.connections, old_connections);
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.pass(Duration::from_secs(5));
    assert!(circle.told(&OwnerEvent::Fenced));
    assert!(circle.owner.acknowledged() <= acked);
    circle.owner = new;
    circle.connections = new_connections;
    assert_eq!(circle.held(0)[0].length, 10);
}

#[test]
fn a_successor_goes_on_with_one_of_two() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    let queue = circle.queue("q");
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    circle.kill(0);
    circle.succeed();
    circle.owner.timed_out(circle.now);
    circle.settle();
    assert!(!circle.owner.is_open(), "the other one may have more");
    circle.pass(Duration::from_secs(6));
    assert!(circle.owner.is_open());
    assert_eq!(
        circle.owner.commit(put(queue, 10)).unwrap().ids,
        [RecordId(2)]
    );
}

#[test]
fn all_memories_lost_is_told_and_never_taken_for_empty() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.open();
    circle.queue("q");
    circle.kill(0);
    circle.kill(1);
    circle.start(0);
    circle.start(1);
    circle.pass(Duration::from_secs(10));
    assert!(!circle.owner.is_open());
    let lost = OwnerEvent::Shut(ShutReason::NoFullReplica);
    assert!(circle.told(&lost), "{:?}", circle.events);
    circle.succeed();
    circle.pass(Duration::from_secs(10));
    assert!(!circle.owner.is_open());
    assert!(circle.told(&lost), "{:?}", circle.events);
}

#[test]
fn what_one_refused_is_taken_back_on_the_other() {
    let mut circle = Circle::new(2, 1, |_| {});
    circle.node_config.memory_max = 64 << 20;
    circle.start(0);
    circle.node_config.memory_max = 1 << 30;
    circle.open();
    let queue = circle.queue("q");
    let (mut refused, mut number) = (0, 0);
    while refused < 5 {
        number += 1;
        assert!(number < 2_000, "it never ran full");
        circle.owner.commit(put(queue, 100_000)).unwrap();
        circle.settle();
        let full = |event: &&OwnerEvent| matches!(event, OwnerEvent::Refused { .. });
        refused = circle.events.iter().filter(full).count();
    }
    circle.settle();
    assert_eq!(circle.states(), [SyncState::Sync, SyncState::Sync]);
    assert_eq!(circle.held(0)[0].length, circle.held(1)[0].length);
    assert_eq!(circle.held(0)[0].length as usize, number - refused);
}

#[test]
fn a_cut_of_one_address_changes_to_the_other() {
    let mut circle = Circle::new(2, 2, |_| {});
    circle.open();
    circle.pass(Duration::from_secs(1));
    let row = circle.owner.table()[0].clone();
    assert_eq!(
        (row.active, row.standby),
        (NetworkState::Run, NetworkState::Ready)
    );
    let queue = circle.queue("q");
    circle.owner.commit(put(queue, 10)).unwrap();
    let link = Link {
        node: 0,
        address: 0,
    };
    circle.cut.push(link);
    circle.disconnect(link);
    circle.settle();
    assert_eq!(circle.owner.acknowledged(), circle.owner.submitted());
    let row = circle.owner.table()[0].clone();
    assert_eq!(
        (row.active, row.standby),
        (NetworkState::Run, NetworkState::Down)
    );
    let switched = OwnerEvent::Replica {
        node: "n0".to_owned(),
        change: ReplicaChange::Switched,
    };
    assert!(circle.told(&switched));
}
