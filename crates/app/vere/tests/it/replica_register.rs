//! The membership register in etcd: its members die and hang while mail is sent.

use nix::sys::signal::Signal;

use crate::harness::{Counted, Etcd, Session, System, is_full, probe};
use crate::replicas::{states, wait_states};

/// How often faults are repeated.
fn rounds() -> u32 {
    if is_full() { 10 } else { 1 }
}

/// A message that nobody may believe to be safe.
fn refused(system: &System) {
    let mut session = Session::greeted(system.smtp);
    let text = "Subject: refused\r\n\r\nbody";
    session.send(b"MAIL FROM:<a@example.net>\r\n");
    let mut reply = session.reply();
    if reply.starts_with("250") {
        session.command("RCPT TO:<x@example.com>", "250");
        session.command("DATA", "354");
        session.send(format!("{text}\r\n.\r\n").as_bytes());
        reply = session.reply();
    }
    assert!(reply.starts_with("451 4.3."), "{reply}");
}

/// Without the register: mail is taken as long as no member of the group is missing, not without one.
fn receipt_without_register(system: &System, heal: impl FnOnce()) {
    probe(system.smtp);
    // The supervisor would replace the node.
    system.signal(Signal::SIGSTOP);
    assert_eq!(system.signal_role("spool b", Signal::SIGSTOP), 1);
    refused(system);
    assert_eq!(states(system)[0].1, "sync", "{:?}", states(system));
    heal();
    probe(system.smtp);
    assert_eq!(states(system)[1].1, "out");
    assert_eq!(system.signal_role("spool b", Signal::SIGCONT), 1);
    system.signal(Signal::SIGCONT);
    wait_states(system, ["sync", "sync"]);
}

#[test]
fn receipt_goes_on_while_the_only_member_of_etcd_is_dead_until_a_node_is_missing() {
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
