//! Backups at a silent, stopping, broken or busy S3 server: a real server behind a proxy with faults.
//!
//! Each command ends within a bound, with place and object in the error, and a later backup is whole.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::backup_repair::{free_port, moto};
use crate::harness::{Child, Options, System, assert_has, fails_with, output_of, run, vere};
use crate::imap::{Imap, start_with_store};

const PLACE: &str = "s3://bucket/some/place";
/// What a failing command may take, with `VERE_BACKUP_TIMEOUT` of a second: four seconds of attempts, the last of them, and
/// the command itself on a busy machine.
const BOUND: Duration = Duration::from_secs(40);

/// What happens to requests for objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The request is not even read, and the connection stays open.
    Silent,
    /// Half of the answer, and nothing more.
    Stopped,
    /// The end of the connection in the middle of the request.
    Torn,
    /// 503, instead of an answer.
    Busy,
}

/// The fault, the method of requests concerned, and the number of requests left.
type Plan = Arc<Mutex<Option<(Fault, &'static str, usize)>>>;

/// A proxy in front of the server.
struct Proxy {
    address: SocketAddr,
    plan: Plan,
    _server: Child,
}

impl Proxy {
    /// `None` where no server is installed.
    fn start() -> Option<Self> {
        let server = free_port();
        let running = moto(server)?;
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let plan = Plan::default();
        let shared = Arc::clone(&plan);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, plan) = (stream.expect("a connection"), Arc::clone(&shared));
                thread::spawn(move || pass(stream, server, &plan));
            }
        });
        Some(Self {
            address,
            plan,
            _server: running,
        })
    }

    fn fail(&self, fault: Fault, method: &'static str, count: usize) {
        *self.plan.lock().expect("it") = Some((fault, method, count));
    }

    fn heal(&self) {
        *self.plan.lock().expect("it") = None;
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = vere();
        command.args(arguments);
        command
            .env("AWS_ENDPOINT_URL", format!("http://{}", self.address))
            .env("AWS_ACCESS_KEY_ID", "id")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("VERE_BACKUP_TIMEOUT", "1s");
        command
    }

    fn backup(&self, system: &System) -> Command {
        let mut command = self.command(&["backup", "--quiet", PLACE, "-c"]);
        command.arg(&system.config);
        command
    }

    /// The backups at the place.
    fn count(&self) -> usize {
        let text = run(&mut self.command(&["backup", "list", "--json", PLACE]));
        let rows: Vec<serde_json::Value> = serde_json::from_str(&text).expect("an array");
        rows.len()
    }
}

/// The fault of a request, if it is one of those.
fn fault_of(line: &str, plan: &Plan) -> Option<Fault> {
    let mut plan = plan.lock().expect("it");
    let (fault, method, left) = plan.as_mut()?;
    let concerned = line.starts_with(*method) && line.contains("/objects/") && *left > 0;
    concerned.then(|| {
        *left -= 1;
        *fault
    })
}

/// Passes one request on. The server ends its connection behind the answer, and so does this.
fn pass(stream: TcpStream, server: SocketAddr, plan: &Plan) {
    let mut reader = BufReader::new(stream);
    let (mut line, mut head, mut length) = (String::new(), String::new(), 0);
    if !reader.read_line(&mut line).is_ok_and(|count| count > 0) {
        return;
    }
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).expect("a header");
        let lower = header.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        match header.trim().is_empty() {
            true => break,
            false if lower.starts_with("connection:") => {}
            false => head += &header,
        }
    }
    let fault = fault_of(&line, plan);
    if fault == Some(Fault::Silent) {
        // The client's patience ends, not the server's.
        thread::sleep(BOUND);
        return;
    }
    let mut body = vec![0; length];
    if fault == Some(Fault::Torn) {
        let _ = reader.read_exact(&mut body[..length / 2]);
        return;
    }
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let mut stream = reader.into_inner();
    if fault == Some(Fault::Busy) {
        let text = "<Error><Code>SlowDown</Code></Error>";
        let length = text.len();
        let answer = format!(
            "HTTP/1.1 503 Slow Down\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{text}"
        );
        let _ = stream.write_all(answer.as_bytes());
        return;
    }
    let mut upstream = TcpStream::connect(server).expect("the server");
    let request = format!("{line}{head}Connection: close\r\n\r\n");
    upstream.write_all(request.as_bytes()).expect("a request");
    upstream.write_all(&body).expect("a request");
    let mut answer = Vec::new();
    let _ = upstream.read_to_end(&mut answer);
    if fault == Some(Fault::Stopped) {
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let half = end.map_or(0, |end| (end + 4 + answer.len()) / 2);
        let _ = stream.write_all(&answer[..half]);
        thread::sleep(BOUND);
        return;
    }
    let _ = stream.write_all(&answer);
}

