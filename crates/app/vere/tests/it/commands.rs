//! The commands of people and scripts for a running system.

use serde_json::Value;

use crate::harness::{
    Options, Sink, System, assert_has, free_address, output_of, run, vere, wait_for, wait_until,
};

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

#[test]
fn queues_and_their_messages_are_listed() {
    let address = free_address();
    let system = System::start(&Options::to(address));
    assert_eq!(system.command(&["queue", "list"]), "no queues\n");
    let id = system.submit(
        "alice@example.org",
        &["x@example.com", "y@example.com"],
        "Subject: one\r\n\r\nbody",
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

    let shown = parse(&system.command(&["queue", "show", destination, "--json"]));
    assert_eq!(shown.as_array().map(Vec::len), Some(1), "{shown}");
    assert_eq!(shown[0]["id"], id.as_str());
    assert_eq!(shown[0]["reverse_path"], "alice@example.org");
    let recipients = ["x@example.com", "y@example.com"];
    assert_eq!(shown[0]["recipients"], Value::from(recipients.to_vec()));
    assert_eq!(shown[0]["state"], "deferred");
    let by_id = parse(&system.command(&["queue", "show", &id, "--json"]));
    assert_eq!(by_id, shown);
    let behind = system.command(&["queue", "show", destination, "--after", &id]);
    assert_eq!(behind, "no messages\n");
    let (code, said) = system.failing_command(&["queue", "show", "0000000000001"]);
    assert_eq!(code, Some(1));
    assert_has(&said, &["no message 0000000000001 is queued"]);
    let text = system.command(&["queue", "show", destination]);
    assert_has(&text, &[&id, "attempts, next"]);
    let (code, said) = system.failing_command(&["queue", "show", "nowhere.example"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("no queue nowhere.example"), "{said}");

    let sink = Sink::start_at(address, &[]);
    sink.wait_mail(1);
    system.wait_empty();
    system.stop();
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
            let traces = parse(&system.command(&["trace", wanted, "--json"]));
            let events = traces[0]["events"].as_array()?.len();
            (events >= 3).then_some(traces)
        });
        assert_eq!(traces.as_array().map(Vec::len), Some(1), "{traces}");
        assert_eq!(traces[0]["id"], id.as_str(), "{traces}");
    }
    // The message is kept while the system does not run.
    let (code, said) = system.failing_command(&["trace", "0000000000000"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("0000000000000"), "{said}");
    let text = system.command(&["trace", &id]);
    let first = text.lines().nth(1).unwrap_or_default();
    assert!(
        first.contains("received") && first.contains("<me@example.net>"),
        "{text}"
    );
    system.stop();
}

#[test]
fn what_needs_a_running_system_says_that_there_is_none() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = directory.path().join("vere.toml");
    let text = "version = 1\nhostname = \"mx.example.org\"\ndata = \"data\"\n";
    std::fs::write(&config, text).expect("the configuration");
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
    let config = directory.path().join("vere.toml");
    let smallest = "version = 1\nhostname = \"mx.example.org\"\n";
    std::fs::write(&config, smallest).expect("the configuration");
    run(vere().arg("check-config").arg(&config));
    let report = parse(&run(vere().args(["check-config", "--json"]).arg(&config)));
    assert_eq!(report["ok"], true);

    let wrong = format!("{smallest}[smtp]\nlisen = []\n[limits]\nrecipients_max = 1\n");
    std::fs::write(&config, wrong).expect("the configuration");
    let mut check = vere();
    let output = output_of(check.arg("check-config").arg(&config), "");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_has(
        &said,
        &["vere.toml:4", "nearest known one is listen", "vere.toml:6"],
    );
    let mut check = vere();
    let output = output_of(check.args(["check-config", "--json"]).arg(&config), "");
    assert_eq!(output.status.code(), Some(1));
    let report = parse(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(report["ok"], false);
    assert_eq!(report["errors"][0]["line"], 4, "{report}");

    // The same words at the start of the system.
    let mut serve = vere();
    let output = output_of(serve.arg("serve").arg("-c").arg(&config), "");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("vere.toml:4"), "{said}");
}

#[test]
fn wrong_arguments_are_told_apart_from_failures() {
    for arguments in [
        ["queue", "wibble"].as_slice(),
        &["--wibble"],
        &["trace"],
        &[],
    ] {
        let output = output_of(vere().args(arguments), "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    for arguments in [["--help"], ["--version"]] {
        let text = run(vere().args(arguments));
        assert!(text.contains("vere"), "{text}");
    }
}

#[test]
fn domains_and_accounts_are_managed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = directory.path().join("vere.toml");
    let text = "version = 1\nhostname = \"mx.example.org\"\ndata = \"data\"\n";
    std::fs::write(&config, text).expect("the configuration");
    let ok = |arguments: &[&str]| run(vere().args(arguments).arg("-c").arg(&config));
    let fails = |arguments: &[&str]| {
        let output = output_of(vere().args(arguments).arg("-c").arg(&config), "");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
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
    let printed = run(vere().args(["config", "reference"]));
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/reference/config.md"
    );
    let kept = std::fs::read_to_string(file).expect("the reference");
    assert!(
        printed == kept,
        "docs/reference/config.md differs from vere config reference"
    );
}

#[test]
fn an_interrupt_ends_the_system_cleanly() {
    let system = System::start(&Options::default());
    let status = system.end_by(nix::sys::signal::Signal::SIGINT);
    assert_eq!(status.code(), Some(0));
}
