//! Many next hops: a route whose domains are next hops of their own, and clients with many questions.

use super::super::hop::{IDLE_MAX, QUIT_PATIENCE};
use super::*;

const ROUTE: &str =
    "[[route]]\ndomain = \".example.com\"\nnext_hop = \"mx\"\ncall_ahead = \"yes\"\n";

fn calls(hop: &NextHop, zone: &str, terms: &str) -> CallAhead {
    let rest = format!("{FRONT}{terms}{ROUTE}");
    let resolver = Resolver::from_zone(Zone::parse(zone).unwrap());
    CallAhead::new(&settings(&[hop], &rest), &resolver).unwrap()
}

/// Asks about a recipient of a domain that has its own next hop.
async fn ask_domain(calls: &CallAhead, local: &str, domain: &str) -> Answer {
    let address = format!("{local}@{domain}");
    let place = Place::Domain(domain.to_owned());
    match calls.ask(7, (&place, &address), (client(1), &Places::default())) {
        Ok(answer) => answer,
        Err(later) => later.await.1,
    }
}

/// A domain that takes no mail has no recipients: nothing is accepted for it, whatever the settings say of next hops that
/// cannot be asked, and nothing has failed.
#[test]
fn a_domain_without_mail_has_no_recipients() {
    run(async {
        let hop = NextHop::start(Manner::Knows).await;
        let zone = "null.example.com MX 0 .\n";
        for terms in ["", "call_ahead_unavailable = \"accept\"\n"] {
            let calls = calls(&hop, zone, terms);
            for domain in ["null.example.com", "none.example.com"] {
                for local in ["ann", "bob", "ann"] {
                    assert_eq!(ask_domain(&calls, local, domain).await, unknown());
                }
            }
            let figures = calls.figures();
            assert_eq!((figures.calls_refused, figures.answers_kept), (4, 2));
        }
    });
}

#[test]
fn failed_next_hops_make_room_before_others() {
    run(async {
        let hop = NextHop::start(Manner::Knows).await;
        let domain = |number: usize| format!("d{number}.example.com");
        let zone: String = (0..HOPS_MAX + 10)
            .map(|number| format!("{} FAIL\n", domain(number)))
            .collect();
        let calls = calls(&hop, &zone, "");
        let way = calls.way.borrow().clone().unwrap();
        let good = Place::relay("192.0.2.1", 25);
        way.hop(&good).unwrap();
        for number in 0..HOPS_MAX + 10 {
            assert_eq!(
                ask_domain(&calls, "ann", &domain(number)).await,
                unverified()
            );
        }
        assert_eq!(calls.figures().calls_unavailable as usize, HOPS_MAX + 10);
        let known = |place: &Place| way.hops.borrow().contains_key(place);
        assert_eq!(way.hops.borrow().len(), HOPS_MAX);
        assert!(known(&good), "a next hop that has not failed stays");
        // The good one takes a place, so that the oldest 11 are gone.
        for number in 0..HOPS_MAX + 10 {
            assert_eq!(known(&Place::Domain(domain(number))), number >= 11);
        }
        assert_eq!(ask(&calls, &hop, "ann@d0.example").await, Answer::Accepted);
    });
}

/// A connection counts until it is closed, also while the next hop owes the reply to QUIT.
#[test]
fn a_connection_counts_until_it_is_closed() {
    run(async {
        let hop = NextHop::start(Manner::Silent("QUIT")).await;
        let calls = super::calls(&[&hop]);
        let way = calls.way.borrow().clone().unwrap();
        let of = way.hop(&place(&hop)).unwrap();
        assert_eq!(ask(&calls, &hop, "ann@d0.example").await, Answer::Accepted);
        tokio::time::pause();
        let pass = async |time: Duration| {
            tokio::time::advance(time + Duration::from_millis(5)).await;
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        };
        assert!(of.spare().is_none());
        pass(IDLE_MAX).await;
        assert!(of.spare().is_none(), "QUIT has no reply yet");
        assert_eq!(
            calls.shared.connections.available_permits(),
            CONNECTIONS_MAX - 1
        );
        pass(QUIT_PATIENCE).await;
        assert!(of.spare().is_some(), "the connection is closed");
        assert_eq!(
            calls.shared.connections.available_permits(),
            CONNECTIONS_MAX
        );
        tokio::time::resume();
        assert_eq!(ask(&calls, &hop, "bob@d0.example").await, unknown());
        assert_eq!(hop.count("QUIT"), 1);
        assert_eq!(hop.connections.get(), 2);
    });
}

/// Next hops with connections keep their places.
#[test]
fn next_hops_with_tasks_make_no_room() {
    run(async {
        let hop = NextHop::start(Manner::Knows).await;
        let calls = calls(&hop, "", "");
        assert_eq!(ask(&calls, &hop, "ann@d0.example").await, Answer::Accepted);
        let way = calls.way.borrow().clone().unwrap();
        for number in 0..2 * HOPS_MAX {
            let other = Place::Domain(format!("d{number}.example.com"));
            assert!(way.hop(&other).is_some());
        }
        assert!(way.hops.borrow().contains_key(&place(&hop)));
    });
}

/// A client that invents networks and recipients leaves places for calls to others.
#[test]
fn a_connection_does_not_take_the_places_of_all() {
    run(async {
        let hops = [
            NextHop::start(Manner::Knows).await,
            NextHop::start(Manner::Knows).await,
            NextHop::start(Manner::Knows).await,
        ];
        let calls = super::calls(&[&hops[0], &hops[1], &hops[2]]);
        let (greedy, other) = (Places::default(), Places::default());
        let ask = |number: usize, places: &Places| {
            let of = number % hops.len();
            let address = format!("slow{number}@d{of}.example");
            let client = client((number / SHARE_MAX as usize) as u8);
            calls.ask(7, (&place(&hops[of]), &address), (client, places))
        };
        let asked = (0..CONNECTION_MAX).map(|number| ask(number, &greedy).unwrap_err());
        let mut waiting: Vec<Later> = asked.collect();
        assert_eq!(at_once(ask(CONNECTION_MAX, &greedy)), unverified());
        assert_eq!(calls.figures().answers_denied, 1);
        assert!(ask(CONNECTION_MAX, &other).is_err());
        // An answered question leaves its place.
        waiting.pop();
        assert!(ask(CONNECTION_MAX, &greedy).is_err());
    });
}
