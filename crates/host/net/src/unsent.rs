//! How much the kernel takes of what the other side does not read.

use std::io;
use std::os::fd::AsFd;

use socket2::SockRef;

/// Has the kernel take no more than so many octets that it cannot send yet. Else it takes megabytes for each
/// connection, and a socket that was full counts as writable only once a third of them has gone: who reads slowly
/// could not be told from who does not read.
///
/// # Errors
/// When the kernel refuses.
pub fn limit_unsent(socket: &impl AsFd, octets: u32) -> io::Result<()> {
    SockRef::from(socket).set_tcp_notsent_lowat(octets)
}
