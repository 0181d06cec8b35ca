//! Reading and answering many datagrams with few calls.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrIn, SockaddrIn6,
    SockaddrStorage, recvmmsg, sendmmsg, sendmsg,
};

/// Datagrams of a batch: as many as UDP segmentation takes.
pub const BATCH: usize = 64;
/// Octets of a datagram that are read; longer ones arrive cut.
pub const QUERY_MAX: usize = 1_232;
/// Octets of segmented answers, which are one datagram until the last moment.
const SEGMENTED_MAX: usize = 60_000;

/// Memory and state for the datagrams of one socket.
#[derive(Debug)]
pub struct Batch {
    socket: UdpSocket,
    /// Whether the socket has every address of the machine, so that each answer names its own.
    wildcard: bool,
    /// Whether the kernel cuts several answers to one client out of one.
    pub(super) segments: bool,
    received: MultiHeaders<SockaddrStorage>,
    single: MultiHeaders<SockaddrStorage>,
    segmented: MultiHeaders<SockaddrStorage>,
    queries: Box<[u8]>,
    answers: Box<[u8]>,
    answer_max: usize,
    entries: [Entry; BATCH],
    /// The clients of the datagrams, by number.
    clients: Box<[Option<SockaddrStorage>]>,
    /// The clients of the answers that leave together.
    together: Box<[Option<SockaddrStorage>]>,
    pub(super) count: usize,
}

/// A datagram and its answer. The address of the client, of 128 octets, stays where it is.
#[derive(Debug, Clone, Copy)]
struct Entry {
    client: Option<SocketAddr>,
    /// The address that was asked, where the socket has several.
    local: Option<IpAddr>,
    length: usize,
    /// Octets of the answer; 0 for none.
    answer: usize,
    /// The place of the datagram among those received.
    number: usize,
}

impl Entry {
    const NONE: Self = Self {
        client: None,
        local: None,
        length: 0,
        answer: 0,
        number: 0,
    };

    /// The same for answers of one length to one client.
    const fn group(&self) -> (Option<SocketAddr>, usize) {
        (self.client, self.answer)
    }
}

impl Batch {
    /// Takes a socket of [`super::bind`]; answers have at most `answer_max` octets.
    ///
    /// # Errors
    /// When the socket has no address.
    pub fn new(socket: UdpSocket, answer_max: usize) -> io::Result<Self> {
        socket.set_nonblocking(false)?;
        let wildcard = socket.local_addr()?.ip().is_unspecified();
        let beside = wildcard.then(|| cmsg_space!(libc::in6_pktinfo));
        Ok(Self {
            socket,
            wildcard,
            segments: !wildcard,
            received: MultiHeaders::preallocate(BATCH, beside),
            single: MultiHeaders::preallocate(BATCH, None),
            segmented: MultiHeaders::preallocate(1, Some(cmsg_space!(u16))),
            queries: vec![0; BATCH * QUERY_MAX].into_boxed_slice(),
            answers: vec![0; BATCH * answer_max].into_boxed_slice(),
            answer_max,
            entries: [Entry::NONE; BATCH],
            clients: vec![None; BATCH].into_boxed_slice(),
            together: vec![None; BATCH].into_boxed_slice(),
            count: 0,
        })
    }

