//! A spool node on another machine, reached over two addresses: cables are cut, in both directions
//! and in one, and lose packets, while mail is sent.

use std::fs::File;
use std::process::Stdio;
use std::time::Instant;

use crate::harness::{Child, Counted, Network, System, in_soak, probe, rounds, say, wait_until};
use crate::replicas::{states, wait_states};

/// A gateway with node a here, and node b on the other machine.
struct Apart {
    sink: Counted,
    system: System,
    node: Child,
}

impl Apart {
    fn start(network: &Network) -> Self {
        let sink = Counted::start();
        let standby = network.far_address(2);
        let lines = format!("standby = \"{standby}\"\nruns = \"elsewhere\"");
        let options = sink.options().node("b", network.far_address(1), &lines);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = directory.path().join("vere.toml");
        let log = File::create(directory.path().join("log-b")).expect("the node's log");
        let mut node = None;
        let system = System::start_as(directory, &options, |_, _| {
            let mut command = network.on_far(env!("CARGO_BIN_EXE_vere"));
            command.args(["spool", "serve", "--node", "b", "-c"]);
            command.arg(config).stdin(Stdio::null()).stderr(log);
            node = Some(Child::spawn(&mut command));
        });
        wait_states(&system, ["sync", "sync"]);
        let node = node.expect("it was started");
        Self { sink, system, node }
    }

    /// The connections to node b: the active connection and the standby connection.
    fn connections(&self) -> (String, String) {
        let stat = self.system.json(&["spool", "stat"]);
        let row = &stat["replicas"][1];
        let field = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        (field("active"), field("standby"))
    }

    fn wait_connections(&self, active: &str, standby: &str) {
        wait_until("these connections to node b", || {
            self.connections() == (active.to_owned(), standby.to_owned())
        });
    }

    /// How many lines of the log say so.
    fn said(&self, what: &str) -> usize {
        let log = self.system.log();
        log.lines().filter(|line| line.contains(what)).count()
    }

    /// The node was never restarted, and everything arrived.
    fn stop(mut self) {
        assert!(self.node.ended().is_none(), "the node ended");
        self.system.wait_empty();
        self.system.stop();
    }
}

#[test]
fn mail_goes_on_over_the_standby_address_when_one_is_cut() {
    if !in_soak("mail goes on over the standby address when one is cut") {
        return;
    }
    Network::with(|network| {
        let apart = Apart::start(network);
        apart.wait_connections("run", "ready");
        let doubled = apart.sink.run(apart.system.smtp, 2 * rounds(), |number| {
            // First one address, then the other.
            let cable = if number % 2 == 0 { 1 } else { 2 };
            let (switched, began) = (apart.said("standby connection"), Instant::now());
            network.cut(cable);
            // The connection in use may have changed before, on a very slow machine.
            wait_until("the loss of a connection", || {
                let changed = apart.said("standby connection") > switched;
                // Not asked at once: that takes seconds while an address is cut.
                let other = || began.elapsed().as_secs() > 5 && apart.connections().1 == "down";
                changed || other()
            });
            say(&format!(
                "address {cable} cut: noticed after {:?}",
                began.elapsed()
            ));
            probe(apart.system.smtp);
            apart.wait_connections("run", "down");
            wait_states(&apart.system, ["sync", "sync"]);
            network.heal();
            apart.wait_connections("run", "ready");
        });
        assert!(
            apart.said("standby connection") > 0,
            "one of them was in use"
        );
        assert_eq!(doubled, 0, "no process died");
        apart.stop();
    });
}

#[test]
fn mail_goes_on_without_a_node_that_is_cut_off_and_it_is_rebuilt_when_it_is_back() {
    if !in_soak("mail goes on without a node that is cut off and it is rebuilt when it is back") {
        return;
    }
    Network::with(|network| {
        let apart = Apart::start(network);
        let doubled = apart.sink.run(apart.system.smtp, rounds(), |_| {
            let began = Instant::now();
            network.cut(1);
            network.cut(2);
            probe(apart.system.smtp);
            say(&format!(
                "both cut: acknowledged after {:?}",
                began.elapsed()
            ));
            assert_eq!(states(&apart.system)[1].1, "out");
            network.heal();
            wait_states(&apart.system, ["sync", "sync"]);
        });
        assert_eq!(doubled, 0, "no process died");
        apart.stop();
    });
}

#[test]
fn mail_goes_on_without_a_node_that_hears_and_is_not_heard() {
    if !in_soak("mail goes on without a node that hears and is not heard") {
        return;
    }
    Network::with(|network| {
        let apart = Apart::start(network);
        let doubled = apart.sink.run(apart.system.smtp, rounds(), |_| {
            network.cut_towards_here();
            probe(apart.system.smtp);
            assert_eq!(states(&apart.system)[1].1, "out");
            network.heal();
            wait_states(&apart.system, ["sync", "sync"]);
        });
        assert_eq!(doubled, 0, "no process died");
        apart.stop();
    });
}

#[test]
fn thirty_percent_of_lost_packets_lose_no_mail() {
    if !in_soak("thirty percent of lost packets lose no mail") {
        return;
    }
    Network::with(|network| {
        let apart = Apart::start(network);
        network.lose(30);
        let doubled = apart.sink.run(apart.system.smtp, rounds(), |_| {
            probe(apart.system.smtp);
        });
        let left = apart.said("goes on without this spool node");
        say(&format!("30 % lost: the node was given up {left} times"));
        network.heal();
        wait_states(&apart.system, ["sync", "sync"]);
        assert_eq!(doubled, 0, "no process died");
        apart.stop();
    });
}
