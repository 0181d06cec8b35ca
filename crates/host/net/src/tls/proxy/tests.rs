//! Clients of rustls over loopback, and keys that another keyring has.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, ProtocolVersion, RootCertStore, StreamOwned,
    SupportedProtocolVersion,
};

use super::*;
use crate::tls::tests::Authority;
use crate::tls::{Fingerprint, KeyHolder, Keyring, ServerTlsOptions, provider};

mod kernel;

const SECOND: Duration = Duration::from_secs(1);
/// For what has to happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process with the keys, as one of this process.
#[derive(Debug)]
struct Holder {
    keyring: Keyring,
    refuses: Mutex<bool>,
}

impl KeyHolder for Holder {
    fn sign(&self, certificate: &Fingerprint, scheme: u16, octets: &[u8]) -> io::Result<Vec<u8>> {
        if *self.refuses.lock().unwrap() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let signed = self.keyring.sign(certificate, scheme, octets);
        signed.map_err(io::Error::other)
    }
}

/// Neighbouring numbers belong to different owners, and some owners have the same number.
const fn name(number: u64) -> JobName {
    JobName {
        owner: (number % 2) as usize,
        number: number / 2,
    }
}

fn roots(authority: &Authority) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_file(authority.path("ca.pem")).unwrap();
    roots.add(root).unwrap();
    roots
}

struct Bench {
    authority: Authority,
    holder: Arc<Holder>,
    certificates: RemoteCertificates,
    proxy: TlsProxy,
    secured: Receiver<(JobName, TlsInfo, Carrier)>,
    port: TcpListener,
    clients: Arc<ClientConfig>,
}

impl Bench {
    fn new(options: ProxyOptions, versions: &[&'static SupportedProtocolVersion]) -> Self {
        let authority = Authority::new();
        let keyring = Keyring::new(ServerTlsOptions {
            default: Some(authority.issue("mx", "mx.example.org")),
            ..ServerTlsOptions::default()
        })
        .unwrap();
        let refuses = Mutex::new(false);
        let holder = Arc::new(Holder { keyring, refuses });
        let certificates = RemoteCertificates::new(holder.clone());
        assert!(!certificates.has_certificate());
        certificates.show(holder.keyring.shown());
        assert!(certificates.has_certificate());
        let (told, secured) = channel();
        let told: Mutex<Sender<_>> = Mutex::new(told);
        let tell: Secured = Arc::new(move |name, info, carrier| {
            let _ = told.lock().unwrap().send((name, info, carrier));
        });
        let proxy = TlsProxy::start(&certificates, options, &tell).unwrap();
        let roots = roots(&authority);
        let clients = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            authority,
            holder,
            certificates,
            proxy,
            secured,
            port: TcpListener::bind("127.0.0.1:0").unwrap(),
            clients: Arc::new(clients),
        }
    }

    /// A connection that was given to the proxy: the client's end, and the owner's.
    fn connect(&mut self, number: u64) -> (TcpStream, UnixStream) {
        let client = TcpStream::connect(self.port.local_addr().unwrap()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let (here, _) = self.port.accept().unwrap();
        here.set_nonblocking(true).unwrap();
        let (owner, plain) = UnixStream::pair().unwrap();
        plain.set_nonblocking(true).unwrap();
        owner.set_read_timeout(Some(PATIENCE)).unwrap();
        self.proxy.take(Job {
            name: name(number),
            client: here,
            plain,
        });
        (client, owner)
    }

    fn client(&self, socket: TcpStream) -> StreamOwned<ClientConnection, TcpStream> {
        let name = ServerName::try_from("mx.example.org").unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.clients), name).unwrap();
        StreamOwned::new(connection, socket)
    }

    /// An octet each way; returns how the handshake went.
    fn meet(&mut self, number: u64) -> (HandshakeKind, TlsInfo) {
        let (socket, mut owner) = self.connect(number);
        let mut client = self.client(socket);
        client.write_all(b"x").unwrap();
        let (named, info, _) = self.secured.recv_timeout(PATIENCE).unwrap();
        assert_eq!(named, name(number));
        let mut octet = [0];
        owner.read_exact(&mut octet).unwrap();
        owner.write_all(b"y").unwrap();
        client.read_exact(&mut octet).unwrap();
        assert_eq!(&octet, b"y");
        (client.conn.handshake_kind().unwrap(), info)
    }

    fn wait_until_closed(&self) {
        for _ in 0..2_000 {
            if self.proxy.open() == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{} connections are left", self.proxy.open());
    }

    /// Number of failed handshakes of a proxy without a finished handshake.
    fn failed(&self) -> u64 {
        let Handshakes {
            full,
            resumed,
            failed,
        } = self.proxy.handshakes();
        assert_eq!((full, resumed), (0, 0));
        failed
    }
}

