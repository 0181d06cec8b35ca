//! Our own protocol: an authenticated owner that stores and deletes, with numbers and checksums of
//! real frames.
//!
//! Frames are built once. For each use their numbers are overwritten and their checksums corrected: CRC-32C is
//! affine, so the effect of a changed octet on the checksum depends on the place of the octet only and stands in a
//! table. The client costs as little as with the further dialects, and the node gets the frames of any owner.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use vere_spoolwire::{
    Answer, Change, Charter, DEFAULT_ACCOUNT, Frame, Greeting, Hello, Mutation, QueueId,
    QueueLimits, RecordId, Request, Role, SECRET_LEN, Seq, SharedSecret, Txn, VERSION,
    WELCOME_FRAME_MAX, Welcome, encode_change, encode_create,
};

use super::drive::{Dialect, Lane, Replied};
use crate::error::BenchError;

/// The secret of the nodes started here; the nodes listen on the loopback during the benchmark only.
pub(super) const SECRET: [u8; 32] = [0x5a; 32];

/// The only queue of each group.
const QUEUE: QueueId = QueueId(0);

/// Octets of ready-made frames, about.
const BLOCK_LEN: usize = 128 << 10;

/// Where the number and the record lie in PUT and DELETE.
const NUMBER_AT: usize = 8;
const RECORD_AT: usize = 24;
const NUMBERS_END: usize = RECORD_AT + 8;

/// How long a node may take for an answer outside the load.
const PATIENCE: Duration = Duration::from_secs(30);

/// The state of an owner after the WELCOME.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) stream: TcpStream,
    /// The next transaction.
    pub(super) txn: u64,
    /// The next record of the queue.
    pub(super) record: u64,
    /// Input from the node, and the number of parsed octets.
    input: Vec<u8>,
    read: usize,
    /// Buffer for skipped octets.
    piece: Vec<u8>,
}

impl Session {
    /// Connects as the owner of `group`, proves itself, and makes the queue.
    pub(super) fn open(address: SocketAddr, group: &str) -> Result<Self, BenchError> {
        Self::open_as(address, group, true)
    }

