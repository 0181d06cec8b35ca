//! The protocol scripts against the whole daemon, as each kind of client named in a script.

use std::path::Path;

use vere_script::daemon::Target;
use vere_script::{Script, Verdict, run_against};

use crate::harness::{Authority, Options, PATIENCE, Sink, System};
use crate::proxy::start_behind_proxy;

/// Runs all scripts and returns the names of passed scripts; scripts for another kind of client are skipped.
pub(crate) fn run_all(target: &Target) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/smtp");
    let (mut passed, mut failures) = (Vec::new(), String::new());
    for entry in std::fs::read_dir(folder).expect("the scripts") {
        let path = entry.expect("a script").path();
        let text = std::fs::read_to_string(&path).expect("a script");
        // Behind a proxy nothing else makes sense: every connection begins with a header.
        let behind_proxy = target.rights.iter().any(|right| right == "proxy");
        if behind_proxy && !text.contains("\n@peer proxy\n") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let script = Script::parse(&name, &text).expect("a script");
        match run_against(target.clone(), &script) {
            Ok(Verdict::Passed) => passed.push(name.into_owned()),
            Ok(Verdict::Skipped(_)) => {}
            Err(failure) => failures.push_str(&failure.to_string()),
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    passed
}

pub(crate) fn target(system: &System, rights: &[&str]) -> Target {
    Target {
        submission: Some(system.submission),
        rights: rights.iter().map(|&right| right.to_owned()).collect(),
        patience: PATIENCE,
        ..Target::from(system.smtp)
    }
}

/// Mail for others goes to the sink; only the made-up client of the scripts may send any.
fn front_end(sink: &Sink, key: &str) -> Options {
    Options::to(sink.address)
        .set("relay.networks", "[\"192.0.2.66/32\"]")
        .set(key, "[\"127.0.0.0/8\"]")
}

#[test]
fn scripts_pass_for_a_client_that_may_relay() {
    let sink = Sink::start();
    let authority = Authority::new();
    let files = authority.sign("mx", &["mx.example.org"]);
    let options = Options::to(sink.address).set("priority.networks", "[\"127.0.0.0/8\"]");
    let system = System::start(&options.certificate(&files));
    system.add_script_accounts();
    let rights = ["relay", "priority", "auth-in-clear", "tls", "auth"];
    let passed = run_all(&target(&system, &rights));
    assert!(passed.len() > 25, "only {passed:?} ran");
}

#[test]
fn scripts_pass_for_a_client_behind_xclient() {
    let sink = Sink::start();
    let system = System::start(&front_end(&sink, "xclient.networks"));
    system.add_script_accounts();
    let passed = run_all(&target(&system, &["xclient", "auth-in-clear"]));
    for name in ["xclient", "xclient-login"] {
        assert!(passed.iter().any(|one| one == name), "{name} did not run");
    }
}

#[test]
fn scripts_pass_for_a_client_behind_a_proxy() {
    let sink = Sink::start();
    let system = start_behind_proxy(&front_end(&sink, "proxy.networks"));
    system.add_script_accounts();
    let mut names = run_all(&target(&system, &["proxy"]));
    names.sort();
    assert_eq!(names, ["proxy", "proxy-forms"]);
}
