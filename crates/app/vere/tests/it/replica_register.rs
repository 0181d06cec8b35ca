//! The membership register in etcd: its members die and hang while mail is sent.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::harness::{Counted, Etcd, PATIENCE, Session, System, in_soak, is_full, probe, wait_for};
use crate::replicas::{states, wait_states};

/// How often faults are repeated.
fn rounds() -> u32 {
    if is_full() { 10 } else { 1 }
}

/// How often the log says that the record could not be changed.
fn failed_changes(system: &System) -> usize {
    let log = system.log();
    log.matches("cannot change the membership register").count()
}

/// Without the register: mail is taken as long as no member of the group is missing, not without one.
fn receipt_without_register(system: &System, heal: impl FnOnce()) {
    probe(system.smtp);
    let mut session = Session::greeted(system.smtp);
    session.envelope("a@example.net", &["x@example.com"]);
    let failed = failed_changes(system);
    // The supervisor would replace the node.
    system.signal(Signal::SIGSTOP);
    assert_eq!(system.signal_role("spool b", Signal::SIGSTOP), 1);
    session.send(b"Subject: late\r\n\r\nbody\r\n.\r\n");
    wait_for("a change that fails", || {
        (failed_changes(system) > failed).then_some(())
    });
    // Nobody may think that it is safe: no answer yet, or that it is not taken.
    session.set_patience(Duration::from_millis(500));
    let early = session.try_reply().unwrap_or_default();
    assert!(early.is_empty() || early.starts_with("451"), "{early}");
    assert_eq!(states(system)[0].1, "sync", "{:?}", states(system));
    heal();
    probe(system.smtp);
    assert_eq!(states(system)[1].1, "out");
    if early.is_empty() {
        session.set_patience(PATIENCE);
        let late = session.reply();
        assert!(late.starts_with("250") || late.starts_with("451"), "{late}");
    }
    assert_eq!(system.signal_role("spool b", Signal::SIGCONT), 1);
    system.signal(Signal::SIGCONT);
    wait_states(system, ["sync", "sync"]);
}

#[test]
fn receipt_goes_on_while_the_only_member_of_etcd_is_dead_until_a_node_is_missing() {
    if !in_soak("receipt goes on while the only member of etcd is dead until a node is missing") {
        return;
    }
    let Some(mut etcd) = Etcd::start(1) else {
        return;
    };
    let sink = Counted::start();
    let system = System::start(&etcd.options(sink.options()));
    wait_states(&system, ["sync", "sync"]);
    sink.run(system.smtp, rounds(), |_| {
        etcd.kill_all();
        receipt_without_register(&system, || etcd.restart_all());
    });
    system.wait_empty();
    system.stop();
}

#[test]
fn a_node_is_removed_though_the_leader_of_etcd_is_dead_and_not_while_all_members_hang() {
    if !in_soak(
        "a node is removed though the leader of etcd is dead and not while all members hang",
    ) {
        return;
    }
    let Some(mut etcd) = Etcd::start(3) else {
        return;
    };
    let sink = Counted::start();
    let system = System::start(&etcd.options(sink.options()));
    wait_states(&system, ["sync", "sync"]);
    sink.run(system.smtp, 2 * rounds(), |number| {
        if number % 2 == 0 {
            let leader = etcd.leader();
            etcd.kill(leader);
            probe(system.smtp);
            system.signal(Signal::SIGSTOP);
            assert_eq!(system.signal_role("spool a", Signal::SIGSTOP), 1);
            // Two members are enough to change the record.
            probe(system.smtp);
            assert_eq!(states(&system)[0].1, "out");
            assert_eq!(system.signal_role("spool a", Signal::SIGCONT), 1);
            system.signal(Signal::SIGCONT);
            etcd.restart(leader);
            wait_states(&system, ["sync", "sync"]);
        } else {
            etcd.signal_all(Signal::SIGSTOP);
            receipt_without_register(&system, || etcd.signal_all(Signal::SIGCONT));
        }
    });
    system.wait_empty();
    system.stop();
}
