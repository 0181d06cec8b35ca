//! A node's sockets: what is known of their readiness, and encryption where it is wanted.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::SocketAddr;

use mio::net::{TcpListener, TcpStream};
use vere_net::tls::{Line, MutualTls, TlsError};

use super::encryption::Encryption;

/// Where connections come from.
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    /// For connections that come from here.
    tls: Option<MutualTls>,
}

/// A connection, who made it, and what encrypts it.
type Accepted = (TcpStream, SocketAddr, Result<Option<Line>, TlsError>);

impl Listener {
    pub(super) fn new(
        socket: std::net::TcpListener,
        encryption: Option<&Encryption>,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Self {
            socket: TcpListener::from_std(socket),
            tls: encryption
                .and_then(|wanted| wanted.covers(address))
                .cloned(),
        })
    }

    pub(super) fn accept(&self) -> io::Result<Accepted> {
        let (stream, peer) = self.socket.accept()?;
        let line = self.tls.as_ref().map(MutualTls::accept).transpose();
        Ok((stream, peer, line))
    }
}

/// A socket and what is known of its readiness.
pub(super) struct Socket {
    pub(super) stream: TcpStream,
    pub(super) tls: Option<Box<Tls>>,
    pub(super) readable: bool,
    pub(super) writable: bool,
    pub(super) queued: bool,
}

/// An encrypted connection.
pub(super) struct Tls {
    line: Line,
    peer: SocketAddr,
}

impl Socket {
    /// A new connection, of which nothing is known yet.
    pub(super) fn new(stream: TcpStream, peer: SocketAddr, line: Option<Line>) -> Self {
        Self {
            stream,
            tls: line.map(|line| Box::new(Tls { line, peer })),
            readable: true,
            writable: true,
            queued: false,
        }
    }

    /// Whether the peer still has to show its certificate, so that nothing can be written.
    pub(super) fn is_handshaking(&self) -> bool {
        self.tls
            .as_ref()
            .is_some_and(|tls| tls.line.is_handshaking())
    }

    /// Reads as the socket does: what is read is plaintext.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.stream.read(buffer),
            Some(tls) => {
                let result = tls.line.read(&mut self.stream, buffer);
                if let Err(error) = &result {
                    tls.tell(error);
                }
                result
            }
        }
    }

    /// Whether nothing is left to read after `count` octets came where there was room for `room`:
    /// what comes next makes an event of its own.
    pub(super) fn is_drained(&self, count: usize, room: usize) -> bool {
        // Plaintext may be left of what the socket gave.
        self.tls.is_none() && count < room
    }

    /// Writes as the socket does; [`Self::flush`] has to follow.
    pub(super) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.stream.write_vectored(slices),
            Some(tls) => tls.line.write(&mut self.stream, slices),
        }
    }

    /// Writes what is encrypted already.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(tls) => tls.line.flush(&mut self.stream),
        }
    }

    /// Tells the peer, and whoever reads the log when it was not proven who it is.
    pub(super) fn part(&mut self, in_time: bool) {
        if let Some(tls) = &mut self.tls {
            if !in_time && tls.line.is_handshaking() {
                let peer = tls.peer;
                tracing::warn!(%peer, "connection refused: no TLS handshake in time; does it use TLS?");
            }
            tls.line.close(&mut self.stream);
        }
    }
}

impl Tls {
    fn tell(&self, error: &io::Error) {
        let peer = self.peer;
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
            io::ErrorKind::InvalidData => tracing::warn!(%peer, "connection refused: {error}"),
            _ if self.line.is_handshaking() => {
                tracing::warn!(%peer, %error, "connection broke in the TLS handshake");
            }
            _ => {}
        }
    }
}
