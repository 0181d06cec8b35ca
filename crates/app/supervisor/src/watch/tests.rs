//! Real child processes: shell scripts play the roles.
//!
//! The shell cannot send a datagram, so roles that must notify do it through the test binary itself,
//! which is started again with [`HELPER`] set.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use vere_control::supervision::ask_supervisor;

use super::super::role::Listener;
use super::*;

/// Names what the test binary plays when it is started as a role.
const HELPER: &str = "VERE_TEST_ROLE";

/// Roles notify every 100 ms and stop at once; what is far longer than that is not exceeded by the
/// slowest machine. A test that waits for one of these times to pass sets it shorter for itself.
const QUICK: Timing = Timing {
    start_silence: Duration::from_secs(60),
    watchdog: Duration::from_secs(3),
    stop: Duration::from_secs(60),
    restart_first: Duration::from_millis(20),
    restart_longest: Duration::from_millis(200),
    stable_after: Duration::from_secs(60),
};

/// A folder in which roles leave marks.
struct Marks(tempfile::TempDir);

impl Marks {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap_or_default()
    }

    /// Waits until the file holds at least `count` lines.
    fn wait(&self, name: &str, count: usize) -> Vec<String> {
        for _ in 0..6000 {
            let text = self.read(name);
            if text.lines().count() >= count {
                return text.lines().map(str::to_owned).collect();
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("{name} never got {count} lines: {:?}", self.read(name));
    }
}

/// A role played by a shell script, ready as soon as it is started.
fn shell(name: &str, folder: &Path, script: &'static str) -> Role {
    let folder = folder.to_owned();
    Role {
        name: name.to_owned(),
        command: Box::new(move || {
            // A shell cannot trap what was ignored when it was started, as under nohup.
            let mut command = Command::new("env");
            command.args(["--default-signal=HUP", "/bin/sh", "-c", script]);
            command.current_dir(&folder);
            command
        }),
        listeners: Vec::new(),
        log: None,
        readiness: Readiness::Spawned,
        reloads: true,
    }
}

/// A role played by this test binary, see [`played_role`].
fn helper(name: &'static str, folder: &Path) -> Role {
    let folder = folder.to_owned();
    Role {
        name: name.to_owned(),
        command: Box::new(move || {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "--nocapture", "watch::tests::played_role"]);
            command.env(HELPER, name).current_dir(&folder);
            command.stdout(std::process::Stdio::null());
            command
        }),
        listeners: Vec::new(),
        log: None,
        readiness: Readiness::Notified,
        reloads: true,
    }
}

/// Not a separate test: what a child process of the other tests does.
#[test]
fn played_role() {
    let Ok(part) = std::env::var(HELPER) else {
        return;
    };
    vere_process::entry::child_setup().unwrap();
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open("starts")
        .and_then(|mut file| std::io::Write::write_all(&mut file, format!("{part}\n").as_bytes()))
        .unwrap();
    fs::write(format!("{part}.pid"), std::process::id().to_string()).unwrap();
    match part.as_str() {
        "slow" => {
            thread::sleep(Duration::from_millis(200));
            vere_process::entry::notify_ready();
        }
        "steady" => vere_process::entry::notify_ready(),
        "reader" => {
            vere_process::entry::tell(&[sd_notify::NotifyState::Status("reading the log")]);
            vere_process::entry::notify_ready();
        }
        "obedient" => return follows_reloads(vere_process::entry::notify_ready),
        "unwilling" => {
            return follows_reloads(|| vere_process::entry::notify_kept("line 1\nline 2"));
        }
        "supervisor" => return played_supervisor(),
        "hung" => {
            vere_process::entry::notify_ready();
            thread::sleep(Duration::from_secs(60));
        }
        _ => {}
    }
    for _ in 0..1000 {
        thread::sleep(Duration::from_millis(100));
        vere_process::entry::notify_watchdog();
    }
}

