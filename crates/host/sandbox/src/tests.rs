//! A process does, in a sandbox, what it must not: this very test program is started again, as [`a_process`].

use std::fs::File;
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sched::CloneFlags;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::Pid;

use super::*;

/// Variables that tell [`a_process`] its layer, its deed, and the process and port that it attacks.
const LAYER: &str = "VERE_TEST_LAYER";
const DEED: &str = "VERE_TEST_DEED";
const VICTIM: &str = "VERE_TEST_VICTIM";
const PORT: &str = "VERE_TEST_PORT";
const SOCKET: &str = "VERE_TEST_SOCKET";

/// Exit codes of [`a_process`].
const DONE: i32 = 40;
const REFUSED: i32 = 41;
const NO_LAYER: i32 = 42;

/// What a process behind a sandbox wants.
const DEEDS: [&str; 17] = [
    "open",
    "create",
    "list",
    "bind",
    "connect",
    "datagram",
    "unix",
    "duplicate",
    "execute",
    "spawn",
    "thread",
    "ring",
    "signal",
    "trace",
    "unshare",
    "code",
    "memory file",
];

fn of_environment(name: &str) -> i32 {
    std::env::var(name).unwrap().parse().unwrap()
}

fn port() -> u16 {
    of_environment(PORT).try_into().unwrap()
}

fn victim() -> Pid {
    Pid::from_raw(of_environment(VICTIM))
}

fn attempt(deed: &str) -> io::Result<()> {
    match deed {
        "open" => File::open("/etc/passwd").map(drop),
        "create" => {
            let path = format!("/tmp/vere-test-{}", std::process::id());
            File::create(&path)?;
            std::fs::remove_file(path)
        }
        "list" => std::fs::read_dir("/").map(drop),
        "bind" => TcpListener::bind("127.0.0.1:0").map(drop),
        "connect" => TcpStream::connect(("127.0.0.1", port())).map(drop),
        "datagram" => UdpSocket::bind("127.0.0.1:0").map(drop),
        "unix" => UnixStream::pair().map(drop),
        "local socket" => UnixStream::connect(std::env::var_os(SOCKET).unwrap()).map(drop),
        "datagrams" => UnixDatagram::pair().map(drop),
        "duplicate" => io::stdin().as_fd().try_clone_to_owned().map(drop),
        "execute" => Err(Command::new("/bin/sh").args(["-c", "exit 40"]).exec()),
        "spawn" => Command::new("/bin/true").status().map(drop),
        "thread" => std::thread::Builder::new().spawn(|| ()).map(drop),
        "ring" => io_uring::IoUring::new(1).map(drop),
        "signal" => Ok(kill(victim(), Signal::SIGURG)?),
        "trace" => Ok(ptrace::attach(victim())?),
        "unshare" => Ok(nix::sched::unshare(CloneFlags::CLONE_FS)?),
        "code" => memmap2::MmapMut::map_anon(4096)?.make_exec().map(drop),
        "memory file" => Ok(memfd_create(c"vere", MFdFlags::empty()).map(drop)?),
        "name memory" => {
            let memory = vec![0_u8; 4_096];
            let place = std::ptr::NonNull::from(memory.as_slice()).cast();
            let length = std::num::NonZeroUsize::new(memory.len()).unwrap();
            Ok(prctl::set_vma_anon_name(place, length, Some(c"vere"))?)
        }
        "socket error" => Ok(getsockopt(&io::stdin(), sockopt::SocketError).map(drop)?),
        "option of TCP" => Ok(getsockopt(&io::stdin(), sockopt::TcpNoDelay).map(drop)?),
        "change itself" => Ok(prctl::set_dumpable(true)?),
        other => panic!("no deed {other}"),
    }
}

/// Enters one layer, or all.
fn enter(layer: &str) -> Standing {
    let sandbox = Sandbox {
        files: 0,
        calls: &[calls::ORDINARY, calls::STREAM, calls::EVENTS],
        refused: calls::LOOKING,
    };
    let mut standing = Standing::default();
    match layer {
        "none" => (),
        "limits" => standing.note(Layer::Limits, sandbox.limit()),
        "user" => standing.note(Layer::User, user::become_nobody()),
        "rights" => rights::give_up(&mut standing, &[]),
        "calls" => standing.note(Layer::Calls, filter::load(sandbox.calls, sandbox.refused)),
        "all" => standing = sandbox.enter(),
        "server" => standing = serve(),
        other => panic!("no layer {other}"),
    }
    standing
}

/// Gives up what a server of strangers gives up, with pairs of sockets.
fn serve() -> Standing {
    let service = Service {
        readable: &[],
        calls: &[
            calls::ORDINARY,
            calls::STREAM,
            calls::EVENTS,
            calls::FILES,
            calls::THREADS,
            calls::SERVER,
            calls::PAIRS,
        ],
        refused: calls::NUMA,
    };
    let mut standing = service.give_up();
    service.close(&mut standing);
    standing
}

