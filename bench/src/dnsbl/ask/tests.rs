use std::net::UdpSocket;

use super::*;
use crate::dnsbl::questions::{Maps, VALUE};
use crate::dnsbl::wire::Said;

const SHORT: Duration = Duration::from_millis(200);

/// A server that answers each query with NXDOMAIN, but for queries of a number: those get no answer, or the answer twice.
fn server(silent: Option<u64>, ends_after: u64) -> (SocketAddr, std::thread::JoinHandle<()>) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let mut query = [0; 512];
        for number in 0..ends_after {
            let (length, client) = socket.recv_from(&mut query).unwrap();
            query[2] = 0x84;
            query[3] = 3;
            if silent != Some(number) {
                socket.send_to(&query[..length], client).unwrap();
                socket.send_to(&query[..length], client).unwrap();
            }
        }
    });
    (address, thread)
}

fn questions() -> Vec<Question> {
    let listed = Ipv4Addr::new(20, 0, 0, 5);
    let maps = Maps::of(&[listed]);
    [listed, Ipv4Addr::new(20, 0, 0, 6)]
        .map(|client| maps.address(client))
        .into()
}

#[test]
fn wrong_and_missing_answers_are_counted_and_doubled_ones_are_not() {
    let (address, server) = server(Some(3), 100);
    let asked = load(address, &questions(), End::Count(100), SHORT).unwrap();
    server.join().unwrap();
    assert_eq!((asked.queries, asked.missed), (100, 1));
    // Every other question is that of the listed address; the missing answer is one of either.
    assert!((49..=50).contains(&asked.wrong), "{asked:?}");
    assert_eq!(asked.right(), 99 - asked.wrong);
    assert!(asked.slowest >= SHORT);
}

#[test]
fn one_question_has_one_answer() {
    let (address, server) = server(None, 1);
    let [listed, _] = &questions()[..] else {
        unreachable!("two questions");
    };
    assert_eq!(listed.expected, Some(Said::Address(VALUE)));
    let patience = Duration::from_secs(10);
    assert_eq!(once(address, listed, patience), Some(Said::NoName));
    server.join().unwrap();
    let (silent, server) = super::tests::server(Some(0), 1);
    assert_eq!(once(silent, listed, SHORT), None);
    server.join().unwrap();
}
