//! A spool node absent while mail goes on: on its return, the node gets the missed records, and nothing else.

use nix::sys::signal::Signal;

use crate::harness::{Counted, System, probe};
use crate::replicas::{states, under_faults, wait_states};

const NODE: &str = "spool b";

/// Releases the node after the other nodes have gone on alone, and waits for its return.
fn away(system: &System, sent: Signal) {
    // The supervisor would start another process at once.
    system.signal(Signal::SIGSTOP);
    assert_eq!(system.signal_role(NODE, sent), 1);
    probe(system.smtp);
    assert_eq!(states(system)[1].1, "out");
    if sent == Signal::SIGSTOP {
        assert_eq!(system.signal_role(NODE, Signal::SIGCONT), 1);
    }
    system.signal(Signal::SIGCONT);
    wait_states(system, ["sync", "sync"]);
}

#[test]
fn a_node_that_is_back_under_load_is_given_only_what_it_missed() {
    let faults = [Signal::SIGKILL, Signal::SIGSTOP];
    let sink = Counted::start();
    let options = sink.options().set("spool.log", "\"node\"");
    under_faults(&sink, &options, 2, |system, number| {
        away(system, faults[number as usize]);
        let log = system.log();
        let times = |part: &str| log.matches(part).count();
        assert_eq!(times("spool node has what it missed"), number as usize + 1);
        // No record present on both was sent again.
        assert_eq!(times("spool node is being rebuilt"), 0, "{log}");
    });
}
