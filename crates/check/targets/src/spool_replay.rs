//! From a log's entries back to queues: any frames, with correct checksums.
//!
//! The octets are frames without length, number and checksum, which random octets would never have
//! right. The owner reads the node's records back, so that a record outside the input is detected.

use std::cell::RefCell;
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::OnceLock;

use vere_owner::{
    Link, MemberState, Membership, Owner, OwnerConfig, OwnerError, OwnerEvent, RegisterRequest,
    RegisterSwap,
};
use vere_ports::spill::SpillStore;
use vere_ports::spool_log::{
    LogError, LogPosition, LogRead, LogReader, LogRoom, LogStretch, SpoolLog, SpoolLogStore,
    UnreadableEntry,
};
use vere_spool::node::{ConnectionId, Node, NodeConfig, SEGMENT_LEN_MIN};
use vere_spoolwire::{
    CHECKSUM_LEN, CloseReason, HEADER_LEN, Incarnation, NodeStat, QueueId, QueueStat,
};
use vere_units::{Secret, Timestamp};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const INCARNATION: Incarnation = Incarnation(77);
const GROUP: &str = "gateway";
const LINK: Link = Link {
    node: 0,
    address: 0,
};
/// Turns that a dialogue of so few octets may take.
const TURNS_MAX: usize = 10_000;
/// CREATE of the queues 0 "a" and 1 "b", before everything else.
pub(crate) const QUEUES: &[u8] = b"\x20\0\x19\0\0\0\0\x01\0\0\0\
    \xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x7fa\
    \x20\0\x19\x01\0\0\0\x01\0\0\0\
    \xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x7fb";

pub(crate) const SEEDS: &[&[u8]] = &[
    // CREATE queue 3 "q", PUT records 1 and 2, DELETE record 1.
    b"\0\x20\0\x19\x03\0\0\0\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffq\
      \x21\0\x15\x03\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0mbody\
      \x21\0\x15\x03\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0mbody\
      \x22\0\x10\x03\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0",
    // CREATE queue 3 "q", readable by "bill".
    b"\0\x20\0\x1f\x03\0\0\0\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffq\x02\x04bill",
    // PUT into a queue, REPLACE, MOVE to the end of the same queue.
    b"\0\x21\0\x15\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0mbody\
      \x23\0\x13\0\0\0\0\x03\0\0\0\x01\0\0\0\0\0\0\0new\
      \x24\0\x20\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0",
    // PURGE of a queue, and what is left of a refused request.
    b"\0\x21\0\x11\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0b\
      \x25\0\x10\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\
      \x60\0\x08\x01\0\0\0\0\0\0\0",
];

/// Gives the frames to a starting node, and reads every record back as the owner.
pub(crate) fn replay(octets: &[u8]) {
    let _ = records(octets);
}

/// Number of records on the node; `None` when the node refused the log.
fn records(octets: &[u8]) -> Option<u64> {
    let (kind, octets) = crate::choice::choice(octets);
    let mut node: Node<Log> = Node::new(config(), INCARNATION, Some(Log::default()));
    let restored = node.restore(GROUP, |replay| {
        let mut log = Log::default();
        if kind & 1 == 0 {
            replay.head(1, head())?;
            frames(&[QUEUES, octets].concat(), &mut |entry| {
                replay.entry(1, entry)
            })?;
        } else {
            // Any octets as the head, and the same octets as an entry.
            replay.head(1, octets)?;
            replay.entry(1, octets)?;
        }
        log.newest = 1;
        Ok::<_, UnreadableEntry>(log)
    });
    restored.ok().and_then(|()| read_back(&mut node))
}

/// The groups of a node with that spill store after reading a log; `None` when the node refused the log.
pub(crate) fn restored<T, E>(
    spill: Box<dyn SpillStore>,
    read: impl FnOnce(&mut dyn LogReader) -> Result<T, E>,
) -> Option<Vec<(String, NodeStat)>> {
    let mut node: Node<Log> = Node::new(config(), INCARNATION, Some(Log::default()));
    node.set_spill_store(spill);
    let restored = node.restore(GROUP, |replay| {
        read(replay).map(|_| Log {
            newest: 2,
            ..Log::default()
        })
    });
    restored.ok().map(|()| node.stats())
}

