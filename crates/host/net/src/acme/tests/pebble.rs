//! The same against pebble, Let's Encrypt's server for tests, over real HTTP and HTTPS.
//!
//! `scripts/install-test-tools.sh` builds it where Go is present; `VERE_PEBBLE` may name another.
//! Without it these tests are skipped, and say so.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use hickory_resolver::proto::op::{Message, MessageType};
use hickory_resolver::proto::rr::rdata::A;
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use super::{Acme, AcmeError, AcmeOptions, serve_challenges};
use crate::tls::Leaf;

/// The program, or a line that says why the test is skipped.
fn program() -> Option<PathBuf> {
    let named = std::env::var_os("VERE_PEBBLE").map(PathBuf::from);
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/test-tools/bin/pebble");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join("pebble"));
    let program = named
        .into_iter()
        .chain([built])
        .chain(found)
        .find(|path| path.is_file());
    if program.is_none() {
        // Past the test harness, which hides what a test that passes prints.
        let text: &[u8] = b"SKIPPED acme::tests::pebble: no pebble here, \
            scripts/install-test-tools.sh builds it where go is present\n";
        std::io::stderr().write_all(text).expect("standard error");
    }
    program
}

struct Pebble {
    dir: tempfile::TempDir,
    child: Child,
    address: SocketAddr,
    names: SocketAddr,
}

fn spawn(program: &Path, dir: &Path, names: SocketAddr) -> Child {
    let log = fs::File::create(dir.join("log")).expect("room");
    Command::new(program)
        .arg("-config")
        .arg(dir.join("config.json"))
        .args(["-dnsserver", &names.to_string()])
        .env("PEBBLE_VA_NOSLEEP", "1")
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a descriptor"))
        .stderr(log)
        .spawn()
        .expect("pebble is executable")
}

impl Drop for Pebble {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago: pebble cannot choose one and tell.
async fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    listener.local_addr().expect("bound").port()
}

/// Writes `ca.pem` and the certificate and key of pebble's own server.
fn write_identity(dir: &Path) {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("random");
    let issuer = CertifiedIssuer::self_signed(params, key).expect("well formed");
    let key = KeyPair::generate().expect("random");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
    let certificate = params.signed_by(&key, &issuer).expect("well formed");
    fs::write(dir.join("ca.pem"), issuer.pem()).expect("room");
    fs::write(dir.join("server.pem"), certificate.pem()).expect("room");
    fs::write(dir.join("server.key"), key.serialize_pem()).expect("room");
}

impl Pebble {
    /// Starts it; it looks for challenges at `challenges` whatever the name.
    async fn start(program: &Path, challenges: SocketAddr, lifetime: Duration) -> Self {
        let names = name_server().await;
        let tls = free_port().await;
        Self::start_with(program, (challenges.port(), tls), names, lifetime).await
    }

    /// Starts it; it looks for challenges at these ports of HTTP and TLS, and asks this name server.
    async fn start_with(
        program: &Path,
        (http, tls): (u16, u16),
        names: SocketAddr,
        lifetime: Duration,
    ) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        write_identity(dir.path());
        let address = SocketAddr::from(([127, 0, 0, 1], free_port().await));
        let config = json!({"pebble": {
            "listenAddress": address.to_string(),
            "certificate": dir.path().join("server.pem"),
            "privateKey": dir.path().join("server.key"),
            "httpPort": http,
            "tlsPort": tls,
            "profiles": {"default": {
                "description": "for tests",
                "validityPeriod": lifetime.as_secs(),
            }},
        }});
        fs::write(dir.path().join("config.json"), config.to_string()).expect("room");
        let child = spawn(program, dir.path(), names);
        let pebble = Self {
            dir,
            child,
            address,
            names,
        };
        pebble.listening().await;
        pebble
    }

    /// Ends it and starts it again at the same address.
    async fn restart(&mut self, program: &Path) {
        self.child.kill().expect("running");
        self.child.wait().expect("ours");
        self.child = spawn(program, self.dir.path(), self.names);
        self.listening().await;
    }

    async fn listening(&self) {
        for _ in 0..500 {
            if TcpStream::connect(self.address).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        panic!("pebble does not listen: {log}");
    }

    fn options(&self, domains: &[&str]) -> AcmeOptions {
        AcmeOptions {
            directory: format!("https://{}/dir", self.address),
            root: Some(self.dir.path().join("ca.pem")),
            ..super::options(self.dir.path(), domains)
        }
    }

    fn certificate(&self) -> PathBuf {
        self.dir.path().join("acme/certificate.pem")
    }
}

/// Every name is this machine, save `gone.test`. Old versions of pebble ask by UDP, new ones by TCP.
async fn name_server() -> SocketAddr {
    let (listener, socket) = loop {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("bound");
        if let Ok(socket) = UdpSocket::bind(address).await {
            break (listener, socket);
        }
    };
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        let mut question = [0; 1500];
        while let Ok((length, peer)) = socket.recv_from(&mut question).await {
            socket
                .send_to(&answer(&question[..length]), peer)
                .await
                .expect("loopback");
        }
    });
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(resolve(stream));
        }
    });
    address
}

