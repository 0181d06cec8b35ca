//! Queues whose mail goes another way by an operator's order.

use super::*;
use crate::destination::Place;
use crate::envelope::TlsWish;
use crate::order::{Detour, FOREVER};
use crate::site::SiteName;

fn elsewhere() -> Place {
    Place::Relay("mx.example:25".to_owned())
}

fn detour(to: Place, until: Timestamp) -> Order {
    Order {
        detour: Some(Detour { to, until }),
        ..Order::none(Destination::domain("example.net".to_owned()))
    }
}

#[test]
fn another_way_holds_until_its_time_for_queues_that_come_later_too() {
    let mut queues = queues_with(1);
    let own = Destination::domain("example.net".to_owned());
    assert_eq!(queues.way(QUEUE, at(0)), Some(own.clone()));
    queues.set_order(detour(elsewhere(), at(100)), RecordId(3), at(0));
    assert_eq!(queues.way(QUEUE, at(99)), Some(elsewhere().into()));
    assert_eq!(queues.way(QUEUE, at(100)), Some(own.clone()));
    queues.set_order(detour(elsewhere(), FOREVER), RecordId(4), at(0));
    assert_eq!(queues.way(QUEUE, at(1_000_000)), Some(elsewhere().into()));
    queues.set_order(Order::none(own.clone()), RecordId(0), at(0));
    assert_eq!(queues.way(QUEUE, at(0)), Some(own.clone()));

    let mut recovered = Queues::new(Policy::default());
    recovered.set_order(detour(elsewhere(), at(100)), RecordId(3), at(0));
    recovered.register(QUEUE, own.clone(), at(0));
    assert_eq!(recovered.way(QUEUE, at(1)), Some(elsewhere().into()));
    assert_eq!(recovered.wake_at(), Some(at(100)));
}

#[test]
fn the_wishes_of_senders_go_along() {
    let mut queues = Queues::new(Policy::default());
    let own = Place::Domain("example.net".to_owned()).with(TlsWish::Required);
    queues.register(QUEUE, own.clone(), at(0));
    let order = Order {
        destination: own,
        ..detour(elsewhere(), FOREVER)
    };
    queues.set_order(order, RecordId(3), at(0));
    let way = elsewhere().with(TlsWish::Required);
    assert_eq!(queues.way(QUEUE, at(0)), Some(way));
}

/// Connections that are opened once the heads are back that the queue let go of.
fn opened_with_heads(queues: &mut Queues, now: Timestamp) -> usize {
    let mut count = 0;
    while let Some(next) = queues.poll(now) {
        match next {
            Next::Fetch(wanted) => {
                let from = wanted.from.0;
                let records = from..from + u64::from(wanted.records);
                let block = records.map(|record| (RecordId(record), fresh(record, at(0)), BODY));
                queues.supply(&wanted, block);
            }
            Next::Open(_) => count += 1,
            Next::Wake(_) | Next::Release(_) => {}
        }
    }
    count
}

/// What failed on the way before does not hold up the one that comes, and the other way round.
#[test]
fn a_site_that_fails_is_left_with_the_way_to_it() {
    let mut queues = queues_with(2);
    assert!(opened(&mut queues, at(0)) > 0);
    let site = SiteName::new([("dead.example", 25)], None);
    assert!(queues.join_site(QUEUE, &site, at(0)));
    queues.site_failed(QUEUE, "no route", at(0));
    queues.worker_ended(QUEUE, true);
    queues.worker_ended(QUEUE, true);
    assert_eq!(opened(&mut queues, at(1)), 0, "the site is suspended");
    queues.set_order(detour(elsewhere(), at(10)), RecordId(3), at(1));
    assert_eq!(queues.totals().paused, 0);
    assert!(opened_with_heads(&mut queues, at(1)) > 0, "at once");
    let other = SiteName::new([("dead2.example", 25)], None);
    assert!(queues.join_site(QUEUE, &other, at(1)));
    queues.site_failed(QUEUE, "no route", at(1));
    assert_eq!(queues.totals().paused, 1);
    while queues.poll(at(10)).is_some() {}
    assert_eq!(queues.totals().paused, 0, "its time is over");
    assert_eq!(queues.queues.get(QUEUE).and_then(|queue| queue.site), None);
}
