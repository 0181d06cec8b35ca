//! Queries over TCP (RFC 7766): several at once over one connection, each with a length in front.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout_at};
use vere_settings::Dnsbl;

use crate::desk::Desk;

/// Octets that are read at a time; a query is longer only for its options.
const READ: usize = 4_096;
/// Octets of a query that are taken; an honest one has fewer than 600.
const QUERY_MAX: usize = 2_048;
/// Octets of an answer with its length.
const ANSWER_MAX: usize = 2 + 65_535;
/// Octets of answers that are collected before they are written.
const WRITE: usize = 64 << 10;
/// Pause after a failed accept, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The connections of the server.
struct Connections {
    desk: Rc<RefCell<Desk>>,
    /// Memory for one answer: connections are served by one thread.
    memory: RefCell<Box<[u8]>>,
    open: RefCell<Open>,
    idle: Duration,
}

/// The open connections by number, which rises.
struct Open {
    most: usize,
    most_per_client: usize,
    next: u64,
    all: BTreeMap<u64, Connection>,
    per_client: BTreeMap<IpAddr, usize>,
}

struct Connection {
    client: IpAddr,
    /// Whether the client is to read answers, rather than to send a query.
    has_answers: bool,
    /// The beginning of the wait for the client.
    since: Instant,
    close: Rc<Notify>,
}

/// Accepts connections from now on.
pub(crate) fn start(
    dnsbl: &Dnsbl,
    listeners: Vec<StdListener>,
    desk: &Rc<RefCell<Desk>>,
) -> io::Result<()> {
    let connections = Rc::new(Connections {
        desk: Rc::clone(desk),
        memory: RefCell::new(vec![0; ANSWER_MAX].into_boxed_slice()),
        open: RefCell::new(Open::new(
            dnsbl.connections_max as usize,
            dnsbl.connections_per_client_max as usize,
        )),
        idle: Duration::from_millis(dnsbl.idle_timeout.as_millis()),
    });
    for listener in listeners {
        let listener = TcpListener::from_std(listener)?;
        spawn_local(accept(listener, Rc::clone(&connections)));
    }
    Ok(())
}

