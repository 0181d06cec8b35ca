//! Milters made here: connections, and a filter that works on for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{MESSAGE, ask, filter, outcome};
use crate::{Address, Asked, Failure, Filter, Kind, Verdict};

const NEGOTIATED: &[u8] = b"\0\0\0\x0dO\0\0\0\x06\0\0\x01\xff\0\0\0\0";
const CONTINUE: &[u8] = b"\0\0\0\x01c";

/// A milter that answers the end of a message with `end`; counts connections.
async fn milter(end: &'static [u8]) -> (Filter, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve(stream, end));
        }
    });
    (
        filter(Kind::Milter, address, Duration::from_millis(800)),
        connections,
    )
}

async fn serve(mut stream: TcpStream, end: &'static [u8]) {
    while let Ok(length) = stream.read_u32().await {
        let mut packet = vec![0; length as usize];
        stream.read_exact(&mut packet).await.unwrap();
        let answer = match packet[0] {
            b'O' => NEGOTIATED,
            b'E' => end,
            b'D' | b'Q' => continue,
            _ => CONTINUE,
        };
        let _ = stream.write_all(answer).await;
    }
}

#[tokio::test]
async fn each_message_has_a_connection() {
    let (filter, connections) = milter(CONTINUE).await;
    for _ in 0..3 {
        assert_eq!(outcome(&filter, MESSAGE).await.verdict, Verdict::Accept);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_filter_that_works_on_for_ever_is_late() {
    let progress = b"\0\0\0\x01p".repeat(100).leak();
    let (filter, _) = milter(progress).await;
    let late = Asked::Unavailable(Failure::Late(Duration::from_millis(800)));
    assert_eq!(ask(&filter, MESSAGE).await, late);
}
