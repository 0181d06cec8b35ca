//! A non-blocking connection: edge-triggered reads and writes between a socket and a machine.

use std::io::{self, Read, Write};

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use super::{Buffer, Output};

/// The next step of a connection after a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// All arrived octets were read.
    Drained,
    /// There may be more.
    More,
    /// The peer has closed its side.
    Closed,
}

/// A socket registered for both directions, edge-triggered.
#[derive(Debug)]
pub(crate) struct Link {
    stream: TcpStream,
    /// An edge reported the peer's close; a short read then proves nothing.
    hung_up: bool,
}

impl Link {
    /// Registers `stream` under `token`.
    pub(crate) fn new(
        mut stream: TcpStream,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self {
            stream,
            hung_up: false,
        })
    }

    /// Records that an event reported the peer's end of stream.
    pub(crate) fn hang_up(&mut self) {
        self.hung_up = true;
    }

    /// Reads once into `input`.
    ///
    /// A read that did not fill the space has emptied the socket (epoll(7), question 9), so no second call is spent,
    /// unless an end of stream is announced.
    pub(crate) fn read(&mut self, input: &mut Buffer) -> io::Result<Readiness> {
        loop {
            let space = input.space();
            let room = space.len();
            match self.stream.read(space) {
                Ok(0) => return Ok(Readiness::Closed),
                Ok(count) => {
                    input.filled(count);
                    let drained = count < room && !self.hung_up;
                    return Ok(if drained {
                        Readiness::Drained
                    } else {
                        Readiness::More
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Readiness::Drained);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes as much of `output` as the socket accepts; returns true when nothing is left.
    pub(crate) fn write(&mut self, output: &mut Output) -> io::Result<bool> {
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

    /// Removes the socket from `registry`; a drop closes the socket.
    pub(crate) fn close(mut self, registry: &Registry) {
        // The socket is closed in any case; nobody needs the error.
        let _ = registry.deregister(&mut self.stream);
    }
}
