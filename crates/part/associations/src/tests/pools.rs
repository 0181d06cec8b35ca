//! Pools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::help::*;
use crate::*;

async fn serve(book: SharedBook, bounds: Bounds) -> (std::net::SocketAddr, Arc<AtomicUsize>) {
    let (listener, address) = listen().await;
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        loop {
            let open = accept(&listener, &responder(&bounds)).await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(sink(open, book.clone()));
        }
    });
    (address, connections)
}

#[tokio::test]
async fn callers_share_lanes() {
    let book = book();
    let (address, connections) = serve(book.clone(), patient()).await;
    let mut settings = PoolSettings::new(peer(address, NORMAL, &patient()));
    settings.most = 3;
    let pool = Arc::new(Pool::start(settings, Arc::new(Names::new("mta-a")), None));
    let mut callers = tokio::task::JoinSet::new();
    for number in 0..60 {
        let pool = pool.clone();
        callers.spawn(async move { pool.transfer(apdu(number, 2_000)).await });
    }
    while let Some(done) = callers.join_next().await {
        assert_eq!(done.unwrap(), Ok(Outcome::Transferred));
    }
    assert_eq!((pool.free(), pool.open()), (3, 3));
    assert_eq!(connections.load(Ordering::Relaxed), 3);
    assert_eq!(book.lock().unwrap().seen.len(), 60);
}

#[tokio::test]
async fn lanes_on_demand_close_when_idle_and_permanent_ones_stay() {
    let (address, connections) = serve(book(), patient()).await;
    let mut bounds = patient();
    bounds.idle = millis(150);
    let mut settings = PoolSettings::new(peer(address, NORMAL, &bounds));
    settings.most = 2;
    settings.permanent = 1;
    let pool = Pool::start(settings, Arc::new(Names::new("mta-a")), None);
    tokio::time::sleep(millis(100)).await;
    assert_eq!(pool.open(), 1);
    let (one, two) = tokio::join!(pool.transfer(apdu(1, 10)), pool.transfer(apdu(2, 10)));
    assert_eq!(
        (one, two),
        (Ok(Outcome::Transferred), Ok(Outcome::Transferred))
    );
    assert_eq!(pool.open(), 2);
    tokio::time::sleep(millis(500)).await;
    assert_eq!((pool.open(), connections.load(Ordering::Relaxed)), (1, 2));
    pool.close().await;
}

#[tokio::test]
async fn an_association_that_the_peer_has_closed_is_replaced() {
    let (listener, address) = listen().await;
    let pool = Pool::start(
        PoolSettings::new(peer(address, NORMAL, &patient())),
        Arc::new(Names::new("mta-a")),
        None,
    );
    for number in 0..3 {
        let receiving = async {
            let mut open = accept(&listener, &responder(&patient())).await.unwrap();
            assert!(matches!(open.next().await, Next::Incoming(_)));
            open.collect(Partial::default(), 1_000).await.unwrap();
            open.confirm().await.unwrap();
            open
        };
        let (sent, open) = tokio::join!(pool.transfer(apdu(number, 10)), receiving);
        assert_eq!(sent, Ok(Outcome::Transferred));
        drop(open);
        tokio::time::sleep(millis(50)).await;
        assert_eq!(pool.open(), 0);
    }
}

#[tokio::test]
async fn a_peer_that_keeps_the_turn_is_given_up() {
    let (listener, address) = listen().await;
    let mut bounds = patient();
    bounds.turn = millis(200);
    let mut settings = PoolSettings::new(peer(address, NORMAL, &bounds));
    settings.permanent = 1;
    let pool = Pool::start(settings, Arc::new(Names::new("mta-a")), None);
    let mut open = accept(&listener, &responder(&patient())).await.unwrap();
    open.please_turn(0).await.unwrap();
    assert!(matches!(open.next().await, Next::Turn));
    let listening = async {
        let open = accept(&listener, &responder(&patient())).await.unwrap();
        sink(open, book()).await
    };
    let sending = async {
        let sent = pool.transfer(apdu(1, 10)).await;
        pool.close().await;
        sent
    };
    let ending = async {
        assert!(matches!(open.next().await, Next::TurnWanted(_)));
        open.next().await
    };
    let (end, sent, next) = tokio::join!(listening, sending, ending);
    // The lane was opened again, and the APDU is transferred over the new association.
    assert_eq!((end, sent), (End::Released, Ok(Outcome::Transferred)));
    assert!(matches!(next, Next::Ended(End::Aborted(_))), "{next:?}");
}

