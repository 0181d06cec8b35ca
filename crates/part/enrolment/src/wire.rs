//! Messages over a socket: a length and octets, until one deadline for the whole connection.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

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

/// Sends a message.
pub(crate) fn send(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let octets = serde_json::to_vec(message)?;
    send_octets(stream, &octets)
}

/// Sends octets behind their length.
pub(crate) fn send_octets(stream: &mut impl Write, octets: &[u8]) -> io::Result<()> {
    let len = u32::try_from(octets.len()).map_err(io::Error::other)?;
    stream.write_all(&[&len.to_be_bytes()[..], octets].concat())?;
    stream.flush()
}

/// Receives a message of at most `max` octets.
pub(crate) fn receive<T: DeserializeOwned>(stream: &mut impl Read, max: usize) -> io::Result<T> {
    let octets = receive_octets(stream, max)?;
    serde_json::from_slice(&octets).map_err(|error| {
        let text = format!("expected a message of this protocol; found another text: {error}");
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

/// Receives at most `max` octets behind their length, which is checked before memory is taken.
pub(crate) fn receive_octets(stream: &mut impl Read, max: usize) -> io::Result<Vec<u8>> {
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let len = usize::try_from(u32::from_be_bytes(len)).unwrap_or(usize::MAX);
    if len > max {
        let text = format!("expected at most {max} octets; found a length of {len}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut octets = vec![0; len];
    stream.read_exact(&mut octets)?;
    Ok(octets)
}
