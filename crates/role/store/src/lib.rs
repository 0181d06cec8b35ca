//! The store role: mailboxes, read by IMAP and filled by LMTP.
//!
//! A thread owns the store and a thread syncs the log (`keeper`); a third thread has the connections. `listeners`
//! accept, `reception` has what connections share, `session` drives an IMAP connection and `lmtp` an LMTP one, `client`
//! answers what the IMAP machine asks. `fetcher` gives messages (`large` ones piece by piece) within `fetch_memory`,
//! `filing` finds the folder of a delivery, `search` finds messages and fills the `index`, which all connections share.
//! Other processes take messages apart (`vere_parsing`). `upkeep` reclaims space, `used` reads the mailboxes that were
//! used last, `watchers` tells sessions of changes, `metrics` counts, `sessions` ends those of accounts that are
//! removed, `steps` are the parts of questions, `quota` knows the limits of accounts. `admin` lets the administrator
//! in, `copies` opens copies of the log, `hold` keeps the log as it is for a backup, `accounts` lists and removes what accounts have, `keeping` lets expunged messages go, `mailboxes` lists them and brings
//! them back, `files` knows where everything lies, `mark` records beside it
//! how far the log got.

pub mod accounts;
mod admin;
mod checking;
mod client;
mod convert;
pub mod copies;
#[cfg(test)]
mod decoding;
mod error;
mod fetch_memory;
mod fetcher;
mod files;
mod filing;
#[cfg(test)]
mod filled;
mod hold;
mod holds;
mod index;
mod keeper;
mod keeping;
mod large;
mod listeners;
mod lmtp;
mod mail_store;
mod mailboxes;
pub mod maintenance;
mod mark;
mod messages;
mod metrics;
mod opened;
mod private;
mod quota;
mod reception;
mod search;
mod session;
mod sessions;
mod share;
mod steps;
mod upkeep;
mod used;
mod watchers;

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{spawn_blocking, spawn_local};
use vere_disk::log::octets_read;
use vere_net::listen::{Inherited, ListenOptions};
use vere_settings::Settings;
use vere_telemetry::metrics::Health;

use error::RoleError;
use files::Files;
use index::{Indexer, SharedIndex};
use keeper::Keeper;
use listeners::{Service, accept};
use metrics::Figures;
use reception::Reception;
use vere_parsing::{Parsers, Processes};
use vere_process::entry;
use vere_process::failure::Failure;
use vere_process::life::{self, Signals};
use vere_process::log::Level;
use vere_process::recovering::Recovering;
use vere_process::tls::ServerTls;

/// How long sessions may go on after the stop was asked for.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// Runs the role until it is told to stop.
///
/// # Errors
/// When it cannot start: ports, files, settings, a damaged store.
pub fn run(settings: Arc<Settings>, config: &Path, level: Level) -> Result<(), Failure> {
    let mut inherited = Inherited::from_env()?;
    life::run(serve(settings, config, level, &mut inherited))
}

async fn serve(
    settings: Arc<Settings>,
    config: &Path,
    level: Level,
    inherited: &mut Inherited,
) -> Result<(), RoleError> {
    let mut listeners = Vec::new();
    for service in Service::ALL {
        let addresses = service.addresses(&settings);
        let sockets =
            inherited.take_or_bind(service.name(), addresses, ListenOptions::default())?;
        for socket in sockets {
            listeners.push((service, TcpListener::from_std(socket)?));
        }
    }
    let metrics = inherited.take_or_bind(
        "metrics-store",
        settings.metrics.store.as_slice(),
        ListenOptions::default(),
    )?;
    let admin = admin::bind(&settings);
    let files = Files::make(&settings)?;
    let recovering = Recovering::of(&files.folder().join("log"), octets_read);
    let store = files.open()?;
    drop(recovering);
    let mark = files.mark(&store);
    let index = SharedIndex::open(files.folder(), store.log_id())?;
    let plan = (settings.store.clone(), files.folder().to_owned());
    let figures = Figures::default();
    let (health, _) = watch::channel(Health::Ready);
    figures.serve(metrics, &health, &settings.data)?;
    let processes = Processes::new(settings.limits.parse_timeout.duration());
    spawn_local(tell_confinement(
        processes.delivering.clone(),
        figures.clone(),
    ));
    let (indexer, changes) = Indexer::channel();
    let index = (index, indexer);
    let (keeper, mut end) = Keeper::start((store, mark), index, plan, figures, processes)?;
    search::start_indexer(changes, keeper.clone())?;
    let tls = ServerTls::new(&settings)?;
    let (stop, stopping) = watch::channel(false);
    let reception = Rc::new(Reception::new(settings, keeper.clone(), tls, stopping)?);
    spawn_local(life::beat());
    spawn_local({
        let tls = reception.tls().clone();
        async move { tls.watch().await }
    });
    spawn_local(reception.watch_accounts());
    for (service, listener) in listeners {
        spawn_local(accept(Rc::clone(&reception), service, listener));
    }
    if let Some(listener) = admin {
        spawn_local(admin::serve(Rc::clone(&reception), listener));
    }
    // Whoever hears that it is ready may send signals.
    let mut signals = Signals::new()?;
    entry::notify_ready();
    tokio::select! {
        () = signals.wait_for_stop(config, &level, |settings| reception.reload(settings)) => {}
        error = end.failed() => return Err(RoleError::Failed(error)),
    }
    stop.send_replace(true);
    health.send_replace(Health::Stopping);
    let quiet = async {
        while reception.connections() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(STOP_PATIENCE, quiet).await.is_err() {
        tracing::warn!("stopping with sessions under way; nothing acknowledged is lost");
    }
    keeper.stop();
    let _ = spawn_blocking(move || end.join()).await;
    Ok(())
}

/// Starts the first parser, and tells which layers of the sandbox hold around it.
async fn tell_confinement(parsers: Parsers, figures: Figures) {
    // Why there is none is in the log.
    let Ok(Ok(held)) = spawn_blocking(move || parsers.begin()).await else {
        return;
    };
    figures.confined(held.count());
    let missing = held.missing();
    match held.is_whole() {
        true => tracing::info!(%held, %missing, "parsers are confined"),
        false => tracing::warn!(%held, %missing, "parsers are confined in part"),
    }
}
