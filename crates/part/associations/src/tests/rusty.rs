//! Transport, session, presentation and ACSE of `vere-osi` against another implementation: the crates `rusty-tpkt`,
//! `rusty-cotp`, `rusty-cosp`, `rusty-copp` and `rusty-acse`, in both roles over loopback.
//!
//! The machine of our transport takes part as it is. Their session has the kernel and full duplex alone, while ours has the
//! functional units of RTSE, which are half-duplex: the machines of both can only refuse each other (`session.rs` shows that
//! they do). From the session up, the tests drive our encoders and decoders over our transport.

mod acse;
mod session;
mod transport;

use bytes::Bytes;
use rusty_tpkt::TcpTpktConnection;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use vere_ber::Pieces;
use vere_osi::session::{Enclosure, Spdu};
use vere_osi::transport::{TPDU_SIZE_MAX, Transport, TransportConfig, TransportError};
use vere_osi::transport::{TPKT_LEN, TransportEvent};

use super::help::listen;

/// The reference of our transport connections.
const REFERENCE: u16 = 0x1234;
/// The header of a data TPDU of class 0.
const DATA_HEADER: usize = 3;

/// Octets whose order shows.
fn octets(length: usize) -> Vec<u8> {
    let octet = |place: usize| u8::try_from(place % 251).unwrap();
    (0..length).map(octet).collect()
}

/// Both ends of a TCP connection. `TcpTpktServer` does not tell its port, so the end of the other implementation is always
/// the one that connects; who begins above TCP is a question of the layers there.
async fn tcp() -> (TcpStream, TcpTpktConnection) {
    let (listener, address) = listen().await;
    let (accepted, connected) =
        tokio::join!(listener.accept(), TcpTpktConnection::connect(address));
    (accepted.unwrap().0, connected.unwrap())
}

/// Lengths of the data TPDUs in octets that pass, and their end marks.
#[derive(Debug, Default)]
struct Tap {
    waiting: Vec<u8>,
    passed: Vec<(usize, bool)>,
}

impl Tap {
    fn pass(&mut self, octets: &[u8]) {
        self.waiting.extend_from_slice(octets);
        let mut place = 0;
        while let Some([3, 0, high, low, _, code, mark]) = self.waiting.get(place..place + 7) {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            if self.waiting.len() < place + length {
                break;
            }
            if *code == 0xF0 {
                self.passed.push((length - TPKT_LEN, mark & 0x80 != 0));
            }
            place += length;
        }
        self.waiting.drain(..place);
    }
}

/// A transport connection of ours over TCP.
struct Wire {
    stream: TcpStream,
    transport: Transport,
    sent: Tap,
    received: Tap,
}

impl Wire {
    fn new(stream: TcpStream, tpdu_size: u32) -> Self {
        let config = TransportConfig {
            reference: REFERENCE,
            tpdu_size,
        };
        Self {
            stream,
            transport: Transport::new(config),
            sent: Tap::default(),
            received: Tap::default(),
        }
    }

    /// An open connection that this side asks for.
    async fn open(stream: TcpStream) -> Self {
        let mut wire = Self::new(stream, TPDU_SIZE_MAX);
        wire.transport.connect(None, None);
        let event = wire.event().await;
        assert!(matches!(event, TransportEvent::ConnectConfirm(_)));
        wire
    }

    /// An open connection that the other side asks for.
    async fn answer(stream: TcpStream) -> Self {
        let mut wire = Self::new(stream, TPDU_SIZE_MAX);
        let event = wire.event().await;
        assert!(matches!(event, TransportEvent::ConnectIndication(_)));
        wire.transport.accept();
        wire.flush().await;
        wire
    }

    async fn flush(&mut self) {
        let octets = self.transport.take_output().into_bytes();
        self.sent.pass(&octets);
        self.stream.write_all(&octets).await.unwrap();
    }

    async fn event(&mut self) -> TransportEvent {
        loop {
            if let Some(event) = self.transport.poll() {
                return event;
            }
            self.flush().await;
            let mut octets = Vec::with_capacity(65_536);
            match self.stream.read_buf(&mut octets).await {
                Ok(0) | Err(_) => self.transport.ended(),
                Ok(_) => {
                    self.received.pass(&octets);
                    self.transport.receive(octets.into());
                }
            }
        }
    }

    async fn send(&mut self, tsdu: impl Into<Pieces>) {
        self.transport.send(tsdu.into(), true);
        self.flush().await;
    }

    async fn receive(&mut self) -> Bytes {
        let mut tsdu = Vec::new();
        loop {
            match self.event().await {
                TransportEvent::Data { octets, end } => {
                    tsdu.extend_from_slice(&octets);
                    if end {
                        return tsdu.into();
                    }
                }
                other => panic!("expected data; found {other:?}"),
            }
        }
    }

    async fn expect_end(&mut self) {
        let ended = TransportEvent::Disconnected(TransportError::Network);
        assert_eq!(self.event().await, ended);
    }

    async fn send_spdu(&mut self, spdu: &Spdu) {
        self.send(spdu.write()).await;
    }

    async fn receive_spdu(&mut self) -> Spdu {
        let tsdu = self.receive().await;
        assert_eq!(Spdu::length(&tsdu), Some(tsdu.len()));
        Spdu::read(&tsdu, false).unwrap()
    }

    /// S-DATA request, in a TSDU for each part.
    async fn send_data(&mut self, data: &[u8], part: usize) {
        let parts: Vec<&[u8]> = match data {
            [] => vec![&[]],
            data => data.chunks(part).collect(),
        };
        let last = parts.len() - 1;
        for (number, part) in parts.into_iter().enumerate() {
            let enclosure = Enclosure {
                begin: number == 0,
                end: number == last,
            };
            let mut tsdu = Pieces::from(Spdu::DataTransfer(enclosure).write());
            tsdu.push(Bytes::copy_from_slice(part));
            self.send(tsdu).await;
        }
    }

    /// S-DATA indication, and the lengths of its TSDUs.
    async fn receive_data(&mut self) -> (Vec<u8>, Vec<usize>) {
        let (mut data, mut lengths) = (Vec::new(), Vec::new());
        loop {
            let mut tsdu = self.receive().await;
            lengths.push(tsdu.len());
            let token = tsdu.split_to(Spdu::length(&tsdu).unwrap());
            assert!(
                matches!(Spdu::read(&token, false), Ok(Spdu::GiveTokens(none)) if none.is_none())
            );
            let header = tsdu.split_to(Spdu::length(&tsdu).unwrap());
            let Ok(Spdu::DataTransfer(enclosure)) = Spdu::read(&header, true) else {
                panic!("expected DATA TRANSFER; found {header:?}");
            };
            assert_eq!(enclosure.begin, data.is_empty());
            data.extend_from_slice(&tsdu);
            if enclosure.end {
                return (data, lengths);
            }
        }
    }
}