/// Offset of the flags in a head, and the flag of an incomplete group.
const FLAGS_AT: usize = 28;
const INCOMPLETE: u8 = 1;

/// The head of a new and whole group's log, as written by a node.
pub(crate) fn head() -> &'static [u8] {
    static HEAD: OnceLock<Vec<u8>> = OnceLock::new();
    HEAD.get_or_init(|| {
        let log = Log::default();
        let mut node = Node::new(config(), INCARNATION, Some(log.clone()));
        read_back(&mut node);
        let mut head = log.head.take();
        // A group is incomplete until its owner declares it whole, as happens here.
        if let Some(flags) = head.get_mut(FLAGS_AT) {
            *flags &= !INCOMPLETE;
        }
        head
    })
}

fn config() -> NodeConfig {
    let mut config = NodeConfig::new(secret());
    config.segment_len = SEGMENT_LEN_MIN;
    config.memory_max = 16 * SEGMENT_LEN_MIN as u64;
    config.frame_max = 64 << 10;
    config
}

/// Frames of `operation flags length payload`, each with the proper number: the next number, or the last
/// number again where flags or operation demand that.
pub(crate) fn frames(
    mut octets: &[u8],
    give: &mut dyn FnMut(&[u8]) -> Result<(), UnreadableEntry>,
) -> Result<(), UnreadableEntry> {
    const KEPT: u8 = 0x80;
    const OWNED: u8 = 0x61;
    let mut number = 0_u64;
    while let Some((&[operation, flags, length], rest)) = octets.split_first_chunk() {
        let (payload, rest) = rest.split_at(usize::from(length).min(rest.len()));
        octets = rest;
        if flags & KEPT == 0 && operation != OWNED {
            number += 1;
        }
        let length = HEADER_LEN + payload.len() + CHECKSUM_LEN;
        let mut frame = (length as u32).to_le_bytes().to_vec();
        frame.extend_from_slice(&[operation, flags, 0, 0]);
        frame.extend_from_slice(&number.to_le_bytes());
        frame.extend_from_slice(payload);
        frame.extend_from_slice(&vere_checksum::crc32c(&frame).to_le_bytes());
        give(&frame)?;
    }
    Ok(())
}

fn secret() -> Secret<[u8; 32]> {
    Secret::new([5; 32])
}

/// Connects as owner and fetches every record of every queue. `None` when the group is incomplete or
/// knows an owner of a higher epoch.
fn read_back(node: &mut Node<Log>) -> Option<u64> {
    let mut owner = Owner::new(OwnerConfig::new(GROUP, secret(), 10));
    let Some(connection) = node.accept([1; 32], NOW) else {
        panic!("a node without connections takes none");
    };
    owner.timed_out(NOW);
    serve_register(&mut owner);
    owner.connected(LINK, [2; 32], NOW);
    let mut queues: Vec<QueueStat> = Vec::new();
    talk(node, &mut owner, connection, &mut |_| {});
    if !owner.is_open() {
        return None;
    }
    owner.queues(QueueId(0), 65_536);
    talk(node, &mut owner, connection, &mut |event| {
        if let OwnerEvent::Queues { queues: found, .. } = event {
            queues = found;
        }
    });
    let mut all = 0;
    for queue in queues {
        let (mut records, mut octets) = (0, 0);
        let mut from = queue.first;
        for _ in 0..=queue.length {
            owner.fetch(queue.id, from, 1_000, 1 << 20);
            let mut end = true;
            talk(node, &mut owner, connection, &mut |event| {
                let OwnerEvent::Block {
                    block: Some(block), ..
                } = event
                else {
                    return;
                };
                for record in &block.records {
                    assert!(record.id >= from && record.id < queue.next);
                    octets += (record.meta.len() + record.body.len()) as u64;
                    from = record.id.next();
                }
                records += block.records.len() as u64;
                end = block.records.is_empty();
            });
            if end {
                break;
            }
        }
        assert_eq!((records, octets), (queue.length, queue.bytes));
        all += records;
    }
    Some(all)
}

