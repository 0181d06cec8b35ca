//! The form of a row in the table of roles: the facts for the supervisor, `vere role` and `check-config`.

use std::net::SocketAddr;
use std::path::PathBuf;

use vere_settings::Settings;

use crate::memory::MemoryPart;

/// A role: a program part with separate processes.
#[derive(Debug)]
pub struct RoleSpec {
    /// The name of the role, also the role's subcommand of `vere role`.
    pub name: &'static str,
    /// The help text of the subcommand.
    pub about: &'static str,
    /// The roles that must be ready before the role starts. The supervisor stops roles in the reverse order.
    pub after: &'static [&'static str],
    /// The option of the subcommand for an instance, without dashes; `None` for a role with a single process.
    pub option: Option<&'static str>,
    /// The section of the settings for the role; `None` for a role without settings.
    pub section: Option<&'static str>,
    /// The processes of the role to start on the machine; absent for a role that is started by a different role.
    pub instances: fn(&Settings) -> Vec<Instance>,
    /// The permitted memory of a process of the role.
    pub memory: fn(&Settings) -> Vec<MemoryPart>,
}

impl RoleSpec {
    /// The name of a process of the role in logs and errors: `gateway`, `spool-a`.
    #[must_use]
    pub fn process(&self, instance: Option<&str>) -> String {
        match instance {
            Some(instance) => format!("{}-{instance}", self.name),
            None => self.name.to_owned(),
        }
    }

    /// The arguments of `vere role` for a process: `gateway`, or `spool --node a`.
    #[must_use]
    pub fn arguments(&self, instance: Option<&str>) -> Vec<String> {
        let mut arguments = vec![self.name.to_owned()];
        if let (Some(option), Some(instance)) = (self.option, instance) {
            arguments.extend([format!("--{option}"), instance.to_owned()]);
        }
        arguments
    }
}

/// A process of a role, as the settings describe the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instance {
    /// The name of the instance, the value of [`RoleSpec::option`].
    pub name: Option<String>,
    /// The listening sockets, in the order of the inherited descriptors.
    pub sockets: Vec<Socket>,
    /// Whether the process starts only with a socket. A socket of systemd suffices.
    pub needs_socket: bool,
    /// The data directory of the process, if the supervisor has to create one.
    pub directory: Option<PathBuf>,
}

impl Instance {
    /// Whether the settings alone, without sockets of systemd, start the process.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        let mut own = self.sockets.iter().filter(|socket| !socket.beside);
        !self.needs_socket || own.any(Socket::is_configured)
    }
}

/// A listening socket, or several with a common name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket {
    /// The name for systemd and in errors: the section of the settings.
    pub section: String,
    /// The name among the inherited descriptors.
    pub name: &'static str,
    /// The addresses.
    pub address: Address,
    /// Whether the socket serves operators only: without a further socket of the process, the socket is not opened.
    pub beside: bool,
}

impl Socket {
    /// A socket of the internet, with one name for systemd and the role.
    #[must_use]
    pub fn internet(section: &'static str, addresses: &[SocketAddr]) -> Self {
        Self {
            section: section.to_owned(),
            name: section,
            address: Address::Internet(addresses.to_vec()),
            beside: false,
        }
    }

    fn is_configured(&self) -> bool {
        match &self.address {
            Address::Internet(addresses) | Address::Datagrams { addresses, .. } => {
                !addresses.is_empty()
            }
            Address::Local { .. } | Address::Channel(_) => true,
        }
    }
}

/// The address of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Addresses of the internet; with an empty list only systemd provides the socket.
    Internet(Vec<SocketAddr>),
    /// UDP sockets, several at each address; the kernel spreads clients among the sockets.
    Datagrams {
        /// The addresses.
        addresses: Vec<SocketAddr>,
        /// The number of sockets at each.
        each: usize,
    },
    /// A socket in the file system.
    Local {
        /// The path.
        path: PathBuf,
        /// The permissions.
        mode: u32,
    },
    /// An end of a pair of sockets without a name, whose other end another role has. The supervisor keeps both, so that either role
    /// may be restarted.
    Channel(End),
}

/// An end of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The role asks.
    Asking,
    /// The role answers.
    Answering,
}
