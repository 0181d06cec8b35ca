//! Connections that are cut at any octet: every message arrives once.

use vere_osi::association::Mode;

use super::help::*;
use crate::*;

async fn serve(book: SharedBook) -> std::net::SocketAddr {
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        loop {
            let (stream, address) = listener.accept().await.unwrap();
            let book = book.clone();
            tokio::spawn(async move {
                let remote = Remote { address, tls: None };
                let mut responder = responder(&patient());
                responder.checkpoint_size = 1;
                let Ok(caller) = respond(&responder, Box::new(stream), remote).await else {
                    return;
                };
                let decision = decide(caller.asked());
                if let Ok(open) = caller.answer(async { decision }).await {
                    sink(open, book).await;
                }
            });
        }
    });
    address
}

/// Sends a message until the peer has it; gives whether it was in doubt meanwhile.
async fn deliver(
    peer: &Peer,
    names: &Names,
    line: &mut Option<OpenAssociation>,
    number: u64,
    length: usize,
) -> u32 {
    let pieces = apdu(number, length);
    let mut left = None;
    let mut last = Vec::new();
    let mut doubts = 0;
    for _attempt in 0..500 {
        let Some(open) = line else {
            *line = initiate(peer, names.next())
                .await
                .ok()
                .map(|(open, _)| open);
            continue;
        };
        let outcome = match &left {
            None => open.transfer(&pieces).await,
            Some(broken) => open.settle(broken, &pieces).await,
        };
        if open.ended().is_some() {
            *line = None;
        }
        last.push(format!("{outcome:?}"));
        last.drain(..last.len().saturating_sub(6));
        match outcome {
            Outcome::Transferred => return doubts,
            Outcome::NotTransferred(_, broken) | Outcome::Refused(_, broken) => left = broken,
            Outcome::InDoubt(_, broken) => {
                doubts += 1;
                left = Some(broken);
            }
        }
    }
    panic!("{last:?}: {number} was not delivered");
}

async fn messages(mode: Mode, seed: u64, count: u64, length: usize, both_ways: bool) {
    let book = book();
    let server = serve(book.clone()).await;
    let mut random = Random(seed);
    let address = proxy(server, move || {
        let mut plan = || Plan {
            octets: usize::try_from(random.below(2_500)).unwrap() + length / 3,
            cut: true,
            pace: None,
        };
        match both_ways {
            true => [plan(), plan()],
            // The octets that are lost are confirmations.
            false => [
                ALL,
                Plan {
                    octets: plan().octets % 800,
                    ..plan()
                },
            ],
        }
    })
    .await;
    let peer = peer(address, mode, &patient());
    let names = Names::new("mta-a");
    let mut line = None;
    let mut doubts = 0;
    for number in 0..count {
        doubts += deliver(&peer, &names, &mut line, number, length).await;
    }
    let book = book.lock().unwrap();
    assert_eq!(book.seen.len() as u64, count);
    let twice: Vec<_> = book.seen.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "{mode:?} {seed}: {twice:?}");
    println!(
        "{mode:?}, seed {seed}: {count} messages of {length}, {doubts} in doubt, {} resumed, {} confirmed again, {} busy",
        book.resumed, book.again, book.busy
    );
}

#[tokio::test]
async fn every_message_arrives_once() {
    for mode in [NORMAL, X410] {
        for seed in [7, 1_984] {
            messages(mode, seed, 150, 300, true).await;
            messages(mode, seed, 150, 300, false).await;
            messages(mode, seed, 30, 9_000, true).await;
            messages(mode, seed, 30, 9_000, false).await;
        }
    }
}

/// A sender that ends within a transfer, and begins again with the last checkpoint that it has noted.
#[tokio::test]
async fn a_noted_checkpoint_survives_the_sender() {
    for mode in [NORMAL, X410] {
        let book = book();
        let server = serve(book.clone()).await;
        let address = proxy(server, || {
            let octets = 60_000;
            [Plan { octets, ..ALL }, ALL]
        })
        .await;
        let names = Names::new("mta-a");
        let pieces = apdu(9, 200_000);
        let mut noted = None;
        let (mut open, _) = initiate(&peer(address, mode, &patient()), names.next())
            .await
            .unwrap();
        let mut note = |broken: &vere_osi::rtse::Broken| noted = Some(broken.clone());
        let sending = open.transfer_noting(&pieces, &mut note);
        tokio::time::timeout(millis(300), sending)
            .await
            .unwrap_err();
        drop(open);
        let noted = noted.unwrap();
        assert!(
            noted.checkpoint.position > 40_000 && !noted.ended,
            "{noted:?}"
        );
        let (mut open, _) = initiate(&peer(server, mode, &patient()), names.next())
            .await
            .unwrap();
        let outcome = open.settle(&noted, &pieces).await;
        assert!(outcome.is_transferred(), "{outcome:?}");
        let book = book.lock().unwrap();
        assert_eq!((book.seen.get(&9), book.resumed), (Some(&1), 1));
    }
}

/// The sender asks while the receiver, which has not seen the cut, is making the APDU safe.
#[tokio::test]
async fn a_transfer_that_is_being_made_safe_is_not_settled() {
    let book = book();
    let (listener, address) = listen().await;
    let (peer, responder) = (peer(address, NORMAL, &patient()), responder(&patient()));
    let names = Names::new("mta-a");
    let pieces = apdu(3, 500);
    let (opened, accepted) =
        tokio::join!(initiate(&peer, names.next()), accept(&listener, &responder));
    let (mut first, mut receiver) = (opened.unwrap().0, accepted.unwrap());
    let sending = async {
        tokio::time::timeout(millis(200), first.transfer(&pieces))
            .await
            .unwrap_err();
        let broken = first.broken().unwrap();
        drop(first);
        broken
    };
    let receiving = async {
        let Next::Incoming(activity) = receiver.next().await else {
            panic!("a transfer")
        };
        assert!(book.lock().unwrap().history.begun(&activity));
        receiver.collect(Partial::default(), 1_000).await.unwrap();
        activity
    };
    let (broken, activity) = tokio::join!(sending, receiving);
    assert!(broken.ended);
    let settled = settle_anew(&peer, &listener, &responder, &book, &broken, &pieces).await;
    assert!(
        matches!(settled, Outcome::InDoubt(End::Aborted(_), _)),
        "{settled:?}"
    );
    assert_eq!(book.lock().unwrap().busy, 1);
    book.lock().unwrap().history.received(&activity);
    let _too_late = receiver.confirm().await;
    let settled = settle_anew(&peer, &listener, &responder, &book, &broken, &pieces).await;
    assert!(settled.is_transferred(), "{settled:?}");
}

async fn settle_anew(
    peer: &Peer,
    listener: &tokio::net::TcpListener,
    responder: &Responder,
    book: &SharedBook,
    broken: &vere_osi::rtse::Broken,
    pieces: &[bytes::Bytes],
) -> Outcome {
    let name = Names::new("mta-a-again").next();
    let (opened, accepted) = tokio::join!(initiate(peer, name), accept(listener, responder));
    let mut open = opened.unwrap().0;
    let receiving = tokio::spawn(sink(accepted.unwrap(), book.clone()));
    let outcome = open.settle(broken, pieces).await;
    drop(open);
    receiving.await.unwrap();
    outcome
}
