//! The commands of people and scripts for a running system.

use serde_json::Value;

use crate::harness::{
    Options, Session, Sink, System, assert_has, fails_with, free_address, output_of, run, vere,
    wait_for, wait_until,
};
use crate::imap::{Imap, start_with_store};

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

#[test]
fn queues_and_their_messages_are_listed() {
    let address = free_address();
    let system = System::start(&Options::to(address));
    assert_eq!(system.command(&["queue", "list"]), "no queues\n");
    let id = system.submit_about(
        "alice@example.org",
        &["x@example.com", "y@example.com"],
        "one",
    );
    wait_until("a failed attempt", || {
        let queues = system.queues();
        queues
            .iter()
            .any(|queue| queue["last_reply"].is_string() && queue["deferred"] == 1)
    });
    let queues = system.queues();
    assert_eq!(queues.len(), 1, "{queues:?}");
    assert_eq!(queues[0]["messages"], 1);
    assert_eq!(queues[0]["deferred"], 1);
    let destination = queues[0]["destination"].as_str().expect("a destination");
    assert!(destination.contains(&address.to_string()), "{destination}");
    let text = system.command(&["queue", "list"]);
    assert!(
        text.lines()
            .next()
            .is_some_and(|line| line.starts_with("DESTINATION")),
        "{text}"
    );
    assert!(text.contains(destination), "{text}");

    // An attempt that ends between the two answers changes the second one.
    let shown = wait_for("the same answer by destination and by id", || {
        let by_destination = system.json(&["queue", "show", destination]);
        let by_id = system.json(&["queue", "show", &id]);
        (by_destination == by_id).then_some(by_id)
    });
    assert_eq!(shown.as_array().map(Vec::len), Some(1), "{shown}");
    assert_eq!(shown[0]["id"], id.as_str());
    assert_eq!(shown[0]["reverse_path"], "alice@example.org");
    let recipients = ["x@example.com", "y@example.com"];
    assert_eq!(shown[0]["recipients"], Value::from(recipients.to_vec()));
    assert_eq!(shown[0]["state"], "deferred");
    let behind = system.command(&["queue", "show", destination, "--after", &id]);
    assert_eq!(behind, "no messages\n");
    let said = system.refused(&["queue", "show", "0000000000001"]);
    assert_has(&said, &["no message 0000000000001 is queued"]);
    let text = system.command(&["queue", "show", destination]);
    let says_when = ["1 attempt, next", "attempts, next"].map(|said| text.contains(said));
    assert!(text.contains(&id) && says_when.contains(&true), "{text}");
    let said = system.refused(&["queue", "show", "nowhere.example"]);
    assert!(said.contains("no queue nowhere.example"), "{said}");

    let sink = Sink::start_at(address, &[]);
    sink.wait_mail(1);
    system.wait_empty();
}

#[test]
fn a_trace_is_found_by_every_name_of_its_message() {
    let system = System::start(&Options::default());
    let id = system.submit(
        "me@example.net",
        &["alice@example.org"],
        "Message-ID: <traced@example.net>\r\n\r\nbody",
    );
    system.wait_mail("alice", 1);
    for wanted in [
        id.as_str(),
        &id.to_lowercase(),
        "<traced@example.net>",
        "traced@example.net",
        "alice@example.org",
        "ALICE@Example.ORG",
    ] {
        let traces = wait_for(&format!("the whole trace of {wanted}"), || {
            let traces = system.json(&["trace", wanted]);
            let events = traces[0]["events"].as_array()?.len();
            (events >= 3).then_some(traces)
        });
        assert_eq!(traces.as_array().map(Vec::len), Some(1), "{traces}");
        assert_eq!(traces[0]["id"], id.as_str(), "{traces}");
    }
    // The message is kept while the system does not run.
    let said = system.refused(&["trace", "0000000000000"]);
    assert!(said.contains("0000000000000"), "{said}");
    let text = system.command(&["trace", &id]);
    let first = text.lines().nth(1).unwrap_or_default();
    assert!(
        first.contains("received") && first.contains("<me@example.net>"),
        "{text}"
    );
}

