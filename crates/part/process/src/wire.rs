//! Octets between sockets and protocol machines.
//!
//! A connection that waits holds no buffer: octets are read into one that the thread's connections
//! share, and only while they are there.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::AsRawFd as _;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use nix::sys::socket::{MsgFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::error::Elapsed;

/// Octets read at once.
const READ_MAX: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_MAX].into_boxed_slice());
}

/// A connection, in the clear or within TLS.
pub trait Connection: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Connection for T {}

/// Feeds octets that have come already to `consume`, without waiting for any.
pub fn take_arrived(stream: &TcpStream, consume: impl FnOnce(&[u8])) {
    SCRATCH.with_borrow_mut(|scratch| {
        // Not through the runtime, which has not heard of a new connection's octets yet. An error will
        // be met again where the connection is read.
        match recv(stream.as_raw_fd(), scratch, MsgFlags::MSG_DONTWAIT) {
            Ok(octets) if octets > 0 => consume(&scratch[..octets.min(scratch.len())]),
            _ => {}
        }
    });
}

/// Waits for octets and feeds them to `consume`, which tells how many it took; what it left is
/// returned, to be fed before the next read. `None`: the peer has closed its side.
///
/// # Errors
/// When the connection breaks.
pub async fn read(
    connection: &mut impl Connection,
    mut consume: impl FnMut(&[u8]) -> usize,
) -> io::Result<Option<Vec<u8>>> {
    poll_fn(|context| {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            ready!(Pin::new(&mut *connection).poll_read(context, &mut buffer))?;
            let octets = buffer.filled();
            if octets.is_empty() {
                return Poll::Ready(Ok(None));
            }
            let taken = consume(octets).min(octets.len());
            Poll::Ready(Ok(Some(octets[taken..].to_vec())))
        })
    })
    .await
}

/// Writes all of `octets`; a peer that takes none of them for `patience` is given up.
///
/// # Errors
/// When the connection breaks, or the peer is given up.
pub async fn write(
    connection: &mut impl Connection,
    octets: &[u8],
    patience: Duration,
) -> io::Result<()> {
    let mut rest = octets;
    while !rest.is_empty() {
        let written = match within(patience, connection.write(rest)).await {
            Ok(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => written?,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        };
        rest = &rest[written..];
    }
    within(patience, connection.flush())
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Writes some of `octets` and tells how many; where there are none, what waits within TLS. Nothing when the peer takes
/// nothing for `patience`.
///
/// # Errors
/// When the connection breaks.
pub async fn write_some(
    connection: &mut impl Connection,
    octets: &[u8],
    patience: Duration,
) -> io::Result<Option<usize>> {
    if octets.is_empty() {
        let flushed = within(patience, connection.flush()).await;
        return flushed.ok().transpose().map(|done| done.map(|()| 0));
    }
    match within(patience, connection.write(octets)).await {
        Ok(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
        Ok(written) => written.map(Some),
        Err(_) => Ok(None),
    }
}

/// Waits for a future, at most for `patience`. Nearly every write completes at once and needs no timer, so the future
/// is polled first.
///
/// # Errors
/// When the future is not done in time.
pub async fn within<T>(patience: Duration, what: impl Future<Output = T>) -> Result<T, Elapsed> {
    let mut what = pin!(what);
    match poll_fn(|context| Poll::Ready(what.as_mut().poll(context))).await {
        Poll::Ready(done) => Ok(done),
        Poll::Pending => tokio::time::timeout(patience, what).await,
    }
}

/// Writes some of `octets` and tells how many left; what the peer says meanwhile goes to `heard`. An error
/// comes after what was heard before it.
///
/// # Errors
/// When the connection breaks or the peer closes it.
pub async fn exchange(
    connection: &mut impl Connection,
    octets: &[u8],
    mut heard: impl FnMut(&[u8]),
) -> io::Result<usize> {
    let mut written = 0;
    poll_fn(|context| {
        loop {
            // Written first: in the ordinary case nothing comes before something has left.
            match write_and_flush(connection, context, octets, &mut written) {
                Poll::Ready(Ok(())) => return Poll::Ready(Ok(written)),
                Poll::Ready(Err(error)) => {
                    let _ = listen(connection, context, &mut heard);
                    return Poll::Ready(Err(error));
                }
                Poll::Pending => {}
            }
            if ready!(listen(connection, context, &mut heard))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    })
    .await
}

/// One write, and a flush behind it: within TLS written octets may still wait for the socket.
fn write_and_flush(
    connection: &mut impl Connection,
    context: &mut Context<'_>,
    octets: &[u8],
    written: &mut usize,
) -> Poll<io::Result<()>> {
    if *written == 0 {
        *written = ready!(Pin::new(&mut *connection).poll_write(context, octets))?;
        if *written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
    }
    Pin::new(&mut *connection).poll_flush(context)
}

/// Reads once and tells how much.
fn listen(
    connection: &mut impl Connection,
    context: &mut Context<'_>,
    heard: &mut impl FnMut(&[u8]),
) -> Poll<io::Result<usize>> {
    SCRATCH.with_borrow_mut(|scratch| {
        let mut buffer = ReadBuf::new(scratch);
        ready!(Pin::new(&mut *connection).poll_read(context, &mut buffer))?;
        heard(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    })
}
