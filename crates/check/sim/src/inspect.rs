//! Inspects the nodes at the end of a run, as a reader would: the replicas must be equal, and
//! contain every acknowledged change.

use vere_owner::MemberState;
use vere_spool::node::{ConnectionId, Node};
use vere_spoolwire::{
    Answer, Change, Charter, DEFAULT_ACCOUNT, Frame, Greeting, Hello, Mutation, QueueStat,
    RecordId, Request, Role, Seq, Txn, VERSION, Welcome,
};
use vere_spoolwire::{Block, Record};
use vere_units::{Secret, Timestamp};

use crate::disk::Disk;
use crate::node_host::output;
use crate::scenario::GROUP;
use crate::world::World;

/// Queues of a node with their records.
type Content = Vec<(QueueStat, Vec<Record>)>;

impl World {
    /// Checks that all full replicas are equal, and that there are enough of them.
    pub(crate) fn check_replicas(&mut self) -> Result<(), String> {
        let record = self
            .register
            .record()
            .ok_or("there is no membership record")?;
        let mut first: Option<(String, Content)> = None;
        let since = self.schedule.serial();
        for member in &record.members {
            if member.state != MemberState::Full {
                return Err(format!("{} is not full at the end", member.node));
            }
            let now = self.clock(0);
            let Some(node) = self.nodes.iter_mut().find(|node| node.name == member.node) else {
                return Err(format!("there is no node {}", member.node));
            };
            let process = node.process.as_mut().ok_or("a full replica is down")?;
            let content = content(process, now).ok_or("a node does not answer")?;
            let stats: Vec<QueueStat> = content.iter().map(|(stat, _)| stat.clone()).collect();
            self.model.check_queues(&stats, since)?;
            for (stat, records) in &content {
                let queues = self.model.queues.iter();
                let place = queues
                    .enumerate()
                    .filter(|(_, queue)| queue.id == stat.id && queue.name == stat.name)
                    .map(|(place, _)| place)
                    .next_back();
                let block = Block {
                    records: records.clone(),
                    next: RecordId(u64::MAX),
                    end: true,
                };
                let place = place.ok_or("a queue that was never made")?;
                let checked = self.model.check_block(place, RecordId(0), &block, since);
                checked.map_err(|wrong| format!("{}: {wrong}", member.node))?;
                if stat.length != records.len() as u64 {
                    return Err(format!(
                        "{} counts {} records wrongly",
                        member.node, stat.name
                    ));
                }
            }
            match &first {
                None => first = Some((member.node.clone(), content)),
                Some((name, other)) if !same(other, &content) => {
                    let what = difference(other, &content);
                    return Err(format!("{name} and {} differ in {what}", member.node));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

impl World {
    /// Notes the content of all nodes in the trace.
    pub(crate) fn note_contents(&mut self) {
        let now = self.clock(0);
        for place in 0..self.nodes.len() {
            let process = self.nodes[place].process.as_mut();
            let Some(content) = process.and_then(|process| content(process, now)) else {
                continue;
            };
            for (stat, records) in content {
                let ids: Vec<u64> = records.iter().map(|record| record.id.0).collect();
                let (name, next) = (stat.name, stat.next);
                self.note(33, || format!("n{place}: {name}, next {next}: {ids:?}"));
            }
        }
    }
}

/// Whether two replicas have equal content. A number that one replica refused and the other one
/// took back is used up in the second replica only, so `first` and `next` are not compared.
fn same(one: &Content, other: &Content) -> bool {
    let plain = |stat: &QueueStat| QueueStat {
        first: RecordId(0),
        next: RecordId(0),
        ..stat.clone()
    };
    let pairs = || one.iter().zip(other);
    one.len() == other.len()
        && pairs().all(|((one, records), (other, others))| {
            plain(one) == plain(other) && records == others
        })
}

/// Describes the first difference between two replicas.
fn difference(one: &Content, other: &Content) -> String {
    for ((stat, records), (other_stat, other_records)) in one.iter().zip(other) {
        if stat != other_stat {
            return format!("{stat:?}, {other_stat:?}");
        }
        let differ = |(record, other): &(&Record, &Record)| record != other;
        if let Some((record, _)) = records.iter().zip(other_records).find(differ) {
            return format!("record {} of queue {}", record.id, stat.name);
        }
    }
    "the number of queues".to_owned()
}

/// Most turns of a node until an answer arrives that is read from the node's disk.
const TURNS: u32 = 1_000;

/// All queues and records of a node.
fn content(node: &mut Node<Disk>, now: Timestamp) -> Option<Content> {
    let id = node.accept([7; 32], now)?;
    let mut incoming = read(node, id);
    let greeting = take(&mut incoming, |frame| Greeting::decode(frame).ok())?;
    let secret = Secret::new([5; 32]);
    let hello = Hello {
        acknowledged: Txn(0),
        version: VERSION,
        role: Role::Reader,
        owner: 0,
        epoch: 0,
        logged: true,
        group: GROUP,
        account: DEFAULT_ACCOUNT,
        charter: Charter::OWN,
        nonce: [8; 32],
        proof: [0; 32],
    };
    let mut octets = Vec::new();
    hello.sign(&greeting, &secret).encode(&mut octets);
    write(node, id, &octets, now)?;
    incoming = read(node, id);
    take(&mut incoming, |frame| Welcome::decode(frame).ok())?;
    let mut content = Vec::new();
    for stat in node.queues(GROUP) {
        let records = records(node, id, &stat, now)?;
        content.push((stat, records));
    }
    node.closed(id);
    Some(content)
}

fn records(
    node: &mut Node<Disk>,
    id: ConnectionId,
    stat: &QueueStat,
    now: Timestamp,
) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    let mut from = RecordId(0);
    loop {
        let fetch = Request::Fetch {
            queue: stat.id,
            from,
            records: 1_000,
            octets: 1 << 20,
        };
        let mut octets = Vec::new();
        fetch.encode(&mut octets, Seq(1));
        write(node, id, &octets, now)?;
        let mut incoming = read(node, id);
        for _ in 0..TURNS {
            if !incoming.is_empty() {
                break;
            }
            // Records outside memory arrive after some turns.
            node.end_turn(now);
            incoming = read(node, id);
        }
        let answer = take(&mut incoming, |frame| Answer::decode(frame).ok())?;
        let Answer::Block { head, .. } = answer else {
            return None;
        };
        for _ in 0..head.records {
            records.push(take(&mut incoming, record)?);
        }
        if head.end {
            return Some(records);
        }
        from = head.next;
    }
}

fn record(frame: &Frame<'_>) -> Option<Record> {
    match Mutation::decode_logged(frame).ok()? {
        Mutation::Change(Change::Put {
            id,
            meta,
            body: Some(body),
            ..
        }) => Some(Record {
            id,
            meta: meta.to_vec().into(),
            body: body.to_vec().into(),
        }),
        _ => None,
    }
}

fn write(node: &mut Node<Disk>, id: ConnectionId, octets: &[u8], now: Timestamp) -> Option<()> {
    let buffer = node.buffer(id);
    buffer.get_mut(..octets.len())?.copy_from_slice(octets);
    node.received(id, octets.len(), now);
    Some(())
}

fn read(node: &mut Node<Disk>, id: ConnectionId) -> Vec<u8> {
    let mut octets = Vec::new();
    loop {
        let more = output(node, id, usize::MAX / 2);
        if more.is_empty() {
            return octets;
        }
        node.sent(id, more.len());
        octets.extend(more);
    }
}

/// Removes one frame from the received octets.
fn take<T>(octets: &mut Vec<u8>, decode: impl Fn(&Frame<'_>) -> Option<T>) -> Option<T> {
    let frame = Frame::read(octets, usize::MAX).ok()??;
    let (value, len) = (decode(&frame)?, frame.header.len);
    octets.drain(..len);
    Some(value)
}
