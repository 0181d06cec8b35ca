//! Connections handed from the responder to further processes: the least work of any hand-over.
//!
//! A connection goes to a taker behind the first known recipient, up to 16 together in a packet; the taker answers the
//! recipient and serves the rest. As in Veredarius, the giver keeps a duplicate of each descriptor until a taker tells
//! the end, and a taker tells the beginning before the first reply: without both, connections of a dead taker would be
//! lost. A number is all of the session that goes along.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::process::{Child, Command};

use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::cmsg_space;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// The most connections of a packet.
const TOGETHER: usize = 16;

/// Octets of a number.
const NUMBER: usize = size_of::<u32>();

/// The first octet of a packet that tells of ended connections; other packets of a taker tell of begun ones.
const ENDED: u8 = b'E';
const BEGUN: u8 = b'B';

/// The connections that takers have.
#[derive(Debug)]
pub(super) struct Giver {
    takers: Vec<Taker>,
    /// The taker of the next packet.
    next: usize,
    /// Duplicates by number.
    given: Vec<Option<OwnedFd>>,
    free: Vec<u32>,
    /// Numbers of connections that leave at the end of the turn.
    leaving: Vec<u32>,
}

#[derive(Debug)]
struct Taker {
    socket: OwnedFd,
    /// The process ends with the socket.
    _process: Child,
}

impl Giver {
    /// Starts takers; the sockets have the tokens from `first` on.
    pub(super) fn start(takers: usize, registry: &Registry, first: usize) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let flags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
        let mut started = Vec::new();
        for number in 0..takers {
            let (socket, there) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            let process = Command::new(&program)
                .args(["responder", "--taker"])
                .stdin(there)
                .spawn()?;
            let token = Token(first + number);
            registry.register(
                &mut SourceFd(&socket.as_raw_fd()),
                token,
                Interest::READABLE,
            )?;
            started.push(Taker {
                socket,
                _process: process,
            });
        }
        Ok(Self {
            takers: started,
            next: 0,
            given: Vec::new(),
            free: Vec::new(),
            leaving: Vec::new(),
        })
    }

    /// Gives a connection away at the end of the turn.
    pub(super) fn give(&mut self, connection: TcpStream) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.given.push(None);
            self.given.len() as u32 - 1
        });
        self.given[number as usize] = Some(connection.into());
        self.leaving.push(number);
    }

    /// Sends the connections of a turn.
    pub(super) fn send(&mut self) -> io::Result<()> {
        let mut sent = 0;
        for numbers in self.leaving.chunks(TOGETHER) {
            let connections: Vec<BorrowedFd<'_>> = numbers
                .iter()
                .filter_map(|number| self.given[*number as usize].as_ref().map(AsFd::as_fd))
                .collect();
            let taker = &self.takers[self.next % self.takers.len()];
            self.next += 1;
            if !send(&taker.socket, &octets(BEGUN, numbers), &connections)? {
                break;
            }
            sent += numbers.len();
        }
        self.leaving.drain(..sent);
        Ok(())
    }

    /// Reads the packets of a taker, and closes the duplicates of ended connections.
    pub(super) fn hear(&mut self, taker: usize) -> io::Result<()> {
        let mut packet = [0; 1 + TOGETHER * NUMBER];
        while let Some((length, _)) = receive(&self.takers[taker].socket, &mut packet)? {
            let (kind, numbers) = told(&packet[..length]);
            if kind == ENDED {
                for number in numbers {
                    self.given[number as usize] = None;
                    self.free.push(number);
                }
            }
        }
        Ok(())
    }
}

/// Takes connections from the giver behind the standard input.
#[derive(Debug)]
pub(super) struct Taking {
    giver: OwnedFd,
    ended: Vec<u32>,
}

impl Taking {
    /// Hears of connections by a token.
    pub(super) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let giver = io::stdin().as_fd().try_clone_to_owned()?;
        registry.register(&mut SourceFd(&giver.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self {
            giver,
            ended: Vec::new(),
        })
    }

    /// Connections with numbers; the giver hears of the beginning first. `None` when no more connections wait.
    pub(super) fn take(&mut self) -> io::Result<Option<Vec<(u32, TcpStream)>>> {
        let mut packet = [0; 1 + TOGETHER * NUMBER];
        let Some((length, connections)) = receive(&self.giver, &mut packet)? else {
            return Ok(None);
        };
        send(&self.giver, &packet[..length], &[])?;
        let (_, numbers) = told(&packet[..length]);
        let stream = |connection| TcpStream::from_std(OwnedFd::into(connection));
        let taken = numbers.zip(connections.into_iter().map(stream));
        Ok(Some(taken.collect()))
    }

    /// A connection has ended.
    pub(super) fn ended(&mut self, number: u32) {
        self.ended.push(number);
    }

    /// Tells the ends of a turn.
    pub(super) fn tell(&mut self) -> io::Result<()> {
        let mut told = 0;
        for numbers in self.ended.chunks(TOGETHER) {
            if !send(&self.giver, &octets(ENDED, numbers), &[])? {
                break;
            }
            told += numbers.len();
        }
        self.ended.drain(..told);
        Ok(())
    }
}

fn octets(kind: u8, numbers: &[u32]) -> Vec<u8> {
    let numbers = numbers.iter().flat_map(|number| number.to_ne_bytes());
    std::iter::once(kind).chain(numbers).collect()
}

/// The kind and the numbers of a packet.
fn told(packet: &[u8]) -> (u8, impl Iterator<Item = u32> + '_) {
    let (kind, numbers) = packet.split_first().unwrap_or((&BEGUN, &[]));
    let (numbers, _) = numbers.as_chunks::<NUMBER>();
    (
        *kind,
        numbers.iter().map(|octets| u32::from_ne_bytes(*octets)),
    )
}

/// Sends a packet. False: the queue of the socket is full, and a later turn sends the packet.
fn send(socket: &OwnedFd, octets: &[u8], connections: &[BorrowedFd<'_>]) -> io::Result<bool> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(TOGETHER))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !connections.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(connections));
    }
    let octets = [IoSlice::new(octets)];
    match sendmsg(socket, &octets, &mut beside, SendFlags::NOSIGNAL) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        sent => Ok(sent.map(|_| true)?),
    }
}

/// A packet's length and descriptors; `None` when no packet waits.
fn receive(socket: &OwnedFd, into: &mut [u8]) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(TOGETHER))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = match recvmsg(socket, &mut [IoSliceMut::new(into)], &mut beside, flags) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        received => received?,
    };
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut connections = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            connections.extend(rights);
        }
    }
    Ok(Some((received.bytes, connections)))
}
