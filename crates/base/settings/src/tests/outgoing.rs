//! Routes with credentials, sources, encryption towards next hops.

use super::parse;
use crate::{DestinationPriority, DestinationScope, NextHop, RoutePattern, TlsMode};

const ROUTE: &str = "[[route]]\ndomain = \"a.b\"\nnext_hop = \"c.d\"\n";

#[test]
fn a_password_comes_from_one_place_and_travels_encrypted() {
    let file = format!("{ROUTE}username = \"u\"\npassword_file = \"secret\"\n");
    let settings = parse(&format!("{file}tls = \"implicit\"\n")).unwrap();
    let route = &settings.routes[0];
    assert_eq!(route.tls, TlsMode::Implicit);
    let path = route.password_file.as_ref().unwrap();
    assert_eq!(path.to_str(), Some("/etc/vere/secret"));
    assert!(!route.password_in_clear);
    let settings = parse(&format!("{file}password_in_clear = \"yes\"\n")).unwrap();
    assert!(settings.routes[0].password_in_clear);
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
}

#[test]
fn next_hops_are_asked_about_recipients_where_a_route_says_so() {
    let file = format!("[smtp]\n[front]\n{ROUTE}call_ahead = \"yes\"\n[[route]]\n");
    let rest = "domain = \"*\"\nnext_hop = \"127.0.0.1:26\"\n";
    let settings = parse(&format!("{file}{rest}")).unwrap();
    let asked: Vec<bool> = settings.routes.iter().map(|r| r.call_ahead).collect();
    assert_eq!(asked, [true, false]);
    let terms = settings.front.unwrap().call_ahead;
    assert!(terms.defers_unavailable);
    assert_eq!(terms.timeout.as_millis(), 10_000);
    assert_eq!(terms.keep_accepted.as_millis(), 86_400_000);
    assert_eq!(terms.keep_refused.as_millis(), 900_000);
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
fn next_hops() {
    let hop = |text: &str| {
        let text = format!("[[route]]\ndomain = \"*\"\nnext_hop = \"{text}\"\n");
        parse(&text).map(|settings| settings.routes[0].next_hop.clone())
    };
    let host = |host: &str, port| {
        Ok(NextHop::Host {
            host: host.to_owned(),
            port,
        })
    };
    assert_eq!(hop("mx"), Ok(NextHop::Mx));
    assert_eq!(hop("local"), Ok(NextHop::Local));
    assert_eq!(hop("relay.example:2525"), host("relay.example", 2525));
    assert_eq!(hop("relay.example"), host("relay.example", 25));
    assert_eq!(hop("127.0.0.1:2526"), host("127.0.0.1", 2526));
    assert_eq!(hop("[::1]:2526"), host("::1", 2526));
    assert_eq!(hop("[::1]"), host("::1", 25));
    for wrong in [
        "",
        "::1",
        "[::1",
        "[::1]2526",
        "a:0",
        "a:65536",
        "a:b",
        "a b:25",
        "[1.2.3.4]:25",
        ":25",
    ] {
        assert!(hop(wrong).is_err(), "{wrong}");
    }
}
