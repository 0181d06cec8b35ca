//! Processes of a replicated spool under kills and pauses in turn, without descriptors, and with a moved clock: every
//! acknowledged message arrives.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::clock::FakedClock;
use crate::harness::{
    Counted, System, in_soak, probe, program, rounds, run, wait_greeting, wait_until,
};
use crate::replicas::{states, under_faults, wait_states};

const ROLES: [&str; 3] = ["gateway", "spool a", "spool b"];

#[test]
fn each_process_in_turn_is_killed_and_paused_under_load() {
    let sink = Counted::start();
    under_faults(&sink, &sink.options(), rounds() * 6, |system, number| {
        let role = ROLES[(number / 2 % 3) as usize];
        if number % 2 == 0 {
            wait_until("a process to kill", || {
                system.signal_role(role, Signal::SIGKILL) > 0
            });
        } else {
            pause(system, role);
        }
        wait_greeting(system.smtp);
        wait_states(system, ["sync", "sync"]);
    });
}

/// Stops a process, and continues the process when the others have noticed.
fn pause(system: &System, role: &str) {
    system.halt(role);
    if role == "gateway" {
        // Longer than the nodes are silent for; not a wait for an event, but the pause itself.
        std::thread::sleep(Duration::from_secs(4));
    } else {
        probe(system.smtp);
        let node = usize::from(role == "spool b");
        assert_eq!(states(system)[node].1, "out");
    }
    system.go_on(role);
}

#[test]
fn a_node_without_descriptors_is_done_without_and_comes_back() {
    if !in_soak() {
        return;
    }
    if program("prlimit").is_none() {
        return;
    }
    let sink = Counted::start();
    under_faults(&sink, &sink.options(), rounds(), |system, _| {
        let pid = system.role_pids("spool b")[0];
        // Every descriptor below the limit is in use.
        limit_descriptors(pid, "3:");
        // The node's connections end; the node can accept no new connection.
        system.kill_and_wait("gateway");
        wait_greeting(system.smtp);
        probe(system.smtp);
        assert_ne!(states(system)[1].1, "sync");
        limit_descriptors(pid, "1024:");
        wait_states(system, ["sync", "sync"]);
        assert_eq!(system.role_pids("spool b"), [pid], "it was not restarted");
    });
}

/// Sets the soft limit.
fn limit_descriptors(pid: u32, limit: &str) {
    let mut prlimit = Command::new("prlimit");
    prlimit.args(["--pid", &pid.to_string()]);
    run(prlimit.arg(format!("--nofile={limit}")));
}

#[test]
fn a_clock_that_jumps_by_more_than_a_year_changes_nothing() {
    if !in_soak() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(clock) = FakedClock::in_folder(directory.path()) else {
        return;
    };
    let sink = Counted::start();
    let system = System::start_as(directory, &sink.options(), |command, _| {
        clock.command(command)
    });
    wait_states(&system, ["sync", "sync"]);
    let ids = || ROLES.map(|role| system.role_pids(role));
    let before = ids();
    sink.run(system.smtp, rounds() * 2, |number| {
        let (step, days) = [("+400d", "400 days"), ("-400d", "400 days ago")][number as usize % 2];
        clock.set(step);
        let there = run(Command::new("date").args(["-u", "-d", days, "+%b %Y"]));
        system.submit_about(
            "a@example.net",
            &["alice@example.org"],
            format_args!("then {number}"),
        );
        let texts = system.wait_mail("alice", number as usize + 1);
        let text = texts
            .iter()
            .find(|text| text.contains(&format!("then {number}")));
        let text = text.expect("the message");
        assert!(text.contains(there.trim()), "the clock is there: {text}");
    });
    wait_states(&system, ["sync", "sync"]);
    assert_eq!(ids(), before, "nothing was restarted");
    system.wait_empty();
}
