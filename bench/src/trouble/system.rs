//! The system under trouble: whole, with the limits of the defaults, or with smaller limits for the measurement.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::filter::Filter;
use super::judged::Judged;
use super::names::Names;

use crate::error::BenchError;
use crate::output::note;
use crate::peer::{OURS, Settings, await_ready, folder, free_address, spawn};
use crate::process::{Daemon, Process, guard};
use crate::store::imap::Imap;
use crate::store::systems::{PASSWORD, vere};
use crate::store::usage;

/// The domain of all accounts, the account of honest clients, and the number of further accounts.
pub(super) const DOMAIN: &str = "trouble.test";
pub(super) const HONEST: &str = "honest";
const ACCOUNTS: usize = 8;

/// The zone of the block list, and an address that it has.
pub(super) const ZONE: &str = "bl.trouble.test";
pub(super) const LISTED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The mail of the account for clients that do not read: number and octets of messages.
const LARGE_OCTETS: usize = 8 << 20;
const LARGE: usize = 2;

/// Sessions of each worker for judged mail, and messages in queues.
const TASKS: u32 = 10_000;
const QUEUED_MAX: usize = 100_000;

const START_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(20);

/// KiB of memory, by role.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory(BTreeMap<String, u64>);

impl Memory {
    /// All roles together.
    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The figure of a single role.
    pub(super) fn of(&self, role: &str) -> u64 {
        self.0.get(role).copied().unwrap_or_default()
    }

    fn add(&mut self, role: &str, kib: u64) {
        *self.0.entry(role.to_owned()).or_default() += kib;
    }

    /// Keeps the larger of two sums, with all figures.
    pub(super) fn raise(&mut self, other: &Self) {
        if other.total() > self.total() {
            self.clone_from(other);
        }
    }
}

/// What a system is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) quick: bool,
    /// Sessions of each worker, with a front before the gateway.
    pub(super) front: Option<u32>,
    /// Whether the server of block lists runs.
    pub(super) has_lists: bool,
    /// Whether the MTA of X.400 runs.
    pub(super) has_x400: bool,
    /// What is judged, and the number of clients.
    pub(super) judged: Option<(Judged, usize)>,
}

/// A running system.
#[derive(Debug)]
pub(super) struct System {
    pub(super) smtp: SocketAddr,
    pub(super) submissions: SocketAddr,
    pub(super) imap: SocketAddr,
    pub(super) imaps: SocketAddr,
    /// The server of block lists, if the system has one.
    pub(super) lists: SocketAddr,
    /// The MTA of X.400, if the system has one.
    pub(super) x400: SocketAddr,
    pub(super) shape: Shape,
    /// The bounds of memory from the settings.
    pub(super) bounds: Memory,
    /// Messages of honest clients with 250.
    pub(super) acknowledged: Cell<u64>,
    /// The content filter, if the system has one.
    pub(super) filter: Option<Filter>,
    /// The name server of judged mail.
    _names: Option<Names>,
    vere: PathBuf,
    file: PathBuf,
    daemon: Daemon,
    // Removed after the daemon, which still writes to the directory.
    _folder: TempDir,
}

impl System {
    /// Starts a system of the program `vere` below `base`.
    pub(super) fn start(vere: &Path, base: &Path, shape: Shape) -> Result<Self, BenchError> {
        let io = BenchError::io;
        let folder = folder(base, "vere-bench-trouble-").map_err(io("make a folder"))?;
        let port = || free_address().map_err(io("find a port"));
        let (smtp, submissions, imap, imaps) = (port()?, port()?, port()?, port()?);
        let (lists, x400) = (port()?, port()?);
        let listen = [
            ("smtp", smtp),
            ("submissions", submissions),
            ("imap", imap),
            ("imaps", imaps),
            ("lmtp", port()?),
        ];
        let is_silent = |judged| judged == Judged::SilentNames;
        let names = shape
            .judged
            .map(|(judged, _)| Names::start(is_silent(judged)));
        let names = names.transpose();
        let names = names.map_err(io("start a name server"))?;
        let filter = matches!(shape.judged, Some((Judged::Filter(_), _)));
        let filter = filter.then(Filter::start).transpose();
        let filter = filter.map_err(io("start a filter"))?;
        let helpers = (names.as_ref(), filter.as_ref());
        certificate(vere, folder.path()).map_err(io("make a certificate"))?;
        let file = fs::write(folder.path().join("directory.toml"), directory())
            .and_then(|()| fs::write(folder.path().join("zone"), "trouble.test MX 0 .\n"))
            .and_then(|()| fs::write(folder.path().join("list"), format!("{LISTED}\n")))
            .and_then(|()| write_settings(folder.path(), &listen, (lists, x400), shape, helpers))
            .map_err(io("write settings"))?;
        let bounds = bounds(vere, &file).map_err(io("ask for the bounds of memory"))?;
        let command = [vere.into(), "serve".into(), "-c".into(), (&file).into()];
        let daemon = spawn(&command, folder.path())?;
        let system = Self {
            smtp,
            submissions,
            imap,
            imaps,
            lists,
            x400,
            shape,
            bounds,
            acknowledged: Cell::default(),
            filter,
            _names: names,
            vere: vere.to_owned(),
            file,
            daemon,
            _folder: folder,
        };
        let serves = || {
            let has_lists = || !shape.has_lists || super::honest::ask(lists).is_ok();
            let has_x400 = || !shape.has_x400 || super::mta::send(x400, 0).is_ok();
            Imap::connect(imap).is_ok()
                && super::honest::send(&system, "250").is_ok()
                && has_lists()
                && has_x400()
        };
        await_ready(OURS, &system.daemon, START_MAX, serves)?;
        system.fill()?;
        Ok(system)
    }

