//! How the system is run: by a service manager, as its own user, or by `make run`.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use command_fds::{CommandFdExt as _, FdMapping};
use nix::sys::signal::Signal;
use nix::unistd::{User, geteuid};

use crate::harness::{
    Child, Options, PATIENCE, Session, Sink, System, assert_has, fails_with, free_address,
    output_of, program, read_all, require_bench, run, signal, skip, vere, wait_for, wait_until,
};
use crate::imap::Imap;

/// The ports of the demo without an offset.
pub(crate) const DEMO_PORTS: [u16; 15] = [
    2525, 2587, 2465, 2143, 2993, 2424, 2053, 2102, 2443, 2480, 2080, 2081, 2600, 2601, 2526,
];

#[test]
fn sockets_of_a_service_manager_are_used_and_who_came_early_is_served() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    // Connected before the daemon exists.
    let mut early = Session::open(address).expect("a connection");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let system = System::start_as(directory, &Options::default(), |command, own| {
        // The port of the settings must not be needed: another process has the port.
        let mapping = FdMapping {
            parent_fd: OwnedFd::from(listener),
            child_fd: 3,
        };
        let fallback = FdMapping {
            parent_fd: OwnedFd::from(TcpListener::bind(own).expect("the port")),
            child_fd: 4,
        };
        command
            .fd_mappings(vec![mapping, fallback])
            .expect("descriptors");
        command.env("LISTEN_FDS", "2");
        command.env("LISTEN_FDNAMES", "smtp:smtp");
    });
    early.expect("220");
    early.submit_after_ehlo("alice@example.org");
    system.wait_mail("alice", 1);
    // The socket outlives a gateway: a client waits while no gateway runs.
    system.kill_and_wait("gateway");
    Session::connect(address).submit_after_ehlo("alice@example.org");
    system.wait_mail("alice", 2);
}

/// The name resolver, and then the gateway, ended at once without CA certificates, and `check-config` said nothing.
#[test]
fn a_machine_without_ca_certificates_delivers_mail() {
    let sink = Sink::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let nowhere = directory.path().join("nowhere");
    let bare = |command: &mut Command| {
        command.env("SSL_CERT_FILE", &nowhere);
        command.env("SSL_CERT_DIR", &nowhere);
    };
    let options = Options::to(sink.address)
        .set("acme.directory", "\"https://localhost:1/directory\"")
        .set("acme.domains", "[\"mx.example.org\"]")
        .set("acme.listen", &format!("[\"{}\"]", free_address()));
    let system = System::start_as(directory, &options, |command, _| {
        bare(command);
    });
    system.submit("alice@example.org", &["x@example.com"], "A: b\r\n\r\nbody");
    sink.wait_mail(1);
    // The certificate waits for roots, mail does not.
    system.wait_log(&["no certificate that serves", "install ca-certificates"]);
    let mut check = vere();
    check.arg("check-config").arg(&system.config);
    bare(&mut check);
    let output = check.output().expect("check-config runs");
    assert!(output.status.success(), "{output:?}");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let parts = [
        "mail waits wherever a certificate has to be verified",
        "no certificate can be ordered",
    ];
    assert_has(&said, &parts);
}

/// `vere queue list` ended with an empty standard error, `vere status` even with 0.
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let system = System::start(&Options::default());
    for words in [&["queue", "list"][..], &["status"]] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let mut command = vere();
        command.args(words).arg("-c").arg(&system.config);
        let output = command.stdout(full.expect("/dev/full")).output();
        let output = output.expect("the command runs");
        assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_has(&said, &["vere: standard output: No space left on device"]);
    }
}

#[test]
fn other_settings_of_acme_take_effect_at_a_reload() {
    let options = |contact: &str| {
        Options::default()
            .set("acme.directory", "\"https://localhost:1/directory\"")
            .set("acme.domains", "[\"mx.example.org\"]")
            .set("acme.listen", "[]")
            .set(
                "acme.contact",
                &format!("[\"mailto:{contact}@example.org\"]"),
            )
    };
    let system = System::start(&options("ann"));
    let orders = || system.log().matches("no certificate that serves").count();
    wait_until("an order", || orders() == 1);
    // The next order of the first settings would come after a minute.
    system.reconfigure(&options("bob"));
    wait_until("an order of the new settings", || orders() == 2);
    system.reconfigure(&options("bob"));
    system.stop();
}