    /// Opens a group, and chooses whether a new group has a log where the node keeps logs.
    pub(super) fn open_as(
        address: SocketAddr,
        group: &str,
        logged: bool,
    ) -> Result<Self, BenchError> {
        let io = BenchError::io;
        let secret = SharedSecret::new(SECRET);
        let stream = TcpStream::connect(address).map_err(io("connect to a node"))?;
        stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.set_nodelay(true))
            .map_err(io("connect to a node"))?;
        let mut session = Self {
            stream,
            txn: 1,
            record: 1,
            input: Vec::new(),
            read: 0,
            piece: vec![0; 256 << 10],
        };
        let greeting = session.frame(|frame| Greeting::decode(frame).map_err(wrong))?;
        let hello = Hello {
            acknowledged: Txn(0),
            version: VERSION,
            role: Role::Owner,
            owner: u64::from(std::process::id()) + 1,
            epoch: 0,
            logged,
            group,
            account: DEFAULT_ACCOUNT,
            charter: Charter::OWN,
            nonce: nonce(&greeting),
            proof: [0; SECRET_LEN],
        }
        .sign(&greeting, &secret);
        let mut out = Vec::new();
        hello.encode(&mut out);
        session.send(&out)?;
        let welcome = session.frame(|frame| match Answer::decode(frame) {
            Ok(Answer::Close(reason)) => Err(wrong(format!("a node refuses: {reason}"))),
            _ => Welcome::decode(frame).map_err(wrong),
        })?;
        if welcome.proof != hello.answer(&greeting, &secret) {
            return Err(BenchError::protocol("the node does not know the secret"));
        }
        session.txn = welcome.processed.next().0;
        session.create()?;
        Ok(session)
    }

    /// Creates the queue, or finds its next number.
    fn create(&mut self) -> Result<(), BenchError> {
        let mut out = Vec::new();
        let limits = QueueLimits {
            length_max: 1 << 40,
            bytes_max: 1 << 50,
        };
        encode_create(&mut out, Txn(self.txn), QUEUE, "bench", limits);
        let (from, count) = (QUEUE, 1);
        Request::Queues { from, count }.encode(&mut out, Seq(1));
        self.send(&out)?;
        let (mut acknowledged, mut next) = (false, None);
        while !acknowledged || next.is_none() {
            match self.answer()? {
                Answer::Ack { through, refused } if refused.is_empty() => {
                    acknowledged |= through.0 >= self.txn;
                }
                Answer::QueueList { queues, .. } => {
                    next = Some(queues.first().map_or(1, |queue| queue.next.0));
                }
                other => return Err(wrong(format!("unexpected answer {other:?}"))),
            }
        }
        self.txn += 1;
        self.record = next.unwrap_or(1);
        Ok(())
    }

    pub(super) fn send(&mut self, octets: &[u8]) -> Result<(), BenchError> {
        self.stream
            .write_all(octets)
            .map_err(BenchError::io("write to a node"))
    }

    /// The next answer of the node.
    pub(super) fn answer(&mut self) -> Result<Answer, BenchError> {
        self.frame(|frame| Answer::decode(frame).map_err(wrong))
    }

    /// Waits for a frame and parses the frame.
    pub(super) fn frame<T>(
        &mut self,
        read: impl FnOnce(&Frame<'_>) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        loop {
            if let Some(frame) =
                Frame::read(&self.input[self.read..], WELCOME_FRAME_MAX).map_err(wrong)?
            {
                let len = frame.header.len;
                let result = read(&frame);
                self.read += len;
                return result;
            }
            self.input.drain(..std::mem::take(&mut self.read));
            let mut chunk = [0; 64 << 10];
            let count = self
                .stream
                .read(&mut chunk)
                .map_err(BenchError::io("read from a node"))?;
            if count == 0 {
                return Err(BenchError::protocol("the node closed the connection"));
            }
            self.input.extend_from_slice(&chunk[..count]);
        }
    }

    /// Skips `octets` octets of input.
    pub(super) fn pass(&mut self, octets: u64) -> Result<(), BenchError> {
        let mut left = octets;
        let there = left.min((self.input.len() - self.read) as u64);
        self.read += there as usize;
        left -= there;
        while left > 0 {
            let most = self.piece.len().min(left as usize);
            match self.stream.read(&mut self.piece[..most]) {
                Ok(0) => return Err(BenchError::protocol("the node closed the connection")),
                Ok(count) => left -= count as u64,
                Err(error) => return Err(BenchError::io("read from a node")(error)),
            }
        }
        Ok(())
    }

    /// Reads the whole queue once, with checksums, and compares.
    pub(super) fn check(&mut self, messages: u64, body: &[u8]) -> Result<(), BenchError> {
        let mut next = RecordId(1);
        let mut found = 0;
        while found < messages {
            self.send(&fetch(next, 1_000, found))?;
            let Answer::Block { head, .. } = self.answer()? else {
                return Err(wrong("a block was asked for and something else came"));
            };
            if head.records == 0 {
                return Err(wrong(format!(
                    "the queue holds {found} of {messages} messages"
                )));
            }
            for _ in 0..head.records {
                self.frame(|frame| match Mutation::decode_logged(frame) {
                    Ok(Mutation::Change(Change::Put {
                        id, body: Some(b), ..
                    })) if id == next && b == body => Ok(()),
                    _ => Err(wrong(format!("record {next} is not what was stored"))),
                })?;
                next = next.next();
                found += 1;
            }
        }
        Ok(())
    }

    /// Whether two sessions go on with the same numbers.
    pub(super) const fn is_at(&self, other: &Self) -> bool {
        self.txn == other.txn && self.record == other.record
    }

    /// A lane that stores messages and deletes none.
    pub(super) fn filling(self, body: &[u8]) -> Result<Lane, BenchError> {
        let dialect = Box::new(self.dialect(body, false));
        Lane::new(dialect, vec![self.stream])
    }

    /// The dialect that goes on from here. `delete`: each record is deleted at once.
    pub(super) fn dialect(&self, body: &[u8], delete: bool) -> VereWire {
        VereWire::new(self.txn, self.record, body, delete)
    }
}

