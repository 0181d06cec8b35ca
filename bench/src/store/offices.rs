//! MFS Figures 10 and 11: mailboxes written per second, and octets written to disks for the mailboxes, when each
//! message goes to fifteen mailboxes, with one to fifteen recipients in a transaction.
//!
//! Our store accepts messages by LMTP and answers when the messages are in the mailboxes. Postfix answers when the
//! messages are in its queue; the log of Postfix reports the deliveries.

use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use super::deliver::{Protocol, spread};
use super::imap::ImapError;
use super::linker::Linker;
use super::report::Figure;
use super::systems::{RECIPIENTS, System, recipients};
use super::table::POSTFIX_MAILDIR;
use super::usage;
use crate::output::Header;
use crate::peer::{Destination, OURS, Peer, PeerError, there};
use crate::process::{Process, guard};

/// Recipients of a transaction, with the names of both figures.
const AT_ONCE: [(usize, &str, &str); 4] = [
    (1, "delivery, 1 recipient", "written, 1 recipient"),
    (3, "delivery, 3 recipients", "written, 3 recipients"),
    (5, "delivery, 5 recipients", "written, 5 recipients"),
    (
        RECIPIENTS,
        "delivery, 15 recipients",
        "written, 15 recipients",
    ),
];

/// How long Postfix may take to deliver the next message.
const STALL_MAX: Duration = Duration::from_secs(120);

/// Interval between two reads of Postfix's log.
const POLL: Duration = Duration::from_millis(2);

/// Postfix with mailboxes.
#[derive(Debug)]
pub(crate) struct Office {
    peer: Peer,
    log: Log,
    /// The LMTP server in the process of the benchmark, if the method has such a server.
    linker: Option<Linker>,
}

impl Office {
    /// Postfix in all three methods, as far as available.
    pub(crate) fn all(base: &Path, header: &mut Header) -> Result<Vec<Self>, PeerError> {
        let addresses: Vec<String> = recipients().collect();
        let users: Vec<String> = addresses
            .iter()
            .filter_map(|address| Some(address.split_once('@')?.0.to_owned()))
            .collect();
        let linker = Linker::start(&users, base)?;
        let mailboxes = |maildir| Destination::Mailboxes {
            addresses: addresses.clone(),
            maildir,
        };
        let lmtp = Destination::Lmtp {
            addresses: addresses.clone(),
            server: linker.address,
        };
        let ways = [
            (POSTFIX_MAILDIR, mailboxes(true), None),
            ("postfix mbox", mailboxes(false), None),
            ("postfix hard links", lmtp, Some(linker)),
        ];
        let mut offices = Vec::new();
        for (name, destination, linker) in ways {
            if let Some(peer) = there(Peer::postfix_for(name, &destination, base), header)? {
                offices.push(Self {
                    log: Log::open(&peer.folder().join("log"))?,
                    peer,
                    linker,
                });
            }
        }
        Ok(offices)
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.peer.name()
    }

    /// Delivers each message to all, once for each number of recipients at once.
    pub(crate) fn deliver(&mut self, messages: &[Vec<u8>]) -> Result<Vec<Figure>, ImapError> {
        let (name, address) = (self.name(), self.peer.address());
        let mut processes = Vec::new();
        if self.linker.is_some() {
            let id = std::process::id();
            let command = String::new();
            processes.push(Process { id, command });
        }
        let peer = &self.peer;
        let written = || {
            let own = peer.processes().unwrap_or_default();
            usage::written(&own) + usage::written(&processes)
        };
        let log = &mut self.log;
        each(name, address, Protocol::Smtp, messages, written, |count| {
            log.wait(count)
        })
    }
}

/// Delivers the same messages to our store.
pub(crate) fn deliver_ours(
    system: &System,
    messages: &[Vec<u8>],
) -> Result<Vec<Figure>, ImapError> {
    let written = || usage::written(&system.processes());
    each(OURS, system.lmtp, Protocol::Lmtp, messages, written, |_| {
        Ok(())
    })
}

