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
    Kernel {
        stream: TcpStream,
        /// Whether close_notify was said.
        has_said_end: bool,
    },
}

impl Link {
    /// A client whose octets the kernel encrypts.
    pub(crate) const fn by_kernel(stream: TcpStream) -> Self {
        Self::Kernel {
            stream,
            has_said_end: false,
        }
    }

    /// Whether the kernel encrypts, so that a read may end with a record though more octets are there.
    pub(crate) const fn is_encrypted_by_kernel(&self) -> bool {
        matches!(self, Self::Kernel { .. })
    }

    /// The socket, for a readiness queue.
    pub(crate) fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Clear(stream) | Self::Kernel { stream, .. } => stream,
            Self::Encrypted(stream) => stream,
        }
    }

    /// Ends both directions, also of duplicates.
    pub(crate) fn shutdown(&self) {
        // The client may be gone.
        let _ = match self {
            Self::Clear(stream) | Self::Kernel { stream, .. } => stream.shutdown(Shutdown::Both),
            Self::Encrypted(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// Says the end by close_notify, once, to a client whose octets the kernel encrypts. A connection that a worker has is ended by the
    /// worker, so that the drop of a link says nothing.
    pub(crate) fn close(&mut self) {
        if let Self::Kernel {
            stream,
            has_said_end,
        } = self
            && !std::mem::replace(has_said_end, true)
        {
            kernel::close_notify(stream);
        }
    }

    /// Writes octets; behind the last of them the writer's side of the connection ends. Returns the number of octets written.
    ///
    /// # Errors
    /// Errors of the socket.
    pub(crate) fn write_last(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(_) | Self::Encrypted(_) => write_last(self, octets),
            Self::Kernel {
                stream,
                has_said_end,
            } => {
                let written = kernel::write_last(stream, octets)?;
                *has_said_end |= written == octets.len();
                Ok(written)
            }
        }
    }
}

impl Read for Link {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) => stream.read(octets),
            Self::Encrypted(stream) => stream.read(octets),
            Self::Kernel { stream, .. } => kernel::read(stream, octets),
        }
    }
}

impl Write for Link {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) | Self::Kernel { stream, .. } => stream.write(octets),
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
            Self::Clear(stream) | Self::Kernel { stream, .. } => stream.as_fd(),
            Self::Encrypted(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream as StdTcpStream};

    use super::*;

    /// A link by the kernel, and its client. The socket has no keys, so that the text of an alert arrives in the clear.
    fn link() -> (Link, StdTcpStream) {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = StdTcpStream::connect(port.local_addr().unwrap()).unwrap();
        let (here, _) = port.accept().unwrap();
        (Link::by_kernel(TcpStream::from_std(here)), client)
    }

    fn said(mut client: StdTcpStream) -> Vec<u8> {
        let mut said = Vec::new();
        client.read_to_end(&mut said).unwrap();
        said
    }

    const CLOSE_NOTIFY: &[u8] = &[1, 0];

    #[test]
    fn close_notify_is_said_once() {
        let (mut link, client) = link();
        link.close();
        link.close();
        drop(link);
        assert_eq!(said(client), CLOSE_NOTIFY);
    }

    #[test]
    fn last_words_have_close_notify_behind_them_and_no_second_one() {
        let (mut link, client) = link();
        assert_eq!(link.write_last(b"421 bye\r\n").unwrap(), 9);
        link.close();
        drop(link);
        assert_eq!(said(client), [b"421 bye\r\n", CLOSE_NOTIFY].concat());
    }

    /// A worker that has a duplicate says the end.
    #[test]
    fn a_link_that_is_dropped_says_nothing() {
        let (link, client) = link();
        drop(link);
        assert_eq!(said(client), b"");
    }
}
