//! Gateway and nodes as real processes with mutual TLS between both, and the clients that a node refuses.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::harness::{
    Authority, Child, Files, Options, System, free_address, quoted, vere, wait_for, wait_until,
};

/// How long a node may take to close a connection; it gives a handshake five seconds.
const PATIENCE: Duration = Duration::from_secs(60);

struct Setup {
    system: System,
    authority: Authority,
    own: Files,
    metrics: SocketAddr,
}

impl Setup {
    fn start() -> Self {
        let authority = Authority::new();
        let own = authority.sign("own", &["a", "b"]);
        let metrics = free_address();
        let options = Options::default().spool_tls(&own, &authority.ca);
        let system = System::start(&options.set("metrics.listen", &format!("\"{metrics}\"")));
        Self {
            authority,
            own,
            metrics,
            system,
        }
    }

    /// A client of a node with the given files, or without a certificate, and with all required trust.
    fn client(&self, node: SocketAddr, shown: Option<&Files>) -> Client {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_file(&self.authority.ca).expect("the root");
        roots.add(root).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_root_certificates(roots);
        let config = match shown {
            None => builder.with_no_client_auth(),
            Some(files) => {
                let chain = CertificateDer::from_pem_file(&files.certificate).expect("PEM");
                let key = PrivateKeyDer::from_pem_file(&files.key).expect("PEM");
                builder
                    .with_client_auth_cert(vec![chain], key)
                    .expect("a pair")
            }
        };
        let name = ServerName::try_from("a").expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
        let stream = TcpStream::connect(node).expect("the node listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        StreamOwned::new(connection, stream)
    }
}

type Client = StreamOwned<ClientConnection, TcpStream>;

/// Whether the node ended the connection, without a greeting.
fn is_refused(client: &mut Client) -> bool {
    match client.read(&mut [0; 16]) {
        Ok(count) => count == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

#[test]
fn mail_passes_and_the_nodes_can_be_asked() {
    let setup = Setup::start();
    let system = &setup.system;
    let text = "Subject: over TLS\r\n\r\nbody";
    system.submit("a@example.net", &["alice@example.org"], text);
    assert!(system.wait_mail("alice", 1)[0].contains("over TLS"));
    let table = system.command(&["spool", "stat"]);
    // A single log for both.
    assert_eq!(table.matches("synced").count(), 1, "{table}");
    // When the certificates of both sides end (2049-01-01), and how the lease stands.
    let expiry = "certificate_expiry_seconds";
    let file = setup.own.certificate.display();
    let lines = [
        format!("vere_spool_node_{expiry}{{node=\"a\"}} 2493072000"),
        format!("vere_spool_node_{expiry}{{node=\"b\"}} 2493072000"),
        format!("vere_tls_{expiry}{{file=\"{file}\"}} 2493072000"),
        "vere_spool_lease_held{group=\"gateway\"} 1".to_owned(),
    ];
    wait_for("the figures", || {
        let text = crate::metrics::read(setup.metrics);
        let is_there = |line: &String| text.lines().any(|found| found == line);
        let left = "vere_spool_lease_remaining_seconds{group=\"gateway\"} ";
        let left = text.lines().find_map(|line| line.strip_prefix(left));
        let left: u64 = left?.parse().expect("a number");
        (lines.iter().all(is_there) && left > 0).then_some(())
    });
    // Whoever has a certificate is greeted, encrypted with the newest version only.
    let files = setup.authority.sign("new", &["x"]);
    let mut client = setup.client(system.nodes[0], Some(&files));
    let mut greeting = [0; 24];
    client.read_exact(&mut greeting).expect("a greeting");
    assert!(
        greeting.windows(7).any(|octets| octets == b"VERESPL"),
        "{greeting:?}"
    );
    let version = client.conn.protocol_version();
    assert_eq!(version, Some(rustls::ProtocolVersion::TLSv1_3));
}

#[test]
fn strangers_are_refused_with_the_reason_in_the_log() {
    let setup = Setup::start();
    let system = &setup.system;
    let node = system.nodes[0];
    let refused = "connection refused";
    assert!(is_refused(&mut setup.client(node, None)));
    system.wait_log(&[refused, "the other side shows no certificate"]);

    let others = Authority::new();
    let foreign = others.sign("foreign", &["a"]);
    assert!(is_refused(&mut setup.client(node, Some(&foreign))));
    system.wait_log(&[refused, "certificate: "]);

    let expired = setup.authority.sign_expired("expired", &["a"]);
    assert!(is_refused(&mut setup.client(node, Some(&expired))));
    system.wait_log(&[refused, "certificate: ", "expired"]);

    let mut plain = TcpStream::connect(node).expect("the node listens");
    plain.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let _ = plain.write_all(b"EHLO there\r\n");
    system.wait_log(&[refused, "does not speak TLS"]);

    // A silent client is waited for with a limit, and learns nothing in clear text.
    let mut silent = TcpStream::connect(node).expect("the node listens");
    silent.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut heard = Vec::new();
    silent.read_to_end(&mut heard).expect("an end");
    assert!(!heard.windows(4).any(|octets| octets == b"VERE"));
    system.wait_log(&[refused, "no TLS handshake in time"]);

    // No other client noticed.
    let text = "Subject: after all\r\n\r\nbody";
    system.submit("a@example.net", &["alice@example.org"], text);
    system.wait_mail("alice", 1);
}

/// The node wrote no log: the operator of a node on a separate machine did not learn of refused clients.
#[test]
fn a_node_by_itself_writes_a_log() {
    let authority = Authority::new();
    let files = authority.sign("own", &["n"]);
    let address = free_address();
    let text = format!(
        "[spool.tls]\ncertificate = {}\nkey = {}\nca = {}\n\
         [[spool.node]]\nname = \"n\"\nlisten = \"{address}\"\ntls = \"required\"\n",
        quoted(&files.certificate),
        quoted(&files.key),
        quoted(&authority.ca)
    );
    let config = Options::write_smallest(authority.folder(), &text);
    std::fs::create_dir(authority.folder().join("data")).expect("a folder");
    let log = authority.folder().join("log");
    let mut command = vere();
    command
        .args(["spool", "serve", "--node", "n", "-c"])
        .arg(&config);
    command.stderr(File::create(&log).expect("the log"));
    let mut node = Child::spawn(&mut command);
    let mut plain = wait_for("the node", || TcpStream::connect(address).ok());
    let _ = plain.write_all(b"EHLO there\r\n");
    wait_until("the reason in the log", || {
        let log = std::fs::read_to_string(&log).expect("the log");
        log.contains("does not speak TLS")
    });
    assert!(node.stop(PATIENCE).success());
}