/// A system with a message.
fn system() -> System {
    let (system, ports) = start_with_store(Options::default());
    let text = format!("Subject: n1\r\n\r\n{}\r\n", "abc ".repeat(9_000));
    Imap::login(ports.imap, "alice@example.org", "secret").append("INBOX", &text);
    system
}

/// The error of a command that has to end within the bound.
fn fails(command: &mut Command) -> String {
    let began = Instant::now();
    let said = fails_with(command, 1);
    assert!(began.elapsed() < BOUND, "{:?}: {said}", began.elapsed());
    said
}

fn is_whole(proxy: &Proxy) {
    let said = run(&mut proxy.command(&["backup", "verify", "--quiet", PLACE]));
    assert_has(
        &said,
        &["1 message of 1 account checked", "nothing is wrong"],
    );
}

#[test]
fn a_backup_at_a_silent_server_fails_in_time_and_the_next_one_is_whole() {
    let Some(proxy) = Proxy::start() else {
        return;
    };
    let system = system();
    proxy.fail(Fault::Silent, "PUT", usize::MAX);
    let said = fails(&mut proxy.backup(&system));
    let object = format!("{PLACE}/objects/");
    assert_has(
        &said,
        &[&object, "expected an answer within 1s; found none"],
    );
    proxy.heal();
    assert_eq!(proxy.count(), 0);
    assert_has(&run(&mut proxy.backup(&system)), &["backup 1 of "]);
    is_whole(&proxy);
}

#[test]
fn an_upload_that_breaks_off_is_no_object_and_a_busy_server_is_asked_again() {
    let Some(proxy) = Proxy::start() else {
        return;
    };
    let system = system();
    proxy.fail(Fault::Torn, "PUT", usize::MAX);
    let said = fails(&mut proxy.backup(&system));
    assert_has(&said, &[&format!("{PLACE}/objects/"), "retries"]);
    assert_eq!(proxy.count(), 0);
    proxy.fail(Fault::Busy, "PUT", 3);
    assert_has(&run(&mut proxy.backup(&system)), &["backup 1 of "]);
    is_whole(&proxy);
    assert_eq!(proxy.count(), 1);
}

#[test]
fn a_verification_and_a_restore_end_when_answers_stop_in_the_middle() {
    let Some(proxy) = Proxy::start() else {
        return;
    };
    let system = system();
    run(&mut proxy.backup(&system));
    proxy.fail(Fault::Stopped, "GET", usize::MAX);
    let began = Instant::now();
    let output = output_of(&mut proxy.command(&["backup", "verify", "-q", PLACE]), "");
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    assert_eq!(output.status.code(), Some(3));
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    let object = format!("{PLACE}/objects/");
    assert_has(
        &found,
        &[
            &object,
            "expected a whole answer",
            "the remaining objects were not read",
        ],
    );
    // Damage would be stored again by the next backup: silence is none.
    assert!(!found.contains("damaged"), "{found}");
    let to = system.directory.path().join("restored");
    let to = to.display().to_string();
    let said = fails(&mut proxy.command(&["restore", "-q", PLACE, "--to", &to]));
    assert_has(&said, &[&object, "expected a whole answer"]);
    proxy.heal();
    is_whole(&proxy);
    // The same command goes on in the directory that was left.
    let said = run(&mut proxy.command(&["restore", "-q", PLACE, "--to", &to]));
    assert_has(&said, &["restored into"]);
}
