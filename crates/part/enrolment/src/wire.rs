//! A socket with one deadline for the whole connection.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A blocking socket with one deadline for all calls: sending octet by octet gains a peer nothing.
#[derive(Debug)]
pub(crate) struct Timed {
    stream: TcpStream,
    until: Instant,
}

impl Timed {
    pub(crate) fn new(stream: TcpStream, patience: Duration) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        // Small messages go at once; a socket that refuses is only slower.
        let _ = stream.set_nodelay(true);
        Ok(Self {
            stream,
            until: Instant::now() + patience,
        })
    }

    /// Sets a new deadline, for a peer that has proven itself.
    pub(crate) fn prolong(&mut self, patience: Duration) {
        self.until = Instant::now() + patience;
    }

    /// Waits for a time, or until the other side goes. What it sends meanwhile is thrown away.
    pub(crate) fn sit_out(&mut self, time: Duration) {
        let whole = self.until;
        self.until = whole.min(Instant::now() + time);
        let mut octets = [0; 512];
        while self.read(&mut octets).is_ok_and(|count| count > 0) {}
        self.until = whole;
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the other side was too slow",
            ));
        }
        Ok(Some(left))
    }
}

/// The system's word for a timeout of a blocking socket is "would block".
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock {
        return io::Error::new(io::ErrorKind::TimedOut, "the other side was too slow");
    }
    error
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer).map_err(timed_out)
    }
}

impl Write for Timed {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(buffer).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