/// Becomes ready and does something at each SIGHUP.
fn follows_reloads(at_reload: impl Fn()) {
    let mut signals = Signals::new([SIGHUP]).unwrap();
    vere_process::entry::notify_ready();
    for _ in 0..1000 {
        signals.pending().for_each(|_| at_reload());
        thread::sleep(Duration::from_millis(100));
        vere_process::entry::notify_watchdog();
    }
}

/// A whole supervisor with one role, which takes signals as the real one does.
fn played_supervisor() {
    let folder = std::env::current_dir().unwrap();
    let roles = vec![helper("steady", &folder), helper("reader", &folder)];
    let plan = Plan {
        roles,
        reload: Box::new(|| Ok(Vec::new())),
        when_ready: Some(Box::new(|| fs::write("ready", "all\n").unwrap())),
    };
    let watch = Watch::new(plan, &folder, QUICK).unwrap();
    report_signals(watch.reports()).unwrap();
    assert_success(watch.run());
}

/// A supervisor in a separate thread.
struct Running {
    reports: Sender<Event>,
    thread: Option<thread::JoinHandle<Result<ExitCode, SupervisorError>>>,
}

impl Running {
    fn start(roles: Vec<Role>, reload: Reload) -> Self {
        Self::start_timed(roles, reload, QUICK)
    }

    fn start_timed(roles: Vec<Role>, reload: Reload, timing: Timing) -> Self {
        let (sender, receiver) = channel();
        let make = move || {
            let folder = tempfile::tempdir().unwrap();
            let watch = Watch::new(
                Plan {
                    roles,
                    reload,
                    when_ready: None,
                },
                folder.path(),
                timing,
            )?;
            sender.send(watch.reports()).unwrap();
            watch.run()
        };
        let thread = Some(thread::spawn(make));
        Self {
            reports: receiver.recv().unwrap(),
            thread,
        }
    }

    fn signal(&self, signal: Signal) {
        self.reports.send(Event::Signal(signal)).unwrap();
    }

    fn stop(mut self) -> Result<ExitCode, SupervisorError> {
        self.signal(Signal::SIGTERM);
        self.join()
    }

    fn join(&mut self) -> Result<ExitCode, SupervisorError> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    /// A failed test must not leave processes behind.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = self.reports.send(Event::Signal(Signal::SIGINT));
            let _ = self.reports.send(Event::Signal(Signal::SIGINT));
            let _ = thread.join();
        }
    }
}

fn start(roles: Vec<Role>) -> Running {
    Running::start(roles, Box::new(|| Ok(Vec::new())))
}

/// Exit codes can only be compared by their debug form.
fn assert_success(outcome: Result<ExitCode, SupervisorError>) {
    assert_eq!(
        format!("{:?}", outcome.unwrap()),
        format!("{:?}", ExitCode::SUCCESS)
    );
}

/// The first pause is the short one: with the longest there would never be a second start.
#[test]
fn a_crashed_role_is_back_at_once() {
    let marks = Marks::new();
    let script = "echo up >> starts; kill -9 $$";
    let timing = Timing {
        restart_first: Duration::ZERO,
        restart_longest: Duration::from_secs(3600),
        ..QUICK
    };
    let role = shell("crashing", &marks.path(), script);
    let running = Running::start_timed(vec![role], Box::new(|| Ok(Vec::new())), timing);
    marks.wait("starts", 3);
    assert_success(running.stop());
}

#[test]
fn roles_start_in_order_and_stop_in_reverse() {
    let marks = Marks::new();
    let trap = |name| match name {
        "one" => {
            "trap 'echo one >> stops; exit 0' TERM; echo one >> starts; while :; do sleep 0.02; done"
        }
        _ => {
            "trap 'sleep 0.1; echo two >> stops; exit 0' TERM; echo two >> starts; while :; do sleep 0.02; done"
        }
    };
    let roles = vec![
        shell("one", &marks.path(), trap("one")),
        helper("slow", &marks.path()),
        shell("two", &marks.path(), trap("two")),
    ];
    let running = start(roles);
    // A shell is taken for ready before it wrote its mark; "slow" says itself when it is.
    let starts = marks.wait("starts", 3);
    assert_eq!(starts[2], "two", "{starts:?}");
    assert_success(running.stop());
    assert_eq!(marks.wait("stops", 2), ["two", "one"]);
}

