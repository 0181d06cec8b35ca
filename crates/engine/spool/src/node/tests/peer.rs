//! One connection, octet by octet.

use vere_spoolwire::{
    Charter, DEFAULT_ACCOUNT, HANDSHAKE_FRAME_MAX, Hello, Role, SharedSecret, Txn, VERSION, Welcome,
};

use super::*;
use crate::testing::node_output;

/// One connection whose other end is the test.
pub(super) struct Peer {
    pub(super) id: ConnectionId,
    input: Vec<u8>,
}

impl Peer {
    pub(super) fn new(node: &mut Node<MemoryLog>) -> Option<Self> {
        Some(Self {
            id: node.accept([4; 32], now())?,
            input: Vec::new(),
        })
    }

    pub(super) fn send(&self, node: &mut Node<MemoryLog>, octets: &[u8]) {
        let mut rest = octets;
        while !rest.is_empty() {
            let buffer = node.buffer(self.id);
            let count = rest.len().min(buffer.len());
            if count == 0 {
                return;
            }
            buffer[..count].copy_from_slice(&rest[..count]);
            node.received(self.id, count, now());
            rest = &rest[count..];
        }
    }

    pub(super) fn frames(&mut self, node: &mut Node<MemoryLog>) -> Vec<Vec<u8>> {
        loop {
            let octets = node_output(node, self.id, usize::MAX);
            if octets.is_empty() {
                break;
            }
            node.sent(self.id, octets.len());
            self.input.extend_from_slice(&octets);
        }
        let mut frames = Vec::new();
        while let Some(frame) = Frame::read(&self.input, 1 << 30).unwrap() {
            let len = frame.header.len;
            frames.push(self.input.drain(..len).collect());
        }
        frames
    }

    pub(super) fn answers(&mut self, node: &mut Node<MemoryLog>) -> Vec<Answer> {
        let frames = self.frames(node);
        let answer = |octets: &Vec<u8>| {
            let frame = Frame::read(octets, 1 << 30).unwrap().unwrap();
            Answer::decode(&frame).ok()
        };
        frames.iter().filter_map(answer).collect()
    }

    pub(super) fn closed(&mut self, node: &mut Node<MemoryLog>) -> Option<CloseReason> {
        let answers = self.answers(node);
        let reason = answers.iter().find_map(|answer| match answer {
            Answer::Close(reason) => Some(*reason),
            _ => None,
        });
        assert_eq!(reason.is_some(), node.is_finished(self.id));
        reason
    }

    /// What the node says first.
    pub(super) fn greeting(&mut self, node: &mut Node<MemoryLog>) -> Greeting {
        let frames = self.frames(node);
        let frame = Frame::read(&frames[0], HANDSHAKE_FRAME_MAX).unwrap();
        Greeting::decode(&frame.unwrap()).unwrap()
    }

    /// Says HELLO as the owner life 1 that nothing fences.
    pub(super) fn hello(
        &mut self,
        node: &mut Node<MemoryLog>,
        role: Role,
        group: &str,
    ) -> Option<Welcome> {
        self.say(
            node,
            Hello {
                role,
                group,
                ..HELLO
            },
        )
    }

    /// Says HELLO, and proves it.
    pub(super) fn say(&mut self, node: &mut Node<MemoryLog>, hello: Hello<'_>) -> Option<Welcome> {
        self.say_with(node, hello, &secret())
    }

    /// The same with another secret.
    pub(super) fn say_with(
        &mut self,
        node: &mut Node<MemoryLog>,
        hello: Hello<'_>,
        secret: &SharedSecret,
    ) -> Option<Welcome> {
        let greeting = self.greeting(node);
        let mut octets = Vec::new();
        hello.sign(&greeting, secret).encode(&mut octets);
        // A frame sent along with it is not lost.
        Request::Heartbeat.encode(&mut octets, Seq(3));
        self.send(node, &octets);
        let frames = self.frames(node);
        let frame = Frame::read(&frames[0], 1 << 20).unwrap().unwrap();
        let Ok(welcome) = Welcome::decode(&frame) else {
            self.input.splice(..0, frames.concat());
            return None;
        };
        assert_eq!(welcome.proof, hello.answer(&greeting, secret));
        assert_eq!(frames.len(), 2, "and the heartbeat was answered");
        Some(welcome)
    }
}

/// An owner that nothing fences.
pub(super) const HELLO: Hello<'static> = Hello {
    acknowledged: Txn(0),
    version: VERSION,
    role: Role::Owner,
    owner: 1,
    epoch: 0,
    logged: true,
    group: "gateway",
    account: DEFAULT_ACCOUNT,
    charter: Charter::OWN,
    nonce: [1; 32],
    proof: [0; 32],
};

pub(super) fn encoded(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut octets = Vec::new();
    write(&mut octets);
    octets
}

