//! A limit on the octets that the kernel buffers for a slow reader.

use std::io;
use std::os::fd::AsFd;

use socket2::SockRef;

/// Limits the octets that the kernel accepts before sending. Without the limit the kernel accepts megabytes for
/// each connection, and a full socket counts as writable only after a third of the buffer was sent: a slow reader
/// could not be distinguished from a reader that has stopped.
///
/// # Errors
/// When the kernel refuses.
pub fn limit_unsent(socket: &impl AsFd, octets: u32) -> io::Result<()> {
    SockRef::from(socket).set_tcp_notsent_lowat(octets)
}