fn each(
    system: &'static str,
    address: SocketAddr,
    protocol: Protocol,
    messages: &[Vec<u8>],
    written: impl Fn() -> u64,
    mut wait: impl FnMut(usize) -> io::Result<()>,
) -> Result<Vec<Figure>, ImapError> {
    let mut figures = Vec::new();
    for (at_once, delivery, octets) in AT_ONCE {
        let (before, started) = (written(), Instant::now());
        spread(address, protocol, messages, at_once)?;
        let mailboxes = messages.len() * RECIPIENTS;
        wait(mailboxes)?;
        let took = started.elapsed().as_secs_f64();
        let kib = written().saturating_sub(before) as f64 / 1024.0;
        figures.push(Figure::new(system, delivery, mailboxes as f64 / took));
        figures.push(Figure::new(system, octets, kib / messages.len() as f64));
    }
    Ok(figures)
}

/// The log of a Postfix, read while Postfix writes.
#[derive(Debug)]
struct Log {
    file: File,
    /// The beginning of an incomplete line.
    rest: String,
}

impl Log {
    fn open(path: &Path) -> io::Result<Self> {
        // Postfix appends to the log.
        let mut options = File::options();
        let file = options.read(true).append(true).create(true).open(path)?;
        let rest = String::new();
        Ok(Self { file, rest })
    }

    /// Waits until the log reports `count` more recipients as delivered.
    fn wait(&mut self, mut count: usize) -> io::Result<()> {
        let mut heard = Instant::now();
        while count > 0 {
            let sent = self.sent()?;
            if sent > 0 {
                heard = Instant::now();
            } else if heard.elapsed() > STALL_MAX || guard::is_stopped() {
                return Err(io::Error::other(format!(
                    "{count} mailboxes without their mail"
                )));
            } else {
                std::thread::sleep(POLL);
            }
            count = count.saturating_sub(sent);
        }
        Ok(())
    }

    /// Deliveries in the log since the last read.
    fn sent(&mut self) -> io::Result<usize> {
        let mut text = Vec::new();
        self.file.read_to_end(&mut text)?;
        self.rest.push_str(&String::from_utf8_lossy(&text));
        let end = self.rest.rfind('\n').map_or(0, |at| at + 1);
        let lines: String = self.rest.drain(..end).collect();
        let mut sent = 0;
        for line in lines.lines() {
            if line.contains(" status=sent ") {
                sent += 1;
            } else if line.contains(" status=") {
                return Err(io::Error::other(line.to_owned()));
            }
        }
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_log_is_counted_by_whole_lines_and_trouble_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut writer = File::create(&path).unwrap();
        let mut log = Log::open(&path).unwrap();
        writer
            .write_all(b"x: to=<a>, status=sent (ok)\nx: removed\nx: to=<b>, status=s")
            .unwrap();
        assert_eq!(log.sent().unwrap(), 1);
        writer.write_all(b"ent (ok)\n").unwrap();
        log.wait(1).unwrap();
        assert_eq!(log.sent().unwrap(), 0);
        writer
            .write_all(b"x: to=<b>, status=deferred (full)\n")
            .unwrap();
        assert!(log.wait(1).unwrap_err().to_string().contains("(full)"));
    }

    #[test]
    fn postfix_delivers_in_each_way() {
        let base = crate::peer::folder(&std::env::temp_dir(), "vere-bench-test-").unwrap();
        let mut header = Header::new("store", true, base.path());
        let mut offices = Office::all(base.path(), &mut header).unwrap();
        for missing in header.skipped {
            // The words for an absent peer; a peer that fails to start has other words.
            assert!(missing.contains(" skipped: "), "{missing}");
        }
        for office in &mut offices {
            let figures = office
                .deliver(&[b"A: b\r\n\r\nhello\r\n".to_vec()])
                .unwrap();
            assert_eq!(figures.len(), AT_ONCE.len() * 2, "{}", office.name());
            // The log of a Postfix in memory is not on a disk, whose octets are unknown here.
            let mut rates = figures.iter().step_by(2);
            assert!(rates.all(|rate| rate.value > 0.0), "{figures:?}");
        }
    }
}
