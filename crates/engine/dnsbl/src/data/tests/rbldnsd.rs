//! The same files and questions for rbldnsd and for the sets.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the other server reads files and answers on a socket"
)]

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{name_answer, zone};
use crate::data::{Kind, ZoneData};

const PROGRAM: &str = "/usr/sbin/rbldnsd";
const TYPE_A: u16 = 1;
const TYPE_TXT: u16 = 16;

/// rbldnsd with one zone, `z`, on a port of loopback.
struct Server {
    process: Child,
    socket: UdpSocket,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// Starts the server; `None`, with a note, where the program is missing.
    fn start(directory: &Path, kind: Kind, text: &str) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            let note = "skipped: answers of rbldnsd: rbldnsd is not installed\n";
            // The standard output of a passing test is not shown.
            let _ = std::io::stderr().write_all(note.as_bytes());
            return None;
        }
        let file = directory.join("list");
        std::fs::write(&file, text).expect("a file in a temporary directory");
        // The port of a closed socket; another process could take the port, so that rbldnsd is tried repeatedly.
        for _ in 0..20 {
            let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
            let port = free.local_addr().expect("an address").port();
            drop(free);
            let mut process = Command::new(PROGRAM)
                .args(["-n", "-u", "nobody", "-c", "0", "-b"])
                .arg(format!("127.0.0.1/{port}"))
                .arg(format!("z:{kind}:{}", file.display()))
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("rbldnsd starts");
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
            socket
                .connect((Ipv4Addr::LOCALHOST, port))
                .expect("an address");
            socket
                .set_read_timeout(Some(Duration::from_secs(5)))
                .expect("a timeout");
            if started(&mut process) {
                return Some(Self { process, socket });
            }
            let _ = process.kill();
            let _ = process.wait();
        }
        panic!("rbldnsd does not start");
    }

    /// The records of a name below `z`: addresses for A, texts for TXT; sorted.
    fn ask(&self, name: &[u8], kind: u16) -> Vec<String> {
        let mut query = vec![0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        query.extend_from_slice(name);
        query.extend_from_slice(b"\x01z\0");
        query.extend_from_slice(&kind.to_be_bytes());
        query.extend_from_slice(&1_u16.to_be_bytes());
        self.socket.send(&query).expect("a query is sent");
        let mut answer = [0; 4096];
        let length = self.socket.recv(&mut answer).expect("an answer");
        let answer = &answer[..length];
        let count = u16::from_be_bytes([answer[6], answer[7]]);
        let mut rest = &answer[query.len()..];
        let mut records = Vec::new();
        for _ in 0..count {
            // A pointer to the name of the question, type, class and TTL.
            let length = usize::from(u16::from_be_bytes([rest[10], rest[11]]));
            let data = &rest[12..12 + length];
            records.push(match kind {
                TYPE_A => Ipv4Addr::from([data[0], data[1], data[2], data[3]]).to_string(),
                _ => String::from_utf8_lossy(&data[1..]).into_owned(),
            });
            rest = &rest[12 + length..];
        }
        records.sort();
        records
    }
}

/// Whether the server says that it has started.
fn started(process: &mut Child) -> bool {
    let mut output = process.stdout.take().expect("an output");
    let (mut text, mut piece) = (Vec::new(), [0; 512]);
    loop {
        match output.read(&mut piece) {
            Ok(0) | Err(_) => return false,
            Ok(length) => text.extend_from_slice(&piece[..length]),
        }
        if String::from_utf8_lossy(&text).contains(" started (") {
            return true;
        }
    }
}

/// The name that asks for an address, in wire form without the zone.
fn reversed(address: IpAddr) -> Vec<u8> {
    let name = match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}")
        }
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            (0..32).fold(String::new(), |mut name, nibble| {
                let dot = if nibble == 0 { "" } else { "." };
                let _ = write!(name, "{dot}{:x}", bits >> (4 * nibble) & 0xf);
                name
            })
        }
    };
    super::wire(&name)
}

