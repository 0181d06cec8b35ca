//! Binds every port before any other step, while the process may still run as root.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

use vere_net::listen::{Inherited, ListenOptions, bind_local};
use vere_settings::Settings;

use super::error::SupervisorError;
use super::role::Listener;

/// Permissions of a socket that every user of the machine may connect to.
const FOR_EVERYBODY: u32 = 0o666;

/// The bound sockets by the role that inherits them.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    /// The gateway's, in the order of the sections.
    pub(super) gateway: Vec<Listener>,
    /// The mail store's; it runs where there are any.
    pub(super) store: Vec<Listener>,
    /// One list per node, by the node's name.
    pub(super) nodes: BTreeMap<String, Vec<Listener>>,
}

/// Takes what systemd passed, by the names of the sections, and binds the rest.
///
/// The sockets of a node are called `spool` for the node itself and `spool-NAME` for systemd.
pub(super) fn open(settings: &Settings) -> Result<Listeners, SupervisorError> {
    let wrong = |section: &str, source| SupervisorError::Listen {
        section: section.to_owned(),
        source,
    };
    let mut inherited = Inherited::from_env().map_err(|source| wrong("systemd", source))?;
    let mut listeners = Listeners::default();
    if let Some(sendmail) = &settings.sendmail {
        let socket = local(&mut inherited, "sendmail", &sendmail.socket, FOR_EVERYBODY)?;
        listeners.gateway.push(socket);
    }
    let mut take = |section: &str, addresses: &[SocketAddr]| {
        let options = ListenOptions::default();
        inherited
            .take_or_bind(section, addresses, options)
            .map_err(|source| wrong(section, source))
    };
    let acme = settings.acme.as_ref().map_or(&[][..], |acme| &acme.listen);
    let sections = [
        ("smtp", settings.smtp.listen.as_slice()),
        ("submission", &settings.submission.listen),
        ("submissions", &settings.submissions.listen),
        ("acme", acme),
        ("metrics", settings.metrics.listen.as_slice()),
    ];
    for (section, addresses) in sections {
        listeners
            .gateway
            .extend(named(section, take(section, addresses)?));
    }
    let sections = [
        ("imap", &settings.imap),
        ("imaps", &settings.imaps),
        ("lmtp", &settings.lmtp),
    ];
    for (section, on) in sections {
        listeners
            .store
            .extend(named(section, take(section, &on.listen)?));
    }
    if !listeners.store.is_empty() {
        let sockets = take("metrics-store", settings.metrics.store.as_slice())?;
        listeners.store.extend(named("metrics-store", sockets));
    }
    for node in settings.spool.nodes.iter().filter(|node| !node.remote) {
        let addresses: Vec<SocketAddr> = node.addresses().collect();
        let sockets = take(&format!("spool-{}", node.name), &addresses)?;
        listeners
            .nodes
            .insert(node.name.clone(), named("spool", sockets).collect());
    }
    for name in inherited.names() {
        tracing::warn!(
            name,
            "systemd passed a socket that no section of the settings has"
        );
    }
    Ok(listeners)
}

fn named(name: &str, sockets: Vec<TcpListener>) -> impl Iterator<Item = Listener> {
    let name = name.to_owned();
    sockets.into_iter().map(move |socket| Listener {
        name: name.clone(),
        socket: Arc::new(OwnedFd::from(socket)),
    })
}

/// A socket in the file system: what systemd passed under this name, or a new one.
fn local(
    inherited: &mut Inherited,
    name: &str,
    path: &Path,
    mode: u32,
) -> Result<Listener, SupervisorError> {
    let socket: UnixListener = match inherited.take_local(name) {
        Some(socket) => socket,
        None => bind_local(path, mode).map_err(|source| SupervisorError::Socket {
            path: path.to_owned(),
            source,
        })?,
    };
    Ok(Listener {
        name: name.to_owned(),
        socket: Arc::new(OwnedFd::from(socket)),
    })
}
