//! Bounds of memory.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;
use crate::Greylisting;

#[test]
fn a_million_addresses_do_not_grow_the_tables() {
    let mut bench = Bench::without_delay(|terms| {
        terms.limits.connections_max = 100;
        terms.limits.addresses = 4_096;
        terms.limits.networks = 1_024;
        terms.greylisting = Some(Greylisting {
            entries: 2_000,
            ..Greylisting::default()
        });
    });
    let kept = bench.ticket("203.0.113.1");
    let mut allocated = 0;
    for number in 0..1_000_000_u32 {
        let client: IpAddr = if number % 2 == 0 {
            Ipv4Addr::from(number.wrapping_mul(2_654_435_761)).into()
        } else {
            Ipv6Addr::from(u128::from(number) << 64).into()
        };
        let ticket = bench.screen.arrive(bench.now, client).unwrap().ticket;
        if number % 16 == 0 {
            bench.mail(ticket);
            bench.decided(ticket, Recipient::Accepted);
        }
        bench.screen.left(ticket).unwrap();
        bench.pass(1);
        // An index may double once, when entries that left have used up its spare places.
        if number == 500_000 {
            allocated = self::allocated(&bench.screen);
        }
    }
    assert_eq!(bench.screen.remembered(), (4_096, 1_024, 2_000));
    assert_eq!(self::allocated(&bench.screen), allocated);
    assert!(allocated < 900_000, "{allocated}");
    assert_eq!(bench.screen.open(), 1);
    bench.screen.left(kept).unwrap();
    assert_eq!(bench.screen.crowd.addresses.open_sum(), 0);
    assert_eq!(bench.screen.crowd.networks.open_sum(), 0);
}

fn allocated(screen: &Screen) -> usize {
    screen.crowd.addresses.allocated()
        + screen.crowd.networks.allocated()
        + screen.greylist.allocated()
}

#[test]
fn tables_have_room_for_every_connection() {
    let mut bench = Bench::without_delay(|terms| {
        terms.limits.connections_max = 50;
        terms.limits.addresses = 1;
        terms.limits.networks = 1;
    });
    let arrive = |bench: &mut Bench, number: u32| {
        let client = IpAddr::from(Ipv4Addr::from(number << 8));
        bench.screen.arrive(bench.now, client)
    };
    for number in 0..50 {
        arrive(&mut bench, number).unwrap();
    }
    let mut terms = bench.screen.terms.clone();
    terms.limits.connections_max = 60;
    bench.screen.set_terms(terms);
    let turned_away = arrive(&mut bench, 50).unwrap_err();
    assert_eq!(
        turned_away.0,
        crate::Reason::ConnectionsInAll,
        "the tables keep their size"
    );
    arrive(&mut bench, 49).unwrap();
}
