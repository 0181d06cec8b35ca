//! Helpers of the tests.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpListener;
use vere_osi::association::Mode;
use vere_osi::session::Exception;
use vere_x400::{MtaBindError, MtaBindResult};

use crate::*;

pub(super) const NORMAL: Mode = Mode::Normal;
pub(super) const X410: Mode = Mode::X410(12);

pub(super) fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Bounds that no test waits for on purpose.
pub(super) fn patient() -> Bounds {
    let long = Duration::from_secs(20);
    Bounds {
        close: Duration::from_secs(1),
        open: long,
        transfer: long,
        write: long,
        turn: long,
        hold: long,
        idle: long,
        ..Bounds::default()
    }
}

/// Bounds that run out at once.
pub(super) fn hasty() -> Bounds {
    Bounds {
        connect: millis(300),
        open: millis(500),
        decide: millis(300),
        transfer: millis(500),
        progress: 16_384,
        write: millis(500),
        turn: millis(500),
        hold: millis(500),
        idle: millis(800),
        close: millis(100),
    }
}

/// Such bounds, but time to open the association.
pub(super) fn hasty_when_open() -> Bounds {
    Bounds {
        open: patient().open,
        ..hasty()
    }
}

pub(super) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

pub(super) fn peer(address: SocketAddr, mode: Mode, bounds: &Bounds) -> Peer {
    Peer {
        mode,
        bounds: bounds.clone(),
        ..Peer::new(vec![address], introduction("mta-a", b"secret").unwrap())
    }
}

pub(super) fn responder(bounds: &Bounds) -> Responder {
    Responder {
        bounds: bounds.clone(),
        ..Responder::default()
    }
}

pub(super) fn decide(asked: &Asked) -> Decision {
    match asked.name().as_deref() == Some("mta-a") && asked.has_password(b"secret") {
        true => Decision::Accept(MtaBindResult::default()),
        false => Decision::Reject(MtaBindError::AuthenticationError),
    }
}

pub(super) async fn accept(
    listener: &TcpListener,
    responder: &Responder,
) -> Result<OpenAssociation, NotOpen> {
    let (stream, address) = listener.accept().await.unwrap();
    stream.set_nodelay(true).unwrap();
    let remote = Remote { address, tls: None };
    let caller = respond(responder, Box::new(stream), remote).await?;
    let decision = decide(caller.asked());
    caller.answer(async { decision }).await
}

/// An open association, as both sides see it.
pub(super) async fn pair(mode: Mode, bounds: &Bounds) -> (OpenAssociation, OpenAssociation) {
    let (listener, address) = listen().await;
    let (peer, responder) = (peer(address, mode, bounds), responder(bounds));
    let (opened, accepted) = tokio::join!(
        initiate(&peer, Names::new("mta-a").next()),
        accept(&listener, &responder)
    );
    (opened.unwrap().0, accepted.unwrap())
}

/// An APDU that shows its number, its length, and what is lost of it. Tag [0] of MTS-APDU, so that nothing takes it for less.
pub(super) fn apdu(number: u64, length: usize) -> Vec<Bytes> {
    let filler: Vec<u8> = (0..length)
        .map(|place| u8::try_from(place % 251).unwrap())
        .collect();
    let mut value = number.to_be_bytes().to_vec();
    value.extend(filler);
    let mut head = vec![0xA0, 0x84];
    head.extend(u32::try_from(value.len() + 6).unwrap().to_be_bytes());
    head.extend([0x04, 0x84]);
    head.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
    vec![head.into(), value.into()]
}

pub(super) fn joined(pieces: &[Bytes]) -> Vec<u8> {
    pieces.concat()
}

/// The number of an APDU, whose octets are looked at.
pub(super) fn number(pieces: &[Bytes]) -> u64 {
    let octets = joined(pieces);
    let number = u64::from_be_bytes(octets[12..20].try_into().unwrap());
    assert_eq!(
        octets,
        joined(&apdu(number, octets.len() - 20)),
        "APDU {number}"
    );
    number
}

/// What a receiver has confirmed.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) history: History,
    pub(super) seen: HashMap<u64, u32>,
    pub(super) resumed: u32,
    pub(super) again: u32,
    pub(super) busy: u32,
}

