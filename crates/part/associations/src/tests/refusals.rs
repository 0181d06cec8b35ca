//! Refusals: the responder refuses a peer, or no responder answers.

use vere_osi::association::{Addresses, Mode};
use vere_osi::session::RefuseReason;
use vere_x400::{Credentials, MtaBindError, MtaBindResult, MtaResponder, Password};

use super::help::*;
use crate::*;

async fn refused(
    peer: &Peer,
    listener: &tokio::net::TcpListener,
    responder: &Responder,
) -> Refusal {
    let (opened, accepted) = tokio::join!(
        initiate(peer, Names::new("mta-a").next()),
        accept(listener, responder)
    );
    accepted.unwrap_err();
    opened.unwrap_err().refusal().unwrap().clone()
}

#[tokio::test]
async fn a_wrong_password_is_refused() {
    for mode in [NORMAL, X410, Mode::X410(1)] {
        let (listener, address) = listen().await;
        let mut peer = peer(address, mode, &patient());
        peer.bind = introduction("mta-a", b"wrong").unwrap();
        let refusal = refused(&peer, &listener, &responder(&patient())).await;
        assert_eq!(
            refusal,
            Refusal::Bind(MtaBindError::AuthenticationError),
            "{mode:?}"
        );
        assert!(!refusal.is_transient() && !refusal.concerns_address());
    }
}

#[tokio::test]
async fn a_decision_that_takes_too_long_is_busy() {
    for mode in [NORMAL, X410] {
        let (listener, address) = listen().await;
        let peer = peer(address, mode, &patient());
        let responder = responder(&hasty_when_open());
        let slow = async {
            let (stream, address) = listener.accept().await.unwrap();
            let remote = Remote { address, tls: None };
            let caller = respond(&responder, Box::new(stream), remote).await.unwrap();
            caller.answer(std::future::pending()).await.unwrap_err()
        };
        let (opened, error) = tokio::join!(initiate(&peer, Names::new("mta-a").next()), slow);
        assert_eq!(error, NotOpen::Ended(End::Late(Wait::Decide)));
        let error = opened.unwrap_err();
        assert_eq!(error.refusal(), Some(&Refusal::Bind(MtaBindError::Busy)));
        assert!(error.refusal().unwrap().is_transient());
    }
}

#[tokio::test]
async fn selectors_are_checked() {
    let (listener, address) = listen().await;
    let mut responder = responder(&patient());
    responder.config.transport_selectors = vec!["P1".into()];
    responder.config.session_selectors = vec!["S1".into()];
    let mut peer = peer(address, NORMAL, &patient());
    let refusal = refused(&peer, &listener, &responder).await;
    assert!(matches!(refusal, Refusal::Transport(_)), "{refusal:?}");
    peer.called.transport = Some("P1".into());
    let refusal = refused(&peer, &listener, &responder).await;
    assert_eq!(refusal, Refusal::Session(RefuseReason::SelectorUnknown));
    peer.called = Addresses {
        transport: Some("P1".into()),
        session: Some("S1".into()),
        presentation: Some("PP".into()),
    };
    let (opened, accepted) = tokio::join!(
        initiate(&peer, Names::new("mta-a").next()),
        accept(&listener, &responder)
    );
    accepted.unwrap();
    assert_eq!(opened.unwrap().1, MtaBindResult::default());
}

#[tokio::test]
async fn the_peer_has_to_be_the_expected_one() {
    let (listener, address) = listen().await;
    let responder = responder(&patient());
    let answer = MtaBindResult::Authenticated(MtaResponder {
        responder_name: vere_ber::Ia5String::new("mta-b").unwrap(),
        responder_credentials: Credentials::Simple(Password::ia5(b"terces")),
        ..MtaResponder::default()
    });
    let cases = [
        ("mta-b", "terces", true),
        ("mta-b", "wrong", false),
        ("mta-c", "terces", false),
    ];
    for (name, password, fits) in cases {
        let mut peer = peer(address, NORMAL, &patient());
        peer.expected = Some(Expected {
            name: name.to_owned(),
            password: Some(vere_units::Secret::new(password.into())),
        });
        let answering = async {
            let (stream, address) = listener.accept().await.unwrap();
            let remote = Remote { address, tls: None };
            let caller = respond(&responder, Box::new(stream), remote).await.unwrap();
            let mut open = caller
                .answer(async { Decision::Accept(answer.clone()) })
                .await
                .unwrap();
            open.next().await
        };
        let opening = async {
            let opened = initiate(&peer, Names::new("mta-a").next()).await;
            opened
                .map(|_| ())
                .map_err(|error| error.refusal().unwrap().clone())
        };
        let (opened, _) = tokio::join!(opening, answering);
        assert_eq!(
            opened,
            if fits {
                Ok(())
            } else {
                Err(Refusal::Unexpected)
            }
        );
    }
}

#[tokio::test]
async fn addresses_are_tried_in_order() {
    let dead = listen().await.1;
    let (listener, address) = listen().await;
    let mut peer = peer(dead, NORMAL, &patient());
    peer.addresses.push(address);
    let responder = responder(&patient());
    let (opened, accepted) = tokio::join!(
        initiate(&peer, Names::new("mta-a").next()),
        accept(&listener, &responder)
    );
    let (a, b) = (opened.unwrap().0, accepted.unwrap());
    assert_eq!(a.facts().remote.address, address);
    assert_eq!(a.facts().session, b.facts().session);
    peer.addresses = vec![dead, dead];
    let error = initiate(&peer, Names::new("mta-a").next())
        .await
        .unwrap_err();
    assert_eq!(error.attempts.len(), 2);
    assert!(
        matches!(error.refusal(), Some(Refusal::Unreachable(_))),
        "{error}"
    );
    peer.addresses.clear();
    let error = initiate(&peer, Names::new("mta-a").next())
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "no address to connect to");
}
