//! The kinds of trouble: the script of each client before the client holds, and its actions while the client holds.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;

use super::filter::Manner;
use super::judged::{Judged, UNWANTED};
use super::names::SILENT;
use super::system::{System, message, user};
use crate::store::systems::PASSWORD;

/// Interval between two octets of a client that sends a message.
const TRICKLE: Duration = Duration::from_secs(5);

/// Bodies of parked messages: every nth client sends a body of this size. The sum is far above `body_memory_max`.
const BODIES: [(usize, usize); 3] = [(100, 4 << 20), (10, 256 << 10), (1, 16 << 10)];

/// The size announced by the parked APPENDs, and the octets sent by every second parked APPEND.
const ANNOUNCED: usize = 1_500_000;
const SENT: usize = 64 << 10;

/// Commands whose replies are not read; more would end the session.
const UNREAD: usize = 90;

/// Octets of half a command.
const HALF: usize = 4 << 10;

/// Receive buffers of clients that do not read: the system shall hold the answers, not the kernel.
const SMALL_BUFFER: usize = 4 << 10;

/// Interval between two judged messages of a client: longer than the longest judgement.
const EVERY: Duration = Duration::from_secs(25);

/// Octets of the text of a judged message.
const TEXT_OCTETS: usize = 4 << 10;

/// The account of judged mail of the crowd.
pub(super) const RECIPIENT: usize = 1;

/// Stands for the number of a message, of as many digits.
const MARK: &str = "########";

/// A kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Messages begun by SMTP, then an octet now and then.
    Data,
    /// Messages announced by APPEND, then an octet now and then.
    Append,
    /// Large messages asked for and not read.
    Fetch,
    /// Clients in IDLE.
    Idle,
    /// Silent connections to the port of SMTP.
    Silent,
    /// Commands by SMTP whose replies are not read.
    Unread,
    /// Commands without an end, by SMTP and IMAP.
    Half,
    /// TLS handshakes without an end, by SMTP and IMAP.
    Tls,
    /// Silent connections to the server of block lists.
    DnsSilent,
    /// Queries with random names to the server of block lists, by UDP.
    DnsFlood,
    /// Judged messages with names whose name servers are silent.
    NamesSilent,
    /// Judged messages before a content filter that never answers.
    FilterHangs,
    /// Judged messages before a content filter that answers nonsense, or without end.
    FilterRubbish,
    /// Judged messages before a content filter that answers an octet a second.
    FilterDrips,
    /// Messages for the quarantine, more than the queues hold.
    Quarantine,
    /// Connections to the MTA of X.400 without a bind.
    X400Silent,
    /// Units of X.400 begun, and no octet more.
    X400Parked,
}

impl Kind {
    pub(super) const ALL: [Self; 17] = [
        Self::Data,
        Self::Append,
        Self::Fetch,
        Self::Idle,
        Self::Silent,
        Self::Unread,
        Self::Half,
        Self::Tls,
        Self::DnsSilent,
        Self::DnsFlood,
        Self::NamesSilent,
        Self::FilterHangs,
        Self::FilterRubbish,
        Self::FilterDrips,
        Self::Quarantine,
        Self::X400Silent,
        Self::X400Parked,
    ];

