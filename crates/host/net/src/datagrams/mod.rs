//! UDP sockets that share an address (socket(7), `SO_REUSEPORT`), and a [`Batch`] that reads and answers many datagrams
//! at a time without an allocation.
//!
//! The kernel gives all datagrams of one client's port to one socket. An answer leaves from the address that was asked,
//! also from a socket that is bound to every address of the machine.

mod batch;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{SocketAddr, UdpSocket};

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

pub use batch::{BATCH, Batch, QUERY_MAX};

use crate::listen::{Inherited, ListenError, failed};

/// Threads where no number is given.
const THREADS_MAX: usize = 8;
/// Octets of datagrams that wait in the kernel for a thread, before the kernel drops more.
const WAITING: usize = 4 << 20;

/// The number of threads, each with a socket at each address: by the settings, or half of the cores, 8 at most. A thread
/// answers more than 100,000 queries per second, and more threads than the load needs wake up for each query.
#[must_use]
pub fn threads(wanted: Option<u32>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = wanted.and_then(|wanted| usize::try_from(wanted).ok());
    wanted.unwrap_or_else(|| (cores() / 2).clamp(1, THREADS_MAX))
}

/// Binds `each` sockets at every address: all of the first address, all of the second, and so on.
///
/// # Errors
/// The first address that cannot be bound, with the reason.
pub fn bind(addresses: &[SocketAddr], each: usize) -> Result<Vec<UdpSocket>, ListenError> {
    let sockets = addresses.iter().flat_map(|address| {
        let mut bound = *address;
        (0..each).map(move |_| {
            let socket =
                socket(bound, only_v6(bound, addresses)).map_err(|source| failed(bound, source))?;
            // Of port 0 the kernel chooses one, which the others share.
            bound = socket
                .local_addr()
                .map_err(|source| failed(bound, source))?;
            Ok(socket)
        })
    });
    sockets.collect()
}

/// Takes the inherited sockets of a name, or binds `each` at every address when the name has none.
///
/// # Errors
/// As [`bind`].
pub fn take_or_bind(
    inherited: &mut Inherited,
    name: &str,
    addresses: &[SocketAddr],
    each: usize,
) -> Result<Vec<UdpSocket>, ListenError> {
    let taken = inherited.take_datagrams(name);
    match taken.is_empty() {
        true => bind(addresses, each),
        false => Ok(taken),
    }
}

/// Whether another address of the list has the IPv4 part of an address for everything.
fn only_v6(address: SocketAddr, all: &[SocketAddr]) -> bool {
    let v4 = |other: &SocketAddr| other.is_ipv4() && other.ip().is_unspecified();
    all.iter()
        .any(|other| v4(other) && other.port() == address.port())
}

fn socket(address: SocketAddr, only_v6: bool) -> io::Result<UdpSocket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_port(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    // The kernel takes as much as net.core.rmem_max allows.
    socket.set_recv_buffer_size(WAITING)?;
    socket.set_send_buffer_size(WAITING)?;
    let socket: UdpSocket = bound(socket, address)?;
    match address {
        SocketAddr::V4(address) if address.ip().is_unspecified() => {
            setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
        }
        SocketAddr::V6(address) if address.ip().is_unspecified() => {
            setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
        }
        _ => {}
    }
    Ok(socket)
}

fn bound(socket: Socket, address: SocketAddr) -> io::Result<UdpSocket> {
    socket.bind(&address.into())?;
    Ok(socket.into())
}
