//! Ports of the settings in the hands of foreign programs, while the system is stopped.

use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;

use nix::errno::Errno;
use tokio::net::TcpSocket;
use vere_settings::{Settings, SpoolNode};
use vere_supervisor::roles::{listening, node_section};
use vere_supervisor::spec::Address;

use crate::nodes;
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
    let nodes = nodes::alone(settings);
    for (section, address) in listening(settings) {
        let node = nodes
            .iter()
            .find(|node| node_section(&node.name) == section);
        // A machine with nodes alone opens no other ports.
        if node.is_none() && !nodes.is_empty() {
            continue;
        }
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
                Err(error) => {
                    let holder = holder(address);
                    let own = node.and_then(|node| of_node(node, address, &error, holder.as_ref()));
                    let row = own.unwrap_or_else(|| refused(&section, address, &error, holder));
                    rows.push(row);
                }
            }
        }
    }
    if free > 0 {
        rows.push(Row::ok(CHECK, format!("{free} are free")));
    }
    rows
}

/// The port of a node that runs alone, in the hands of the node's own process.
fn of_node(
    node: &SpoolNode,
    at: SocketAddr,
    error: &io::Error,
    holder: Option<&Holder>,
) -> Option<Row> {
    let name = &node.name;
    let is_taken = error.raw_os_error().map(Errno::from_raw) == Some(Errno::EADDRINUSE);
    let text = match holder {
        _ if !is_taken => return None,
        None => format!("{at} is in use; only root sees whether by the node {name}"),
        Some(holder) => {
            let line = fs::read(format!("/proc/{}/cmdline", holder.pid)).ok()?;
            is_serving(&line, name).then(|| format!("the running node {name} holds {at}"))?
        }
    };
    Some(Row::ok(CHECK, text))
}

/// Whether a command line (proc_pid_cmdline(5)) is `vere spool serve --node NAME`.
fn is_serving(line: &[u8], name: &str) -> bool {
    let line = String::from_utf8_lossy(line);
    let words: Vec<&str> = line.split('\0').collect();
    let has = |parts: &[&str]| words.windows(parts.len()).any(|window| window == parts);
    let joined = format!("--node={name}");
    has(&["spool", "serve"]) && (has(&["--node", name]) || has(&[joined.as_str()]))
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

    /// The remedy was to stop the node for good.
    #[test]
    fn the_port_of_a_node_alone_may_be_held_by_the_node() {
        let line = b"/usr/bin/vere\0spool\0serve\0--node\0mail2\0-c\0/etc/vere/vere.toml\0";
        assert!(is_serving(line, "mail2") && !is_serving(line, "mail"));
        assert!(is_serving(b"vere\0spool\0serve\0--node=mail2\0", "mail2"));
        assert!(!is_serving(b"vere\0serve\0", "mail2"));
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = other.local_addr().unwrap();
        let text = crate::nodes::tests::joined(&at.to_string());
        let settings = Settings::parse(&text, "vere.toml").unwrap();
        // This process is no node, and the ports of a mail system are not tried.
        let found = rows(&settings, false);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].text.contains("(spool-mail2) is taken by"));
        let node = &settings.spool.nodes[0];
        let error = tcp(at).unwrap_err();
        let unseen = of_node(node, at, &error, None).unwrap();
        assert_eq!(unseen.level, Level::Ok);
        let denied = io::Error::from(Errno::EADDRNOTAVAIL);
        assert_eq!(of_node(node, at, &denied, None), None);
        drop(other);
        assert_eq!(rows(&settings, false)[0].text, "1 are free");
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
