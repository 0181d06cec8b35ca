//! The event loop: children, their notices, and the operator's signals.
//!
//! A single thread decides; three kinds of helper threads only wait and report: a thread for signals,
//! a thread for notices, and a thread for the exit of each child. A child's exit is seen with
//! `WNOWAIT` and collected by the deciding thread, so that no signal goes to a process id already
//! returned to the kernel. All children are started by the deciding thread: the kernel's
//! parent-death signal follows the forking thread, not the process.

use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use vere_control::Answer;
use vere_control::supervision::{
    Accepted, RefusedReload, SupervisorRequest, SystemPhase, SystemState,
};

use super::asked::Asked;
use super::ballast::Ballast;
use super::child::{FIRST_SETTINGS, Supervised};
use super::error::SupervisorError;
use super::notify::{self, Notice, NotifySocket};
use super::role::{Readiness, Role};
use super::timing::Timing;
use vere_process::entry::{tell, watchdog_interval};

/// Exit code after a second SIGINT: 128 + SIGINT, as shells have it.
const EXIT_INTERRUPTED: u8 = 130;

/// Number of exits before a role was first ready after which the whole start counts as failed.
const EARLY_EXITS_MAX: u32 = 3;

/// An event for the supervisor.
#[derive(Debug)]
pub(super) enum Event {
    /// An operator's signal.
    Signal(Signal),
    /// A child said something.
    Notified { pid: u32, notices: Vec<Notice> },
    /// A child has ended and waits to be collected.
    Exited { pid: u32 },
    /// A command asks.
    Asked(Asked),
}

/// Checks and accepts the settings file again, and returns the changed keys; on failure the old settings stay in
/// force.
pub(super) type Reload = Box<dyn FnMut() -> Result<Vec<String>, SupervisorError> + Send>;

/// The roles to supervise, and the actions on events.
pub(super) struct Plan {
    /// The roles, in start order.
    pub(super) roles: Vec<Role>,
    /// The action on SIGHUP.
    pub(super) reload: Reload,
    /// The action once all roles are ready for the first time.
    pub(super) when_ready: Option<Box<dyn FnOnce() + Send>>,
}

/// The phase of the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Roles are started in order, each when the previous role is ready.
    Starting,
    /// All roles were ready once; each role is restarted separately.
    Running,
    /// Roles are stopped in reverse order.
    Stopping,
}

/// Supervises a fixed list of roles, in start order.
pub(super) struct Watch {
    children: Vec<Supervised>,
    socket: NotifySocket,
    events: Receiver<Event>,
    reports: Sender<Event>,
    reload: Reload,
    when_ready: Option<Box<dyn FnOnce() + Send>>,
    phase: Phase,
    failure: Option<SupervisorError>,
    interrupts: u32,
    heartbeat: Option<(Duration, Instant)>,
    ballast: Ballast,
    started: Instant,
    /// Number of the accepted settings.
    settings: u64,
    /// The last reload, if refused.
    refused: Option<(Instant, String)>,
}

impl Watch {
    /// Prepares the supervision, without any start. `folder` takes the socket for notices of roles, and the
    /// disk space reserved for starting roles.
    pub(super) fn new(plan: Plan, folder: &Path, timing: Timing) -> Result<Self, SupervisorError> {
        let system = SupervisorError::system;
        let socket = NotifySocket::open(folder).map_err(system("open the notification socket"))?;
        let (reports, events) = channel();
        let receiver = socket
            .receiver()
            .map_err(system("clone the notification socket"))?;
        spawn_notice_thread(receiver, reports.clone()).map_err(system("start a thread"))?;
        Ok(Self {
            children: plan
                .roles
                .into_iter()
                .map(|role| Supervised::new(role, timing))
                .collect(),
            socket,
            events,
            reports,
            reload: plan.reload,
            when_ready: plan.when_ready,
            phase: Phase::Starting,
            failure: None,
            interrupts: 0,
            heartbeat: watchdog_interval().map(|every| (every, Instant::now())),
            ballast: Ballast::of(folder),
            started: Instant::now(),
            settings: FIRST_SETTINGS,
            refused: None,
        })
    }

    /// Where to report operator signals.
    pub(super) fn reports(&self) -> Sender<Event> {
        self.reports.clone()
    }

