//! A second machine becomes a node by `vere node invite` and `vere node join`: two network namespaces, real processes,
//! and mail that flows while each process is killed.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::harness::{
    Child, Counted, Network, System, assert_has, fails_with, output_of, quiet, run, signal, vere,
    wait_greeting, wait_until, wait_within,
};
use crate::replicas::states;

/// How long a command may take to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// The node's name.
const NAME: &str = "mail2";
/// The address of the second machine ([`Network::far_address`]).
pub(crate) const ADDRESS: &str = "10.77.1.2";

/// A running `vere node invite`.
pub(crate) struct Invite {
    process: Child,
    /// The secret line for the other machine.
    pub(crate) token: String,
    /// The output up to the token.
    pub(crate) said: String,
    output: BufReader<std::process::ChildStdout>,
}

impl Invite {
    fn start(config: &Path) -> Self {
        Self::start_with(config, &[])
    }

    fn start_with(config: &Path, options: &[&str]) -> Self {
        let mut command = vere();
        command.args(["node", "invite", NAME, "--address", ADDRESS]);
        Self::of(command.args(options).arg("-c").arg(config))
    }

    /// The invitation of a command, which waits for a machine now.
    pub(crate) fn of(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = Child::spawn(command.stderr(Stdio::null()));
        let mut output = BufReader::new(process.take_output());
        let mut said = String::new();
        loop {
            let before = said.len();
            let count = output.read_line(&mut said).expect("the output");
            assert!(count > 0, "the invitation ended without a token: {said}");
            let line = said[before..].trim();
            if let Some(token) = line.strip_prefix("vere node join ") {
                let token = token.to_owned();
                return Self {
                    process,
                    token,
                    said,
                    output,
                };
            }
        }
    }

    /// Ends the invitation without a machine.
    fn stop(mut self) {
        assert!(signal(self.process.id(), Signal::SIGINT));
        wait_until("the end of the invitation", || {
            self.process.ended().is_some()
        });
    }

    /// The output up to a line that begins with this text.
    fn read_until(&mut self, beginning: &str) -> String {
        let mut text = String::new();
        loop {
            let before = text.len();
            let count = self.output.read_line(&mut text).expect("the output");
            assert!(count > 0, "{beginning} is missing in: {text}");
            if text[before..].starts_with(beginning) {
                return text;
            }
        }
    }

    /// Waits for the end; returns what was printed behind the token.
    pub(crate) fn finish(mut self) -> String {
        let ended = || self.process.ended();
        let status = wait_within(PATIENCE, "the end of the invitation", ended);
        assert!(status.success(), "{status}");
        let mut text = String::new();
        self.output.read_to_string(&mut text).expect("the output");
        text
    }
}

/// The second machine.
pub(crate) struct Far<'a> {
    network: &'a Network,
    pub(crate) folder: PathBuf,
    node: Option<Child>,
}

impl<'a> Far<'a> {
    pub(crate) fn new(network: &'a Network, folder: &Path) -> Self {
        Self {
            network,
            folder: folder.join("far"),
            node: None,
        }
    }

    fn join(&self, token: &str) -> Command {
        let mut command = self.network.on_far(env!("CARGO_BIN_EXE_vere"));
        command
            .args(["node", "join", token, "--dir"])
            .arg(&self.folder);
        command
    }

    pub(crate) fn start(&mut self) {
        self.start_as(NAME);
    }

    /// Starts a node by the settings in the folder.
    pub(crate) fn start_as(&mut self, name: &str) {
        self.node = None;
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.join("log"));
        let mut command = self.network.on_far(env!("CARGO_BIN_EXE_vere"));
        command.args(["spool", "serve", "--node", name, "-c"]);
        command
            .arg(self.folder.join("vere.toml"))
            .stdin(Stdio::null());
        command.stderr(log.expect("the node's log"));
        self.node = Some(Child::spawn(&mut command));
    }

    fn kill(&mut self) {
        let node = self.node.as_mut().expect("it runs");
        assert!(signal(node.id(), Signal::SIGKILL));
        self.start();
    }

    fn certificate(&self) -> String {
        let path = self.folder.join("data/spool-tls/machine.pem");
        fs::read_to_string(path).expect("the certificate")
    }
}

