//! A connection to a node, encrypted where it is wanted.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;

use tokio::io::Interest;
use vere_net::tls::Line;
use vere_units::Timestamp;

/// A socket, with or without TLS.
///
/// While the wire is *watched*, the runtime wakes this thread for incoming data. Otherwise the thread reads when
/// another event suggests data: each answer without a separate wake-up saves a context switch.
pub(super) struct Wire {
    socket: Socket,
    line: Option<Line>,
}

struct Socket {
    stream: TcpStream,
    /// The socket as registered with the runtime while watched; never used for reading or writing.
    watch: Option<tokio::net::TcpStream>,
}

impl Wire {
    /// # Errors
    /// When there are no descriptors left.
    pub(super) fn new(stream: tokio::net::TcpStream, line: Option<Line>) -> io::Result<Self> {
        let mut socket = Socket {
            stream: stream.into_std()?,
            watch: None,
        };
        socket.watch(true)?;
        Ok(Self { socket, line })
    }

    pub(super) const fn is_encrypted(&self) -> bool {
        self.line.is_some()
    }

    /// When the certificate of the node ends, once it has shown it.
    pub(super) fn peer_certificate_end(&self) -> Option<Timestamp> {
        self.line.as_ref()?.peer_certificate_end()
    }

    pub(super) const fn is_watched(&self) -> bool {
        self.socket.watch.is_some()
    }

    /// Starts or stops watching. Data that arrived earlier is reported as well.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub(super) fn watch(&mut self, wanted: bool) -> io::Result<()> {
        self.socket.watch(wanted)
    }

    /// Waits until the socket may be readable, or with `writing` writable; forever if not watched. Returns whether
    /// the socket may be readable.
    ///
    /// # Errors
    /// When the runtime ends.
    pub(super) async fn ready(&self, writing: bool) -> io::Result<bool> {
        let Some(watch) = &self.socket.watch else {
            return std::future::pending().await;
        };
        let interest = if writing {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        Ok(watch.ready(interest).await?.is_readable())
    }

    /// Reads the available data without blocking.
    pub(super) fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.line {
            None => {
                let count = self.socket.read(buffer)?;
                if count < buffer.len() {
                    // It is not asked again before it says that there is more: the question alone would
                    // cost a system call for every answer of a node.
                    self.socket.note_blocked(Interest::READABLE);
                }
                Ok(count)
            }
            Some(line) => line.read(&mut self.socket, buffer),
        }
    }

    /// Writes what there is room for, as a socket that does not block; [`Self::try_flush`] has to follow.
    pub(super) fn try_write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match &mut self.line {
            None => self.socket.write(octets),
            Some(line) => line.write(&mut self.socket, &[IoSlice::new(octets)]),
        }
    }

    /// Writes what is encrypted already. False while the node has not shown its certificate, so that
    /// nothing can be written.
    pub(super) fn try_flush(&mut self) -> io::Result<bool> {
        match &mut self.line {
            None => Ok(true),
            Some(line) => {
                line.flush(&mut self.socket)?;
                Ok(!line.is_handshaking())
            }
        }
    }
}

impl Socket {
    fn watch(&mut self, wanted: bool) -> io::Result<()> {
        if wanted && self.watch.is_none() {
            self.watch = Some(tokio::net::TcpStream::from_std(self.stream.try_clone()?)?);
        } else if !wanted {
            self.watch = None;
        }
        Ok(())
    }

    /// What the runtime believes of the socket is over, until it hears otherwise.
    fn note_blocked(&self, interest: Interest) {
        if let Some(watch) = &self.watch {
            let nothing = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
            // The call only clears the readiness state.
            let _ = watch.try_io(interest, nothing);
        }
    }

    fn noting<T>(&self, interest: Interest, result: io::Result<T>) -> io::Result<T> {
        if matches!(&result, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            self.note_blocked(interest);
        }
        result
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let result = (&self.stream).read(buffer);
        self.noting(Interest::READABLE, result)
    }
}

impl Write for Socket {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let result = (&self.stream).write(octets);
        self.noting(Interest::WRITABLE, result)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let result = (&self.stream).write_vectored(slices);
        self.noting(Interest::WRITABLE, result)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
