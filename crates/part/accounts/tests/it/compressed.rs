//! COMPRESS=DEFLATE (RFC 4978) with Dovecot: the same answers by fewer octets.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use vere_faults::dovecot::Dovecot;

use crate::harness::{Volume, body, mail, run, settings};

/// A way to a server that counts the octets of the server, or those to the server.
fn counted(to: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    counted_from(to, true)
}

fn counted_from(to: SocketAddr, server: bool) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let count = Arc::new(AtomicUsize::new(0));
    let own = Arc::clone(&count);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let stream = TcpStream::connect(to).expect("a server");
            for (from, into, counts) in [(&client, &stream, !server), (&stream, &client, server)] {
                let mut from = from.try_clone().expect("a descriptor");
                let mut into = into.try_clone().expect("a descriptor");
                let count = Arc::clone(&own);
                std::thread::spawn(move || {
                    let mut buffer = [0; 16_384];
                    while let Ok(octets @ 1..) = from.read(&mut buffer) {
                        if counts {
                            count.fetch_add(octets, Ordering::Relaxed);
                        }
                        let piece = buffer.get(..octets).unwrap_or_default();
                        if into.write_all(piece).is_err() {
                            return;
                        }
                    }
                });
            }
        }
    });
    (address, count)
}

const ZLIB: &str = "protocol imap {\n  mail_plugins = imap_zlib\n}\n";

#[test]
fn listings_shrink() {
    let Some(dovecot) = Dovecot::start_with(ZLIB) else {
        return;
    };
    let (address, count) = counted(dovecot.imap);
    let mut octets = [0, 0];
    run(async {
        let mut volume = Volume::at(dovecot.imap, 2);
        let ids: Vec<_> = (0..500_u64)
            .map(|number| {
                let id = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let subject = format!(
                    "verefs1 v3f9c0a11 kpack i{id:016x}{id:016x} w0001 s{number:012x} g0001"
                );
                let request = crate::harness::append("data", &mail(&subject, &body(40)));
                volume.send(vere_ports::mail_accounts::Urgency::Background, request)
            })
            .collect();
        for id in ids {
            volume.wait(id).await.expect("stored");
        }
        let mut listings = Vec::new();
        for (octets, compress) in octets.iter_mut().zip([false, true]) {
            let mut own = settings(address, 1);
            own.remote.compress = compress;
            let mut volume = Volume::new(own);
            let before = count.load(Ordering::Relaxed);
            listings.push(volume.list("data").await);
            *octets = count.load(Ordering::Relaxed) - before;
        }
        assert_eq!(listings[0], listings[1]);
        assert_eq!(listings[0].2.len(), 500);
    });
    let [plain, compressed] = octets;
    assert!(compressed * 2 < plain, "{compressed} of {plain}");
}

/// Lines of base64 have six bits in each octet.
#[test]
fn base64_shrinks_by_a_fifth_and_more() {
    let Some(dovecot) = Dovecot::start_with(ZLIB) else {
        return;
    };
    let (address, count) = counted_from(dovecot.imap, false);
    let mut random = 1_u64;
    let text: Vec<u8> = (0..400_000)
        .flat_map(|at| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            let letter = letters[(random >> 58) as usize];
            let end: &[u8] = if at % 76 == 75 { b"\r\n" } else { b"" };
            std::iter::once(letter).chain(end.iter().copied())
        })
        .collect();
    let mut octets = [0, 0];
    run(async {
        for (octets, compress) in octets.iter_mut().zip([false, true]) {
            let mut own = settings(address, 1);
            own.remote.compress = compress;
            let mut volume = Volume::new(own);
            let subject = format!("base64 {compress}");
            let before = count.load(Ordering::Relaxed);
            let request = crate::harness::append("data", &mail(&subject, &text));
            let id = volume.send(vere_ports::mail_accounts::Urgency::Background, request);
            volume.wait(id).await.expect("stored");
            *octets = count.load(Ordering::Relaxed) - before;
        }
    });
    let [plain, compressed] = octets;
    assert!(plain > text.len(), "{plain}");
    assert!(compressed * 5 < plain * 4, "{compressed} of {plain}");
}
