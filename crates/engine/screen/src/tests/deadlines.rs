//! Deadlines of connections.

use super::*;
use crate::{Reason, StaleTicket};

fn bench() -> Bench {
    Bench::without_delay(|_| ())
}

#[test]
fn a_silent_client_is_closed_after_its_greeting() {
    let mut bench = bench();
    let ticket = bench.ticket("192.0.2.1");
    bench.pass(30_000);
    bench.screen.activity(bench.now, ticket).unwrap();
    bench.pass(29_999);
    assert_eq!(bench.due(), [], "octets without a command do not count");
    bench.pass(1);
    assert_eq!(bench.due(), [(ticket, Due::Close(Reason::FirstCommand))]);
    assert_eq!(bench.due(), []);
    assert_eq!(bench.screen.next_due(), None);
    assert_eq!(bench.screen.activity(bench.now, ticket), Err(StaleTicket));
    bench.screen.left(ticket).unwrap();
    assert_eq!(bench.screen.take_tally().of(Reason::FirstCommand), 1);
}

#[test]
fn signs_of_life_move_the_idle_deadline() {
    let mut bench = bench();
    let ticket = bench.ticket("192.0.2.1");
    bench.pass(50_000);
    bench.screen.command(bench.now, ticket).unwrap();
    bench.pass(299_000);
    assert_eq!(bench.due(), []);
    bench.screen.activity(bench.now, ticket).unwrap();
    bench.pass(299_000 - 50_000);
    assert_eq!(bench.due(), [], "599 s after the connection");
    bench.pass(2_000);
    assert_eq!(bench.due(), [(ticket, Due::Close(Reason::Slow))]);
    let idle = bench.ticket("192.0.2.1");
    bench.screen.command(bench.now, idle).unwrap();
    bench.pass(300_000);
    bench.pass(999);
    assert_eq!(bench.due(), [(idle, Due::Close(Reason::Idle))]);
}

#[test]
fn an_error_is_a_command_and_helo_too() {
    let mut bench = bench();
    let (a, b) = (bench.ticket("192.0.2.1"), bench.ticket("192.0.2.1"));
    bench.screen.error(bench.now, a).unwrap();
    let helo = bench.screen.said_helo(bench.now, b, "mx.example.org");
    assert_eq!(helo, Ok(None));
    bench.pass(200_000);
    assert_eq!(bench.due(), []);
    bench.pass(100_000);
    let idle = Due::Close(Reason::Idle);
    assert_eq!(bench.due(), [(a, idle), (b, idle)]);
}

#[test]
fn trust_has_a_deadline_also_while_answers_are_awaited() {
    let mut bench = bench();
    let ticket = bench.ticket("192.0.2.1");
    for _ in 0..3 {
        bench.pass(195_000);
        bench.mail(ticket);
    }
    bench.pass(1_000);
    bench.recipient(ticket);
    bench.screen.activity(bench.now, ticket).unwrap();
    bench.pass(13_000);
    assert_eq!(bench.due(), []);
    bench.pass(1_000);
    assert_eq!(bench.due(), [(ticket, Due::Close(Reason::Slow))]);
}

#[test]
fn signs_of_life_do_not_move_the_deadline_of_answers() {
    let mut bench = bench();
    let ticket = bench.ticket("192.0.2.1");
    bench.mail(ticket);
    bench.recipient(ticket);
    bench.pass(15_000);
    bench.screen.activity(bench.now, ticket).unwrap();
    bench.pass(5_000);
    let deferred = Decision::Defer(Reason::RecipientDeferred);
    assert_eq!(bench.due(), [(ticket, Due::Decided(deferred))]);
}

#[test]
fn a_command_before_the_greeting_is_due_greets() {
    let mut bench = Bench::new(Terms::default());
    let ticket = bench.ticket("192.0.2.1");
    bench.screen.command(bench.now, ticket).unwrap();
    bench.pass(299_000);
    assert_eq!(bench.due(), []);
    bench.pass(1_000);
    assert_eq!(bench.due(), [(ticket, Due::Close(Reason::Idle))]);
}

#[test]
fn new_terms_hold_from_the_next_event() {
    let mut bench = bench();
    let ticket = bench.ticket("192.0.2.1");
    let mut terms = Terms::default();
    terms.deadlines.first_command = std::time::Duration::from_secs(90);
    terms.deadlines.idle = std::time::Duration::from_secs(5);
    bench.screen.set_terms(terms);
    bench.pass(60_000);
    assert_eq!(bench.due(), []);
    bench.screen.command(bench.now, ticket).unwrap();
    bench.pass(5_000);
    assert_eq!(bench.due(), [(ticket, Due::Close(Reason::Idle))]);
}

#[test]
fn a_clock_that_is_set_moves_no_deadline_for_long() {
    let mut bench = bench();
    let ticket = bench.ticket("192.0.2.1");
    bench.pass(30_000);
    assert_eq!(bench.due(), []);
    bench.now = Timestamp::ZERO;
    assert_eq!(bench.due(), []);
    let next = bench.screen.next_due().unwrap();
    assert_eq!(next, Timestamp::from_millis(30_000));
    bench.now = next;
    assert_eq!(bench.due(), [(ticket, Due::Close(Reason::FirstCommand))]);
}
