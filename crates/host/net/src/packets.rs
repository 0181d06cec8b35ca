//! Sockets between processes of this machine whose reads and writes are whole packets, with descriptors beside the octets
//! (SOCK_SEQPACKET and SCM_RIGHTS, unix(7)).
//!
//! Nothing here waits: an operation that would have to fails with [`io::ErrorKind::WouldBlock`]. [`send`] and [`receive`] take any owner of such a
//! socket, so that a runtime may own it.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::cmsg_space;
use rustix::fs::{Mode, chmod};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    accept_with, bind, connect, listen, recvmsg, sendmsg, socket_with, socketpair,
};

/// The most descriptors beside a packet.
pub const DESCRIPTORS_MAX: usize = 16;

/// Connections that may wait for [`PacketListener::accept`].
const BACKLOG: i32 = 64;

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// One end of a connection.
#[derive(Debug)]
pub struct PacketSocket(OwnedFd);

/// Takes connections at a path.
#[derive(Debug)]
pub struct PacketListener(OwnedFd);

impl PacketSocket {
    /// Two ends that are connected to each other.
    ///
    /// # Errors
    ///
    /// Errors of socketpair(2).
    pub fn pair() -> io::Result<(Self, Self)> {
        let (here, there) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)?;
        Ok((Self(here), Self(there)))
    }

    /// Connects to a [`PacketListener`].
    ///
    /// # Errors
    ///
    /// No process listens at the path, or the queue of the listener is full.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Self(socket))
    }

    /// Sends a packet; see [`send`].
    ///
    /// # Errors
    ///
    /// Those of [`send`].
    pub fn send(&self, octets: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        send(self, octets, descriptors)
    }

    /// Sends a packet whose octets are in several parts; see [`send`].
    ///
    /// # Errors
    ///
    /// Those of [`send`].
    pub fn send_parts(
        &self,
        parts: &[IoSlice<'_>],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        send_parts(self, parts, descriptors)
    }

    /// Receives a packet; see [`receive`].
    ///
    /// # Errors
    ///
    /// Those of [`receive`].
    pub fn receive(&self, into: &mut [u8]) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
        receive(self, into)
    }
}

/// Sends a packet with descriptors, all of it or nothing.
///
/// # Errors
///
/// When the other end is closed, and when it has as many packets to read as may wait.
pub fn send(socket: impl AsFd, octets: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    send_parts(socket, &[IoSlice::new(octets)], descriptors)
}

fn send_parts(
    socket: impl AsFd,
    parts: &[IoSlice<'_>],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let found = descriptors.len();
    let rights = SendAncillaryMessage::ScmRights(descriptors);
    if found > DESCRIPTORS_MAX || found > 0 && !beside.push(rights) {
        let text = format!("expected at most {DESCRIPTORS_MAX} descriptors; found {found}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    sendmsg(socket, parts, &mut beside, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a packet, at the beginning of `into`: its length and its descriptors. `None` when the other end is closed.
///
/// # Errors
///
/// When no packet waits, and [`io::ErrorKind::InvalidData`] for a packet that is longer than `into` or has more descriptors
/// than [`DESCRIPTORS_MAX`]; its descriptors are closed.
pub fn receive(socket: impl AsFd, into: &mut [u8]) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(into)], &mut beside, flags)?;
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let cut = ReturnFlags::TRUNC.union(ReturnFlags::CTRUNC);
    if received.flags.intersects(cut) || descriptors.len() > DESCRIPTORS_MAX {
        let text = "expected a packet that fits; found a longer one";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok((received.bytes > 0).then_some((received.bytes, descriptors)))
}

impl PacketListener {
    /// Listens at a path, for the owner of the process alone; a socket that a dead process left there is replaced.
    ///
    /// # Errors
    ///
    /// When the path cannot be used.
    pub fn bind(path: &Path) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        chmod(path, Mode::RUSR | Mode::WUSR)?;
        listen(&socket, BACKLOG)?;
        Ok(Self(socket))
    }

    /// Takes a connection.
    ///
    /// # Errors
    ///
    /// When none waits; errors of accept(2).
    pub fn accept(&self) -> io::Result<PacketSocket> {
        Ok(PacketSocket(accept_with(&self.0, FLAGS)?))
    }
}

impl From<OwnedFd> for PacketSocket {
    /// Takes a descriptor for such a socket, which another process gave to this one.
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl From<PacketSocket> for OwnedFd {
    fn from(socket: PacketSocket) -> Self {
        socket.0
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for PacketListener {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsRawFd for PacketSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for PacketListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn packets_come_whole_with_their_descriptors() {
        let (here, there) = PacketSocket::pair().unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        here.send(b"one", &[]).unwrap();
        here.send(b"two", &[far.as_fd()]).unwrap();
        drop(far);
        let mut into = [0; 8];
        let (length, descriptors) = there.receive(&mut into).unwrap().unwrap();
        assert_eq!((&into[..length], descriptors.len()), (&b"one"[..], 0));
        let (length, mut descriptors) = there.receive(&mut into).unwrap().unwrap();
        assert_eq!((&into[..length], descriptors.len()), (&b"two"[..], 1));
        let mut far = UnixStream::from(descriptors.remove(0));
        far.write_all(b"x").unwrap();
        near.read_exact(&mut into[..1]).unwrap();
        let error = there.receive(&mut into).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        drop(here);
        assert!(there.receive(&mut into).unwrap().is_none());
        assert_eq!(
            there.send(b"x", &[]).unwrap_err().kind(),
            ErrorKind::BrokenPipe
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (here, there) = PacketSocket::pair().unwrap();
        here.send(b"longer", &[here.as_fd()]).unwrap();
        here.send(b"fits", &[]).unwrap();
        let mut into = [0; 4];
        let error = there.receive(&mut into).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        let (length, _) = there.receive(&mut into).unwrap().unwrap();
        assert_eq!(&into[..length], b"fits");
        let error = here.send(b"x", &[here.as_fd(); 17]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected at most 16 descriptors; found 17"
        );
    }

    #[test]
    fn a_full_socket_takes_a_packet_later() {
        let (here, there) = PacketSocket::pair().unwrap();
        let packet = [7; 4_096];
        let sent = (0..10_000)
            .take_while(|_| here.send(&packet, &[]).is_ok())
            .count();
        assert!((1..10_000).contains(&sent));
        assert_eq!(
            here.send(&packet, &[]).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        let mut into = [0; 4_096];
        for _ in 0..sent {
            assert_eq!(there.receive(&mut into).unwrap().unwrap().0, 4_096);
        }
        here.send(&packet, &[]).unwrap();
    }

    #[test]
    fn a_listener_takes_the_place_of_a_dead_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        drop(PacketListener::bind(&path).unwrap());
        assert!(PacketSocket::connect(&path).is_err());
        let listener = PacketListener::bind(&path).unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        let here = PacketSocket::connect(&path).unwrap();
        let there = listener.accept().unwrap();
        here.send(b"x", &[]).unwrap();
        assert_eq!(there.receive(&mut [0; 4]).unwrap().unwrap().0, 1);
    }
}