/// Answers the questions of one connection (RFC 1035 section 4.2.2).
async fn resolve(mut stream: TcpStream) {
    while let Ok(length) = stream.read_u16().await {
        let mut question = vec![0; usize::from(length)];
        stream
            .read_exact(&mut question)
            .await
            .expect("a whole question");
        let answer = answer(&question);
        stream
            .write_u16(answer.len() as u16)
            .await
            .expect("connected");
        stream.write_all(&answer).await.expect("connected");
    }
}

fn answer(question: &[u8]) -> Vec<u8> {
    let mut message = Message::from_vec(question).expect("a question");
    let query = message.queries.first().cloned().expect("one question");
    message.metadata.message_type = MessageType::Response;
    let gone = query.name().to_lowercase().to_ascii() == "gone.test.";
    if query.query_type() == RecordType::A && !gone {
        let data = RData::A(A::new(127, 0, 0, 1));
        message
            .answers
            .push(Record::from_rdata(query.name().clone(), 1, data));
    }
    message.to_vec().expect("small")
}

const QUARTER: Duration = Duration::from_secs(90 * 86400);

async fn challenge_listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    (listener, address)
}

#[tokio::test]
async fn pebble_issues_and_knows_the_account_again() {
    let Some(program) = program() else { return };
    let (listener, challenges) = challenge_listener().await;
    let mut pebble = Pebble::start(&program, challenges, QUARTER).await;
    let acme = Acme::new(pebble.options(&["mx.demo.test", "mail.demo.test"])).expect("options");
    tokio::spawn(serve_challenges(listener, acme.places().http()));

    acme.obtain().await.expect("pebble issues");
    let mut first = Leaf::of_file(&pebble.certificate()).expect("a certificate");
    // In whatever order the authority likes.
    first.names.sort();
    assert_eq!(first.names, ["mail.demo.test", "mx.demo.test"]);
    let due = acme.due_in(SystemTime::now());
    assert!(due > QUARTER / 2 && due < QUARTER * 2 / 3, "{due:?}");
    acme.obtain().await.expect("pebble issues again");

    // It keeps nothing over a restart: the account has to be made again.
    pebble.restart(&program).await;
    acme.obtain().await.expect("pebble issues after a restart");
}

#[tokio::test]
async fn pebble_refuses_names_that_do_not_answer() {
    let Some(program) = program() else { return };
    let (listener, challenges) = challenge_listener().await;
    let pebble = Pebble::start(&program, challenges, QUARTER).await;
    let acme = Acme::new(pebble.options(&["mx.demo.test", "gone.test"])).expect("options");
    tokio::spawn(serve_challenges(listener, acme.places().http()));
    let error = acme.obtain().await.expect_err("one name does not exist");
    let AcmeError::Refused { domain, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(domain, "gone.test", "{error}");
    assert!(!pebble.certificate().exists());
}

#[tokio::test]
async fn a_server_with_a_strange_certificate_is_not_asked() {
    let Some(program) = program() else { return };
    let (_listener, challenges) = challenge_listener().await;
    let pebble = Pebble::start(&program, challenges, QUARTER).await;
    let stranger = tempfile::tempdir().expect("a folder");
    write_identity(stranger.path());
    let root = Some(stranger.path().join("ca.pem"));
    let options = AcmeOptions {
        root,
        ..pebble.options(&["mx.demo.test"])
    };
    let error = Acme::new(options)
        .expect("options")
        .obtain()
        .await
        .expect_err("untrusted");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_short_certificate_is_renewed_before_it_ends() {
    let Some(program) = program() else { return };
    let (listener, challenges) = challenge_listener().await;
    let pebble = Pebble::start(&program, challenges, Duration::from_secs(12)).await;
    let acme = Acme::new(pebble.options(&["mx.demo.test"])).expect("options");
    tokio::spawn(serve_challenges(listener, acme.places().http()));
    let (sender, mut renewals) = tokio::sync::mpsc::unbounded_channel();
    let keeping = tokio::spawn(async move {
        acme.run(move || sender.send(SystemTime::now()).expect("the test waits"))
            .await
    });
    let limit = Duration::from_secs(30);
    let next = async |renewals: &mut tokio::sync::mpsc::UnboundedReceiver<SystemTime>| {
        tokio::time::timeout(limit, renewals.recv())
            .await
            .expect("in time")
            .expect("running")
    };
    next(&mut renewals).await;
    let first = Leaf::of_file(&pebble.certificate())
        .expect("a certificate")
        .validity;
    let second = next(&mut renewals).await;
    assert!(
        first.contains(second),
        "renewed while the old one was valid"
    );
    assert_ne!(
        first,
        Leaf::of_file(&pebble.certificate())
            .expect("a certificate")
            .validity
    );
    keeping.abort();
}

mod proofs;
