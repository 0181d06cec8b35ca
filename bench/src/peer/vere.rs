//! Veredarius, with the safety of its defaults.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::settings::{FILE, Settings};
use super::{Peer, PeerError, folder, free_address, mx, spawn};
use crate::process::guard;

/// The routes of mail.
#[derive(Debug, Clone)]
pub(crate) enum Ways {
    /// All mail to one next hop.
    To(SocketAddr),
    /// To the hosts of the MX records in a zone, at a given port.
    Zone {
        /// A line for each record, as `d0.bench.test MX 10 mx0.bench.test`.
        records: String,
        /// The port of all hosts.
        port: u16,
    },
}

/// The spool nodes; two replicas hold each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nodes {
    /// As shipped.
    Two,
    /// Three nodes: a slow node is replaced soon.
    Three,
}

pub(super) fn start(
    vere: &Path,
    ways: &Ways,
    nodes: Nodes,
    base: &Path,
) -> Result<Peer, PeerError> {
    let folder = folder(base, "vere-bench-vere-")?;
    let (address, file) = write_files(folder.path(), ways, nodes)?;
    let command = [vere.into(), "serve".into(), "-c".into(), file.into()];
    let daemon = spawn(&command, folder.path())?;
    Peer {
        name: "vere",
        address,
        daemon,
        folder,
    }
    .ready()
}

/// Writes the settings; returns the address of the SMTP listener, and the path of the settings.
///
/// A relay for the loopback, for a client with many sessions; every message is synced before the reply, and all other
/// settings are as shipped.
fn write_files(folder: &Path, ways: &Ways, nodes: Nodes) -> io::Result<(SocketAddr, PathBuf)> {
    let zone = folder.join("zone");
    let ways = match ways {
        Ways::To(next_hop) => {
            format!("local = \"maildir\"\n[[route]]\ndomain = \"*\"\nnext_hop = \"{next_hop}\"\n")
        }
        Ways::Zone { port, records } => {
            fs::write(&zone, records)?;
            format!(
                "local = \"maildir\"\nport = {port}\nmta_sts = \"off\"\ntls = \"off\"\n\
                 [resolver]\nzone = \"{}\"\n",
                zone.display()
            )
        }
    };
    let (names, slow_after) = match nodes {
        Nodes::Two => (&["a", "b"][..], ""),
        Nodes::Three => (&["a", "b", "c"][..], "slow_after = \"2s\"\n"),
    };
    let address = free_address()?;
    let settings = Settings::new(&folder.join("data"), &[("smtp", address)]).with(&format!(
        "[relay]\nnetworks = [\"127.0.0.0/8\"]\n[limits]\nconnections_per_client_max = 1000\n\
         [spool]\ndurability = \"synced\"\n{slow_after}[delivery]\n{ways}"
    ));
    Ok((address, settings.nodes(names)?.write(folder)?))
}

/// Starts a mail exchanger under a name, with further lines in its settings; accepted mail goes to the next hop.
pub(super) fn start_exchanger(
    name: &'static str,
    vere: &Path,
    next_hop: SocketAddr,
    lines: &str,
    base: &Path,
) -> Result<Peer, PeerError> {
    let folder = folder(base, "vere-bench-front-")?;
    let address = free_address()?;
    fs::write(folder.path().join("directory.toml"), mx::directory())?;
    let own = folder.path().display();
    let sections = format!(
        "[directory]\nstore = \"file:{own}/directory.toml\"\n\
         [limits]\nconnections_max = 100000\nconnections_per_client_max = 100000\n\
         [spool]\ndurability = \"synced\"\n[delivery]\nlocal = \"maildir\"\n\
         [[route]]\ndomain = \"*\"\nnext_hop = \"{next_hop}\"\n{lines}"
    );
    let settings = Settings::new(&folder.path().join("data"), &[("smtp", address)]);
    let file = settings
        .with(&sections)
        .nodes(&["a", "b"])?
        .write(folder.path())?;
    let command = [vere.into(), "serve".into(), "-c".into(), file.into()];
    let daemon = spawn(&command, folder.path())?;
    Peer {
        name,
        address,
        daemon,
        folder,
    }
    .ready()
}

/// The output of a command about the system in `folder`.
pub(super) fn ask(vere: &Path, folder: &Path, arguments: &[&str]) -> io::Result<Vec<u8>> {
    let mut command = std::process::Command::new(vere);
    command.args(arguments).arg("-c");
    guard::said_by(command.arg(folder.join(FILE)))
}
