//! The connections that a keeper makes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};

use vere_handoff::session::LINKS;
use vere_net::packets::{PacketListener, PacketSocket};
use vere_settings::Settings;

use crate::links::Links;

#[test]
fn a_worker_has_the_connections_of_its_place_in_their_order() {
    let data = tempfile::tempdir().unwrap();
    let text = format!(
        "version = 1\nhostname = \"mx.example.org\"\ndata = \"{}\"\n[front]\n",
        data.path().display()
    );
    let settings = Settings::parse(&text, "vere.toml").unwrap();
    fs::create_dir_all(settings.front_directory()).unwrap();
    let front = PacketListener::bind(&settings.worker_socket(3)).unwrap();
    let gateway = settings.intake_socket();
    fs::create_dir_all(gateway.parent().unwrap()).unwrap();
    let gateway = UnixListener::bind(gateway).unwrap();
    // A broker that does not listen yet.
    assert!(Links::connect(&settings, 3).is_err());
    let broker = UnixListener::bind(settings.broker_socket()).unwrap();
    assert!(Links::connect(&settings, 2).is_err(), "another place");
    while front.accept().is_ok() {}
    drop(gateway.accept().unwrap());
    let links = Links::connect(&settings, 3).unwrap();
    let (keeper, worker) = PacketSocket::pair().unwrap();
    links.send(&keeper).unwrap();
    drop(links);
    let mut packet = [0; 16];
    let (length, connections) = worker.receive(&mut packet).unwrap().unwrap();
    assert_eq!(packet[..length], LINKS);
    let [to_front, to_gateway, to_broker] = <[_; 3]>::try_from(connections).unwrap();
    PacketSocket::from(to_front).send(b"front", &[]).unwrap();
    for (to, text) in [(to_gateway, "gateway"), (to_broker, "broker")] {
        UnixStream::from(to).write_all(text.as_bytes()).unwrap();
    }
    let (length, _) = front
        .accept()
        .unwrap()
        .receive(&mut packet)
        .unwrap()
        .unwrap();
    assert_eq!(&packet[..length], b"front");
    for (port, expected) in [(gateway, "gateway"), (broker, "broker")] {
        let (mut from, _) = port.accept().unwrap();
        let mut said = vec![0; expected.len()];
        from.read_exact(&mut said).unwrap();
        assert_eq!(said, expected.as_bytes());
    }
}

/// The name of the test that is the worker.
const WORKER: &str = "tests::links::worker";

/// A worker with the other end of a socket as its standard input.
#[test]
#[ignore = "a process of the next test"]
fn worker() {
    Links::take().unwrap();
}

/// Whether a worker takes the connections of these packets.
fn is_taken(packets: &[(&[u8], usize)]) -> bool {
    let (keeper, worker) = PacketSocket::pair().unwrap();
    let (_far, near) = UnixStream::pair().unwrap();
    for (octets, connections) in packets {
        let connections = vec![near.as_fd(); *connections];
        keeper.send(octets, &connections).unwrap();
    }
    let program = std::env::current_exe().unwrap();
    let ended = Command::new(program)
        .args([WORKER, "--exact", "--ignored"])
        .stdin(OwnedFd::from(worker))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    ended.unwrap().success()
}

#[test]
fn a_worker_takes_three_connections_of_the_first_packet_alone() {
    assert!(is_taken(&[(&LINKS, 3)]));
    assert!(!is_taken(&[(&LINKS, 2)]));
    assert!(!is_taken(&[(b"\x01\x06", 3)]), "another packet");
    let long = [LINKS[0]; 17];
    assert!(!is_taken(&[(&long, 3), (&LINKS, 3)]), "a longer packet");
}
