//! An end of a connection, as associations use connections.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::network::{Read, SharedNetwork, locked};

/// An end of a connection. Its drop closes the connection.
#[derive(Debug)]
pub(super) struct SimStream {
    network: SharedNetwork,
    wire: usize,
    /// 0: the end that has opened the connection.
    end: usize,
}

/// Both ends of a new connection, and the number of the connection.
pub(super) fn pair(network: &SharedNetwork, from: usize, to: usize) -> (usize, [SimStream; 2]) {
    let wire = locked(network).connect(from, to);
    let end = |end| SimStream {
        network: Arc::clone(network),
        wire,
        end,
    };
    (wire, [end(0), end(1)])
}

impl Drop for SimStream {
    fn drop(&mut self) {
        locked(&self.network).close(self.wire, self.end);
    }
}

impl AsyncRead for SimStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut network = locked(&self.network);
        match network.read(self.wire, self.end, buffer.remaining(), context.waker()) {
            Read::Octets(octets) => {
                buffer.put_slice(&octets);
                Poll::Ready(Ok(()))
            }
            Read::End => Poll::Ready(Ok(())),
            Read::Reset => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            Read::Nothing => Poll::Pending,
        }
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        match locked(&self.network).write(self.wire, self.end, octets) {
            true => Poll::Ready(Ok(octets.len())),
            false => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        locked(&self.network).finish(self.wire, self.end);
        Poll::Ready(Ok(()))
    }
}
