//! The settings of a test's system, written out as a configuration file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use vere_faults::etcd::Cluster;

use super::Files;

/// The least settings.
const SMALLEST: &str = "version = 1\nhostname = \"mx.example.org\"\ndata = \"data\"\n";

/// The settings of a system: loopback may relay and authenticate without TLS, and deferred mail is
/// tried again after a second, and own mail goes into Maildirs, unless a test says otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    sections: BTreeMap<String, BTreeMap<String, String>>,
    top: String,
    tables: String,
    zone: String,
    nodes: BTreeMap<String, (SocketAddr, String)>,
}

impl Default for Options {
    fn default() -> Self {
        let options = Self {
            sections: BTreeMap::new(),
            top: String::new(),
            tables: String::new(),
            zone: String::new(),
            nodes: BTreeMap::new(),
        };
        let options = match std::env::var("VERE_COURIERS") {
            Ok(processes) => options.set("delivery.courier_processes", &processes),
            Err(_) => options,
        };
        options
            .set("relay.networks", "[\"127.0.0.0/8\"]")
            .set("auth.plaintext_networks", "[\"127.0.0.0/8\"]")
            .set("delivery.retry", "[\"1s\"]")
            .set("delivery.local", "\"maildir\"")
            .set("lmtp.listen", "[]")
    }
}

impl Options {
    /// Writes a file with the least settings, followed by `more`, and returns the path.
    pub(crate) fn write_smallest(directory: &Path, more: &str) -> PathBuf {
        let config = directory.join("vere.toml");
        std::fs::write(&config, SMALLEST.to_owned() + more).expect("the configuration");
        config
    }

    /// Sends all mail but local mail to a next hop.
    pub(crate) fn to(next_hop: impl ToString) -> Self {
        Self::default().route("*", next_hop, "")
    }

    /// Sets `section.key` to a value in TOML.
    pub(crate) fn set(mut self, key: &str, value: &str) -> Self {
        let (section, key) = key.rsplit_once('.').expect("section.key");
        let section = self.sections.entry(section.to_owned()).or_default();
        section.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets a key before the first section.
    pub(crate) fn set_top(mut self, key: &str, value: &str) -> Self {
        let _ = writeln!(self.top, "{key} = {value}");
        self
    }

    /// Takes `section.key` out.
    pub(crate) fn unset(mut self, key: &str) -> Self {
        let (section, key) = key.split_once('.').expect("section.key");
        if let Some(section) = self.sections.get_mut(section) {
            section.remove(key);
        }
        self
    }

    /// Adds a route with further lines.
    pub(crate) fn route(self, domain: &str, next_hop: impl ToString, lines: &str) -> Self {
        let next_hop = next_hop.to_string();
        self.table(&format!(
            "[[route]]\ndomain = \"{domain}\"\nnext_hop = \"{next_hop}\"\n{lines}"
        ))
    }

    /// Adds lines at the end of the file.
    pub(crate) fn table(mut self, lines: &str) -> Self {
        let _ = writeln!(self.tables, "{lines}");
        self
    }

    /// Says where a spool node listens, with further lines of its section.
    pub(crate) fn node(mut self, name: &str, listen: SocketAddr, lines: &str) -> Self {
        self.nodes
            .insert(name.to_owned(), (listen, lines.to_owned()));
        self
    }

    /// The section of a spool node, which listens at `address` unless a test says otherwise.
    pub(super) fn node_section(&self, name: &str, address: SocketAddr) -> String {
        let (listen, lines) = match self.nodes.get(name) {
            Some((listen, lines)) => (*listen, lines.as_str()),
            None => (address, ""),
        };
        format!("[[spool.node]]\nname = \"{name}\"\nlisten = \"{listen}\"\n{lines}\n")
    }

    /// Adds a record to the test zone, which is then asked instead of the network.
    pub(crate) fn record(mut self, line: &str) -> Self {
        let _ = writeln!(self.zone, "{line}");
        self
    }

    /// The certificate to show.
    pub(crate) fn certificate(self, files: &Files) -> Self {
        self.set("tls.certificate", &quoted(&files.certificate))
            .set("tls.key", &quoted(&files.key))
    }

    /// The certificate for clients that ask for `name`.
    pub(crate) fn certificate_for(self, name: &str, files: &Files) -> Self {
        self.table(&format!(
            "[[tls.sni]]\nname = \"{name}\"\ncertificate = {}\nkey = {}",
            quoted(&files.certificate),
            quoted(&files.key)
        ))
    }

    /// The certificate that gateway and nodes show each other, on loopback too.
    pub(crate) fn spool_tls(self, files: &Files, ca: &Path) -> Self {
        self.set("spool.tls.certificate", &quoted(&files.certificate))
            .set("spool.tls.key", &quoted(&files.key))
            .set("spool.tls.ca", &quoted(ca))
    }

    /// Keeps the register in a cluster of etcd.
    pub(crate) fn etcd(self, cluster: &Cluster) -> Self {
        let endpoints = format!("{:?}", cluster.endpoints());
        self.set("cluster.register", "\"etcd\"")
            .set("cluster.etcd.endpoints", &endpoints)
    }

    pub(super) fn encrypts_spool(&self) -> bool {
        self.sections.contains_key("spool.tls")
    }

    pub(super) fn has_certificate(&self) -> bool {
        self.sections
            .get("tls")
            .is_some_and(|tls| tls.contains_key("certificate"))
    }

    /// The text of the file that lies in `directory`; the zone file is written there.
    pub(super) fn render(&self, directory: &Path) -> String {
        let mut options = self.clone();
        if !self.zone.is_empty() {
            std::fs::write(directory.join("zone"), &self.zone).expect("the zone");
            options = options.set("resolver.zone", "\"zone\"");
        }
        let mut text = SMALLEST.to_owned() + &options.top;
        for (section, keys) in &options.sections {
            let _ = writeln!(text, "[{section}]");
            for (key, value) in keys {
                let _ = writeln!(text, "{key} = {value}");
            }
        }
        text + &options.tables
    }
}

/// A path as a value in TOML.
pub(crate) fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display())
}