const BOTH: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];

#[test]
fn handshakes_are_signed_elsewhere_and_sessions_are_resumed() {
    for (version, name) in [(BOTH[0], "TLSv1.3"), (BOTH[1], "TLSv1.2")] {
        let mut bench = Bench::new(ProxyOptions::default(), &[version]);
        let (kind, info) = bench.meet(1);
        assert_eq!(kind, HandshakeKind::Full);
        assert_eq!(
            (info.version, info.sni.as_deref()),
            (name, Some("mx.example.org"))
        );
        // Without the key: a resumed session needs no signature.
        *bench.holder.refuses.lock().unwrap() = true;
        assert_eq!(bench.meet(2).0, HandshakeKind::Resumed, "{name}");
        let counts = Handshakes {
            full: 1,
            resumed: 1,
            failed: 0,
        };
        assert_eq!(bench.proxy.handshakes(), counts, "{name}");
        bench.wait_until_closed();
    }
}

#[test]
fn the_key_before_a_change_signs_until_the_other_side_has_heard() {
    let mut bench = Bench::new(ProxyOptions::default(), BOTH);
    let before = bench.holder.keyring.shown();
    bench.authority.issue("mx", "mx.example.org");
    bench.holder.keyring.reload().unwrap();
    assert_ne!(bench.holder.keyring.shown(), before);
    // An equal set, as after a second reload, changes nothing.
    bench.holder.keyring.reload().unwrap();
    assert_eq!(bench.meet(1).0, HandshakeKind::Full);
    bench.certificates.show(bench.holder.keyring.shown());
    let mut clients = ClientConfig::clone(&bench.clients);
    clients.resumption = Resumption::disabled();
    bench.clients = Arc::new(clients);
    assert_eq!(bench.meet(2).0, HandshakeKind::Full);
}

#[test]
fn a_handshake_without_a_signature_ends_the_connection() {
    let mut bench = Bench::new(ProxyOptions::default(), BOTH);
    *bench.holder.refuses.lock().unwrap() = true;
    let (socket, mut owner) = bench.connect(1);
    let mut client = bench.client(socket);
    let ended = client
        .write_all(b"x")
        .and_then(|()| client.read_exact(&mut [0]));
    assert!(ended.is_err());
    assert_eq!(owner.read(&mut [0]).unwrap(), 0);
    bench.wait_until_closed();
    assert!(bench.secured.try_recv().is_err());
    assert_eq!(bench.failed(), 1);
}

#[test]
fn octets_that_are_no_handshake_end_the_connection() {
    let mut bench = Bench::new(ProxyOptions::default(), BOTH);
    let (mut socket, mut owner) = bench.connect(1);
    socket.write_all(b"MAIL FROM:<a@example.org>\r\n").unwrap();
    assert_eq!(owner.read(&mut [0]).unwrap(), 0);
    bench.wait_until_closed();
    assert_eq!(bench.failed(), 1);
}

#[test]
fn who_says_nothing_or_stops_amid_the_handshake_is_not_waited_for() {
    let options = ProxyOptions {
        handshake_timeout: Duration::from_millis(100),
        ..ProxyOptions::default()
    };
    let mut bench = Bench::new(options, BOTH);
    let (_silent, mut owner) = bench.connect(1);
    let (mut stops, mut other) = bench.connect(2);
    stops.write_all(&[22, 3, 1, 0, 200, 1]).unwrap();
    assert_eq!(owner.read(&mut [0]).unwrap(), 0);
    assert_eq!(other.read(&mut [0]).unwrap(), 0);
    bench.wait_until_closed();
}

#[test]
fn an_owner_that_closes_amid_the_handshake_closes_the_connection() {
    let mut bench = Bench::new(ProxyOptions::default(), BOTH);
    let (mut socket, owner) = bench.connect(1);
    drop(owner);
    assert_eq!(socket.read(&mut [0]).unwrap_or(0), 0);
    bench.wait_until_closed();
}

