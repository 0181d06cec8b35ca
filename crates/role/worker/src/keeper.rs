//! Starts workers, and replaces those that end. The keeper reads nothing that a stranger sent.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::task::spawn_local;
use vere_net::packets::PacketSocket;
use vere_process::entry::{self, SUPERVISOR_PID};
use vere_process::failure::Failure;
use vere_process::life::{self, Signals};
use vere_process::log::Level;
use vere_settings::Settings;

use super::error::KeeperError;
use super::links::Links;

/// The subcommand of `vere role` for a worker.
const WORKER: &str = "worker";
/// Pause before a worker is started again: the first, and the longest after failures in a row.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A worker that lived so long is no failure.
const LIVED: Duration = Duration::from_secs(1);
/// How long workers may take to end their sessions.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// The process numbers of the workers, each at its place.
type Running = Arc<Mutex<Vec<Option<u32>>>>;

/// Keeps workers until it is told to stop.
///
/// # Errors
/// When the settings have no front, or the system gives no thread.
pub fn run(settings: Arc<Settings>, config: &Path, level: Level) -> Result<(), Failure> {
    life::run(serve(settings, config, level))
}

async fn serve(settings: Arc<Settings>, config: &Path, level: Level) -> Result<(), KeeperError> {
    let front = settings.front.ok_or(KeeperError::NoFront)?;
    let count = usize::try_from(front.workers).unwrap_or(usize::MAX);
    let running = Running::new(Mutex::new(vec![None; count]));
    let stopping = Arc::new(AtomicBool::new(false));
    for place in 0..count {
        let keeper = Keeper {
            settings: Arc::clone(&settings),
            config: config.to_owned(),
            place,
            running: Arc::clone(&running),
            stopping: Arc::clone(&stopping),
        };
        // A worker is told by the kernel when the thread that started it ends: each has a thread.
        std::thread::Builder::new()
            .name(format!("worker-{place}"))
            .spawn(move || keeper.keep())?;
    }
    spawn_local(life::beat());
    let mut signals = Signals::new()?;
    entry::notify_ready();
    // Workers read the settings when they start.
    let apply = |_| {
        tell(&running, Signal::SIGHUP);
        Ok::<_, KeeperError>(())
    };
    signals.wait_for_stop(config, &level, apply).await;
    stopping.store(true, Ordering::Relaxed);
    tell(&running, Signal::SIGTERM);
    let ended = async {
        while locked(&running).iter().any(Option::is_some) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(STOP_PATIENCE, ended).await.is_err() {
        tracing::warn!("stopping with sessions under way; nothing acknowledged is lost");
    }
    Ok(())
}

fn locked(running: &Running) -> std::sync::MutexGuard<'_, Vec<Option<u32>>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(running: &Running, signal: Signal) {
    // A number stands here only until the process was waited for, so that it is no other process's.
    for number in locked(running).iter().flatten() {
        if let Ok(number) = i32::try_from(*number) {
            let _ = kill(Pid::from_raw(number), signal);
        }
    }
}

/// Keeps one worker.
struct Keeper {
    settings: Arc<Settings>,
    config: PathBuf,
    place: usize,
    running: Running,
    stopping: Arc<AtomicBool>,
}

impl Keeper {
    fn keep(&self) {
        let mut pause = PAUSE_MIN;
        while !self.stopping.load(Ordering::Relaxed) {
            let began = Instant::now();
            match self.start() {
                Ok(child) => self.wait(child),
                // The other processes start, or start again, at the same time as this one.
                Err(error) => tracing::debug!(%error, "no worker can be started yet"),
            }
            pause = match began.elapsed() >= LIVED {
                true => PAUSE_MIN,
                false => pause.saturating_mul(2).min(PAUSE_MAX),
            };
            std::thread::sleep(pause);
        }
    }

    fn start(&self) -> io::Result<Child> {
        let links = Links::connect(&self.settings)?;
        let (here, there) = PacketSocket::pair()?;
        links.send(&here)?;
        // This very program, even if its file was replaced meanwhile.
        let mut command = Command::new("/proc/self/exe");
        command
            .args(["role", WORKER, "-c"])
            .arg(&self.config)
            .env(SUPERVISOR_PID, std::process::id().to_string())
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC")
            .stdin(Stdio::from(OwnedFd::from(there)))
            .stdout(Stdio::null());
        command.spawn()
    }

    fn wait(&self, mut child: Child) {
        self.set(Some(child.id()));
        // A worker of an order to stop that came in between.
        if self.stopping.load(Ordering::Relaxed) {
            tell(&self.running, Signal::SIGTERM);
        }
        // The process stays a zombie, and its number its own, until the next call.
        let ended = wait_without_reaping(&child);
        self.set(None);
        let status = child.wait();
        match (ended, status) {
            (Ok(()), Ok(status)) if status.success() => tracing::debug!("worker has ended"),
            (Ok(()), Ok(status)) => {
                let place = self.place;
                tracing::warn!(place, %status, "worker ended; its sessions go to others, or get 421");
            }
            (Err(error), _) | (_, Err(error)) => {
                tracing::error!(%error, "cannot wait for a worker")
            }
        }
    }

    fn set(&self, number: Option<u32>) {
        if let Some(place) = locked(&self.running).get_mut(self.place) {
            *place = number;
        }
    }
}

/// Waits until a process has ended, and leaves it to be waited for.
fn wait_without_reaping(child: &Child) -> io::Result<()> {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    let number = i32::try_from(child.id()).map_err(io::Error::other)?;
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    waitid(Id::Pid(Pid::from_raw(number)), flags)?;
    Ok(())
}
