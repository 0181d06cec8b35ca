//! The floor: the least cost of a server of the same shape.
//!
//! Receive buffer = segment: up to 256 KiB are read straight to their final place, and a segment without living
//! records is reused at once, the last freed segment first. Ids are dense: a slot is found by subtraction. A
//! cumulative acknowledgement answers each read. Nothing else: no authentication, no checksums, no limits, no log.
//!
//! ```text
//! request         len u32 | operation u32 | id u64 | body       1 store, 2 delete, 3 fetch (id, count u64)
//! acknowledgement requests done u64
//! block           records u64 | octets u64 | so many store requests
//! ```

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read as _, Write as _};
use std::net::TcpListener as StdListener;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

const LISTENER: Token = Token(usize::MAX);

/// Octets read at once.
const READ_MAX: usize = 256 << 10;
/// Octets of a segment.
const SEGMENT_LEN: usize = 1 << 20;
/// Octets of a request before the body.
pub(super) const HEAD_LEN: usize = 16;
/// Octets of an acknowledgement.
pub(super) const ACK_LEN: usize = 8;
/// Octets of a block's head.
pub(super) const BLOCK_HEAD_LEN: usize = 16;

/// Ranges written by a system call.
const SLICES: usize = 64;

pub(super) const STORE: u32 = 1;
pub(super) const DELETE: u32 = 2;
const FETCH: u32 = 3;

/// Serves until the end of the process. Records of a connection are dropped with the connection.
pub(super) fn serve(listener: StdListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut listener = TcpListener::from_std(listener);
    let poll = Poll::new()?;
    poll.registry()
        .register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut host = Host {
        poll,
        listener,
        peers: Vec::new(),
        free: Vec::new(),
    };
    host.run()
}

#[derive(Debug)]
struct Segment {
    octets: Box<[u8]>,
    fill: usize,
    live: u32,
}

/// The place of a record; `len` is 0 for a deleted record.
#[derive(Debug, Clone, Copy)]
struct Slot {
    segment: u32,
    offset: u32,
    len: u32,
}

/// A connection and its records.
#[derive(Debug)]
struct Peer {
    stream: TcpStream,
    segments: Vec<Option<Segment>>,
    vacant: Vec<usize>,
    tail: usize,
    /// Where the first request not looked at begins in the tail.
    next: usize,
    slots: VecDeque<Slot>,
    first: u64,
    requests: u64,
    /// Blocks asked for: record, count.
    asked: VecDeque<(u64, u64)>,
    /// Octets to write before the ranges, and the ranges, with the next octet of each.
    head: Vec<u8>,
    head_sent: usize,
    ranges: VecDeque<(u32, u32, u32)>,
}

struct Host {
    poll: Poll,
    listener: TcpListener,
    peers: Vec<Option<Peer>>,
    free: Vec<Box<[u8]>>,
}

impl Host {
    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => other?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    Token(index) => self.serve(index),
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let token = Token(self.peers.len());
            let interest = Interest::READABLE | Interest::WRITABLE;
            let ready = stream
                .set_nodelay(true)
                .and_then(|()| self.poll.registry().register(&mut stream, token, interest));
            if ready.is_ok() {
                self.peers.push(Some(Peer::new(stream)));
                self.serve(token.0);
            }
        }
    }

    fn serve(&mut self, index: usize) {
        let Some(Some(peer)) = self.peers.get_mut(index) else {
            return;
        };
        if peer.serve(&mut self.free).is_err() {
            // The memory returns to the system: the next connection begins with the same state.
            self.peers[index] = None;
        }
    }
}