pub(crate) fn wait_synced(system: &System, nodes: &[&str]) {
    let wanted = nodes
        .iter()
        .map(|node| ((*node).to_owned(), "sync".to_owned()));
    let wanted: Vec<_> = wanted.collect();
    wait_within(PATIENCE, "nodes that have every message", || {
        (states(system) == wanted).then_some(())
    });
}

fn renewals_reach_both_machines(system: &System, far: &Far<'_>) {
    let before = far.certificate();
    assert!(
        system
            .command(&["node", "renew"])
            .contains(&format!("{NAME}: not due"))
    );
    // Certificates end with a second; a successor has to last longer.
    std::thread::sleep(Duration::from_millis(1100));
    let text = system.command(&["node", "renew", "--all"]);
    assert_eq!(text.matches("renewed; valid until").count(), 2, "{text}");
    assert_ne!(far.certificate(), before);
    let rows = system.rows(&["node", "list"]);
    let far = &rows[2];
    assert_eq!(
        (&far["node"], &far["runs"]),
        (&NAME.into(), &"elsewhere".into())
    );
    assert!(
        far["certificate_end"].is_string() && far["error"].is_null(),
        "{far}"
    );
}

#[test]
fn a_second_machine_joins_and_holds_every_message_while_processes_are_killed() {
    Network::with(|network| {
        let sink = Counted::start();
        let mut system = System::start(&sink.options());
        let folder = tempfile::tempdir().expect("a temporary directory");
        let mut far = Far::new(network, folder.path());

        let invite = Invite::start(&system.config);
        let token = invite.token.clone();
        let joined = run(&mut far.join(&token));
        assert!(
            joined.contains(&format!("spool serve --node {NAME}")),
            "{joined}"
        );
        let next = invite.finish();
        assert!(next.contains("joined from 10.77.1.2"), "{next}");
        assert!(!next.contains("Warning"), "{next}");
        // Until the restart, the status says what waits for it.
        let mut status = vere();
        let status = output_of(status.args(["status", "-c"]).arg(&system.config), "");
        let status = String::from_utf8_lossy(&status.stdout).into_owned();
        assert_has(&status, &["spool.node", "systemctl restart vere"]);
        // The token was used, and a machine that has joined is left alone.
        fails_with(&mut far.join(&token), 1);
        far.start();
        system.restart();
        wait_synced(&system, &["a", "b", NAME]);
        let mut status = vere();
        let status = output_of(status.args(["status", "-c"]).arg(&system.config), "");
        assert!(!String::from_utf8_lossy(&status.stdout).contains("spool.node"));

        sink.run(system.smtp, 4, |number| {
            match number {
                0 => far.kill(),
                1 => system.kill_and_wait("gateway"),
                2 => system.kill_and_wait("spool a"),
                _ => system.kill_and_wait("spool b"),
            }
            wait_greeting(system.smtp);
            wait_synced(&system, &["a", "b", NAME]);
        });
        renewals_reach_both_machines(&system, &far);

        let text = system.command(&["node", "remove", NAME]);
        assert!(text.contains("- replicas = 3\n+ replicas = 2\n"), "{text}");
        system.restart();
        wait_synced(&system, &["a", "b"]);
        let again = ["node", "invite", NAME, "--address", ADDRESS];
        assert!(system.refused(&again).contains("removed earlier"));
    });
}