#[test]
fn a_role_that_does_not_stop_is_killed() {
    let marks = Marks::new();
    let script = "trap '' TERM; echo up >> starts; while :; do sleep 0.02; done";
    let timing = Timing {
        stop: Duration::from_millis(400),
        ..QUICK
    };
    let role = shell("stubborn", &marks.path(), script);
    let running = Running::start_timed(vec![role], Box::new(|| Ok(Vec::new())), timing);
    marks.wait("starts", 1);
    let begun = Instant::now();
    // It would never end by itself.
    assert_success(running.stop());
    assert!(begun.elapsed() >= timing.stop);
}

#[test]
fn a_second_interrupt_kills_at_once() {
    let marks = Marks::new();
    let script = "trap '' TERM; echo up >> starts; while :; do sleep 0.02; done";
    let mut running = start(vec![shell("stubborn", &marks.path(), script)]);
    marks.wait("starts", 1);
    running.signal(Signal::SIGINT);
    running.signal(Signal::SIGINT);
    let outcome = running.join().unwrap();
    assert_eq!(format!("{outcome:?}"), format!("{:?}", ExitCode::from(130)));
}

#[test]
fn a_silent_role_is_replaced_and_a_talking_one_stays() {
    let marks = Marks::new();
    let running = start(vec![
        helper("steady", &marks.path()),
        helper("hung", &marks.path()),
    ]);
    let starts = marks.wait("starts", 4);
    assert_eq!(
        starts.iter().filter(|name| *name == "steady").count(),
        1,
        "{starts:?}"
    );
    assert_success(running.stop());
}

/// A supervisor that is killed cannot stop its roles; the kernel has to.
#[test]
fn a_killed_supervisor_leaves_no_role_behind() {
    let marks = Marks::new();
    let mut supervisor = (helper("supervisor", &marks.path()).command)()
        .spawn()
        .unwrap();
    marks.wait("starts", 2);
    let role = PathBuf::from("/proc").join(marks.wait("steady.pid", 1)[0].trim());
    assert!(role.exists());
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    // A zombie waits for its new parent to collect it; it runs no more.
    let gone = || fs::read_to_string(role.join("stat")).map_or(true, |stat| stat.contains(") Z "));
    for _ in 0..6000 {
        if gone() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{} outlived its supervisor", role.display());
}

/// It once died of SIGTERM without stopping anything, since a separate thread took the signal.
#[test]
fn a_real_signal_stops_everything_cleanly() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let marks = Marks::new();
        let mut supervisor = (helper("supervisor", &marks.path()).command)()
            .spawn()
            .unwrap();
        marks.wait("ready", 1);
        let pid = Pid::from_raw(i32::try_from(supervisor.id()).unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
        assert!(supervisor.wait().unwrap().success(), "after {signal}");
        let role = PathBuf::from("/proc").join(marks.read("steady.pid").trim());
        assert!(!role.exists(), "the role outlived {signal}");
    }
}

#[test]
fn systemd_hears_what_a_role_does_before_it_is_ready() {
    let marks = Marks::new();
    let path = marks.path().join("systemd.sock");
    let systemd = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    systemd
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut supervisor = (helper("supervisor", &marks.path()).command)()
        .env("NOTIFY_SOCKET", &path)
        .spawn()
        .unwrap();
    let mut octets = [0; 512];
    let count = systemd.recv(&mut octets).unwrap();
    let said = String::from_utf8_lossy(&octets[..count]);
    assert_eq!(
        said.trim(),
        "STATUS=reader: reading the log\nEXTEND_TIMEOUT_USEC=60000000"
    );
    let count = systemd.recv(&mut octets).unwrap();
    assert!(octets[..count].starts_with(b"READY=1"));
    let pid = Pid::from_raw(i32::try_from(supervisor.id()).unwrap());
    nix::sys::signal::kill(pid, Signal::SIGTERM).unwrap();
    assert!(supervisor.wait().unwrap().success());
}

