//! Datagrams of the name servers in this program.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};

/// Receives a datagram; `None` where the socket's time is over, or an earlier answer reached nobody.
///
/// # Errors
/// The socket cannot be used any more.
pub(crate) fn received(
    socket: &UdpSocket,
    room: &mut [u8],
) -> io::Result<Option<(usize, SocketAddr)>> {
    match socket.recv_from(room) {
        Ok(received) => Ok(Some(received)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused => Ok(None),
            _ => Err(error),
        },
    }
}
