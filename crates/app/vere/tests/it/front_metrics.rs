//! The metrics of front, workers and broker.

use std::io::Read as _;

use nix::sys::signal::Signal;

use crate::front::for_strangers;
use crate::harness::{Session, System, free_address, signal, wait_until};
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
    // A sandbox that is whole has six layers at least.
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