#[test]
fn a_service_manager_is_told_of_readiness_reload_and_stop() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(PATIENCE)).expect("a time");
    let hears = |wanted: &str| {
        let mut heard = String::new();
        while !heard.lines().any(|line| line == wanted) {
            let mut octets = [0; 4096];
            let length = manager
                .recv(&mut octets)
                .unwrap_or_else(|error| panic!("{wanted} is not said: {error}; heard {heard}"));
            heard.push_str(&String::from_utf8_lossy(&octets[..length]));
            heard.push('\n');
        }
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let system = System::start_as(directory, &Options::default(), |command, _| {
        command.env("NOTIFY_SOCKET", &path);
        command.env("WATCHDOG_USEC", "1000000");
    });
    hears("READY=1");
    hears("WATCHDOG=1");
    hears("WATCHDOG=1");
    system.reload();
    hears("RELOADING=1");
    hears("READY=1");
    system.signal(Signal::SIGTERM);
    hears("STOPPING=1");
    system.wait_end();
}

#[test]
fn root_is_given_up_for_the_user_of_the_settings() {
    if !geteuid().is_root() {
        return skip("giving root up", "only root has it");
    }
    let Ok(Some(nobody)) = User::from_name("nobody") else {
        return skip("giving root up", "there is no user nobody");
    };
    let may_run = Command::new("setpriv")
        .args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"])
        .arg(env!("CARGO_BIN_EXE_vere"))
        .arg("--version")
        .output();
    if !may_run.is_ok_and(|output| output.status.success()) {
        return skip("giving root up", "nobody may not run what was built here");
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), mode).expect("its mode");
    let system = System::start_in(directory, &Options::default().set_top("user", "\"nobody\""));
    for role in ["gateway", "spool"] {
        let pid = system.role_pids(role)[0];
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
        let ids = |label: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(label));
            let ids = line.unwrap_or_default().split_whitespace();
            ids.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(ids("Uid:"), vec![nobody.uid.to_string(); 4], "{role}");
        assert_eq!(ids("Gid:"), vec![nobody.gid.to_string(); 4], "{role}");
    }
    system.submit("a@example.net", &["alice@example.org"], "A: b\r\n\r\n");
    system.wait_mail("alice", 1);
    // Everything goes on as that user: a restart of a role, a reload, a command of root's.
    system.kill_and_wait("gateway");
    Session::connect(system.smtp).submit_after_ehlo("alice@example.org");
    system.wait_mail("alice", 2);
    system.add_account("carol@example.org");
    Session::connect(system.smtp).submit_after_ehlo("carol@example.org");
    system.wait_mail("carol", 1);
    system.wait_empty();
}

/// A demo system as `make run` starts it, in `run` below a folder.
pub(crate) struct Demo {
    process: Child,
    output: BufReader<ChildStdout>,
    banner: String,
}

impl Demo {
    pub(crate) fn start(folder: &Path, offset: u16) -> Self {
        require_bench();
        let log = folder.join("demo.log");
        let errors = std::fs::File::create(&log).expect("a log");
        let mut process = Child::spawn(
            vere()
                .args(["demo", "run", "--port-offset", &offset.to_string()])
                .current_dir(folder)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(errors),
        );
        let output = process.take_output();
        let mut demo = Self {
            process,
            output: BufReader::new(output),
            banner: String::new(),
        };
        // Printed when everything is ready; the last line says how to stop.
        while !demo.banner.contains("Ctrl-C") {
            let read = demo.output.read_line(&mut demo.banner).expect("its output");
            let log = || std::fs::read_to_string(&log).unwrap_or_default();
            assert!(read > 0, "it ended after {}{}", demo.banner, log());
        }
        demo
    }

    pub(crate) fn interrupt(mut self) {
        assert!(signal(self.process.id(), Signal::SIGINT), "it runs");
        let status = wait_for("the end of the demo", || self.process.ended());
        assert_eq!(status.code(), Some(0));
    }
}

/// Offsets are thousands apart, so that two demos share no port, and below the ports that the kernel gives to
/// connections, so that none is taken before the demo has it.
const OFFSETS: u32 = 24;

/// An offset with all ports of the demo free, for one demo of this process.
pub(crate) fn free_offset() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    wait_for("free ports for a demo", || {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let number = std::process::id().wrapping_add(number) % OFFSETS;
        let offset = 5_000 + 1_000 * u16::try_from(number).expect("a small number");
        let is_free = |port: &u16| {
            let address = SocketAddr::from(([127, 0, 0, 1], port + offset));
            TcpListener::bind(address).is_ok()
        };
        DEMO_PORTS.iter().all(is_free).then_some(offset)
    })
}

