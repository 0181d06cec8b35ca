//! Figure 6: the time to read a queue back, by the number of messages in a block, and the memory of the messages
//! meanwhile.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use vere_spoolwire::{BLOCK_FRAME_LEN, FRAME_MIN, RecordId, TARGET_LEN};

use super::cores::Cores;
use super::drive::{Lane, Until, drive};
use super::fixed::command;
use super::floor;
use super::floor_wire::FloorWire;
use super::plan::{Placement, Setting, body};
use super::report::Report;
use super::systems::{FLOOR, Floor, NodeMode, Server, VERE};
use super::vere_wire::{Session, fetch};
use crate::error::BenchError;
use crate::peer::there;
use crate::row::Bar;

/// Octets of each body.
const SIZE: usize = 1_000;
/// Octets in flight while the queues are filled.
const WINDOW: usize = 1 << 20;
/// Requested blocks still to arrive; equal for all systems.
const DEPTH: u64 = 2;
/// The group of the queue.
const GROUP: &str = "recovery";
/// First id of the stream, so that all ids have the same number of digits.
const STREAM_FIRST: u64 = 1_000_000;

const LOOPBACK: &str = "loopback";
const LRANGE: &str = "redis LRANGE";
const XRANGE: &str = "redis XRANGE";

/// Limit of a message's memory beside its body, in octets.
const OVERHEAD_MAX: f64 = 100.0;

/// A queue to read back.
struct Source {
    name: &'static str,
    stream: TcpStream,
    /// The request for a block behind the first `skip` messages.
    request: fn(skip: u64, count: u64) -> Vec<u8>,
    /// Octets of the answer with `count` messages, and the beginning of the answer.
    answer: fn(count: u64) -> (u64, Vec<u8>),
}

/// Fills queues, reads the queues back in blocks of all lengths, in turns.
pub(super) fn measure(setting: &Setting<'_>, report: &mut Report) -> Result<(), BenchError> {
    let plan = setting.plan;
    let cores = Cores::enter(setting.placement);
    let messages = plan.recovered;
    let mut servers = Vec::new();
    let mut sources = Vec::new();
    let floor = Floor::start(setting)?;
    sources.push(fill_floor(&floor, messages)?);
    let node = Server::vere(setting.vere, setting.base, NodeMode::Memory, 4 << 30);
    if let Some(node) = there(node, &mut report.header)? {
        sources.push(memory(report, VERE, &node, messages, || {
            fill_vere(&node, messages)
        })?);
        servers.push(node);
    }
    for (name, fill) in [(LRANGE, fill_list as Fill), (XRANGE, fill_stream as Fill)] {
        if let Some(redis) = there(Server::redis(setting.base), &mut report.header)? {
            sources.push(memory(report, name, &redis, messages, || {
                fill(&redis, messages)
            })?);
            servers.push(redis);
        }
    }
    cores.be_client();
    for _ in 0..plan.rounds {
        for block in plan.blocks {
            let largest = plan.blocks.last() == Some(block);
            let most = if largest {
                Duration::MAX
            } else {
                plan.recovery_max
            };
            for source in &mut sources {
                let seconds = read_back(source, messages, *block, most)?;
                report.add(&name(*block, messages), "s", source.name, seconds);
            }
        }
        if let Some(block) = plan.blocks.last() {
            let seconds = loopback(messages, setting.placement)?;
            report.add(&name(*block, messages), "s", LOOPBACK, seconds);
        }
    }
    let title = format!("Figure 6: recovery of {messages} messages of 1 KB by messages in a block");
    let points = plan.blocks.iter();
    let points = points.map(|block| (block.to_string(), name(*block, messages)));
    report.plot(title, "s", points);
    if let Some(block) = plan.blocks.last() {
        let what = name(*block, messages);
        report.beside(&what, VERE, LOOPBACK, Bar::RatioMax(2.0));
        report.beside(&what, VERE, LRANGE, Bar::RatioMax(1.0));
    }
    report.bar(OVERHEAD, VERE, Bar::ValueMax(OVERHEAD_MAX));
    Ok(())
}

type Fill = fn(&Server, u64) -> Result<Source, BenchError>;

fn name(block: u64, messages: u64) -> String {
    format!("recovery of {messages} x 1 KB in blocks of {block}")
}

/// Growth of the memory of a process for each message, beyond the message's body.
const OVERHEAD: &str = "memory of a message of 1 KB beyond its body";

