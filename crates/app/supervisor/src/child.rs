//! A role and its current process.

use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use vere_control::supervision::{ProcessState, RoleEnd, RoleState};

use super::backoff::Backoff;
use super::notify::Notice;
use super::role::{Readiness, Role};
use super::timing::Timing;

/// A silent role is checked again after this time: if the supervisor itself stood still (a stopped
/// process, a frozen machine), notices of the role may be unread.
const LAST_CHANCE: Duration = Duration::from_secs(1);

/// Number of the settings of the start.
pub(super) const FIRST_SETTINGS: u64 = 1;

/// A running process of a role.
#[derive(Debug)]
struct Process {
    child: Child,
    started: Instant,
}

/// Where a role stands. Only the states with a process can be signalled.
#[derive(Debug)]
enum State {
    /// No process; the next start is due at the given time, or never.
    Down { start_at: Option<Instant> },
    /// Started, has not yet said READY=1; must give a sign of life before the deadline.
    Starting { process: Process, deadline: Instant },
    /// The role works; a role with the protocol must say WATCHDOG=1 before the deadline.
    Ready {
        process: Process,
        deadline: Option<Instant>,
    },
    /// Was asked to stop; killed at the deadline.
    Stopping { process: Process, deadline: Instant },
}

/// How a process ended, for the log and for the supervisor's decisions.
#[derive(Debug)]
pub(super) struct Ended {
    /// The status, if the kernel still had the status.
    pub(super) status: Option<ExitStatus>,
    /// Whether the process became ready.
    pub(super) was_ready: bool,
    /// Whether the process had been asked to end.
    pub(super) expected: bool,
    /// Pause before the next start, after an unexpected end.
    pub(super) pause: Duration,
}

/// A role under supervision.
#[derive(Debug)]
pub(super) struct Supervised {
    pub(super) role: Role,
    state: State,
    backoff: Backoff,
    /// Whether the role was ever ready: until then exits of the role count as a failed start of the whole.
    pub(super) was_ready: bool,
    /// Exits before the role was first ready.
    pub(super) early_exits: u32,
    /// The deadline has passed once, and the role was given [`LAST_CHANCE`].
    overdue: bool,
    /// Settings were accepted during the role's start; the role may have read the previous settings.
    reload_when_ready: bool,
    settings: SettingsOfChild,
    /// The last status text about start or settings.
    said: Option<String>,
    /// Unexpected ends, and the last of them.
    restarts: u64,
    last_end: Option<(Instant, String)>,
    timing: Timing,
}

/// Numbers of settings, as a role knows them.
#[derive(Debug, Clone, Copy)]
struct SettingsOfChild {
    /// Accepted last.
    accepted: u64,
    /// Read by the process at the start, or by order of a signal.
    told: u64,
    /// Applied by the process, or refused with a complaint.
    applied: u64,
}

impl Supervised {
    pub(super) const fn new(role: Role, timing: Timing) -> Self {
        Self {
            role,
            state: State::Down { start_at: None },
            backoff: Backoff::new(timing.restart_first, timing.restart_longest),
            was_ready: false,
            early_exits: 0,
            overdue: false,
            reload_when_ready: false,
            settings: SettingsOfChild {
                accepted: FIRST_SETTINGS,
                told: FIRST_SETTINGS,
                applied: 0,
            },
            said: None,
            restarts: 0,
            last_end: None,
            timing,
        }
    }

    const fn process(&self) -> Option<&Process> {
        match &self.state {
            State::Down { .. } => None,
            State::Starting { process, .. }
            | State::Ready { process, .. }
            | State::Stopping { process, .. } => Some(process),
        }
    }

