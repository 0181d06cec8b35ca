//! The program `vere-bench`, from its command line.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking; helpers are not seen as tests by the lint"
)]

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use vere_bench::load::{self, LoadEnd, LoadOptions, LoadProgress};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vere-bench"));
    command.stdin(Stdio::null());
    command
}

/// A process that is killed when a test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a sink on a free port; returns the sink's output behind the line with the address.
fn sink(folder: &Path, faults: &[&str]) -> (Running, LoadOptions, BufReader<ChildStdout>) {
    let mut command = program();
    command.args(["sink", "--listen", "127.0.0.1:0", "--save"]);
    command.arg(folder).stdout(Stdio::piped());
    for fault in faults {
        command.args(["--fault", fault]);
    }
    let mut process = Running(command.spawn().expect("a sink"));
    let mut output = BufReader::new(process.0.stdout.take().expect("piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("its first line");
    let address = line.strip_prefix("sink: listening on ");
    let address = address.and_then(|rest| rest.split(',').next());
    let address = address.expect("an address").parse().expect("an address");
    (
        process,
        LoadOptions::new(address, LoadEnd::Count(10)),
        output,
    )
}

#[test]
fn a_sink_keeps_mail_misbehaves_and_tells_its_totals() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut process, mut options, mut output) = sink(folder.path(), &["dot=451 4.3.0 later*3"]);
    options.tolerant = true;
    let report = load::run(&options, &LoadProgress::default()).expect("a load");
    assert_eq!(report.acked.len(), 10);
    let id = i32::try_from(process.0.id()).expect("a process id");
    kill(Pid::from_raw(id), Signal::SIGTERM).expect("it runs");
    assert!(process.0.wait().expect("its end").success());
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("its last line");
    assert!(rest.contains("stopped after 10 messages"), "{rest}");
    let kept = std::fs::read_dir(folder.path()).expect("the folder");
    assert_eq!(kept.count(), 10);
}

#[test]
fn usage_errors_are_told_from_failures() {
    let output = program().args(["gateway", "--wrong"]).output();
    assert_eq!(output.expect("its end").status.code(), Some(2));
    let output = program()
        .args(["trouble", "--quick", "--vere", "/nowhere/vere"])
        .output()
        .expect("its end");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("vere-bench: "), "{said}");
}

/// Asks, and returns the first line of the reply.
fn ask(client: &mut BufReader<TcpStream>, command: &str) -> String {
    client
        .get_mut()
        .write_all(command.as_bytes())
        .expect("it is there");
    let mut line = String::new();
    while line.is_empty() || line.as_bytes().get(3) == Some(&b'-') {
        line.clear();
        client.read_line(&mut line).expect("a reply");
    }
    line
}

#[test]
fn a_responder_hands_connections_to_its_takers_which_end_with_it() {
    let port = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = port.local_addr().expect("its address");
    drop(port);
    let mut command = program();
    command.args(["responder", &address.to_string(), "--takers=2"]);
    let responder = Running(command.spawn().expect("a responder"));
    let connect = || loop {
        match TcpStream::connect(address) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::thread::yield_now(),
            connected => return BufReader::new(connected.expect("a connection")),
        }
    };
    let mut clients: Vec<_> = (0..40).map(|_| connect()).collect();
    for client in &mut clients {
        assert!(ask(client, "").starts_with("220"));
        assert!(ask(client, "EHLO a.test\r\n").starts_with("250"));
        assert!(ask(client, "MAIL FROM:<a@a.test>\r\n").starts_with("250"));
        assert!(ask(client, "RCPT TO:<nobody@front.test>\r\n").starts_with("550"));
        assert!(ask(client, "RCPT TO:<good1@front.test>\r\n").starts_with("250"));
    }
    let children = format!("/proc/{0}/task/{0}/children", responder.0.id());
    let takers = std::fs::read_to_string(children).expect("its children");
    let takers: Vec<&str> = takers.split_whitespace().collect();
    assert_eq!(takers.len(), 2);
    for client in &mut clients {
        assert!(ask(client, "QUIT\r\n").starts_with("221"));
        let mut rest = String::new();
        assert_eq!(client.read_to_string(&mut rest).expect("the end"), 0);
    }
    drop(responder);
    for taker in takers {
        let taker = format!("/proc/{taker}/cmdline");
        // A process without a parent is gone, or a zombie with an empty line.
        while std::fs::read(&taker).is_ok_and(|line| !line.is_empty()) {
            std::thread::yield_now();
        }
    }
}

/// The cache alone needs no server, and its figures depend on nothing but seeds.
#[test]
fn maps_meet_their_bars_on_every_seed() {
    let vere = env!("CARGO_BIN_EXE_vere-bench");
    let output = program()
        .args(["dnsbl", "--quick", "--only", "cache", "--json", "-"])
        .args(["--vere", vere])
        .output()
        .expect("its end");
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    let bars = rows.iter().filter(|row| !row["bar"].is_null());
    let (kept, missed): (Vec<_>, Vec<_>) = bars.partition(|row| row["ok"] == true);
    assert_eq!((kept.len(), missed), (20, Vec::new()));
    // Neighbours are of no use to addresses without locality, and no harm.
    let queries = |way: &str| {
        let name = format!("{way}: without locality: queries");
        let row = rows.iter().find(|row| row["name"] == name);
        row.and_then(|row| row["value"].as_f64()).expect("a figure")
    };
    let ratio = queries("maps") / queries("addresses");
    assert!((0.99..=1.0).contains(&ratio), "{ratio}");
}

/// The relay needs no other program: it delays as told, and lets more pass than any file system here.
#[test]
fn the_relay_of_file_systems_delays_and_does_not_slow() {
    let output = program()
        .args(["fs", "--quick", "--only", "relay", "--round-trip", "0,20"])
        .args(["--json", "-", "--vere", env!("CARGO_BIN_EXE_vere-bench")])
        .output()
        .expect("its end");
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let value = |name: &str| {
        let mut rows = json["rows"].as_array().expect("rows").iter();
        let row = rows.find(|row| row["name"] == name);
        row.and_then(|row| row["value"].as_f64()).expect("a figure")
    };
    let round_trip = value("relay: 20 ms: round trip");
    assert!((20.0..500.0).contains(&round_trip), "{round_trip}");
    assert!(value("relay: 0 ms: throughput") > 10.0);
    assert!(value("relay: 20 ms: throughput") > 10.0);
}
