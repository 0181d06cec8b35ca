//! Starts workers, and replaces those that end. The keeper reads nothing that a stranger sent.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use tokio::task::spawn_local;
use vere_handoff::session::{Notice, READY};
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
/// Pause before a worker is started again: where the last one has lived and served, the longest where each has served for less, and where
/// none has served.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_SERVED_MAX: Duration = Duration::from_millis(80);
const PAUSE_MAX: Duration = Duration::from_secs(1);
const LIVED: Duration = Duration::from_secs(1);
/// Milliseconds for which a worker may be silent, at its start as well: it may be stuck in a message.
const SILENCE: u16 = 15_000;
/// How long workers may take to end their sessions.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// The workers.
type Running = Arc<Mutex<Vec<Listed>>>;

/// A worker in the list.
#[derive(Debug)]
struct Listed {
    number: u32,
    /// The worker hears signals; before, SIGHUP would end the process.
    is_ready: bool,
    /// The settings have changed while the worker started.
    is_outdated: bool,
}

/// Keeps workers until it is told to stop.
///
/// # Errors
/// When the settings have no front, or the system gives no thread.
pub fn run(settings: Arc<Settings>, config: &Path, level: Level) -> Result<(), Failure> {
    life::run(serve(settings, config, level))
}

async fn serve(settings: Arc<Settings>, config: &Path, level: Level) -> Result<(), KeeperError> {
    let front = settings.front.as_ref().ok_or(KeeperError::NoFront)?;
    let count = usize::try_from(front.workers).unwrap_or(usize::MAX);
    let running = Running::default();
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
    // Workers read the settings when they start: each asks for a successor.
    let apply = |_| {
        outdated(&running);
        Ok::<_, KeeperError>(())
    };
    signals.wait_for_stop(config, &level, apply).await;
    stopping.store(true, Ordering::Relaxed);
    end(&running);
    let ended = async {
        while !locked(&running).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(STOP_PATIENCE, ended).await.is_err() {
        tracing::warn!("stopping with sessions under way; nothing acknowledged is lost");
    }
    Ok(())
}

fn locked(running: &Running) -> std::sync::MutexGuard<'_, Vec<Listed>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listed {
    /// Sends a signal. A worker is listed only until its process was waited for, so that the number is no other process's.
    fn tell(&self, signal: Signal) {
        if let Ok(number) = i32::try_from(self.number) {
            let _ = kill(Pid::from_raw(number), signal);
        }
    }
}

/// Tells the workers of changed settings; starting workers hear later.
fn outdated(running: &Running) {
    for worker in locked(running).iter_mut() {
        match worker.is_ready {
            true => worker.tell(Signal::SIGHUP),
            false => worker.is_outdated = true,
        }
    }
}

/// A worker hears signals now.
fn ready(running: &Running, number: u32) {
    let mut running = locked(running);
    let worker = running.iter_mut().find(|worker| worker.number == number);
    if let Some(worker) = worker {
        worker.is_ready = true;
        if std::mem::take(&mut worker.is_outdated) {
            worker.tell(Signal::SIGHUP);
        }
    }
}

/// Ends the workers.
fn end(running: &Running) {
    locked(running)
        .iter()
        .for_each(|worker| worker.tell(Signal::SIGTERM));
}

/// Keeps one worker at a time, and those before it until their sessions have ended.
#[derive(Clone)]
struct Keeper {
    settings: Arc<Settings>,
    config: PathBuf,
    place: usize,
    running: Running,
    stopping: Arc<AtomicBool>,
}

/// A worker that was started.
struct Started {
    child: Child,
    /// What the worker says; the end comes with the end of the process.
    says: PacketSocket,
    /// Another was started in its place.
    has_successor: bool,
}

