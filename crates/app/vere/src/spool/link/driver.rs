//! The driver: connects, moves octets, and wakes whoever waits.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::Instant;
use vere_spool::owner::{OwnerError, OwnerEvent};

use super::{DownReason, Inner, LinkState, Read, Shared, SpoolError};

/// Octets read at once.
const READ_MAX: usize = 256 << 10;
/// How often deadlines are looked at when nothing else happens.
const TICK: Duration = Duration::from_millis(250);

/// Why a connection came to its end.
enum End {
    Closed,
    Down(DownReason),
    /// Another owner has the group: there is no way back.
    Final(DownReason),
}

/// Runs until the link is closed or the group is taken over.
pub(super) async fn drive(shared: Rc<Shared>) {
    let mut backoff = shared.options.backoff_min;
    loop {
        let begun = Instant::now();
        let end = attempt(&shared).await;
        shared.inner.borrow_mut().owner.disconnected();
        let reason = match end {
            End::Closed => return shut(&shared),
            End::Final(reason) => {
                shared.state.send_replace(LinkState::Down(reason));
                return shut(&shared);
            }
            End::Down(reason) => reason,
        };
        shared.state.send_if_modified(|state| {
            let changed = *state != LinkState::Down(reason);
            *state = LinkState::Down(reason);
            changed
        });
        if begun.elapsed() > shared.options.backoff_max {
            backoff = shared.options.backoff_min;
        }
        if meanwhile(&shared, tokio::time::sleep(backoff))
            .await
            .is_none()
        {
            return shut(&shared);
        }
        backoff = (backoff * 2).min(shared.options.backoff_max);
    }
}

/// Nothing will be answered any more.
fn shut(shared: &Shared) {
    let mut inner = shared.inner.borrow_mut();
    inner.closed = true;
    inner.pending.fail(SpoolError::Closed);
    inner.reads.clear();
}

/// One connection, from its beginning to its end.
async fn attempt(shared: &Shared) -> End {
    let connect = TcpStream::connect(shared.options.address);
    let connect = tokio::time::timeout(shared.options.connect_timeout, connect);
    let stream = match meanwhile(shared, connect).await {
        None => return End::Closed,
        Some(Ok(Ok(stream))) => stream,
        Some(Ok(Err(_)) | Err(_)) => return End::Down(DownReason::Unreachable),
    };
    // Without it small frames wait for acknowledgements; a socket that refuses is only slower.
    let _ = stream.set_nodelay(true);
    let nonce = crate::secret::random();
    shared
        .inner
        .borrow_mut()
        .owner
        .connected(nonce, shared.clock.now());
    let end = serve(shared, &stream).await;
    match end {
        Ok(()) => End::Closed,
        Err(Broken::Io(error)) => {
            tracing::debug!(%error, "connection to the spool node broke");
            End::Down(DownReason::Cut)
        }
        Err(Broken::HandshakeTimeout) => End::Down(DownReason::Unreachable),
        Err(Broken::Owner(error)) => {
            let reason = down_reason(error);
            tracing::warn!(%error, "spool node lost");
            if error.is_final() {
                End::Final(reason)
            } else {
                End::Down(reason)
            }
        }
    }
}

