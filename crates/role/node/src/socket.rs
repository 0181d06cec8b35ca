//! A node's sockets: what is known of their readiness, and encryption where it is wanted.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::SocketAddr;

use mio::net::{TcpListener, TcpStream};
use vere_net::tls::{Line, MutualTls, TlsError};

use vere_process::encryption::Encryption;

/// Where connections come from.
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    /// For connections that come from here.
    pub(super) tls: Option<MutualTls>,
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

    /// Says where it listens.
    pub(super) fn tell(&self) {
        let tls = if self.tls.is_some() {
            "required"
        } else {
            "none"
        };
        if let Ok(address) = self.socket.local_addr() {
            tracing::info!(%address, tls, "listening for gateways");
        }
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
    pub(super) peer: SocketAddr,
    pub(super) tls: Option<Box<Line>>,
    /// The peer sends no more: what is left to read ends with that, and nothing tells of it again.
    pub(super) ended: bool,
    pub(super) readable: bool,
    pub(super) writable: bool,
    pub(super) queued: bool,
}

impl Socket {
    /// A new connection, of which nothing is known yet.
    pub(super) fn new(stream: TcpStream, peer: SocketAddr, line: Option<Line>) -> Self {
        Self {
            stream,
            peer,
            ended: false,
            tls: line.map(Box::new),
            readable: true,
            writable: true,
            queued: false,
        }
    }

    /// Whether the peer still has to show its certificate, so that nothing can be written.
    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|line| line.is_handshaking())
    }

    /// Whether the peer brings the node's next certificate. Then the connection is no longer for this loop.
    pub(super) fn take_renewal(&mut self) -> bool {
        self.tls.as_mut().is_some_and(|line| line.take_renewal())
    }

    /// Reads as the socket does: what is read is plaintext.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.stream.read(buffer),
            Some(line) => {
                let result = line.read(&mut self.stream, buffer);
                if let Err(error) = &result {
                    tell(self.peer, line, error);
                }
                result
            }
        }
    }

    /// Whether nothing is left to read after `count` octets came where there was room for `room`:
    /// what comes next makes a separate event.
    pub(super) fn is_drained(&self, count: usize, room: usize) -> bool {
        // Plaintext may be left of what the socket gave.
        self.tls.is_none() && !self.ended && count < room
    }

    /// Writes as the socket does; [`Self::flush`] has to follow.
    pub(super) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.stream.write_vectored(slices),
            Some(line) => line.write(&mut self.stream, slices),
        }
    }

    /// Writes what is encrypted already.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(line) => line.flush(&mut self.stream),
        }
    }

    /// Tells the peer; the log gets the reason where the name of the peer was not proven.
    pub(super) fn part(&mut self, in_time: bool) {
        if let Some(line) = &mut self.tls {
            if !in_time && line.is_handshaking() {
                let peer = self.peer;
                tracing::warn!(%peer, "connection refused: no TLS handshake in time; does it use TLS?");
            }
            line.close(&mut self.stream);
        }
    }
}

/// Says why an encrypted connection ended.
fn tell(peer: SocketAddr, line: &Line, error: &io::Error) {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
        io::ErrorKind::InvalidData => tracing::warn!(%peer, "connection refused: {error}"),
        _ if line.is_handshaking() => {
            tracing::warn!(%peer, %error, "connection broke in the TLS handshake");
        }
        _ => {}
    }
}
