//! The MTA of X.400 as a whole system: peers, local users, reports, crashes.

mod neighbour;
mod programs;

use std::net::SocketAddr;
use std::path::PathBuf;

use vere_associations::Outcome;
use vere_x400::{Apdu, ReportType};

use crate::harness::{Options, System, free_address, wait_for, wait_until};
use crate::imap::{Imap, start_with_store, wait_messages};
use neighbour::{NAME, Neighbour, OURS, PASSWORD};

/// A local user, in text form.
const SMITH: &str = "S=Smith; O=Board; P=Acme; A=Carrier; C=GB";
const NOBODY: &str = "S=Nobody; O=Nowhere; P=Acme; A=Carrier; C=GB";

/// A user with a mailbox.
const ALICE: &str = "S=Alice; O=Mail; P=Acme; A=Carrier; C=GB";

/// A system with an MTA, and a neighbour.
struct Pair {
    system: System,
    port: SocketAddr,
}

impl Pair {
    fn start(neighbour: &Neighbour, more: &str) -> Self {
        let port = free_address();
        let system = System::start(&options(port, neighbour.address(), more));
        let pair = Self { system, port };
        pair.wait();
        pair
    }

    fn wait(&self) {
        wait_until("the MTA", || {
            let socket = self.system.directory.path().join("data/x400/attach.sock");
            std::net::TcpStream::connect(self.port).is_ok() && socket.exists()
        });
    }

    fn folder(&self, user: &str) -> PathBuf {
        self.system
            .directory
            .path()
            .join("data/x400/users")
            .join(user)
    }

    /// The units in the folder of a user.
    fn units(&self, user: &str) -> Vec<Apdu> {
        let Ok(entries) = std::fs::read_dir(self.folder(user)) else {
            return Vec::new();
        };
        let names = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let units = names.filter(|path| path.extension().is_some_and(|end| end == "p1"));
        let whole = units.filter(|path| {
            !path
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
        });
        whole
            .map(|path| Apdu::split(&std::fs::read(path).expect("a unit").into()).expect("an APDU"))
            .collect()
    }
}

fn options(port: SocketAddr, neighbour: SocketAddr, more: &str) -> Options {
    Options::default().table(&format!(
        r#"
[x400]
listen = ["{port}"]
mta_name = "mta1"
domain = "C=GB; A=Carrier; P=Acme"
retry = ["1s"]
[[x400.peer]]
name = "{NAME}"
domain = "C=FR; A=Atlas"
password = "{PASSWORD}"
own_password = "{OURS}"
addresses = ["{neighbour}"]
[[x400.route]]
address = "A=Atlas; C=FR"
to = "peer:{NAME}"
[[x400.route]]
address = "O=Board; P=Acme; A=Carrier; C=GB"
to = "file:board"
[[x400.route]]
address = "P=Acme; A=Carrier; C=GB"
to = "unknown"
{more}"#
    ))
}

fn send(pair: &Pair, neighbour: &Neighbour, units: &[Apdu]) {
    let outcomes = neighbour
        .send(pair.port, PASSWORD, units)
        .expect("an association");
    assert!(outcomes.iter().all(Outcome::is_transferred), "{outcomes:?}");
}

/// The kinds of reports in units, by recipient.
fn reports(units: &[Apdu]) -> Vec<(String, bool)> {
    let mut all = Vec::new();
    for unit in units {
        let Apdu::Report(report) = unit else {
            continue;
        };
        for fields in &report.content.per_recipient_fields {
            let delivered = matches!(
                fields.last_trace_information.report_type,
                ReportType::Delivery(_)
            );
            all.push((fields.actual_recipient_name.to_string(), delivered));
        }
    }
    all
}

