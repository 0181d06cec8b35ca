//! Peers that fall silent, or speak one octet now and then, at every step: each wait has its bound.

use std::time::{Duration, Instant};

use super::help::*;
use crate::*;

/// What the initiator sees of a binding and a transfer, and how long that takes.
async fn initiated(address: std::net::SocketAddr) -> (Result<Outcome, Refusal>, Duration) {
    let begun = Instant::now();
    let peer = peer(address, NORMAL, &hasty());
    let seen = match initiate(&peer, Names::new("mta-a").next()).await {
        Err(error) => Err(error.refusal().unwrap().clone()),
        Ok((mut open, _)) => {
            let outcome = open.transfer(&apdu(1, 200_000)).await;
            let _end = open.release().await;
            Ok(outcome)
        }
    };
    (seen, begun.elapsed())
}

/// Serves whoever comes; gives how the associations end.
async fn serve() -> (
    std::net::SocketAddr,
    tokio::sync::mpsc::UnboundedReceiver<End>,
) {
    let (listener, address) = listen().await;
    let (ends, receiver) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let end = match accept(&listener, &responder(&hasty())).await {
                Ok(mut open) => loop {
                    // Idle associations are ended here.
                    match open.next().await {
                        Next::Incoming(_) => {
                            match open.collect(Partial::default(), 1 << 20).await {
                                Ok(_) => open.confirm().await.unwrap(),
                                Err(NotReceived::Broken(_, end)) => break end.unwrap(),
                                Err(other) => panic!("{other:?}"),
                            }
                        }
                        Next::Idle => {
                            open.abort().await;
                            break End::Late(Wait::Idle);
                        }
                        Next::Ended(end) => break end,
                        other => panic!("{other:?}"),
                    }
                },
                Err(NotOpen::Ended(end)) => end,
                Err(other) => panic!("{other:?}"),
            };
            ends.send(end).unwrap();
        }
    });
    (address, receiver)
}

/// Connects through a proxy that lets so many octets pass, and returns what both sides saw.
async fn through(plan: [Plan; 2]) -> (Result<Outcome, Refusal>, End) {
    let (server, mut ends) = serve().await;
    let address = proxy(server, move || plan).await;
    let (seen, took) = initiated(address).await;
    // Opening, a transfer, a release, each with the close.
    assert!(took < millis(10_000), "{seen:?} took {took:?}");
    let end = tokio::time::timeout(millis(10_000), ends.recv()).await;
    (
        seen,
        end.unwrap_or_else(|_| panic!("{plan:?}: no end")).unwrap(),
    )
}

#[tokio::test]
async fn a_peer_may_fall_silent_at_any_octet() {
    let mut tasks = tokio::task::JoinSet::new();
    for octets in (0..420).step_by(13).chain([2_000, 70_000, 150_000]) {
        for there in [true, false] {
            let silent = Plan { octets, ..ALL };
            let plan = if there { [silent, ALL] } else { [ALL, silent] };
            tasks.spawn(async move {
                let (seen, end) = through(plan).await;
                match &seen {
                    Err(refusal) => assert!(refusal.is_transient(), "{plan:?} {seen:?}"),
                    Ok(Outcome::Transferred) => {}
                    Ok(Outcome::NotTransferred(..) | Outcome::InDoubt(..)) => {}
                    other => panic!("{plan:?} {other:?}"),
                }
                assert!(!matches!(end, End::Host(_)), "{plan:?} {end:?}");
            });
        }
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn an_octet_now_and_then_is_no_progress() {
    let slow = |octets| Plan {
        octets,
        cut: false,
        pace: Some(millis(20)),
    };
    let (seen, end) = through([slow(0), ALL]).await;
    assert!(
        matches!(seen, Err(Refusal::Ended(End::Late(Wait::Open)))),
        "{seen:?}"
    );
    assert!(
        matches!(
            end,
            End::Late(Wait::Open) | End::Network(_) | End::Aborted(_)
        ),
        "{end:?}"
    );
    let (seen, _) = through([ALL, slow(0)]).await;
    assert!(
        matches!(seen, Err(Refusal::Ended(End::Late(Wait::Open)))),
        "{seen:?}"
    );
    // The bind has passed: the transfer is slow.
    let (seen, end) = through([slow(1_500), ALL]).await;
    assert!(matches!(seen, Ok(Outcome::NotTransferred(..))), "{seen:?}");
    assert!(matches!(end, End::Late(Wait::Transfer)), "{end:?}");
}

#[tokio::test]
async fn a_silent_peer_that_only_accepts_is_given_up() {
    let (listener, address) = listen().await;
    let (seen, took) = initiated(address).await;
    assert_eq!(seen, Err(Refusal::Ended(End::Late(Wait::Open))));
    assert!(took < millis(10_000), "{took:?}");
    drop(listener);
}

#[tokio::test]
async fn a_host_that_holds_octets_ends_the_association() {
    let (mut a, mut b) = pair(NORMAL, &hasty_when_open()).await;
    let sending = tokio::spawn(async move { a.transfer(&apdu(1, 20_000_000)).await });
    assert!(matches!(b.next().await, Next::Incoming(_)));
    assert!(matches!(b.part().await, Part::Octets(_)));
    tokio::time::sleep(millis(1_000)).await;
    assert_eq!(b.part().await, Part::Ended(End::Late(Wait::Hold)));
    let outcome = sending.await.unwrap();
    // Nobody read: the sender has given up before, for want of room or of a confirmation.
    let Outcome::NotTransferred(NotTransferred::Ended(End::Late(wait)), _) = &outcome else {
        panic!("{outcome:?}")
    };
    assert!(matches!(wait, Wait::Write | Wait::Transfer), "{wait:?}");
}

#[tokio::test]
async fn an_unconfirmed_apdu_is_in_doubt() {
    let (mut a, mut b) = pair(NORMAL, &hasty_when_open()).await;
    let sending = tokio::spawn(async move { a.transfer(&apdu(1, 100)).await });
    assert!(matches!(b.next().await, Next::Incoming(_)));
    assert!(b.collect(Partial::default(), 1_000).await.is_ok());
    let outcome = sending.await.unwrap();
    assert!(
        matches!(outcome, Outcome::InDoubt(End::Late(Wait::Transfer), _)),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn an_idle_association_is_told() {
    let (mut a, _b) = pair(NORMAL, &hasty_when_open()).await;
    assert!(matches!(a.next().await, Next::Idle));
    assert!(a.ended().is_none());
}