    /// The name of the kind in results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Data => "SMTP body parked",
            Self::Append => "APPEND parked",
            Self::Fetch => "FETCH not read",
            Self::Idle => "IDLE",
            Self::Silent => "SMTP without a word",
            Self::Unread => "SMTP replies not read",
            Self::Half => "half a command",
            Self::Tls => "TLS handshake not finished",
            Self::DnsSilent => "DNS over TCP without a query",
            Self::DnsFlood => "DNS queries with random names",
            Self::NamesSilent => "senders with silent name servers",
            Self::FilterHangs => "filter that hangs",
            Self::FilterRubbish => "filter that answers nonsense",
            Self::FilterDrips => "filter that drips",
            Self::Quarantine => "quarantine flooded",
            Self::X400Silent => "X.400 without a bind",
            Self::X400Parked => "X.400 unit parked",
        }
    }

    /// What is judged, for the kinds about judged mail.
    pub(super) const fn judged(self) -> Option<Judged> {
        match self {
            Self::NamesSilent => Some(Judged::SilentNames),
            Self::FilterHangs => Some(Judged::Filter(Manner::Hangs)),
            Self::FilterRubbish => Some(Judged::Filter(Manner::Rubbish)),
            Self::FilterDrips => Some(Judged::Filter(Manner::Drips)),
            Self::Quarantine => Some(Judged::Quarantine),
            _ => None,
        }
    }

    /// Whether the kind is about the server of block lists.
    pub(super) const fn is_of_lists(self) -> bool {
        matches!(self, Self::DnsSilent | Self::DnsFlood)
    }

    /// Whether the kind is about the MTA of X.400.
    pub(super) const fn is_of_x400(self) -> bool {
        matches!(self, Self::X400Silent | Self::X400Parked)
    }

    /// The scripts of the clients, each with a share: client n gets the first script whose period divides n. Floods and associations
    /// have no scripts.
    pub(super) fn scripts(self, system: &System) -> Option<Scripts> {
        if let Some(kind) = self.judged() {
            return Some(Scripts(vec![(1, Arc::new(judged(kind, system.smtp)))]));
        }
        let scripts = match self {
            Self::Data => BODIES
                .map(|(period, octets)| (period, data(system, octets)))
                .into(),
            Self::Append => vec![(2, append(system, SENT)), (1, append(system, 1))],
            Self::Fetch => vec![(1, fetch(system))],
            Self::Idle => vec![(1, idle(system))],
            Self::Silent => return Some(Scripts::silent(system.smtp)),
            Self::Unread => vec![(1, unread(system))],
            Self::Half => vec![(2, half_smtp(system)), (1, half_imap(system))],
            Self::Tls => vec![(2, tls(system.submissions)), (1, tls(system.imaps))],
            Self::DnsSilent => return Some(Scripts::silent(system.lists)),
            Self::X400Silent => vec![(2, half_packet(system.x400)), (1, silent(system.x400))],
            _ => return None,
        };
        Some(Scripts(scripts))
    }
}

/// The scripts of a crowd, each with a period.
#[derive(Debug)]
pub(crate) struct Scripts(Vec<(usize, Arc<Script>)>);

impl Scripts {
    /// Clients that connect and say nothing.
    pub(crate) fn silent(address: SocketAddr) -> Self {
        Self(vec![(1, silent(address))])
    }

    /// The script of client `number`.
    pub(super) fn of(&self, number: usize) -> Option<Arc<Script>> {
        let found = self
            .0
            .iter()
            .find(|(period, _)| number.is_multiple_of(*period));
        found.map(|(_, script)| Arc::clone(script))
    }
}

fn silent(address: SocketAddr) -> Arc<Script> {
    Arc::new(Script::of(address, Vec::new()))
}

/// The head of the longest packet of RFC 1006, then an octet now and then.
fn half_packet(address: SocketAddr) -> Arc<Script> {
    Script::of(address, vec![("", vec![3, 0, 0xFF, 0xFB])]).trickling()
}

/// The behaviour of a client.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) address: SocketAddr,
    /// The expected beginning of a line, and the text to send then. An empty beginning waits for nothing.
    pub(super) talk: Vec<(&'static str, Vec<u8>)>,
    /// Text to send while the client holds, and how often.
    pub(super) trickle: Option<(Vec<u8>, Duration)>,
    /// Whether the last text of the talk and each later text is a message whose reply counts, with a number of its own in
    /// place of [`MARK`].
    pub(super) counted: bool,
    /// Whether the client reads while holding; a client that does not read has a small receive buffer.
    pub(super) reads: bool,
}

impl Script {
    /// Octets of the receive buffer, if other than the usual size.
    pub(super) const fn receive_buffer(&self) -> Option<usize> {
        if self.reads { None } else { Some(SMALL_BUFFER) }
    }

