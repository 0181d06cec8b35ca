//! The front of port 25: it answers every client until the first recipient is accepted, and then gives the session to a worker
//! (`docs/internals/front.md`).
//!
//! One thread has a loop over sockets (`host`), `dialogue` answers the questions of sessions. The engine `vere_screen` decides who may go on, the machine of `vere_smtp` knows
//! the protocol, `guest` is a client that is not trusted yet, `workers` are the processes with the sessions, `metrics` counts, `broker` knows
//! recipients, `gateway` says whether mail is taken at all, `tls` has the threads for clients that say STARTTLS (`securing`).

mod broker;
mod dialogue;
mod error;
mod gateway;
mod greylist;
mod guest;
mod host;
mod link;
mod metrics;
mod orders;
mod replies;
mod securing;
mod terms;
mod tls;
mod workers;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mio::Waker;
use nix::sys::signal::{SigSet, Signal};
use tokio::sync::watch;
use vere_net::listen::{Inherited, ListenOptions};
use vere_process::failure::Failure;
use vere_process::log::Level;
use vere_process::{entry, life};
use vere_settings::Settings;
use vere_telemetry::metrics::Health;

pub use error::FrontError;
use host::Host;
use metrics::Figures;
use orders::Orders;

/// Runs the role until it is told to stop.
///
/// # Errors
/// When the front cannot start: ports, settings.
pub fn run(settings: Arc<Settings>, config: &Path, level: Level) -> Result<(), Failure> {
    Ok(serve(settings, config.to_owned(), level)?)
}

fn serve(settings: Arc<Settings>, config: PathBuf, level: Level) -> Result<(), FrontError> {
    let front = settings.front.clone().ok_or(FrontError::NoFront)?;
    let signals = block_signals()?;
    let mut inherited = Inherited::from_env()?;
    let options = ListenOptions::default();
    let listeners = inherited.take_or_bind("smtp", &settings.smtp.listen, options)?;
    let shown =
        inherited.take_or_bind("metrics-front", settings.metrics.front.as_slice(), options)?;
    let orders = Arc::new(Orders::default());
    let figures = Figures::default();
    let shows = figures.clone();
    let (host, waker) = Host::new(settings, &front, listeners, Arc::clone(&orders), figures)?;
    hear(signals, orders, waker, config, level)?;
    let health = watch::Sender::new(Health::Starting);
    shows.serve(shown, health.subscribe())?;
    let ready = move || {
        health.send_replace(Health::Ready);
        entry::notify_ready();
    };
    host.run(ready, entry::notify_watchdog)?;
    Ok(())
}

/// Blocks the signals of the supervisor, before any other thread starts, so that only one thread takes them.
fn block_signals() -> Result<SigSet, FrontError> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block().map_err(FrontError::Signals)?;
    Ok(signals)
}

/// Starts the thread that hears signals.
fn hear(
    signals: SigSet,
    orders: Arc<Orders>,
    waker: Arc<Waker>,
    config: PathBuf,
    level: Level,
) -> Result<(), FrontError> {
    let hear = move || {
        loop {
            match signals.wait() {
                Ok(Signal::SIGTERM) => orders.stop.store(true, Ordering::Release),
                Ok(Signal::SIGHUP) => life::reload(&config, &level, |settings| {
                    let mut place = orders
                        .settings
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                    *place = Some(Arc::new(settings));
                    Ok::<_, Infallible>(())
                }),
                // Ctrl-C reaches the whole foreground group; the supervisor decides and sends SIGTERM.
                Ok(_) | Err(_) => {}
            }
            // The loop looks ten times a second anyway.
            let _ = waker.wake();
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(hear)?;
    Ok(())
}
