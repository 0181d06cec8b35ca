//! Benchmarks with an early end: no process and no file is left, and the results so far are reported.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::harness::{
    fails_with, in_soak, output_of, require_bench, signal, vere, wait_for, wait_until, wait_within,
};

/// Longest run of a whole benchmark: each row has a system of its own, and timeouts to wait for, beside other tests.
const RUN_MAX: Duration = Duration::from_secs(600);

/// A directory open to daemons with users of their own.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), open).expect("its mode");
    folder
}

/// An mbox of some messages.
fn mail(folder: &Path) -> String {
    let message = |number: usize| {
        format!(
            "From a@b.example Thu Jan  1 00:00:00 1970\nFrom: a@b.example\nTo: c@d.example\n\
             Date: Thu, 1 Jan 1970 00:00:00 +0000\nSubject: number {number}\n\n\
             Words of every kind, number{number} among them.\n\n"
        )
    };
    let file = folder.join("mail");
    let all: String = (0..200).map(message).collect();
    fs::write(&file, all).expect("room");
    file.display().to_string()
}

/// Starts a benchmark with its files in a directory and its output elsewhere.
fn start(arguments: &[&str], data: &Path, said: &Path) -> Child {
    require_bench();
    fs::create_dir_all(data).expect("room");
    let file = fs::File::create(said).expect("room");
    vere()
        .arg("bench")
        .args(arguments)
        .arg("--dir")
        .arg(data)
        .stdin(Stdio::null())
        .stdout(file.try_clone().expect("a file"))
        .stderr(file)
        .spawn()
        .expect("a benchmark")
}

/// Processes with the directory in their command line, without one process.
fn about(data: &Path, without: u32) -> Vec<String> {
    let data = data.display().to_string();
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let found = entries.filter_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let command = fs::read(entry.path().join("cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        (id != without && command.contains(&data)).then(|| format!("{id}: {command}"))
    });
    found.collect()
}

/// Waits until the processes of a benchmark run.
fn wait_begun(child: &mut Child, data: &Path, said: &Path) {
    wait_until("something that is measured", || {
        let ended = child.try_wait().expect("a child");
        let text = || fs::read_to_string(said).unwrap_or_default();
        assert!(ended.is_none(), "it ended: {}", text());
        !about(data, child.id()).is_empty()
    });
}

fn wait_nothing_left(data: &Path) {
    wait_until("the end of all that ran", || about(data, 0).is_empty());
    wait_until("an empty folder", || {
        let mut left = fs::read_dir(data).expect("the folder");
        left.next().is_none()
    });
}

/// `vere bench` is `vere-bench`: words, options of help and exit codes included.
#[test]
fn the_words_of_a_benchmark_reach_its_program_unchanged() {
    require_bench();
    let help = output_of(vere().args(["bench", "gateway", "--help"]), "");
    let text = String::from_utf8_lossy(&help.stdout);
    assert!(text.contains("Usage: vere-bench gateway "), "{text}");
    assert!(help.status.success());
    let none = output_of(vere().arg("bench"), "");
    assert_eq!(none.status.code(), Some(2));
    let said = fails_with(vere().args(["sink", "--fault", "no rule"]), 2);
    assert!(said.contains("'no rule' for '--fault <RULE>'"), "{said}");
}

#[test]
fn a_missing_program_is_named_with_the_way_to_it() {
    let folder = folder();
    let alone = folder.path().join("vere");
    fs::copy(env!("CARGO_BIN_EXE_vere"), &alone).expect("room");
    let mut command = std::process::Command::new(&alone);
    let said = fails_with(command.args(["bench", "gateway"]).env("PATH", "/none"), 1);
    assert!(said.contains("make install-bench"), "{said}");
}

#[test]
fn nothing_is_left_of_a_benchmark_that_ends_early() {
    if !in_soak() {
        return;
    }
    let folder = folder();
    let mail = mail(folder.path());
    let said = folder.path().join("said");
    let store = ["store", "--mail", &mail, "--system", "vere,mdbox"];
    for (arguments, how) in [
        (&store[..], Signal::SIGKILL),
        (&store, Signal::SIGTERM),
        (&["gateway", "--quick"], Signal::SIGINT),
        (&["gateway", "--quick"], Signal::SIGKILL),
        (&["spool", "--quick"], Signal::SIGTERM),
    ] {
        let data = folder.path().join("data");
        let mut child = start(arguments, &data, &said);
        wait_begun(&mut child, &data, &said);
        signal(child.id(), how);
        let status = wait_for("its end", || child.try_wait().expect("a child"));
        assert!(!status.success(), "{arguments:?}");
        wait_nothing_left(&data);
    }
}

#[test]
fn what_was_measured_before_a_signal_is_told() {
    let folder = folder();
    let mail = mail(folder.path());
    let (said, data) = (folder.path().join("said"), folder.path().join("data"));
    let json = folder.path().join("json").display().to_string();
    let arguments = [
        "store",
        "--mail",
        &mail,
        "--messages",
        "100",
        "--json",
        &json,
    ];
    let arguments = [&arguments[..], &["--quick", "--system", "vere"]].concat();
    let mut child = start(&arguments, &data, &said);
    let text = || fs::read_to_string(&said).expect("what it says");
    wait_until("the first questions", || {
        let ended = child.try_wait().expect("a child");
        assert!(ended.is_none(), "it ended: {}", text());
        text().contains("vere: first SELECT")
    });
    signal(child.id(), Signal::SIGINT);
    let status = wait_for("its end", || child.try_wait().expect("a child"));
    assert_eq!(status.code(), Some(1), "{}", text());
    wait_nothing_left(&data);
    assert!(
        text().contains("INCOMPLETE: store, 100 messages"),
        "{}",
        text()
    );
    let json = fs::read_to_string(json).expect("the figures");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["complete"], false);
    let rows = json["rows"].as_array().expect("rows");
    let filled = rows.iter().find(|row| row["name"] == "vere: filled");
    assert!(
        filled.is_some_and(|row| row["value"].as_f64() > Some(0.0)),
        "{json}"
    );
}