    pub(super) fn of(address: SocketAddr, talk: Vec<(&'static str, Vec<u8>)>) -> Self {
        Self {
            address,
            talk,
            trickle: None,
            counted: false,
            reads: true,
        }
    }

    /// The text of client `number` in its turn, with a number in place of each mark.
    pub(super) fn filled<'a>(&self, text: &'a [u8], number: usize, turn: usize) -> Cow<'a, [u8]> {
        if !self.counted {
            return Cow::Borrowed(text);
        }
        let own = format!("{:02}{:06}", turn % 100, number % 1_000_000);
        let mut text = text.to_vec();
        let mut at = 0;
        while let Some(place) = text.get(at..).and_then(|rest| {
            rest.windows(MARK.len())
                .position(|octets| octets == MARK.as_bytes())
        }) {
            let begin = at + place;
            at = begin + MARK.len();
            text.splice(begin..at, own.bytes());
        }
        Cow::Owned(text)
    }

    fn trickling(mut self) -> Arc<Self> {
        self.trickle = Some((b"x".to_vec(), TRICKLE));
        Arc::new(self)
    }
}

/// Each client sends a judged message, and another one after a while.
fn judged(judged: Judged, address: SocketAddr) -> Script {
    let domain = match judged {
        Judged::Quarantine => UNWANTED.to_owned(),
        _ => format!("d{MARK}.{SILENT}"),
    };
    let signature = format!(
        "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d={domain}; s=s;\r\n h=from:subject; \
         bh=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=; b=AAAA\r\n"
    );
    let line = [&b"x".repeat(76)[..], b"\r\n"].concat();
    let mut message = format!(
        "{signature}From: crowd@{domain}\r\nSubject: number {MARK}\r\n\
         Message-ID: <{MARK}@{domain}>\r\n\r\n"
    )
    .into_bytes();
    message.extend(
        line.iter()
            .cycle()
            .take(TEXT_OCTETS / line.len() * line.len()),
    );
    let mut text = format!(
        "MAIL FROM:<crowd@{domain}>\r\nRCPT TO:<{}>\r\nBDAT {} LAST\r\n",
        user(RECIPIENT),
        message.len()
    )
    .into_bytes();
    text.extend(message);
    let hello = format!("EHLO crowd.{SILENT}\r\n");
    let talk = vec![("220 ", hello.into_bytes()), ("250 ", text.clone())];
    Script {
        trickle: Some((text, EVERY)),
        counted: true,
        ..Script::of(address, talk)
    }
}

fn data(system: &System, octets: usize) -> Arc<Script> {
    let recipient = format!("RCPT TO:<{}>\r\n", user(1));
    let talk = vec![
        ("220 ", b"EHLO crowd.test\r\n".to_vec()),
        ("250 ", b"MAIL FROM:<crowd@elsewhere.test>\r\n".to_vec()),
        ("250 ", recipient.into_bytes()),
        ("250 ", b"DATA\r\n".to_vec()),
        ("354 ", message("parked", octets)),
    ];
    Script::of(system.smtp, talk).trickling()
}

/// The beginning of a talk with the login of user `number`.
fn login(number: usize) -> Vec<(&'static str, Vec<u8>)> {
    let login = format!("a LOGIN {} {PASSWORD}\r\n", user(number));
    vec![("* OK", login.into_bytes())]
}

fn append(system: &System, octets: usize) -> Arc<Script> {
    let mut talk = login(2);
    let command = format!("b APPEND INBOX {{{ANNOUNCED}}}\r\n");
    talk.push(("a OK", command.into_bytes()));
    talk.push(("+ ", b"z".repeat(octets)));
    Script::of(system.imap, talk).trickling()
}

fn fetch(system: &System) -> Arc<Script> {
    let mut talk = login(0);
    talk.push(("a OK", b"b SELECT INBOX\r\n".to_vec()));
    talk.push(("b OK", b"c FETCH 1:* BODY.PEEK[]\r\n".to_vec()));
    let mut script = Script::of(system.imap, talk);
    script.reads = false;
    Arc::new(script)
}

