//! The cost of idle clients, and the service of further clients.

use std::time::Duration;

use crate::harness::{
    Authority, GREETING_MAX, Options, Session, System, private_memory, raise_descriptor_limit, say,
    skip, wait_for,
};

/// Number of clients held at once.
const CLIENTS: u64 = 10_000;
/// Private memory of a client, in octets.
const COST_MAX: u64 = 16 * 1024;
/// Descriptors of the rest of the process, other tests included.
const RESERVE: u64 = 1_000;

#[test]
fn ten_thousand_idle_clients_cost_little_and_keep_nobody_waiting() {
    // The gateway has the same hard limit, since the supervisor raises its own limit.
    let clients = CLIENTS.min(raise_descriptor_limit().saturating_sub(RESERVE));
    if clients < CLIENTS {
        skip(
            "idle clients beyond the limit of open files",
            &format!("only {clients} of {CLIENTS}; raise it with ulimit -Hn"),
        );
    }
    let options = Options::default()
        .set("limits.connections_max", "20000")
        .set("limits.connections_per_client_max", "20000");
    let system = System::start(&options);
    let gateway = system.role_pids("gateway")[0];
    drop(Session::greeted(system.smtp));
    let before = private_memory(gateway);

    let mut slowest = Duration::ZERO;
    let mut held = Vec::new();
    for number in 0..clients {
        let (mut session, took) = system.time_greeting(gateway);
        slowest = slowest.max(took);
        // Half of the clients have sent EHLO.
        if number % 2 == 0 {
            session.command("EHLO client.example.net", "250");
        }
        held.push(session);
    }
    let growth = private_memory(gateway).saturating_sub(before);
    let each = growth / clients;
    for _ in 0..10 {
        let (mut fresh, took) = system.time_greeting(gateway);
        slowest = slowest.max(took);
        fresh.submit_after_ehlo("alice@example.org");
    }
    say(&format!(
        "{clients} idle clients cost {each} octets each, the slowest greeting took {slowest:?}"
    ));
    assert!(each <= COST_MAX, "an idle client costs {each} octets");
    assert!(slowest < GREETING_MAX, "a greeting took {slowest:?}");
    system.wait_mail("alice", 10);

    // All clients are still served.
    for session in held.iter_mut().step_by(997) {
        session.command("NOOP", "250");
    }
    drop(held);
}

#[test]
fn idle_clients_within_tls_cost_little_too() {
    const CLIENTS: u64 = 500;
    const COST_MAX: u64 = 20 * 1024;
    let authority = Authority::new();
    let files = authority.sign("mx", &["mx.example.org"]);
    let options = Options::default()
        .certificate(&files)
        .set("limits.connections_per_client_max", "1000");
    let system = System::start(&options);
    let gateway = system.role_pids("gateway")[0];
    drop(Session::connect_tls(
        system.submissions,
        &authority,
        "mx.example.org",
    ));
    let before = private_memory(gateway);
    let held: Vec<Session> = (0..CLIENTS)
        .map(|_| Session::connect_tls(system.submissions, &authority, "mx.example.org"))
        .collect();
    let each = private_memory(gateway).saturating_sub(before) / CLIENTS;
    say(&format!(
        "{CLIENTS} idle clients within TLS cost {each} octets each"
    ));
    assert!(each <= COST_MAX, "an idle client costs {each} octets");
    drop(held);
}

#[test]
fn clients_beyond_the_limit_are_turned_away() {
    let options = Options::default().set("limits.connections_per_client_max", "3");
    let system = System::start(&options);
    // The place of a leaving client is free a moment later.
    let connect = || wait_for("a place", || Session::try_connect(system.smtp).ok());
    let mut held: Vec<Session> = (0..3).map(|_| connect()).collect();
    let mut fourth = Session::open(system.smtp).expect("a connection");
    fourth.expect("421 4.7.0");
    assert_eq!(fourth.rest(), "");
    // A freed place is given again.
    held.pop().expect("three").command("QUIT", "221");
    drop(connect());
}