#[test]
fn what_needs_a_running_system_says_that_there_is_none() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = Options::write_smallest(directory.path(), "");
    let mut list = vere();
    let output = output_of(list.args(["queue", "list", "-c"]).arg(&config), "");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no gateway is running"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_configuration_is_checked_with_lines_and_nearest_names() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = Options::write_smallest(directory.path(), "");
    run(vere().arg("check-config").arg(&config));
    let report = parse(&run(vere().args(["check-config", "--json"]).arg(&config)));
    assert_eq!(report["ok"], true);

    let wrong = "[smtp]\nlisen = []\n[limits]\nrecipients_max = 1\n";
    Options::write_smallest(directory.path(), wrong);
    let mut check = vere();
    let output = output_of(check.arg("check-config").arg(&config), "");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_has(
        &said,
        &["vere.toml:5", "nearest known one is listen", "vere.toml:7"],
    );
    let mut check = vere();
    let output = output_of(check.args(["check-config", "--json"]).arg(&config), "");
    assert_eq!(output.status.code(), Some(1));
    let report = parse(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(report["ok"], false);
    assert_eq!(report["errors"][0]["line"], 5, "{report}");

    // The same words at the start of the system.
    let mut serve = vere();
    let said = fails_with(serve.arg("serve").arg("-c").arg(&config), 1);
    assert!(said.contains("vere.toml:5"), "{said}");
}

#[test]
fn wrong_arguments_are_told_apart_from_failures() {
    for arguments in [
        ["queue", "wibble"].as_slice(),
        &["--wibble"],
        &["trace"],
        &[],
    ] {
        fails_with(vere().args(arguments), 2);
    }
    for arguments in [["--help"], ["--version"]] {
        let text = run(vere().args(arguments));
        assert!(text.contains("vere"), "{text}");
    }
}

#[test]
fn domains_and_accounts_are_managed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = Options::write_smallest(directory.path(), "");
    let ok = |arguments: &[&str]| run(vere().args(arguments).arg("-c").arg(&config));
    let fails = |arguments: &[&str]| fails_with(vere().args(arguments).arg("-c").arg(&config), 1);
    let said = fails(&["account", "add", "carol@example.net"]);
    assert!(said.contains("example.net"), "{said}");
    ok(&["domain", "add", "example.net"]);
    // What stands on standard input is neither taken for a password nor ignored.
    let untold = |command: &str| {
        let mut account = vere();
        account.args(["account", command, "carol@example.net", "-c"]);
        let output = output_of(account.arg(&config), "newpw\n");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("--password-stdin, --generate"), "{said}");
    };
    untold("add");
    let add = [
        "account",
        "add",
        "carol@example.net",
        "--generate",
        "--json",
    ];
    let added = parse(&ok(&add));
    assert_eq!(added["account"], "carol@example.net");
    let password = added["password"].as_str().expect("a generated password");
    assert!(password.len() >= 12, "{password}");
    untold("passwd");
    fails(&["account", "add", "carol@example.net"]);
    fails(&["account", "add", "no address"]);
    fails(&["account", "add", "../x@example.net"]);
    let listed = parse(&ok(&["account", "list", "--json"]));
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed[0]["account"], "carol@example.net");
    let domains = parse(&ok(&["domain", "list", "--json"]));
    assert_eq!(domains.as_array().map(Vec::len), Some(1), "{domains}");
    ok(&["account", "del", "carol@example.net"]);
    fails(&["account", "del", "carol@example.net"]);
}

#[test]
fn the_reference_is_that_of_the_documentation() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference");
    let pages: [(&str, &[&str]); 2] = [("config.md", &[]), ("volume.md", &["--volume"])];
    for (name, of) in pages {
        let printed = run(vere().args(["config", "reference"]).args(of));
        let file = std::path::Path::new(folder).join(name);
        let kept = std::fs::read_to_string(file).expect("the reference");
        assert!(printed == kept, "{name} differs from vere config reference");
    }
}

#[test]
fn an_interrupt_ends_the_system_cleanly() {
    let system = System::start(&Options::default());
    let status = system.end_by(nix::sys::signal::Signal::SIGINT);
    assert_eq!(status.code(), Some(0));
}

/// Whatever clients are in the middle of.
#[test]
fn a_stop_ends_sessions_of_every_kind_cleanly() {
    let (system, ports) = start_with_store(Options::default());
    let idle = Session::connect(system.smtp);
    let mut user = Session::greeted(system.submission);
    user.log_in("alice@example.org");
    let mut half = Session::greeted(system.smtp);
    half.envelope("a@example.net", &["alice@example.org"]);
    half.send(b"Subject: half\r\n");
    let lmtp = Session::lmtp(ports.lmtp);
    let mut waits = Imap::login(ports.imap, "alice@example.org", "secret");
    waits.ok("SELECT INBOX");
    waits.send("i IDLE\r\n");
    let mut appends = Imap::login(ports.imap, "bob@example.org", "secret");
    appends.send("a APPEND INBOX {1000}\r\nSubject: half\r\n");
    system.stop();
    drop((idle, user, half, lmtp, waits, appends));
}
