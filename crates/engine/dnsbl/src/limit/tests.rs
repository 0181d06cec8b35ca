use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

const RATES: Rates = Rates {
    per_network: [100, 50, 10],
    surplus: 0,
    slip: 2,
    networks: 1_024,
};
/// The octets of a query, and of an answer that says that the name does not exist.
const SIZES: (usize, usize) = (40, 100);

fn v4(number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(number))
}

/// Counts the verdicts on `count` queries in a row: sent, slipped, dropped.
fn ask(
    limiter: &mut Limiter,
    client: impl Fn(u32) -> IpAddr,
    kind: AnswerKind,
    count: u32,
    at: impl Fn(u32) -> u32,
) -> [u32; 3] {
    let mut seen = [0; 3];
    for number in 0..count {
        let verdict = limiter.check(client(number), kind, SIZES, at(number));
        seen[match verdict {
            Verdict::Send => 0,
            Verdict::Slip => 1,
            Verdict::Drop => 2,
        }] += 1;
    }
    seen
}

#[test]
fn a_network_gets_its_rate_of_each_kind() {
    let mut limiter = Limiter::new(RATES, (1, 2));
    let client = |number: u32| v4(0xc000_0200 | (number % 256));
    use AnswerKind::{Error, Negative, Positive};
    for (kind, rate) in [(Positive, 100), (Negative, 50), (Error, 10)] {
        let seen = ask(&mut limiter, client, kind, 300, |_| 5_000);
        assert_eq!(seen[0], rate, "{kind:?}");
        assert_eq!(seen[1], (300 - rate) / 2, "{kind:?}");
        // Ten seconds of ten times the rate.
        let seen = ask(&mut limiter, client, kind, rate * 100, |number| {
            6_000 + number * 100 / rate
        });
        assert!(
            (rate * 10..=rate * 11).contains(&seen[0]),
            "{kind:?} {seen:?}"
        );
    }
    // The neighbour is another network.
    let other = ask(&mut limiter, |_| v4(0xc000_0300), Positive, 100, |_| 16_000);
    assert_eq!(other, [100, 0, 0]);
}

#[test]
fn an_ipv6_network_has_56_bits_and_a_mapped_address_is_ipv4() {
    let mut limiter = Limiter::new(RATES, (1, 2));
    let inside = |number: u32| {
        let low = u128::from(number) << 64;
        IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8_0000_0100 << 64 | low))
    };
    let kind = AnswerKind::Error;
    let seen = ask(&mut limiter, inside, kind, 255, |_| 0);
    assert_eq!(seen[0], 10);
    let outside = IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8_0000_0200 << 64));
    assert_eq!(limiter.check(outside, kind, SIZES, 0), Verdict::Send);
    let mapped = IpAddr::V6(Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped());
    assert_eq!(ask(&mut limiter, |_| mapped, kind, 20, |_| 0)[0], 10);
    assert_ne!(
        limiter.check(v4(0xc000_0202), kind, SIZES, 0),
        Verdict::Send
    );
}

/// The upper bits of both networks are the same number.
#[test]
fn a_network_of_ipv6_shares_nothing_with_one_of_ipv4() {
    let mut limiter = Limiter::new(RATES, (1, 2));
    let kind = AnswerKind::Error;
    let four = v4(0xc000_0201);
    let six = IpAddr::V6(Ipv6Addr::from_bits(0xc0_0002 << 72));
    assert_eq!(ask(&mut limiter, |_| four, kind, 20, |_| 0)[0], 10);
    assert_eq!(ask(&mut limiter, |_| six, kind, 20, |_| 0)[0], 10);
}

#[test]
fn slip_chooses_the_stubs() {
    for (slip, stubs) in [(0, 0), (1, 200), (2, 100), (5, 40)] {
        let mut limiter = Limiter::new(Rates { slip, ..RATES }, (1, 2));
        let seen = ask(&mut limiter, |_| v4(1), AnswerKind::Positive, 300, |_| 0);
        assert_eq!(seen, [100, stubs, 200 - stubs]);
    }
}

#[test]
fn the_clock_may_wrap() {
    let mut limiter = Limiter::new(RATES, (1, 2));
    let start = u32::MAX - 500;
    let kind = AnswerKind::Negative;
    let seen = ask(&mut limiter, |_| v4(1), kind, 60, |_| start);
    assert_eq!(seen[0], 50);
    let seen = ask(
        &mut limiter,
        |_| v4(1),
        kind,
        60,
        |_| start.wrapping_add(1_000),
    );
    assert_eq!(seen[0], 50);
}

/// A flood from more networks than the table has slots does not free a network that is over its rate.
#[test]
fn new_networks_do_not_empty_full_buckets() {
    let rates = Rates {
        networks: 64,
        ..RATES
    };
    let mut limiter = Limiter::new(rates, (3, 4));
    let kind = AnswerKind::Positive;
    assert_eq!(ask(&mut limiter, |_| v4(0), kind, 1_000, |_| 0)[0], 100);
    let strangers = ask(&mut limiter, |number| v4(number << 8), kind, 50_000, |_| 0);
    // 16 sets of 4 slots of 100 answers, one of which was used up.
    assert!(strangers[0] <= 64 * 100, "{strangers:?}");
    assert_eq!(limiter.sets.len() * SET, 64);
}

