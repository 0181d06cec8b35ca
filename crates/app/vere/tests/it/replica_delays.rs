//! Links between a gateway and its nodes that stand still for longer than a node may be silent, and then bring all
//! octets sent meanwhile, too late: every acknowledged message arrives, and none twice.

use std::time::Duration;

use crate::gateways::beside;
use crate::harness::{Counted, Delay, Options, System, in_soak, is_full, probe, wait_until};
use crate::replicas::{states, wait_states};

/// A pause. Longer than a node is waited for, and than anything is on the way otherwise.
const PAUSE: Duration = Duration::from_secs(10);

/// A gateway beside another gateway, which has the nodes; a proxy stands before each node.
fn behind(first: &System, sink: &Counted, delays: &[Delay; 2]) -> System {
    let elsewhere = "runs = \"elsewhere\"";
    let options = beside(first, sink.options(), "second")
        .node("a", delays[0].address, elsewhere)
        .node("b", delays[1].address, elsewhere);
    System::start(&options)
}

#[test]
fn links_that_stand_still_for_ten_seconds_lose_and_double_nothing() {
    if !in_soak() {
        return;
    }
    let sink = Counted::start();
    let first = System::start(&Options::default());
    let delays = first.nodes.map(Delay::to);
    let second = behind(&first, &sink, &delays);
    wait_states(&second, ["sync", "sync"]);
    let rounds = if is_full() { 2 } else { 1 };
    let doubled = sink.run(second.smtp, 3 * rounds, |number| {
        let paused = match number % 3 {
            0 => &delays[..1],
            1 => &delays[1..],
            _ => &delays[..],
        };
        paused.iter().for_each(Delay::pause);
        if paused.len() == 1 {
            // The other node is enough, once this node is out.
            probe(second.smtp);
            let place = (number % 3) as usize;
            assert_eq!(states(&second)[place].1, "out");
        }
        // Not a wait for an event, but the pause itself.
        std::thread::sleep(PAUSE);
        paused.iter().for_each(Delay::go_on);
        probe(second.smtp);
        wait_states(&second, ["sync", "sync"]);
    });
    assert_eq!(
        doubled, 0,
        "the gateway knew what was delivered all the time"
    );
    wait_until("an empty group on both nodes", || {
        let stat = second.json(&["spool", "stat", "--group", "second"]);
        let nodes = stat["nodes"].as_array().expect("nodes");
        let empty = nodes.iter().all(|node| node["records"] == 0);
        nodes.len() == 2 && empty
    });
}
