//! Folders below `data` that several processes and commands know.

use std::path::PathBuf;

use crate::model::Settings;

impl Settings {
    /// The directory with the events of every message.
    #[must_use]
    pub fn trace_directory(&self) -> PathBuf {
        self.data.join("trace")
    }

    /// The directory with the sockets by which the processes of port 25 reach each other; for the owner alone.
    #[must_use]
    pub fn front_directory(&self) -> PathBuf {
        self.data.join("front")
    }

    /// The directory of the couriers, for the owner alone: the gateway's socket, and caches of the couriers.
    #[must_use]
    pub fn couriers_directory(&self) -> PathBuf {
        self.data.join("couriers")
    }

    /// The socket of the gateway for its couriers.
    #[must_use]
    pub fn couriers_socket(&self) -> PathBuf {
        self.couriers_directory().join("gateway")
    }

    /// The socket of the front for the worker at a place, from 0 on.
    #[must_use]
    pub fn worker_socket(&self, place: usize) -> PathBuf {
        self.front_directory().join(format!("worker.{place}"))
    }

    /// The socket of the gateway for messages that workers have received.
    #[must_use]
    pub fn intake_socket(&self) -> PathBuf {
        self.front_directory().join("intake")
    }

    /// The socket of the broker for the questions of front and workers.
    #[must_use]
    pub fn broker_socket(&self) -> PathBuf {
        self.front_directory().join("broker")
    }

    /// The directory of all that the web server may read beside its settings: the list of local domains and the answers to
    /// challenges. The gateway writes it; nothing in it is a secret.
    #[must_use]
    pub fn web_directory(&self) -> PathBuf {
        self.data.join("web")
    }

    /// The list of local domains for the web server.
    #[must_use]
    pub fn web_domains(&self) -> PathBuf {
        self.web_directory().join("domains")
    }

    /// The directory of answers to challenges of ACME, for the web server.
    #[must_use]
    pub fn web_challenges(&self) -> PathBuf {
        self.web_directory().join("challenges")
    }

    /// The directory of certificates that answer challenges of type tls-alpn-01, with keys that serve nothing else, for the web server.
    #[must_use]
    pub fn web_challenge_certificates(&self) -> PathBuf {
        self.web_directory().join("certificates")
    }

    /// The directory of certificates by ACME for the names of local domains that belong to the web server, with their keys.
    #[must_use]
    pub fn web_certificates(&self) -> PathBuf {
        self.data.join("acme").join("names")
    }

    /// The socket of the signer, for gateway and front.
    #[must_use]
    pub fn signer_socket(&self) -> PathBuf {
        let own = self.dkim.as_ref().map(|dkim| dkim.socket.clone());
        own.unwrap_or_else(|| self.data.join("signer.sock"))
    }

    /// The directory with the events of a drain while a gateway runs on the same machine.
    #[must_use]
    pub fn drain_trace_directory(&self) -> PathBuf {
        self.data.join("trace-drain")
    }
}