async fn accept(listener: TcpListener, connections: Rc<Connections>) {
    loop {
        match listener.accept().await {
            Ok((stream, client)) => {
                let entered = connections.open.borrow_mut().enter(client.ip());
                if let Some((number, close)) = entered {
                    let connections = Rc::clone(&connections);
                    spawn_local(async move {
                        tokio::select! {
                            _ended = connections.serve(stream, client, number) => {}
                            () = close.notified() => {}
                        }
                        connections.leave(number);
                    });
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// What counts as one client: an IPv4 address, or the /64 of an IPv6 address.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

impl Connections {
    fn leave(&self, number: u64) {
        self.open.borrow_mut().remove(number);
    }

    fn waits(&self, number: u64, has_answers: bool) {
        self.open.borrow_mut().waits(number, has_answers);
    }

    /// Serves a connection to its end. A client has the idle time for each whole query and for taking the answers, so
    /// that single octets now and then hold no place.
    async fn serve(
        &self,
        mut stream: TcpStream,
        client: SocketAddr,
        number: u64,
    ) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut pending = Vec::new();
        let mut read = [0; READ];
        let mut answers = Vec::new();
        let mut deadline = Instant::now() + self.idle;
        loop {
            let count = timeout_at(deadline, stream.read(&mut read)).await??;
            let Some(taken) = read.get(..count).filter(|taken| !taken.is_empty()) else {
                return Ok(());
            };
            pending.extend_from_slice(taken);
            let mut served = 0;
            while let Some(query) = message(pending.get(served..).unwrap_or_default())? {
                self.answer(client, query, &mut answers);
                served += 2 + query.len();
                if answers.len() >= WRITE {
                    self.write(&mut stream, number, &mut answers).await?;
                }
            }
            pending.drain(..served);
            if served > 0 {
                self.write(&mut stream, number, &mut answers).await?;
                deadline = Instant::now() + self.idle;
            }
        }
    }

    fn answer(&self, client: SocketAddr, query: &[u8], answers: &mut Vec<u8>) {
        let mut memory = self.memory.borrow_mut();
        let mut desk = self.desk.borrow_mut();
        desk.begin();
        let (length, rest) = memory.split_at_mut(2);
        let count = desk.message(client, query, rest);
        if let (1.., Ok(count)) = (count, u16::try_from(count)) {
            length.copy_from_slice(&count.to_be_bytes());
            answers.extend_from_slice(&memory[..2 + usize::from(count)]);
        }
    }

    async fn write(
        &self,
        stream: &mut TcpStream,
        number: u64,
        answers: &mut Vec<u8>,
    ) -> io::Result<()> {
        self.waits(number, true);
        timeout_at(Instant::now() + self.idle, stream.write_all(answers)).await??;
        answers.clear();
        self.waits(number, false);
        Ok(())
    }
}

impl Open {
    fn new(most: usize, most_per_client: usize) -> Self {
        Self {
            most,
            most_per_client,
            next: 0,
            all: BTreeMap::new(),
            per_client: BTreeMap::new(),
        }
    }

    /// Takes a connection up, unless its client has enough. Where all places are taken, the connection with the longest wait
    /// for a query goes, or, if all have answers to read, the connection with the longest wait for the reader.
    fn enter(&mut self, address: IpAddr) -> Option<(u64, Rc<Notify>)> {
        let client = client(address);
        if self
            .per_client
            .get(&client)
            .is_some_and(|count| *count >= self.most_per_client)
        {
            return None;
        }
        if self.all.len() >= self.most {
            let rank = |(number, one): (&u64, &Connection)| (one.has_answers, one.since, *number);
            let (_, _, longest) = self.all.iter().map(rank).min()?;
            self.remove(longest)?.close.notify_one();
        }
        let close = Rc::new(Notify::new());
        let number = self.next;
        self.next += 1;
        *self.per_client.entry(client).or_default() += 1;
        let connection = Connection {
            client,
            has_answers: false,
            since: Instant::now(),
            close: Rc::clone(&close),
        };
        self.all.insert(number, connection);
        Some((number, close))
    }

    fn waits(&mut self, number: u64, has_answers: bool) {
        if let Some(connection) = self.all.get_mut(&number) {
            (connection.has_answers, connection.since) = (has_answers, Instant::now());
        }
    }

    fn remove(&mut self, number: u64) -> Option<Connection> {
        let connection = self.all.remove(&number)?;
        if let Some(count) = self.per_client.get_mut(&connection.client) {
            *count -= 1;
            if *count == 0 {
                self.per_client.remove(&connection.client);
            }
        }
        Some(connection)
    }
}

/// The first whole message, without its length (RFC 1035 section 4.2.2); `None` where octets are missing.
fn message(octets: &[u8]) -> io::Result<Option<&[u8]>> {
    let Some((length, rest)) = octets.split_first_chunk() else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes(*length));
    if length > QUERY_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(rest.get(..length))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    /// The numbers of the connections that were told to close.
    fn closed(entered: &[(u64, Rc<Notify>)]) -> Vec<u64> {
        let told = entered
            .iter()
            .filter(|(_, close)| close.notified().now_or_never().is_some());
        told.map(|(number, _)| *number).collect()
    }

    #[test]
    fn a_client_has_so_many_connections() {
        let mut open = Open::new(10, 2);
        let entered: Vec<_> = (0..3).filter_map(|_| open.enter(address(1))).collect();
        assert_eq!(entered.len(), 2);
        assert!(open.enter(address(2)).is_some());
        open.remove(entered[0].0);
        assert!(open.enter(address(1)).is_some());
        assert!(closed(&entered).is_empty());
    }

    #[test]
    fn who_waits_for_a_query_goes_before_who_reads_no_answers_and_the_longest_first() {
        let mut open = Open::new(3, 3);
        let entered: Vec<_> = (1..4).filter_map(|n| open.enter(address(n))).collect();
        let [first, second, third] = [0, 1, 2].map(|place: usize| entered[place].0);
        open.waits(first, true);
        assert!(open.enter(address(4)).is_some());
        assert_eq!(closed(&entered), [second]);
        open.waits(third, true);
        // The newest connection is the only one that waits for a query.
        let number = *open.all.keys().last().unwrap();
        open.waits(number, true);
        assert!(open.enter(address(5)).is_some());
        assert_eq!(closed(&entered), [first]);
        assert_eq!(open.all.len(), 3);
    }
}
