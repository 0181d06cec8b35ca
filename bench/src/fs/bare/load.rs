//! Mails written and read over accounts and connections.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::super::accounts::Accounts;
use super::super::content::{self, Encoding};
use crate::error::BenchError;
use crate::store::imap::{Imap, ImapError};

/// The date of every mail; its value decides nothing.
const DATE: &str = "01-Feb-2024 10:00:00 +0000";

/// A way to write several mails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// The next APPEND waits for the answer to the last.
    OneByOne,
    /// All APPENDs are sent at once (LITERAL+).
    Pipelined,
    /// One MULTIAPPEND.
    Joined,
}

/// Mails over accounts and connections. They are made before the clock runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    accounts: usize,
    /// Connections of each account.
    connections: usize,
    /// Mails of all connections together.
    mails: usize,
    /// Octets of content of each mail.
    octets: usize,
    writing: Writing,
    encoding: Encoding,
}

/// The times of a client: writing, and reading.
type Times = (Duration, Duration);

impl Load {
    /// Pipelined mails in 8 bits over one connection.
    pub(super) const fn of(mails: usize, octets: usize) -> Self {
        Self {
            accounts: 1,
            connections: 1,
            mails,
            octets,
            writing: Writing::Pipelined,
            encoding: Encoding::Eight,
        }
    }

    pub(super) const fn over(mut self, accounts: usize, connections: usize) -> Self {
        self.accounts = accounts;
        self.connections = connections;
        self
    }

    pub(super) const fn by(mut self, writing: Writing) -> Self {
        self.writing = writing;
        self
    }

    pub(super) const fn encoded(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Octets of the content of all mails.
    pub(super) const fn octets_of_all(self) -> u64 {
        (self.mails * self.octets) as u64
    }

    /// Writes and reads all mails, and removes them; returns the time of the last client to write and to read.
    pub(super) fn run(self, way: SocketAddr) -> Result<Times, BenchError> {
        let clients = self.accounts * self.connections;
        let barrier = Barrier::new(clients);
        let ended: Vec<Result<Times, ImapError>> = std::thread::scope(|scope| {
            let start = |number| {
                let barrier = &barrier;
                scope.spawn(move || self.client(way, number, barrier))
            };
            let started: Vec<_> = (0..clients).map(start).collect();
            let lost = |_| Err(std::io::Error::other("a client ended early").into());
            let ends = started.into_iter();
            ends.map(|client| client.join().unwrap_or_else(lost))
                .collect()
        });
        let mut longest = Times::default();
        for times in ended {
            let (wrote, read) = times.map_err(BenchError::of("bare IMAP"))?;
            longest = (longest.0.max(wrote), longest.1.max(read));
        }
        Ok(longest)
    }

    /// The part of a connection. A failed client still waits for the others, which wait for all.
    fn client(self, way: SocketAddr, number: usize, barrier: &Barrier) -> Result<Times, ImapError> {
        let clients = self.accounts * self.connections;
        let mails = self.mails / clients + usize::from(number < self.mails % clients);
        let own: Vec<Vec<u8>> = (0..mails)
            .map(|_| content::mail(self.octets, self.encoding))
            .collect();
        let mailbox = format!("w{number}");
        let opened = open(way, number % self.accounts, &mailbox);
        barrier.wait();
        let wrote = opened.and_then(|mut imap| {
            let begun = Instant::now();
            write(&mut imap, &mailbox, &own, self.writing)?;
            Ok((imap, begun.elapsed()))
        });
        barrier.wait();
        let (mut imap, wrote) = wrote?;
        let begun = Instant::now();
        read(&mut imap, &own)?;
        let read = begun.elapsed();
        imap.ok("CLOSE")?;
        imap.ok(&format!("DELETE {mailbox}"))?;
        Ok((wrote, read))
    }
}

/// A connection with an empty mailbox open.
fn open(way: SocketAddr, account: usize, mailbox: &str) -> Result<Imap, ImapError> {
    let mut imap = Accounts::login(way, account)?;
    imap.ok(&format!("CREATE {mailbox}"))?;
    imap.ok(&format!("SELECT {mailbox}"))?;
    Ok(imap)
}

fn write(
    imap: &mut Imap,
    mailbox: &str,
    mails: &[Vec<u8>],
    writing: Writing,
) -> Result<(), ImapError> {
    let dated = || mails.iter().map(|mail| (DATE.to_owned(), mail.as_slice()));
    let dated: Vec<(String, &[u8])> = dated().collect();
    match writing {
        _ if mails.is_empty() => Ok(()),
        Writing::OneByOne => {
            let mut mails = mails.iter();
            mails.try_for_each(|mail| imap.append(mailbox, mail).map(drop))
        }
        Writing::Pipelined => {
            let replies = imap.append_in_a_row(mailbox, &dated)?;
            replies.into_iter().try_for_each(|reply| reply.map(drop))
        }
        Writing::Joined => imap.append_at_once(mailbox, &dated).map(drop),
    }
}

/// Reads all mails, by a pipelined command for each. Fewer octets than were written are an error.
fn read(imap: &mut Imap, mails: &[Vec<u8>]) -> Result<(), ImapError> {
    let begun = Instant::now();
    let mut tags = Vec::with_capacity(mails.len());
    for number in 1..=mails.len() {
        tags.push(imap.send(&format!("FETCH {number} BODY.PEEK[]"))?);
    }
    let (mut found, mut octets) = (0, 0);
    for tag in tags {
        let reply = imap.finish(&tag, "FETCH", begun)?;
        found += usize::try_from(reply.fetched).unwrap_or(0);
        octets += reply.octets;
    }
    let written: u64 = mails.iter().map(|mail| mail.len() as u64).sum();
    match found == mails.len() && octets >= written {
        true => Ok(()),
        false => Err(ImapError::Count {
            expected: mails.len(),
            found,
        }),
    }
}
