//! The metrics of front, workers and broker; the memory of a worker.

use std::io::Read as _;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::front::for_strangers;
use crate::harness::{Session, System, free_address, signal, wait_for, wait_until};
use crate::logins::connect_from;
use crate::metrics::{read, wait_lines};

#[test]
fn port_25_is_counted() {
    let endpoint = free_address();
    let options = for_strangers()
        .set("metrics.front", &format!("\"{endpoint}\""))
        .set("front.refused_networks", "[\"127.0.0.9\"]");
    let system = System::start(&options);
    wait_lines(
        endpoint,
        &["vere_front_workers 2", "vere_front_connections 0"],
    );
    // A whole sandbox has six layers at least.
    wait_until("layers of the sandboxes", || {
        let text = read(endpoint);
        let layers = text
            .lines()
            .find_map(|line| line.strip_prefix("vere_front_worker_layers "));
        layers.is_some_and(|layers| layers.parse::<u8>().is_ok_and(|layers| layers > 0))
    });
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<a@example.net>", "250");
    session.command("RCPT TO:<nobody@example.org>", "550");
    session.command("RCPT TO:<alice@example.org>", "250");
    wait_lines(
        endpoint,
        &[
            "vere_front_decisions_total{reason=\"recipient_unknown\"} 1",
            "vere_front_questions_total{kind=\"recipient\",result=\"refused\"} 1",
            "vere_front_questions_total{kind=\"recipient\",result=\"accepted\"} 1",
            "vere_front_question_seconds_count 2",
            "vere_front_recipients_accepted_total 1",
            "vere_front_sessions_handed_over_total 1",
            "vere_front_begin_seconds_count 1",
            "vere_front_connections 1",
            "vere_front_worker_sessions 1",
            "vere_front_worker_sessions_most 1",
            "vere_front_sessions_waiting 0",
        ],
    );
    session.command("DATA", "354");
    session.command("Subject: one\r\n\r\nbody\r\n.", "250");
    session.command("QUIT", "221");
    let mut said = String::new();
    let mut stream = connect_from("127.0.0.9", system.smtp);
    stream.read_to_string(&mut said).expect("a reply");
    wait_lines(
        endpoint,
        &[
            "vere_front_sessions_ended_total{end=\"done\"} 1",
            "vere_front_connections_turned_away_total{reason=\"access\"} 1",
            "vere_front_connections 0",
            "vere_front_worker_sessions 0",
        ],
    );
    let mut session = Session::greeted(system.smtp);
    session.transaction("a@example.net", &["alice@example.org"]);
    for worker in system.role_pids("worker") {
        signal(worker, Signal::SIGKILL);
    }
    session.expect("421 4.3.0");
    wait_lines(
        endpoint,
        &[
            "vere_front_workers_lost_total{reason=\"dead\"} 2",
            "vere_front_sessions_ended_total{end=\"lost\"} 1",
            "vere_front_workers 2",
        ],
    );
}

/// A process cannot return all memory of many long messages; another takes its place.
#[test]
fn a_worker_ends_behind_a_peak_of_memory() {
    // Shorter than what goes ahead to the gateway, and 78 MiB in all; one client has a quarter of the memory for messages.
    const OCTETS: usize = 1_000 << 10;
    let options = for_strangers()
        .set("front.workers", "1")
        .set("limits.body_memory_max", "\"512 MiB\"");
    let system = System::start(&options);
    let before = wait_for("a worker", || system.role_pids("worker").first().copied());
    let line = [&b"x".repeat(998)[..], b"\r\n"].concat();
    let mut sessions: Vec<Session> = (0..80).map(|_| Session::greeted(system.smtp)).collect();
    for session in &mut sessions {
        session.envelope("a@example.net", &["alice@example.org"]);
        session.send(&line.repeat(OCTETS / line.len()));
    }
    // The worker looks every two seconds.
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(system.role_pids("worker"), [before]);
    drop(sessions);
    wait_until("another worker", || {
        let now = system.role_pids("worker");
        now.len() == 1 && now[0] != before
    });
    let log = system.log();
    assert!(!log.contains("worker ended"), "{log}");
}
