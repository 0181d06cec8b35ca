//! The server of block lists (`docs/internals/dnsbl.md`).
//!
//! Reading order: `loading` (files become zones, again when they change), `shared` (the zones in force, which every thread
//! looks up), `desk` (one query, from the packet to the answer), `udp` (a thread per socket), `tcp` (connections),
//! `figures` (metrics), `confined` (what the process gives up).

mod confined;
mod desk;
mod error;
mod figures;
mod loading;
mod shared;
mod tcp;
mod udp;

use std::convert::Infallible;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;

use tokio::sync::watch;
use vere_dns::Cookies;
use vere_net::datagrams;
use vere_net::listen::{Inherited, ListenOptions};
use vere_process::failure::Failure;
use vere_process::log::Level;
use vere_process::{entry, life};
use vere_sandbox::Standing;
use vere_settings::{Dnsbl, Settings};
use vere_telemetry::metrics::{Health, Metrics};

use confined::Reach;
use desk::{Desk, Terms};
pub use error::DnsblError;
use figures::{Figures, Transport};
use loading::{Loader, Order};
use shared::Shared;

/// Runs the role until it is told to stop. With a file and the level of the log, SIGHUP reads the settings of the file
/// again; the data are read again in any case.
///
/// # Errors
/// When the server cannot start: no zone can be read, or an address is taken.
pub fn run(settings: &Arc<Settings>, reload: Option<(PathBuf, Level)>) -> Result<(), Failure> {
    let dnsbl = settings.dnsbl.as_ref().ok_or(DnsblError::NoSection)?;
    let sockets = Sockets::open(settings, dnsbl)?;
    let shared = Arc::new(Shared::default());
    let readable = confined::readable(dnsbl, reload.as_ref().map(|(config, _)| config.as_path()));
    let confined = confined::give_up(&readable);
    let metrics = Metrics::new();
    let reach = Reach::new(&readable, &confined);
    let loader = Loader::start(settings, dnsbl, &shared, &metrics.dnsbl, reach)?;
    let figures = Figures::new(&shared, &metrics);
    life::run(serve(
        dnsbl,
        sockets,
        (shared, figures),
        loader,
        reload,
        confined,
    ))
}

/// The sockets of the server, inherited or bound.
struct Sockets {
    datagrams: Vec<UdpSocket>,
    streams: Vec<TcpListener>,
    metrics: Vec<TcpListener>,
}

impl Sockets {
    /// Opens the sockets: streams first, because a second server could share the datagrams' addresses.
    fn open(settings: &Settings, dnsbl: &Dnsbl) -> Result<Self, DnsblError> {
        let mut inherited = Inherited::from_env()?;
        let options = ListenOptions::default();
        let metrics = settings.metrics.dnsbl.as_slice();
        let each = datagrams::threads(dnsbl.threads);
        Ok(Self {
            streams: inherited.take_or_bind("dnsbl", &dnsbl.listen, options)?,
            metrics: inherited.take_or_bind("metrics-dnsbl", metrics, options)?,
            datagrams: datagrams::take_or_bind(&mut inherited, "dnsbl-udp", &dnsbl.listen, each)?,
        })
    }
}

async fn serve(
    dnsbl: &Dnsbl,
    sockets: Sockets,
    (shared, figures): (Arc<Shared>, Figures),
    loader: mpsc::Sender<Order>,
    reload: Option<(PathBuf, Level)>,
    confined: Standing,
) -> Result<(), DnsblError> {
    let secret = random()?;
    let desk = |transport, share| {
        let terms = Terms {
            cookies: Cookies::new(secret),
            secret: random()?,
            share,
        };
        let counts = figures.counts(transport);
        io::Result::Ok(Desk::new(dnsbl, terms, Arc::clone(&shared), counts))
    };
    let threads = datagrams::threads(dnsbl.threads);
    let addresses: Vec<_> = dnsbl.listen.iter().map(ToString::to_string).collect();
    for socket in sockets.datagrams {
        udp::start(socket, desk(Transport::Udp, threads)?)?;
    }
    let desk = Rc::new(std::cell::RefCell::new(desk(Transport::Tcp, 1)?));
    tcp::start(dnsbl, sockets.streams, &desk)?;
    let health = watch::Sender::new(Health::Ready);
    figures.serve(sockets.metrics, &health)?;
    tokio::task::spawn_local(life::beat());
    let mut signals = life::Signals::new()?;
    entry::keep_notices()?;
    confined::close(confined);
    entry::notify_ready();
    tracing::info!(
        addresses = addresses.join(","),
        threads,
        "block lists served"
    );
    stop(&mut signals, &loader, reload).await;
    health.send_replace(Health::Stopping);
    tracing::info!("server of block lists stopped");
    Ok(())
}

/// Waits for the signal to stop, and has the data read again at SIGHUP.
async fn stop(
    signals: &mut life::Signals,
    loader: &mpsc::Sender<Order>,
    reload: Option<(PathBuf, Level)>,
) {
    // The loader lives as long as the process; where it is gone the old data remain.
    let order = |order| drop(loader.send(order));
    match reload {
        Some((config, level)) => {
            let apply = |settings: Settings| {
                order(Order::Apply(Box::new(settings)));
                Ok::<_, Infallible>(())
            };
            signals.wait_for_stop(&config, &level, apply).await;
        }
        None => signals.wait_for_stop_or(|| order(Order::Read)).await,
    }
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut octets = [0; N];
    getrandom::fill(&mut octets).map_err(io::Error::other)?;
    Ok(octets)
}
