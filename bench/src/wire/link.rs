//! A non-blocking connection: edge-triggered reads and writes between a socket and a machine.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

use super::{Buffer, Output};

/// The next step of a connection after a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// Nothing arrived since the last read.
    Drained,
    /// Octets arrived, and there may be more.
    More,
    /// The peer has closed its side.
    Closed,
}

/// A socket registered for both directions, edge-triggered.
#[derive(Debug)]
pub(crate) struct Link {
    stream: TcpStream,
    /// There may be octets to read.
    readable: bool,
    /// An edge reported the peer's close; a short read then proves nothing.
    hung_up: bool,
    /// TLS as a client.
    tls: Option<Box<ClientConnection>>,
}

impl Link {
    /// Registers `stream` under `token`.
    ///
    /// Output consists of whole lines, so nothing is gained by a wait for more; a refusal only costs time.
    pub(crate) fn new(
        mut stream: TcpStream,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let _ = stream.set_nodelay(true);
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self {
            stream,
            readable: false,
            hung_up: false,
            tls: None,
        })
    }

    /// Begins a handshake; what is written from now on follows it.
    pub(crate) fn start_tls(
        &mut self,
        config: &Arc<ClientConfig>,
        name: &ServerName<'static>,
    ) -> io::Result<()> {
        let connection = ClientConnection::new(Arc::clone(config), name.clone());
        self.tls = Some(Box::new(connection.map_err(io::Error::other)?));
        self.flush().map(drop)
    }

    /// Whether a session of TLS was taken up again; absent before the end of the handshake.
    pub(crate) fn is_resumed(&self) -> Option<bool> {
        let kind = self.tls.as_deref()?.handshake_kind()?;
        Some(kind == HandshakeKind::Resumed)
    }

    /// Records what an event reported about input.
    pub(crate) fn note(&mut self, event: &Event) {
        let hung_up = event.is_read_closed() || event.is_error();
        self.hung_up |= hung_up;
        self.readable |= hung_up || event.is_readable();
    }

    /// Reads once into `input`, if anything may have arrived.
    ///
    /// A read that did not fill the space has emptied the socket (epoll(7), question 9), so no second call is spent,
    /// unless an end of stream is announced.
    pub(crate) fn read(&mut self, input: &mut Buffer) -> io::Result<Readiness> {
        if self.tls.is_some() {
            return self.read_tls(input);
        }
        while self.readable {
            let space = input.space();
            let room = space.len();
            match self.stream.read(space) {
                Ok(0) => return Ok(Readiness::Closed),
                Ok(count) => {
                    input.filled(count);
                    self.readable = count == room || self.hung_up;
                    return Ok(Readiness::More);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Readiness::Drained)
    }

    fn read_tls(&mut self, input: &mut Buffer) -> io::Result<Readiness> {
        while let Some(tls) = &mut self.tls {
            match tls.reader().read(input.space()) {
                Ok(0) => return Ok(Readiness::Closed),
                Ok(count) => {
                    input.filled(count);
                    return Ok(Readiness::More);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if !self.readable {
                break;
            }
            match tls.read_tls(&mut self.stream) {
                Ok(0) => return Ok(Readiness::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            tls.process_new_packets().map_err(io::Error::other)?;
            self.flush()?;
        }
        Ok(Readiness::Drained)
    }

    /// Sends encrypted octets; returns true when nothing is left.
    fn flush(&mut self) -> io::Result<bool> {
        while let Some(tls) = &mut self.tls
            && tls.wants_write()
        {
            match tls.write_tls(&mut self.stream) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Writes as much of `output` as the socket accepts; returns true when nothing is left.
    pub(crate) fn write(&mut self, output: &mut Output) -> io::Result<bool> {
        if let Some(tls) = &mut self.tls {
            let octets = tls.writer().write(output.pending())?;
            output.sent(octets);
            return Ok(self.flush()? && output.pending().is_empty());
        }
        while !output.pending().is_empty() {
            match self.stream.write(output.pending()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => output.sent(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                // A non-blocking connect is under way; an edge reports its end.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Removes the socket from `registry`, and returns the socket.
    pub(crate) fn part(mut self, registry: &Registry) -> TcpStream {
        // The socket leaves in any case; nobody needs the error.
        let _ = registry.deregister(&mut self.stream);
        self.stream
    }

    /// Removes the socket from `registry`, and ends the connection although further processes have the socket.
    pub(crate) fn end(self, registry: &Registry) {
        let stream = self.part(registry);
        // The client may be gone.
        let _ = stream.shutdown(Shutdown::Both);
    }

    /// Removes the socket from `registry`; a drop closes the socket.
    pub(crate) fn close(self, registry: &Registry) {
        drop(self.part(registry));
    }
}