#[test]
fn the_demo_is_what_its_banner_says() {
    let Some(_) = program("swaks") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary directory");
    let offset = free_offset();
    let demo = Demo::start(folder.path(), offset);
    // The line to paste works unchanged.
    let mut lines = demo.banner.lines().map(str::trim);
    let line = lines.find(|line| line.starts_with("swaks "));
    let said = run(Command::new("sh").args(["-c", line.expect("a line to paste")]));
    let id = said
        .lines()
        .find_map(|line| line.split("queued as ").nth(1))
        .expect("a queue id");
    let imap = SocketAddr::from(([127, 0, 0, 1], 2143 + offset));
    let messages = || {
        let mut session = Imap::login(imap, "alice@demo.test", "demo");
        session.exists("INBOX")
    };
    wait_until("mail for alice", || messages() > 0);
    // Commands find the settings by themselves.
    let here = |arguments: &[&str]| run(vere().args(arguments).current_dir(folder.path()));
    wait_until("the whole trace", || {
        here(&["trace", id]).contains("delivered")
    });
    // With TLS by the demo's CA, as a user, to a remote recipient: the sink.
    run(Command::new("swaks")
        .args(["--server", &format!("127.0.0.1:{}", 2587 + offset)])
        .args(["--tls", "--tls-verify", "--tls-ca-path"])
        .arg(folder.path().join("run/ca.pem"))
        .args(["--auth", "PLAIN", "--auth-user", "bob@demo.test"])
        .args(["--auth-password", "demo", "--from", "bob@demo.test"])
        .args(["--to", "x@example.com"]));
    let sink = folder.path().join("run/sink");
    wait_for("mail in the sink", || read_all(&sink).pop());
    // The other line to paste, where curl is installed.
    if program("curl").is_some() {
        let line = demo.banner.lines().find(|line| line.contains("mta-sts."));
        let line = line.and_then(|line| line.trim().strip_prefix("web"));
        let line = line.expect("a line to paste").to_owned();
        wait_until("the policy", || {
            let mut shell = Command::new("sh");
            let output = output_of(shell.args(["-c", &line]).current_dir(folder.path()), "");
            String::from_utf8_lossy(&output.stdout).contains("mx: mx.demo.test")
        });
    }
    demo.interrupt();

    // The second start goes on with the state of the first.
    let demo = Demo::start(folder.path(), offset);
    assert!(here(&["trace", id]).contains("delivered"));
    assert_eq!((messages(), read_all(&sink).len()), (1, 1));

    // A third start at the same ports names the holder of the ports.
    let other = tempfile::tempdir().expect("a temporary directory");
    let mut third = vere();
    third.args(["demo", "run", "--port-offset", &offset.to_string()]);
    let said = fails_with(third.current_dir(other.path()), 1);
    assert!(said.contains("is taken by vere (process "), "{said}");
    demo.interrupt();
}

/// Every file below a folder, from there.
fn files_below(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(one) = folders.pop() {
        for entry in std::fs::read_dir(&one).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let relative = path.strip_prefix(folder).expect("below it");
                    found.insert(relative.to_owned());
                }
            }
        }
    }
    found
}

#[test]
fn what_is_installed_can_be_taken_away_again() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    require_bench();
    let vere = env!("CARGO_BIN_EXE_vere");
    let make = |target: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let mut command = Command::new("make");
        command
            .arg("-C")
            .arg(root)
            .args(["--no-print-directory", target, "PREFIX=/opt/vere"])
            .arg(format!("PROGRAM={vere}"))
            .arg(format!("BENCH_PROGRAM={vere}-bench"))
            .arg(format!("DESTDIR={}", folder.path().display()));
        let made = output_of(&mut command, "");
        assert!(made.status.success(), "{made:?}");
    };
    make("install");
    make("install-bench");
    let below = folder.path().join("opt/vere");
    let there = files_below(&below);
    for file in [
        "bin/vere",
        "bin/vere-bench",
        "share/man/man1/vere-bench.1",
        "share/man/man1/vere-bench-gateway.1",
        "share/zsh/vendor-completions/_vere-bench",
        "share/man/man1/vere.1",
        "share/man/man1/vere-queue-hold.1",
        "share/man/man5/vere.toml.5",
        "share/man/man8/mount.verefs.8",
        "sbin/mount.verefs",
        "share/bash-completion/completions/vere",
        "share/doc/vere/operate.md",
        "lib/systemd/system/vere-imaps.socket",
    ] {
        assert!(there.contains(Path::new(file)), "{file} of {there:?}");
    }
    let unit = std::fs::read_to_string(below.join("lib/systemd/system/vere.service"));
    let unit = unit.expect("the unit");
    assert_has(&unit, &["\nExecStart=/opt/vere/bin/vere serve "]);
    make("uninstall");
    assert_eq!(files_below(folder.path()), BTreeSet::new());
}
