//! Captures of connections to port 102, and tshark as their judge: a decoder of other people for every layer from TPKT
//! to P22.
//!
//! A [`Capture`] is in memory and goes to tshark through its standard input. [`Capture::complaints`] are the expert
//! items of tshark; both functions that call tshark give `None` where tshark is not installed.

use std::io::Write;
use std::process::{Command, Stdio};

/// A capture in the format of libpcap with raw IPv4 packets.
#[derive(Debug)]
pub struct Capture {
    octets: Vec<u8>,
    connections: u16,
}

/// An expert item of tshark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The number of the connection, as [`Capture::add`] returned.
    pub connection: u16,
    /// The number of the packet.
    pub packet: u32,
    /// The kind.
    pub group: Group,
    /// The text.
    pub message: String,
}

/// Kinds of expert items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// The decoder is incomplete.
    Undecoded,
    /// The octets are no value.
    Malformed,
    /// The value is against the protocol.
    Protocol,
    /// Another kind, by its number.
    Other(u32),
}

impl Group {
    /// Order of packets, which includes the flags of TCP.
    const SEQUENCE: Self = Self::Other(0x0200_0000);

    const fn of(number: u32) -> Self {
        match number {
            0x0500_0000 => Self::Undecoded,
            0x0700_0000 => Self::Malformed,
            0x0900_0000 => Self::Protocol,
            other => Self::Other(other),
        }
    }
}

/// The head of a file: magic number, version 2.4, packets of 64 KiB, raw IPv4.
const HEAD: [u8; 24] = [
    0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0x65, 0, 0, 0,
];
/// The first port of a caller.
const FIRST_PORT: u16 = 30_000;
/// Octets of data in a packet.
const DATA_MAX: usize = 1400;
/// A character that no message has, between the values of a field of [`Capture::fields`].
pub const BETWEEN: char = '\u{1}';

impl Default for Capture {
    fn default() -> Self {
        Self {
            octets: HEAD.to_vec(),
            connections: 0,
        }
    }
}

impl Capture {
    /// An empty capture.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a connection: octets in order, each with whether the caller sent them. Returns the number of the connection.
    ///
    /// # Panics
    ///
    /// For more than 4 GiB in a connection, and for more connections than ports.
    pub fn add<T: AsRef<[u8]>>(&mut self, wire: &[(bool, T)]) -> u16 {
        let mut sequence = [1_u32; 2];
        self.packet(true, [0, 0], 0x02, &[]);
        self.packet(false, [1, 0], 0x12, &[]);
        for (from_caller, octets) in wire {
            for part in octets.as_ref().chunks(DATA_MAX) {
                self.packet(*from_caller, sequence, 0x18, part);
                sequence[usize::from(!from_caller)] += u32::try_from(part.len()).unwrap_or(0);
            }
        }
        self.packet(true, sequence, 0x11, &[]);
        self.connections += 1;
        self.connections - 1
    }

    fn packet(&mut self, from_caller: bool, sequence: [u32; 2], flags: u8, data: &[u8]) {
        let length = u16::try_from(40 + data.len()).unwrap_or(u16::MAX);
        let caller = ([10, 0, 0, 1], FIRST_PORT + self.connections);
        let called = ([10, 0, 0, 2], 102);
        let (from, to) = match from_caller {
            true => (caller, called),
            false => (called, caller),
        };
        let own = usize::from(!from_caller);
        let mut packet = vec![0x45, 0];
        packet.extend_from_slice(&length.to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
        packet.extend_from_slice(&from.0);
        packet.extend_from_slice(&to.0);
        packet.extend_from_slice(&from.1.to_be_bytes());
        packet.extend_from_slice(&to.1.to_be_bytes());
        packet.extend_from_slice(&sequence[own].to_be_bytes());
        packet.extend_from_slice(&sequence[1 - own].to_be_bytes());
        packet.extend_from_slice(&[0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend_from_slice(data);
        let stored = u32::from(length).to_le_bytes();
        self.octets.extend_from_slice(&[0; 8]);
        self.octets.extend_from_slice(&stored);
        self.octets.extend_from_slice(&stored);
        self.octets.extend_from_slice(&packet);
    }

    /// The complaints of tshark, without those about the order of packets. `None` where tshark is not installed.
    ///
    /// # Panics
    ///
    /// If tshark fails, or prints something else.
    #[must_use]
    pub fn complaints(&self) -> Option<Vec<Complaint>> {
        let lines = self.fields(
            &["-Y", "_ws.expert"],
            &[
                "tcp.srcport",
                "tcp.dstport",
                "frame.number",
                "_ws.expert.group",
                "_ws.expert.message",
            ],
        )?;
        let mut complaints: Vec<Complaint> = lines.iter().flat_map(|line| items(line)).collect();
        complaints.retain(|complaint| complaint.group != Group::SEQUENCE);
        Some(complaints)
    }

    /// Fields of each packet, one line for a packet, by the names of tshark, with [`BETWEEN`] between several values. `None` where tshark is not installed.
    ///
    /// # Panics
    ///
    /// If tshark fails.
    #[must_use]
    #[expect(
        clippy::print_stdout,
        reason = "a skipped judgement is told to whoever runs the tests"
    )]
    pub fn fields(&self, arguments: &[&str], names: &[&str]) -> Option<Vec<Vec<String>>> {
        let mut command = Command::new("tshark");
        command.args(["-n", "-r", "-", "-T", "fields"]);
        command.args(["-E", &format!("aggregator={BETWEEN}")]);
        command.args(arguments);
        for name in names {
            command.args(["-e", name]);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let Ok(mut child) = command.spawn() else {
            println!("skipped: tshark is not installed");
            return None;
        };
        let input = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // Both ways at once: each pipe holds less than a long capture.
            scope.spawn(move || input.map(|mut input| input.write_all(&self.octets)));
            child.wait_with_output()
        });
        let output = output.unwrap_or_else(|error| panic!("tshark: {error}"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tshark: {errors}");
        let lines = String::from_utf8_lossy(&output.stdout);
        Some(
            lines
                .lines()
                .map(|line| line.split('\t').map(str::to_owned).collect())
                .collect(),
        )
    }
}

/// The items of a packet.
fn items(line: &[String]) -> Vec<Complaint> {
    let [from, to, packet, groups, messages] = line else {
        panic!("expected five fields; found {line:?}");
    };
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    let port = number(from).max(number(to));
    let connection = u16::try_from(port).unwrap_or(0).saturating_sub(FIRST_PORT);
    let groups: Vec<&str> = groups.split(BETWEEN).collect();
    let messages: Vec<&str> = messages.split(BETWEEN).collect();
    let count = groups.len().max(messages.len());
    let mut items = Vec::new();
    for place in 0..count {
        items.push(Complaint {
            connection,
            packet: number(packet),
            group: Group::of(number(groups.get(place).unwrap_or(&""))),
            message: (*messages.get(place).unwrap_or(&"")).to_owned(),
        });
    }
    items
}
