//! Guides about several machines.

use std::fs;
use std::process::Command;

use super::Operator;
use super::pages::text;
use crate::gateways::{beside, dying_and_adopting, kill_for_good, soon, submit};
use crate::harness::{Files, Network, Options, Sink, System, free_address, program, quoted};
use crate::pages::steps;
use crate::replicas::wait_states;
use crate::second_machine::{ADDRESS, Far, Invite, wait_synced};

/// A command with its arguments, as it is typed in front of another one.
fn line(command: &Command) -> String {
    let words = command.get_args().map(|word| word.to_string_lossy());
    let program = command.get_program().to_string_lossy();
    let words: Vec<_> = std::iter::once(program).chain(words).collect();
    words.join(" ")
}

/// The page shows a machine with systemd, which a test has not: its nodes and systems are started by hand.
#[test]
fn a_machine_is_added_and_removed() {
    Network::with(|network| {
        let mut system = System::start(&Options::default());
        let config = system.config.display().to_string();
        let texts = [("192.0.2.2", ADDRESS), ("/etc/vere/vere.toml", &*config)];
        let Some(mut here) = Operator::of(&system, &texts, &[]) else {
            return;
        };
        let steps = steps(&text("machines"));
        let step = |begin: &str| steps.iter().find(|step| step.command.starts_with(begin));

        let invite = step("vere node invite").expect("an invitation");
        let invitation = Invite::of(&mut here.shell.typed(&here.folder, invite));
        let mut far = Far::new(network, system.directory.path());
        let mut join = step("vere node join").expect("a line to run").clone();
        let typed = line(&network.on_far("vere"));
        let folder = far.folder.display().to_string();
        let typed = format!("{typed} node join {} --dir {folder}", invitation.token);
        let settings = format!("{folder}/vere.toml");
        let texts = [
            ("192.0.2.2", ADDRESS),
            (&*join.command, &*typed),
            ("/etc/vere/vere.toml", &*settings),
        ];
        let mut there = Operator::of(&system, &texts, &[]).expect("as before");
        join.shown.retain(|line| !line.contains("systemctl"));
        there.shell.step(system.directory.path(), &join);
        let said = invitation.said.clone() + &invitation.finish();
        for line in &invite.shown {
            assert!(here.shell.has(&said, line), "{line}: {said}");
        }

        far.start();
        system.restart();
        here.follow_where("machines", |command| command.starts_with("vere node list"));
        wait_synced(&system, &["a", "b", "mail2"]);
        here.follow_where("machines", |command| {
            command.starts_with("vere node remove")
        });
        system.restart();
        wait_synced(&system, &["a", "b"]);
    });
}

/// Certificates as the page has them made encrypt the line to a node on another machine.
#[test]
fn certificates_are_made_by_hand() {
    if program("openssl").is_none() {
        return;
    }
    Network::with(|network| {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let config = folder.path().join("vere.toml");
        let Some(mut operator) = Operator::with(folder.path(), &config, &[], &[]) else {
            return;
        };
        let is_ca = |command: &str| command.contains("-keyout ca.key");
        operator.follow_where("machines", |command| {
            command.starts_with("openssl") && is_ca(command)
        });
        for name in ["a", "b"] {
            let environment = &mut operator.shell.environment;
            environment.push(("name".to_owned(), name.into()));
            operator.follow_where("machines", |command| {
                command.starts_with("openssl") && !is_ca(command)
            });
        }
        let signed = |options: Options, name: &str| {
            let files = Files {
                certificate: folder.path().join(name).with_extension("pem"),
                key: folder.path().join(name).with_extension("key"),
                der: Vec::new(),
            };
            options.spool_tls(&files, &folder.path().join("ca.pem"))
        };
        let address = network.far_address(1);
        let near = tempfile::tempdir().expect("a temporary directory");
        let key = quoted(&near.path().join("data/spool.key"));
        let elsewhere = "runs = \"elsewhere\"";
        let of_b = Options::default().set("spool.secret", &key);
        let of_b = of_b
            .node("a", free_address(), elsewhere)
            .node("b", address, "");
        let mut far = Far::new(network, folder.path());
        fs::create_dir(&far.folder).expect("a folder");
        System::write_config(&far.folder, &signed(of_b, "b"));
        let options = Options::default().node("b", address, elsewhere);
        let system = System::start_as(near, &signed(options, "a"), |_, _| far.start_as("b"));
        wait_states(&system, ["sync", "sync"]);
        let row = &system.rows(&["node", "list"])[1];
        assert!(row["certificate_end"].is_string(), "{row}");
        system.submit_about("a@example.net", &["alice@example.org"], "over TLS");
        assert!(system.wait_mail("alice", 1)[0].contains("over TLS"));
    });
}

/// The queues of a gateway that was killed are delivered from the other machine.
#[test]
fn queues_of_a_dead_gateway_are_drained() {
    let next_hop = free_address();
    let (dead, living) = dying_and_adopting("[]", || Options::to(next_hop));
    submit(&dead, "left");
    kill_for_good(&dead);
    let sink = Sink::start_at(next_hop, &[]);
    if let Some(mut operator) = Operator::of(&living, &[("mx1", "gateway")], &[]) {
        operator.follow_where("gateways", |command| {
            command.starts_with("vere queue drain")
        });
        sink.wait_mail(1);
    }
}

/// What a gateway has left behind on the nodes goes.
#[test]
fn a_gateway_that_is_gone_is_removed() {
    let first = System::start(&soon(Options::default()));
    let mut second = System::start(&beside(&first, soon(Options::default()), "mx2"));
    wait_states(&second, ["sync", "sync"]);
    second.end();
    assert_eq!(first.rows(&["spool", "groups"]).len(), 2);
    if let Some(mut operator) = Operator::of(&first, &[], &[]) {
        operator.follow_where("gateways", |command| {
            command.starts_with("vere spool remove-group")
        });
        assert_eq!(first.rows(&["spool", "groups"]).len(), 1);
    }
}
