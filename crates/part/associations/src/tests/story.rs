//! What two MTAs say to each other on a good day.

use super::help::*;
use crate::*;

async fn many(mode: vere_osi::association::Mode, messages: u64, length: usize) {
    let (mut a, b) = pair(mode, &patient()).await;
    let book = book();
    let receiving = tokio::spawn(sink(b, book.clone()));
    for number in 0..messages {
        let outcome = a.transfer(&apdu(number, length)).await;
        assert!(outcome.is_transferred(), "{number}: {outcome:?}");
    }
    assert_eq!(a.release().await, End::Released);
    assert_eq!(receiving.await.unwrap(), End::Released);
    let seen = &book.lock().unwrap().seen;
    assert_eq!(seen.len() as u64, messages);
    assert!(seen.values().all(|times| *times == 1));
}

#[tokio::test]
async fn messages_are_transferred() {
    for mode in [NORMAL, X410, vere_osi::association::Mode::X410(1)] {
        many(mode, 1, 1_024).await;
        many(mode, 100, 1_024).await;
        many(mode, 3, 10_000_000).await;
    }
    many(NORMAL, 1_000, 1_024).await;
}

#[tokio::test]
async fn a_monologue_has_one_direction() {
    let (listener, address) = listen().await;
    let mut peer = peer(address, NORMAL, &patient());
    peer.dialogue_mode = vere_osi::rtse::DialogueMode::Monologue;
    let responder = responder(&patient());
    let (opened, accepted) = tokio::join!(
        initiate(&peer, Names::new("mta-a").next()),
        accept(&listener, &responder)
    );
    let (mut a, mut b) = (opened.unwrap().0, accepted.unwrap());
    assert!(b.please_turn(1).await.is_err());
    assert!(a.give_turn().await.is_err());
    let book = book();
    let receiving = tokio::spawn(sink(b, book.clone()));
    assert!(a.transfer(&apdu(1, 100)).await.is_transferred());
    a.release().await;
    receiving.await.unwrap();
    assert_eq!(book.lock().unwrap().seen.len(), 1);
}

/// Both sides have messages: the responder asks for the turn, and the initiator asks for it back.
#[tokio::test]
async fn the_turn_goes_both_ways() {
    for mode in [NORMAL, X410] {
        let (mut a, mut b) = pair(mode, &patient()).await;
        let (near, far) = (book(), book());
        let far_book = far.clone();
        let other = tokio::spawn(async move {
            b.please_turn(3).await.unwrap();
            for number in 100..110 {
                while !b.has_turn() {
                    receive_one(&mut b, &far_book).await;
                }
                assert!(b.transfer(&apdu(number, 3_000)).await.is_transferred());
                if b.turn_wanted().is_some() {
                    b.give_turn().await.unwrap();
                    if number < 109 {
                        b.please_turn(3).await.unwrap();
                    }
                }
            }
            if b.has_turn() {
                b.give_turn().await.unwrap();
            }
            sink(b, far_book).await
        });
        for number in 0..10 {
            while !a.has_turn() {
                receive_one(&mut a, &near).await;
            }
            assert!(a.transfer(&apdu(number, 3_000)).await.is_transferred());
            if a.turn_wanted().is_some() {
                a.give_turn().await.unwrap();
                a.please_turn(1).await.unwrap();
            }
        }
        while near.lock().unwrap().seen.len() < 10 || !a.has_turn() {
            if a.has_turn() && a.turn_wanted().is_some() {
                a.give_turn().await.unwrap();
            }
            receive_one(&mut a, &near).await;
        }
        assert_eq!(a.release().await, End::Released);
        assert_eq!(other.await.unwrap(), End::Released);
        assert_eq!(far.lock().unwrap().seen.len(), 10);
    }
}

async fn receive_one(open: &mut OpenAssociation, book: &SharedBook) {
    match open.next().await {
        Next::Incoming(_) => {
            let pieces = open.collect(Partial::default(), 1 << 20).await.unwrap();
            book.lock().unwrap().seen.insert(number(&pieces), 1);
            open.confirm().await.unwrap();
        }
        Next::Turn | Next::TurnWanted(_) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_apdu_that_is_too_long_is_refused() {
    let (mut a, mut b) = pair(NORMAL, &patient()).await;
    let receiving = tokio::spawn(async move {
        assert!(matches!(b.next().await, Next::Incoming(_)));
        let refused = b.collect(Partial::default(), 100_000).await;
        assert_eq!(refused, Err(NotReceived::TooLong));
        assert!(matches!(b.next().await, Next::GivenUp));
        sink(b, book()).await
    });
    let outcome = a.transfer(&apdu(1, 2_000_000)).await;
    assert!(matches!(outcome, Outcome::Refused(..)), "{outcome:?}");
    assert!(a.transfer(&apdu(2, 1_000)).await.is_transferred());
    a.release().await;
    assert_eq!(receiving.await.unwrap(), End::Released);
}

/// The peer aborts while the turn goes to it: the next transfer tells the end.
#[tokio::test]
async fn an_end_that_nobody_has_asked_for_is_told_by_a_transfer() {
    let (mut a, b) = pair(NORMAL, &patient()).await;
    let aborting = tokio::spawn(async move {
        tokio::time::sleep(millis(100)).await;
        b.abort().await;
    });
    tokio::time::sleep(millis(200)).await;
    a.give_turn().await.unwrap();
    let outcome = a.transfer(&apdu(1, 10)).await;
    let Outcome::NotTransferred(NotTransferred::Ended(End::Aborted(_)), None) = &outcome else {
        panic!("{outcome:?}")
    };
    assert!(a.ended().is_some());
    aborting.await.unwrap();
}

#[tokio::test]
async fn requests_without_a_place_are_errors() {
    let (_a, mut b) = pair(NORMAL, &patient()).await;
    let outcome = b.transfer(&apdu(1, 10)).await;
    assert!(matches!(
        outcome,
        Outcome::NotTransferred(NotTransferred::Host(_), None)
    ));
    assert!(b.give_turn().await.is_err());
    assert!(b.already_received().is_err());
    assert!(matches!(b.confirm().await, Err(End::Host(_))));
}