impl Keeper {
    fn keep(&self) {
        let mut pause = PAUSE_MIN;
        while !self.stopping.load(Ordering::Relaxed) {
            let began = Instant::now();
            let served = match self.start() {
                Ok(started) => self.attend(started),
                // The other processes start, or start again, at the same time as this one.
                Err(error) => {
                    tracing::debug!(%error, "no worker can be started yet");
                    false
                }
            };
            pause = match (served, began.elapsed() >= LIVED) {
                (true, true) => PAUSE_MIN,
                (true, false) => pause.saturating_mul(2).min(PAUSE_SERVED_MAX),
                (false, _) => pause.saturating_mul(2).min(PAUSE_MAX),
            };
            std::thread::sleep(pause);
        }
        // The kernel ends workers with this thread.
        while !locked(&self.running).is_empty() {
            std::thread::sleep(PAUSE_MIN);
        }
    }

    fn start(&self) -> io::Result<Started> {
        let links = Links::connect(&self.settings, self.place)?;
        let (says, there) = PacketSocket::pair()?;
        links.send(&says)?;
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
        let child = command.spawn()?;
        locked(&self.running).push(Listed {
            number: child.id(),
            is_ready: false,
            is_outdated: false,
        });
        // An order to stop may have come in between.
        if self.stopping.load(Ordering::Relaxed) {
            end(&self.running);
        }
        Ok(Started {
            child,
            says,
            has_successor: false,
        })
    }

    /// Waits until a worker ends or wants a successor, and returns whether it has served.
    fn attend(&self, mut started: Started) -> bool {
        let mut served = false;
        loop {
            match said(&started.says) {
                Said::Ready => {
                    served = true;
                    ready(&self.running, started.child.id());
                }
                Said::Last if started.has_successor => {}
                Said::Last => {
                    started.has_successor = true;
                    let keeper = self.clone();
                    // The kernel ends a worker together with the thread that started the worker:
                    // this thread.
                    let attends = std::thread::Builder::new().spawn(move || keeper.attend(started));
                    if let Err(error) = attends {
                        tracing::error!(%error, "no thread to attend a worker");
                    }
                    return served;
                }
                Said::Nothing => {
                    tracing::error!(place = self.place, "worker is silent, and is ended");
                    // An error says that it has ended.
                    let _ = started.child.kill();
                }
                Said::End => {
                    self.wait(started.child);
                    return served;
                }
            }
        }
    }

    fn wait(&self, mut child: Child) {
        // The process stays a zombie, and its number its own, until the number is taken out.
        let ended = wait_without_reaping(&child);
        locked(&self.running).retain(|worker| worker.number != child.id());
        let place = self.place;
        match (ended, child.wait()) {
            (Ok(()), Ok(status)) if status.success() => tracing::debug!(place, "worker has ended"),
            (Ok(()), Ok(status)) => {
                tracing::warn!(place, %status, "worker ended; its sessions go to others, or get 421");
            }
            (Err(error), _) | (_, Err(error)) => {
                tracing::error!(place, %error, "cannot wait for a worker");
            }
        }
    }
}

/// What a worker says to its keeper.
enum Said {
    Ready,
    Last,
    Nothing,
    End,
}

/// Waits for a packet of a worker.
fn said(says: &PacketSocket) -> Said {
    let mut octets = [0; 16];
    loop {
        match says.receive(&mut octets) {
            Ok(Some((length, _))) if octets.get(..length) == Some(&READY) => return Said::Ready,
            Ok(Some((length, _))) => {
                return match Notice::decode(octets.get(..length).unwrap_or_default()) {
                    Ok(Notice::Last) => Said::Last,
                    _ => Said::End,
                };
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut wait = [PollFd::new(says.as_fd(), PollFlags::POLLIN)];
                match poll(&mut wait, PollTimeout::from(SILENCE)) {
                    Ok(0) => return Said::Nothing,
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(_) => return Said::End,
                }
            }
            Ok(None) | Err(_) => return Said::End,
        }
    }
}

/// Waits until a process has ended, and leaves it to be waited for.
fn wait_without_reaping(child: &Child) -> io::Result<()> {
    let number = i32::try_from(child.id()).map_err(io::Error::other)?;
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    waitid(Id::Pid(Pid::from_raw(number)), flags)?;
    Ok(())
}
