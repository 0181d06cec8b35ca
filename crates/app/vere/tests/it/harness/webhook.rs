//! A web server that lines about messages are posted to, without a library's help.

use std::io::{BufRead, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// How long the server waits for a request, and how old one may be.
const REQUEST_PATIENCE: Duration = Duration::from_secs(60);
/// Octets of a block of SHA-256.
const BLOCK: usize = 64;
const SECRET: &str = "hook's secret";

/// A port whose clients are answered in sequence, until the value is dropped.
pub(crate) struct Hook {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

impl Hook {
    /// Answers every client so.
    pub(crate) fn start(mut answer: impl FnMut(TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let stop = Arc::<AtomicBool>::default();
        let ended = Arc::clone(&stop);
        let server = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a client");
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let patience = Some(REQUEST_PATIENCE);
                stream.set_read_timeout(patience).expect("a socket");
                answer(stream);
            }
        });
        Self {
            address,
            stop,
            server: Some(server),
        }
    }

    /// Writes the secret of posts to a file.
    pub(crate) fn write_secret(folder: &Path) -> PathBuf {
        let file = folder.join("secret");
        std::fs::write(&file, format!("{SECRET}\n")).expect("written");
        file
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

/// Reads a post to `/hook`, which must be signed, and returns its lines.
pub(crate) fn read_post(reader: &mut impl BufRead) -> std::io::Result<Vec<Value>> {
    let (mut signed, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
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
    let text = String::from_utf8(body).expect("text");
    let parse = |line: &str| serde_json::from_str(line).expect("JSON");
    Ok(text.lines().map(parse).collect())
}

/// An answer without content that ends the connection.
pub(crate) fn answer(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
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