#[test]
fn a_role_that_never_becomes_ready_fails_the_start() {
    let marks = Marks::new();
    let mut role = shell("hopeless", &marks.path(), "echo up >> starts; exit 3");
    role.readiness = Readiness::Notified;
    let mut running = start(vec![shell("fine", &marks.path(), "sleep 60"), role]);
    let error = running.join().unwrap_err();
    assert!(
        matches!(&error, SupervisorError::RoleNeverReady { role, tries: 3 } if role == "hopeless")
    );
    assert_eq!(marks.read("starts").lines().count(), 3);
}

#[test]
fn a_program_that_does_not_exist_fails_the_start() {
    let role = Role {
        name: "absent".to_owned(),
        command: Box::new(|| Command::new("/nonexistent/vere")),
        listeners: Vec::new(),
        log: None,
        readiness: Readiness::Notified,
        reloads: false,
    };
    let error = start(vec![role]).join().unwrap_err();
    assert!(matches!(error, SupervisorError::RoleNeverReady { .. }));
}

#[test]
fn an_accepted_reload_reaches_the_roles_and_a_refused_one_does_not() {
    let marks = Marks::new();
    let script = "trap 'echo hup >> hups' HUP; echo up >> starts; while :; do sleep 0.02; done";
    let mut calls = 0;
    let reload: Reload = Box::new(move || {
        calls += 1;
        if calls == 1 {
            Err(SupervisorError::NeedsRestart {
                keys: vec!["smtp.listen".to_owned()],
            })
        } else {
            Ok(Vec::new())
        }
    });
    let running = Running::start(vec![shell("role", &marks.path(), script)], reload);
    marks.wait("starts", 1);
    running.signal(Signal::SIGHUP);
    // Not a wait for an event: none may come, and on a slow machine it would come later.
    thread::sleep(Duration::from_millis(150));
    assert_eq!(marks.read("hups"), "");
    running.signal(Signal::SIGHUP);
    assert_eq!(marks.wait("hups", 1), ["hup"]);
    assert_success(running.stop());
}

