//! Binds every port as the first step, while the process may still run as root.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

use vere_net::datagrams;
use vere_net::listen::{Inherited, ListenError, ListenOptions, bind_local};
use vere_net::packets::PacketSocket;
use vere_settings::Settings;

use crate::error::SupervisorError;
use crate::role::Listener;
use crate::roles;
use crate::spec::{Address, End, Instance, RoleSpec, Socket};

/// A process to start, with bound sockets.
#[derive(Debug)]
pub(super) struct Opened {
    /// The role.
    pub(super) spec: &'static RoleSpec,
    /// The name of the instance.
    pub(super) instance: Option<String>,
    /// The inherited sockets, in the order of the descriptors.
    pub(super) listeners: Vec<Listener>,
}

/// The processes to start, and the socket of the log.
#[derive(Debug)]
pub(super) struct Bound {
    /// The processes, in start order.
    pub(super) opened: Vec<Opened>,
    /// The end of the processes that write the log, if another process sends the log to a collector.
    pub(super) log: Option<Arc<OwnedFd>>,
}

/// Takes the sockets from systemd by the names of the sections, and binds the rest. Returns the processes in start
/// order.
///
/// Roles bind in the reverse order, so that an error names the service of clients first.
pub(super) fn open(settings: &Settings) -> Result<Bound, SupervisorError> {
    let mut inherited = Inherited::from_env().map_err(|source| wrong("systemd", source))?;
    let mut channels = Channels::default();
    let mut roles = Vec::new();
    for spec in roles::in_start_order().into_iter().rev() {
        let mut processes = Vec::new();
        for instance in (spec.instances)(settings) {
            let listeners = listeners(&mut inherited, &mut channels, &instance)?;
            if instance.needs_socket && listeners.is_empty() {
                continue;
            }
            processes.push(Opened {
                spec,
                instance: instance.name,
                listeners,
            });
        }
        roles.push(processes);
    }
    for name in inherited.names() {
        tracing::warn!(
            name,
            "systemd passed a socket that no section of the settings has"
        );
    }
    Ok(Bound {
        opened: roles.into_iter().rev().flatten().collect(),
        log: channels.asking(roles::LOG),
    })
}

/// The sockets of a process.
fn listeners(
    inherited: &mut Inherited,
    channels: &mut Channels,
    instance: &Instance,
) -> Result<Vec<Listener>, SupervisorError> {
    let mut listeners = Vec::new();
    for socket in &instance.sockets {
        if socket.beside && listeners.is_empty() {
            continue;
        }
        match socket.address {
            Address::Channel(end) => listeners.push(channels.end(socket, end)?),
            _ => listeners.extend(bound(inherited, socket)?),
        }
    }
    Ok(listeners)
}

fn bound(inherited: &mut Inherited, socket: &Socket) -> Result<Vec<Listener>, SupervisorError> {
    let section = socket.section.as_str();
    let descriptors: Vec<OwnedFd> = match &socket.address {
        Address::Internet(addresses) => inherited
            .take_or_bind(section, addresses, ListenOptions::default())
            .map_err(|source| wrong(section, source))?
            .into_iter()
            .map(TcpListener::into)
            .collect(),
        Address::Datagrams { addresses, each } => {
            datagrams::take_or_bind(inherited, section, addresses, *each)
                .map_err(|source| wrong(section, source))?
                .into_iter()
                .map(UdpSocket::into)
                .collect()
        }
        Address::Channel(_) => Vec::new(),
        Address::Local { path, mode } => vec![local(inherited, section, path, *mode)?.into()],
    };
    let listener = |descriptor| Listener {
        name: socket.name.to_owned(),
        socket: Arc::new(descriptor),
    };
    Ok(descriptors.into_iter().map(listener).collect())
}

/// Pairs of sockets between roles, by name.
#[derive(Debug, Default)]
struct Channels(BTreeMap<&'static str, [Arc<OwnedFd>; 2]>);

impl Channels {
    fn end(&mut self, socket: &Socket, end: End) -> Result<Listener, SupervisorError> {
        let pair = match self.0.entry(socket.name) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let pair = PacketSocket::pair();
                let (one, other) =
                    pair.map_err(SupervisorError::system("make a pair of sockets"))?;
                place.insert([one, other].map(|end| Arc::new(end.into())))
            }
        };
        let [asking, answering] = pair;
        let own = match end {
            End::Asking => asking,
            End::Answering => answering,
        };
        Ok(Listener {
            name: socket.name.to_owned(),
            socket: Arc::clone(own),
        })
    }
}

impl Channels {
    /// The asking end of a channel that a role has.
    fn asking(&self, name: &str) -> Option<Arc<OwnedFd>> {
        self.0.get(name).map(|[asking, _]| Arc::clone(asking))
    }
}

fn wrong(section: &str, source: ListenError) -> SupervisorError {
    SupervisorError::Listen {
        section: section.to_owned(),
        source,
    }
}

/// A socket in the file system: the socket from systemd with the given name, or a new socket.
fn local(
    inherited: &mut Inherited,
    name: &str,
    path: &Path,
    mode: u32,
) -> Result<UnixListener, SupervisorError> {
    if let Some(socket) = inherited.take_local(name) {
        return Ok(socket);
    }
    bind_local(path, mode).map_err(|source| SupervisorError::Socket {
        path: path.to_owned(),
        source,
    })
}
