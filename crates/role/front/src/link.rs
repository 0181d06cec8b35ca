//! The connection of a client: the client's own, or the plaintext of an encrypted connection.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};

/// A connection.
#[derive(Debug)]
pub(crate) enum Link {
    /// To the client.
    Clear(TcpStream),
    /// To a thread of TLS.
    Encrypted(UnixStream),
}

impl Link {
    /// What a readiness queue takes.
    pub(crate) fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Clear(stream) => stream,
            Self::Encrypted(stream) => stream,
        }
    }

    /// Ends both directions, also of duplicates.
    pub(crate) fn shutdown(&self) {
        // The client may be gone.
        let _ = match self {
            Self::Clear(stream) => stream.shutdown(Shutdown::Both),
            Self::Encrypted(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Link {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) => stream.read(octets),
            Self::Encrypted(stream) => stream.read(octets),
        }
    }
}

impl Write for Link {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) => stream.write(octets),
            Self::Encrypted(stream) => stream.write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Clear(stream) => stream.as_fd(),
            Self::Encrypted(stream) => stream.as_fd(),
        }
    }
}