#[tokio::test]
async fn an_absent_peer_is_an_error() {
    let address = listen().await.1;
    let settings = PoolSettings::new(peer(address, NORMAL, &patient()));
    let pool = Pool::start(settings, Arc::new(Names::new("mta-a")), None);
    let error = pool.transfer(apdu(1, 10)).await.unwrap_err();
    assert!(matches!(error, PoolError::NotOpen(_)), "{error:?}");
    assert_eq!(pool.free(), 1);
}

/// A pool with one permanent lane whose peer has the turn, and what the pool lends.
async fn peer_with_turn() -> (Pool, OpenAssociation, tokio::sync::mpsc::Receiver<Lent>) {
    let (listener, address) = listen().await;
    let (incoming, lent) = tokio::sync::mpsc::channel(1);
    let mut settings = PoolSettings::new(peer(address, NORMAL, &patient()));
    settings.permanent = 1;
    settings.pause = millis(10);
    let pool = Pool::start(settings, Arc::new(Names::new("mta-a")), Some(incoming));
    let mut open = accept(&listener, &responder(&patient())).await.unwrap();
    open.please_turn(0).await.unwrap();
    assert!(matches!(open.next().await, Next::Turn));
    (pool, open, lent)
}

#[tokio::test]
async fn the_host_receives_what_the_peer_sends() {
    let (pool, mut open, mut lent) = peer_with_turn().await;
    let host = async {
        let Lent {
            mut open,
            begun,
            back,
        } = lent.recv().await.unwrap();
        assert!(matches!(begun, Begun::Transfer(_)), "{begun:?}");
        assert_eq!(pool.open(), 1);
        let apdu = open.collect(Partial::default(), 5_000).await.unwrap();
        assert_eq!(number(&apdu), 5);
        open.confirm().await.unwrap();
        back.send(open).unwrap();
    };
    let message = apdu(5, 4_000);
    let (sent, ()) = tokio::join!(open.transfer(&message), host);
    assert!(sent.is_transferred(), "{sent:?}");
    // A caller of the pool gets the turn back.
    let receiving = tokio::spawn(sink(open, book()));
    assert_eq!(pool.transfer(apdu(6, 10)).await, Ok(Outcome::Transferred));
    drop(pool);
    receiving.await.unwrap();
}

#[tokio::test]
async fn an_association_that_the_host_drops_is_closed() {
    let (pool, mut open, mut lent) = peer_with_turn().await;
    let host = async { drop(lent.recv().await.unwrap()) };
    let message = apdu(5, 4_000);
    let (sent, ()) = tokio::join!(open.transfer(&message), host);
    assert!(!sent.is_transferred(), "{sent:?}");
    while pool.open() > 0 {
        tokio::time::sleep(millis(10)).await;
    }
}

#[tokio::test]
async fn without_a_host_the_peer_keeps_its_transfer() {
    let (pool, mut open, lent) = peer_with_turn().await;
    drop(lent);
    let sent = open.transfer(&apdu(5, 4_000)).await;
    let jeopardized = vere_osi::session::Exception::ReceivingAbilityJeopardized;
    assert!(
        matches!(&sent, Outcome::Refused(why, _) if *why == jeopardized),
        "{sent:?}"
    );
    assert_eq!(pool.open(), 1);
}
