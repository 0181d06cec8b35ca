//! Routes with credentials, sources, encryption towards next hops.

use super::{errors, one_error, parse};
use crate::{DestinationPriority, DestinationScope, NextHop, RoutePattern, TlsMode};

const ROUTE: &str = "[[route]]\ndomain = \"a.b\"\nnext_hop = \"c.d\"\n";

#[test]
fn a_password_comes_from_one_place_and_travels_encrypted() {
    let file = format!("{ROUTE}username = \"u\"\npassword_file = \"secret\"\n");
    one_error(&file, 6, "route[1].username", "needs tls = \"required\"");
    let settings = parse(&format!("{file}tls = \"implicit\"\n")).unwrap();
    let route = &settings.routes[0];
    assert_eq!(route.tls, TlsMode::Implicit);
    let path = route.password_file.as_ref().unwrap();
    assert_eq!(path.to_str(), Some("/etc/vere/secret"));
    assert!(!route.password_in_clear);
    let settings = parse(&format!("{file}password_in_clear = \"yes\"\n")).unwrap();
    assert!(settings.routes[0].password_in_clear);
    one_error(
        &format!("{file}tls = \"required\"\npassword = \"p\"\n"),
        7,
        "route[1].password_file",
        "beside password",
    );
    one_error(
        &format!("{ROUTE}password_file = \"p\"\n"),
        6,
        "route[1].password_file",
        "needs `username`",
    );
    one_error(
        &format!("{ROUTE}username = \"u\"\n"),
        6,
        "route[1].username",
        "password_file",
    );
}

#[test]
fn sources_have_names_that_exist() {
    let sources = "[[source]]\nname = \"bulk\"\nipv4 = \"192.0.2.7\"\nipv6 = \"2001:db8::7\"\n\
                   hostname = \"Bulk.example.org\"\n[[source]]\nname = \"plain\"\n";
    let settings = parse(&format!(
        "[delivery]\nsource = \"plain\"\n{ROUTE}source = \"bulk\"\n\
         [[route]]\ndomain = \"*\"\nnext_hop = \"mx\"\n{sources}"
    ))
    .unwrap();
    let bulk = settings.source("bulk").unwrap();
    assert_eq!(bulk.ipv4.unwrap().to_string(), "192.0.2.7");
    assert_eq!(bulk.ipv6.unwrap().to_string(), "2001:db8::7");
    assert_eq!(bulk.hostname, "bulk.example.org");
    let plain = settings.source("plain").unwrap();
    assert_eq!(plain.hostname, "mx.example.org");
    assert_eq!(settings.routes[0].source.as_deref(), Some("bulk"));
    assert_eq!(settings.routes[1].source.as_deref(), Some("plain"));

    one_error(
        &format!("{ROUTE}source = \"x\"\n"),
        6,
        "route[1].source",
        "no [[source]] named \"x\"",
    );
    one_error(
        "[delivery]\nsource = \"x\"\n",
        4,
        "delivery.source",
        "no [[source]]",
    );
    let twice = "[[source]]\nname = \"a\"\n[[source]]\nname = \"a\"\n";
    one_error(twice, 6, "source[2].name", "stands twice");
    one_error(
        "[[source]]\nname = \"a\"\nipv4 = \"::1\"\n",
        5,
        "source[1].ipv4",
        "expected an IPv4 address",
    );
    one_error(
        "[[source]]\nname = \"a\"\nipv6 = \"192.0.2.1\"\n",
        5,
        "source[1].ipv6",
        "expected an IPv6 address",
    );
}

const LIMITS: &str = "[[delivery.destination]]\n";

#[test]
fn limits_of_destinations_are_read() {
    let settings = parse(&format!(
        "{LIMITS}domain = \".a.b\"\nrate = \"90/1m\"\nburst = 3\npriority = \"low\"\n\
         {LIMITS}next_hop = \"c.d\"\nconnections_max = 2\nconnection_interval = \"2s\"\n\
         {LIMITS}mx = \"*\"\nmessages_per_connection_max = 5\n"
    ))
    .unwrap();
    let [below, hop, all] = &settings.destinations[..] else {
        panic!("{:?}", settings.destinations)
    };
    let pattern = RoutePattern::Subdomains("a.b".to_owned());
    assert_eq!(below.scope, Some(DestinationScope::Domain(pattern)));
    let rate = below.rate.unwrap();
    assert_eq!((rate.messages, rate.per.as_millis()), (90, 60_000));
    assert_eq!(below.burst, Some(3));
    assert_eq!(below.priority, DestinationPriority::Low);
    let host = NextHop::Host {
        host: "c.d".to_owned(),
        port: 25,
    };
    assert_eq!(hop.scope, Some(DestinationScope::NextHop(host)));
    assert_eq!(hop.connections_max, Some(2));
    assert_eq!(hop.connection_interval.unwrap().as_millis(), 2_000);
    assert_eq!(all.scope, Some(DestinationScope::Mx(RoutePattern::Any)));
    assert_eq!(all.messages_per_connection_max, Some(5));
    assert_eq!((all.connections_max, all.rate), (None, None));
}

#[test]
fn limits_of_destinations_name_one_kind_once() {
    let key = |name: &str| format!("delivery.destination[1].{name}");
    let at = |name: &str, text: &str, why: &str| {
        let found = errors(&format!("{LIMITS}{text}"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].1, key(name));
        assert!(found[0].2.contains(why), "{found:?}");
    };
    at("domain", "rate = \"1/1s\"\n", "must be given");
    at(
        "mx",
        "domain = \"a.b\"\nmx = \"a.b\"\n",
        "stands beside domain",
    );
    at("next_hop", "next_hop = \"mx\"\n", "expected a next hop");
    at(
        "in_order",
        "mx = \"a.b\"\nin_order = \"yes\"\n",
        "not for hosts",
    );
    let ordered = "domain = \"a.b\"\nin_order = \"yes\"\nconnections_max = 2\n";
    at("connections_max", ordered, "must be 1");
    at("burst", "mx = \"a.b\"\nburst = 2\n", "needs `rate`");
    for rate in ["5", "0/1s", "1000001/1s", "5/0s", "5/25h", "/1s", "5/"] {
        at("rate", &format!("mx = \"a.b\"\nrate = \"{rate}\"\n"), "");
    }
    one_error(
        &format!("{LIMITS}domain = \"a.b\"\n{LIMITS}domain = \"a.b\"\n"),
        6,
        "delivery.destination[2].domain",
        "is the same in delivery.destination[1]",
    );
}
