//! The settings of the X.400 MTA. O/R addresses stay texts here; `vere-switch` reads them.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use vere_units::{ByteSize, Secret, Span};

use crate::watching::LogLevel;

/// An X.400 MTA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct X400 {
    /// Addresses for associations.
    pub listen: Vec<SocketAddr>,
    /// Addresses for associations with TLS.
    pub listen_tls: Vec<SocketAddr>,
    /// The roots that issue certificates of callers.
    pub client_ca: Option<PathBuf>,
    /// The name of the MTA in its domain.
    pub mta_name: String,
    /// The global domain identifier as a text.
    pub domain: String,
    /// Connections of callers at once.
    pub connections_max: u32,
    /// Octets of a transferred unit.
    pub size_max: ByteSize,
    /// Recipients of a message.
    pub recipients_max: u32,
    /// Octets of a returned content.
    pub return_size_max: ByteSize,
    /// Waits between attempts; the last one repeats.
    pub retry: Vec<Span>,
    /// The ages at which messages of the three grades are given up.
    pub expire: X400Expire,
    /// The recipient of messages for unknown users.
    pub alternate: Option<String>,
    /// Whether units are archived.
    pub archive: bool,
    /// The age at which a day of the archive is removed; zero keeps every day.
    pub archive_keep: Span,
    /// Whether the audit log is written.
    pub audit: bool,
    /// The age at which a day of the audit log is removed; zero keeps every day.
    pub audit_keep: Span,
    /// The least important level that the MTA writes to the log.
    pub log_level: LogLevel,
    /// The socket for gateways and commands.
    pub socket: PathBuf,
    /// Everything below the data folder that belongs to the MTA.
    pub folder: PathBuf,
    /// Other MTAs.
    pub peers: Vec<X400Peer>,
    /// The destinations of addresses.
    pub routes: Vec<X400Route>,
    /// The terms of local users.
    pub users: Vec<X400User>,
    /// Programs that attach to the socket.
    pub gateways: Vec<X400Gateway>,
}

impl X400 {
    /// The name of the MTA's group of queues.
    #[must_use]
    pub fn group(&self) -> String {
        format!("{GROUP_PREFIX}{}", self.mta_name)
    }

    /// The folder of trace events.
    #[must_use]
    pub fn trace_folder(&self) -> PathBuf {
        self.folder.join("trace")
    }

    /// The socket of commands about queues.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.folder.join("control.sock")
    }

    /// The folder of the archive.
    #[must_use]
    pub fn archive_folder(&self) -> PathBuf {
        self.folder.join("archive")
    }

    /// The folder of the audit log.
    #[must_use]
    pub fn audit_folder(&self) -> PathBuf {
        self.folder.join("audit")
    }

    /// The folder with a folder for each local user.
    #[must_use]
    pub fn users_folder(&self) -> PathBuf {
        self.folder.join("users")
    }
}

/// The beginning of the names of groups that belong to X.400 MTAs.
pub const GROUP_PREFIX: &str = "x400.";

/// The ages at which messages are given up, by grade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct X400Expire {
    /// Urgent messages.
    pub urgent: Span,
    /// Normal messages, probes and reports.
    pub normal: Span,
    /// Non-urgent messages.
    pub non_urgent: Span,
}

/// A password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum X400Password {
    /// None.
    None,
    /// In the settings.
    Text(Secret<String>),
    /// In the first line of a file.
    File(PathBuf),
}

/// Another MTA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct X400Peer {
    /// The name for routes, queues and logs.
    pub name: String,
    /// The global domain identifier as a text.
    pub domain: String,
    /// The name that the peer gives; `None` for a peer that binds without a name.
    pub mta_name: Option<String>,
    /// The password that the peer gives.
    pub password: X400Password,
    /// The name that this MTA gives.
    pub own_name: String,
    /// The password that this MTA gives.
    pub own_password: X400Password,
    /// Hosts and ports, in the order of attempts.
    pub addresses: Vec<(String, u16)>,
    /// Addresses from which the peer calls.
    pub from: Vec<IpAddr>,
    /// A name in the certificate that the peer shows when it calls.
    pub caller_certificate: Option<String>,
    /// Whether calls to the peer are encrypted.
    pub tls: bool,
    /// The name in the certificate of the peer.
    pub certificate: Option<String>,
    /// Whether the peer speaks P1 of 1984.
    pub is_1984: bool,
    /// The transport selector of the peer.
    pub selector: Option<String>,
    /// The transport selector of this MTA toward the peer.
    pub own_selector: Option<String>,
    /// Associations at once, in each direction.
    pub associations_max: u32,
    /// Whether the peer may send over associations that this MTA opens.
    pub two_way: bool,
    /// Associations that stay open.
    pub permanent: u32,
    /// Messages over an association in one turn.
    pub messages_per_association_max: u32,
    /// The border toward this MTA.
    pub accepts: X400Border,
    /// The border toward the peer.
    pub sends: X400Border,
}

/// Permitted messages. Empty lists and absent sizes permit everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct X400Border {
    /// Permitted originators.
    pub originators: Vec<String>,
    /// Refused originators.
    pub not_originators: Vec<String>,
    /// Permitted recipients.
    pub recipients: Vec<String>,
    /// Refused recipients.
    pub not_recipients: Vec<String>,
    /// Content types.
    pub content_types: Vec<String>,
    /// Octets of a content.
    pub size_max: Option<ByteSize>,
}

/// The destination of addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct X400Route {
    /// The upper part of addresses.
    pub address: String,
    /// The destination.
    pub to: String,
    /// Whether the row stands for the address alone.
    pub whole: bool,
}

/// The terms of a local user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct X400User {
    /// The name.
    pub name: String,
    /// Content types; an empty list accepts every type.
    pub content_types: Vec<String>,
    /// Octets of a content.
    pub size_max: Option<ByteSize>,
    /// The address that gets all messages instead.
    pub redirect_to: Option<String>,
}

/// A program that attaches to the socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct X400Gateway {
    /// The name.
    pub name: String,
    /// Messages on their way at once.
    pub keep_max: u32,
}
