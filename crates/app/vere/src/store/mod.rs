//! The store role: mailboxes, read by IMAP and filled by LMTP.
//!
//! One thread owns the store and one syncs its log ([`keeper`]); this one has the connections:
//! [`listeners`] accept, [`session`] drives an IMAP connection and [`lmtp`] an LMTP one, [`client`]
//! answers what the IMAP machine asks, [`filing`] finds the folder of a delivery, [`search`] finds
//! messages and keeps their index, [`login`] checks passwords, [`admin`] lets the administrator in.

pub(crate) mod admin;
mod client;
mod convert;
mod filing;
pub(crate) mod keeper;
mod listeners;
mod lmtp;
mod login;
mod messages;
pub(crate) mod search;
mod session;
mod steps;

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::spawn_local;
use vere_disk::log::Directory as LogDirectory;
use vere_disk::mail_meta::FjallMeta;
use vere_net::listen::{Inherited, ListenOptions};
use vere_settings::Settings;
use vere_store::{Store, StoreConfig};
use vere_units::ByteSize;

use crate::cli::Failure;
use crate::gateway::tls::ServerTls;
use crate::role::life::{self, Signals};
use crate::supervisor;
use keeper::Keeper;
use listeners::{Reception, Service};
use search::SharedIndex;

/// How long sessions may go on after the stop was asked for.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// Memory for blocks of the metadata.
const META_CACHE: ByteSize = ByteSize::mib(32);

/// Where the store lies.
fn folder(settings: &Settings) -> PathBuf {
    settings.data.join("store")
}

/// Runs the role until it is told to stop.
///
/// # Errors
/// When it cannot start: ports, files, settings, a damaged store.
pub(crate) fn run(settings: Arc<Settings>, config: &Path) -> Result<(), Failure> {
    let mut inherited = Inherited::from_env()?;
    life::run(serve(settings, config, &mut inherited))
}

async fn serve(
    settings: Arc<Settings>,
    config: &Path,
    inherited: &mut Inherited,
) -> Result<(), Failure> {
    let mut listeners = Vec::new();
    for service in Service::ALL {
        let addresses = service.addresses(&settings);
        let sockets =
            inherited.take_or_bind(service.name(), addresses, ListenOptions::default())?;
        for socket in sockets {
            listeners.push((service, TcpListener::from_std(socket)?));
        }
    }
    let admin = admin::bind(&settings);
    let store = open(&settings)?;
    let index = SharedIndex::open(&folder(&settings), store.log_id())?;
    let (keeper, mut end) = Keeper::start(store, index)?;
    let tls = ServerTls::new(&settings)?;
    let (stop, stopping) = watch::channel(false);
    let reception = Rc::new(Reception::new(settings, keeper.clone(), tls, stopping)?);
    spawn_local(life::feed_watchdog());
    spawn_local({
        let tls = reception.tls().clone();
        async move { tls.watch().await }
    });
    for (service, listener) in listeners {
        spawn_local(Rc::clone(&reception).accept(service, listener));
    }
    if let Some(listener) = admin {
        spawn_local(admin::serve(Rc::clone(&reception), listener));
    }
    // Whoever hears that it is ready may send signals.
    let mut signals = Signals::new()?;
    supervisor::notify_ready();
    tokio::select! {
        () = signals.wait_for_stop(config, |settings| reception.reload(settings)) => {}
        error = end.failed() => return Err(Failure::new(format!(
            "the mail store has to be opened anew, nothing acknowledged is lost: {error}"
        ))),
    }
    stop.send_replace(true);
    let quiet = async {
        while reception.connections() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(STOP_PATIENCE, quiet).await.is_err() {
        tracing::warn!("stopping with sessions under way; nothing acknowledged is lost");
    }
    keeper.stop();
    let _ = tokio::task::spawn_blocking(move || end.join()).await;
    Ok(())
}

/// Opens the store, or makes it.
fn open(settings: &Settings) -> Result<keeper::MailStore, Failure> {
    let folder = folder(settings);
    let log = folder.join("log");
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::new(format!(
            "cannot open the mail store in {}: {error}",
            folder.display()
        ))
    };
    fs::create_dir_all(&log).map_err(|error| wrong(&error))?;
    let meta = FjallMeta::open(&folder.join("meta"), META_CACHE).map_err(|error| wrong(&error))?;
    let disk = LogDirectory::open(&log).map_err(|error| wrong(&error))?;
    let config = StoreConfig {
        log_id: random_u64()?,
        ..StoreConfig::default()
    };
    let (store, report) = Store::open(disk, meta, config).map_err(|error| wrong(&error))?;
    tracing::info!(?report, "mail store opened");
    Ok(store)
}

fn random_u64() -> Result<u64, Failure> {
    let mut octets = [0; 8];
    getrandom::fill(&mut octets)
        .map_err(|error| Failure::new(format!("no random numbers: {error}")))?;
    Ok(u64::from_le_bytes(octets))
}