/// A request for a block of up to `records` records.
pub(super) fn fetch(from: RecordId, records: u32, number: u64) -> Vec<u8> {
    let fetch = Request::Fetch {
        queue: QUEUE,
        from,
        records,
        octets: u32::MAX,
    };
    let mut out = Vec::new();
    fetch.encode(&mut out, Seq(number));
    out
}

/// Not secret, only fresh: the node's challenge is part of the proof as well.
fn nonce(greeting: &Greeting) -> [u8; SECRET_LEN] {
    let mut nonce = greeting.challenge;
    nonce.reverse();
    nonce
}

fn wrong(error: impl std::fmt::Display) -> BenchError {
    BenchError::protocol(error.to_string())
}

/// The effect of the octets of number and record on a frame's checksum.
#[derive(Debug)]
struct Patch {
    /// The checksum with all such octets 0.
    base: u32,
    table: Box<[[u32; 256]; 16]>,
    /// The upper octets' part of the checksum, and the upper octets.
    upper: u32,
    upper_of: (u64, u64),
}

impl Patch {
    /// `frame` is a whole frame with both numbers 0.
    fn new(frame: &[u8]) -> Self {
        let mut content = frame[..frame.len() - 4].to_vec();
        let base = vere_checksum::crc32c(&content);
        let mut table = Box::new([[0; 256]; 16]);
        for (place, row) in table.iter_mut().enumerate() {
            let at = if place < 8 {
                NUMBER_AT + place
            } else {
                RECORD_AT + place - 8
            };
            for bit in 0..8 {
                content[at] = 1 << bit;
                let change = vere_checksum::crc32c(&content) ^ base;
                for (value, entry) in row.iter_mut().enumerate() {
                    if value >> bit & 1 == 1 {
                        *entry ^= change;
                    }
                }
            }
            content[at] = 0;
        }
        Self {
            base,
            table,
            upper: 0,
            upper_of: (0, 0),
        }
    }

    #[inline]
    fn checksum(&mut self, number: u64, record: u64) -> u32 {
        let upper_of = (number >> 8, record >> 8);
        if upper_of != self.upper_of {
            self.go_on(number, record);
        }
        let entry = |place: usize, value: u64| self.table[place][usize::from(value as u8)];
        self.base ^ self.upper ^ entry(0, number) ^ entry(8, record)
    }

    /// Reckons the part of the upper octets again.
    #[cold]
    fn go_on(&mut self, number: u64, record: u64) {
        let octets = number
            .to_le_bytes()
            .into_iter()
            .chain(record.to_le_bytes())
            .zip(self.table.iter())
            .enumerate();
        self.upper = octets
            .filter(|(place, _)| place % 8 >= 1)
            .fold(0, |sum, (_, (octet, row))| sum ^ row[usize::from(octet)]);
        self.upper_of = (number >> 8, record >> 8);
    }

    /// Writes the numbers into a frame.
    #[inline]
    fn apply(&mut self, frame: &mut [u8], number: u64, record: u64) {
        let checksum = self.checksum(number, record);
        if let Some((head, rest)) = frame.split_first_chunk_mut::<NUMBERS_END>()
            && let Some(field) = rest.last_chunk_mut()
        {
            head[NUMBER_AT..NUMBER_AT + 8].copy_from_slice(&number.to_le_bytes());
            head[RECORD_AT..RECORD_AT + 8].copy_from_slice(&record.to_le_bytes());
            *field = checksum.to_le_bytes();
        }
    }
}

/// PUT, and DELETE if wanted, of successive records.
#[derive(Debug)]
pub(super) struct VereWire {
    block: Vec<u8>,
    ready: usize,
    put_len: usize,
    unit_octets: usize,
    put: Patch,
    delete: Option<Patch>,
    txn: u64,
    record: u64,
    first_txn: u64,
    done: Vec<u64>,
}