/// Addresses and texts that the data have for an address, sorted, each once.
fn expected(zone: &ZoneData, address: IpAddr) -> (Vec<String>, Vec<String>) {
    let subject = address.to_string();
    let values = || zone.values(address);
    let addresses = values().map(|value| value.address.to_string()).collect();
    let texts = values().filter_map(|value| value.text_for(&subject));
    (
        sorted(addresses),
        sorted(texts.map(|text| text.into_owned()).collect()),
    )
}

fn sorted(mut records: Vec<String>) -> Vec<String> {
    records.sort();
    records.dedup();
    records
}

/// Asks both about addresses.
fn compare(kind: Kind, text: &str, addresses: impl IntoIterator<Item = IpAddr>) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(server) = Server::start(directory.path(), kind, text) else {
        return;
    };
    let zone = zone(kind, text);
    let mut listed = 0;
    for address in addresses {
        let name = reversed(address);
        let answers = (server.ask(&name, TYPE_A), server.ask(&name, TYPE_TXT));
        listed += answers.0.len();
        assert_eq!(expected(&zone, address), answers, "{address} of {text}");
    }
    assert!(listed > 0, "no address is listed");
}

/// Numbers that differ from run to run of no test: a linear congruential generator.
fn numbers(mut seed: u64) -> impl Iterator<Item = u64> {
    std::iter::repeat_with(move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        seed >> 33
    })
}

/// Entries of all forms in a few networks, many of them over each other.
fn list4(seed: u64, ranges: bool) -> String {
    let mut numbers = numbers(seed);
    let mut number = |below: u64| numbers.next().unwrap_or_default() % below;
    let mut text = "$1 see $\n:3:default $ $1\n".to_owned();
    for _ in 0..60 {
        let (b, c, d) = (number(2), number(3), number(256));
        let mark = if number(5) == 0 { "!" } else { "" };
        let value = match number(5) {
            0 => format!(" :{}", 2 + number(4)),
            1 => format!(" :{}:text {}", 2 + number(4), number(4)),
            2 => " own $".to_owned(),
            3 => " # note".to_owned(),
            _ => String::new(),
        };
        let entry = match number(if ranges { 7 } else { 4 }) {
            0 => format!("10.{b}.{c}.{d}"),
            1 => format!("10.{b}.{c}.{}/28", d & 0xf0),
            2 => format!("10.{b}.{c}"),
            3 => format!("10.{b}.0.0/22"),
            4 => format!("10.{b}.{c}.{}-{}", d / 2, d / 2 + number(100)),
            5 => format!("10.0.{c}.{d}-10.1.{}.{}", number(3), number(256)),
            _ => format!("10.{b}.{c}-{}", c + number(3)),
        };
        text += &format!("{mark}{entry}{value}\n");
    }
    text
}

fn addresses4() -> impl Iterator<Item = IpAddr> {
    let networks = (0..2_u8).flat_map(|b| (0..5_u8).map(move |c| (b, c)));
    networks.flat_map(|(b, c)| {
        (0..=255_u8)
            .step_by(3)
            .map(move |d| IpAddr::from([10, b, c, d]))
    })
}

#[test]
fn rbldnsd_has_the_same_answers_from_an_ip4set() {
    for seed in 1..4 {
        compare(Kind::Ip4Set, &list4(seed, true), addresses4());
    }
}

#[test]
fn rbldnsd_has_the_same_answers_from_an_ip4trie() {
    for seed in 4..7 {
        compare(Kind::Ip4Trie, &list4(seed, false), addresses4());
    }
}

#[test]
fn rbldnsd_has_the_same_answers_from_an_ip4tset() {
    let entries = numbers(7)
        .take(400)
        .map(|n| format!("10.{}.{}.{}\n", n & 1, n >> 1 & 3, n >> 3 & 255));
    let text = format!(
        "10.0.0.0\n:5:first $\n:6:second\n{}",
        entries.collect::<String>()
    );
    compare(Kind::Ip4TSet, &text, addresses4());
}

