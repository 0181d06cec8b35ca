//! Veredarius, with the safety of its defaults.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::{Peer, PeerError, folder, free_address, spawn};
use crate::process::guard;

/// The file names of settings and zone, in the directory of the system.
const CONFIGURATION: &str = "vere.toml";
const ZONE: &str = "zone";

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
fn write_files(folder: &Path, ways: &Ways, nodes: Nodes) -> io::Result<(SocketAddr, PathBuf)> {
    if let Ways::Zone { records, .. } = ways {
        fs::write(folder.join(ZONE), records)?;
    }
    let address = free_address()?;
    let file = folder.join(CONFIGURATION);
    fs::write(&file, configuration(folder, address, ways) + &spool(nodes)?)?;
    Ok((address, file))
}

/// A relay for the loopback, for a client with many sessions; every message is synced before the reply, and all other
/// settings are as shipped.
fn configuration(folder: &Path, address: SocketAddr, ways: &Ways) -> String {
    let ways = match ways {
        Ways::To(next_hop) => format!(
            "[delivery]\nlocal = \"maildir\"\n[[route]]\ndomain = \"*\"\nnext_hop = \"{next_hop}\"\n"
        ),
        Ways::Zone { port, .. } => format!(
            "[resolver]\nzone = \"{}\"\n[delivery]\nlocal = \"maildir\"\nport = {port}\nmta_sts = \"off\"\ntls = \"off\"\n",
            folder.join(ZONE).display()
        ),
    };
    format!(
        "version = 1\n\
         hostname = \"vere.bench.test\"\n\
         data = \"{}/data\"\n\
         [smtp]\n\
         listen = [\"{address}\"]\n\
         [submission]\n\
         listen = []\n\
         [submissions]\n\
         listen = []\n\
         [lmtp]\n\
         listen = []\n\
         [relay]\n\
         networks = [\"127.0.0.0/8\"]\n\
         [limits]\n\
         connections_per_client_max = 1000\n\
         {ways}",
        folder.display(),
    )
}

/// The section `[spool]` of the settings.
fn spool(nodes: Nodes) -> io::Result<String> {
    let (names, slow_after) = match nodes {
        Nodes::Two => (&["a", "b"][..], ""),
        Nodes::Three => (&["a", "b", "c"][..], "slow_after = \"2s\"\n"),
    };
    let mut text = format!("[spool]\ndurability = \"synced\"\n{slow_after}");
    for name in names {
        let address = free_address()?;
        text += &format!("[[spool.node]]\nname = \"{name}\"\nlisten = \"{address}\"\n");
    }
    Ok(text)
}

/// The output of a command about the system in `folder`.
pub(super) fn ask(vere: &Path, folder: &Path, arguments: &[&str]) -> io::Result<Vec<u8>> {
    let mut command = std::process::Command::new(vere);
    command.args(arguments).arg("-c");
    guard::said_by(command.arg(folder.join(CONFIGURATION)))
}
