//! Guessing passwords is slow, for the guessing client.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Options, Session, System};
use crate::imap::{Imap, start_with_store};

const ALICE: &str = "alice@example.org";
const BOB: &str = "bob@example.org";

/// What a client waits for at least between six wrong guesses: a quarter of a second, doubling.
const WAITED: Duration = Duration::from_millis(250 + 500 + 1_000 + 2_000 + 4_000);
const GUESSES: usize = 6;

/// Connects from an address of the machine.
pub(crate) fn connect_from(source: &str, address: SocketAddr) -> TcpStream {
    let source: IpAddr = source.parse().expect("an address");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .expect("a runtime");
    let connected = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((source, 0).into())?;
        socket.connect(address).await?.into_std()
    });
    let stream = connected.expect("a connection");
    stream.set_nonblocking(false).expect("a blocking socket");
    stream
}

/// Tries a password on a new connection.
fn log_in(source: &str, address: SocketAddr, user: &str, password: &str) -> String {
    Imap::greeted(connect_from(source, address)).command(&format!("LOGIN {user} {password}"))
}

#[test]
fn guessing_is_slow_for_whoever_has_an_account_and_for_nobody_else() {
    let (system, ports) = start_with_store(Options::default());
    system.add_account("carol@example.org");
    let begun = Instant::now();
    for _ in 0..GUESSES {
        let said = log_in("127.0.0.1", ports.imap, BOB, "secret");
        assert!(said.contains(" OK "), "{said}");
        let said = log_in("127.0.0.1", ports.imap, ALICE, "wrong");
        assert!(said.contains(" NO [AUTHENTICATIONFAILED]"), "{said}");
    }
    assert!(begun.elapsed() >= WAITED, "{:?}", begun.elapsed());
    // The next guess waits for eight seconds, or seconds at least. No wait applies to
    // bob's account at the same address, nor to another address, at any account. A machine may be so slow that the
    // logins wait too: then the test tries again.
    let others_are_first = (0..3).any(|_| {
        let (answered, answer) = mpsc::channel();
        let guess = thread::spawn(move || {
            let said = log_in("127.0.0.1", ports.imap, ALICE, "wrong");
            answered.send(said).expect("somebody who listens");
        });
        for (source, user) in [
            ("127.0.0.1", BOB),
            ("127.0.0.2", ALICE),
            ("127.0.0.3", "carol@example.org"),
        ] {
            let said = log_in(source, ports.imap, user, "secret");
            assert!(said.contains(" OK "), "{said}");
        }
        let first = answer.try_recv() == Err(TryRecvError::Empty);
        guess.join().expect("the guess");
        first
    });
    assert!(others_are_first, "others wait for the guesser");
}

#[test]
fn guessing_where_mail_is_sent_is_slow_on_new_connections_too() {
    let system = System::start(&Options::default());
    let log_in = |octets: &str, expected: &str| {
        Session::greeted(system.submission).command(&format!("AUTH PLAIN {octets}"), expected);
    };
    let begun = Instant::now();
    for _ in 0..GUESSES {
        // bob@example.org, secret; alice@example.org, wrong.
        log_in("AGJvYkBleGFtcGxlLm9yZwBzZWNyZXQ=", "235 2.7.0");
        log_in("AGFsaWNlQGV4YW1wbGUub3JnAHdyb25n", "535 5.7.8");
    }
    assert!(begun.elapsed() >= WAITED, "{:?}", begun.elapsed());
}
