//! The order in which connections make room.

use super::*;
use crate::{Reason, StaleTicket};

#[test]
fn clients_before_their_greeting_go_first_and_then_the_fullest_network() {
    let mut bench = Bench::new(Terms::default());
    let greeted: Vec<Ticket> = [
        "192.0.2.1",
        "192.0.3.1",
        "192.0.3.2",
        "192.0.3.3",
        "192.0.2.2",
        "192.0.4.1",
    ]
    .iter()
    .map(|client| bench.ticket(client))
    .collect();
    bench.pass(2_000);
    assert_eq!(bench.due().len(), 6);
    let waiting = [bench.ticket("192.0.2.9"), bench.ticket("2001:db8::1")];
    bench.screen.trusted(bench.now, greeted[1]).unwrap();
    let expected = [
        waiting[0], waiting[1],
        // Two networks have two connections: 192.0.2.0/24, and 192.0.3.0/24, which had three before.
        greeted[0], greeted[2], // All have one, the longest 192.0.4.0/24.
        greeted[5], greeted[4], greeted[3],
    ];
    let found: Vec<Ticket> = std::iter::from_fn(|| bench.screen.evict()).collect();
    assert_eq!(found, expected, "the trusted one never");
    assert_eq!(bench.screen.take_tally().of(Reason::Evicted), 7);
    bench.pass(3_600_000);
    assert_eq!(bench.due(), []);
    assert_eq!(
        bench.screen.command(bench.now, greeted[0]),
        Err(StaleTicket)
    );
    for ticket in expected {
        bench.screen.left(ticket).unwrap();
    }
    assert_eq!(bench.screen.open(), 1);
}

#[test]
fn connections_that_leave_are_not_chosen() {
    let mut bench = Bench::without_delay(|_| ());
    let tickets: Vec<Ticket> = (0..4).map(|_| bench.ticket("192.0.2.1")).collect();
    let other = bench.ticket("198.51.100.1");
    bench.screen.left(tickets[0]).unwrap();
    bench.screen.left(tickets[2]).unwrap();
    assert_eq!(bench.screen.evict(), Some(tickets[1]));
    bench.screen.left(tickets[3]).unwrap();
    assert_eq!(bench.screen.evict(), Some(other));
    assert_eq!(bench.screen.evict(), None);
}
