//! The connection of a client: the client's own, or the plaintext of an encrypted connection by a thread or by the kernel.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use vere_net::last::write_last;
use vere_net::tls::kernel;

/// A connection.
#[derive(Debug)]
pub(crate) enum Link {
    /// To the client.
    Clear(TcpStream),
    /// To a thread of TLS.
    Encrypted(UnixStream),
    /// To the client, encrypted by the kernel.
    Kernel(TcpStream),
}

impl Link {
    /// What a readiness queue takes.
    pub(crate) fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Clear(stream) | Self::Kernel(stream) => stream,
            Self::Encrypted(stream) => stream,
        }
    }

    /// Ends both directions, also of duplicates.
    pub(crate) fn shutdown(&self) {
        // The client may be gone.
        let _ = match self {
            Self::Clear(stream) | Self::Kernel(stream) => stream.shutdown(Shutdown::Both),
            Self::Encrypted(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// Writes octets; behind the last of them the writer's side of the connection ends. Returns the number of octets written.
    ///
    /// # Errors
    /// Those of the socket.
    pub(crate) fn write_last(&self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(_) | Self::Encrypted(_) => write_last(self, octets),
            Self::Kernel(stream) => kernel::write_last(stream, octets),
        }
    }
}

impl Read for Link {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) => stream.read(octets),
            Self::Encrypted(stream) => stream.read(octets),
            Self::Kernel(stream) => kernel::read(stream, octets),
        }
    }
}

impl Write for Link {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) | Self::Kernel(stream) => stream.write(octets),
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
            Self::Clear(stream) | Self::Kernel(stream) => stream.as_fd(),
            Self::Encrypted(stream) => stream.as_fd(),
        }
    }
}