impl VereWire {
    fn new(txn: u64, record: u64, body: &[u8], delete: bool) -> Self {
        let (queue, id) = (QUEUE, RecordId(0));
        let (meta, body) = (&[][..], Some(body));
        let mut unit = Vec::new();
        let put = Change::Put {
            queue,
            id,
            meta,
            body,
        };
        encode_change(&mut unit, Txn(0), &put, 0);
        let put_len = unit.len();
        let put = Patch::new(&unit);
        let delete = delete.then(|| {
            encode_change(&mut unit, Txn(0), &Change::Delete { queue, id }, 0);
            Patch::new(&unit[put_len..])
        });
        Self {
            block: unit.repeat((BLOCK_LEN / unit.len()).max(1)),
            ready: 0,
            put_len,
            unit_octets: unit.len(),
            put,
            delete,
            txn,
            record,
            first_txn: txn,
            done: Vec::new(),
        }
    }
}

impl Dialect for VereWire {
    fn unit_octets(&self) -> usize {
        self.unit_octets
    }

    fn prepare(&mut self, units: usize) -> usize {
        let mut count = 0;
        for unit in self.block.chunks_exact_mut(self.unit_octets).take(units) {
            let (put, delete) = unit.split_at_mut(self.put_len);
            self.put.apply(put, self.txn, self.record);
            self.txn += 1;
            if let Some(patch) = &mut self.delete {
                patch.apply(delete, self.txn, self.record);
                self.txn += 1;
            }
            self.record += 1;
            count += 1;
        }
        self.ready = count * self.unit_octets;
        count
    }

    fn octets(&self) -> &[u8] {
        &self.block[..self.ready]
    }

    fn replies(&mut self, server: usize, input: &[u8]) -> Result<Replied, String> {
        if self.done.len() <= server {
            self.done.resize(server + 1, 0);
        }
        let mut consumed = 0;
        let text = |error: vere_spoolwire::WireError| error.to_string();
        while let Some(frame) = Frame::read(&input[consumed..], WELCOME_FRAME_MAX).map_err(text)? {
            match Answer::decode(&frame).map_err(text)? {
                Answer::Ack { through, refused } => {
                    if let Some((txn, refusal)) = refused.first() {
                        return Err(format!("transaction {txn} refused: {refusal}"));
                    }
                    let per_unit = if self.delete.is_some() { 2 } else { 1 };
                    self.done[server] = (through.0 + 1).saturating_sub(self.first_txn) / per_unit;
                }
                other => return Err(format!("unexpected answer {other:?}")),
            }
            consumed += frame.header.len;
        }
        Ok(Replied {
            consumed,
            done: self.done[server],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::VereWire;
    use crate::spool::drive::Dialect;
    use vere_spoolwire::{Change, Frame, Mutation};

    #[test]
    fn corrected_checksums_are_those_of_real_frames() {
        let body: Vec<u8> = (0..1000_u32).map(|n| (n * 7) as u8).collect();
        for start in [1, 65_530, 0x1234_5678_9abc_fff0] {
            let mut wire = VereWire::new(start, start + 3, &body, true);
            let (mut txn, mut record) = (start, start + 3);
            for _ in 0..3 {
                assert!(wire.prepare(50) > 0);
                let mut rest = wire.octets();
                while let Some(frame) = Frame::read(rest, 4096).unwrap() {
                    assert_eq!(frame.header.number, txn);
                    match Mutation::decode(&frame).unwrap() {
                        Mutation::Change(Change::Put {
                            id, body: Some(b), ..
                        }) => assert_eq!((id.0, b), (record, &body[..])),
                        Mutation::Change(Change::Delete { id, .. }) => {
                            assert_eq!(id.0, record);
                            record += 1;
                        }
                        other => panic!("{other:?}"),
                    }
                    txn += 1;
                    rest = &rest[frame.header.len..];
                }
                assert!(rest.is_empty());
            }
        }
    }
}
