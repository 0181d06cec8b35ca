//! The MTA of X.400 as a whole system: peers, local users, reports, crashes.

mod neighbour;
mod programs;

use std::net::SocketAddr;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::Value;
use vere_associations::Outcome;
use vere_net::tls::{CertificateFiles, ClientTls, Keyring, Roots, ServerTlsOptions, Verification};
use vere_x400::{Apdu, ReportType};

use crate::gateways::{beside, soon};
use crate::harness::{
    Authority, Files, Options, System, free_address, output_of, quoted, run, vere, wait_for,
    wait_until,
};
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
    named("mta1", port, neighbour, more)
}

/// Settings of an MTA of a name.
fn named(mta: &str, port: SocketAddr, neighbour: SocketAddr, more: &str) -> Options {
    shaped(mta, port, neighbour, ("", more))
}

/// Settings with further lines of the section and further sections.
fn shaped(
    mta: &str,
    port: SocketAddr,
    neighbour: SocketAddr,
    (own, more): (&str, &str),
) -> Options {
    Options::default().table(&format!(
        r#"
[x400]
{own}
listen = ["{port}"]
mta_name = "{mta}"
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

#[test]
fn a_peer_without_a_password_shows_its_certificate() {
    let authority = Authority::new();
    let [server, client, other] = ["mta1.example", "mta.certified.example", "other.example"]
        .map(|name| authority.sign(name, &[name]));
    let (port, encrypted) = (free_address(), free_address());
    let own = format!(
        "listen_tls = [\"{encrypted}\"]\nclient_ca = {}",
        quoted(&authority.ca)
    );
    let more = "[[x400.peer]]\nname = \"certified\"\ndomain = \"C=DE; A=Post\"\ncaller_certificate = \"mta.certified.example\"\n";
    let neighbour = Neighbour::start();
    let options = shaped("mta1", port, neighbour.address(), (&own, more)).certificate(&server);
    let pair = Pair {
        system: System::start(&options),
        port,
    };
    pair.wait();
    let call = |files: Option<&Files>| {
        let tls = client_tls(&authority, files);
        neighbour.bind(
            encrypted,
            "certified",
            Some((tls, "mta1.example".to_owned())),
        )
    };
    assert_eq!(call(Some(&client)), Ok(()));
    for shown in [None, Some(&other)] {
        let refused = call(shown).expect_err("the certificate of the peer is wanted");
        assert!(refused.contains("authentication"), "{refused}");
    }
    let plain = neighbour.bind(port, "certified", None);
    assert!(plain.is_err(), "{plain:?}");
}

/// A client that trusts the authority, and shows these files.
fn client_tls(authority: &Authority, files: Option<&Files>) -> ClientTls {
    let roots = Roots::only(&authority.ca).expect("a root");
    let client = ClientTls::new(Verification::Required, &roots).expect("a client");
    let Some(files) = files else {
        return client;
    };
    let options = ServerTlsOptions {
        default: Some(CertificateFiles::new(&files.certificate, &files.key)),
        ..ServerTlsOptions::default()
    };
    client.showing(&Keyring::new(options).expect("good files"))
}

/// Messages to the neighbour that wait.
fn leave(pair: &Pair, neighbour: &Neighbour, count: usize) {
    let to = ["S=Durand; O=Lyon; A=Atlas; C=FR"];
    let unit = |number: usize| neighbour.message(&format!("left {number}"), &to, |_| {});
    let units: Vec<_> = (0..count).map(unit).collect();
    send(pair, neighbour, &units);
}

/// Kills an MTA, and keeps its supervisor from starting another one.
fn kill_for_good(pair: &Pair) {
    pair.system.signal(Signal::SIGSTOP);
    assert_eq!(pair.system.signal_role("x400", Signal::SIGKILL), 1);
}

/// The messages of all queues of an MTA, by group; `None` while the MTA does not answer.
fn queued(pair: &Pair) -> Option<Vec<(String, u64)>> {
    let mut command = vere();
    command.args(["queue", "--x400", "list", "--json", "-c"]);
    command.arg(pair.system.directory.path().join("vere.toml"));
    let rows: Vec<Value> = serde_json::from_slice(&output_of(&mut command, "").stdout).ok()?;
    let row = |row: &Value| {
        let group = row["group"].as_str().unwrap_or_default().to_owned();
        (group, row["messages"].as_u64().unwrap_or(0))
    };
    let rows = rows.iter().map(row);
    Some(rows.filter(|(_, count)| *count > 0).collect())
}

#[test]
fn an_mta_delivers_what_a_dead_one_left_and_an_operator_can_too() {
    let neighbour = Neighbour::at(free_address());
    let port = free_address();
    let system = System::start(&soon(options(port, neighbour.address(), "")));
    let first = Pair { system, port };
    first.wait();
    let port = free_address();
    let second = soon(named("mta2", port, neighbour.address(), ""));
    let second = beside(&first.system, second, "second").set("gateway.adopts", "[\"*\"]");
    let second = Pair {
        system: System::start(&second),
        port,
    };
    second.wait();
    leave(&first, &neighbour, 3);
    kill_for_good(&first);
    wait_until("the adopted queues", || {
        queued(&second) == Some(vec![("x400.mta1".to_owned(), 3)])
    });
    // Now the adopting one dies too, and an operator takes the queues over, with the settings of the first MTA.
    kill_for_good(&second);
    let third = tempfile::tempdir().expect("a temporary directory");
    let port = free_address();
    let options = beside(
        &first.system,
        soon(named("mta3", port, neighbour.address(), "")),
        "third",
    );
    let config = System::write_config(third.path(), &options);
    let listener = std::net::TcpListener::bind(neighbour.address()).expect("the port");
    neighbour.listen(listener);
    let mut command = vere();
    let words = [
        "queue", "--x400", "drain", "--here", "--group", "mta1", "-c",
    ];
    command.args(words).arg(&config);
    let text = run(&mut command);
    assert!(text.contains("x400.mta1: nothing is left"), "{text}");
    let mut names: Vec<_> = neighbour
        .taken()
        .iter()
        .map(|unit| unit.identifier().to_string())
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 3, "{names:?}");
    second.system.signal(Signal::SIGCONT);
    first.system.signal(Signal::SIGCONT);
    first.wait();
    second.wait();
    wait_until("nothing to be left", || {
        [&first, &second].map(queued) == [Some(Vec::new()), Some(Vec::new())]
    });
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
        text.contains("the register knows no queues of x400.mta1"),
        "{text}"
    );
}
