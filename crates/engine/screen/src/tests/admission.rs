//! Limits at the connection, the delay before the greeting, and rules of access.

use std::time::Duration;

use super::*;
use crate::{Access, EarlyTalk, Greeting, Network, Rate, Reason, Rule, StaleTicket, Subject};

fn turned_away(bench: &mut Bench, client: &str) -> Reason {
    bench.arrive(client).unwrap_err().0
}

fn rule(subject: Subject, access: Access) -> Rule {
    Rule { subject, access }
}

fn network(text: &str, bits: u8) -> Subject {
    Subject::Network(Network::new(text.parse().unwrap(), bits).unwrap())
}

#[test]
fn open_connections_are_limited_in_all_per_address_and_per_network() {
    let mut bench = Bench::without_delay(|terms| {
        terms.limits.connections_max = 5;
        terms.limits.connections_per_address_max = 2;
        terms.limits.connections_per_network_max = 3;
    });
    let first = bench.ticket("192.0.2.1");
    bench.ticket("192.0.2.1");
    assert_eq!(
        turned_away(&mut bench, "192.0.2.1"),
        Reason::ConnectionsOfAddress
    );
    bench.ticket("192.0.2.2");
    assert_eq!(
        turned_away(&mut bench, "192.0.2.3"),
        Reason::ConnectionsOfNetwork
    );
    bench.ticket("192.0.3.1");
    bench.ticket("2001:db8::1");
    assert_eq!(
        turned_away(&mut bench, "198.51.100.1"),
        Reason::ConnectionsInAll
    );
    bench.screen.left(first).unwrap();
    bench.screen.set_connections_max(4);
    assert_eq!(
        turned_away(&mut bench, "192.0.2.1"),
        Reason::ConnectionsInAll
    );
    bench.screen.set_connections_max(5);
    bench.ticket("192.0.2.1");
    assert_eq!(bench.screen.open(), 5);
    let tally = bench.screen.take_tally();
    assert_eq!((tally.arrived, tally.trusted), (10, 0));
    assert_eq!(tally.turned_away(Reason::ConnectionsOfAddress), 1);
    assert_eq!(tally.turned_away(Reason::ConnectionsOfNetwork), 1);
    assert_eq!(tally.turned_away(Reason::ConnectionsInAll), 2);
    assert_eq!(bench.screen.take_tally().arrived, 0);
}

#[test]
fn a_handed_over_connection_counts_until_it_is_done() {
    let mut bench = Bench::without_delay(|terms| terms.limits.connections_per_address_max = 1);
    let ticket = bench.ticket("192.0.2.1");
    bench.screen.trusted(bench.now, ticket).unwrap();
    assert_eq!(
        turned_away(&mut bench, "192.0.2.1"),
        Reason::ConnectionsOfAddress
    );
    assert_eq!(bench.screen.trusted(bench.now, ticket), Err(StaleTicket));
    assert_eq!(bench.screen.command(bench.now, ticket), Err(StaleTicket));
    bench.pass(3_600_000);
    assert_eq!(bench.due(), [], "the worker has its own deadlines");
    bench.screen.done(bench.now, ticket, 0).unwrap();
    assert_eq!(bench.screen.done(bench.now, ticket, 0), Err(StaleTicket));
    bench.ticket("192.0.2.1");
    assert_eq!(bench.screen.take_tally().trusted, 1);
}

#[test]
fn arrivals_are_limited_per_address_and_per_network() {
    let mut bench = Bench::without_delay(|terms| {
        terms.limits.arrivals_per_address = Rate::per_minute(2);
        terms.limits.arrivals_per_network = Rate::per_minute(3);
    });
    bench.ticket("192.0.2.1");
    bench.ticket("192.0.2.1");
    assert_eq!(
        turned_away(&mut bench, "192.0.2.1"),
        Reason::ArrivalsOfAddress
    );
    bench.ticket("192.0.2.2");
    assert_eq!(
        turned_away(&mut bench, "192.0.2.3"),
        Reason::ArrivalsOfNetwork
    );
    bench.pass(20_000);
    bench.ticket("192.0.2.3");
    assert_eq!(
        turned_away(&mut bench, "192.0.2.1"),
        Reason::ArrivalsOfAddress
    );
    bench.pass(20_000);
    bench.ticket("192.0.2.1");
}

#[test]
fn a_clock_that_jumps_locks_nobody_out() {
    let mut bench =
        Bench::without_delay(|terms| terms.limits.arrivals_per_address = Rate::per_minute(2));
    for _ in 0..2 {
        bench.ticket("192.0.2.1");
    }
    bench.now = Timestamp::ZERO;
    assert_eq!(
        turned_away(&mut bench, "192.0.2.1"),
        Reason::ArrivalsOfAddress
    );
    bench.pass(30_000);
    bench.ticket("192.0.2.1");
    bench.now = Timestamp::MAX;
    bench.ticket("192.0.2.1");
    bench.ticket("192.0.2.1");
    bench.now = Timestamp::from_millis(START);
    bench.pass(30_000);
    turned_away(&mut bench, "192.0.2.1");
    bench.pass(30_000);
    bench.ticket("192.0.2.1");
}