    /// The present memory; shared memory counts in parts.
    pub(super) fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for process in Process::tree(self.daemon.id()).unwrap_or_default() {
            let kib = usage::memory(std::slice::from_ref(&process));
            memory.add(role(&process.command), kib);
        }
        memory
    }

    /// Messages in the quarantine, as `vere queue list` counts.
    pub(super) fn quarantined(&self) -> u64 {
        let said = self.said_by(&["queue", "list", "--json"]);
        let rows: Value = serde_json::from_slice(&said).unwrap_or_default();
        let rows = rows.as_array().into_iter().flatten();
        rows.filter_map(|row| row["quarantined"].as_u64()).sum()
    }

    /// Removes all messages of the quarantine.
    pub(super) fn empty_quarantine(&self) {
        self.said_by(&["quarantine", "refuse", "--all", "--yes"]);
    }

    /// The output of a command about the system; no octets where the command fails.
    fn said_by(&self, words: &[&str]) -> Vec<u8> {
        let mut command = Command::new(&self.vere);
        let said = guard::said_by(command.args(words).arg("-c").arg(&self.file));
        said.inspect_err(|error| note(&format!("{words:?}: {error}")))
            .unwrap_or_default()
    }

    /// Messages in the mailboxes INBOX and Junk of an account.
    pub(super) fn stored(&self, account: &str) -> Option<u64> {
        let mut imap = Imap::connect(self.imap).ok()?;
        imap.ok(&format!("LOGIN {account} {PASSWORD}")).ok()?;
        let inbox = imap.ok("SELECT INBOX").ok()?.exists;
        // A mailbox without use so far is missing.
        let junk = imap.ok("SELECT Junk").map_or(0, |reply| reply.exists);
        Some(inbox + junk)
    }

    /// Stores large messages for clients that ask for messages and do not read.
    fn fill(&self) -> Result<(), BenchError> {
        let message = message("large", LARGE_OCTETS / 78 * 78);
        let failed = || BenchError::of("mail store");
        let mut imap = Imap::connect(self.imap).map_err(failed())?;
        let login = format!("LOGIN {} {PASSWORD}", user(0));
        imap.ok(&login).map_err(failed())?;
        for _ in 0..LARGE {
            imap.append("INBOX", &message).map_err(failed())?;
        }
        Ok(())
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.daemon.stop(STOP_MAX);
    }
}

/// The account of client `number`; the first account has the large messages.
pub(super) fn user(number: usize) -> String {
    format!("user{}@{DOMAIN}", number % ACCOUNTS)
}

/// A message with a body of `octets` octets, in lines of 78.
pub(super) fn message(subject: &str, octets: usize) -> Vec<u8> {
    let line = [b"x".repeat(76), b"\r\n".to_vec()].concat();
    let mut message = format!("Subject: {subject}\r\n\r\n").into_bytes();
    message.extend(line.iter().cycle().take(octets));
    message
}

/// The role that a process belongs to.
fn role(command: &str) -> &str {
    let mut words = command
        .split(' ')
        .skip_while(|word| *word != "role")
        .skip(1);
    match words.next() {
        None => "supervisor",
        Some("parser") => "store",
        Some("worker") => "workers",
        Some("spool") => "spool",
        Some(role) => role,
    }
}