    /// Runs until stopped.
    pub(super) fn run(mut self) -> Result<ExitCode, SupervisorError> {
        loop {
            let now = Instant::now();
            self.attend(now);
            if self.phase == Phase::Stopping && self.children.iter().all(Supervised::is_idle) {
                return self.outcome();
            }
            match self.events.recv_timeout(self.patience(now)) {
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn outcome(&mut self) -> Result<ExitCode, SupervisorError> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None if self.interrupts > 1 => Ok(ExitCode::from(EXIT_INTERRUPTED)),
            None => Ok(ExitCode::SUCCESS),
        }
    }

    /// The time until the next action if no event comes.
    fn patience(&self, now: Instant) -> Duration {
        let heartbeat = self.heartbeat.map(|(_, due)| due);
        let next = self
            .children
            .iter()
            .filter_map(Supervised::deadline)
            .chain(heartbeat)
            .min();
        next.map_or(Duration::from_secs(60), |at| {
            at.saturating_duration_since(now)
        })
    }

    /// Does all due work.
    fn attend(&mut self, now: Instant) {
        if let Some((every, due)) = self.heartbeat.filter(|(_, due)| *due <= now) {
            tell(&[NotifyState::Watchdog]);
            self.heartbeat = Some((every, due.max(now) + every));
        }
        for child in &mut self.children {
            child.kill_if_overdue(now);
        }
        match self.phase {
            Phase::Starting => self.start_in_order(now),
            Phase::Running => {}
            Phase::Stopping => return self.stop_in_order(now),
        }
        if self.phase == Phase::Running {
            self.ballast.keep();
        }
        for index in 0..self.children.len() {
            self.start_if_due(index, now);
        }
        if self.phase == Phase::Stopping {
            self.stop_in_order(now);
        }
    }

    fn start_if_due(&mut self, index: usize, now: Instant) {
        let Some(child) = self.children.get_mut(index) else {
            return;
        };
        if child.early_exits >= EARLY_EXITS_MAX {
            let role = child.role.name.clone();
            self.fail(SupervisorError::RoleNeverReady {
                role,
                tries: EARLY_EXITS_MAX,
            });
            return;
        }
        let Some(pid) = child.start_if_due(self.socket.path(), now) else {
            return;
        };
        if let Err(error) = spawn_exit_thread(pid, self.reports.clone()) {
            tracing::error!(%error, role = %child.role.name, "cannot watch a role, killed");
            child.kill();
            if let Some(ended) = child.ended(now) {
                child.schedule(now + ended.pause);
            }
        }
    }

    fn fail(&mut self, failure: SupervisorError) {
        self.failure.get_or_insert(failure);
        self.phase = Phase::Stopping;
    }

    /// Schedules the first unstarted role, once all previous roles are ready.
    fn start_in_order(&mut self, now: Instant) {
        for child in &mut self.children {
            if child.is_idle() {
                child.schedule(now);
            }
            if !child.was_ready && child.role.readiness == Readiness::Notified {
                return;
            }
        }
        self.phase = Phase::Running;
        tracing::info!(roles = self.children.len(), "all roles are ready");
        tell(&[
            NotifyState::Ready,
            NotifyState::Status("all roles are ready"),
        ]);
        if let Some(when_ready) = self.when_ready.take() {
            when_ready();
        }
    }

    /// Stops the last living role; previous roles wait.
    fn stop_in_order(&mut self, now: Instant) {
        for child in self.children.iter_mut().rev() {
            if child.pid().is_none() {
                child.stop(now);
                continue;
            }
            if !child.is_stopping() {
                tracing::info!(role = %child.role.name, "stopping role");
                child.stop(now);
            }
            return;
        }
    }

    fn take(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::Signal(signal) => self.signalled(signal),
            Event::Notified { pid, notices } => self.notified(pid, &notices, now),
            Event::Exited { pid } => self.exited(pid, now),
            // An ended command needs no answer.
            Event::Asked(Asked { request, answer }) => {
                let _ = answer.try_send(self.answer(request, now));
            }
        }
    }

    fn child(&mut self, pid: u32) -> Option<&mut Supervised> {
        self.children
            .iter_mut()
            .find(|child| child.pid() == Some(pid))
    }

    fn notified(&mut self, pid: u32, notices: &[Notice], now: Instant) {
        let is_starting = self.phase == Phase::Starting;
        let Some(child) = self.child(pid) else { return };
        for notice in notices {
            if child.notified(notice, now) {
                tracing::info!(role = %child.role.name, pid, "role is ready");
            }
            if let Notice::Status(text) = notice
                && is_starting
            {
                tell_of_start(&child.role.name, text, child.start_silence());
            }
        }
    }

    fn exited(&mut self, pid: u32, now: Instant) {
        let stopping = self.phase == Phase::Stopping;
        let Some(child) = self.child(pid) else { return };
        let Some(ended) = child.ended(now) else {
            return;
        };
        let status = ended
            .status
            .map_or_else(|| "status unknown".to_owned(), |s| s.to_string());
        let role = child.role.name.clone();
        if ended.expected || stopping {
            tracing::info!(%role, pid, %status, "role stopped");
        } else {
            let pause_ms = ended.pause.as_millis();
            tracing::error!(%role, pid, %status, pause_ms, "role ended unexpectedly, restarting");
        }
        if !stopping {
            child.schedule(now + ended.pause);
            // A full disk may have ended the role. The reserve is released only now, or other writers would fill it
            // first.
            if !ended.was_ready {
                self.ballast.give_up_if_full();
            }
        }
    }

