//! The settings of a measured Veredarius.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The file name of the settings, in the directory of the system.
pub(super) const FILE: &str = "vere.toml";

/// The text of a file of settings.
#[derive(Debug)]
pub(crate) struct Settings(String);

impl Settings {
    /// The services listen at these addresses, and no other service listens.
    pub(crate) fn new(data: &Path, listen: &[(&str, SocketAddr)]) -> Self {
        let data = data.display();
        let mut text = format!("version = 1\nhostname = \"vere.bench.test\"\ndata = \"{data}\"\n");
        for service in ["smtp", "submission", "submissions", "imap", "imaps", "lmtp"] {
            let own = listen.iter().filter(|(name, _)| *name == service);
            let own: Vec<String> = own.map(|(_, address)| address.to_string()).collect();
            text += &format!("[{service}]\nlisten = {own:?}\n");
        }
        Self(text)
    }

    /// Adds whole sections.
    pub(crate) fn with(mut self, sections: &str) -> Self {
        self.0 += sections;
        self
    }

    /// Adds spool nodes at free addresses.
    pub(crate) fn nodes(mut self, names: &[&str]) -> io::Result<Self> {
        for name in names {
            let address = free_address()?;
            self.0 += &format!("[[spool.node]]\nname = \"{name}\"\nlisten = \"{address}\"\n");
        }
        Ok(self)
    }

    /// Writes the file into a directory, and returns its path.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        let file = folder.join(FILE);
        fs::write(&file, &self.0)?;
        Ok(file)
    }
}

/// A loopback address with a port that was free at the time of the call, and that no earlier call has returned: two
/// listeners of one system had the same port.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    static RETURNED: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut returned = RETURNED.lock().unwrap_or_else(PoisonError::into_inner);
    // While a port is held, the system names others.
    let mut held = Vec::new();
    loop {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        if returned.insert(address.port()) {
            return Ok(address);
        }
        held.push(listener);
    }
}

#[test]
fn no_address_is_returned_twice() {
    let all: BTreeSet<_> = (0..2_000).map(|_| free_address().unwrap()).collect();
    assert_eq!(all.len(), 2_000);
}
