//! The kernel follows on behind the handshake. Without a kernel that can, these tests are skipped; `make kernel-tls` has one.

use rustls::crypto::CryptoProvider;

use super::*;
use crate::tls::kernel;

/// The ciphers that the kernel carries out. With `VERE_KERNEL_TLS` in the environment a kernel without TLS is a failure.
fn kernel_tls() -> Option<KernelTls> {
    match KernelTls::probe() {
        Ok(kernel) => Some(kernel),
        Err(error) if std::env::var_os("VERE_KERNEL_TLS").is_none() => {
            eprintln!("skipped: no TLS in the kernel: {error}");
            None
        }
        Err(error) => panic!("expected TLS in the kernel; found {error}"),
    }
}

fn options(kernel: KernelTls) -> ProxyOptions {
    ProxyOptions {
        kernel,
        ..ProxyOptions::default()
    }
}

type Client = StreamOwned<ClientConnection, TcpStream>;

impl Bench {
    /// A client that says octets right behind its handshake, and the socket of the owner, which blocks.
    fn carried(&mut self, number: u64, first: &[u8]) -> (Client, TcpStream) {
        let (socket, _plain) = self.connect(number);
        let mut client = self.client(socket);
        // Octets that are known before leave together with the last octets of the handshake.
        client.conn.writer().write_all(first).unwrap();
        client.conn.complete_io(&mut client.sock).unwrap();
        let (named, _, carrier) = self.secured.recv_timeout(PATIENCE).unwrap();
        assert_eq!(named, name(number));
        let Carrier::Kernel { client: here, .. } = carrier else {
            panic!("expected the kernel; found {carrier:?}");
        };
        here.set_nonblocking(false).unwrap();
        here.set_read_timeout(Some(PATIENCE)).unwrap();
        (client, here)
    }
}

/// Reads until so many octets are there.
fn heard(socket: &mut TcpStream, octets: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < octets {
        let mut some = [0; 8_192];
        let count = kernel::read(socket, &mut some).unwrap();
        assert!(count > 0, "the end behind {} octets", all.len());
        all.extend_from_slice(&some[..count]);
    }
    all
}

fn suite(number: u16) -> rustls::SupportedCipherSuite {
    let suites = provider().cipher_suites.clone();
    let found = suites
        .into_iter()
        .find(|suite| u16::from(suite.suite()) == number);
    found.expect("a suite of the library")
}

#[test]
fn octets_arrive_whole_by_each_cipher_and_sessions_are_resumed() {
    let Some(kernel) = kernel_tls() else { return };
    for number in [0x1301, 0x1302, 0x1303] {
        if !kernel.takes(suite(number).suite()) {
            eprintln!("skipped: the kernel lacks {number:#x}");
            continue;
        }
        let mut bench = Bench::new(options(kernel), BOTH);
        let mut only = CryptoProvider::clone(&provider());
        only.cipher_suites = vec![suite(number)];
        let clients = ClientConfig::builder_with_provider(Arc::new(only))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots(&bench.authority))
            .with_no_client_auth();
        bench.clients = Arc::new(clients);
        for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let (mut client, mut here) = bench.carried(1, b"EHLO\r\n");
            assert_eq!(client.conn.handshake_kind(), Some(kind));
            // The thread has given the connection back.
            bench.wait_until_closed();
            assert_eq!(heard(&mut here, 6), b"EHLO\r\n");
            let octets: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
            let sent = octets.clone();
            let echo = std::thread::spawn(move || {
                let heard = heard(&mut here, sent.len());
                assert!(heard == sent, "plaintext differs");
                here.write_all(&heard[..heard.len() - 1]).unwrap();
                assert_eq!(
                    kernel::write_last(&here, &heard[heard.len() - 1..]).unwrap(),
                    1
                );
            });
            client.write_all(&octets).unwrap();
            let mut back = Vec::new();
            // Without close_notify the library reports an unexpected end.
            client.read_to_end(&mut back).unwrap();
            assert!(back == octets, "plaintext differs");
            echo.join().unwrap();
        }
    }
}

#[test]
fn tls_1_2_stays_with_the_thread() {
    let Some(kernel) = kernel_tls() else { return };
    let mut bench = Bench::new(options(kernel), &[&rustls::version::TLS12]);
    assert_eq!(bench.meet(1).0, HandshakeKind::Full);
    assert_eq!(bench.meet(2).0, HandshakeKind::Resumed);
    bench.wait_until_closed();
}

