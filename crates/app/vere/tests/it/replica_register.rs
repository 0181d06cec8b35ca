//! The membership register in etcd: its members die and hang while mail is sent.

use std::time::Duration;

use nix::sys::signal::Signal;
use vere_faults::etcd::Cluster;

use crate::gateways::{beside, kill_for_good, soon};
use crate::harness::{
    Counted, PATIENCE, Session, System, in_soak, probe, rounds, wait_greeting, wait_until,
};
use crate::replicas::{states, under_faults, wait_states};

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
    system.halt("spool b");
    session.send(b"Subject: late\r\n\r\nbody\r\n.\r\n");
    wait_until("a change that fails", || failed_changes(system) > failed);
    // No client may believe that the message is safe: no answer yet, or a refusal.
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
    system.go_on("spool b");
    wait_states(system, ["sync", "sync"]);
}

#[test]
fn receipt_goes_on_while_the_only_member_of_etcd_is_dead_until_a_node_is_missing() {
    if !in_soak() {
        return;
    }
    let Some(mut etcd) = Cluster::start(1) else {
        return;
    };
    let sink = Counted::start();
    let options = sink.options().etcd(&etcd);
    under_faults(&sink, &options, rounds(), |system, _| {
        etcd.kill_all();
        receipt_without_register(system, || etcd.restart_all());
    });
}

#[test]
fn a_node_is_removed_though_the_leader_of_etcd_is_dead_and_not_while_all_members_hang() {
    if !in_soak() {
        return;
    }
    let Some(mut etcd) = Cluster::start(3) else {
        return;
    };
    let sink = Counted::start();
    let options = sink.options().etcd(&etcd);
    under_faults(&sink, &options, 2 * rounds(), |system, number| {
        if number % 2 == 0 {
            let leader = etcd.leader();
            etcd.kill(leader);
            probe(system.smtp);
            system.halt("spool a");
            // Two members are enough to change the record.
            probe(system.smtp);
            assert_eq!(states(system)[0].1, "out");
            system.go_on("spool a");
            etcd.restart(leader);
            wait_states(system, ["sync", "sync"]);
        } else {
            etcd.signal_all(Signal::SIGSTOP);
            receipt_without_register(system, || etcd.signal_all(Signal::SIGCONT));
        }
    });
}

#[test]
fn queues_are_adopted_and_handed_back_while_each_member_of_etcd_in_turn_is_dead_or_hangs() {
    if !in_soak() {
        return;
    }
    let Some(mut etcd) = Cluster::start(3) else {
        return;
    };
    let sink = Counted::start();
    let options = |sink: &Counted| soon(sink.options().etcd(&etcd));
    let first = System::start(&options(&sink));
    let options = beside(&first, options(&sink), "second").unset("cluster.folder");
    let second = System::start(&options.set("gateway.adopts", "[\"gateway\"]"));
    wait_states(&first, ["sync", "sync"]);
    let emptied = || {
        let log = second.log();
        log.matches("everything in the adopted queues is delivered")
            .count()
    };
    sink.run(first.smtp, 6, |number| {
        let member = (number / 2) as usize;
        let dies = number % 2 == 0;
        if dies {
            etcd.kill(member);
        } else {
            etcd.signal(member, Signal::SIGSTOP);
        }
        // Two members are enough for leases, claims and what the record says.
        probe(first.smtp);
        let before = emptied();
        kill_for_good(&first);
        wait_until("the queues to be adopted and empty", || emptied() > before);
        first.signal(Signal::SIGCONT);
        wait_greeting(first.smtp);
        if dies {
            etcd.restart(member);
        } else {
            etcd.signal(member, Signal::SIGCONT);
        }
        etcd.leader();
        wait_states(&first, ["sync", "sync"]);
    });
    first.wait_empty();
}
