//! Reads the PROXY header that a trusted load balancer puts before the session.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use vere_smtp::proxy::{Decoder, HEADER_LENGTH_MAX, Header};

/// The client's and our own address as the header tells them; `None`: those of the connection hold.
///
/// # Errors
/// When no valid header comes in time: the connection must be closed.
pub async fn read(
    stream: &mut TcpStream,
    patience: Duration,
) -> io::Result<Option<(SocketAddr, SocketAddr)>> {
    match tokio::time::timeout(patience, header(stream)).await {
        Ok(Ok(Header::Proxied {
            source,
            destination,
        })) => Ok(Some((source, destination))),
        Ok(Ok(_)) => Ok(None),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Takes no octet behind the header: those are the client's, and may be a TLS handshake.
async fn header(stream: &mut TcpStream) -> io::Result<Header> {
    let mut decoder = Decoder::default();
    let mut octets = [0; HEADER_LENGTH_MAX];
    loop {
        let seen = stream.peek(&mut octets).await?;
        if seen == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (taken, header) = decoder
            .input(&octets[..seen])
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        stream.read_exact(&mut octets[..taken]).await?;
        if let Some(header) = header {
            return Ok(header);
        }
    }
}
