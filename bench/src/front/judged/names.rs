//! A name server for all systems: records of senders, names of clients, and two lists of clients. Answers come at once, as from a
//! resolver on the same machine with the answers in its cache.

use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::mail::SELECTOR;
use crate::datagram::received;
use crate::dns_wire;

/// The life of every answer: longer than any measurement.
const LIFE_SECONDS: u32 = 86_400;

/// Longest sleep: the thread looks for its end.
const TICK: Duration = Duration::from_millis(50);

/// The lists of clients.
pub(super) const LISTS: [&str; 2] = ["one.lists.test", "two.lists.test"];

/// Number of clients.
const CLIENTS: u8 = 50;

/// One in so many clients is on the first list.
const LISTED: u8 = 10;

/// Octets of a string of a TXT record (RFC 1035 section 3.3.14).
const STRING_MAX: usize = 255;

const A: u16 = 1;
const PTR: u16 = 12;
const TXT: u16 = 16;

/// The addresses of the clients. The addresses occur in PROXY headers alone, and no system takes one for a private address.
pub(super) fn clients() -> Vec<Ipv4Addr> {
    (1..=CLIENTS).map(client).collect()
}

const fn client(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(20, 77, 0, number)
}

/// The records of senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Senders {
    /// All clients may send for every domain, and DMARC passes.
    Honest,
    /// By the domain: results of SPF are pass, softfail, fail and none; policies of DMARC are none, quarantine, reject and no policy.
    Mixed,
}

/// The records.
#[derive(Debug)]
pub(super) struct Zone {
    /// The record of every key.
    pub(super) key: String,
    pub(super) domains: HashSet<String>,
    pub(super) senders: Senders,
}

