//! `vere reload` and `vere status`, beside a real system.

use serde_json::Value;

use crate::harness::{Options, Session, Sink, System, vere, wait_until};
use crate::queues::submit;

/// The output of a command on the system's settings, and its exit code.
fn run(system: &System, words: &[&str]) -> (String, Option<i32>) {
    let mut command = vere();
    command.args(words).arg("-c").arg(&system.config);
    let output = command.output().expect("the command runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("text in UTF-8");
    (text, output.status.code())
}

fn limited(size: &str) -> Options {
    Options::default().set("limits.message_size_max", &format!("\"{size}\""))
}

#[test]
fn a_reload_ends_when_every_role_has_applied_the_settings() {
    let system = System::start(&Options::default());
    system.configure(&limited("100 KiB"));
    let (text, code) = run(&system, &["status"]);
    assert!(
        text.contains("edited and not in force: limits.message_size_max"),
        "{text}"
    );
    assert_eq!(code, Some(1), "{text}");
    let (text, code) = run(&system, &["reload"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.starts_with("1 setting changed: limits.message_size_max\napplied by "),
        "{text}"
    );
    // Without any wait.
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<a@example.net> SIZE=200000", "552 5.3.4");
    let (text, _) = run(&system, &["status", "--json"]);
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let findings = value["findings"].as_array().expect("a list").iter();
    // The disk of a machine that runs tests may be nearly full.
    let others = findings.filter(|one| {
        !one["text"]
            .as_str()
            .expect("a text")
            .contains(" free below ")
    });
    assert_eq!(others.count(), 0, "{text}");
    let (text, _) = run(&system, &["status", "--quiet"]);
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn a_refused_reload_names_the_key_and_is_remembered() {
    let system = System::start(&Options::default());
    system.configure(&limited("100 KiB").set("spool.memory_max", "\"64 MiB\""));
    let (text, code) = run(&system, &["reload"]);
    assert!(
        text.contains("restart is needed for spool.memory_max"),
        "{text}"
    );
    assert_eq!(code, Some(1));
    let (text, code) = run(&system, &["status", "--json"]);
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&value["level"], code), (&Value::from("warning"), Some(1)));
    let reason = value["system"]["refused"]["reason"]
        .as_str()
        .expect("a reason");
    assert!(reason.contains("spool.memory_max"), "{reason}");
    assert_eq!(value["edited"]["restart"][0], "spool.memory_max");
}

#[test]
fn the_end_of_a_role_and_of_the_system_are_seen() {
    let mut system = System::start(&Options::default());
    system.kill_and_wait("gateway");
    let (text, _) = wait_until_answered(&system);
    assert!(text.contains("role gateway ended unexpectedly"), "{text}");
    assert!(text.contains("SIGKILL"), "{text}");
    system.end();
    let (text, code) = run(&system, &["status"]);
    // The disk of a machine that runs tests may be nearly full.
    let more = match text.contains(" free below ") {
        true => " (and 1 more)",
        false => "",
    };
    let line = format!("CRITICAL: the system is not running{more}\n");
    assert!(text.starts_with(&line), "{text}");
    assert_eq!(code, Some(2));
    let (text, code) = run(&system, &["reload"]);
    assert!(text.contains("no system is running"), "{text}");
    assert_eq!(code, Some(1));
    std::fs::write(&system.config, "version = 1\nhostnam = 5\n").expect("the configuration");
    let (text, code) = run(&system, &["status"]);
    assert!(text.starts_with("UNKNOWN: "), "{text}");
    assert_eq!(code, Some(3));
}

/// The state was OK and "0 held" while nothing left for the destination.
#[test]
fn mail_in_a_held_destination_is_a_warning_until_it_is_released() {
    let sink = Sink::start();
    let system = System::start(&Options::to(sink.address));
    let destination = format!("relay:{}", sink.address);
    let said = |words: &[&str]| run(&system, words).0;
    system.command(&["queue", "hold", &destination]);
    let text = said(&["status"]);
    let line = format!("orders       held: {destination}\n");
    assert!(text.contains(&line), "{text}");
    assert!(!text.contains("held without end"), "{text}");
    submit(&system, 2);
    let (text, code) = run(&system, &["status"]);
    let finding = format!("2 messages held without end, for {destination}");
    let remedy = format!("vere queue release {destination}");
    assert!(text.contains(&finding) && text.contains(&remedy), "{text}");
    assert_ne!(code, Some(0), "{text}");
    system.command(&["queue", "release", &destination]);
    sink.wait_mail(2);
    let text = said(&["status"]);
    assert!(!text.contains("held without end"), "{text}");
    assert!(!text.contains("orders  "), "{text}");
}

/// The status once the gateway answers again: a warning and nothing critical.
fn wait_until_answered(system: &System) -> (String, Option<i32>) {
    let mut answer = (String::new(), None);
    wait_until("a gateway that answers", || {
        answer = run(system, &["status"]);
        answer.1 == Some(1)
    });
    answer
}