/// Runs a small benchmark of trouble; returns its output and its figures.
fn trouble(arguments: &[&str]) -> (String, serde_json::Value) {
    let folder = folder();
    let (said, data) = (folder.path().join("said"), folder.path().join("data"));
    let json = folder.path().join("json").display().to_string();
    let common = ["trouble", "--quick", "--connections", "20", "--json", &json];
    let mut child = start(&[&common[..], arguments].concat(), &data, &said);
    let status = wait_within(RUN_MAX, "its end", || child.try_wait().expect("a child"));
    let text = fs::read_to_string(&said).expect("what it says");
    assert!(status.success(), "{text}");
    wait_nothing_left(&data);
    let json = fs::read_to_string(json).expect("the figures");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["bench"], "trouble");
    (text, json)
}

fn value_of(json: &serde_json::Value, name: &str) -> f64 {
    let mut rows = json["rows"].as_array().expect("rows").iter();
    let row = rows.find(|row| row["name"] == name);
    row.and_then(|row| row["value"].as_f64())
        .unwrap_or_else(|| panic!("no {name} in {json}"))
}

/// Judged mail beside a small crowd: failing filters, silent name servers, a flooded quarantine. No acknowledged message is missing, and no honest client is refused.
#[test]
fn judged_mail_goes_on_beside_failing_filters_and_senders() {
    let kinds = "names-silent,filter-hangs,filter-rubbish,filter-drips,quarantine";
    let (text, json) = trouble(&["--only", kinds]);
    let value = |name: &str| value_of(&json, name);
    for kind in [
        "senders with silent name servers",
        "filter that hangs",
        "filter that answers nonsense",
        "filter that drips",
        "quarantine flooded",
    ] {
        let is_none = |name: &str| value(&format!("{kind}: {name}")).abs() < 0.5;
        assert!(is_none("missing"), "{text}");
        assert!(is_none("honest clients refused"), "{text}");
        assert!(value(&format!("{kind}: greeting to 250 p99")) > 0.0);
        assert!(value(&format!("{kind}: acknowledged")) > 100.0, "{text}");
        if kind.starts_with("filter") {
            let back = value(&format!("{kind}: filter asked again"));
            assert!(back < 25.0, "{text}");
        }
    }
    let kept = value("quarantine flooded: in the quarantine");
    assert!((1.0..15.0).contains(&kept), "{text}");
}

/// A small crowd of every other kind: each bar has its row, and no process is left.
#[test]
fn clients_that_do_nothing_are_measured_beside_honest_ones() {
    let kinds = "data,append,fetch,idle,silent,unread,half,tls,dns-silent,dns-flood,x400-silent,x400-parked";
    let (text, json) = trouble(&["--only", kinds]);
    let value = |name: &str| value_of(&json, name);
    for kind in [
        "SMTP body parked",
        "APPEND parked",
        "FETCH not read",
        "IDLE",
        "half a command",
        "TLS handshake not finished",
        "X.400 without a bind",
        "X.400 unit parked",
    ] {
        assert!(
            value(&format!("{kind}: held")) + value(&format!("{kind}: ended by the server"))
                >= 20.0,
            "{text}"
        );
        assert!(value(&format!("{kind}: memory of all roles")) > 0.0);
        assert!(value(&format!("{kind}: greeting to 250 p99")) > 0.0);
        assert!(
            (value(&format!("{kind}: honest clients refused"))).abs() < 0.5,
            "{text}"
        );
    }
}

/// The smallest run of the front's benchmark: each row has the figures of the gateway, and no process is left.
#[test]
fn sessions_without_mail_are_measured_beside_good_mail() {
    let folder = folder();
    let (said, data) = (folder.path().join("said"), folder.path().join("data"));
    let json = folder.path().join("json").display().to_string();
    let arguments = [
        &["front", "--quick", "--seconds", "0.1", "--connections"][..],
        &["20", "--system", "gateway,responder", "--json", &json],
    ]
    .concat();
    let mut child = start(&arguments, &data, &said);
    let status = wait_within(RUN_MAX, "its end", || child.try_wait().expect("a child"));
    let text = fs::read_to_string(&said).expect("what it says");
    assert!(status.success(), "{text}");
    wait_nothing_left(&data);
    let json = fs::read_to_string(json).expect("the figures");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["bench"], "front");
    let rows = json["rows"].as_array().expect("rows");
    let value = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name);
        row.and_then(|row| row["value"].as_f64())
            .unwrap_or_else(|| panic!("no {name} in {json}: {text}"))
    };
    for name in [
        "gateway: bounced: CPU",
        "gateway: bounced: context switches",
        "gateway: bounced: CPU, beside responder",
        "gateway: closed after EHLO: CPU",
        "gateway: closed after the greeting: CPU",
        "gateway: trusted: CPU",
        "gateway: capacity",
        "gateway: bounces 0.95: delivered",
        "gateway: closed loop, bounces 0.95: good mail",
        "gateway: accepted: CPU",
        "gateway: combined: CPU",
        "gateway: open: memory",
        "gateway: open: next greeting p99",
    ] {
        assert!(value(name) > 0.0, "{name}: {text}");
    }
    for system in ["gateway", "responder"] {
        let held = value(&format!("{system}: open: held"));
        assert!((held - 20.0).abs() < 0.5, "{text}");
    }
}
