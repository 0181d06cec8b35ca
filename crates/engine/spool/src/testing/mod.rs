//! A node and an owner in one test, with a log that crashes, runs full and fails.

mod log;
mod spill;

use std::io::IoSlice;

use vere_spoolwire::{Incarnation, Txn};
use vere_units::{Secret, Timestamp};

use crate::node::{ConnectionId, Node, NodeConfig};
use crate::owner::{
    Link, Owner, OwnerConfig, OwnerError, OwnerEvent, RegisterRequest, RegisterSwap,
};

pub(crate) use log::MemoryLog;
pub(crate) use spill::MemorySpill;

pub(crate) const INCARNATION: Incarnation = Incarnation(77);

pub(crate) fn secret() -> Secret<[u8; 32]> {
    Secret::new([5; 32])
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(1_000_000)
}

/// The register of one group, in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryRegister {
    pub(crate) value: Option<(u64, Vec<u8>)>,
}

impl MemoryRegister {
    pub(crate) fn swap(&mut self, expected: Option<u64>, value: Vec<u8>) -> RegisterSwap {
        let version = self.value.as_ref().map(|(version, _)| *version);
        if version != expected {
            return RegisterSwap::Conflict;
        }
        let version = version.unwrap_or(0) + 1;
        self.value = Some((version, value));
        RegisterSwap::Done(version)
    }

    /// Answers everything that an owner asks. True when it asked.
    pub(crate) fn serve(&mut self, owner: &mut Owner, now: Timestamp) -> bool {
        let mut asked = false;
        while let Some(request) = owner.poll_register() {
            asked = true;
            match request {
                RegisterRequest::Read => owner.register_read(Ok(self.value.clone()), now),
                RegisterRequest::Swap { expected, value } => {
                    let swap = self.swap(expected, value);
                    owner.register_swapped(&swap, now);
                }
            }
        }
        asked
    }
}

/// The only link of a [`Pair`].
pub(crate) const LINK: Link = Link {
    node: 0,
    address: 0,
};

/// A node, with or without a log, and at most one connection of one owner.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) node: Node<MemoryLog>,
    pub(crate) log: Option<MemoryLog>,
    pub(crate) spill: Option<MemorySpill>,
    pub(crate) config: NodeConfig,
    pub(crate) owner: Owner,
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) events: Vec<OwnerEvent>,
    pub(crate) error: Option<OwnerError>,
    pub(crate) register: MemoryRegister,
    nonce: u8,
}

pub(crate) fn owner_config(life: u64) -> OwnerConfig {
    OwnerConfig::new("gateway", secret(), life)
}

impl Pair {
    pub(crate) fn new(config: NodeConfig, log: Option<MemoryLog>) -> Self {
        Self::with_spill(config, log, None)
    }

    pub(crate) fn with_spill(
        mut config: NodeConfig,
        log: Option<MemoryLog>,
        spill: Option<MemorySpill>,
    ) -> Self {
        config.log_spare = 4 << 10;
        let mut node = Node::new(config.clone(), INCARNATION, log.clone());
        if let Some(spill) = &spill {
            node.set_spill_store(Box::new(spill.clone()));
        }
        let mut pair = Self {
            node,
            log,
            spill,
            config,
            owner: Owner::new(owner_config(1)),
            connection: None,
            events: Vec::new(),
            error: None,
            register: MemoryRegister::default(),
            nonce: 0,
        };
        pair.connect();
        pair.settle();
        pair
    }

    pub(crate) fn connect(&mut self) {
        self.nonce += 1;
        self.cut();
        self.owner.timed_out(now());
        self.register.serve(&mut self.owner, now());
        self.error = None;
        if !self.owner.wants(LINK) {
            return;
        }
        self.connection = self.node.accept([self.nonce; 32], now());
        self.owner.connected(LINK, [self.nonce; 32], now());
    }

