//! Where the connections of a loop come from.

use std::fs::File;
use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};

use mio::{Events, Poll};
use vere_screen::Partition;

use crate::door::Door;
use crate::loops::Arrival;

/// More clients than a loop takes before other events have their turn.
const MANY: usize = 70;

struct Bench {
    door: Door,
    poll: Poll,
    /// The addresses of the port.
    addresses: Vec<SocketAddr>,
    /// The loop that accepts for this one.
    first: Sender<Arrival>,
}

impl Bench {
    fn new() -> Self {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = listeners.iter().map(|one| one.local_addr().unwrap());
        let addresses = addresses.collect();
        let poll = Poll::new().unwrap();
        let (first, arrivals) = channel();
        let partition = Partition::new([7; 32], NonZeroU32::MIN);
        let door = Door::new(listeners.into(), arrivals, partition, poll.registry());
        Self {
            door: door.unwrap(),
            poll,
            addresses,
            first,
        }
    }

    /// A connection that is in the queue of the kernel.
    fn connect(&self, address: usize) -> TcpStream {
        TcpStream::connect(self.addresses[address]).unwrap()
    }

    /// Has a connection wait that another loop has accepted, and returns its client.
    fn give(&self) -> TcpStream {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(port.local_addr().unwrap()).unwrap();
        let (here, address) = port.accept().unwrap();
        here.set_nonblocking(true).unwrap();
        let arrival = Arrival {
            stream: mio::net::TcpStream::from_std(here),
            address,
            local: None,
        };
        self.first.send(arrival).unwrap();
        client
    }
}

#[test]
fn clients_of_all_sockets_come_in() {
    let mut bench = Bench::new();
    let clients = [bench.connect(0), bench.connect(1)];
    assert!(bench.door.has_more());
    let (accepted, given) = bench.door.take();
    let found: Vec<_> = accepted.iter().map(|(_, address)| *address).collect();
    assert_eq!(found, clients.map(|client| client.local_addr().unwrap()));
    assert!(given.is_empty() && !bench.door.has_more() && !bench.door.is_short());
    // The kernel tells of a later one.
    let _later = bench.connect(1);
    bench
        .poll
        .poll(&mut Events::with_capacity(8), None)
        .unwrap();
    bench.door.look();
    assert!(bench.door.has_more());
    assert_eq!(bench.door.take().0.len(), 1);
}

#[test]
fn other_events_have_their_turn_before_the_last_of_many_clients() {
    let mut bench = Bench::new();
    let _clients: Vec<_> = (0..MANY).map(|_| bench.connect(0)).collect();
    let (first, _) = bench.door.take();
    assert!(first.len() < MANY && bench.door.has_more());
    let (rest, _) = bench.door.take();
    assert_eq!(first.len() + rest.len(), MANY);
    assert!(!bench.door.has_more());
    // The same for those that another loop has accepted.
    let _others: Vec<_> = (0..MANY).map(|_| bench.give()).collect();
    let (_, first) = bench.door.take();
    assert!(first.len() < MANY && bench.door.has_more());
    let (_, rest) = bench.door.take();
    assert_eq!(first.len() + rest.len(), MANY);
    assert!(!bench.door.has_more());
}

#[test]
fn behind_a_closed_door_nobody_waits() {
    let mut bench = Bench::new();
    let mut client = bench.give();
    bench.door.look();
    bench.door.close();
    assert!(!bench.door.has_more());
    let (accepted, given) = bench.door.take();
    assert!(accepted.is_empty() && given.is_empty());
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    for address in &bench.addresses {
        assert!(TcpStream::connect(address).is_err());
    }
}

/// A process whose descriptors all are in use, but for those of a client that waits.
#[test]
#[ignore = "a process of the next test"]
fn short() {
    let mut bench = Bench::new();
    let _client = bench.connect(0);
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    let (accepted, _) = bench.door.take();
    assert!(accepted.is_empty() && bench.door.is_short());
    // Another client has left. The kernel wants a descriptor for an accept in vain as well.
    files.truncate(files.len() - 2);
    bench.door.look();
    let (accepted, _) = bench.door.take();
    assert!(accepted.len() == 1 && !bench.door.is_short());
}

#[test]
fn a_door_tells_that_descriptors_are_short() {
    let program = std::env::current_exe().unwrap();
    let ended = Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""])
        .arg(program)
        .args(["tests::door::short", "--exact", "--ignored"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(ended.unwrap().success());
}