impl Peer {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            segments: Vec::new(),
            vacant: Vec::new(),
            tail: 0,
            next: 0,
            slots: VecDeque::new(),
            first: 0,
            requests: 0,
            asked: VecDeque::new(),
            head: Vec::new(),
            head_sent: 0,
            ranges: VecDeque::new(),
        }
    }

    /// Reads, executes and acknowledges requests until the socket is empty.
    fn serve(&mut self, free: &mut Vec<Box<[u8]>>) -> io::Result<()> {
        loop {
            self.answer()?;
            self.make_room(free);
            let Some(Some(segment)) = self.segments.get_mut(self.tail) else {
                return Err(wrong());
            };
            let end = segment.octets.len().min(segment.fill + READ_MAX);
            let room = end - segment.fill;
            match self.stream.read(&mut segment.octets[segment.fill..end]) {
                Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof)),
                Ok(count) => {
                    segment.fill += count;
                    self.process(free)?;
                    if count < room {
                        return self.answer();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Restarts the tail when no record lives in the tail, or begins another tail for lack of space.
    fn make_room(&mut self, free: &mut Vec<Box<[u8]>>) {
        let mut pending = Vec::new();
        if let Some(Some(segment)) = self.segments.get_mut(self.tail) {
            if segment.live == 0 && self.ranges.is_empty() {
                segment.octets.copy_within(self.next..segment.fill, 0);
                segment.fill -= self.next;
                self.next = 0;
                return;
            }
            if segment.octets.len() - segment.fill >= READ_MAX / 4 {
                return;
            }
            pending = segment.octets[self.next..segment.fill].to_vec();
            segment.fill = self.next;
        }
        let mut octets = free
            .pop()
            .unwrap_or_else(|| vec![0; SEGMENT_LEN].into_boxed_slice());
        octets[..pending.len()].copy_from_slice(&pending);
        let segment = Some(Segment {
            octets,
            fill: pending.len(),
            live: 0,
        });
        self.next = 0;
        self.tail = self.vacant.pop().unwrap_or(self.segments.len());
        if self.tail == self.segments.len() {
            self.segments.push(segment);
        } else {
            self.segments[self.tail] = segment;
        }
    }

    /// Executes every whole request, and acknowledges the requests at once.
    fn process(&mut self, free: &mut Vec<Box<[u8]>>) -> io::Result<()> {
        let Some(Some(segment)) = self.segments.get_mut(self.tail) else {
            return Err(wrong());
        };
        let (octets, fill) = (std::mem::take(&mut segment.octets), segment.fill);
        let before = self.requests;
        let mut rest = &octets[self.next..fill];
        let mut result = Ok(());
        while let Some(head) = rest.first_chunk::<HEAD_LEN>() {
            let (len, operation, id) = parse(head);
            if rest.len() < len {
                break;
            }
            result = match operation {
                _ if len < HEAD_LEN => Err(wrong()),
                STORE => self.store(id, len),
                DELETE => self.delete(id, free),
                _ => self.ask(id, &rest[HEAD_LEN..]),
            };
            if result.is_err() {
                break;
            }
            self.requests += u64::from(operation != FETCH);
            self.next += len;
            rest = &rest[len..];
        }
        if let Some(Some(segment)) = self.segments.get_mut(self.tail) {
            segment.octets = octets;
        }
        if self.requests != before {
            self.head.extend_from_slice(&self.requests.to_le_bytes());
        }
        result
    }

    #[inline]
    fn store(&mut self, id: u64, len: usize) -> io::Result<()> {
        if self.slots.is_empty() {
            self.first = id;
        }
        if id != self.first + self.slots.len() as u64 {
            return Err(wrong());
        }
        self.slots.push_back(Slot {
            segment: self.tail as u32,
            offset: self.next as u32,
            len: len as u32,
        });
        if let Some(Some(segment)) = self.segments.get_mut(self.tail) {
            segment.live += 1;
        }
        Ok(())
    }

    #[inline]
    fn delete(&mut self, id: u64, free: &mut Vec<Box<[u8]>>) -> io::Result<()> {
        let index = id.wrapping_sub(self.first) as usize;
        let slot = self.slots.get_mut(index).ok_or_else(wrong)?;
        let key = slot.segment as usize;
        slot.len = 0;
        while self.slots.front().is_some_and(|slot| slot.len == 0) {
            self.slots.pop_front();
            self.first += 1;
        }
        let segment = self.segments.get_mut(key).ok_or_else(wrong)?;
        if let Some(segment) = segment {
            segment.live -= 1;
        }
        if key != self.tail
            && let Some(segment) = segment.take_if(|segment| segment.live == 0)
        {
            free.push(segment.octets);
            self.vacant.push(key);
        }
        Ok(())
    }

    fn ask(&mut self, id: u64, count: &[u8]) -> io::Result<()> {
        let count = count.first_chunk().ok_or_else(wrong)?;
        self.asked.push_back((id, u64::from_le_bytes(*count)));
        Ok(())
    }

    /// Writes the pending answers.
    fn answer(&mut self) -> io::Result<()> {
        loop {
            if self.head_sent == self.head.len() && self.ranges.is_empty() {
                self.head.clear();
                self.head_sent = 0;
                let Some((id, count)) = self.asked.pop_front() else {
                    return Ok(());
                };
                self.make_block(id, count);
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            slices[0] = IoSlice::new(&self.head[self.head_sent..]);
            let mut used = 1;
            for (slice, &(segment, from, to)) in slices[1..].iter_mut().zip(&self.ranges) {
                if let Some(Some(segment)) = self.segments.get(segment as usize) {
                    *slice = IoSlice::new(&segment.octets[from as usize..to as usize]);
                }
                used += 1;
            }
            match self.stream.write_vectored(&slices[..used]) {
                Ok(count) => self.sent(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn sent(&mut self, mut count: usize) {
        let part = count.min(self.head.len() - self.head_sent);
        self.head_sent += part;
        count -= part;
        while count > 0
            && let Some((_, from, to)) = self.ranges.front_mut()
        {
            let part = count.min((*to - *from) as usize);
            *from += part as u32;
            count -= part;
            if from == to {
                self.ranges.pop_front();
            }
        }
    }

    /// The head and the ranges of a block; adjacent ranges are joined.
    fn make_block(&mut self, id: u64, count: u64) {
        let skip = id.saturating_sub(self.first) as usize;
        let (mut records, mut octets) = (0_u64, 0_u64);
        for slot in self.slots.iter().skip(skip).take(count as usize) {
            let (from, to) = (slot.offset, slot.offset + slot.len);
            match self.ranges.back_mut() {
                Some((segment, _, end)) if *segment == slot.segment && *end == from => *end = to,
                _ => self.ranges.push_back((slot.segment, from, to)),
            }
            records += 1;
            octets += u64::from(slot.len);
        }
        self.head.extend_from_slice(&records.to_le_bytes());
        self.head.extend_from_slice(&octets.to_le_bytes());
    }
}

fn wrong() -> io::Error {
    io::Error::from(ErrorKind::InvalidData)
}

/// Length, operation and id of a request.
fn parse(head: &[u8; HEAD_LEN]) -> (usize, u32, u64) {
    let all = u128::from_le_bytes(*head);
    (all as u32 as usize, (all >> 32) as u32, (all >> 64) as u64)
}

/// A request without a body.
pub(super) fn head(len: usize, operation: u32, id: u64) -> [u8; HEAD_LEN] {
    let mut head = [0; HEAD_LEN];
    head[..4].copy_from_slice(&(len as u32).to_le_bytes());
    head[4..8].copy_from_slice(&operation.to_le_bytes());
    head[8..].copy_from_slice(&id.to_le_bytes());
    head
}

/// A request for `count` records from `id` on.
pub(super) fn fetch(id: u64, count: u64) -> Vec<u8> {
    let mut request = head(HEAD_LEN + 8, FETCH, id).to_vec();
    request.extend_from_slice(&count.to_le_bytes());
    request
}