#[test]
fn clients_wait_while_the_listening_role_is_away() {
    let marks = Marks::new();
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let script =
        "echo $VERE_LISTEN_FDNAMES >> names; ls -l /proc/$$/fd/3 >> fds; sleep 0.1; exit 1";
    let mut role = shell("away", &marks.path(), script);
    role.listeners = vec![Listener {
        name: "smtp".to_owned(),
        socket: Arc::new(OwnedFd::from(socket)),
    }];
    let running = start(vec![role]);
    marks.wait("names", 2);
    for _ in 0..20 {
        std::net::TcpStream::connect(address).unwrap();
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(marks.wait("names", 2)[0], "smtp");
    assert!(marks.wait("fds", 1)[0].contains("socket:"));
    assert_success(running.stop());
}

/// How long a command waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A supervisor with its socket for commands.
struct Asked {
    running: Running,
    folder: tempfile::TempDir,
    _socket: super::super::asked::Socket,
}

impl Asked {
    fn start(roles: Vec<Role>, reload: Reload) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let running = Running::start(roles, reload);
        let path = folder.path().join("supervisor.sock");
        let reports = running.reports.clone();
        let hand = move |asked| reports.send(Event::Asked(asked)).is_ok();
        let socket = super::super::asked::serve(&path, hand).unwrap();
        Self {
            running,
            folder,
            _socket: socket,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("supervisor.sock")
    }

    fn state(&self) -> SystemState {
        let asked = ask_supervisor(&self.path(), SupervisorRequest::Status, PATIENCE);
        asked.unwrap().expect("a supervisor")
    }

    fn reload(&self) -> Result<Accepted, vere_control::AskError> {
        let asked = ask_supervisor(&self.path(), SupervisorRequest::Reload, PATIENCE);
        asked.map(|accepted| accepted.expect("a supervisor"))
    }

    /// Waits for a state of the system.
    fn wait(&self, holds: impl Fn(&SystemState) -> bool) -> SystemState {
        let mut last = None;
        for _ in 0..3000 {
            let state = self.state();
            if holds(&state) {
                return state;
            }
            last = Some(state);
            thread::sleep(Duration::from_millis(10));
        }
        panic!("never so: {last:?}");
    }
}

#[test]
fn a_command_reloads_and_sees_which_roles_have_followed() {
    let marks = Marks::new();
    let roles = vec![
        helper("obedient", &marks.path()),
        helper("unwilling", &marks.path()),
    ];
    let asked = Asked::start(roles, Box::new(|| Ok(vec!["limits.x".to_owned()])));
    let state = asked.wait(|state| state.phase == SystemPhase::Running);
    assert_eq!((state.settings, state.roles[0].settings), (1, 1));
    let accepted = asked.reload().unwrap();
    assert_eq!(
        (accepted.settings, &accepted.changed[..]),
        (2, &["limits.x".to_owned()][..])
    );
    let state = asked.wait(|state| state.roles.iter().all(|role| role.settings == 2));
    assert_eq!(state.roles[0].complaint, None);
    assert_eq!(state.roles[1].complaint.as_deref(), Some("line 1; line 2"));
    assert_success(asked.running.stop());
}

#[test]
fn a_refused_reload_is_answered_and_remembered() {
    let marks = Marks::new();
    let mut calls = 0;
    let reload: Reload = Box::new(move || {
        calls += 1;
        match calls {
            1 => Err(SupervisorError::NeedsRestart {
                keys: vec!["smtp.listen".to_owned()],
            }),
            _ => Ok(Vec::new()),
        }
    });
    let asked = Asked::start(vec![helper("obedient", &marks.path())], reload);
    asked.wait(|state| state.phase == SystemPhase::Running);
    let refused = asked.reload().unwrap_err();
    assert!(refused.to_string().contains("smtp.listen"), "{refused}");
    let state = asked.wait(|state| state.refused.is_some());
    assert_eq!(state.settings, 1);
    asked.reload().unwrap();
    let state = asked.wait(|state| state.roles[0].settings == 2);
    assert_eq!(state.refused, None);
    assert_success(asked.running.stop());
}

#[test]
fn a_command_sees_ends_of_roles() {
    let marks = Marks::new();
    let role = shell("crashing", &marks.path(), "sleep 0.1; exit 3");
    let asked = Asked::start(vec![role], Box::new(|| Ok(Vec::new())));
    let state = asked.wait(|state| state.roles[0].restarts >= 2);
    let end = state.roles[0].last_end.as_ref().unwrap();
    assert_eq!(end.status, "exit status: 3");
    assert_success(asked.running.stop());
}

#[test]
fn whoever_sends_garbage_or_nothing_holds_no_other_command_up() {
    let marks = Marks::new();
    let asked = Asked::start(
        vec![helper("steady", &marks.path())],
        Box::new(|| Ok(Vec::new())),
    );
    let connect = || std::os::unix::net::UnixStream::connect(asked.path()).unwrap();
    let _silent = connect();
    let mut talker = connect();
    std::io::Write::write_all(&mut talker, b"GET / HTTP/1.1\n").unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut talker, &mut said).unwrap();
    assert!(said.contains("expected a request in JSON"), "{said}");
    asked.wait(|state| state.phase == SystemPhase::Running);
    assert_success(asked.running.stop());
}
