//! The log at a collector of OpenTelemetry, by OTLP/HTTP: what arrives has the form of the standard, and a collector that holds still holds
//! nothing else up.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{
    Child, Hook, Options, Session, System, answer, free_address, output_of, program, skip,
    wait_until,
};

/// The body of a request to `/v1/logs`.
fn request(stream: TcpStream) -> Option<(BufReader<TcpStream>, String)> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let from = head.len();
        // The end of the system ends a connection without a request.
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        if let Some(value) = head[from..].strip_prefix("content-length: ") {
            length = value.trim().parse().expect("a number");
        }
    }
    assert!(head.starts_with("POST /v1/logs HTTP/1.1\r\n"), "{head}");
    assert!(
        head.contains("content-type: application/json\r\n"),
        "{head}"
    );
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    Some((reader, String::from_utf8(body).expect("text")))
}

/// A collector that takes everything, and the bodies.
fn collector() -> (Hook, Receiver<String>) {
    let (hand, bodies) = channel();
    let hook = Hook::start(move |stream| {
        if let Some((mut reader, body)) = request(stream) {
            let done = answer("200 OK");
            // The receiver may be gone at the end of the test.
            let _ = reader.get_mut().write_all(done.as_bytes());
            let _ = hand.send(body);
        }
    });
    (hook, bodies)
}

/// The role and the record of each record of a body.
fn records(body: &str) -> Vec<(String, Value)> {
    let body: Value = serde_json::from_str(body).expect("JSON");
    let mut all = Vec::new();
    for resource in body["resourceLogs"].as_array().expect("a list") {
        let attributes = resource["resource"]["attributes"]
            .as_array()
            .expect("a list");
        let role = attributes.iter().find(|one| one["key"] == "vere.role");
        let role = role.expect("a role")["value"]["stringValue"].as_str();
        let records = resource["scopeLogs"][0]["logRecords"].as_array();
        for record in records.expect("a list") {
            all.push((role.expect("a text").to_owned(), record.clone()));
        }
    }
    all
}

/// The value of an attribute as a text.
fn attribute(record: &Value, name: &str) -> Option<String> {
    let attributes = record["attributes"].as_array().expect("a list");
    let found = attributes.iter().find(|one| one["key"] == name)?;
    Some(found["value"]["stringValue"].as_str()?.to_owned())
}

/// The official definitions read a body: fields without a place in them are errors.
const READ: &str = "\
import sys
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
request = json_format.Parse(sys.stdin.read(), ExportLogsServiceRequest())
for resource in request.resource_logs:
    names = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert names['service.name'] == 'veredarius' and names['host.name'], names
    for scope in resource.scope_logs:
        for record in scope.log_records:
            assert record.time_unix_nano > 10**18 and record.severity_number in (1, 5, 9, 13, 17), record
            assert record.body.string_value, record
            print(names['vere.role'], record.body.string_value)
";

fn read_by_the_standard(bodies: &[String]) {
    let Some(_) = program("python3") else { return };
    let tools = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../target/test-tools/python"
    );
    let path = std::env::var("VERE_PYTHONPATH").unwrap_or_else(|_| tools.to_owned());
    let python = || {
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", &path);
        python
    };
    let has = output_of(python().args(["-c", "import opentelemetry.proto"]), "");
    if !has.status.success() {
        skip(
            "otlp",
            "scripts/install-test-tools.sh installs opentelemetry-proto",
        );
        return;
    }
    for body in bodies {
        let read = output_of(python().args(["-c", READ]), body);
        assert!(read.status.success(), "{read:?}");
        let text = String::from_utf8_lossy(&read.stdout).into_owned();
        assert_eq!(text.lines().count(), records(body).len(), "{text}");
    }
}

/// A collector behind an address, printing every record; absent where no collector is built.
fn official_collector(folder: &Path, address: SocketAddr) -> Option<Child> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/test-tools");
    let built = tools.join("bin/otelcol");
    if !built.is_file() {
        skip("otlp", "scripts/build-otelcol.sh builds the collector");
        return None;
    }
    let settings = format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: \"{address}\"}}}}}}}}\n\
         exporters: {{debug: {{verbosity: detailed}}}}\n\
         service:\n  telemetry: {{metrics: {{level: none}}}}\n  \
         pipelines: {{logs: {{receivers: [otlp], exporters: [debug]}}}}\n"
    );
    fs::write(folder.join("settings.yaml"), settings).expect("room");
    let mut command = Command::new(built);
    command.arg("--config").arg(folder.join("settings.yaml"));
    let log = fs::File::create(folder.join("log")).expect("room");
    let log = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    let collector = Child::spawn(log);
    wait_until("the collector", || TcpStream::connect(address).is_ok());
    Some(collector)
}

#[test]
fn the_official_collector_takes_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_address();
    let Some(_collector) = official_collector(folder.path(), address) else {
        return;
    };
    let system =
        System::start(&Options::default().set("log.otlp", &format!("\"http://{address}\"")));
    let id = system.submit_about("a@example.net", &["alice@example.org"], "one");
    let log = || fs::read_to_string(folder.path().join("log")).expect("a log");
    wait_until("the records of the message", || {
        log().contains(&format!("-> queue_id: Str({id})"))
    });
    let log = log();
    for part in [
        "-> service.name: Str(veredarius)",
        "-> vere.role: Str(gateway)",
        "SeverityNumber: Info(9)",
    ] {
        assert!(log.contains(part), "{part} in {log}");
    }
}

#[test]
fn the_log_of_all_processes_arrives_at_a_collector() {
    let (hook, bodies) = collector();
    let options = Options::default().set("log.otlp", &format!("\"http://{}\"", hook.address));
    let system = System::start(&options);
    let mut session = Session::greeted(system.smtp);
    let id = session.submit(
        "a@example.net",
        &["alice@example.org"],
        "Subject: x\r\n\r\nbody",
    );
    let mut seen = Vec::new();
    let until = Instant::now() + Duration::from_secs(60);
    let is_there = |seen: &[String]| {
        let all: Vec<_> = seen.iter().flat_map(|body| records(body)).collect();
        let accepted = all.iter().any(|(role, record)| {
            role == "gateway"
                && record["body"]["stringValue"] == "accepted"
                && record["severityNumber"] == 9
                && attribute(record, "queue_id").as_deref() == Some(&id)
        });
        accepted
            && ["supervisor", "spool-a"]
                .iter()
                .all(|own| all.iter().any(|(role, _)| role == own))
    };
    while !is_there(&seen) {
        let left = until.saturating_duration_since(Instant::now());
        seen.push(bodies.recv_timeout(left).expect("a request in time"));
    }
    // The usual output has the lines as well.
    system.wait_log(&[&id, "accepted"]);
    drop(session);
    drop(system);
    read_by_the_standard(&seen);
}

/// The collector reads nothing and answers nothing.
#[test]
fn a_collector_that_holds_still_holds_no_mail_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let options = Options::default().set("log.otlp", &format!("\"http://{address}\""));
    let system = System::start(&options);
    let mut session = Session::greeted(system.smtp);
    let begun = Instant::now();
    for _ in 0..100 {
        session.submit(
            "a@example.net",
            &["alice@example.org"],
            "Subject: x\r\n\r\nbody",
        );
    }
    // A wait for the collector would take ten seconds each.
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
    system.wait_log(&[
        "records of the log are not at the collector",
        "no answer within 10 s",
    ]);
}