#[test]
fn an_address_with_too_many_refused_recipients_comes_back_later() {
    let mut bench = Bench::without_delay(|terms| {
        terms.limits.refusals_max = 100;
        terms.limits.refused_per_address = Rate::per_hour(4);
        terms.limits.refused_per_network = Rate::per_hour(6);
    });
    let ticket = bench.ticket("192.0.2.1");
    bench.mail(ticket);
    for (recipient, reason) in [
        (Recipient::Unknown, Reason::RecipientUnknown),
        (Recipient::Refused, Reason::RecipientRefused),
        (Recipient::Unknown, Reason::RecipientUnknown),
        (Recipient::Unknown, Reason::RecipientUnknown),
    ] {
        assert_eq!(bench.decided(ticket, recipient), Decision::Refuse(reason));
    }
    assert_eq!(turned_away(&mut bench, "192.0.2.1"), Reason::Refusals);
    assert_eq!(
        bench.decided(ticket, Recipient::Unknown),
        Decision::Close(Reason::Refusals)
    );
    bench.screen.left(ticket).unwrap();
    let other = bench.ticket("192.0.2.2");
    bench.mail(other);
    bench.decided(other, Recipient::Unknown);
    assert_eq!(
        turned_away(&mut bench, "192.0.2.3"),
        Reason::Refusals,
        "six of the network"
    );
    assert_eq!(
        bench.decided(other, Recipient::Unknown),
        Decision::Close(Reason::Refusals)
    );
    bench.pass(3_600_000 / 6);
    bench.ticket("192.0.2.3");
    assert_eq!(turned_away(&mut bench, "192.0.2.1"), Reason::Refusals);
    bench.pass(3_600_000 / 12);
    bench.ticket("192.0.2.1");
}

#[test]
fn refusals_of_a_worker_count_for_the_address() {
    let mut bench = Bench::without_delay(|terms| {
        terms.limits.refused_per_address = Rate::per_hour(3);
    });
    let ticket = bench.ticket("192.0.2.1");
    bench.screen.trusted(bench.now, ticket).unwrap();
    bench.screen.done(bench.now, ticket, 2).unwrap();
    let ticket = bench.ticket("192.0.2.1");
    bench.screen.done(bench.now, ticket, u32::MAX).unwrap();
    assert_eq!(turned_away(&mut bench, "192.0.2.1"), Reason::Refusals);
    assert_eq!(bench.screen.open(), 0);
}

#[test]
fn clients_are_greeted_after_the_delay_in_the_order_of_arrival() {
    let mut terms = Terms::default();
    terms.banner.delay = Duration::from_millis(1_500);
    let mut bench = Bench::new(terms);
    assert_eq!(bench.screen.next_due(), None);
    let first = bench.arrive("192.0.2.1").unwrap();
    assert_eq!(
        first.greeting,
        Greeting::At(Timestamp::from_millis(START + 1_500))
    );
    bench.pass(100);
    let second = bench.ticket("192.0.2.2");
    assert_eq!(
        bench.screen.next_due(),
        Some(Timestamp::from_millis(START + 1_500))
    );
    bench.pass(1_399);
    assert_eq!(bench.due(), []);
    bench.pass(1);
    assert_eq!(bench.due(), [(first.ticket, Due::Greet)]);
    bench.pass(100);
    assert_eq!(bench.due(), [(second, Due::Greet)]);
    assert_eq!(
        bench.screen.next_due(),
        Some(Timestamp::from_millis(START + 62_000)),
        "the first command, a second late at most"
    );
}

#[test]
fn an_address_that_was_trusted_is_greeted_at_once_for_a_while() {
    let mut terms = Terms::default();
    terms.banner.familiar = Duration::from_secs(600);
    let mut bench = Bench::new(terms);
    let ticket = bench.ticket("192.0.2.1");
    bench.screen.trusted(bench.now, ticket).unwrap();
    bench.screen.done(bench.now, ticket, 0).unwrap();
    bench.pass(600_000);
    assert_eq!(bench.arrive("192.0.2.1").unwrap().greeting, Greeting::Now);
    assert_ne!(bench.arrive("192.0.2.2").unwrap().greeting, Greeting::Now);
    bench.pass(1);
    assert_ne!(bench.arrive("192.0.2.1").unwrap().greeting, Greeting::Now);
}

#[test]
fn a_client_that_speaks_early_is_closed() {
    let mut bench = Bench::new(Terms::default());
    let ticket = bench.ticket("192.0.2.1");
    let decision = Decision::Close(Reason::EarlyTalk);
    assert_eq!(bench.screen.spoke_early(ticket), Ok(Some(decision)));
    assert_eq!(bench.screen.spoke_early(ticket), Err(StaleTicket));
    bench.pass(10_000);
    assert_eq!(bench.due(), []);
    assert!(bench.screen.findings(ticket).unwrap().early);
    bench.screen.left(ticket).unwrap();
    assert_eq!(bench.screen.take_tally().of(Reason::EarlyTalk), 1);
    let greeted = bench.ticket("192.0.2.2");
    bench.pass(2_000);
    assert_eq!(bench.due(), [(greeted, Due::Greet)]);
    assert_eq!(bench.screen.spoke_early(greeted), Ok(None));
    assert!(!bench.screen.findings(greeted).unwrap().early);
}