pub(super) type SharedBook = Arc<Mutex<Book>>;

pub(super) fn book() -> SharedBook {
    Arc::new(Mutex::new(Book {
        history: History::new(1_000),
        seen: HashMap::new(),
        resumed: 0,
        again: 0,
        busy: 0,
    }))
}

/// Receives until the association ends, and gives the turn whenever it is wanted.
pub(super) async fn sink(mut open: OpenAssociation, book: SharedBook) -> End {
    loop {
        match open.next().await {
            Next::Incoming(activity) => {
                if !book.lock().unwrap().history.begun(&activity) {
                    open.abort().await;
                    return End::Closed;
                }
                take(&mut open, &book, activity, Partial::default()).await;
            }
            Next::Resume(resumption) => {
                let known = book.lock().unwrap().history.resumed(&resumption);
                match known {
                    Known::Received => {
                        book.lock().unwrap().again += 1;
                        open.already_received().unwrap();
                    }
                    Known::Unknown => {
                        let unknown = Exception::UnrecoverableProceduralError;
                        open.refuse(unknown).await.unwrap();
                    }
                    Known::Busy => {
                        book.lock().unwrap().busy += 1;
                        open.abort().await;
                        return End::Closed;
                    }
                    Known::Partial(partial) => {
                        book.lock().unwrap().resumed += u32::from(partial.length() > 0);
                        open.continue_from(partial.length()).unwrap();
                        take(&mut open, &book, resumption.new, partial).await;
                    }
                }
            }
            Next::TurnWanted(_) => open.give_turn().await.unwrap(),
            Next::Ended(end) => return end,
            _ => {}
        }
    }
}

async fn take(open: &mut OpenAssociation, book: &SharedBook, activity: Activity, begun: Partial) {
    match open.collect(begun, 64 << 20).await {
        Ok(pieces) => {
            let number = number(&pieces);
            {
                let mut book = book.lock().unwrap();
                book.history.received(&activity);
                *book.seen.entry(number).or_default() += 1;
            }
            let _broken = open.confirm().await;
        }
        Err(NotReceived::Broken(partial, _)) => {
            book.lock().unwrap().history.broke(&activity, partial)
        }
        Err(NotReceived::Discarded) => book.lock().unwrap().history.forget(&activity),
        Err(other) => panic!("{other:?}"),
    }
}

/// Small numbers, the same in each run of a seed.
#[derive(Debug, Clone)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// What happens to one direction of a proxied connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Octets that pass.
    pub(super) octets: usize,
    /// The connection is cut behind them; else it falls silent.
    pub(super) cut: bool,
    /// One octet passes per pace, behind `octets`, instead of silence.
    pub(super) pace: Option<Duration>,
}

pub(super) const ALL: Plan = Plan {
    octets: usize::MAX,
    cut: false,
    pace: None,
};

/// A proxy before `target`, whose connections go as planned: to the target, from the target.
pub(super) async fn proxy(
    target: SocketAddr,
    mut plan: impl FnMut() -> [Plan; 2] + Send + 'static,
) -> SocketAddr {
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let [there, back] = plan();
            tokio::spawn(async move {
                let far = tokio::net::TcpStream::connect(target).await.unwrap();
                near.set_nodelay(true).unwrap();
                far.set_nodelay(true).unwrap();
                let (near_read, near_write) = near.into_split();
                let (far_read, far_write) = far.into_split();
                tokio::select! {
                    () = carry(near_read, far_write, there) => {}
                    () = carry(far_read, near_write, back) => {}
                }
            });
        }
    });
    address
}

/// Returns when the connection is to be closed.
async fn carry(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    plan: Plan,
) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut left = plan.octets;
    let mut buffer = vec![0; 65_536];
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        let now = count.min(left);
        left -= now;
        if to.write_all(&buffer[..now]).await.is_err() {
            return;
        }
        if now < count && plan.cut {
            return;
        }
        if let Some(pace) = plan.pace {
            for octet in &buffer[now..count] {
                tokio::time::sleep(pace).await;
                if to.write_all(&[*octet]).await.is_err() {
                    return;
                }
            }
        }
    }
}
