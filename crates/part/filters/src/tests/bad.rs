//! Filters that are silent, slow, loud, wrong or gone.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{MESSAGE, ask, filter, kinds, outcome};
use crate::{Address, Asked, Failure, Kind, Rspamd, Verdict};

const TIMEOUT: Duration = Duration::from_millis(400);

/// The peer's way to misbehave.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Says nothing, reads nothing.
    Silent,
    /// Sends an octet now and then.
    Drips,
    /// Sends this and closes.
    Says(&'static [u8]),
    /// Sends this over and over.
    Repeats(&'static [u8]),
}

async fn peer(way: Way) -> (Address, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                match way {
                    Way::Silent => std::future::pending().await,
                    Way::Drips => loop {
                        if stream.write_all(b"\0").await.is_err() {
                            break;
                        }
                        tokio::time::sleep(Duration::from_millis(30)).await;
                    },
                    Way::Says(octets) => {
                        let mut first = [0; 1];
                        let _ = stream.read(&mut first).await;
                        let _ = stream.write_all(octets).await;
                        let _ = stream.shutdown().await;
                        // A reset would discard the answer.
                        let mut rest = Vec::new();
                        let _ = stream.read_to_end(&mut rest).await;
                    }
                    Way::Repeats(octets) => while stream.write_all(octets).await.is_ok() {},
                }
            });
        }
    });
    (address, task)
}

async fn failure(kind: Kind, way: Way) -> Failure {
    let (address, task) = peer(way).await;
    let asked = ask(&filter(kind, address, TIMEOUT), MESSAGE).await;
    task.abort();
    match asked {
        Asked::Unavailable(failure) => failure,
        other => panic!("{way:?}: {other:?}"),
    }
}

#[tokio::test]
async fn no_filter_there_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for kind in kinds() {
        for address in [
            Address::Tcp(address),
            Address::Unix("/nowhere/socket".into()),
        ] {
            let asked = ask(&filter(kind.clone(), address, TIMEOUT), MESSAGE).await;
            let Asked::Unavailable(failure @ Failure::Connect { .. }) = asked else {
                panic!("{asked:?}");
            };
            assert!(failure.to_string().starts_with("cannot connect to "));
        }
    }
}

#[tokio::test]
async fn a_filter_that_gives_no_whole_answer_in_time_is_late() {
    for kind in kinds() {
        let begun = Instant::now();
        let failed = failure(kind.clone(), Way::Silent).await;
        assert_eq!(failed, Failure::Late(TIMEOUT), "{kind:?}");
        assert!(begun.elapsed() < TIMEOUT * 10);
    }
}

#[tokio::test]
async fn a_filter_that_drips_ends_by_the_deadline() {
    for kind in kinds() {
        let begun = Instant::now();
        let failed = failure(kind.clone(), Way::Drips).await;
        let text = failed.to_string();
        assert!(begun.elapsed() < TIMEOUT * 10, "{kind:?}: {text}");
    }
}

#[tokio::test]
async fn a_filter_that_never_ends_is_cut() {
    for kind in kinds() {
        for octets in [
            &b"AAAAAAAAAAAAAAAA"[..],
            b"\xff\xff\xff\xff",
            b"HTTP/1.1 200 OK\r\n",
        ] {
            let begun = Instant::now();
            let failed = failure(kind.clone(), Way::Repeats(octets)).await;
            assert!(begun.elapsed() < TIMEOUT * 10, "{kind:?}: {failed}");
        }
    }
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n";
    let failed = failure(Kind::Rspamd(Rspamd::default()), Way::Says(head)).await;
    assert!(matches!(failed, Failure::Http(_)), "{failed}");
}