fn memory(
    report: &mut Report,
    name: &str,
    server: &Server,
    messages: u64,
    fill: impl FnOnce() -> Result<Source, BenchError>,
) -> Result<Source, BenchError> {
    let resident = || {
        server
            .resident()
            .map_err(BenchError::io("read what memory a server has"))
    };
    let before = resident()?;
    let source = fill()?;
    let grown = resident()?.saturating_sub(before) as f64 / messages as f64;
    report.add(OVERHEAD, "octets", name, grown - SIZE as f64);
    Ok(source)
}

fn fill_floor(floor: &Floor, messages: u64) -> Result<Source, BenchError> {
    let stream = TcpStream::connect(floor.address).map_err(BenchError::io("connect"))?;
    let dialect = FloorWire::new(&body(SIZE), false);
    let stream = fill(Box::new(dialect), stream, messages)?;
    Ok(Source {
        name: FLOOR,
        stream,
        request: floor::fetch,
        answer: |count| {
            let octets = count * (floor::HEAD_LEN + SIZE) as u64;
            (
                octets + floor::BLOCK_HEAD_LEN as u64,
                count.to_le_bytes().to_vec(),
            )
        },
    })
}

fn fill_vere(node: &Server, messages: u64) -> Result<Source, BenchError> {
    let session = Session::open(node.address, GROUP)?;
    let dialect = session.dialect(&body(SIZE), false);
    fill(Box::new(dialect), session.stream, messages)?;
    // The owner forgot everything and comes back.
    let mut session = Session::open(node.address, GROUP)?;
    session.check(messages, &body(SIZE))?;
    Ok(Source {
        name: VERE,
        stream: session.stream,
        request: |skip, count| fetch(RecordId(skip + 1), count as u32, skip),
        answer: |count| {
            let octets = count * (FRAME_MIN + TARGET_LEN + SIZE) as u64;
            let start = (BLOCK_FRAME_LEN as u32).to_le_bytes();
            (octets + BLOCK_FRAME_LEN as u64, [&start[..], &[5]].concat())
        },
    })
}

/// Stores messages over a connection and returns the connection.
fn fill(
    dialect: Box<dyn super::drive::Dialect>,
    stream: TcpStream,
    messages: u64,
) -> Result<TcpStream, BenchError> {
    let failed = BenchError::io;
    let again = stream.try_clone().map_err(failed("keep a connection"))?;
    let mut lanes = [Lane::new(dialect, vec![stream])?];
    drive(&mut lanes, WINDOW, Until::Units(messages))?;
    again
        .set_nonblocking(false)
        .map_err(failed("keep a connection"))?;
    Ok(again)
}

fn fill_list(redis: &Server, messages: u64) -> Result<Source, BenchError> {
    let body = body(SIZE);
    let stream = fill_redis(redis, messages, |out, _| {
        command(out, &[b"RPUSH", b"recovery", &body]);
    })?;
    Ok(Source {
        name: LRANGE,
        stream,
        request: |skip, count| {
            let (first, last) = (skip.to_string(), (skip + count - 1).to_string());
            let mut out = Vec::new();
            command(
                &mut out,
                &[b"LRANGE", b"recovery", first.as_bytes(), last.as_bytes()],
            );
            out
        },
        answer: |count| {
            let start = format!("*{count}\r\n$1000\r\n");
            let octets = count * (SIZE as u64 + 9) + format!("*{count}\r\n").len() as u64;
            (octets, start.into_bytes())
        },
    })
}

fn fill_stream(redis: &Server, messages: u64) -> Result<Source, BenchError> {
    let body = body(SIZE);
    let stream = fill_redis(redis, messages, |out, number| {
        let id = format!("{}-0", STREAM_FIRST + number);
        command(out, &[b"XADD", b"recovery", id.as_bytes(), b"b", &body]);
    })?;
    Ok(Source {
        name: XRANGE,
        stream,
        request: |skip, count| {
            let (first, count) = (format!("{}-0", STREAM_FIRST + skip), count.to_string());
            let words: [&[u8]; 6] = [
                b"XRANGE",
                b"recovery",
                first.as_bytes(),
                b"+",
                b"COUNT",
                count.as_bytes(),
            ];
            let mut out = Vec::new();
            command(&mut out, &words);
            out
        },
        answer: |count| {
            let entry = b"*2\r\n$9\r\n1000000-0\r\n*2\r\n$1\r\nb\r\n$1000\r\n\r\n".len();
            let start = format!("*{count}\r\n");
            let octets = count * (entry + SIZE) as u64 + start.len() as u64;
            (octets, start.into_bytes())
        },
    })
}