    fn signalled(&mut self, signal: Signal) {
        match signal {
            Signal::SIGHUP if self.phase != Phase::Stopping => {
                // The log has the reason of a refusal.
                let _ = self.reload();
            }
            Signal::SIGTERM | Signal::SIGINT => {
                self.interrupts += u32::from(signal == Signal::SIGINT);
                if self.interrupts > 1 {
                    tracing::warn!("interrupted twice, killing all roles");
                    self.children.iter().for_each(Supervised::kill);
                } else if self.phase != Phase::Stopping {
                    tracing::info!(%signal, "stopping");
                    tell(&[NotifyState::Stopping]);
                }
                self.phase = Phase::Stopping;
            }
            _ => {}
        }
    }

    /// Takes the new settings whole, or keeps the old ones and returns the reason.
    fn reload(&mut self) -> Result<Accepted, String> {
        if let Ok(time) = NotifyState::monotonic_usec_now() {
            tell(&[NotifyState::Reloading, time]);
        }
        let reloaded = (self.reload)().map_err(|error| error.to_string());
        let reloaded = match reloaded {
            Ok(changed) => Ok(self.accepted(changed)),
            Err(error) => {
                tracing::error!(%error, "reload refused, the old settings stay in force");
                self.refused = Some((Instant::now(), error.clone()));
                Err(error)
            }
        };
        tell(&[NotifyState::Ready]);
        reloaded
    }

    /// Has the roles apply the newly accepted settings.
    fn accepted(&mut self, changed: Vec<String>) -> Accepted {
        tracing::info!("settings reloaded");
        self.settings += 1;
        self.refused = None;
        for child in &mut self.children {
            child.reload(self.settings);
        }
        Accepted {
            settings: self.settings,
            changed,
        }
    }

    fn answer(&mut self, request: SupervisorRequest, now: Instant) -> Answer {
        let value = match request {
            SupervisorRequest::Status => serde_json::to_value(self.state(now)),
            SupervisorRequest::Reload if self.phase == Phase::Stopping => {
                return Answer::Error("the system is stopping".to_owned());
            }
            SupervisorRequest::Reload => match self.reload() {
                Ok(accepted) => serde_json::to_value(accepted),
                Err(reason) => return Answer::Error(reason),
            },
        };
        value.map_or_else(|error| Answer::Error(error.to_string()), Answer::Ok)
    }

    fn state(&self, now: Instant) -> SystemState {
        let age = |at: Instant| now.saturating_duration_since(at).as_secs();
        let refused = self.refused.as_ref().map(|(at, reason)| RefusedReload {
            seconds_ago: age(*at),
            reason: reason.clone(),
        });
        SystemState {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            phase: match self.phase {
                Phase::Starting => SystemPhase::Starting,
                Phase::Running => SystemPhase::Running,
                Phase::Stopping => SystemPhase::Stopping,
            },
            uptime_seconds: age(self.started),
            settings: self.settings,
            refused,
            roles: self.children.iter().map(|child| child.shown(now)).collect(),
        }
    }
}

impl Drop for Watch {
    /// Leaves no process behind, however the loop was left.
    fn drop(&mut self) {
        for child in &mut self.children {
            child.kill();
            child.ended(Instant::now());
        }
    }
}

/// Reports the operator's signals from now on, also signals ignored by the parent process (a shell
/// ignores SIGINT for background jobs).
pub(super) fn report_signals(reports: Sender<Event>) -> Result<(), SupervisorError> {
    let mut signals =
        Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(SupervisorError::system("take signals"))?;
    let report = move || {
        for number in signals.forever() {
            let known = Signal::try_from(number).map(Event::Signal);
            if known.is_ok_and(|event| reports.send(event).is_err()) {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(report)
        .map(drop)
        .map_err(SupervisorError::system("start a thread"))
}

fn spawn_notice_thread(socket: notify::Receiver, reports: Sender<Event>) -> std::io::Result<()> {
    let receive = move || loop {
        match socket.receive() {
            Ok((pid, notices)) => {
                if reports.send(Event::Notified { pid, notices }).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                tracing::error!(%error, "the notification socket failed");
                return;
            }
        }
    };
    thread::Builder::new()
        .name("notices".into())
        .spawn(receive)
        .map(drop)
}

/// Reports the end of a child.
fn spawn_exit_thread(pid: u32, reports: Sender<Event>) -> std::io::Result<()> {
    let id = Pid::from_raw(i32::try_from(pid).map_err(std::io::Error::other)?);
    let wait = move || {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(id), flags) == Err(Errno::EINTR) {}
        // The send fails only while the supervisor ends.
        let _ = reports.send(Event::Exited { pid });
    };
    thread::Builder::new()
        .name(format!("exit-{pid}"))
        .spawn(wait)
        .map(drop)
}

/// Tells systemd what a role does before it is ready: `systemctl status` shows the text, and the start may take longer
/// than the unit allows as long as such texts come.
fn tell_of_start(role: &str, text: &str, silence: Duration) {
    let status = format!("{role}: {text}");
    let extension = u32::try_from(silence.as_micros()).unwrap_or(u32::MAX);
    tell(&[
        NotifyState::Status(&status),
        NotifyState::ExtendTimeoutUsec(extension),
    ]);
}

#[cfg(test)]
mod tests;
