use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::{Distance, Traffic};

/// A server that greets, and then returns what a client sends.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                stream.write_all(b"hi").unwrap();
                let mut copy = stream.try_clone().unwrap();
                let _ = std::io::copy(&mut copy, &mut stream);
                let _ = stream.shutdown(Shutdown::Write);
            });
        }
    });
    address
}

#[test]
fn a_round_trip_takes_its_time_and_the_handshake_another() {
    let far = Distance::to(echo(), Duration::from_millis(40)).unwrap();
    let begun = Instant::now();
    let mut client = TcpStream::connect(far.address()).unwrap();
    let mut hello = [0; 2];
    client.read_exact(&mut hello).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(80), "the greeting");
    let begun = Instant::now();
    client.write_all(b"abc").unwrap();
    let mut back = [0; 3];
    client.read_exact(&mut back).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(40), "an answer");
    assert_eq!((&hello, &back), (b"hi", b"abc"));
    let traffic = Traffic {
        up: 3,
        down: 5,
        connections: 1,
    };
    assert_eq!(far.traffic(), traffic);
}

#[test]
fn octets_arrive_whole_and_in_order_with_their_end() {
    for milliseconds in [0, 4] {
        let far = Distance::to(echo(), Duration::from_millis(milliseconds)).unwrap();
        let mut client = TcpStream::connect(far.address()).unwrap();
        let sent: Vec<u8> = (0..3_000_000_u32).map(|number| number as u8).collect();
        let mut writer = client.try_clone().unwrap();
        let copy = sent.clone();
        let writing = std::thread::spawn(move || {
            writer.write_all(&copy).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        client.read_to_end(&mut back).unwrap();
        writing.join().unwrap();
        assert!(back.get(2..) == Some(&sent[..]), "{milliseconds} ms");
    }
}

#[test]
fn a_refused_connection_ends() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let far = Distance::to(address, Duration::from_millis(2)).unwrap();
    let mut client = TcpStream::connect(far.address()).unwrap();
    let mut rest = Vec::new();
    let ended = client.read_to_end(&mut rest);
    assert!(ended.is_err() || rest.is_empty());
}
