//! What accounts may do on the nodes, and how much a gateway's queues may hold, with real processes.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;

use nix::sys::signal::Signal;

use crate::gateways::{beside, kill_for_good, soon, submit};
use crate::harness::{
    Options, Session, Sink, System, free_address, output_of, quoted, run, vere, wait_until,
};
use crate::replicas::wait_states;

/// Settings of a machine with five accounts beside `default`, which speaks as one of the accounts.
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
    // The gateway named by the maker takes the queues over, and gives the queues back.
    kill_for_good(&first);
    let sink = Sink::start_at(next_hop, &[]);
    let (_directory, config) = machine("west");
    let arguments = ["queue", "drain", "--here", "--group", "gateway", "-c"];
    let text = run(vere().args(arguments).arg(&config));
    assert!(text.contains("gateway: nothing is left"), "{text}");
    sink.wait_mail(1);
    first.signal(Signal::SIGCONT);
    wait_until("the gateway", || first.queued_if_up() == Some(0));
    submit(&first, "back");
    sink.wait_mail(2);
}

/// A gateway without access to the nodes had claimed the queues in the register before the refusal: the owning
/// gateway ended.
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
    // The gateway is not fenced and goes on.
    submit(&first, "after that");
    assert_eq!(first.queued(), 2);
}

/// A gateway too many, and the removal of a gone gateway.
#[test]
fn a_group_is_removed_when_its_gateway_is_gone() {
    let next_hop = free_address();
    let options = || soon(Options::to(next_hop)).set("spool.groups_max", "2");
    let first = System::start(&options());
    wait_states(&first, ["sync", "sync"]);
    let second = System::start(&beside(&first, options(), "second"));
    submit(&second, "waits");
    let third = System::start_shut(&beside(&first, options(), "third"));
    third.wait_log(&["the node has as many groups as it may"]);
    first.wait_log(&["the node has as many groups as it may", "127.0.0.1"]);
    third.stop();
    let remove = |more: &[&str]| {
        let mut command = vere();
        command.args(["spool", "remove-group", "second"]).args(more);
        let output = output_of(command.arg("-c").arg(&first.config), "");
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    let (done, text) = remove(&["--force"]);
    assert!(!done && text.contains("stop it first"), "{text}");
    second.stop();
    let (done, text) = remove(&[]);
    assert!(!done && text.contains("1 record on node"), "{text}");
    let (done, text) = remove(&["--force"]);
    assert!(done && text.contains("node a: removed"), "{text}");
    assert!(text.contains("node b: removed"), "{text}");
    let groups = first.command(&["spool", "groups", "--json"]);
    assert!(!groups.contains("second"), "{groups}");
    let (done, text) = remove(&[]);
    assert!(!done && text.contains("has a group second"), "{text}");
    // The removal lasts, and the place is free: for the next gateway, or for the same gateway again, from nothing.
    first.kill_and_wait("spool a");
    let again = System::start(&beside(&first, options(), "second"));
    assert_eq!(again.queued(), 0);
    submit(&again, "another");
    assert_eq!(again.queued(), 1);
}

/// The log of a node about clients that do not follow the protocol.
#[test]
fn a_node_logs_where_it_listens_and_whom_it_turns_away() {
    let system = System::start(&Options::to(free_address()));
    system.wait_log(&["listening for gateways", &system.nodes[0].to_string()]);
    let mut stream = TcpStream::connect(system.nodes[0]).expect("the node");
    stream.write_all(&[0xff; 64]).expect("octets");
    system.wait_log(&["connection closed", "frame is too long", "127.0.0.1"]);
    let other = tempfile::tempdir().expect("a temporary directory");
    let key = other.path().join("other.key");
    std::fs::write(&key, format!("{}\n", "ab".repeat(32))).expect("a key");
    let options = beside(&system, Options::to(free_address()), "second");
    let config = System::write_config(other.path(), &options.set("spool.secret", &quoted(&key)));
    run(vere().args(["spool", "stat", "-c"]).arg(&config));
    system.wait_log(&["connection closed", "authentication failed", "127.0.0.1"]);
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
    session.submit_about("a@example.net", &["x@example.com"], "short");
    let stat = system.json(&["spool", "stat"]);
    for node in 0..2 {
        assert_eq!(stat["nodes"][node]["octets_max"], 1 << 20, "{stat}");
    }
    let sink = Sink::start_at(next_hop, &[]);
    sink.wait_mail(2);
    system.wait_empty();
    session.submit("a@example.net", &["x@example.com"], &text);
    sink.wait_mail(3);
}