/// The bound of each role in KiB, as `vere check-config` reports.
fn bounds(vere: &Path, file: &Path) -> io::Result<Memory> {
    let mut command = Command::new(vere);
    command.args(["check-config", "--json"]).arg(file);
    let output = guard::output(&mut command)?;
    let value: Value = serde_json::from_slice(&output.stdout)?;
    let mut memory = Memory::default();
    for one in value["memory"]["roles"].as_array().into_iter().flatten() {
        let role = one["role"].as_str().unwrap_or_default();
        let role = role.split('-').next().unwrap_or(role);
        memory.add(role, one["bytes"].as_u64().unwrap_or_default() / 1024);
    }
    if memory.total() == 0 {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        return Err(io::Error::other(said));
    }
    Ok(memory)
}

/// A certificate, as `vere quickstart` makes one.
fn certificate(vere: &Path, folder: &Path) -> io::Result<()> {
    let mut command = Command::new(vere);
    command.args(["quickstart", "you@trouble.test", "--dir"]);
    guard::said_by(command.arg(folder.join("made"))).map(drop)
}

fn directory() -> String {
    let honest = format!("{HONEST}@{DOMAIN}");
    vere::directory(DOMAIN, (0..ACCOUNTS).map(user).chain([honest]))
}

/// As shipped, but with wide bounds where a narrow bound would hide the bound under test.
fn write_settings(
    folder: &Path,
    listen: &[(&str, SocketAddr)],
    (lists, x400): (SocketAddr, SocketAddr),
    shape: Shape,
    (names, filter): (Option<&Names>, Option<&Filter>),
) -> io::Result<PathBuf> {
    // So a tenth of the clients reaches the bound as well.
    let bodies = match shape.quick {
        true => "message_size_max = \"10 MiB\"\nbody_memory_max = \"32 MiB\"\n",
        false => "",
    };
    // Without the pauses and rates of single clients: all clients are on this machine.
    let tasks = shape.front.or(shape.judged.map(|_| TASKS));
    let front = tasks.map(|tasks| {
        format!("[front]\nbanner_delay = \"0s\"\nconnections_per_minute = 0\nsessions_at_once = {tasks}\n")
    });
    let front = front.unwrap_or_default();
    let own = folder.display();
    // The crowd has the rates of strangers.
    let lists = match shape.has_lists {
        true => format!(
            "[dnsbl]\nlisten = [\"{lists}\"]\nrate_exempt = [\"127.0.0.1/32\"]\n\
             [[dnsbl.zone]]\nname = \"{ZONE}\"\ndata = [\"ip4set:{own}/list\"]\n"
        ),
        false => String::new(),
    };
    let x400 = match shape.has_x400 {
        true => super::mta::settings(x400),
        false => String::new(),
    };
    // Judged mail wants a name server, which can be silent.
    let resolver = match names {
        Some(names) => format!("servers = [\"{}\"]", names.address),
        None => format!("zone = \"{own}/zone\""),
    };
    let judged = shape.judged.map(|(judged, _)| judged);
    let judged = judged.map(|judged| judged.settings(filter.map(|filter| filter.address)));
    let judged = judged.unwrap_or_default();
    // A quarantine that is flooded meets the bounds of queues.
    let queued_max = match shape.judged {
        Some((Judged::Quarantine, clients)) => clients,
        _ => QUEUED_MAX,
    };
    let sections = format!(
        "[directory]\nstore = \"file:{own}/directory.toml\"\n[delivery]\nlocal = \"store\"\n\
         [auth]\nplaintext_networks = [\"127.0.0.0/8\"]\n\
         [tls]\ncertificate = \"{own}/made/tls/cert.pem\"\nkey = \"{own}/made/tls/key.pem\"\n\
         [resolver]\n{resolver}\n\
         [limits]\nqueued_messages_max = {queued_max}\nqueue_memory_max = \"32 MiB\"\n{bodies}\
         [spool]\nmemory_max = \"64 MiB\"\n{front}{lists}{judged}{x400}"
    );
    let settings = Settings::new(&folder.join("data"), listen).with(&sections);
    settings.nodes(&["a", "b"])?.write(folder)
}

#[cfg(test)]
mod tests {
    use super::role;

    #[test]
    fn processes_belong_to_roles() {
        assert_eq!(role("/usr/bin/vere serve -c x"), "supervisor");
        assert_eq!(role("/usr/bin/vere role store -c x"), "store");
        assert_eq!(role("/usr/bin/vere role parser"), "store");
        assert_eq!(role("/usr/bin/vere role worker -c x"), "workers");
        assert_eq!(role("/usr/bin/vere role spool --node a -c x"), "spool");
    }
}