    /// The process id, while there is a process.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process().map(|process| process.child.id())
    }

    /// Whether there is neither a process nor a start to come.
    pub(super) const fn is_idle(&self) -> bool {
        matches!(self.state, State::Down { start_at: None })
    }

    /// When this role next needs attention without an event.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Down { start_at } => *start_at,
            State::Starting { deadline, .. } | State::Stopping { deadline, .. } => Some(*deadline),
            State::Ready { deadline, .. } => *deadline,
        }
    }

    /// Asks for a start at the given time.
    pub(super) fn schedule(&mut self, at: Instant) {
        if let State::Down { start_at } = &mut self.state {
            *start_at = Some(at);
        }
    }

    /// Starts the process if due. Returns the id of a new process.
    pub(super) fn start_if_due(&mut self, notify: &Path, now: Instant) -> Option<u32> {
        if !matches!(self.state, State::Down { start_at: Some(at) } if at <= now) {
            return None;
        }
        let child = match self.role.spawn(notify, self.timing.watchdog) {
            Ok(child) => child,
            Err(error) => {
                tracing::error!(role = %self.role.name, %error, "cannot start role");
                self.early_exits += u32::from(!self.was_ready);
                self.state = State::Down {
                    start_at: Some(now + self.backoff.failed()),
                };
                return None;
            }
        };
        let pid = child.id();
        tracing::info!(role = %self.role.name, pid, "role started");
        self.reload_when_ready = false;
        self.overdue = false;
        self.said = None;
        self.settings.told = self.settings.accepted;
        let process = Process {
            child,
            started: now,
        };
        self.state = match self.role.readiness {
            Readiness::Notified => State::Starting {
                process,
                deadline: now + self.timing.start_silence,
            },
            Readiness::Spawned => {
                self.was_ready = true;
                self.settings.applied = self.settings.told;
                State::Ready {
                    process,
                    deadline: None,
                }
            }
        };
        Some(pid)
    }

    /// Takes a notice of the process. Returns true when the process has just become ready.
    pub(super) fn notified(&mut self, notice: &Notice, now: Instant) -> bool {
        let timing = self.timing;
        self.overdue = *notice == Notice::WatchdogTrigger;
        if let Notice::Status(text) = notice {
            self.said = Some(text.clone()).filter(|text| !text.is_empty());
        }
        match (&mut self.state, notice) {
            (State::Starting { .. }, Notice::Ready) => {
                self.was_ready = true;
                self.said = None;
                self.settings.applied = self.settings.told;
                self.become_ready(now + timing.watchdog);
                if std::mem::take(&mut self.reload_when_ready) {
                    self.tell_of_settings();
                }
                return true;
            }
            (State::Starting { deadline, .. }, _) => *deadline = now + timing.start_silence,
            (State::Ready { deadline, .. }, Notice::WatchdogTrigger) => *deadline = Some(now),
            (State::Ready { deadline, .. }, _) => {
                *deadline = Some(now + timing.watchdog);
                if *notice == Notice::Ready {
                    self.settings.applied = self.settings.told;
                }
            }
            (State::Stopping { .. } | State::Down { .. }, _) => {}
        }
        false
    }

    fn become_ready(&mut self, deadline: Instant) {
        let state = std::mem::replace(&mut self.state, State::Down { start_at: None });
        self.state = match state {
            State::Starting { process, .. } => State::Ready {
                process,
                deadline: Some(deadline),
            },
            other => other,
        };
    }

    /// Has the process read the settings with the given number, at once or when ready.
    pub(super) fn reload(&mut self, accepted: u64) {
        self.settings.accepted = accepted;
        if !self.role.reloads {
            self.settings.told = accepted;
            self.settings.applied = accepted;
            return;
        }
        match self.state {
            State::Ready { .. } => self.tell_of_settings(),
            State::Starting { .. } => self.reload_when_ready = true,
            State::Stopping { .. } | State::Down { .. } => {}
        }
    }

    /// Has the ready process read the settings accepted last.
    fn tell_of_settings(&mut self) {
        self.settings.told = self.settings.accepted;
        self.said = None;
        self.signal(Signal::SIGHUP);
        if self.role.readiness == Readiness::Spawned {
            self.settings.applied = self.settings.told;
        }
    }

    /// The state for people and programs.
    pub(super) fn shown(&self, now: Instant) -> RoleState {
        let age = |at: Instant| now.saturating_duration_since(at).as_secs();
        RoleState {
            name: self.role.name.clone(),
            state: match self.state {
                State::Down { .. } => ProcessState::Down,
                State::Starting { .. } => ProcessState::Starting,
                State::Ready { .. } => ProcessState::Ready,
                State::Stopping { .. } => ProcessState::Stopping,
            },
            pid: self.pid(),
            uptime_seconds: self.process().map(|process| age(process.started)),
            restarts: self.restarts,
            last_end: self.last_end.as_ref().map(|(at, status)| RoleEnd {
                seconds_ago: age(*at),
                status: status.clone(),
            }),
            settings: self.settings.applied,
            complaint: self.said.clone(),
        }
    }

    /// How long a starting process may be silent.
    pub(super) const fn start_silence(&self) -> Duration {
        self.timing.start_silence
    }

    /// Kills a process after a missed deadline. The exit then takes the usual way.
    pub(super) fn kill_if_overdue(&mut self, now: Instant) {
        if let State::Starting { deadline, .. }
        | State::Ready {
            deadline: Some(deadline),
            ..
        } = &mut self.state
            && *deadline <= now
            && !std::mem::replace(&mut self.overdue, true)
        {
            *deadline = now + LAST_CHANCE;
            return;
        }
        let late = match &self.state {
            State::Down { .. } => return,
            State::Starting { deadline, .. } if *deadline <= now => "did not become ready",
            State::Ready {
                deadline: Some(deadline),
                ..
            } if *deadline <= now => "missed its watchdog",
            State::Stopping { deadline, .. } if *deadline <= now => "did not stop in time",
            _ => return,
        };
        tracing::error!(role = %self.role.name, pid = self.pid(), "role {late}, killed");
        self.kill();
        // One kill is enough; the exit event follows.
        let far = now + Duration::from_secs(3600);
        match &mut self.state {
            State::Starting { deadline, .. } | State::Stopping { deadline, .. } => *deadline = far,
            State::Ready { deadline, .. } => *deadline = Some(far),
            State::Down { .. } => {}
        }
    }

    /// Asks the process to end within the time limit; without a process cancels a pending start.
    pub(super) fn stop(&mut self, now: Instant) {
        self.signal(Signal::SIGTERM);
        let state = std::mem::replace(&mut self.state, State::Down { start_at: None });
        self.state = match state {
            State::Starting { process, .. } | State::Ready { process, .. } => State::Stopping {
                process,
                deadline: now + self.timing.stop,
            },
            stopping @ State::Stopping { .. } => stopping,
            State::Down { .. } => State::Down { start_at: None },
        };
    }

    /// Whether the process was asked to stop and has not yet ended.
    pub(super) const fn is_stopping(&self) -> bool {
        matches!(self.state, State::Stopping { .. })
    }

    /// Sends a signal to the process, if any. The process is unreaped, so no other process has the id.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid().and_then(|pid| i32::try_from(pid).ok()) {
            // Fails only when the process is a zombie already: the exit event is on the way.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Kills the process and all child processes.
    pub(super) fn kill(&self) {
        if let Some(pid) = self.pid().and_then(|pid| i32::try_from(pid).ok()) {
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }

    /// Collects the ended process.
    pub(super) fn ended(&mut self, now: Instant) -> Option<Ended> {
        let state = std::mem::replace(&mut self.state, State::Down { start_at: None });
        let (mut process, expected, was_ready) = match state {
            State::Down { start_at } => {
                self.state = State::Down { start_at };
                return None;
            }
            State::Starting { process, .. } => (process, false, false),
            State::Ready { process, .. } => (process, false, true),
            State::Stopping { process, .. } => (process, true, false),
        };
        let status = process.child.wait().ok();
        if was_ready && now.duration_since(process.started) >= self.timing.stable_after {
            self.backoff.succeeded();
        }
        let pause = if expected {
            Duration::ZERO
        } else {
            self.restarts += 1;
            let said = status.map_or_else(|| "status unknown".to_owned(), |is| is.to_string());
            self.last_end = Some((now, said));
            self.backoff.failed()
        };
        self.early_exits += u32::from(!self.was_ready);
        Some(Ended {
            status,
            expected,
            was_ready,
            pause,
        })
    }
}