#[test]
fn octets_arrive_whole_in_both_directions_and_so_does_the_end() {
    let mut bench = Bench::new(ProxyOptions::default(), BOTH);
    let (socket, mut owner) = bench.connect(1);
    let mut client = bench.client(socket);
    let octets: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let sent = octets.clone();
    let echo = std::thread::spawn(move || {
        let mut heard = vec![0; sent.len()];
        owner.read_exact(&mut heard).unwrap();
        assert!(heard == sent, "plaintext differs");
        owner.write_all(&heard).unwrap();
    });
    client.write_all(&octets).unwrap();
    let mut heard = Vec::new();
    // The owner closes behind its last octet, and TLS says so.
    client.read_to_end(&mut heard).unwrap();
    assert!(heard == octets, "plaintext differs");
    echo.join().unwrap();
    bench.wait_until_closed();
}

#[test]
fn the_end_of_the_client_is_the_end_of_the_plaintext() {
    for says_goodbye in [true, false] {
        let mut bench = Bench::new(ProxyOptions::default(), BOTH);
        let (socket, mut owner) = bench.connect(1);
        let mut client = bench.client(socket);
        client.write_all(b"QUIT\r\n").unwrap();
        if says_goodbye {
            client.conn.send_close_notify();
            client.flush().unwrap();
        }
        client.sock.shutdown(std::net::Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        owner.read_to_end(&mut heard).unwrap();
        assert_eq!(heard, b"QUIT\r\n");
        // The owner may still answer.
        owner.write_all(b"221 bye\r\n").unwrap();
        drop(owner);
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).unwrap();
        assert_eq!(heard, b"221 bye\r\n");
        bench.wait_until_closed();
    }
}

/// The owner closes with octets unread, and its last words arrive all the same.
#[test]
fn the_last_words_of_an_owner_reach_a_client_that_goes_on_sending() {
    let mut bench = Bench::new(ProxyOptions::default(), BOTH);
    let (socket, mut owner) = bench.connect(1);
    let mut client = bench.client(socket);
    client.write_all(b"x").unwrap();
    owner.read_exact(&mut [0]).unwrap();
    let (mut reads, mut writes) = (
        client.sock.try_clone().unwrap(),
        client.sock.try_clone().unwrap(),
    );
    // The socket pair is full, and the client goes on.
    client.conn.writer().write_all(&vec![0; 60_000]).unwrap();
    for _ in 0..20 {
        while client.conn.wants_write() {
            client.conn.write_tls(&mut writes).unwrap();
        }
        client.conn.writer().write_all(&vec![0; 60_000]).unwrap();
    }
    owner.write_all(b"421 bye\r\n").unwrap();
    owner.shutdown(std::net::Shutdown::Both).unwrap();
    drop(owner);
    let mut said = Vec::new();
    while said.len() < 9 {
        if client.conn.read_tls(&mut reads).unwrap_or(0) == 0 {
            break;
        }
        let state = client.conn.process_new_packets().unwrap();
        let mut some = vec![0; state.plaintext_bytes_to_read()];
        client.conn.reader().read_exact(&mut some).unwrap();
        said.extend(some);
    }
    assert_eq!(said, b"421 bye\r\n");
}

#[test]
fn a_client_that_reads_nothing_is_not_waited_for_once_the_owner_has_closed() {
    let options = ProxyOptions {
        linger: Duration::from_millis(100),
        ..ProxyOptions::default()
    };
    let mut bench = Bench::new(options, BOTH);
    let (socket, mut owner) = bench.connect(1);
    let mut client = bench.client(socket);
    client.write_all(b"x").unwrap();
    owner.read_exact(&mut [0]).unwrap();
    owner.set_write_timeout(Some(SECOND)).unwrap();
    let stuck = owner.write_all(&vec![0; 64 << 20]);
    assert!(stuck.is_err(), "the proxy takes without bound");
    drop(owner);
    bench.wait_until_closed();
}

#[test]
fn threads_share_the_connections_and_one_that_is_silent_holds_nobody() {
    let mut bench = Bench::new(ProxyOptions::default(), BOTH);
    let silent: Vec<_> = (100..110).map(|number| bench.connect(number)).collect();
    for number in 0..6 {
        bench.meet(number);
    }
    drop(silent);
    bench.wait_until_closed();
}

#[test]
fn versions_are_those_of_the_client() {
    let mut bench = Bench::new(ProxyOptions::default(), BOTH);
    bench.meet(1);
    let name = ServerName::try_from("mx.example.org").unwrap();
    let connection = ClientConnection::new(Arc::clone(&bench.clients), name).unwrap();
    assert_eq!(connection.protocol_version(), None);
    let (socket, _owner) = bench.connect(2);
    let mut client = StreamOwned::new(connection, socket);
    client.write_all(b"x").unwrap();
    assert_eq!(
        client.conn.protocol_version(),
        Some(ProtocolVersion::TLSv1_3)
    );
}
