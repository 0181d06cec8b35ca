//! A name server for judged mail: records of the honest sender, and about names of the crowd no word, or that there are none.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};

use crate::datagram::received;
use crate::dns_wire;

/// The domain of the honest sender, and the domain above all silent domains.
pub(super) const HONEST_DOMAIN: &str = "elsewhere.test";
pub(super) const SILENT: &str = "silent.test";

/// The name of the honest client's address.
const HONEST_HOST: &str = "mx.elsewhere.test";
const HONEST_REVERSE: &str = "1.0.0.127.in-addr.arpa";
const REVERSE: &str = ".in-addr.arpa";

/// The life of every answer: longer than any measurement.
const LIFE_SECONDS: u32 = 86_400;

/// Longest sleep: the thread looks for its end.
const TICK: Duration = Duration::from_millis(50);

/// Octets of waiting queries: the queries of a crowd must not push the queries of honest mail out.
const WAITING: usize = 16 << 20;

const A: u16 = 1;
const PTR: u16 = 12;
const TXT: u16 = 16;

/// The answer to a question.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Nothing,
    NoName,
    Data(Vec<u8>),
}

fn said(name: &str, kind: u16, is_silent: bool) -> Said {
    let is_of_crowd = name.ends_with(REVERSE) && name != HONEST_REVERSE;
    if is_silent && (is_of_crowd || name.ends_with(SILENT)) {
        return Said::Nothing;
    }
    let data = match (name, kind) {
        (HONEST_DOMAIN, TXT) => text("v=spf1 ip4:127.0.0.1 -all"),
        ("_dmarc.elsewhere.test", TXT) => text("v=DMARC1; p=reject"),
        (HONEST_HOST, A) => Ipv4Addr::LOCALHOST.octets().into(),
        (HONEST_REVERSE, PTR) => labels(HONEST_HOST),
        _ => return Said::NoName,
    };
    Said::Data(data)
}

/// A string, with its length before it.
fn text(text: &str) -> Vec<u8> {
    [
        &[u8::try_from(text.len()).unwrap_or(u8::MAX)],
        text.as_bytes(),
    ]
    .concat()
}

fn labels(name: &str) -> Vec<u8> {
    let mut data: Vec<u8> = name.split('.').flat_map(text).collect();
    data.push(0);
    data
}

/// A running name server, which ends when dropped.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Names {
    /// Starts a server, silent about the crowd or not.
    pub(super) fn start(is_silent: bool) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_read_timeout(Some(TICK))?;
        // Only root may exceed the bound of the machine.
        let forced = setsockopt(&socket, sockopt::RcvBufForce, &WAITING);
        forced.or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &WAITING))?;
        let address = socket.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let thread = std::thread::Builder::new().name("names".to_owned());
        let thread = thread.spawn(move || serve(&socket, is_silent, &until))?;
        Ok(Self {
            address,
            is_over,
            thread: Some(thread),
        })
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

fn serve(socket: &UdpSocket, is_silent: bool, is_over: &AtomicBool) -> io::Result<()> {
    let mut query = [0; 1_500];
    while !is_over.load(Ordering::Relaxed) {
        let Some((length, client)) = received(socket, &mut query)? else {
            continue;
        };
        let query = query.get(..length).unwrap_or_default();
        let asked = dns_wire::question(query).map(|(name, kind)| said(&name, kind, is_silent));
        let answer = match asked {
            None | Some(Said::Nothing) => None,
            Some(Said::NoName) => dns_wire::answer(query, None, LIFE_SECONDS),
            Some(Said::Data(data)) => dns_wire::answer(query, Some(&data), LIFE_SECONDS),
        };
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

    #[test]
    fn honest_senders_have_records_and_the_crowd_has_none() {
        let data = |name: &str, kind| match said(name, kind, true) {
            Said::Data(data) => data,
            other => panic!("{name}: {other:?}"),
        };
        assert!(data(HONEST_DOMAIN, TXT).ends_with(b"-all"));
        assert_eq!(data(HONEST_HOST, A), [127, 0, 0, 1]);
        let name = b"\x02mx\x09elsewhere\x04test\0";
        assert_eq!(data(HONEST_REVERSE, PTR), name);
        for name in [
            "_dmarc.d7.silent.test",
            "silent.test",
            "1.1.9.127.in-addr.arpa",
        ] {
            assert_eq!(said(name, TXT, true), Said::Nothing, "{name}");
            assert_eq!(said(name, TXT, false), Said::NoName, "{name}");
        }
        assert_eq!(said("_dmarc.test", TXT, true), Said::NoName);
        assert_eq!(said(HONEST_DOMAIN, A, true), Said::NoName);
    }

    #[test]
    fn a_server_answers_for_the_honest_and_is_silent_for_the_crowd() {
        let names = Names::start(true).unwrap();
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        client.connect(names.address).unwrap();
        let ask = |name: &str, patience: Duration| {
            client.set_read_timeout(Some(patience)).unwrap();
            let query = dns_wire::query(name, dns_wire::Kind::A, true);
            client.send(&query).unwrap();
            let mut answer = [0; 512];
            let length = client.recv(&mut answer).ok()?;
            dns_wire::read(&answer[..length], &query)
        };
        let found = ask(HONEST_HOST, Duration::from_secs(10));
        let own = dns_wire::Said::Address(Ipv4Addr::LOCALHOST);
        assert_eq!(found, Some(own));
        assert_eq!(ask("d1.silent.test", TICK), None);
    }
}