#[test]
fn rbldnsd_has_the_same_answers_from_ip6_sets() {
    let mut numbers = numbers(8);
    let mut number = |below: u64| numbers.next().unwrap_or_default() % below;
    let mut trie = ":127.0.1.2:six $\n::1 #local\n".to_owned();
    let mut trivial = ":3:def $\n".to_owned();
    for _ in 0..50 {
        let (network, host) = (number(16), number(4));
        let mark = if number(4) == 0 { "!" } else { "" };
        let value = number(3) + 2;
        trie += &match number(5) {
            0 => format!("{mark}2001:db8:0:{network:x}::{host:x} :{value}:\n"),
            1 => format!("{mark}2001:db8:0:{network:x} :{value}\n"),
            2 => format!("{mark}2001:db8:0:{network:x}::/64 own\n"),
            3 => format!("{mark}2001:db8:0:{:x}::/62\n", network & 0xc),
            _ => format!("{mark}2001:db8:0:{network:x}::/126 :{value}:$ x\n"),
        };
        trivial += &match number(2) {
            0 => format!("2001:db8:0:{network:x}\n"),
            _ => format!("!2001:db8:0:{network:x}::{host:x}\n"),
        };
    }
    let addresses = || {
        let networks =
            (0..16_u128).flat_map(|network| (0..6_u128).map(move |host| (network, host)));
        networks.map(|(network, host)| {
            IpAddr::V6(Ipv6Addr::from_bits(
                0x2001_0db8 << 96 | network << 64 | host,
            ))
        })
    };
    compare(Kind::Ip6Trie, &trie, addresses());
    compare(Kind::Ip6TSet, &trivial, addresses());
}

#[test]
fn rbldnsd_has_the_same_texts() {
    let base = "$= See bl?$= ($) $1 $3\n$1 one$$ $2\n$1 again\n#$2 two\n127.0.0.2 r123\n127.0.0.3\n\
                127.0.0.4 =Other $ $7 $1 $$\n127.0.0.5 :6\n127.0.0.6 :6:\n127.0.0.7 =\n127.0.0.8 a$=b\n\
                :7:deftext\n127.0.0.9\n127.0.0.10 :8\n127.0.0.11 :8:\n127.0.0.12:9\n127.0.0.13#c\n";
    let plain = base.replace("$= See", "$4 See");
    for text in [base, plain.as_str()] {
        let addresses = (1..16).map(|last| IpAddr::from([127, 0, 0, last]));
        compare(Kind::Ip4Set, text, addresses);
    }
}

#[test]
fn rbldnsd_has_the_same_answers_from_a_dnset() {
    let text = ":3:def $\nexample.com\n*.wild.com\n.both.com own $\n!no.both.com\n*.x.no.both.com :9:nine\n\
                !*.y.both.com\nUPPER.Com up\na.b.wild.com :5:five\n!c.wild.com\nc.wild.com :6:\ndup.com one\n\
                dup.com :7:two\n*.multi.com m\nsub.multi.com :4:s\nunder_score.com\ntrail.com.\na*b.com\n";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(server) = Server::start(directory.path(), Kind::DnSet, text) else {
        return;
    };
    let zone = zone(Kind::DnSet, text);
    let mut names: Vec<String> = Vec::new();
    for base in [
        "example",
        "wild",
        "both",
        "no.both",
        "x.no.both",
        "upper",
        "dup",
        "multi",
    ] {
        for prefix in [
            "", "a.", "no.", "y.", "q.y.", "a.b.", "c.", "d.c.", "sub.", "t.sub.",
        ] {
            names.push(format!("{prefix}{base}.com"));
        }
    }
    names.extend(["under_score.com", "trail.com", "a*b.com", "com", "q.com"].map(str::to_owned));
    for name in names {
        let wire = super::wire(&name);
        let addresses = server.ask(&wire, TYPE_A);
        let texts = server.ask(&wire, TYPE_TXT);
        let answers = name_answer(&zone, &name);
        let parts = answers
            .iter()
            .map(|answer| answer.split_once(' ').unwrap_or((answer, "")));
        let (found, said): (Vec<&str>, Vec<&str>) = parts.unzip();
        let found = sorted(found.into_iter().map(str::to_owned).collect());
        let said = said
            .into_iter()
            .filter(|text| !text.is_empty())
            .map(str::to_owned);
        assert_eq!(
            (found, sorted(said.collect())),
            (addresses, texts),
            "{name}"
        );
    }
}
