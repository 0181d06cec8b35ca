//! Ports of the settings in the hands of foreign programs, while the system is stopped.

use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;

use nix::errno::Errno;
use tokio::net::TcpSocket;
use vere_settings::Settings;
use vere_supervisor::roles::listening;
use vere_supervisor::spec::Address;

use crate::row::Row;

const CHECK: &str = "ports";
/// Processes whose descriptors are searched for a socket.
const PROCESSES_MAX: usize = 100_000;

/// Tries to bind each address, for a moment and without listening, so that no client connects.
pub(super) fn rows(settings: &Settings, runs: bool) -> Vec<Row> {
    if runs {
        return vec![Row::ok(CHECK, "the running system holds its ports")];
    }
    let mut rows: Vec<Row> = Vec::new();
    let mut free = 0;
    for (section, address) in listening(settings) {
        let (addresses, datagrams) = match address {
            Address::Internet(addresses) => (addresses, false),
            Address::Datagrams { addresses, .. } => (addresses, true),
            Address::Local { .. } | Address::Channel(_) => continue,
        };
        for address in addresses {
            let tried = match datagrams {
                true => UdpSocket::bind(address).map(drop),
                false => tcp(address),
            };
            match tried {
                Ok(()) => free += 1,
                Err(error) => rows.push(refused(&section, address, &error, holder(address))),
            }
        }
    }
    if free > 0 {
        rows.push(Row::ok(CHECK, format!("{free} are free")));
    }
    rows
}

/// Binds as the system does, so that connections of an earlier system in TIME_WAIT do not count.
fn tcp(address: SocketAddr) -> io::Result<()> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)
}

fn refused(section: &str, at: SocketAddr, error: &io::Error, holder: Option<Holder>) -> Row {
    let code = error.raw_os_error().map(Errno::from_raw);
    let key = key(section);
    match (code, holder) {
        // The sockets of the unit.
        (Some(Errno::EADDRINUSE), Some(Holder { pid: 1, .. })) => Row::ok(
            CHECK,
            format!("systemd holds {at} ({section}) for its units"),
        ),
        (Some(Errno::EADDRINUSE), Some(Holder { pid, name })) => Row::critical(
            CHECK,
            format!("{at} ({section}) is taken by {name}, process {pid}"),
            format!("stop {name} for good, or choose another address with: {key}"),
        ),
        (Some(Errno::EADDRINUSE), None) => Row::critical(
            CHECK,
            format!("{at} ({section}) is taken by another program"),
            format!(
                "see which with: ss -ltnup 'sport = :{}', as root",
                at.port()
            ),
        ),
        (Some(Errno::EACCES | Errno::EPERM), _) => Row::ok(
            CHECK,
            format!("{at} ({section}) is not tried; only root can"),
        ),
        (Some(Errno::EADDRNOTAVAIL), _) => Row::critical(
            CHECK,
            format!("no interface of this machine has the address of {at} ({section})"),
            format!("see the addresses with: ip address, and correct {key}"),
        ),
        _ => Row::critical(
            CHECK,
            format!("{at} ({section}) cannot be bound: {error}"),
            format!("correct {key}"),
        ),
    }
}

/// The key of a section's addresses; some sections have names for systemd alone.
fn key(section: &str) -> String {
    match section.split_once('-') {
        Some(("metrics", of)) => format!("metrics.{of}"),
        Some(("spool", node)) => format!("listen of [[spool.node]] {node}"),
        Some(("x400", "tls")) => "x400.listen_tls".to_owned(),
        Some((section, _)) => format!("{section}.listen"),
        None => format!("{section}.listen"),
    }
}

/// The process behind a port.
#[derive(Debug, PartialEq, Eq)]
struct Holder {
    pid: u32,
    name: String,
}

