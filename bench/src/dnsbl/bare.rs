//! The bare responder: the least work of any server for a query over UDP, and nothing else.
//!
//! A single thread reads and answers as many datagrams at a time as wait. Each answer is the query with one record behind: nothing
//! is parsed or looked up. The CPU time of a query at the responder is the limit of the machine for the unavoidable work: the way of
//! two datagrams through the kernel.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;

use clap::Args;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, recvmmsg, sendmmsg};

use super::wire;

/// Datagrams that are read and answered at a time.
const BATCH: usize = 64;
/// Octets of the longest query, and of the longest answer.
const DATAGRAM_MAX: usize = 1_232;

/// A record with the name of the question, of 127.0.0.2.
const RECORD: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\x08\x34\0\x04\x7f\0\0\x02";

/// Answers each query over UDP with one record and as little work as possible, until a signal.
#[derive(Debug, Args)]
pub struct DnsResponderArgs {
    /// The address to listen at, of IPv4.
    listen: SocketAddr,
}

/// Runs the responder; returns only after a failure.
///
/// # Errors
///
/// The address is taken, or the kernel refuses to read.
pub fn run(args: &DnsResponderArgs) -> io::Result<()> {
    let socket = UdpSocket::bind(args.listen)?;
    let descriptor = socket.as_raw_fd();
    let mut received = MultiHeaders::<SockaddrIn>::preallocate(BATCH, None);
    let mut sent = MultiHeaders::<SockaddrIn>::preallocate(BATCH, None);
    let mut queries = vec![[0; DATAGRAM_MAX]; BATCH];
    let mut answers: Vec<Vec<u8>> = vec![Vec::new(); BATCH];
    loop {
        let mut memory: Vec<[IoSliceMut<'_>; 1]> = queries
            .iter_mut()
            .map(|query| [IoSliceMut::new(query)])
            .collect();
        let flags = MsgFlags::MSG_WAITFORONE;
        let clients: Vec<(usize, Option<SockaddrIn>)> =
            match recvmmsg(descriptor, &mut received, memory.iter_mut(), flags, None) {
                Ok(messages) => messages.map(|each| (each.bytes, each.address)).collect(),
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
        for ((query, answer), (length, _)) in queries.iter().zip(&mut answers).zip(&clients) {
            write(&query[..(*length).min(DATAGRAM_MAX)], answer);
        }
        let slices: Vec<[IoSlice<'_>; 1]> = answers[..clients.len()]
            .iter()
            .map(|answer| [IoSlice::new(answer)])
            .collect();
        let clients: Vec<Option<SockaddrIn>> = clients.iter().map(|(_, client)| *client).collect();
        // What the kernel does not take is a query without an answer.
        let _ = sendmmsg(
            descriptor,
            &mut sent,
            &slices,
            &clients,
            [],
            MsgFlags::empty(),
        );
    }
}

/// Writes the answer: the query of the load with a record of the type A in front of its option of EDNS.
fn write(query: &[u8], answer: &mut Vec<u8>) {
    answer.clear();
    let Some((question, options)) = query.split_last_chunk::<{ wire::OPT.len() }>() else {
        return;
    };
    answer.extend_from_slice(question);
    answer.extend_from_slice(RECORD);
    answer.extend_from_slice(options);
    // A response that is authoritative, with one record.
    if let Some(head) = answer.get_mut(..8) {
        head[2] = 0x84;
        head[7] = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dnsbl::wire::{Kind, Said};

    #[test]
    fn each_query_has_one_record() {
        let query = wire::query("2.0.0.127.bl.test", Kind::A, true);
        let mut answer = Vec::new();
        write(&query, &mut answer);
        let said = wire::read(&answer, &query);
        assert_eq!(said, Some(Said::Address([127, 0, 0, 2].into())));
        write(&query[..5], &mut answer);
        assert!(answer.is_empty());
    }
}