#[test]
fn records_without_data_are_the_end() {
    let Some(kernel) = kernel_tls() else { return };
    let mut bench = Bench::new(options(kernel), BOTH);
    let (mut client, mut here) = bench.carried(1, b"QUIT\r\n");
    client.conn.send_close_notify();
    client.flush().unwrap();
    assert_eq!(heard(&mut here, 6), b"QUIT\r\n");
    for _ in 0..2 {
        assert_eq!(kernel::read(&mut here, &mut [0; 64]).unwrap(), 0);
    }
    // The other direction goes on.
    assert_eq!(kernel::write_last(&here, b"221 bye\r\n").unwrap(), 9);
    let mut said = Vec::new();
    client.read_to_end(&mut said).unwrap();
    assert_eq!(said, b"221 bye\r\n");

    let (mut client, mut here) = bench.carried(2, b"NOOP\r\n");
    assert_eq!(heard(&mut here, 6), b"NOOP\r\n");
    client.conn.refresh_traffic_keys().unwrap();
    client.write_all(b"NOOP\r\n").unwrap();
    // A newer kernel reports the new keys by another error.
    let read = kernel::read(&mut here, &mut [0; 64]);
    assert_eq!(read.unwrap_or(0), 0);
}

#[test]
fn octets_that_do_not_decrypt_are_an_error() {
    let Some(kernel) = kernel_tls() else { return };
    let mut bench = Bench::new(options(kernel), BOTH);
    let (mut client, mut here) = bench.carried(1, b"");
    client.sock.write_all(&[23, 3, 3, 0, 20]).unwrap();
    client.sock.write_all(&[7; 20]).unwrap();
    assert!(kernel::read(&mut here, &mut [0; 64]).is_err());
}

/// The last words are in memory of the kernel when the last descriptor is closed.
#[test]
fn a_slow_reader_gets_everything_behind_the_close() {
    let Some(kernel) = kernel_tls() else { return };
    let mut bench = Bench::new(options(kernel), BOTH);
    let (mut client, mut here) = bench.carried(1, b"x");
    assert_eq!(heard(&mut here, 1), b"x");
    let text = vec![7; 100_000];
    here.write_all(&text).unwrap();
    assert_eq!(kernel::write_last(&here, b"221 bye\r\n").unwrap(), 9);
    drop(here);
    let mut said = Vec::new();
    client.read_to_end(&mut said).unwrap();
    assert_eq!(said.len(), text.len() + 9);
    assert!(said.ends_with(b"221 bye\r\n"));
}

/// The kernel takes no connection whose client has closed its side: such a client is served by the thread.
#[test]
fn a_client_that_closes_its_side_at_once_is_heard() {
    let Some(kernel) = kernel_tls() else { return };
    let mut bench = Bench::new(options(kernel), BOTH);
    for number in 0..20 {
        let (socket, mut owner) = bench.connect(number);
        let mut client = bench.client(socket);
        client.conn.writer().write_all(b"QUIT\r\n").unwrap();
        while client.conn.is_handshaking() {
            client.conn.complete_io(&mut client.sock).unwrap();
        }
        client.flush().unwrap();
        client.sock.shutdown(std::net::Shutdown::Write).unwrap();
        let (_, _, carrier) = bench.secured.recv_timeout(PATIENCE).unwrap();
        let mut said = vec![0; 6];
        match carrier {
            Carrier::Thread => {
                owner.read_exact(&mut said).unwrap();
                drop(owner);
            }
            Carrier::Kernel {
                client: mut here, ..
            } => {
                here.set_nonblocking(false).unwrap();
                said = heard(&mut here, 6);
                assert_eq!(kernel::read(&mut here, &mut [0; 64]).unwrap(), 0);
                kernel::close_notify(&here);
            }
        }
        assert_eq!(said, b"QUIT\r\n");
        assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
    bench.wait_until_closed();
}

#[test]
fn an_owner_that_has_gone_gets_nothing_back() {
    let Some(kernel) = kernel_tls() else { return };
    let mut bench = Bench::new(options(kernel), BOTH);
    let (mut socket, owner) = bench.connect(1);
    drop(owner);
    assert_eq!(socket.read(&mut [0]).unwrap_or(0), 0);
    bench.wait_until_closed();
    assert!(bench.secured.try_recv().is_err());
}

/// A socket without room refuses octets in the middle of a record, and loses none.
#[test]
fn a_writer_without_room_goes_on_where_it_was() {
    let Some(kernel) = kernel_tls() else { return };
    let mut bench = Bench::new(options(kernel), BOTH);
    let (mut client, mut here) = bench.carried(1, b"x");
    assert_eq!(heard(&mut here, 1), b"x");
    here.set_nonblocking(true).unwrap();
    let octets: Vec<u8> = (0..16_000_000_u32).map(|n| (n % 251) as u8).collect();
    let sent = octets.clone();
    let (full, is_full) = channel();
    let writer = std::thread::spawn(move || {
        let mut rest = &sent[..];
        while !rest.is_empty() {
            match here.write(&rest[..rest.len().min(50_000)]) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let _ = full.send(());
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => panic!("{error}"),
            }
        }
        here
    });
    is_full.recv_timeout(PATIENCE).unwrap();
    let mut back = vec![0; octets.len()];
    client.read_exact(&mut back).unwrap();
    assert!(back == octets, "plaintext differs");
    let here = writer.join().unwrap();
    assert_eq!(kernel::write_last(&here, b"221 bye\r\n").unwrap(), 9);
    drop(here);
    let mut said = Vec::new();
    client.read_to_end(&mut said).unwrap();
    assert_eq!(said, b"221 bye\r\n");
}