/// Is no test by itself: other tests start it.
#[test]
fn a_process() {
    let (Ok(layer), Ok(deed)) = (std::env::var(LAYER), std::env::var(DEED)) else {
        return;
    };
    let standing = enter(&layer);
    writeln!(io::stderr(), "{standing}").unwrap();
    let held = match layer.as_str() {
        "none" => true,
        "limits" => standing.held.contains(Layer::Limits),
        "user" => standing.held.contains(Layer::User),
        "rights" => standing.held.contains(Layer::Scope),
        _ => standing.held.contains(Layer::Calls),
    };
    let code = match held {
        false => NO_LAYER,
        true => match attempt(&deed) {
            Ok(()) => DONE,
            Err(error) => {
                let _ = writeln!(io::stderr(), "{deed}: {error}");
                REFUSED
            }
        },
    };
    std::process::exit(code);
}

/// A process and a port to be attacked.
struct Target {
    process: Child,
    port: TcpListener,
    folder: tempfile::TempDir,
    _socket: UnixListener,
}

impl Target {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            _socket: UnixListener::bind(folder.path().join("control.sock")).unwrap(),
            folder,
            process: Command::new("sleep").arg("600").spawn().unwrap(),
            port: TcpListener::bind("127.0.0.1:0").unwrap(),
        }
    }

    fn attacked(&self, layer: &str, deed: &str) -> (ExitStatus, String) {
        let ended = Command::new("/proc/self/exe")
            .args(["--exact", "tests::a_process", "--nocapture"])
            .env(LAYER, layer)
            .env(DEED, deed)
            .env(VICTIM, self.process.id().to_string())
            .env(PORT, self.port.local_addr().unwrap().port().to_string())
            .env(SOCKET, self.folder.path().join("control.sock"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (
            ended.status,
            String::from_utf8_lossy(&ended.stderr).into_owned(),
        )
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What becomes of the deeds behind a layer; absent if this machine has no such layer.
fn behind(layer: &str) -> Option<Vec<(&'static str, ExitStatus)>> {
    let mut ends = Vec::new();
    for deed in DEEDS {
        let (status, said) = Target::new().attacked(layer, deed);
        if status.code() == Some(NO_LAYER) {
            println!("skipped: this machine has no layer \"{layer}\": {said}");
            return None;
        }
        println!("{layer}: {deed}: {status} {said}");
        ends.push((deed, status));
    }
    Some(ends)
}

fn with(
    ends: &[(&'static str, ExitStatus)],
    has: impl Fn(&ExitStatus) -> bool,
) -> Vec<&'static str> {
    let ends = ends.iter().filter(|(_, status)| has(status));
    ends.map(|(deed, _)| *deed).collect()
}

fn is_done(status: &ExitStatus) -> bool {
    status.code() == Some(DONE)
}

fn is_refused(status: &ExitStatus) -> bool {
    status.code() == Some(REFUSED)
}

fn is_killed(status: &ExitStatus) -> bool {
    status.signal() == Some(Signal::SIGSYS as i32)
}

/// What a machine refuses anyway proves nothing.
#[test]
fn without_a_sandbox_everything_succeeds() {
    let ends = behind("none").unwrap();
    let refused = with(&ends, |status| !is_done(status));
    // Another kernel or container may refuse these.
    let may = ["ring", "trace", "unshare"];
    assert!(refused.iter().all(|deed| may.contains(deed)), "{refused:?}");
}

#[test]
fn the_filter_alone_ends_a_process_that_does_anything_else() {
    let Some(ends) = behind("calls") else { return };
    assert_eq!(with(&ends, is_refused), ["open", "create", "list"]);
    let rest: Vec<_> = DEEDS
        .into_iter()
        .filter(|deed| !["open", "create", "list"].contains(deed))
        .collect();
    assert_eq!(with(&ends, is_killed), rest);
}

/// The allocator (mimalloc) names new memory, and goes on without a name. Processes with many long messages ended by the call.
#[test]
fn a_process_that_names_its_memory_goes_on() {
    let (named, said) = Target::new().attacked("calls", "name memory");
    if named.code() == Some(NO_LAYER) {
        println!("skipped: this machine has no filter of system calls: {said}");
        return;
    }
    assert!(
        is_refused(&named) && said.contains("Permission denied"),
        "{said}"
    );
    let (changed, said) = Target::new().attacked("calls", "change itself");
    assert!(is_killed(&changed), "{said}");
}

/// Options of other levels than the socket's own have the keys of a connection that the kernel encrypts.
#[test]
fn a_process_reads_the_error_of_a_socket_and_no_option_of_its_protocol() {
    let (asked, said) = Target::new().attacked("calls", "socket error");
    if asked.code() == Some(NO_LAYER) {
        println!("skipped: this machine has no filter of system calls: {said}");
        return;
    }
    // Standard input is no socket, and the kernel says so: the filter has let the call pass.
    assert!(is_refused(&asked) && said.contains("non-socket"), "{said}");
    let (read, said) = Target::new().attacked("calls", "option of TCP");
    assert!(is_killed(&read), "{said}");
}

/// A server that was taken over connected to the sockets of signer and commands, which no rule of files covers.
#[test]
fn a_server_reaches_no_socket_in_the_file_system() {
    let (free, said) = Target::new().attacked("none", "local socket");
    assert!(is_done(&free), "{said}");
    let (paired, said) = Target::new().attacked("server", "unix");
    if paired.code() == Some(NO_LAYER) {
        println!("skipped: this machine has no filter of system calls: {said}");
        return;
    }
    assert!(is_done(&paired), "{said}");
    // Datagrams may carry the address of a socket.
    for deed in ["local socket", "connect", "datagram", "datagrams"] {
        let (ended, said) = Target::new().attacked("server", deed);
        assert!(is_killed(&ended), "{deed}: {ended} {said}");
    }
}

#[test]
fn rights_alone_keep_files_ports_and_processes_away() {
    let Some(ends) = behind("rights") else { return };
    let refused = with(&ends, is_refused);
    for deed in [
        "open", "create", "list", "bind", "connect", "execute", "spawn", "signal", "trace",
    ] {
        assert!(refused.contains(&deed), "{deed}");
    }
}

#[test]
fn limits_alone_give_no_descriptor() {
    let Some(ends) = behind("limits") else { return };
    let refused = with(&ends, is_refused);
    for deed in [
        "open",
        "create",
        "list",
        "bind",
        "connect",
        "datagram",
        "unix",
        "duplicate",
    ] {
        assert!(refused.contains(&deed), "{deed}");
    }
}

#[test]
fn another_user_alone_reaches_no_process_of_root() {
    let Some(ends) = behind("user") else { return };
    let refused = with(&ends, is_refused);
    for deed in ["signal", "trace"] {
        assert!(refused.contains(&deed), "{deed}");
    }
}

#[test]
fn behind_all_layers_nothing_succeeds() {
    let Some(ends) = behind("all") else { return };
    assert_eq!(with(&ends, is_done), [""; 0]);
    // No layer stands in the way of another.
    let (_, all) = Target::new().attacked("all", "open");
    for layer in ["limits", "user", "rights", "calls"] {
        let (_, alone) = Target::new().attacked(layer, "open");
        let held = |said: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix("held: "))?;
            let names = line.split(';').next()?.replace("none", "");
            Some(names.split(", ").map(str::to_owned).collect::<Vec<_>>())
        };
        let (all, alone) = (held(&all).unwrap(), held(&alone).unwrap());
        assert!(
            alone
                .iter()
                .all(|name| name.is_empty() || all.contains(name)),
            "{alone:?}, {all:?}"
        );
    }
}

/// The reasons in the table are what a reader has.
#[test]
fn every_call_has_a_name_a_reason_and_one_entry() {
    let all = [
        calls::ORDINARY,
        calls::STREAM,
        calls::EVENTS,
        calls::LOOKING,
    ]
    .concat();
    for call in &all {
        assert!(!call.name.is_empty() && call.why.len() > 4, "{call:?}");
        // A call without a condition beside one with would not be bound by it.
        let mut same = all.iter().filter(|other| other.number == call.number);
        let is_alone = same.clone().count() == 1;
        assert!(is_alone || same.all(|one| one.only.is_some()), "{call:?}");
    }
}

#[test]
fn layers_are_a_bit_each() {
    let some: Layers = [Layer::User, Layer::Calls].into_iter().collect();
    assert_eq!(some.octet(), 0b100_0010);
    assert_eq!(Layers::of_octet(0b1100_0010), some);
    assert_eq!(some.to_string(), "user, calls");
    assert_eq!(
        some.missing().to_string(),
        "limits, privileges, files, ports, scope"
    );
    assert_eq!(Layers::default().to_string(), "none");
}

#[test]
fn a_standing_gives_the_reasons() {
    let mut standing = Standing::default();
    standing.note(Layer::Limits, Ok(()));
    assert_eq!(standing.to_string(), "held: limits");
    standing.note(Layer::User, Err(Missing::NotRoot));
    standing.note(Layer::Calls, Err(Missing::Unsupported));
    let text = "held: limits; missing: user (only root can change its user), calls (the kernel does not support it)";
    assert_eq!(standing.to_string(), text);
}
