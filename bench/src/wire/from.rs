//! Connections from an address of the loopback's choice.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::AsRawFd as _;

use mio::net::TcpStream;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, setsockopt, socket, sockopt,
};

/// Begins to connect to an IPv4 server from an own address, perhaps with a receive buffer of so many octets.
pub(crate) fn connect_from(
    own: Ipv4Addr,
    server: SocketAddr,
    receive_buffer: Option<usize>,
) -> io::Result<TcpStream> {
    let SocketAddr::V4(server) = server else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let descriptor = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
    if let Some(octets) = receive_buffer {
        setsockopt(&descriptor, sockopt::RcvBuf, &octets)?;
    }
    let own = SockaddrIn::from(SocketAddrV4::new(own, 0));
    bind(descriptor.as_raw_fd(), &own)?;
    match connect(descriptor.as_raw_fd(), &SockaddrIn::from(server)) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = std::net::TcpStream::from(descriptor);
    stream.set_nodelay(true)?;
    Ok(TcpStream::from_std(stream))
}
