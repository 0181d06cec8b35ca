//! Deliveries of one message to many mailboxes.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::imap::ImapError;
use super::report::Figure;
use super::systems::{RECIPIENTS, System, recipients};
use super::tasks::{figure, side_by_side};
use super::usage;
use crate::peer::OURS;
use crate::wire::Dialogue;

/// Longest silence of a server.
const PATIENCE: Duration = Duration::from_secs(120);

/// A thread without work for this long is at rest.
const REST: Duration = Duration::from_millis(300);

/// Connections for messages, where a task uses several.
pub(crate) const LANES: usize = 10;

/// Delivers messages to fifteen mailboxes each over one LMTP connection.
pub(crate) fn deliver(
    system: &System,
    mail: &[Vec<u8>],
    count: usize,
) -> Result<Vec<Figure>, ImapError> {
    let written = || usage::written(&system.processes());
    let messages = &mail[..count.min(mail.len())];
    let to: Vec<String> = recipients().collect();
    let mut lane = Lane::connect(system.lmtp, Protocol::Lmtp)?;
    lane.deliver(&to, &messages[0])?;
    let before = written();
    let work = Work::of(system);
    let started = Instant::now();
    for message in messages {
        lane.deliver(&to, message)?;
    }
    let writes = messages.len() * RECIPIENTS;
    let rate = writes as f64 / started.elapsed().as_secs_f64();
    let kib = written().saturating_sub(before) as f64 / messages.len() as f64 / 1024.0;
    let mut figures = vec![
        figure(system, "delivered to 15", rate),
        figure(system, "written by delivery to 15", kib),
    ];
    if system.name == OURS {
        let work = Work::at_rest(system).since(work);
        let each = |work: Duration| work.as_secs_f64() * 1e6 / messages.len() as f64;
        figures.push(figure(
            system,
            "parsing by delivery to 15",
            each(work.parsing),
        ));
        figures.push(figure(
            system,
            "indexing by delivery to 15",
            each(work.indexing),
        ));
        figures.push(figure(system, "work of delivery to 15", each(work.all)));
    }
    Ok(figures)
}

/// Processor time of our system until now.
#[derive(Debug, Clone, Copy)]
struct Work {
    /// Time of the parsing processes.
    parsing: Duration,
    /// Time of the index thread, which may be behind.
    indexing: Duration,
    /// Time of all processes, parsing and indexing included.
    all: Duration,
}

impl Work {
    fn of(system: &System) -> Self {
        let processes = system.processes();
        Self {
            parsing: usage::cpu_of_processes(&processes, "role parser"),
            indexing: usage::cpu_of_threads(&processes, "store-index"),
            all: system.cpu(),
        }
    }

    /// Once the index is not behind any more.
    fn at_rest(system: &System) -> Self {
        let alike = |before: Self, now: Self| now.indexing == before.indexing;
        usage::at_rest(REST, PATIENCE, || Self::of(system), alike)
    }

    fn since(self, before: Self) -> Self {
        Self {
            parsing: self.parsing.saturating_sub(before.parsing),
            indexing: self.indexing.saturating_sub(before.indexing),
            all: self.all.saturating_sub(before.all),
        }
    }
}

/// Sends each message to all recipients, a number of recipients at once, over several connections.
pub(crate) fn spread(
    address: SocketAddr,
    protocol: Protocol,
    messages: &[Vec<u8>],
    at_once: usize,
) -> Result<(), ImapError> {
    let to: Vec<String> = recipients().collect();
    side_by_side(LANES, |place| {
        let mut lane = Lane::connect(address, protocol)?;
        for message in messages.iter().skip(place).step_by(LANES) {
            for to in to.chunks(at_once) {
                lane.deliver(to, message)?;
            }
        }
        Ok(())
    })
}

/// The protocol of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// SMTP: one answer for a message.
    Smtp,
    /// LMTP: one answer for each recipient (RFC 2033).
    Lmtp,
}

/// A connection that sends the envelope of each transaction in one piece.
pub(crate) struct Lane {
    dialogue: Dialogue,
    protocol: Protocol,
}

impl Lane {
    pub(crate) fn connect(address: SocketAddr, protocol: Protocol) -> io::Result<Self> {
        let mut dialogue = Dialogue::connect(address, PATIENCE)?;
        let hello = match protocol {
            Protocol::Smtp => "EHLO bench.test\r\n",
            Protocol::Lmtp => "LHLO bench.test\r\n",
        };
        dialogue.ask(hello, "2")?;
        Ok(Self { dialogue, protocol })
    }

    /// Delivers a message to some recipients.
    pub(crate) fn deliver(&mut self, to: &[String], message: &[u8]) -> io::Result<()> {
        let mut envelope = "MAIL FROM:<sender@bench.test>\r\n".to_owned();
        for address in to {
            envelope.push_str(&format!("RCPT TO:<{address}>\r\n"));
        }
        envelope.push_str("DATA\r\n");
        self.dialogue.send(envelope.as_bytes())?;
        for _ in 0..=to.len() {
            self.dialogue.reply("2")?;
        }
        self.dialogue.reply("3")?;
        let mut text = Vec::with_capacity(message.len() + 64);
        for line in message.split_inclusive(|octet| *octet == b'\n') {
            if line.starts_with(b".") {
                text.push(b'.');
            }
            text.extend_from_slice(line);
        }
        if !text.ends_with(b"\r\n") {
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b".\r\n");
        self.dialogue.send(&text)?;
        let answers = match self.protocol {
            Protocol::Smtp => 1,
            Protocol::Lmtp => to.len(),
        };
        (0..answers).try_for_each(|_| self.dialogue.reply("2"))
    }
}
