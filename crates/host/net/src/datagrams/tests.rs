use std::collections::BTreeSet;
use std::time::Duration;

use super::*;

const WAIT: Duration = Duration::from_secs(10);

/// A socket in wait of answers for a while.
fn client(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).unwrap();
    socket.set_read_timeout(Some(WAIT)).unwrap();
    socket
}

fn batch(address: &str) -> (Batch, SocketAddr) {
    let mut sockets = bind(&[address.parse().unwrap()], 1).unwrap();
    let socket = sockets.remove(0);
    let address = socket.local_addr().unwrap();
    (Batch::new(socket, 512).unwrap(), address)
}

/// Answers as long as the text of the query says.
fn echo(batch: &mut Batch) {
    batch.receive().unwrap();
    batch.answer(|_, query, memory| {
        memory[..query.len()].copy_from_slice(query);
        query.len()
    });
    batch.send();
}

/// Sends datagrams of several lengths from two clients, which each get their own back.
fn exchange(mut batch: Batch, address: SocketAddr, from: &str) {
    let clients = [client(from), client(from)];
    for (name, client) in clients.iter().enumerate() {
        for number in 0..30 {
            let text = format!("{name} {number} {}", "x".repeat(number % 4));
            client.send_to(text.as_bytes(), address).unwrap();
        }
    }
    let mut got = [BTreeSet::new(), BTreeSet::new()];
    let mut octets = [0; 512];
    while got.iter().map(BTreeSet::len).sum::<usize>() < 60 {
        echo(&mut batch);
        for _ in 0..batch.count {
            // Any order, from either client.
            let place = usize::from(got[0].len() == 30);
            let (count, from) = clients[place].recv_from(&mut octets).unwrap();
            assert_eq!(from, address);
            let text = String::from_utf8(octets[..count].to_vec()).unwrap();
            assert!(text.starts_with(&place.to_string()), "{text}");
            assert!(got[place].insert(text));
            if got[0].len() == 30 && got[1].len() == 30 {
                return;
            }
        }
    }
    assert_eq!(got.map(|texts| texts.len()), [30, 30]);
}

#[test]
fn each_client_gets_its_own_answers() {
    let (batch, address) = batch("127.0.0.1:0");
    exchange(batch, address, "127.0.0.1:0");
}

#[test]
fn without_segments_too() {
    let (mut batch, address) = batch("127.0.0.1:0");
    batch.segments = false;
    exchange(batch, address, "127.0.0.1:0");
}

#[test]
fn answers_come_from_the_address_that_was_asked() {
    let (mut batch, bound) = batch("0.0.0.0:0");
    let client = client("127.0.0.1:0");
    let mut octets = [0; 16];
    for asked in ["127.0.0.2", "127.9.8.7"] {
        let asked = SocketAddr::new(asked.parse().unwrap(), bound.port());
        client.send_to(b"query", asked).unwrap();
        echo(&mut batch);
        let (count, from) = client.recv_from(&mut octets).unwrap();
        assert_eq!((from, &octets[..count]), (asked, &b"query"[..]));
    }
}

#[test]
fn a_query_without_answer_gets_none_and_a_long_one_arrives_cut() {
    let (mut batch, address) = batch("127.0.0.1:0");
    let client = client("127.0.0.1:0");
    client.send_to(&[b'x'; QUERY_MAX + 100], address).unwrap();
    batch.receive().unwrap();
    batch.answer(|_, query, _| {
        assert_eq!(query.len(), QUERY_MAX);
        0
    });
    batch.send();
    client.send_to(b"next", address).unwrap();
    echo(&mut batch);
    let mut octets = [0; 16];
    let (count, _) = client.recv_from(&mut octets).unwrap();
    assert_eq!(&octets[..count], b"next");
}

#[test]
fn sockets_share_an_address_and_no_other_program_gets_the_port() {
    let sockets = bind(&["127.0.0.1:0".parse().unwrap()], 3).unwrap();
    let address = sockets[0].local_addr().unwrap();
    assert!(
        sockets
            .iter()
            .all(|socket| socket.local_addr().unwrap() == address)
    );
    assert!(UdpSocket::bind(address).is_err());
    assert_eq!(threads(Some(3)), 3);
    assert!((1..=8).contains(&threads(None)));
}
