//! The front of port 25: it answers every client until the first recipient is accepted, and then gives the session to a worker
//! (`docs/internals/front.md`).
//!
//! `front.loops` threads have a loop over sockets each (`host`); `loops` has what a loop tells the others, `door` has the connections that come, `accepting` brings each
//! client to the loop of its network. `dialogue` answers the questions of sessions. The engine `vere_screen` decides who may go on, the machine of `vere_smtp` knows
//! the protocol, `guest` is a client that is not trusted yet, `workers` are the processes with the sessions, `metrics` counts, `broker` knows
//! recipients, `gateway` says whether mail is taken at all, `tls` has the threads for clients that say STARTTLS (`securing`).

mod accepting;
mod broker;
mod dialogue;
mod door;
mod error;
mod gateway;
mod greylist;
mod guest;
mod host;
mod link;
mod loops;
mod metrics;
mod proxied;
mod replies;
mod securing;
mod terms;
#[cfg(test)]
mod tests;
mod tls;
mod workers;

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use nix::sys::signal::{SigSet, Signal};
use tokio::sync::watch;
use vere_net::listen::{Inherited, ListenOptions};
use vere_process::failure::Failure;
use vere_process::log::Level;
use vere_process::{accept, life};
use vere_settings::Settings;
use vere_telemetry::metrics::Health;

use door::Door;
pub use error::FrontError;
use host::{Host, Parts};
use loops::{ARRIVALS_MAX, Loops};
use metrics::Figures;
use terms::terms;
use tls::Tls;

/// Runs the role until it is told to stop.
///
/// # Errors
/// When the front cannot start: ports, settings.
pub fn run(settings: Arc<Settings>, config: &Path, level: Level) -> Result<(), Failure> {
    Ok(serve(&settings, config.to_owned(), level)?)
}

fn serve(settings: &Arc<Settings>, config: PathBuf, level: Level) -> Result<(), FrontError> {
    let signals = block_signals()?;
    let mut inherited = Inherited::from_env()?;
    let options = ListenOptions::default();
    let listeners = inherited.take_or_bind("smtp", &settings.smtp.listen, options)?;
    let shown =
        inherited.take_or_bind("metrics-front", settings.metrics.front.as_slice(), options)?;
    let figures = Figures::default();
    let health = watch::Sender::new(Health::Starting);
    figures.serve(shown, health.subscribe())?;
    let (loops, mut hosts) = hosts(settings, listeners, &figures, health)?;
    hear(signals, Arc::clone(&loops), config, level)?;
    let others = hosts.split_off(1);
    let others = others.into_iter().map(|host| start(host, &loops));
    let others = others.collect::<io::Result<Vec<_>>>()?;
    for host in hosts {
        host.run()?;
    }
    for other in others {
        let ended = other.join();
        ended.map_err(|_| io::Error::other("a loop has panicked"))??;
    }
    Ok(())
}

/// Makes the loops and gives the first loop the listening sockets.
fn hosts(
    settings: &Arc<Settings>,
    mut listeners: Vec<std::net::TcpListener>,
    figures: &Figures,
    health: watch::Sender<Health>,
) -> Result<(Arc<Loops>, Vec<Host>), FrontError> {
    let front = settings.front.as_ref().ok_or(FrontError::NoFront)?;
    accept::private_folder(&settings.front_directory())?;
    let number = loops::number(front);
    let (loops, ears) = Loops::new(number, ARRIVALS_MAX, health)?;
    let loops = Arc::new(loops);
    tracing::info!(loops = number, workers = front.workers, "loops started");
    let terms = terms(settings, front, loops.len());
    let (partition, screens) = greylist::screens(settings, &terms, number);
    let threads = Tls::start(settings, front, &loops.wakers())?;
    let mut hosts = Vec::new();
    for (number, ((ear, screen), tls)) in ears.into_iter().zip(screens).zip(threads).enumerate() {
        let sockets = std::mem::take(&mut listeners);
        let parts = Parts {
            number,
            loops: Arc::clone(&loops),
            door: Door::new(sockets, ear.arrivals, partition, ear.poll.registry())?,
            poll: ear.poll,
            screen,
            tls,
            figures: figures.of_loop(number),
        };
        hosts.push(Host::new(Arc::clone(settings), front, parts)?);
    }
    Ok((loops, hosts))
}

/// Starts a thread for a loop. A loop that ends, by an error or a panic, ends the front.
fn start(host: Host, loops: &Arc<Loops>) -> io::Result<JoinHandle<io::Result<()>>> {
    struct EndsAll(Arc<Loops>);
    impl Drop for EndsAll {
        fn drop(&mut self) {
            self.0.stop();
        }
    }
    let ends_all = EndsAll(Arc::clone(loops));
    let number = host.number;
    Builder::new()
        .name(format!("loop-{number}"))
        .spawn(move || {
            let _ends_all = ends_all;
            host.run()
        })
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
    loops: Arc<Loops>,
    config: PathBuf,
    level: Level,
) -> Result<(), FrontError> {
    let hear = move || {
        loop {
            match signals.wait() {
                Ok(Signal::SIGTERM) => loops.stop(),
                Ok(Signal::SIGHUP) => life::reload(&config, &level, |settings| {
                    loops.reload(&Arc::new(settings));
                    Ok::<_, Infallible>(())
                }),
                // Ctrl-C reaches the whole foreground group; the supervisor decides and sends SIGTERM.
                Ok(_) | Err(_) => {}
            }
        }
    };
    Builder::new().name("signals".to_owned()).spawn(hear)?;
    Ok(())
}