#[test]
fn a_message_comes_to_a_user_and_a_report_to_its_originator() {
    let neighbour = Neighbour::start();
    let pair = Pair::start(&neighbour, "");
    let both = neighbour.message("1", &[SMITH, NOBODY], |_| {});
    send(&pair, &neighbour, &[both]);
    let units = wait_for("the message", || {
        Some(pair.units("board")).filter(|units| units.len() == 1)
    });
    let Apdu::Message(message) = &units[0] else {
        panic!("{units:?}");
    };
    let trace = &message.envelope.trace_information.0;
    assert_eq!(trace.len(), 2, "{trace:?}");
    let text = wait_for("the report", || {
        Some(reports(&neighbour.taken())).filter(|all| !all.is_empty())
    });
    assert_eq!(text.len(), 1, "{text:?}");
    assert!(text[0].0.contains("Nobody") && !text[0].1, "{text:?}");
}

#[test]
fn what_was_confirmed_survives_a_crash_and_arrives() {
    let neighbour = Neighbour::at(free_address());
    let mut pair = Pair::start(&neighbour, "");
    let units: Vec<_> = (0..20)
        .map(|number| {
            neighbour.message(
                &number.to_string(),
                &["S=Durand; O=Lyon; A=Atlas; C=FR"],
                |_| {},
            )
        })
        .collect();
    // The neighbour sends its own domain's mail around: the MTA under test sees no loop of its own.
    send(&pair, &neighbour, &units);
    pair.system.crash();
    pair.wait();
    let listener = std::net::TcpListener::bind(neighbour.address()).expect("the port");
    neighbour.listen(listener);
    let came = wait_for("all messages", || {
        Some(neighbour.taken()).filter(|taken| taken.len() >= 20)
    });
    let mut names: Vec<_> = came
        .iter()
        .map(|unit| unit.identifier().to_string())
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 20, "{names:?}");
}

#[test]
fn a_probe_is_answered_and_a_stranger_refused() {
    let neighbour = Neighbour::start();
    let pair = Pair::start(&neighbour, "");
    let probe = neighbour.probe("7", SMITH);
    send(&pair, &neighbour, &[probe]);
    let text = wait_for("the report", || {
        Some(reports(&neighbour.taken())).filter(|all| !all.is_empty())
    });
    assert!(text[0].0.contains("Smith") && text[0].1, "{text:?}");
    assert!(pair.units("board").is_empty());
    let refused = neighbour.send(pair.port, "wrong", &[]);
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn a_message_comes_to_a_mailbox() {
    let neighbour = Neighbour::start();
    let port = free_address();
    let more = format!("[[x400.route]]\naddress = \"{ALICE}\"\nto = \"store:alice@example.org\"\n");
    let (system, ports) = start_with_store(options(port, neighbour.address(), &more));
    let pair = Pair { system, port };
    pair.wait();
    send(
        &pair,
        &neighbour,
        &[neighbour.message("1", &[ALICE], |_| {})],
    );
    wait_messages(&ports, "alice@example.org", "INBOX", 1);
    let mut imap = Imap::login(ports.imap, "alice@example.org", "secret");
    imap.ok("SELECT INBOX");
    let text = imap.body(1);
    assert!(text.contains("Subject: Lunch"), "{text}");
    assert!(text.contains("S=Jones"), "{text}");
}

/// A gateway that took such queues over would answer O/R addresses for unknown mailboxes.
#[test]
fn a_drain_of_gateways_leaves_the_queues_of_an_mta_alone() {
    let pair = Pair::start(&Neighbour::start(), "");
    let text = pair.system.command(&["queue", "drain", "--here"]);
    assert!(
        text.contains("gateway: its gateway lives, left alone"),
        "{text}"
    );
    assert!(!text.contains("mta1"), "{text}");
    let drain = [
        "queue",
        "drain",
        "--here",
        "--force",
        "--group",
        "x400.mta1",
    ];
    let (_, text) = pair.system.failing_command(&drain);
    assert!(
        text.contains("the register knows no gateway x400.mta1"),
        "{text}"
    );
}