/// Sends commands to Redis, some hundred at once, and waits for an answer to each.
fn fill_redis(
    redis: &Server,
    messages: u64,
    make: impl Fn(&mut Vec<u8>, u64),
) -> Result<TcpStream, BenchError> {
    let failed = BenchError::io;
    let mut stream = TcpStream::connect(redis.address).map_err(failed("connect"))?;
    let (mut out, mut input) = (Vec::new(), vec![0; 64 << 10]);
    let mut sent = 0;
    while sent < messages {
        out.clear();
        let batch = (messages - sent).min(200);
        for number in sent..sent + batch {
            make(&mut out, number);
        }
        stream.write_all(&out).map_err(failed("fill Redis"))?;
        sent += batch;
        // A number takes one line, an id two.
        let mut lines = 0;
        let lines_each = if out.windows(4).take(16).any(|w| w == b"XADD") {
            2
        } else {
            1
        };
        while lines < batch * lines_each {
            let count = stream.read(&mut input).map_err(failed("fill Redis"))?;
            if count == 0 || input.starts_with(b"-") {
                return Err(BenchError::protocol("Redis does not take messages"));
            }
            lines += input[..count]
                .iter()
                .filter(|octet| **octet == b'\n')
                .count() as u64;
        }
    }
    Ok(stream)
}

/// Seconds to read all messages back in blocks. After `most` the time of the rest is extrapolated.
fn read_back(
    source: &mut Source,
    messages: u64,
    block: u64,
    most: Duration,
) -> Result<f64, BenchError> {
    let failed = BenchError::io;
    let (answer_len, start) = (source.answer)(block);
    let blocks = messages / block;
    let (mut asked, mut received) = (0, 0_u64);
    let (mut out, mut input) = (Vec::new(), vec![0; 256 << 10]);
    let begun = Instant::now();
    let mut limit = blocks;
    while received < limit * answer_len {
        out.clear();
        while asked < limit && asked < received / answer_len + DEPTH {
            out.extend((source.request)(asked * block, block));
            asked += 1;
        }
        if !out.is_empty() {
            source
                .stream
                .write_all(&out)
                .map_err(failed("ask for a block"))?;
        }
        let count = source
            .stream
            .read(&mut input)
            .map_err(failed("read a block"))?;
        if count == 0 {
            return Err(BenchError::protocol("the connection was closed"));
        }
        check(&input[..count], received, answer_len, &start)
            .ok_or_else(|| BenchError::protocol(format!("{}: no block", source.name)))?;
        received += count as u64;
        if begun.elapsed() > most {
            limit = asked;
        }
    }
    Ok(begun.elapsed().as_secs_f64() * blocks as f64 / limit as f64)
}

/// Whether the answers that begin in the piece begin correctly.
fn check(piece: &[u8], before: u64, answer_len: u64, start: &[u8]) -> Option<()> {
    let mut at = before.next_multiple_of(answer_len) - before;
    while let Some(rest) = piece.get(usize::try_from(at).ok()?..) {
        let len = start.len().min(rest.len());
        (rest[..len] == start[..len]).then_some(())?;
        at += answer_len;
    }
    Some(())
}

/// Seconds in which the kernel moves the octets of a recovery over the loopback, from cached memory.
fn loopback(messages: u64, placement: Placement) -> Result<f64, BenchError> {
    let failed = BenchError::io;
    let octets = messages * (FRAME_MIN + TARGET_LEN + SIZE) as u64;
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed("listen"))?;
    let address = listener.local_addr().map_err(failed("listen"))?;
    let cores = Cores::enter(placement);
    let sender = std::thread::spawn(move || -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let piece = vec![7; 256 << 10];
        let mut left = octets as usize;
        while left > 0 {
            left -= stream.write(&piece[..left.min(piece.len())])?;
        }
        Ok(())
    });
    cores.be_client();
    let mut stream = TcpStream::connect(address).map_err(failed("connect"))?;
    let mut input = vec![0; 256 << 10];
    let begun = Instant::now();
    let mut left = octets;
    while left > 0 {
        let count = stream.read(&mut input).map_err(failed("read"))?;
        if count == 0 {
            return Err(BenchError::protocol("the loopback ended early"));
        }
        left -= count as u64;
    }
    let seconds = begun.elapsed().as_secs_f64();
    // The sender has written everything.
    let _ = sender.join();
    Ok(seconds)
}