#[test]
fn each_kind_has_its_rate_at_the_same_time() {
    let mut limiter = Limiter::new(RATES, (1, 2));
    use AnswerKind::{Error, Negative, Positive};
    for (kind, rate) in [(Positive, 100), (Negative, 50), (Error, 10)] {
        assert_eq!(ask(&mut limiter, |_| v4(1), kind, 200, |_| 0)[0], rate);
    }
}

#[test]
fn networks_of_one_set_have_their_own_rates() {
    let rates = Rates {
        networks: SET,
        ..RATES
    };
    let mut limiter = Limiter::new(rates, (3, 4));
    let kind = AnswerKind::Error;
    for network in 1..=4 {
        let seen = ask(&mut limiter, |_| v4(network << 8), kind, 20, |_| 0);
        assert_eq!(seen[0], 10, "{network}");
    }
    assert_eq!(ask(&mut limiter, |_| v4(1 << 8), kind, 20, |_| 0)[0], 0);
}

/// A network that takes the place of another begins with what is left of the other's level.
#[test]
fn the_level_of_a_place_sinks_at_the_rate_of_its_kind() {
    use AnswerKind::{Error, Positive};
    for (first, left) in [(Positive, 50), (Error, 5)] {
        let rates = Rates {
            networks: SET,
            ..RATES
        };
        let mut limiter = Limiter::new(rates, (3, 4));
        for (network, kind) in [(1, first), (2, Positive), (3, Positive), (4, Positive)] {
            ask(&mut limiter, |_| v4(network << 8), kind, 200, |_| 0);
        }
        let seen = ask(&mut limiter, |_| v4(5 << 8), Positive, 200, |_| 500);
        assert_eq!(seen[0], 100 - left, "{first:?}");
    }
}

/// Levels of higher rates would not fit.
#[test]
fn a_rate_is_a_million_at_most() {
    let rates = Rates {
        per_network: [u32::MAX; 3],
        ..RATES
    };
    let mut limiter = Limiter::new(rates, (1, 2));
    let seen = ask(&mut limiter, |_| v4(1), AnswerKind::Error, 1_000_010, |_| 0);
    assert_eq!(seen[0], 1_000_000);
}

/// The settings where nothing is said.
const DEFAULTS: Rates = Rates {
    per_network: [100, 100, 20],
    surplus: 224 << 10,
    slip: 2,
    networks: 65_536,
};

/// Octets out for each octet in, under three seconds of a flood of `rate` queries a second from `networks` spoofed
/// networks, with queries and answers of these `sizes`.
fn amplification(rates: Rates, networks: u32, rate: u32, sizes: (usize, usize)) -> f64 {
    let mut limiter = Limiter::new(rates, (5, 6));
    let mut out = 0;
    for number in 0..3 * rate {
        let client = v4((number.wrapping_mul(2_654_435_761) % networks) << 8);
        let now = (u64::from(number) * 1_000 / u64::from(rate)) as u32;
        out += match limiter.check(client, AnswerKind::Negative, sizes, now) {
            Verdict::Send => sizes.1,
            Verdict::Slip => sizes.0,
            Verdict::Drop => 0,
        };
    }
    out as f64 / (3 * rate as usize * sizes.0) as f64
}

#[test]
fn a_spoofed_flood_is_not_multiplied() {
    let off = Rates {
        per_network: [0; 3],
        ..RATES
    };
    assert!(amplification(off, 1, 25_000, SIZES) > 2.4);
    for networks in [1, 200, 256, 20_000, 65_536, 1 << 24] {
        // 0.5, 1 and 4 MB/s.
        for rate in [12_500, 25_000, 100_000] {
            let ratio = amplification(DEFAULTS, networks, rate, SIZES);
            assert!(ratio <= 1.5, "{networks} networks, {rate}/s: {ratio}");
        }
    }
}

/// A flood that knows the bounds asks for answers just above the part that is free.
#[test]
fn no_length_of_answers_is_worth_a_flood_of_one_megabyte() {
    for answer in [50, 51, 55, 60, 61, 65, 80, 512] {
        for networks in [200, 20_000] {
            let ratio = amplification(DEFAULTS, networks, 25_000, (40, answer));
            assert!(
                ratio <= 1.5,
                "{networks} networks, {answer} octets: {ratio}"
            );
        }
    }
}

/// The share of one of many threads sinks at its own speed.
#[test]
fn a_small_surplus_is_not_rounded_up() {
    let rates = Rates {
        per_network: [0; 3],
        surplus: 100,
        ..RATES
    };
    let mut limiter = Limiter::new(rates, (5, 6));
    let kind = AnswerKind::Positive;
    // Ten seconds; an answer has 50 octets of surplus.
    let seen = ask(&mut limiter, v4, kind, 10_000, |number| number);
    assert_eq!(seen[0], 10 * 100 / 50);
}

/// The surplus is what exceeds 1.25 times the query: small answers pass while the bucket is full.
#[test]
fn answers_as_small_as_their_queries_pass_the_common_bound() {
    let rates = Rates {
        per_network: [0; 3],
        surplus: 1_000,
        ..RATES
    };
    let mut limiter = Limiter::new(rates, (5, 6));
    let kind = AnswerKind::Positive;
    for _ in 0..100 {
        assert_eq!(limiter.check(v4(1), kind, (40, 50), 0), Verdict::Send);
    }
    let sent = ask(&mut limiter, v4, kind, 1_000, |_| 0)[0];
    assert_eq!(sent, 250 / 50);
    assert_eq!(limiter.check(v4(1), kind, (40, 50), 0), Verdict::Send);
    assert_eq!(limiter.check(v4(1), kind, SIZES, 1_000), Verdict::Send);
}
