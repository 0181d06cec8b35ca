//! COMPRESS=DEFLATE (RFC 4978) with Dovecot: the same answers by fewer octets.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use vere_faults::dovecot::Dovecot;

use crate::harness::{Volume, body, mail, run, settings};

/// A way to a server that counts the octets of the server.
fn counted(to: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let count = Arc::new(AtomicUsize::new(0));
    let own = Arc::clone(&count);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(to).expect("a server");
            for (from, into, counts) in [(&client, &server, false), (&server, &client, true)] {
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

#[test]
fn listings_shrink() {
    let settings_of_dovecot = "protocol imap {\n  mail_plugins = imap_zlib\n}\n";
    let Some(dovecot) = Dovecot::start_with(settings_of_dovecot) else {
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
