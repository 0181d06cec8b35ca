//! The broker role: answers the front and its workers, which must not read the directory of accounts, whether mail for a
//! recipient is accepted, asks next hops about recipients of other systems, and the DNS for SPF and single records. The broker
//! answers over a socket in the file system, in the protocol of [`vere_handoff::question`]. The broker opens no other socket
//! but to name servers and next hops, and reads no message.
//!
//! Reading order: `answers` (directory and routes), `known` (answers that are kept), `call_ahead` (next hops), `lookups` (the
//! DNS), `listed` (lists of clients), `service` (a connection).

mod answers;
mod call_ahead;
mod error;
mod known;
mod listed;
mod lookups;
mod recent;
mod service;
mod share;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::spawn_local;
use vere_directory::Directory;
use vere_net::listen::bind_local;
use vere_settings::Settings;

use self::answers::Answers;
use self::error::BrokerError;
use vere_process::failure::Failure;
use vere_process::life::{self, Signals};
use vere_process::log::Level;
use vere_process::{accept, entry, secret};
use vere_routing::{Router, Srs};

/// Permissions of the socket: any process that may connect can ask which mailboxes exist.
const SOCKET_MODE: u32 = 0o600;
/// Maximum of simultaneous connections: the front and each worker have one.
const CONNECTIONS_MAX: usize = 1_024;

/// Runs the role until it is told to stop.
///
/// # Errors
/// When the broker cannot start: the directory of accounts, the socket.
pub fn run(settings: Arc<Settings>, config: &Path, level: Level) -> Result<(), Failure> {
    life::run(serve(settings, config, level))
}

async fn serve(settings: Arc<Settings>, config: &Path, level: Level) -> Result<(), BrokerError> {
    let store = vere_disk::directory::create(&settings.directory.store)?;
    let directory = Directory::new(store, settings.directory.subaddress_separator);
    let listener = listen(&settings)?;
    let resolver = vere_outbound::resolver(&settings)?;
    let srs = secret::srs(&settings.data).map_err(BrokerError::Secret)?;
    let router = Router::new(directory).with_srs(Srs::new(srs));
    let answers = Rc::new(Answers::new(router, settings, resolver)?);
    let (stop, stopping) = watch::channel(false);
    spawn_local(clients(listener, Rc::clone(&answers), stopping));
    check_lists(&answers);
    spawn_local(life::beat());
    let mut signals = Signals::new()?;
    entry::notify_ready();
    let apply = |settings| {
        let applied = answers.set_settings(settings);
        check_lists(&answers);
        applied
    };
    signals.wait_for_stop(config, &level, apply).await;
    // Connections end with the process: a client asks again when the next broker listens.
    let _ = stop.send(true);
    Ok(())
}

/// Begins the checks of lists that are due, so that the first clients need not wait for them.
fn check_lists(answers: &Answers) {
    if let Some(lists) = answers.lists.clone() {
        spawn_local(async move { lists.probe().await });
    }
}

/// Opens the socket, in a directory of its owner alone.
fn listen(settings: &Settings) -> Result<UnixListener, BrokerError> {
    let folder = settings.front_directory();
    accept::private_folder(&folder).map_err(|source| BrokerError::Folder {
        path: folder,
        source,
    })?;
    let path = settings.broker_socket();
    let listener = bind_local(&path, SOCKET_MODE).and_then(UnixListener::from_std);
    listener.map_err(|source| BrokerError::Listen { path, source })
}

/// Serves the connections of clients until `stopping` becomes true.
async fn clients(listener: UnixListener, answers: Rc<Answers>, stopping: watch::Receiver<bool>) {
    let open = Rc::new(Cell::new(0));
    let serve = |stream: UnixStream| {
        let (answers, open) = (Rc::clone(&answers), Rc::clone(&open));
        async move {
            // Over the maximum, the connection is closed at once: the client tries again.
            if open.get() >= CONNECTIONS_MAX {
                return;
            }
            open.set(open.get() + 1);
            if let Err(error) = service::serve(stream, &answers).await {
                tracing::warn!(%error, "connection of a client ended");
            }
            open.set(open.get() - 1);
        }
    };
    accept::accept(listener, "broker", stopping, serve).await;
}
