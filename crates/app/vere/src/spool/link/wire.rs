//! A connection to a node, encrypted where it is wanted.

use std::io::{self, IoSlice, Read, Write};

use tokio::io::Interest;
use tokio::net::TcpStream;
use vere_net::tls::Line;
use vere_units::Timestamp;

/// A socket, and TLS on it or not.
pub(super) struct Wire {
    pub(super) stream: TcpStream,
    line: Option<Line>,
}

impl Wire {
    pub(super) const fn new(stream: TcpStream, line: Option<Line>) -> Self {
        Self { stream, line }
    }

    pub(super) const fn is_encrypted(&self) -> bool {
        self.line.is_some()
    }

    /// When the certificate of the node ends, once it has shown it.
    pub(super) fn peer_certificate_end(&self) -> Option<Timestamp> {
        self.line.as_ref()?.peer_certificate_end()
    }

    /// Reads what is there, as [`TcpStream::try_read`].
    pub(super) fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.line {
            None => {
                let count = self.stream.try_read(buffer)?;
                if count < buffer.len() {
                    self.note_empty();
                }
                Ok(count)
            }
            Some(line) => line.read(&mut Tried(&self.stream), buffer),
        }
    }

    /// The socket has given all it had, and is not asked again before it says that there is more: the question alone
    /// would cost a system call for every answer of a node.
    fn note_empty(&self) {
        let nothing = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        // Its only effect is on what the runtime believes of the socket.
        let _ = self.stream.try_io(Interest::READABLE, nothing);
    }

    /// Writes what there is room for, as [`TcpStream::try_write`]; [`Self::try_flush`] has to follow.
    pub(super) fn try_write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match &mut self.line {
            None => self.stream.try_write(octets),
            Some(line) => line.write(&mut Tried(&self.stream), &[IoSlice::new(octets)]),
        }
    }

    /// Writes what is encrypted already. False while the node has not shown its certificate, so that
    /// nothing can be written.
    pub(super) fn try_flush(&mut self) -> io::Result<bool> {
        match &mut self.line {
            None => Ok(true),
            Some(line) => {
                line.flush(&mut Tried(&self.stream))?;
                Ok(!line.is_handshaking())
            }
        }
    }
}

/// Reads and writes what goes at once.
struct Tried<'a>(&'a TcpStream);

impl Read for Tried<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Write for Tried<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.try_write(octets)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
