//! Lines about messages for a web server that proves who it is, or does not.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::harness::{Authority, Files, Options, Session, Sink, System, quoted, wait_for};

/// How long the server waits for a request.
const REQUEST_PATIENCE: Duration = Duration::from_secs(60);
/// Octets of a block of SHA-256.
const BLOCK: usize = 64;
const SECRET: &str = "hook's secret";

/// What came so far.
#[derive(Debug, Default)]
struct Seen {
    /// What clients said of the certificate that is shown now.
    alerts: Vec<AlertDescription>,
    /// Lines of posts that were answered with success.
    lines: Vec<Value>,
}

/// A web server behind TLS whose certificate can be changed.
struct Hook {
    address: SocketAddr,
    shown: Arc<Mutex<Arc<ServerConfig>>>,
    seen: Arc<Mutex<Seen>>,
    stop: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

impl Hook {
    fn start(files: &Files) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let shown = Arc::new(Mutex::new(server_config(files)));
        let (seen, stop) = (Arc::<Mutex<Seen>>::default(), Arc::<AtomicBool>::default());
        let (config, kept, ended) = (Arc::clone(&shown), Arc::clone(&seen), Arc::clone(&stop));
        let answer = move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let now = Arc::clone(&config.lock().expect("no panic"));
                let Err(alert) = serve(stream.expect("a client"), &now, &kept) else {
                    continue;
                };
                // What was said of a certificate of before tells nothing of this one.
                let shown = config.lock().expect("no panic");
                if Arc::ptr_eq(&now, &shown) {
                    kept.lock().expect("no panic").alerts.extend(alert);
                }
            }
        };
        Self {
            address,
            shown,
            seen,
            stop,
            server: Some(std::thread::spawn(answer)),
        }
    }

    /// Shows this certificate from now on.
    fn show(&self, files: &Files) {
        let mut shown = self.shown.lock().expect("no panic");
        *shown = server_config(files);
        // Nothing is added meanwhile.
        self.seen.lock().expect("no panic").alerts.clear();
    }

    /// Waits until a client has said what is wrong with the certificate.
    fn wait_alert(&self) -> AlertDescription {
        wait_for("a client that refuses the certificate", || {
            let seen = self.seen.lock().expect("no panic");
            assert_eq!(seen.lines, [] as [Value; 0]);
            seen.alerts.last().copied()
        })
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(server) = self.server.take() {
            let ended = server.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

fn server_config(files: &Files) -> Arc<ServerConfig> {
    let chain = CertificateDer::from_pem_file(&files.certificate).expect("PEM");
    let key = PrivateKeyDer::from_pem_file(&files.key).expect("PEM");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_no_client_auth();
    Arc::new(builder.with_single_cert(vec![chain], key).expect("a pair"))
}

/// Takes one post; fails with what the client says of it when it wants no connection.
fn serve(
    stream: TcpStream,
    config: &Arc<ServerConfig>,
    seen: &Mutex<Seen>,
) -> Result<(), Option<AlertDescription>> {
    stream
        .set_read_timeout(Some(REQUEST_PATIENCE))
        .expect("a socket");
    let connection = ServerConnection::new(Arc::clone(config)).expect("a server");
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    let posted = post(&mut reader).map_err(|error| {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
        match cause {
            Some(rustls::Error::AlertReceived(alert)) => Some(*alert),
            _ => None,
        }
    })?;
    let lines = posted.unwrap_or_default();
    seen.lock().expect("no panic").lines.extend(lines);
    Ok(())
}

/// Reads one post and answers it; gives its lines once the client has the answer.
fn post(
    reader: &mut BufReader<StreamOwned<ServerConnection, TcpStream>>,
) -> std::io::Result<Option<Vec<Value>>> {
    let (mut signed, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end().split_once(": ") {
            Some(("vere-signature", value)) => signed = value.to_owned(),
            Some(("content-length", value)) => length = value.parse().expect("a number"),
            Some(_) => {}
            None if line.trim_end().is_empty() => break,
            None => assert!(line.starts_with("POST /hook HTTP/1.1"), "{line}"),
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    check_signature(&signed, &body);
    let answer = b"HTTP/1.1 204 Yes\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let stream = reader.get_mut();
    stream.write_all(answer)?;
    stream.conn.send_close_notify();
    stream.flush()?;
    let text = String::from_utf8(body).expect("text");
    let parse = |line: &str| serde_json::from_str(line).expect("JSON");
    Ok(Some(text.lines().map(parse).collect()))
}

/// The signature as docs/internals/records.md has it, with an HMAC of the test's own.
fn check_signature(given: &str, body: &[u8]) {
    let (seconds, hex) = given
        .strip_prefix("t=")
        .and_then(|rest| rest.split_once(",v1="))
        .unwrap_or_else(|| panic!("no signature: {given}"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.expect("after 1970").as_secs();
    let age = now.abs_diff(seconds.parse().expect("a number"));
    assert!(age <= REQUEST_PATIENCE.as_secs(), "{age} seconds off");
    let text = [seconds.as_bytes(), b".", body].concat();
    let expected = hmac_sha256(SECRET.as_bytes(), &text);
    let expected: String = expected
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect();
    assert_eq!(hex, expected);
}

/// HMAC of RFC 2104 section 2 with SHA-256, for keys of at most a block.
fn hmac_sha256(key: &[u8], text: &[u8]) -> Vec<u8> {
    let padded = |pad: u8| {
        let mut block = [pad; BLOCK];
        for (octet, key) in block.iter_mut().zip(key) {
            *octet ^= key;
        }
        block
    };
    let inner = Sha256::digest([&padded(0x36), text].concat());
    Sha256::digest([padded(0x5c).as_slice(), &inner].concat()).to_vec()
}

#[test]
fn the_hmac_of_these_tests_is_that_of_rfc_4231() {
    // RFC 4231 section 4.3, test case 2.
    let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    let found = hmac_sha256(b"Jefe", b"what do ya want for nothing?");
    let found: String = found.iter().map(|octet| format!("{octet:02x}")).collect();
    assert_eq!(found, expected);
}

#[test]
fn lines_wait_until_the_web_server_proves_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (authority, stranger) = (Authority::new(), Authority::new());
    let other = authority.sign(folder, "other", &["other.example.com"]);
    let expired = authority.sign_expired(folder, "expired", &["localhost"]);
    let foreign = stranger.sign(folder, "foreign", &["localhost"]);
    let good = authority.sign(folder, "good", &["localhost"]);
    let (hook, sink) = (Hook::start(&other), Sink::start());
    let system = System::start(&options(&authority, &hook, &sink, folder));
    let mut session = Session::greeted(system.smtp);
    let mut ids = BTreeSet::new();
    let mut submit = || {
        let text = "Subject: a\r\n\r\nbody";
        session.submit("a@example.net", &["x@example.com"], text)
    };
    for (files, alerts) in [
        (&other, [AlertDescription::BadCertificate; 2]),
        (&expired, [AlertDescription::CertificateExpired; 2]),
        (
            &foreign,
            [AlertDescription::UnknownCA, AlertDescription::DecryptError],
        ),
    ] {
        hook.show(files);
        ids.insert(submit());
        let alert = hook.wait_alert();
        assert!(alerts.contains(&alert), "{alert:?} and not {alerts:?}");
    }
    system.wait_log(&["records are not taken; they wait", "certificate"]);
    // They lie in the spool: whoever begins anew has them still.
    system.kill_and_wait("gateway");
    hook.show(&foreign);
    hook.wait_alert();
    hook.show(&good);
    wait_for("a line for each message", || {
        let seen = hook.seen.lock().expect("no panic");
        let told = seen.lines.iter().map(|line| line["message"].as_str());
        let told: BTreeSet<_> = told.flatten().map(str::to_owned).collect();
        (told == ids).then_some(())
    });
    system.stop();
    let seen = hook.seen.lock().expect("no panic");
    let lines: BTreeSet<_> = seen.lines.iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), ids.len(), "{lines:?}");
}

fn options(authority: &Authority, hook: &Hook, sink: &Sink, folder: &std::path::Path) -> Options {
    let secret = folder.join("secret");
    std::fs::write(&secret, format!("{SECRET}\n")).expect("written");
    let url = format!("\"https://localhost:{}/hook\"", hook.address.port());
    Options::to(sink.address)
        .set("records.webhook", &url)
        .set("records.webhook_ca", &quoted(&authority.write(folder)))
        .set("records.webhook_secret", &quoted(&secret))
}
