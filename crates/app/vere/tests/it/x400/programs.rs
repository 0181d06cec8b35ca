//! `vere x400`, and a gateway in Python, against the running MTA.

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{NAME, NOBODY, Neighbour, Pair, SMITH};
use crate::harness::{program, wait_for};

const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../docs/examples/x400_gateway.py"
);
/// An address behind the gateway.
const FAR: &str = "C=XX; A=ICAO; P=Acme; O=AFTN; OU1=EDDFYMYX";
const GATEWAY: &str = r#"
[[x400.gateway]]
name = "aftn"
[[x400.route]]
address = "C=XX; A=ICAO; P=Acme; O=AFTN"
to = "gateway:aftn"
"#;

/// Sends the text of a file, and gives the identifier.
fn send(pair: &Pair, to: &str, subject: &str, more: &[&str]) -> String {
    let text = pair.system.directory.path().join("text");
    std::fs::write(&text, "At noon?\nÄ\n").expect("the text");
    let text = text.to_string_lossy();
    let fixed = [
        "x400",
        "send",
        "--from",
        SMITH,
        "--to",
        to,
        "--subject",
        subject,
        "--file",
        &text,
    ];
    let sent = pair.system.json(&[&fixed[..], more].concat());
    assert_eq!(sent["id"].as_str().map(str::len), Some(13), "{sent}");
    sent["identifier"]
        .as_str()
        .expect("an identifier")
        .to_owned()
}

/// What `vere x400 show` says of each unit of the user, by a field.
fn shown(pair: &Pair, field: &str, wanted: &str) -> Option<Value> {
    let files = std::fs::read_dir(pair.folder("board")).ok()?;
    let files = files.filter_map(|file| Some(file.ok()?.path()));
    let whole = files.filter(|path| path.extension().is_some_and(|end| end == "p1"));
    let mut units = whole.map(|path| pair.system.json(&["x400", "show", &path.to_string_lossy()]));
    units.find(|unit| unit.pointer(field).and_then(Value::as_str) == Some(wanted))
}

fn python(pair: &Pair, arguments: &[&str]) -> Option<Child> {
    let python = program("python3")?;
    let socket = pair.system.directory.path().join("data/x400/attach.sock");
    let mut command = Command::new(python);
    command.arg("-B").arg(EXAMPLE).arg(socket).args(arguments);
    command
        .env("PYTHONIOENCODING", "utf-8")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Some(command.spawn().expect("python3"))
}

fn said(child: Child) -> String {
    let output = child.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let faults = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{faults}");
    said
}

#[test]
fn a_gateway_in_python_gets_what_waited_and_answers() {
    let neighbour = Neighbour::start();
    let pair = Pair::start(&neighbour, GATEWAY);
    let identifier = send(
        &pair,
        FAR,
        "Lunch",
        &["--report", "all", "--priority", "urgent"],
    );
    wait_for("the message to wait", || {
        let queues = pair.system.json(&["queue", "--x400", "list"]);
        let rows = queues.as_array()?;
        rows.iter()
            .any(|queue| queue["deferred"] == 1)
            .then_some(())
    });
    let arguments = ["aftn", "--count", "1", "--reply", "Thank you."];
    let Some(child) = python(&pair, &arguments) else {
        return;
    };
    let said = said(child);
    for part in [
        "attached to mta1 in /PRMD=Acme/ADMD=Carrier/C=GB/\n",
        &format!("message {identifier} ("),
        "  subject Lunch\n  | At noon?\n  | Ä\n",
        "submitted [/PRMD=Acme/ADMD=Carrier/C=GB/;",
    ] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
    let reply = wait_for("the reply", || {
        shown(&pair, "/ipm/heading/subject", "Re: Lunch")
    });
    assert_eq!(reply["priority"], "urgent", "{reply}");
    assert_eq!(reply["ipm"]["body"][0]["text"], "Thank you.");
    let report = wait_for("the report", || shown(&pair, "/about", &identifier));
    assert!(report["recipients"][0]["delivered"].is_string(), "{report}");
    pair.system.wait_empty();
}

#[test]
fn only_gateways_of_the_settings_attach() {
    let neighbour = Neighbour::start();
    let pair = Pair::start(&neighbour, GATEWAY);
    let Some(child) = python(&pair, &["other"]) else {
        return;
    };
    let output = child.wait_with_output().expect("its end");
    let faults = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        faults,
        "x400_gateway: expected a gateway of the settings; found other\n"
    );
}

#[test]
fn commands_send_probe_route_and_list() {
    let neighbour = Neighbour::start();
    let pair = Pair::start(&neighbour, GATEWAY);
    let system = &pair.system;
    let identifier = send(&pair, SMITH, "To myself", &[]);
    let message = wait_for("the message", || shown(&pair, "/identifier", &identifier));
    assert_eq!(
        message["ipm"]["body"][0]["type"], "general-text",
        "{message}"
    );

    let probe = system.json(&[
        "x400", "probe", "--from", SMITH, "--to", NOBODY, "--size", "100",
    ]);
    let probe = probe["identifier"].as_str().expect("an identifier");
    let report = wait_for("the report", || shown(&pair, "/about", probe));
    assert_eq!(
        report["recipients"][0]["diagnostic"], "unrecognised-OR-name",
        "{report}"
    );

    let refused = system.refused(&[
        "x400",
        "send",
        "--from",
        SMITH,
        "--to",
        SMITH,
        "--subject",
        &"x".repeat(129),
        "--file",
        "/dev/null",
    ]);
    assert!(
        refused.contains("subject: expected at most 128 characters; found 129"),
        "{refused}"
    );

    let route = system.command(&["x400", "route", "S=Durand; O=Lyon; A=Atlas; C=FR"]);
    let host = neighbour.address().to_string();
    for part in [&*format!(": peer:{NAME}\n"), &*format!("  {host}\n")] {
        assert!(route.contains(part), "{part:?} in {route}");
    }
    let (code, _) = system.failing_command(&["x400", "route", NOBODY]);
    assert_eq!(code, Some(1));

    let peers = system.rows(&["x400", "peers"]);
    assert_eq!(
        (peers.len(), &peers[0]["name"]),
        (1, &Value::from(NAME)),
        "{peers:?}"
    );
    assert_eq!(peers[0]["queued"], 0);

    let found = system.rows(&["x400", "archive", "find", "--identifier", &identifier]);
    assert_eq!(found.len(), 1, "{found:?}");
    let verified = system.command(&["x400", "archive", "verify"]);
    assert!(verified.ends_with(": OK\n"), "{verified}");
    let folder = system.directory.path().join("export");
    let into = folder.to_string_lossy();
    system.command(&[
        "x400", "archive", "export", "--kind", "report", "--into", &into,
    ]);
    let files = std::fs::read_dir(&folder).expect("files").count();
    assert_eq!(files, 1);
}

#[test]
fn commands_name_what_they_miss() {
    let neighbour = Neighbour::start();
    let mut pair = Pair::start(&neighbour, "");
    pair.system.kill();
    let gone = pair.system.refused(&["x400", "peers"]);
    assert!(
        gone.contains("no X.400 MTA is running (nobody listens on "),
        "{gone}"
    );
    let plain = crate::harness::System::start(&crate::harness::Options::default());
    let none = plain.refused(&["x400", "peers"]);
    assert!(none.contains("expected a section [x400] in "), "{none}");
}