impl Zone {
    /// The data of the record with a name and a type.
    fn data(&self, name: &str, kind: u16) -> Option<Vec<u8>> {
        match kind {
            TXT => strings(&self.text(name)?),
            A => Some(address(name)?.octets().into()),
            PTR => {
                let number = number(name.strip_suffix(".0.77.20.in-addr.arpa")?)?;
                domain(&host(number))
            }
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        if let Some(of) = name
            .strip_prefix(SELECTOR)
            .and_then(|rest| rest.strip_prefix("._domainkey."))
        {
            return self.domains.contains(of).then(|| self.key.clone());
        }
        let (of, is_policy) = match name.strip_prefix("_dmarc.") {
            Some(of) => (of, true),
            None => (name, false),
        };
        if !self.domains.contains(of) {
            return None;
        }
        let kind = match self.senders {
            Senders::Honest => 0,
            Senders::Mixed => scatter(of),
        };
        let text = match (is_policy, kind % 4, kind / 4 % 4) {
            (true, _, 0) => "v=DMARC1; p=none",
            (true, _, 1) => "v=DMARC1; p=quarantine",
            (true, _, 2) => "v=DMARC1; p=reject",
            (false, 0, _) => "v=spf1 ip4:20.77.0.0/24 -all",
            (false, 1, _) => "v=spf1 ~all",
            (false, 2, _) => "v=spf1 -all",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

/// A number of a domain, the same in every run (FNV-1a).
fn scatter(domain: &str) -> u32 {
    let step = |hash: u32, octet: u8| (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193);
    domain.bytes().fold(0x811c_9dc5, step) >> 8
}

/// The address of a client by name, or the entry of a listed client.
fn address(name: &str) -> Option<Ipv4Addr> {
    if let Some(labels) = name.strip_suffix(".clients.test") {
        return number(labels.strip_prefix('c')?).map(client);
    }
    let labels = name.strip_suffix(LISTS[0])?.strip_suffix(".0.77.20.")?;
    let number = number(labels)?;
    (number % LISTED == 0).then_some(Ipv4Addr::new(127, 0, 0, 2))
}

fn number(label: &str) -> Option<u8> {
    label
        .parse()
        .ok()
        .filter(|number| (1..=CLIENTS).contains(number))
}

fn host(number: u8) -> String {
    format!("c{number}.clients.test")
}

fn strings(text: &str) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    for part in text.as_bytes().chunks(STRING_MAX) {
        data.push(u8::try_from(part.len()).ok()?);
        data.extend_from_slice(part);
    }
    Some(data)
}

fn domain(name: &str) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    for label in name.split('.') {
        data.push(u8::try_from(label.len()).ok()?);
        data.extend_from_slice(label.as_bytes());
    }
    data.push(0);
    Some(data)
}

/// A running name server, which ends when dropped.
#[derive(Debug)]
pub(super) struct Names {
    queries: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Names {
    pub(super) fn start(at: SocketAddr, zone: Zone) -> io::Result<Self> {
        let socket = UdpSocket::bind(at)?;
        socket.set_read_timeout(Some(TICK))?;
        let queries = Arc::new(AtomicU64::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let (count, until) = (Arc::clone(&queries), Arc::clone(&is_over));
        let thread = std::thread::Builder::new().name("names".to_owned());
        let thread = thread.spawn(move || serve(&socket, &zone, &count, &until))?;
        Ok(Self {
            queries,
            is_over,
            thread: Some(thread),
        })
    }

    /// Queries so far.
    pub(super) fn queries(&self) -> u64 {
        self.queries.load(Ordering::Relaxed)
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A failed socket has shown in the figures.
            let _ = thread.join();
        }
    }
}

fn serve(
    socket: &UdpSocket,
    zone: &Zone,
    queries: &AtomicU64,
    is_over: &AtomicBool,
) -> io::Result<()> {
    let mut query = [0; 1_500];
    while !is_over.load(Ordering::Relaxed) {
        let Some((length, client)) = received(socket, &mut query)? else {
            continue;
        };
        queries.fetch_add(1, Ordering::Relaxed);
        let query = query.get(..length).unwrap_or_default();
        let data = dns_wire::question(query).map(|(name, kind)| zone.data(&name, kind));
        let answer = data.and_then(|data| dns_wire::answer(query, data.as_deref(), LIFE_SECONDS));
        if let Some(answer) = answer {
            // A client without a socket needs no answer.
            let _ = socket.send_to(&answer, client);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(senders: Senders) -> Zone {
        Zone {
            key: "k".repeat(400),
            domains: ["a.test", "b.test"].map(str::to_owned).into(),
            senders,
        }
    }

    #[test]
    fn senders_keys_clients_and_lists_have_records() {
        let zone = zone(Senders::Honest);
        let text = |name: &str| zone.data(name, TXT);
        let key = text("bench._domainkey.a.test").unwrap();
        assert_eq!((key.len(), key[0], key[256]), (402, 255, 145));
        assert!(text("a.test").unwrap().ends_with(b"-all"));
        assert!(text("_dmarc.b.test").unwrap().ends_with(b"p=none"));
        assert_eq!(text("_dmarc.test"), None);
        assert_eq!(text("other._domainkey.a.test"), None);
        let name = b"\x02c7\x07clients\x04test\0";
        assert_eq!(zone.data("7.0.77.20.in-addr.arpa", PTR).unwrap(), name);
        assert_eq!(zone.data("c7.clients.test", A).unwrap(), [20, 77, 0, 7]);
        assert!(zone.data("10.0.77.20.one.lists.test", A).is_some());
        for name in [
            "7.0.77.20.one.lists.test",
            "10.0.77.20.two.lists.test",
            "51.0.77.20.one.lists.test",
            "a.test",
        ] {
            assert_eq!(zone.data(name, A), None, "{name}");
        }
    }

    #[test]
    fn mixed_senders_have_every_kind_of_record() {
        let domains: Vec<String> = (0..200).map(|number| format!("d{number}.test")).collect();
        let mut zone = zone(Senders::Mixed);
        zone.domains = domains.iter().cloned().collect();
        for prefix in ["", "_dmarc."] {
            let texts = domains.iter().map(|of| zone.text(&format!("{prefix}{of}")));
            assert_eq!(texts.collect::<HashSet<_>>().len(), 4);
        }
    }
}
