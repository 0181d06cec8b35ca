use super::*;

/// A client, another one of its network, and clients of two other networks.
const NETWORKS: [[&str; 4]; 3] = [
    ["192.0.2.1", "192.0.2.255", "192.0.3.1", "192.1.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.7", "192.0.3.1", "2001:db8::1"],
    [
        "2001:db8:0:1::1",
        "2001:db8:0:1:ffff::",
        "2001:db8:0:2::1",
        "2001:db8:1:1::1",
    ],
];

#[test]
fn the_clients_of_a_network_share_and_others_do_not() {
    let shares = Shares::default();
    let take = |client: &str| Share::take(&shares, client.parse().unwrap(), 2);
    for [client, neighbour, other, far] in NETWORKS {
        let first = take(client);
        let second = take(neighbour);
        assert!(first.is_some() && second.is_some());
        assert!(take(client).is_none() && take(neighbour).is_none());
        let others = [other, far, other, far].map(take);
        assert!(others.iter().all(Option::is_some), "{client}");
        // What one gives back another has.
        drop(first);
        let third = take(neighbour);
        assert!(third.is_some() && take(client).is_none());
        drop((second, third, others));
        assert!(shares.borrow().is_empty(), "networks without questions");
    }
}

#[test]
fn a_site_is_wider_than_a_network_of_ipv6() {
    let turns = Turns::new(1);
    let of = |client: &str| turns.of_site(client.parse().unwrap());
    let held = ["192.0.2.1", "2001:db8:0:1::1"].map(of);
    let held = held.each_ref().map(|turns| turns.try_acquire().unwrap());
    for near in ["192.0.2.9", "::ffff:192.0.2.3", "2001:db8:0:ffff::1"] {
        assert!(of(near).try_acquire().is_err(), "{near}");
    }
    for far in ["192.0.3.1", "2001:db8:1::1"] {
        assert!(of(far).try_acquire().is_ok(), "{far}");
    }
    drop(held);
}

#[test]
fn a_network_has_its_turns_and_is_forgotten_without_questions() {
    let turns = Turns::new(2);
    let near = turns.of("192.0.2.1".parse().unwrap());
    let first = near.try_acquire().unwrap();
    let same = turns.of("::ffff:192.0.2.200".parse().unwrap());
    let second = same.try_acquire().unwrap();
    assert!(near.try_acquire().is_err());
    assert!(turns.of("192.0.3.1".parse().unwrap()).try_acquire().is_ok());
    drop((first, second));
    for third in 0..=u8::MAX {
        for second in 0..8 {
            turns.of([10, second, third, 1].into());
        }
    }
    assert!(turns.of.borrow().len() <= NETWORKS_KEPT + 1);
    assert!(Arc::ptr_eq(&near, &turns.of("192.0.2.9".parse().unwrap())));
}