    pub(crate) fn cut(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.node.closed(connection);
        }
        self.owner.disconnected(LINK, now());
    }

    /// The node's process dies and comes back with what its log kept.
    pub(crate) fn crash(&mut self, more: usize) {
        self.cut();
        if let Some(log) = &self.log {
            log.0.borrow_mut().crash(more);
        }
        self.reopen();
    }

    pub(crate) fn reopen(&mut self) {
        let log = self.log.clone();
        self.node = Node::new(self.config.clone(), INCARNATION, log.clone());
        if let Some(spill) = &self.spill {
            spill.restart();
            self.node.set_spill_store(Box::new(spill.clone()));
        }
        if let Some(log) = log
            && !log.0.borrow().segments.is_empty()
        {
            self.node
                .restore("gateway", |replay| log.read(replay))
                .unwrap();
        }
    }

    /// Carries up to so many octets from the owner to the node.
    pub(crate) fn up(&mut self, most: usize) -> usize {
        let Some(connection) = self.connection else {
            return 0;
        };
        let pending = self.owner.output(LINK);
        let buffer = self.node.buffer(connection);
        let count = most.min(pending.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&pending[..count]);
        if count > 0 {
            self.owner.sent(LINK, count);
            self.node.received(connection, count, now());
        }
        count
    }

    /// Carries up to so many octets from the node to the owner.
    pub(crate) fn down(&mut self, most: usize) -> usize {
        let Some(connection) = self.connection else {
            return 0;
        };
        let octets = node_output(&self.node, connection, most);
        let count = octets.len();
        if count > 0 {
            self.node.sent(connection, count);
            if let Err(error) = self.owner.input(LINK, &octets, now()) {
                self.error = Some(error);
                self.cut();
            }
        }
        while let Some(event) = self.owner.poll_event() {
            self.events.push(event);
        }
        if self
            .connection
            .is_some_and(|connection| self.node.is_finished(connection))
        {
            self.cut();
        }
        count
    }

    /// Carries and syncs everything until nothing moves.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut moved = self.up(usize::MAX);
            self.sync();
            moved += self.down(usize::MAX);
            moved += usize::from(self.register.serve(&mut self.owner, now()));
            while let Some(event) = self.owner.poll_event() {
                self.events.push(event);
            }
            if moved == 0 && !self.is_spilling() {
                return;
            }
        }
    }

    /// Lets the spill store do what it has to do. Whether something came of that, or may.
    fn is_spilling(&mut self) -> bool {
        let Some(spill) = &self.spill else {
            return false;
        };
        let touched = std::iter::from_fn(|| self.node.next_touched()).count();
        let reads = |log: &MemoryLog| log.0.borrow().is_reading();
        spill.finish_all() || self.log.as_ref().is_some_and(reads) || touched > 0
    }

    pub(crate) fn sync(&mut self) {
        self.node.end_turn(now());
        if let Some(log) = &self.log {
            log.0.borrow_mut().sync();
        }
        self.node.end_turn(now());
    }

    pub(crate) fn acked(&self) -> Txn {
        self.owner.acknowledged()
    }

    pub(crate) fn refused(&self) -> Vec<(Txn, vere_spoolwire::NodeRefusal)> {
        let refused = |event: &OwnerEvent| match event {
            OwnerEvent::Refused { txn, refusal } => Some((*txn, *refusal)),
            _ => None,
        };
        self.events.iter().filter_map(refused).collect()
    }
}

pub(crate) fn node_output(
    node: &Node<MemoryLog>,
    connection: ConnectionId,
    most: usize,
) -> Vec<u8> {
    let mut slices = [IoSlice::new(&[]); 64];
    let count = node.output(connection, &mut slices);
    let mut octets = Vec::new();
    for slice in &slices[..count] {
        octets.extend_from_slice(slice);
        if octets.len() >= most {
            break;
        }
    }
    octets.truncate(most);
    octets
}