#[test]
fn an_early_client_may_be_kept_without_questions_or_be_forgiven() {
    for (early, kept) in [(EarlyTalk::Wait, true), (EarlyTalk::Ignore, false)] {
        let mut terms = Terms::default();
        terms.banner.early = early;
        terms.lists = Some(crate::ListPolicy::default());
        terms.spf = Some(crate::SpfPolicy::default());
        let mut bench = Bench::new(terms);
        let ticket = bench.ticket("192.0.2.1");
        assert_eq!(bench.screen.spoke_early(ticket), Ok(None));
        bench.pass(2_000);
        assert_eq!(bench.due(), [(ticket, Due::Greet)]);
        let questions = bench.mail(ticket);
        assert_eq!((questions.lists, questions.spf), (!kept, !kept));
        let step = bench.screen.recipient(bench.now, ticket, "bob@example.net");
        let refused = Ok(Step::Decided(Decision::Refuse(Reason::EarlyTalk)));
        assert_eq!(step == refused, kept);
    }
}

#[test]
fn rules_about_networks_decide_at_the_connection() {
    let mut bench = Bench::new(Terms {
        access: vec![
            rule(network("192.0.2.7", 32), Access::Ordinary),
            rule(network("192.0.2.0", 24), Access::Refuse),
            rule(network("2001:db8::", 32), Access::Allow),
        ],
        ..Terms::default()
    });
    assert_eq!(turned_away(&mut bench, "192.0.2.1"), Reason::Access);
    assert_eq!(bench.screen.remembered(), (0, 0, 0));
    assert_ne!(bench.arrive("192.0.2.7").unwrap().greeting, Greeting::Now);
    assert_eq!(bench.arrive("2001:db8::1").unwrap().greeting, Greeting::Now);
}

#[test]
fn an_allowed_client_has_neither_rates_nor_questions_nor_greylisting() {
    let mut bench = Bench::without_delay(|terms| {
        terms.access = vec![
            rule(network("192.0.2.0", 24), Access::Allow),
            rule(Subject::Sender("example.org".into()), Access::Refuse),
        ];
        terms.limits.connections_per_address_max = 1;
        terms.lists = Some(crate::ListPolicy::default());
        terms.spf = Some(crate::SpfPolicy::default());
        terms.greylisting = Some(crate::Greylisting::default());
    });
    bench.ticket("192.0.2.1");
    let ticket = bench.ticket("192.0.2.1");
    let findings = bench.screen.findings(ticket).unwrap();
    assert_eq!(findings.access, Access::Allow);
    let questions = bench.mail(ticket);
    assert_eq!((questions.lists, questions.spf), (false, false));
    assert_eq!(
        bench.decided(ticket, Recipient::Unknown),
        Decision::Refuse(Reason::RecipientUnknown)
    );
    assert_eq!(bench.decided(ticket, Recipient::Accepted), Decision::Accept);
}

#[test]
fn rules_about_helo_and_senders_refuse_at_their_commands() {
    let mut bench = Bench::without_delay(|terms| {
        terms.limits.refusals_max = 4;
        terms.access = vec![
            rule(Subject::Sender("bad@example.org".into()), Access::Refuse),
            rule(Subject::Helo("good.example.com".into()), Access::Allow),
            rule(Subject::Helo(".example.com".into()), Access::Refuse),
            rule(Subject::Sender("example.net".into()), Access::Refuse),
        ];
        terms.spf = Some(crate::SpfPolicy::default());
    });
    let refused = Decision::Refuse(Reason::Access);
    let ticket = bench.ticket("192.0.2.1");
    let now = bench.now;
    let screen = &mut bench.screen;
    assert_eq!(
        screen.said_helo(now, ticket, "bad.example.com"),
        Ok(Some(refused))
    );
    let mail = screen.mail(now, ticket, "alice@example.org");
    assert_eq!(mail, Ok(Step::Decided(refused)), "HELO was refused");
    assert_eq!(screen.said_helo(now, ticket, "mx.example.org"), Ok(None));
    let mail = screen.mail(now, ticket, "alice@example.org").unwrap();
    assert!(asked(mail).spf);
    assert_eq!(screen.said_helo(now, ticket, "good.example.com"), Ok(None));
    let mail = screen.mail(now, ticket, "x@example.net").unwrap();
    assert!(!asked(mail).spf, "the rule about HELO stands before");
    assert_eq!(screen.findings(ticket).unwrap().access, Access::Allow);
    let mail = screen.mail(now, ticket, "bad@example.org");
    assert_eq!(mail, Ok(Step::Decided(refused)));
    let recipient = screen.recipient(now, ticket, "bob@example.net");
    assert_eq!(
        recipient,
        Ok(Step::Decided(Decision::Close(Reason::Refusals))),
        "the fourth refusal"
    );
}