enum Broken {
    Io(io::Error),
    Owner(OwnerError),
    HandshakeTimeout,
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

const fn down_reason(error: OwnerError) -> DownReason {
    match error {
        OwnerError::Closed(reason) => DownReason::Closed(reason),
        OwnerError::NotTheNode => DownReason::NotTheNode,
        OwnerError::Protocol => DownReason::Protocol,
        OwnerError::Behind => DownReason::Behind,
        OwnerError::Silent => DownReason::Silent,
    }
}

/// Moves octets until the link is closed (`Ok`) or the connection breaks.
async fn serve(shared: &Shared, stream: &TcpStream) -> Result<(), Broken> {
    let mut buffer = vec![0; READ_MAX];
    let handshake_until = Instant::now() + shared.options.connect_timeout;
    loop {
        let (wants_write, up) = {
            let mut inner = shared.inner.borrow_mut();
            if inner.closed {
                return Ok(());
            }
            inner
                .owner
                .timed_out(shared.clock.now())
                .map_err(Broken::Owner)?;
            let wants_write = write(&mut inner, stream)?;
            (wants_write, inner.owner.is_up())
        };
        if !up && Instant::now() >= handshake_until {
            return Err(Broken::HandshakeTimeout);
        }
        let interest = if wants_write {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        let wake_at = expire(shared).unwrap_or_else(|| Instant::now() + TICK);
        tokio::select! {
            ready = stream.ready(interest) => {
                if ready?.is_readable() {
                    read(shared, stream, &mut buffer)?;
                }
            }
            () = shared.work.notified() => {}
            () = tokio::time::sleep_until(wake_at.min(Instant::now() + TICK)) => {}
        }
    }
}

/// Writes what is pending. True when the socket takes no more.
fn write(inner: &mut Inner, stream: &TcpStream) -> io::Result<bool> {
    loop {
        let octets = inner.owner.output();
        if octets.is_empty() {
            return Ok(false);
        }
        match stream.try_write(octets) {
            Ok(count) => inner.owner.sent(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error),
        }
    }
}

fn read(shared: &Shared, stream: &TcpStream, buffer: &mut [u8]) -> Result<(), Broken> {
    match stream.try_read(buffer) {
        Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        Ok(count) => {
            let mut inner = shared.inner.borrow_mut();
            let result = inner.owner.input(&buffer[..count], shared.clock.now());
            // What came before the fault stands.
            while let Some(event) = inner.owner.poll_event() {
                tell(shared, &mut inner, event);
            }
            result.map_err(Broken::Owner)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn tell(shared: &Shared, inner: &mut Inner, event: OwnerEvent) {
    match event {
        OwnerEvent::Connected {
            incarnation,
            replaced,
        } => {
            if replaced {
                inner.pending.fail(SpoolError::Replaced);
            }
            // Until the gateway has accepted a new memory, a cut must not make it look accepted.
            let waits = |state: LinkState| replaced || state == LinkState::Replaced(incarnation);
            let state = if waits(*shared.state.borrow()) {
                LinkState::Replaced(incarnation)
            } else {
                LinkState::Connected(incarnation)
            };
            shared.state.send_replace(state);
        }
        OwnerEvent::Refused { txn, refusal } => inner.pending.refuse(txn, refusal),
        OwnerEvent::Acked { through } => {
            let undo = inner.pending.acknowledge(through);
            if !undo.is_empty()
                && let Ok(committed) = inner.owner.commit(undo)
            {
                inner.pending.post(committed.txn);
            }
        }
        OwnerEvent::Block { seq, block } => answer(inner, seq, Read::Block(block)),
        OwnerEvent::Stat { seq, stat } => answer(inner, seq, Read::Stat(stat)),
        OwnerEvent::Queues { seq, queues, end } => answer(inner, seq, Read::Queues(queues, end)),
    }
}

fn answer(inner: &mut Inner, seq: vere_spoolwire::Seq, read: Read) {
    if let Some(sender) = inner.reads.remove(&seq) {
        // Whoever asked may have left.
        let _ = sender.send(read);
    }
}

/// Fails commits that have waited too long; gives when to look again.
fn expire(shared: &Shared) -> Option<Instant> {
    shared.inner.borrow_mut().pending.expire(Instant::now())
}

/// Waits for something while deadlines pass; `None` when the link is closed meanwhile.
async fn meanwhile<T>(shared: &Shared, what: impl Future<Output = T>) -> Option<T> {
    let mut what = pin!(what);
    loop {
        if shared.inner.borrow().closed {
            return None;
        }
        let wake_at = expire(shared).unwrap_or_else(|| Instant::now() + TICK);
        tokio::select! {
            result = &mut what => return Some(result),
            () = shared.work.notified() => {}
            () = tokio::time::sleep_until(wake_at) => {}
        }
    }
}

/// A number that no owner had before.
pub(super) fn random_life() -> u64 {
    let octets = crate::secret::random();
    let life = octets
        .first_chunk()
        .map_or(1, |octets| u64::from_le_bytes(*octets));
    life.max(1)
}
