//! The server of block lists against packets without sense and floods.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use crate::dnsbl_server::{Server, ZONE, query};
use crate::harness::wait_for;

#[test]
fn packets_without_sense_hurt_nobody() {
    let mut server = Server::start("");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let good = query(0x4242, &format!("7.2.0.192.{ZONE}"), 1);
    let mut number = 1_u32;
    let mut random = || {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        number >> 16
    };
    for round in 0..5_000 {
        let mut packet = good.clone();
        for _ in 0..1 + random() % 4 {
            let place = random() as usize % packet.len();
            packet[place] = random() as u8;
        }
        packet.truncate(random() as usize % (packet.len() + 1));
        packet.extend((0..random() % 600 * u32::from(round % 7 == 0)).map(|_| 0xc0));
        socket.send(&packet).unwrap();
    }
    // A pointer to itself, and a response.
    let mut looping = good.clone();
    looping[12..14].copy_from_slice(&[0xc0, 12]);
    socket.send(&looping).unwrap();
    let mut response = good.clone();
    response[2] |= 0x80;
    socket.send(&response).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let mut answer = [0; 2_048];
    wait_for("the answer to the good query", || {
        // The answers to the others may have left no space for this one.
        while socket.recv(&mut answer).is_ok() {}
        socket.send(&good).unwrap();
        let count = socket.recv(&mut answer).ok()?;
        let is_same = answer[..2] == [0x42, 0x42];
        (is_same && answer[..count].ends_with(&[127, 0, 0, 3])).then_some(())
    });
    assert!(server.process.ended().is_none());
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

/// Octets in and out of a flood of answers to `sources` spoofed addresses; loopback addresses are all this machine's own.
fn flood(server: SocketAddr, sources: u32, each: u32) -> (u64, u64) {
    let packet = query(7, &format!("9.2.0.192.{ZONE}"), 1);
    let (mut octets_in, mut octets_out) = (0, 0);
    let mut answer = [0; 2_048];
    for source in 0..sources {
        let address = format!("127.{}.{}.9:0", 1 + source / 256, source % 256);
        let socket = UdpSocket::bind(address).unwrap();
        socket.connect(server).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        for sent in 1..=each {
            octets_in += socket.send(&packet).unwrap() as u64;
            if sent % 64 == 0 || sent == each {
                while let Ok(count) = socket.recv(&mut answer) {
                    octets_out += count as u64;
                }
            }
        }
    }
    (octets_in, octets_out)
}

#[test]
fn a_spoofed_flood_is_not_multiplied() {
    let limited = "rate_exempt = []\nrate_positive = 20\nrate_negative = 20\n";
    let server = Server::start(limited);
    let (octets_in, octets_out) = flood(server.address, 8, 2_000);
    assert!(
        octets_out > 0 && 2 * octets_out <= 3 * octets_in,
        "{octets_in} in, {octets_out} out"
    );
    // From many networks none is over its rate; the bound for all together holds.
    let server = Server::start("rate_exempt = []\nrate_surplus = \"1 KiB\"\n");
    let (octets_in, octets_out) = flood(server.address, 400, 10);
    assert!(
        octets_out > 0 && 2 * octets_out <= 3 * octets_in,
        "{octets_in} in, {octets_out} out"
    );
    // Without limits the same flood is multiplied, so that the measurement can fail.
    let server = Server::start("");
    let (octets_in, octets_out) = flood(server.address, 8, 200);
    assert!(
        2 * octets_out > 3 * octets_in,
        "{octets_in} in, {octets_out} out"
    );
}