    /// Waits for a datagram, and reads all that wait, up to [`BATCH`].
    ///
    /// # Errors
    /// Errors of recvmmsg(2), such as an interruption.
    pub fn receive(&mut self) -> io::Result<()> {
        self.count = 0;
        let mut chunks = self.queries.chunks_exact_mut(QUERY_MAX);
        let mut slices: [[IoSliceMut<'_>; 1]; BATCH] =
            std::array::from_fn(|_| [IoSliceMut::new(chunks.next().unwrap_or_default())]);
        let descriptor = self.socket.as_raw_fd();
        let flags = MsgFlags::MSG_WAITFORONE;
        let messages = recvmmsg(descriptor, &mut self.received, &mut slices, flags, None)?;
        let places = self.entries.iter_mut().zip(&mut self.clients);
        for ((entry, client), message) in places.zip(messages) {
            *client = message.address;
            *entry = Entry {
                client: client.as_ref().and_then(address),
                local: self.wildcard.then(|| local(&message)).flatten(),
                length: message.bytes,
                answer: 0,
                number: self.count,
            };
            self.count += 1;
        }
        Ok(())
    }

    /// Has each datagram answered: `answer` gets the client, the datagram, and memory for the answer; it returns the
    /// octets of the answer, 0 for none.
    pub fn answer(&mut self, mut answer: impl FnMut(SocketAddr, &[u8], &mut [u8]) -> usize) {
        let queries = self.queries.chunks_exact(QUERY_MAX);
        let answers = self.answers.chunks_exact_mut(self.answer_max);
        let entries = self.entries[..self.count].iter_mut();
        for ((entry, query), memory) in entries.zip(queries).zip(answers) {
            let Some(client) = entry.client else {
                continue;
            };
            entry.answer = answer(client, &query[..entry.length.min(QUERY_MAX)], memory);
        }
    }

    /// Sends the answers. An answer that the kernel does not take is lost, as the network may lose any.
    pub fn send(&mut self) {
        if self.wildcard {
            return self.send_from_asked();
        }
        let mut sorted = [Entry::NONE; BATCH];
        let entries = &mut sorted[..self.count];
        entries.copy_from_slice(&self.entries[..self.count]);
        let joins = self.segments && entries.len() > 1;
        if joins {
            entries.sort_unstable_by_key(Entry::group);
        }
        let mut alone = [0; BATCH];
        let mut count = 0;
        let most = |answer: usize| (SEGMENTED_MAX / answer.max(1)).max(1);
        for group in entries.chunk_by(|one, other| joins && one.group() == other.group()) {
            for group in group.chunks(most(group[0].answer)) {
                match group {
                    [entry, ..] if entry.answer == 0 => {}
                    [_, _, ..] if self.segments && self.send_segmented(group) => {}
                    group => {
                        for entry in group {
                            alone[count] = entry.number;
                            count += 1;
                        }
                    }
                }
            }
        }
        self.send_single(&alone[..count]);
    }

    /// Sends answers of equal length to a client in one piece for the kernel to cut (udp(7), `UDP_SEGMENT`): the way
    /// through the kernel's layers is most of the cost of a datagram. Returns whether the kernel does that.
    fn send_segmented(&mut self, group: &[Entry]) -> bool {
        let [first, ..] = group else { return true };
        let Ok(length) = u16::try_from(first.answer) else {
            return false;
        };
        let mut slices = [IoSlice::new(&[]); BATCH];
        for (slice, entry) in slices.iter_mut().zip(group) {
            *slice = IoSlice::new(&self.answers[entry.number * self.answer_max..][..entry.answer]);
        }
        let slices = &slices[..group.len()];
        let beside = [ControlMessage::UdpGsoSegments(&length)];
        let sent = sendmmsg(
            self.socket.as_raw_fd(),
            &mut self.segmented,
            [&slices],
            [self.clients[first.number]],
            beside,
            MsgFlags::empty(),
        );
        // These say that kernel or device cannot cut.
        let cannot = [Errno::EIO, Errno::EINVAL, Errno::EOPNOTSUPP];
        self.segments = !matches!(sent.map(|_| ()), Err(error) if cannot.contains(&error));
        self.segments
    }

    /// Sends the answers to the datagrams with these numbers, by a single call where the kernel takes all.
    fn send_single(&mut self, numbers: &[usize]) {
        let mut slices = [[IoSlice::new(&[])]; BATCH];
        let places = slices.iter_mut().zip(&mut self.together);
        for ((slice, client), number) in places.zip(numbers) {
            let octets = self.entries[*number].answer;
            *slice = [IoSlice::new(
                &self.answers[number * self.answer_max..][..octets],
            )];
            *client = self.clients[*number];
        }
        let mut done = 0;
        while done < numbers.len() {
            let sent = sendmmsg(
                self.socket.as_raw_fd(),
                &mut self.single,
                &slices[done..numbers.len()],
                &self.together[done..numbers.len()],
                [],
                MsgFlags::empty(),
            );
            // A datagram that fails ends the call behind the datagrams before; at the head of a call the failure is an
            // error.
            done += sent.map_or(1, |sent| sent.count().max(1));
        }
    }

    /// Sends each answer from the address that was asked.
    fn send_from_asked(&self) {
        for entry in self.entries[..self.count]
            .iter()
            .filter(|entry| entry.answer > 0)
        {
            let answer = &self.answers[entry.number * self.answer_max..][..entry.answer];
            let slices = [IoSlice::new(answer)];
            let descriptor = self.socket.as_raw_fd();
            let flags = MsgFlags::empty();
            let client = self.clients[entry.number].as_ref();
            let sent = match entry.local {
                Some(IpAddr::V4(local)) => {
                    let info = libc::in_pktinfo {
                        ipi_ifindex: 0,
                        ipi_spec_dst: libc::in_addr {
                            s_addr: u32::from_ne_bytes(local.octets()),
                        },
                        ipi_addr: libc::in_addr { s_addr: 0 },
                    };
                    let beside = [ControlMessage::Ipv4PacketInfo(&info)];
                    sendmsg(descriptor, &slices, &beside, flags, client)
                }
                Some(IpAddr::V6(local)) => {
                    let info = libc::in6_pktinfo {
                        ipi6_addr: libc::in6_addr {
                            s6_addr: local.octets(),
                        },
                        ipi6_ifindex: 0,
                    };
                    let beside = [ControlMessage::Ipv6PacketInfo(&info)];
                    sendmsg(descriptor, &slices, &beside, flags, client)
                }
                None => sendmsg(descriptor, &slices, &[], flags, client),
            };
            if let Err(error) = sent {
                tracing::debug!(%error, "answer lost");
            }
        }
    }
}

/// The address to which a datagram was sent.
fn local(message: &RecvMsg<'_, '_, SockaddrStorage>) -> Option<IpAddr> {
    message.cmsgs().ok()?.find_map(|beside| match beside {
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            Some(IpAddr::V4(info.ipi_spec_dst.s_addr.to_ne_bytes().into()))
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => {
            Some(IpAddr::V6(info.ipi6_addr.s6_addr.into()))
        }
        _ => None,
    })
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(address) = storage.as_sockaddr_in() {
        return Some(SocketAddr::V4(v4(address)));
    }
    storage
        .as_sockaddr_in6()
        .map(|address| SocketAddr::V6(v6(address)))
}

fn v4(address: &SockaddrIn) -> SocketAddrV4 {
    SocketAddrV4::new(address.ip(), address.port())
}

fn v6(address: &SockaddrIn6) -> SocketAddrV6 {
    SocketAddrV6::new(address.ip(), address.port(), 0, address.scope_id())
}
