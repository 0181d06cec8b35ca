//! What accounts may do on the nodes, and how much a gateway's queues may hold, with real processes.

use std::path::Path;

use nix::sys::signal::Signal;

use crate::gateways::{beside, kill_for_good, soon, submit};
use crate::harness::{
    Options, Session, Sink, System, free_address, output_of, quoted, run, vere, wait_for,
};
use crate::replicas::wait_states;

/// Settings of a machine that knows five accounts beside `default`, and speaks as one of them.
pub(crate) fn speaking_as(options: Options, keys: &Path, account: &str) -> Options {
    let section = |name: &str, groups: &str| {
        let key = quoted(&keys.join(name));
        format!("[[spool.account]]\nname = \"{name}\"\nsecret = {key}\ngroups = \"{groups}\"\n")
    };
    let sections: String = [
        section("east", "makes"),
        section("west", "makes"),
        section("watch", "none"),
        section("bill", "none"),
        section("other", "none"),
    ]
    .concat();
    options
        .table(&sections)
        .set("spool.as", &format!("\"{account}\""))
        .set("spool.adopters", "[\"west\"]")
        .set("spool.readers", "[\"watch\"]")
}

#[test]
fn accounts_may_do_what_the_maker_of_a_group_says() {
    let keys = tempfile::tempdir().expect("a temporary directory");
    let next_hop = free_address();
    let options = |account| speaking_as(soon(Options::to(next_hop)), keys.path(), account);
    let first = System::start(&options("east"));
    wait_states(&first, ["sync", "sync"]);
    submit(&first, "left");
    let machine = |account| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let options = beside(&first, options(account), "second");
        let config = System::write_config(directory.path(), &options);
        (directory, config)
    };
    let stat = |account| {
        let (_directory, config) = machine(account);
        let arguments = ["spool", "stat", "--group", "gateway", "--json", "-c"];
        let text = run(vere().args(arguments).arg(&config));
        let stat: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        stat["nodes"].clone()
    };
    for account in ["east", "west", "watch"] {
        let nodes = stat(account);
        for node in 0..2 {
            assert_eq!(nodes[node]["records"], 1, "{account}: {nodes}");
        }
    }
    for account in ["other", "default"] {
        let nodes = stat(account);
        for node in 0..2 {
            let error = nodes[node]["error"].as_str().expect("an error");
            let named = error.contains(&format!("account {account:?}"));
            assert!(named && error.contains("may not read the group"), "{error}");
        }
    }
    first.wait_log(&["turned an account away", "other", "may not read the group"]);
    // It has the nodes' addresses, the register and a key, and may still have no queues there.
    let guest = System::start_shut(&beside(&first, options("other"), "second"));
    guest.wait_log(&["other", "the account may not make groups there"]);
    guest.stop();
    // Whom the maker named takes the queues over, and gives them back.
    kill_for_good(&first);
    let sink = Sink::start_at(next_hop, &[]);
    let (_directory, config) = machine("west");
    let arguments = ["queue", "drain", "--here", "--group", "gateway", "-c"];
    let text = run(vere().args(arguments).arg(&config));
    assert!(text.contains("gateway: nothing is left"), "{text}");
    sink.wait_mail(1);
    first.signal(Signal::SIGCONT);
    wait_for("the gateway", || {
        (first.queued_if_up() == Some(0)).then_some(())
    });
    submit(&first, "back");
    sink.wait_mail(2);
    first.stop();
}

/// Who was turned away by the nodes had claimed the queues in the register before that: their gateway ended.
#[test]
fn who_may_not_have_queues_does_not_end_the_gateway_whose_they_are() {
    let keys = tempfile::tempdir().expect("a temporary directory");
    let options = |account| speaking_as(soon(Options::to(free_address())), keys.path(), account);
    let first = System::start(&options("east"));
    wait_states(&first, ["sync", "sync"]);
    submit(&first, "left");
    for account in ["other", "watch", "default"] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let options = beside(&first, options(account), "second");
        let config = System::write_config(directory.path(), &options);
        let mut command = vere();
        let arguments = ["queue", "drain", "--here", "--force", "--group", "gateway"];
        let output = output_of(command.args(arguments).arg("-c").arg(&config), "");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let denied = text.contains(account) && text.contains("may not own the group");
        assert!(!output.status.success() && denied, "{text}");
    }
    // It is not fenced: it goes on.
    submit(&first, "after that");
    assert_eq!(first.queued(), 2);
    first.stop();
}

#[test]
fn a_gateway_whose_queues_hold_what_they_may_answers_452_until_mail_left() {
    let next_hop = free_address();
    let system = System::start(&Options::to(next_hop).set("spool.group_max", "\"1 MiB\""));
    wait_states(&system, ["sync", "sync"]);
    let line = format!("{}\r\n", "x".repeat(98));
    let text = format!("Subject: long\r\n\r\n{}", line.repeat(6_000));
    let mut session = Session::greeted(system.smtp);
    session.submit("a@example.net", &["x@example.com"], &text);
    let reply = session.message("a@example.net", &["x@example.com"], &text);
    assert!(reply.starts_with("452 4.3.1"), "{reply}");
    session.submit(
        "a@example.net",
        &["x@example.com"],
        "Subject: short\r\n\r\nbody",
    );
    let stat = system.command(&["spool", "stat", "--json"]);
    let stat: serde_json::Value = serde_json::from_str(&stat).expect("JSON");
    for node in 0..2 {
        assert_eq!(stat["nodes"][node]["octets_max"], 1 << 20, "{stat}");
    }
    let sink = Sink::start_at(next_hop, &[]);
    sink.wait_mail(2);
    system.wait_empty();
    session.submit("a@example.net", &["x@example.com"], &text);
    sink.wait_mail(3);
    system.stop();
}
