//! Clients that ask for large messages and do not read.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBuf;

use crate::harness::{Options, PATIENCE, System, in_soak, private_memory, wait_within};
use crate::imap::{Imap, with_store};

const MIB: u64 = 1 << 20;
/// The bound in the tests, and the store's further memory for some clients.
const BOUND: u64 = 16 * MIB;
const SLACK: u64 = 24 * MIB;
/// Octets of a large message, and sessions that ask for two large messages.
const LARGE: usize = 12 << 20;
const SESSIONS: usize = 40;

/// A message that gets smaller by compression, but not much: so are encoded files.
fn large(number: u64) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64 + number;
    let mut text = format!("Subject: large {number}\r\n\r\n");
    while text.len() < LARGE {
        for _ in 0..76 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.push(char::from(b'A' + (state >> 32) as u8 % 50));
        }
        text.push_str("\r\n");
    }
    text
}

/// A client that asks and does not read, with a small buffer.
fn ask(imap: std::net::SocketAddr, user: &str, items: &str) -> TcpStream {
    let mut stream = TcpStream::connect(imap).expect("the IMAP port");
    setsockopt(&stream, RcvBuf, &4096).expect("a small buffer");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let text = format!("a LOGIN {user} secret\r\nb SELECT INBOX\r\n");
    stream.write_all(text.as_bytes()).expect("commands");
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("\r\nb OK") {
        let mut piece = [0; 512];
        let octets = stream.read(&mut piece).expect("an answer");
        assert!(octets > 0, "closed: {}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&piece[..octets]);
    }
    let text = format!("c FETCH 1:2 {items}\r\n");
    stream.write_all(text.as_bytes()).expect("a command");
    stream
}

fn system() -> (System, std::net::SocketAddr, [String; 2]) {
    let (options, ports) = with_store(Options::default());
    let options = options
        .set(
            "limits.fetch_memory_max",
            &format!("\"{} MiB\"", BOUND / MIB),
        )
        .set("limits.connections_per_client_max", "1000");
    let system = System::start(&options);
    let texts = [large(1), large(2)];
    for user in ["alice@example.org", "bob@example.org"] {
        let mut session = Imap::login(ports.imap, user, "secret");
        texts.iter().for_each(|text| session.append("INBOX", text));
    }
    (system, ports.imap, texts)
}

#[test]
fn what_is_fetched_and_not_read_takes_bounded_memory() {
    let (system, imap, texts) = system();
    let store = system.role_pids("store")[0];
    let mut bob = Imap::login(imap, "bob@example.org", "secret");
    bob.ok("SELECT INBOX");
    // The allocator gives memory back after a moment: the memory for one client is looked at while the client fetches.
    let mut before = private_memory(store);
    for (text, number) in texts.iter().zip(1..) {
        assert!(bob.octets(number) == text.as_bytes(), "message {number}");
        before = before.max(private_memory(store));
    }
    for items in [
        "BODY.PEEK[]",
        "(BODY.PEEK[HEADER.FIELDS (SUBJECT)] BODY.PEEK[TEXT])",
    ] {
        let began = Instant::now();
        let mut unread: Vec<TcpStream> = (0..SESSIONS)
            .map(|_| ask(imap, "alice@example.org", items))
            .collect();
        let (mut most, mut slowest) = (0, Duration::ZERO);
        // Further clients are served meanwhile, with short answers and with long answers.
        for _ in 0..5 {
            let asked = Instant::now();
            bob.ok("FETCH 1:2 (FLAGS ENVELOPE BODYSTRUCTURE BODY.PEEK[HEADER])");
            slowest = slowest.max(asked.elapsed());
            assert!(bob.octets(1) == texts[0].as_bytes());
            most = most.max(private_memory(store));
        }
        eprintln!(
            "{items}: before {}, at most {} MiB, short answers after at most {slowest:?}, all {:?}",
            before / MIB,
            most / MIB,
            began.elapsed()
        );
        assert!(
            most <= before + BOUND + SLACK,
            "{} MiB, before {}",
            most / MIB,
            before / MIB
        );
        // Waiting clients come next.
        let mut last = unread.pop().expect("a session");
        drop(unread);
        setsockopt(&last, RcvBuf, &(1 << 20)).expect("a larger buffer");
        let mut said = Vec::new();
        let end = b"\r\nc OK";
        while !said
            .windows(end.len())
            .rev()
            .take(100)
            .any(|found| found == end)
        {
            let mut piece = [0; 64 * 1024];
            let octets = last.read(&mut piece).expect("an answer");
            assert!(octets > 0, "closed after {}", said.len());
            said.extend_from_slice(&piece[..octets]);
        }
        for text in &texts {
            let body = text.split_once("\r\n\r\n").expect("a body").1.as_bytes();
            let at = said
                .windows(60)
                .position(|found| found == &body[..60])
                .expect("the body");
            assert!(said[at..].starts_with(body));
        }
        drop(last);
        wait_within(PATIENCE, "memory to come back", || {
            (private_memory(store) <= before + before / 5).then_some(())
        });
    }
}

#[test]
fn who_fetches_and_does_not_read_is_disconnected() {
    if !in_soak() {
        return;
    }
    let (system, imap, _) = system();
    let mut unread = ask(imap, "alice@example.org", "BODY.PEEK[]");
    // An idle client is not.
    let mut idle = Imap::login(imap, "alice@example.org", "secret");
    idle.ok("SELECT INBOX");
    system.wait_log(&["does not read what it fetches"]);
    let mut rest = Vec::new();
    // The octets in the kernel's buffers.
    let _ = unread.read_to_end(&mut rest);
    assert!(rest.len() < LARGE);
    idle.ok("NOOP");
}