fn idle(system: &System) -> Arc<Script> {
    let mut talk = login(3);
    talk.push(("a OK", b"b SELECT INBOX\r\n".to_vec()));
    talk.push(("b OK", b"c IDLE\r\n".to_vec()));
    talk.push(("+ ", Vec::new()));
    Arc::new(Script::of(system.imap, talk))
}

fn unread(system: &System) -> Arc<Script> {
    let talk = vec![("220 ", b"EHLO crowd.test\r\n".repeat(UNREAD))];
    let mut script = Script::of(system.smtp, talk);
    script.reads = false;
    Arc::new(script)
}

fn half_smtp(system: &System) -> Arc<Script> {
    let half = [&b"MAIL FROM:<"[..], &b"h".repeat(HALF)].concat();
    let talk = vec![("220 ", b"EHLO crowd.test\r\n".to_vec()), ("250 ", half)];
    Script::of(system.smtp, talk).trickling()
}

fn half_imap(system: &System) -> Arc<Script> {
    let half = [&b"a LOGIN \""[..], &b"h".repeat(HALF)].concat();
    Script::of(system.imap, vec![("* OK", half)]).trickling()
}

fn tls(address: SocketAddr) -> Arc<Script> {
    Arc::new(Script::of(address, vec![("", client_hello())]))
}

/// The first flight of a TLS 1.3 handshake (RFC 8446 section 4.1.2), answered by the server's whole flight.
fn client_hello() -> Vec<u8> {
    // supported_groups: x25519; signature_algorithms: Ed25519, ECDSA with P-256, RSA-PSS; supported_versions: 1.3.
    let mut extensions = vec![
        0x00, 0x0a, 0x00, 0x04, 0x00, 0x02, 0x00, 0x1d, 0x00, 0x0d, 0x00, 0x0a, 0x00, 0x08, 0x08,
        0x07, 0x04, 0x03, 0x08, 0x04, 0x05, 0x03, 0x00, 0x2b, 0x00, 0x03, 0x02, 0x03, 0x04,
    ];
    // key_share: any octets are a point of x25519.
    extensions.extend([0x00, 0x33, 0x00, 0x26, 0x00, 0x24, 0x00, 0x1d, 0x00, 0x20]);
    extensions.extend([0x09; 32]);
    let mut hello = vec![0x03, 0x03];
    hello.extend([0x5a; 32]);
    // No session; TLS_AES_128_GCM_SHA256; no compression.
    hello.extend([0x00, 0x00, 0x02, 0x13, 0x01, 0x01, 0x00]);
    hello.extend(length(extensions.len()));
    hello.extend(extensions);
    let mut record = vec![0x16, 0x03, 0x01];
    record.extend(length(hello.len() + 4));
    record.extend([0x01, 0x00]);
    record.extend(length(hello.len()));
    record.extend(hello);
    record
}

fn length(octets: usize) -> [u8; 2] {
    u16::try_from(octets).unwrap_or(u16::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_has_a_number_of_its_own() {
        let mut script = Script::of(([127, 0, 0, 1], 25).into(), Vec::new());
        let text = format!("a{MARK}.b{MARK}");
        assert_eq!(script.filled(text.as_bytes(), 7, 1), text.as_bytes());
        script.counted = true;
        let filled = script.filled(text.as_bytes(), 7, 101);
        assert_eq!(&*filled, b"a01000007.b01000007");
    }

    #[test]
    fn messages_of_a_crowd_are_as_long_as_announced() {
        let script = judged(Judged::SilentNames, ([127, 0, 0, 1], 25).into());
        let (text, _) = script.trickle.as_ref().unwrap();
        let text = String::from_utf8(script.filled(text, 3, 2).into_owned()).unwrap();
        let (commands, message) = text.split_once(" LAST\r\n").unwrap();
        let announced = commands.rsplit(' ').next().unwrap();
        assert_eq!(announced, message.len().to_string());
        assert!(commands.starts_with("MAIL FROM:<crowd@d02000003.silent.test>\r\n"));
        assert!(message.contains("Message-ID: <02000003@d02000003.silent.test>\r\n"));
        assert!(message.ends_with("x\r\n"));
    }
}
