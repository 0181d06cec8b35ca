//! Associations that do not come about.

use bytes::Bytes;
use vere_ber::ObjectIdentifier;

use super::pair::{Pair, X410, request};
use crate::Limits;
use crate::acse::{Diagnostic, UserDiagnostic};
use crate::association::*;
use crate::names;
use crate::presentation;
use crate::rtse::RefuseReason;
use crate::session;
use crate::transport::{DisconnectReason, TransportError};

fn rejection(pair: &mut Pair, request: OpenRequest) -> Rejected {
    pair.a.association.open(request).unwrap();
    pair.run();
    let told = pair.a.told();
    let [Event::Rejected(rejected)] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(pair.b.told(), [], "the host of the responder is not asked");
    assert!(pair.a.closed && pair.b.closed);
    rejected.clone()
}

#[test]
fn unknown_selectors_are_refused_by_their_layer() {
    let mut config = ResponderConfig::new(Profile::mts_transfer());
    config.transport_selectors = vec![Bytes::from_static(b"other")];
    let mut pair = Pair::new(Limits::default(), config.clone(), 3);
    let unknown = TransportError::Refused(DisconnectReason::AddressUnknown);
    assert_eq!(
        rejection(&mut pair, request(Mode::Normal)).by,
        Rejection::Transport(unknown)
    );
    config.transport_selectors = vec![Bytes::from_static(b"mta")];
    config.session_selectors = vec![Bytes::from_static(b"other")];
    let mut pair = Pair::new(Limits::default(), config, 3);
    let unknown = session::RefuseReason::SelectorUnknown;
    assert_eq!(
        rejection(&mut pair, request(X410)).by,
        Rejection::Session(unknown)
    );
}

#[test]
fn another_application_context_is_rejected() {
    let mut profile = Profile::mts_transfer();
    profile.application_context = ObjectIdentifier::new(&[2, 6, 0, 1, 99]).unwrap();
    let mut pair = Pair::plain(3);
    let rejected = rejection(
        &mut pair,
        OpenRequest {
            profile: profile.clone(),
            ..request(Mode::Normal)
        },
    );
    let context = UserDiagnostic::ApplicationContextNotSupported;
    assert_eq!(
        rejected.by,
        Rejection::Association(Diagnostic::User(context))
    );
    assert!(!rejected.transient);
    profile.rtse = ObjectIdentifier::new(&[2, 6, 0, 2, 99]).unwrap();
    let mut pair = Pair::plain(3);
    let rejected = rejection(
        &mut pair,
        OpenRequest {
            profile,
            ..request(Mode::Normal)
        },
    );
    assert_eq!(
        rejected.by,
        Rejection::Presentation(presentation::RejectReason::NotSpecified)
    );
}

#[test]
fn an_apdu_context_may_be_missing() {
    let mut profile = Profile::mts_transfer();
    profile
        .apdus
        .push(ObjectIdentifier::new(&[2, 6, 0, 2, 99]).unwrap());
    let open = OpenRequest {
        profile,
        ..request(Mode::Normal)
    };
    let pair = Pair::open_with(open, Pair::plain(9));
    let other = ObjectIdentifier::new(&[2, 6, 0, 2, 99]).unwrap();
    assert_eq!(pair.a.association.context(&other), None);
    assert_eq!(pair.a.association.context(&names::MTSE), Some(5));
}

#[test]
fn the_host_rejects() {
    for (reason, transient) in [
        (RefuseReason::RtsBusy, true),
        (RefuseReason::ValidationFailure, false),
    ] {
        for mode in [Mode::Normal, X410] {
            let mut pair = Pair::plain(7);
            pair.a.association.open(request(mode)).unwrap();
            pair.run();
            assert!(matches!(&pair.b.told()[..], [Event::OpenIndication(_)]));
            let user_data = Some(crate::testing::hex("b205 a003 020100"));
            let request = RejectRequest {
                diagnostic: UserDiagnostic::AuthenticationFailure,
                user_data: user_data.clone(),
                ..RejectRequest::because(reason)
            };
            pair.b.association.reject(&request).unwrap();
            assert!(pair.b.association.reject(&request).is_err());
            pair.run();
            let told = pair.a.told();
            let [Event::Rejected(rejected)] = &told[..] else {
                panic!("{told:?}")
            };
            assert_eq!(rejected.transient, transient);
            let by = match mode {
                Mode::Normal => {
                    Rejection::Association(Diagnostic::User(UserDiagnostic::AuthenticationFailure))
                }
                Mode::X410(_) => Rejection::ReliableTransfer(reason),
            };
            assert_eq!(rejected.by, by);
            assert_eq!(
                rejected.user_data,
                user_data.filter(|_| mode == Mode::Normal)
            );
            assert!(pair.a.closed && pair.b.closed);
        }
    }
}

#[test]
fn versions_of_the_session_are_negotiated() {
    let mut config = ResponderConfig::new(Profile::mts_transfer());
    config.session_versions = session::version::TWO;
    let mut pair = Pair::new(Limits::default(), config, 3);
    let rejected = rejection(&mut pair, request(X410));
    assert_eq!(
        rejected.by,
        Rejection::Session(session::RefuseReason::Version)
    );
    let mut long = request(Mode::Normal);
    let bind = vere_ber::write::primitive(vere_ber::Tag::OCTET_STRING, &[7; 20_000]);
    long.data = crate::rtse::ConnectionData::Open(Some(bind.into_bytes()));
    Pair::open_with(long.clone(), Pair::plain(333));
    long.mode = X410;
    let mut pair = Pair::plain(333);
    assert!(
        pair.a.association.open(long).is_err(),
        "version 1 has 512 octets"
    );
}

#[test]
fn the_end_of_the_connection_is_a_rejection() {
    let mut pair = Pair::plain(7);
    pair.a.association.open(request(Mode::Normal)).unwrap();
    pair.a.association.ended();
    pair.run();
    let told = pair.a.told();
    let [Event::Rejected(rejected)] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(rejected.by, Rejection::Transport(TransportError::Network));
    assert!(rejected.transient);
}

#[test]
fn a_host_that_is_asked_learns_of_the_end() {
    let mut pair = Pair::plain(7);
    pair.a.association.open(request(Mode::Normal)).unwrap();
    pair.run();
    pair.b.told();
    pair.b.association.ended();
    pair.run();
    let network = AbortCause::Transport(TransportError::Network);
    assert_eq!(pair.b.told(), [Event::Aborted(network, None)]);
    assert!(pair.b.association.accept(super::pair::accepting()).is_err());
}