/// A node, with or without a log, and what lasts of it.
pub(super) struct Site {
    pub(super) node: Node<MemoryLog>,
    pub(super) log: Option<MemoryLog>,
    /// Set before a crash: what comes back then has it.
    pub(super) spill: Option<MemorySpill>,
    pub(super) config: NodeConfig,
}

impl Site {
    pub(super) fn new(log: Option<MemoryLog>) -> Self {
        let config = NodeConfig {
            segment_len: SEGMENT_LEN_MIN,
            compact_above: Some(0),
            log_spare: 4 << 10,
            ..NodeConfig::new(secret())
        };
        Self::with(config, log)
    }

    pub(super) fn with(config: NodeConfig, log: Option<MemoryLog>) -> Self {
        Self {
            node: Node::new(config.clone(), crate::testing::INCARNATION, log.clone()),
            log,
            spill: None,
            config,
        }
    }

    /// One in memory, and one with a log of short segments.
    pub(super) fn both() -> [Self; 2] {
        [Self::new(None), Self::new(Some(MemoryLog::new(1 << 10)))]
    }

    /// A peer who was welcomed.
    pub(super) fn welcomed(&mut self, hello: Hello<'_>) -> (Peer, Welcome) {
        let mut peer = Peer::new(&mut self.node).unwrap();
        let welcome = peer.say(&mut self.node, hello).expect("a welcome");
        (peer, welcome)
    }

    /// Why a peer was not welcomed.
    pub(super) fn rejected(&mut self, hello: Hello<'_>) -> CloseReason {
        let mut peer = Peer::new(&mut self.node).unwrap();
        assert_eq!(peer.say(&mut self.node, hello), None);
        let reason = peer.closed(&mut self.node).unwrap();
        self.node.closed(peer.id);
        reason
    }

    /// Syncs, and does everything that is left to do.
    pub(super) fn settle(&mut self) {
        loop {
            self.node.end_turn(now());
            if let Some(log) = &self.log {
                log.0.borrow_mut().sync();
            }
            self.node.end_turn(now());
            let reads = |log: &MemoryLog| log.0.borrow().is_reading();
            let reads = self.log.as_ref().is_some_and(reads);
            let spills = self.spill.as_ref().is_some_and(MemorySpill::finish_all);
            if !self.node.is_busy() && !reads && !spills {
                return;
            }
        }
    }

    /// The process dies and comes back with what was synced and so many entries more.
    pub(super) fn crash(&mut self, more: usize) {
        let log = self.log.clone().expect("something that lasts");
        log.0.borrow_mut().crash(more);
        self.node = Node::new(
            self.config.clone(),
            crate::testing::INCARNATION,
            Some(log.clone()),
        );
        if let Some(spill) = &self.spill {
            spill.restart();
            self.node.set_spill_store(Box::new(spill.clone()));
        }
        if !log.0.borrow().segments.is_empty() {
            self.node
                .restore("gateway", |replay| log.read(replay))
                .unwrap();
        }
    }

    pub(super) fn stat(&self) -> vere_spoolwire::NodeStat {
        self.node.stats()[0].1
    }

    /// Everything it holds: queues in full, and their records.
    pub(super) fn contents(&self) -> Contents {
        self.contents_of("gateway")
    }

    /// The same of another group.
    pub(super) fn contents_of(&self, name: &str) -> Contents {
        let mut groups = self.node.groups.iter();
        let store = &groups.find(|group| &*group.name == name).unwrap().store;
        let records = |id: QueueId| {
            let queue = store.queue(id).unwrap();
            let octets = |piece| store.segments.octets(piece).to_vec();
            queue
                .iter_from(RecordId(0))
                .map(|(id, slot)| (id, octets(store.meta(slot)), octets(store.body(slot))))
                .collect()
        };
        let queues = self.node.queues(name).into_iter();
        queues
            .map(|stat| (stat.clone(), records(stat.id)))
            .collect()
    }
}

/// Queues, and number, metadata and body of their records.
pub(super) type Contents = Vec<(QueueStat, Vec<(RecordId, Vec<u8>, Vec<u8>)>)>;

/// An owner of this life and epoch.
pub(super) fn owner_of(owner: u64, epoch: u64) -> Hello<'static> {
    Hello {
        owner,
        epoch,
        ..HELLO
    }
}

pub(super) fn standby_of(owner: u64, epoch: u64) -> Hello<'static> {
    Hello {
        role: Role::Standby,
        ..owner_of(owner, epoch)
    }
}

pub(super) const READER: Hello<'static> = Hello {
    role: Role::Reader,
    owner: 0,
    ..HELLO
};

pub(super) fn request(request: Request, seq: u64) -> Vec<u8> {
    encoded(|out| request.encode(out, Seq(seq)))
}
