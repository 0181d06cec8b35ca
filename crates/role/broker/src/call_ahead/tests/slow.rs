//! Next hops that are slow with some recipients, and answer about others.

use std::time::Duration;

use super::*;

/// The pause before a refusal: two of them exceed the time of a call (1 s), one alone does not.
pub(super) const TARPIT: Duration = Duration::from_millis(600);

/// A recipient without a reply says nothing of other recipients.
#[test]
fn a_next_hop_that_is_silent_about_a_recipient_is_asked_about_others() {
    run(async {
        let hop = NextHop::start(Manner::Knows).await;
        let calls = calls(&[&hop]);
        let address = "slow@d0.example";
        assert_eq!(ask(&calls, &hop, address).await, unverified());
        assert_eq!(ask(&calls, &hop, "ann@d0.example").await, Answer::Accepted);
        // The recipient itself has its rest.
        assert_eq!(
            at_once(begun(&calls, &hop, address, client(1))),
            unverified()
        );
        assert_eq!(hop.asked(), [address, "ann@d0.example"]);
        assert_eq!(calls.shared.waiting.available_permits(), WAITING_MAX);
        assert!(calls.shared.shares.borrow().is_empty());
    });
}

#[test]
fn a_reply_counts_where_only_what_follows_is_late() {
    run(async {
        let hop = NextHop::start(Manner::Silent("RSET")).await;
        let calls = calls(&[&hop]);
        assert_eq!(ask(&calls, &hop, "ann@d0.example").await, Answer::Accepted);
        assert_eq!(ask(&calls, &hop, "bob@d0.example").await, unknown());
        let kept = begun(&calls, &hop, "ann@d0.example", client(1));
        assert_eq!(at_once(kept), Answer::Accepted);
        // The connection without a reply to RSET takes no further call.
        assert_eq!(hop.connections.get(), 2);
    });
}

#[test]
fn a_late_probe_is_not_tried_again_with_each_recipient() {
    run(async {
        let hop = NextHop::start(Manner::Tarpits).await;
        let calls = calls(&[&hop]);
        assert_eq!(ask(&calls, &hop, "bob@d0.example").await, unknown());
        assert_eq!(ask(&calls, &hop, "eve@d0.example").await, unknown());
        assert_eq!(hop.count("RCPT TO:<vere-call-ahead-"), 1);
        let kept = begun(&calls, &hop, "bob@d0.example", client(1));
        assert_eq!(at_once(kept), unknown());
    });
}

/// A stranger who asks about unknown recipients delays nobody for longer than the calls last.
#[test]
fn unknown_recipients_at_a_tarpit_do_not_condemn_the_next_hop() {
    run(async {
        let hop = NextHop::start(Manner::Tarpits).await;
        let calls = calls(&[&hop]);
        let first = ask(&calls, &hop, "u99@d0.example").await;
        assert_eq!(first, unknown());
        let waiting: Vec<Later> = (0..SHARE_MAX)
            .map(|number| begun(&calls, &hop, &format!("u{number}@d0.example"), client(1)))
            .map(Result::unwrap_err)
            .collect();
        let mut told = Vec::new();
        for later in waiting {
            told.push(later.await.1);
        }
        // One call of each connection; when these end, too little is left of the time of the others.
        let (heard, rest) = told.split_at(CONNECTIONS_PER_HOP_MAX);
        assert!(heard.iter().all(|answer| *answer == unknown()), "{told:?}");
        assert!(
            rest.iter().all(|answer| *answer == unverified()),
            "{told:?}"
        );
        assert_eq!(hop.asked().len(), 1 + CONNECTIONS_PER_HOP_MAX);
        let other = begun(&calls, &hop, "ann@d0.example", client(2));
        assert_eq!(other.unwrap_err().await.1, Answer::Accepted);
        // What was not asked about is no result.
        assert!(begun(&calls, &hop, "u15@d0.example", client(1)).is_err());
    });
}

/// Each address has a part of the time: the next one is asked within the same call.
#[test]
fn a_silent_address_leaves_time_for_the_next_one() {
    run(async {
        let hop = NextHop::start(Manner::Knows).await;
        let other = SocketAddr::from(([127, 0, 0, 2], hop.address.port()));
        let silent = NextHop::start_at(other, Manner::Silent("")).await;
        let zone = Zone::parse("hop.test A 127.0.0.2\nhop.test A 127.0.0.1\n").unwrap();
        let front = FRONT.replace("\"1s\"", "\"10s\"");
        let settings = settings(&[&hop], &front);
        let calls = CallAhead::new(&settings, &Resolver::from_zone(zone)).unwrap();
        let place = Place::relay("hop.test", hop.address.port());
        let later = calls.ask(
            7,
            (&place, "ann@d0.example"),
            (client(1), &Places::default()),
        );
        let answer = spawn_local(later.unwrap_err());
        // The caller's end of the connection is there as well, and the caller waits for the greeting.
        while silent.connections.get() == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        // Nobody waits for the silent address; the next one answers in time of its own.
        tokio::time::pause();
        tokio::time::advance(Duration::from_millis(7_100)).await;
        tokio::time::resume();
        assert_eq!(answer.await.unwrap(), (7, Answer::Accepted));
        assert_eq!((silent.connections.get(), hop.asked().len()), (1, 1));
    });
}
