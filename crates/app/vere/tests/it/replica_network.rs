//! A spool node on another machine, reached over two addresses: cables are cut, in both directions
//! and in one, and lose packets, while mail is sent.

use std::fs::File;
use std::process::Stdio;
use std::time::Instant;

use crate::harness::{Child, Counted, Network, System, in_soak, probe, rounds, say, wait_until};
use crate::replicas::{states, wait_states};

/// A gateway with node a here, and node b on the other machine.
struct Apart {
    system: System,
    node: Child,
    sink: Counted,
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

    /// Sends mail while faults happen to cables, which double no message: no process dies.
    fn run(&self, rounds: u32, fault: impl FnMut(u32)) {
        assert_eq!(self.sink.run(self.system.smtp, rounds, fault), 0);
    }
}

/// Runs a test in a private network. The node was never restarted, and everything arrived.
fn apart(test: impl FnOnce(&Network, &Apart) + Send + 'static) {
    if !in_soak() {
        return;
    }
    Network::with(|network| {
        let mut apart = Apart::start(network);
        test(network, &apart);
        assert!(apart.node.ended().is_none(), "the node ended");
        apart.system.wait_empty();
    });
}

#[test]
fn mail_goes_on_over_the_standby_address_when_one_is_cut() {
    apart(|network, apart| {
        apart.wait_connections("run", "ready");
        apart.run(2 * rounds(), |number| {
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
    });
}

#[test]
fn mail_goes_on_without_a_node_that_is_cut_off_and_it_is_rebuilt_when_it_is_back() {
    apart(|network, apart| {
        apart.run(rounds(), |_| {
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
    });
}

#[test]
fn mail_goes_on_without_a_node_that_hears_and_is_not_heard() {
    apart(|network, apart| {
        apart.run(rounds(), |_| {
            network.cut_towards_here();
            probe(apart.system.smtp);
            assert_eq!(states(&apart.system)[1].1, "out");
            network.heal();
            wait_states(&apart.system, ["sync", "sync"]);
        });
    });
}

#[test]
fn thirty_percent_of_lost_packets_lose_no_mail() {
    apart(|network, apart| {
        network.lose(30);
        apart.run(rounds(), |_| {
            probe(apart.system.smtp);
        });
        let left = apart.said("goes on without this spool node");
        say(&format!("30 % lost: the node was given up {left} times"));
        network.heal();
        wait_states(&apart.system, ["sync", "sync"]);
    });
}