#[test]
fn an_invitation_that_is_not_used_changes_nothing() {
    Network::with(|network| {
        let folder = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(folder.path().join("data")).expect("a folder");
        let config = crate::harness::Options::write_smallest(folder.path(), "");
        let text = fs::read_to_string(&config).expect("the settings");
        let mut dry = vere();
        dry.args([
            "node",
            "invite",
            NAME,
            "--address",
            ADDRESS,
            "--dry-run",
            "-c",
        ]);
        assert!(run(dry.arg(&config)).contains("+ runs = \"elsewhere\"\n"));
        assert!(!folder.path().join("data/spool-tls").exists());

        let mut invite = Invite::start(&config);
        let far = Far::new(network, folder.path());
        // A machine that has settings is left alone, and the invitation stays open.
        fs::create_dir(&far.folder).expect("a folder");
        fs::write(far.folder.join("vere.toml"), "# other").expect("a file");
        assert!(fails_with(&mut far.join(&invite.token), 1).contains("--force"));
        let damaged = invite
            .token
            .replace(|letter: char| letter.is_ascii_digit(), "x");
        assert!(fails_with(&mut far.join(&damaged), 1).contains("vere node invite"));
        assert!(invite.process.ended().is_none());
        assert!(signal(invite.process.id(), Signal::SIGINT));
        wait_until("the end of the invitation", || {
            invite.process.ended().is_some()
        });
        assert_eq!(fs::read_to_string(&config).expect("the settings"), text);
        let late = output_of(&mut far.join(&invite.token), "");
        assert!(!late.status.success());
        assert_eq!(
            fs::read(far.folder.join("vere.toml")).expect("a file"),
            b"# other"
        );
    });
}

/// Ten wrong secrets ended an invitation, so that whoever reached the port could end it.
#[test]
fn wrong_secrets_of_a_stranger_do_not_keep_the_invited_machine_out() {
    Network::with(|network| {
        let folder = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(folder.path().join("data")).expect("a folder");
        let config = crate::harness::Options::write_smallest(folder.path(), "");
        // A token from before has the same fingerprint and another secret.
        let earlier = Invite::start(&config);
        let old = earlier.token.clone();
        earlier.stop();
        let invite = Invite::start(&config);
        let stranger = |number: usize| {
            let mut command = vere();
            let place = folder.path().join(format!("stranger{number}"));
            command.args(["node", "join", &old, "--dir"]).arg(place);
            command
        };
        let said = fails_with(&mut stranger(0), 1);
        assert_has(
            &said,
            &["the secret of the token is wrong", "earlier invitation"],
        );
        let crowd: Vec<_> = (1..=20)
            .map(|number| Child::spawn(quiet(&mut stranger(number))))
            .collect();
        let far = Far::new(network, folder.path());
        run(&mut far.join(&invite.token));
        assert!(invite.finish().contains("joined from 10.77.1.2"));
        drop(crowd);
        let files = |number: usize| folder.path().join(format!("stranger{number}"));
        assert!(!(0..=20).any(|number| files(number).exists()));
    });
}

#[test]
fn an_invitation_that_cannot_be_reached_says_so_and_a_join_says_why_it_failed() {
    Network::with(|network| {
        let folder = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(folder.path().join("data")).expect("a folder");
        let config = crate::harness::Options::write_smallest(folder.path(), "");
        let far = Far::new(network, folder.path());
        // Nobody listens at that port: as a NAT that does not forward.
        let outside = ["--listen", "0.0.0.0:2610", "--advertise", "10.77.1.1:2611"];
        let mut invite = Invite::start_with(&config, &outside);
        let warning = invite.read_until("The other machine may");
        assert_has(
            &warning,
            &[
                "Warning",
                "10.77.1.1:2611",
                "found no connection",
                "--advertise",
            ],
        );
        let said = fails_with(&mut far.join(&invite.token), 1);
        assert_has(&said, &["10.77.1.1:2611", "found no connection", "refused"]);
        invite.stop();
        // The invitation at another port is reached at its address.
        let inside = ["--listen", "0.0.0.0:2612", "--advertise", "10.77.1.1:2612"];
        let invite = Invite::start_with(&config, &inside);
        run(&mut far.join(&invite.token));
        assert!(!invite.finish().contains("Warning"));
    });
}