/// Searches the sockets of the kernel, then the descriptors of all processes. Only root sees all descriptors.
fn holder(address: SocketAddr) -> Option<Holder> {
    let files = ["tcp", "tcp6", "udp", "udp6"];
    let mut inodes = files.iter().filter_map(|file| {
        let text = fs::read_to_string(format!("/proc/net/{file}")).ok()?;
        inode(&text, address.port())
    });
    owner(Path::new("/proc"), inodes.next()?)
}

/// The inode of a socket that listens at a port, in the form of `/proc/net/tcp` (proc_net(5)). A UDP socket without peer
/// has state 07.
fn inode(text: &str, port: u16) -> Option<u64> {
    let suffix = format!(":{port:04X}");
    text.lines().skip(1).find_map(|line| {
        let mut words = line.split_whitespace();
        let (local, state) = (words.nth(1)?, words.nth(1)?);
        let listens = local.ends_with(&suffix) && matches!(state, "0A" | "07");
        // State is the fourth word, the inode the tenth.
        words.nth(5).filter(|_| listens)?.parse().ok()
    })
}

fn owner(processes: &Path, inode: u64) -> Option<Holder> {
    let wanted = format!("socket:[{inode}]");
    let entries = fs::read_dir(processes).ok()?.flatten().take(PROCESSES_MAX);
    entries
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let mut descriptors = fs::read_dir(entry.path().join("fd")).ok()?.flatten();
            let is_it = |link: &Path| link.as_os_str() == wanted.as_str();
            descriptors.find(|link| fs::read_link(link.path()).is_ok_and(|to| is_it(&to)))?;
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            Some(Holder {
                pid,
                name: name.trim().to_owned(),
            })
        })
        .next()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::finding::Level;

    #[test]
    fn a_taken_port_is_found_with_its_process() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = other.local_addr().unwrap();
        let error = tcp(at).unwrap_err();
        let found = holder(at).unwrap();
        assert_eq!(found.pid, std::process::id());
        let row = refused("smtp", at, &error, Some(found));
        assert_eq!(row.level, Level::Critical);
        assert!(row.remedy.unwrap().contains("smtp.listen"));
        drop(other);
        assert!(tcp(at).is_ok());
    }

    #[test]
    fn sockets_of_systemd_and_ports_of_root_are_no_faults() {
        let at = "127.0.0.1:25".parse().unwrap();
        let level = |code: Errno, pid| {
            let holder = Holder {
                pid,
                name: "other".to_owned(),
            };
            refused("smtp", at, &io::Error::from(code), Some(holder)).level
        };
        assert_eq!(level(Errno::EADDRINUSE, 1), Level::Ok);
        assert_eq!(level(Errno::EADDRINUSE, 7), Level::Critical);
        assert_eq!(level(Errno::EACCES, 7), Level::Ok);
        assert_eq!(level(Errno::EADDRNOTAVAIL, 7), Level::Critical);
        let keys = ["smtp", "metrics-store", "dnsbl-udp"].map(key);
        assert_eq!(keys, ["smtp.listen", "metrics.store", "dnsbl.listen"]);
    }

    #[test]
    fn the_settings_are_tried_while_the_system_is_stopped() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = |listener: &TcpListener| listener.local_addr().unwrap();
        let taken = address(&other);
        // The listener ends with the statement.
        let free = address(&TcpListener::bind("127.0.0.1:0").unwrap());
        let text = format!(
            "version = 1\nhostname = \"a.b\"\n[smtp]\nlisten = [\"{taken}\"]\n[lmtp]\nlisten = []\n\
             [delivery]\nlocal = \"maildir\"\n[[spool.node]]\nname = \"a\"\nlisten = \"{free}\"\n"
        );
        let settings = Settings::parse(&text, "vere.toml").unwrap();
        let found = rows(&settings, false);
        let wrong: Vec<_> = found.iter().filter(|row| row.level > Level::Ok).collect();
        assert_eq!(wrong.len(), 1, "{found:?}");
        assert!(
            wrong[0].text.contains("(smtp) is taken by"),
            "{}",
            wrong[0].text
        );
        assert_eq!(rows(&settings, true)[0].level, Level::Ok);
    }
}