/// The register says that the node is the group's only member.
fn serve_register(owner: &mut Owner) {
    let record = Membership::new(u64::MAX - 1, 9).with("node", INCARNATION, MemberState::Full);
    while let Some(request) = owner.poll_register() {
        match request {
            RegisterRequest::Read => {
                owner.register_read(Ok(Some((1, record.encode()))), NOW);
            }
            RegisterRequest::Swap { .. } => {
                owner.register_swapped(&RegisterSwap::Done(2), NOW);
            }
        }
    }
}

/// Carries octets both ways until no octets are left.
fn talk(
    node: &mut Node<Log>,
    owner: &mut Owner,
    connection: ConnectionId,
    each: &mut dyn FnMut(OwnerEvent),
) {
    for _ in 0..TURNS_MAX {
        let pending = owner.output(LINK);
        let buffer = node.buffer(connection);
        let up = pending.len().min(buffer.len());
        buffer[..up].copy_from_slice(&pending[..up]);
        if up > 0 {
            owner.sent(LINK, up);
            node.received(connection, up, NOW);
        }
        node.end_turn(NOW);
        let octets = output(node, connection);
        node.sent(connection, octets.len());
        match owner.input(LINK, &octets, NOW) {
            Ok(()) => {}
            Err(OwnerError::Closed(CloseReason::Fenced)) => return,
            Err(error) => panic!("the node breaks the protocol: {error}"),
        }
        while let Some(event) = owner.poll_event() {
            each(event);
        }
        if up == 0 && octets.is_empty() {
            return;
        }
    }
    panic!("goes on for ever");
}

fn output(node: &Node<Log>, connection: ConnectionId) -> Vec<u8> {
    let mut slices = [IoSlice::new(&[]); 64];
    let count = node.output(connection, &mut slices);
    slices[..count]
        .iter()
        .flat_map(|slice| slice.iter().copied())
        .collect()
}

/// A log that drops entries and is always synced.
#[derive(Debug, Clone, Default)]
struct Log {
    position: u64,
    newest: u64,
    /// The head of the first segment.
    head: Rc<RefCell<Vec<u8>>>,
}

impl SpoolLog for Log {
    fn append(&mut self, entry: &[u8]) -> Result<LogPosition, LogError> {
        self.position += entry.len() as u64;
        Ok(LogPosition(self.position))
    }

    fn start_sync(&mut self) {}

    fn synced(&self) -> Result<LogPosition, LogError> {
        Ok(LogPosition(self.position))
    }

    fn newest(&self) -> u64 {
        self.newest
    }

    fn wants_roll(&self) -> bool {
        false
    }

    fn roll(&mut self, _: &[u8]) -> Result<(), LogError> {
        self.newest += 1;
        Ok(())
    }

    fn remove_before(&mut self, _: u64) -> Result<(), LogError> {
        Ok(())
    }

    fn keep_house(&mut self) {}

    fn octets(&self) -> u64 {
        self.position
    }

    fn room(&self) -> LogRoom {
        LogRoom::Plenty
    }

    fn read_back(&mut self, _: LogStretch, _: Vec<u8>) {}

    fn poll_read(&mut self) -> Option<LogRead> {
        None
    }
}

impl SpoolLogStore for Log {
    type Log = Self;

    fn create(&mut self, _: &str, head: &[u8]) -> Result<Self, LogError> {
        self.head.replace(head.to_vec());
        Ok(self.clone())
    }

    fn replace(&mut self, group: &str, head: &[u8]) -> Result<Self, LogError> {
        self.create(group, head)
    }

    fn remove(&mut self, _: &str) -> Result<(), LogError> {
        Ok(())
    }

    fn is_aside(&self, _: &str) -> bool {
        false
    }

    fn discard(&mut self, _: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_get_far() {
        let held: Vec<_> = SEEDS.iter().map(|seed| records(seed)).collect();
        assert_eq!(held, [Some(1), Some(0), Some(1), Some(0)]);
    }

    /// A record with the greatest number: the next number overflowed. Found by these tests.
    #[test]
    fn the_last_number_is_refused() {
        let put = |id: u64| {
            let mut octets = b"\0\x21\0\x11\0\0\0\0\0\0\0\0".to_vec();
            octets.extend_from_slice(&id.to_le_bytes());
            octets.push(b'b');
            octets
        };
        assert_eq!(records(&put(u64::MAX)), None);
        assert_eq!(records(&put(u64::MAX - 1)), Some(1));
    }
}
