//! A role's process from start to stop: its thread of tasks, the supervisor's watchdog, signals.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::LocalSet;
use vere_settings::Settings;

use super::entry;
use super::log::Level;
use super::settings::role_settings;
use crate::failure::Failure;

/// The longest time between two beats: one notice that comes late must not make the supervisor kill the role.
const BEAT_MAX: Duration = Duration::from_secs(5);
/// How long blocking work under way, such as a password check, is waited for at the end.
const BLOCKING_PATIENCE: Duration = Duration::from_millis(100);

/// Runs a role whose tasks share one thread.
///
/// # Errors
/// Errors of `role` with their causes, or a failure to start the runtime.
pub fn run<E: Error>(role: impl Future<Output = Result<(), E>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(LocalSet::new().run_until(role));
    runtime.shutdown_timeout(BLOCKING_PATIENCE);
    Ok(ended?)
}

/// Beats for ever: tells the supervisor that the thread's tasks still run, and gives free memory back to the kernel.
pub async fn beat() {
    let interval = entry::watchdog_interval().unwrap_or(BEAT_MAX);
    loop {
        entry::notify_watchdog();
        return_memory();
        tokio::time::sleep(interval.min(BEAT_MAX)).await;
    }
}

/// Gives the memory that was freed a second ago or earlier back to the kernel.
///
/// mimalloc 3 returns freed pages only while further pages are freed. After the end of ten thousand connections an idle
/// process would keep all of their memory. The end of a thread makes the allocator look at every freed page.
fn return_memory() {
    let thread = std::thread::Builder::new().name("memory".to_owned());
    // A thread that allocated nothing has no heap whose end the allocator could notice.
    let ended = thread.spawn(|| drop(std::hint::black_box(vec![0_u8; 64])));
    // Where no thread can be started the next beat tries again.
    drop(ended);
}

/// What the supervisor or an operator sends.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Catches them from now on; then the role may say that it is ready.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the order to stop; an order to reload puts the settings in the file at `config` in force
    /// by `apply`, and the level of the log. A file that is wrong changes nothing.
    pub async fn wait_for_stop<E: Error>(
        &mut self,
        config: &Path,
        level: &Level,
        apply: impl Fn(Settings) -> Result<(), E>,
    ) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                // Ctrl-C reaches the whole foreground group; the supervisor decides and sends SIGTERM.
                _ = self.interrupt.recv() => {}
                _ = self.hangup.recv() => reload(config, level, &apply),
            }
        }
    }
}

impl Signals {
    /// Waits for the order to stop; `again` is called at each order to reload.
    pub async fn wait_for_stop_or(&mut self, again: impl Fn()) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                // Without a supervisor Ctrl-C is an order.
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => again(),
            }
        }
    }
}

/// The supervisor has accepted other settings: `apply` puts them in force, and the log has their level.
pub fn reload<E: Error>(config: &Path, level: &Level, apply: impl Fn(Settings) -> Result<(), E>) {
    let reloaded = role_settings(config).map_err(Failure::from);
    let applied = reloaded.and_then(|settings| {
        let wanted = level.wanted(&settings);
        apply(settings)?;
        level.set(wanted);
        Ok(())
    });
    match applied {
        Ok(()) => {
            tracing::info!(config = %config.display(), "configuration reloaded");
            entry::notify_ready();
        }
        Err(error) => {
            tracing::error!(%error, "configuration kept: the new one is wrong");
            entry::notify_kept(&error.to_string());
        }
    }
}
