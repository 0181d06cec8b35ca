//! Endpoints that answer wrongly, too much or not at all.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use vere_cluster::{EtcdOptions, EtcdRegister, Register, RegisterError, Swap};

use super::{ready, register_of};
use crate::counter::KEY;
use vere_faults::etcd::Cluster;

/// What an endpoint does with a connection, once it has read a request.
#[derive(Clone)]
enum Then {
    Answer(Vec<u8>),
    /// Sends the request to a member, and closes when that has answered.
    PassOnAndClose(SocketAddr),
}

/// An endpoint that never answers as etcd does.
async fn endpoint(then: Then) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let then = then.clone();
            tokio::spawn(async move {
                let request = request(&mut stream).await;
                match then {
                    Then::Answer(octets) => drop(stream.write_all(&octets).await),
                    Then::PassOnAndClose(member) => {
                        let mut member = TcpStream::connect(member).await.unwrap();
                        member.write_all(&request).await.unwrap();
                        member.read_exact(&mut [0; 12]).await.unwrap();
                    }
                }
            });
        }
    });
    format!("http://{address}")
}

/// Reads a whole request.
async fn request(stream: &mut TcpStream) -> Vec<u8> {
    let mut octets = Vec::new();
    while stream.read_buf(&mut octets).await.unwrap() > 0 {
        let text = String::from_utf8_lossy(&octets);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_ascii_lowercase();
        let (_, length) = head.split_once("content-length: ").unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        if body.len() == length {
            break;
        }
    }
    octets
}

fn register(endpoints: &[&str]) -> Register {
    let endpoints = endpoints.iter().map(ToString::to_string).collect();
    Register::Etcd(EtcdRegister::new(EtcdOptions::new(endpoints)).unwrap())
}

#[tokio::test]
async fn only_what_was_never_sent_has_certainly_not_happened() {
    let endless = [b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &[b' '; 2 << 20]].concat();
    let wrong = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
    let no_quorum = r#"{"error":"etcdserver: request timed out","code":14}"#;
    let full = r#"{"error":"etcdserver: mvcc: database space exceeded","code":8}"#;
    let error = |status: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    };
    for (answer, unknown) in [
        (Vec::new(), true),
        (b"220 mx ESMTP\r\n".to_vec(), true),
        (endless, true),
        (wrong.as_bytes().to_vec(), true),
        (error("502 Bad Gateway", "<html>"), true),
        (error("503 Service Unavailable", no_quorum), true),
        (error("429 Too Many Requests", full), false),
    ] {
        let url = endpoint(Then::Answer(answer.clone())).await;
        let register = register(&[&url]);
        let error = register.swap(KEY, None, b"x").await.unwrap_err();
        let start = String::from_utf8_lossy(&answer[..answer.len().min(60)]);
        assert_eq!(error.maybe_applied(), unknown, "{start:?}: {error}");
        assert!(!register.read(KEY).await.unwrap_err().maybe_applied());
    }
    // A port where nobody listens.
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let error = register(&[&url]).swap(KEY, None, b"x").await.unwrap_err();
    assert!(
        matches!(&error, RegisterError::Unreachable { .. }),
        "{error}"
    );
    assert!(!error.maybe_applied(), "{error}");
}

#[tokio::test]
async fn an_endpoint_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut options = EtcdOptions::new(vec![format!("http://{}", listener.local_addr().unwrap())]);
    options.timeout = Duration::from_millis(50);
    let register = Register::Etcd(EtcdRegister::new(options).unwrap());
    let error = register.swap(KEY, None, b"x").await.unwrap_err();
    assert!(error.maybe_applied(), "{error}");
}

#[tokio::test]
async fn a_swap_that_may_have_happened_elsewhere_is_not_called_a_conflict() {
    let Some(cluster) = Cluster::start(1) else {
        return;
    };
    ready(&register_of(&cluster)).await;
    let member = cluster.endpoints().remove(0);
    // The first endpoint carries it out and says nothing, the second finds another version.
    let silent = endpoint(Then::PassOnAndClose(cluster.address(0))).await;
    let error = register(&[&silent, &member])
        .swap("group/a", None, b"x")
        .await
        .unwrap_err();
    assert!(error.maybe_applied(), "{error}");
    let there = register_of(&cluster).read("group/a").await.unwrap();
    assert_eq!(there.unwrap().value, b"x");
    // The first does nothing, the second does it: done, and the next call begins with the second.
    let dead = endpoint(Then::Answer(Vec::new())).await;
    let both = register(&[&dead, &member]);
    let swap = both.swap("group/b", None, b"x").await;
    assert!(matches!(swap, Ok(Swap::Done(_))), "{swap:?}");
    let swap = both.swap("group/b", None, b"y").await;
    assert!(matches!(swap, Ok(Swap::Conflict(Some(_)))), "{swap:?}");
}

#[tokio::test]
async fn endpoints_of_different_clusters_are_refused() {
    let (Some(mut one), Some(other)) = (Cluster::start(1), Cluster::start(1)) else {
        return;
    };
    ready(&register_of(&one)).await;
    ready(&register_of(&other)).await;
    let endpoints = [one.endpoints().remove(0), other.endpoints().remove(0)];
    let both = register(&[&endpoints[0], &endpoints[1]]);
    assert_eq!(both.read(KEY).await, Ok(None));
    one.kill(0);
    let read = both.read(KEY).await;
    assert!(
        matches!(read, Err(RegisterError::Refused { .. })),
        "{read:?}"
    );
}
