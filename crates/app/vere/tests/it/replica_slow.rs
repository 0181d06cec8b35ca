//! Three nodes for two replicas, one node with half of the processor time: the third node replaces the slow node
//! while mail comes in, every acknowledged message arrives, and none twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{Counted, System, free_address, in_soak, wait_within};
use crate::replicas::states;

/// The slow node stands still for this time, and runs for as long.
const SLICE: Duration = Duration::from_millis(25);

/// Reports on drop that the test is over, however the test ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Lets a process run half of the time until that is over.
fn halve(process: Pid, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        for signal in [Signal::SIGSTOP, Signal::SIGCONT] {
            kill(process, signal).expect("the node lives");
            std::thread::sleep(SLICE);
        }
    }
}

/// The full nodes.
fn members(system: &System) -> Vec<String> {
    let members = states(system)
        .into_iter()
        .filter(|(_, sync)| sync == "sync");
    members.map(|(node, _)| node).collect()
}

#[test]
fn a_node_at_half_speed_is_replaced() {
    if !in_soak() {
        return;
    }
    let sink = Counted::start();
    let third = format!(
        "[[spool.node]]\nname = \"c\"\nlisten = \"{}\"",
        free_address()
    );
    let options = sink
        .options()
        .set("spool.slow_after", "\"3s\"")
        .table(&third);
    let system = System::start(&options);
    let first = wait_within(Duration::from_secs(60), "two replicas", || {
        Some(members(&system)).filter(|members| members.len() == 2)
    });
    // The first node keeps the log: no other node can be compared.
    let slow = &first[1];
    let pids = system.role_pids(&format!("spool {slow}"));
    let node = Pid::from_raw(i32::try_from(pids[0]).expect("a process id"));
    let doubled = sink.run(system.smtp, 1, |_| {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _over = Over(&over);
            scope.spawn(|| halve(node, &over));
            wait_within(
                Duration::from_secs(120),
                "another node in its place",
                || {
                    let out = states(&system).contains(&(slow.clone(), "out, slow".to_owned()));
                    (out && members(&system).len() == 2).then_some(())
                },
            );
        });
    });
    assert_eq!(doubled, 0);
    assert!(members(&system).contains(&first[0]));
}
