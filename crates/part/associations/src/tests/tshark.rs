//! tshark as a judge of the octets of real associations.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use vere_capture::Capture;

use super::help::*;
use crate::*;

type Wire = Arc<Mutex<Vec<(bool, Vec<u8>)>>>;

/// A connection of which every octet is written down: with true those that this side has sent.
#[derive(Debug)]
struct Recorded {
    stream: TcpStream,
    wire: Wire,
}

impl AsyncRead for Recorded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        let octets = into.filled()[before..].to_vec();
        self.wire.lock().unwrap().push((false, octets));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Recorded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.stream).poll_write(context, octets))?;
        self.wire
            .lock()
            .unwrap()
            .push((true, octets[..count].to_vec()));
        Poll::Ready(Ok(count))
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

async fn recorded_peer(
    address: std::net::SocketAddr,
    bind: &str,
    wire: &Wire,
) -> Option<OpenAssociation> {
    let stream = TcpStream::connect(address).await.unwrap();
    let recorded = Recorded {
        stream,
        wire: wire.clone(),
    };
    let mut peer = peer(address, NORMAL, &patient());
    peer.bind = introduction("mta-a", bind.as_bytes()).unwrap();
    peer.called.transport = Some(Bytes::from_static(b"P1"));
    let remote = Remote { address, tls: None };
    let opened = open_over(
        &peer,
        Box::new(recorded),
        remote,
        Names::new("mta-a").next(),
    )
    .await;
    opened.ok().map(|(open, _)| open)
}

/// A whole association with messages of these lengths, a turn, and a release.
async fn whole(lengths: &[usize]) -> Vec<(bool, Vec<u8>)> {
    let (listener, address) = listen().await;
    let wire = Wire::default();
    let serving = async {
        let open = accept(&listener, &responder(&patient())).await.unwrap();
        receive_all(open).await
    };
    let sending = async {
        let mut open = recorded_peer(address, "secret", &wire).await.unwrap();
        for length in lengths {
            assert!(open.transfer(&[message(*length)]).await.is_transferred());
        }
        open.give_turn().await.unwrap();
        open.please_turn(1).await.unwrap();
        assert!(matches!(open.next().await, Next::Turn));
        open.release().await
    };
    let (received, end) = tokio::join!(serving, sending);
    assert_eq!((received, end), (lengths.len(), End::Released));
    let wire = wire.lock().unwrap();
    wire.clone()
}

async fn receive_all(mut open: OpenAssociation) -> usize {
    let mut received = 0;
    loop {
        match open.next().await {
            Next::Incoming(_) => {
                open.collect(Partial::default(), 1 << 20).await.unwrap();
                open.confirm().await.unwrap();
                received += 1;
            }
            Next::TurnWanted(_) => open.give_turn().await.unwrap(),
            Next::Ended(_) => return received,
            _ => {}
        }
    }
}

async fn refused() -> Vec<(bool, Vec<u8>)> {
    let (listener, address) = listen().await;
    let wire = Wire::default();
    let responder = responder(&patient());
    let (accepted, opened) = tokio::join!(
        accept(&listener, &responder),
        recorded_peer(address, "wrong", &wire)
    );
    assert!(accepted.is_err() && opened.is_none());
    let wire = wire.lock().unwrap();
    wire.clone()
}

fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut value = vec![tag, 0x84];
    value.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
    value.extend(content);
    value
}

/// A message of X.411 with an interpersonal message of one IA5 text of this length.
fn message(length: usize) -> Bytes {
    let domain = b"\x61\x04\x13\x02No\x62\x03\x13\x01 ".as_slice();
    let name = value(0x60, &[&value(0x30, &[domain, b"\x83\x01A"])]);
    let identifier = value(0x64, &[&value(0x63, &[domain]), b"\x16\x05msg-1"]);
    let passed = value(0x31, &[b"\x80\x0d261129190000Z\x82\x01\x00"]);
    let trace = value(0x69, &[&value(0x30, &[&value(0x63, &[domain]), &passed])]);
    let recipient = value(0x31, &[&name, b"\x80\x01\x01\x81\x02\x00\x98"]);
    let recipients = value(0xa2, &[&recipient]);
    let envelope = value(
        0x31,
        &[&identifier, &name, b"\x46\x01\x02", &trace, &recipients],
    );
    let text = value(0x16, &[&vec![b'x'; length]]);
    let body = value(0x30, &[&value(0xa0, &[b"\x31\x00", &text])]);
    let content = value(0xa0, &[b"\x31\x05\x6b\x03\x13\x011", &body]);
    value(0xa0, &[&envelope, &value(0x04, &[&content])]).into()
}

#[tokio::test]
async fn tshark_finds_no_fault() {
    let mut capture = Capture::new();
    capture.add(&whole(&[0, 5, 700]).await);
    capture.add(&whole(&[40_000, 1, 130_000]).await);
    capture.add(&refused().await);
    let Some(complaints) = capture.complaints() else {
        return;
    };
    assert!(complaints.is_empty(), "{complaints:#?}");
    let columns = ["_ws.col.Protocol", "_ws.col.Info"];
    let lines = capture.fields(&[], &columns).unwrap();
    for part in ["P1", "Turn-Please (1)", "Bind"] {
        let mut values = lines.iter().flatten();
        assert!(
            values.any(|value| value.contains(part)),
            "{part} in {lines:?}"
        );
    }
}
