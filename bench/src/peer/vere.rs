//! This product, with the safety of its defaults.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use super::{Peer, PeerError, folder, free_address};
use crate::process::Daemon;

pub(super) fn start(vere: &Path, next_hop: SocketAddr, base: &Path) -> Result<Peer, PeerError> {
    let folder = folder(base, "vere-bench-vere-").map_err(PeerError::Folder)?;
    let address = free_address().map_err(PeerError::Folder)?;
    let file = folder.path().join("vere.toml");
    fs::write(&file, configuration(folder.path(), address, next_hop)).map_err(PeerError::Folder)?;
    let daemon =
        Daemon::spawn(&command(vere, &file), &folder.path().join("output")).map_err(|source| {
            PeerError::Spawn {
                program: vere.to_owned(),
                source,
            }
        })?;
    Peer {
        name: "vere",
        address,
        daemon,
        folder,
    }
    .ready()
}

/// The command that starts the system with the configuration `file`.
fn command(vere: &Path, file: &Path) -> Vec<OsString> {
    vec![vere.into(), "serve".into(), "-c".into(), file.into()]
}

/// A relay for the loopback with every message synced before it is answered; all else as shipped.
fn configuration(folder: &Path, address: SocketAddr, next_hop: SocketAddr) -> String {
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
         [relay]\n\
         networks = [\"127.0.0.0/8\"]\n\
         [[route]]\n\
         domain = \"*\"\n\
         next_hop = \"{next_hop}\"\n\
         [spool]\n\
         durability = \"synced\"\n",
        folder.display(),
    )
}
