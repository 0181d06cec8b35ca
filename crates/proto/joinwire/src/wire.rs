//! Messages over any stream: a length of four octets, and octets.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Sends a message.
///
/// # Errors
/// When the stream breaks.
pub fn send(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let octets = serde_json::to_vec(message)?;
    send_octets(stream, &octets)
}

/// Sends octets behind their length.
///
/// # Errors
/// When the stream breaks, or the octets are more than a length has room for.
pub fn send_octets(stream: &mut impl Write, octets: &[u8]) -> io::Result<()> {
    let len = u32::try_from(octets.len()).map_err(io::Error::other)?;
    stream.write_all(&[&len.to_be_bytes()[..], octets].concat())?;
    stream.flush()
}

/// Receives a message of at most `max` octets.
///
/// # Errors
/// When the stream breaks or is cut, or another text or a longer one comes.
pub fn receive<T: DeserializeOwned>(stream: &mut impl Read, max: usize) -> io::Result<T> {
    let octets = receive_octets(stream, max)?;
    serde_json::from_slice(&octets).map_err(|error| {
        let text = format!("expected a message of this protocol; found another text: {error}");
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

/// Receives at most `max` octets behind their length, which is checked before memory is taken.
///
/// # Errors
/// When the stream breaks or is cut, or the length is larger.
pub fn receive_octets(stream: &mut impl Read, max: usize) -> io::Result<Vec<u8>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{REPLY_MAX, REQUEST_MAX, Reply, Request};

    #[test]
    fn messages_have_bounds() {
        let mut long = &[0, 1, 0, 0, 0][..];
        receive::<Request>(&mut long, REQUEST_MAX).unwrap_err();
        let mut cut = &[0, 0, 0, 4, b'"'][..];
        receive::<Request>(&mut cut, REQUEST_MAX).unwrap_err();
        let mut octets = Vec::new();
        send(&mut octets, &Reply::Refused("no".to_owned())).unwrap();
        let reply: Reply = receive(&mut octets.as_slice(), REPLY_MAX).unwrap();
        assert_eq!(reply, Reply::Refused("no".to_owned()));
    }
}