#[tokio::test]
#[allow(clippy::too_many_lines, reason = "a table")]
async fn every_wrong_answer_has_its_reason() {
    let rspamd = || Kind::Rspamd(Rspamd::default());
    let [_, clamd, milter] = kinds();
    let cases: &[(Kind, &[u8], &str)] = &[
        (
            rspamd(),
            b"",
            "HTTP: connection closed before message completed",
        ),
        (
            rspamd(),
            b"garbage\r\n\r\n",
            "HTTP: invalid HTTP version parsed",
        ),
        (
            rspamd(),
            b"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops",
            "expected HTTP status 200; found 500: oops",
        ),
        (
            rspamd(),
            b"HTTP/1.1 426 Upgrade\r\nContent-Length: 0\r\n\r\n",
            "expected HTTP status 200; found 426",
        ),
        (
            rspamd(),
            b"HTTP/1.1 302 F\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n",
            "expected HTTP status 200; found 302",
        ),
        (
            rspamd(),
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"act",
            "HTTP: error reading a body from connection: end of file before message length reached",
        ),
        (
            rspamd(),
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{\"act",
            "answer of rspamd: EOF while parsing a string at line 1 column 5",
        ),
        (
            rspamd(),
            b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"action\":\"\xff\"}",
            "answer of rspamd: invalid unicode code point at line 1 column 12",
        ),
        (
            rspamd(),
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            "answer of rspamd: missing field `action` at line 1 column 2",
        ),
        (
            clamd.clone(),
            b"",
            "connection closed before the end of the answer of clamd",
        ),
        (
            clamd.clone(),
            b"stream: O",
            "connection closed before the end of the answer of clamd",
        ),
        (
            clamd.clone(),
            b"stream:  FOUND\0",
            "expected \"stream: OK\" or \"stream: NAME FOUND\"; found \"stream:  FOUND\"",
        ),
        (
            clamd.clone(),
            b"INSTREAM size limit exceeded. ERROR\0",
            "the message is longer than the StreamMaxLength of clamd.conf",
        ),
        (
            clamd.clone(),
            b"\xff\xfe ERROR\0",
            "expected \"stream: OK\" or \"stream: NAME FOUND\"; found \"?? ERROR\"",
        ),
        (
            milter.clone(),
            b"",
            "connection closed before the answer to the negotiation",
        ),
        (
            milter.clone(),
            b"\0\0\0\x0dO\0\0\0\x06\0\0\0\0\0\0\0\0",
            "connection closed before the answer to CONNECT",
        ),
        (
            milter.clone(),
            b"\x7f\xff\xff\xffO",
            "milter: expected a packet of 1 to 65536 octets; found 2147483647",
        ),
        (
            milter,
            b"\0\0\0\x01c",
            "milter: expected the answer to the negotiation ('O'); found code 0x63",
        ),
    ];
    for (kind, octets, expected) in cases {
        let failed = failure(kind.clone(), Way::Says(octets.to_vec().leak())).await;
        assert_eq!(failed.to_string(), *expected);
    }
}

#[tokio::test]
async fn a_long_message_is_skipped_and_places_are_bounded() {
    let (address, task) = peer(Way::Silent).await;
    let filter = filter(Kind::Milter, address, TIMEOUT);
    let long = vec![b'x'; 1024 * 1024 + 1];
    let skipped = Asked::Skipped {
        octets: long.len(),
        size_max: long.len() - 1,
    };
    assert_eq!(ask(&filter, &long).await, skipped);
    let begun = Instant::now();
    let (a, b, c) = tokio::join!(
        ask(&filter, MESSAGE),
        ask(&filter, MESSAGE),
        ask(&filter, MESSAGE)
    );
    let late = Asked::Unavailable(Failure::Late(TIMEOUT));
    assert_eq!((&a, &b), (&late, &late));
    assert!(
        matches!(c, Asked::Unavailable(Failure::Busy(2) | Failure::Late(_))),
        "{c:?}"
    );
    assert!(begun.elapsed() < TIMEOUT * 5);
    task.abort();
}

/// clamd closes in the middle of a stream that is too long, behind an answer.
#[tokio::test]
async fn an_early_answer_counts_though_writing_failed() {
    let (address, task) = peer(Way::Says(b"stream: Eicar FOUND\0")).await;
    let [_, clamd, _] = kinds();
    let found = outcome(&filter(clamd, address, TIMEOUT), &vec![b'x'; 1024 * 1024]).await;
    assert_eq!(found.virus.as_deref(), Some("Eicar"));
    assert_eq!(
        found.verdict,
        Verdict::Reject("virus found: Eicar".to_owned())
    );
    task.abort();
}
