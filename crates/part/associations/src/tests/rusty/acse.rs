//! Presentation and ACSE (X.226, X.227), our encoders and decoders against their machines, in the application context of
//! mts-transfer.
//!
//! Theirs have two contexts, 1 for ACSE and 3 for everything else, of which RTSE of ours would want one and MTSE another.
//! They have no release by RLRQ: an association ends by an abort, or with its TCP connection.

use std::collections::VecDeque;

use bytes::Bytes;
use der_parser::Oid;
use rusty_acse::*;
use rusty_copp::*;
use rusty_cosp::{CospInitiator, CospProtocolInformation};
use rusty_cosp::{RustyCospAcceptorIsoStack, RustyCospInitiatorIsoStack};
use rusty_tpkt::{TcpTpktConnection, TcpTpktReader, TcpTpktWriter};
use vere_ber::{External, Fault, ObjectIdentifier, Tag, write};
use vere_osi::acse::{Aare, Aarq, Apdu, Authentication, EntityTitle, Source};
use vere_osi::acse::{AssociateResult as OurResult, Diagnostic, UserDiagnostic};
use vere_osi::names;
use vere_osi::presentation::UserData as OurUserData;
use vere_osi::presentation::{
    Abort, Accept, Connect, ContextDefinition, ContextResult, DataReader, NormalAccept,
    NormalConnect, NormalReject, Reject, RejectReason,
};
use vere_osi::session::{self, Spdu, disconnect};

use super::session::{
    FULL_DUPLEX, item, receive_connect, send_connect, their_transport, their_transport_answers,
};
use super::{Wire, octets, tcp};

const CALLING: &[u8] = b"calling";
const CALLED: &[u8] = &[0, 0, 0, 1];

/// Lengths of user information: AARQ in CONNECT, and in CONNECT DATA OVERFLOW.
const LENGTHS: [usize; 8] = [0, 1, 127, 128, 1000, 9_000, 11_000, 60_000];
const DATA_LENGTHS: [usize; 8] = [0, 1, 127, 128, 255, 1000, 65_000, 1_000_000];

type Initiator = RustyOsiSingleValueAcseInitiatorIsoStack<TcpTpktReader, TcpTpktWriter>;
type Listener = RustyOsiSingleValueAcseListenerIsoStack<TcpTpktReader, TcpTpktWriter>;

/// One BER value.
fn value(length: usize) -> Bytes {
    write::primitive(Tag::OCTET_STRING, &octets(length)).into_bytes()
}

fn theirs(name: &ObjectIdentifier) -> Oid<'static> {
    let arcs: Vec<u64> = name.arcs();
    Oid::from(&arcs).unwrap()
}

/// The names of both sides in an association, as their interface has them.
fn their_request() -> AcseRequestInformation {
    AcseRequestInformation {
        application_context_name: theirs(&names::MTS_TRANSFER),
        called_ap_title: Some(ApTitle::Form2(Oid::from(&[1, 2, 3]).unwrap())),
        called_ae_qualifier: Some(AeQualifier::Form2(vec![100])),
        called_ap_invocation_identifier: Some(vec![1]),
        called_ae_invocation_identifier: Some(vec![2]),
        calling_ap_title: Some(ApTitle::Form2(Oid::from(&[1, 2, 4]).unwrap())),
        calling_ae_qualifier: Some(AeQualifier::Form2(vec![0x7F])),
        calling_ap_invocation_identifier: Some(vec![0xFF]),
        calling_ae_invocation_identifier: Some(vec![1, 0]),
        implementation_information: None,
    }
}

/// The same names, as ours has them.
fn our_request(user_information: Bytes) -> Aarq {
    Aarq {
        application_context: names::MTS_TRANSFER,
        called: EntityTitle {
            ap_title: Some(Bytes::from_static(&[6, 2, 0x2A, 3])),
            ae_qualifier: Some(Bytes::from_static(&[2, 1, 100])),
            ap_invocation: Some(1),
            ae_invocation: Some(2),
        },
        calling: EntityTitle {
            ap_title: Some(Bytes::from_static(&[6, 2, 0x2A, 4])),
            ae_qualifier: Some(Bytes::from_static(&[2, 1, 0x7F])),
            ap_invocation: Some(-1),
            ae_invocation: Some(256),
        },
        authentication: Authentication::default(),
        user_information: vec![External::of_context(3, user_information)],
    }
}

fn their_response() -> AcseResponseInformation {
    AcseResponseInformation {
        application_context_name: theirs(&names::MTS_TRANSFER),
        associate_result: AssociateResult::Accepted,
        associate_source_diagnostic: AssociateSourceDiagnostic::User(
            AssociateSourceDiagnosticUserCategory::Null,
        ),
        responding_ap_title: Some(ApTitle::Form2(Oid::from(&[1, 2, 3]).unwrap())),
        responding_ae_qualifier: Some(AeQualifier::Form2(vec![100])),
        responding_ap_invocation_identifier: Some(vec![1]),
        responding_ae_invocation_identifier: Some(vec![2]),
        implementation_information: None,
    }
}

fn our_response(user_information: Bytes) -> Aare {
    Aare {
        application_context: names::MTS_TRANSFER,
        result: OurResult::Accepted,
        diagnostic: Diagnostic::User(UserDiagnostic::Null),
        responding: our_request(Bytes::new()).called,
        authentication: Authentication::default(),
        user_information: vec![External::of_context(3, user_information)],
    }
}

fn contexts() -> Vec<ContextDefinition> {
    vec![
        ContextDefinition::basic(1, names::ACSE),
        ContextDefinition::basic(3, names::MTA_RTSE),
    ]
}

fn accepted() -> Vec<ContextResult> {
    vec![ContextResult::Acceptance(names::BASIC_ENCODING); 2]
}

fn selectors() -> CoppConnectionInformation {
    CoppConnectionInformation {
        calling_presentation_selector: Some(CALLING.to_vec()),
        called_presentation_selector: Some(CALLED.to_vec()),
    }
}

async fn their_session(tpkt: TcpTpktConnection) -> impl CospInitiator {
    let transport = their_transport(tpkt).await;
    let nobody = CospProtocolInformation::new(None, None);
    RustyCospInitiatorIsoStack::<TcpTpktReader, TcpTpktWriter>::new(
        transport,
        nobody,
        Default::default(),
    )
    .await
    .unwrap()
}

async fn their_initiator(tpkt: TcpTpktConnection) -> impl OsiSingleValueAcseInitiator {
    let session = their_session(tpkt).await;
    let presentation =
        RustyCoppInitiatorIsoStack::<TcpTpktReader, TcpTpktWriter>::new(session, selectors());
    Initiator::new(presentation, their_request())
}

async fn their_presentation_answers(tpkt: TcpTpktConnection) -> impl CoppListener {
    let transport = their_transport_answers(tpkt).await;
    let (session, _) = RustyCospAcceptorIsoStack::<TcpTpktReader, TcpTpktWriter>::new(
        transport,
        Default::default(),
    )
    .await
    .unwrap();
    let (listener, asked) = RustyCoppListenerIsoStack::<TcpTpktReader, TcpTpktWriter>::new(session)
        .await
        .unwrap();
    assert_eq!(asked, selectors());
    listener
}

/// The CP and the AARQ of theirs.
async fn receive_request(wire: &mut Wire) -> (NormalConnect, Aarq) {
    let connect = receive_connect(wire).await;
    let Ok(Connect::Normal(connect)) = Connect::read(&connect.user_data) else {
        panic!("expected CP in normal mode");
    };
    let apdu = connect.user_data.as_ref().unwrap().value(1, None).unwrap();
    let Ok(Apdu::Aarq(request)) = Apdu::read(&apdu) else {
        panic!("expected AARQ");
    };
    (connect, request)
}

async fn send_response(wire: &mut Wire, response: Aare) {
    let apdu = Apdu::Aare(response).write().into_bytes();
    let accept = NormalAccept {
        responding: Some(Bytes::from_static(CALLED)),
        results: accepted(),
        user_data: Some(OurUserData::one(1, apdu)),
    };
    let accept = session::Accept {
        item: item(),
        requirements: FULL_DUPLEX,
        user_data: Accept::Normal(accept).write().into_bytes(),
        ..session::Accept::default()
    };
    wire.send_spdu(&Spdu::Accept(accept)).await;
}

async fn send_request(wire: &mut Wire, request: Aarq) {
    let apdu = Apdu::Aarq(request).write().into_bytes();
    let connect = NormalConnect {
        calling: Some(Bytes::from_static(CALLING)),
        called: Some(Bytes::from_static(CALLED)),
        contexts: contexts(),
        user_data: Some(OurUserData::one(1, apdu)),
    };
    let connect = session::Connect {
        item: item(),
        requirements: FULL_DUPLEX,
        user_data: Connect::Normal(connect).write().into_bytes(),
        ..session::Connect::default()
    };
    send_connect(wire, connect).await;
}

/// An association that they have asked for, with user information of this length both ways.
async fn asked(length: usize) -> (Wire, impl OsiSingleValueAcseConnection) {
    let (stream, tpkt) = tcp().await;
    let (mut wire, initiator) = tokio::join!(Wire::answer(stream), their_initiator(tpkt));
    let information = value(length);
    let answers = async {
        let (connect, request) = receive_request(&mut wire).await;
        assert_eq!(connect.calling.unwrap(), CALLING);
        assert_eq!(connect.called.unwrap(), CALLED);
        assert_eq!(connect.contexts, contexts());
        assert!(request == our_request(information.clone()), "{request:?}");
        send_response(&mut wire, our_response(information.clone())).await;
    };
    let asks = initiator.initiate(theirs(&names::MTA_RTSE), information.to_vec());
    let (opened, ()) = tokio::join!(asks, answers);
    let (theirs, response, received) = opened.unwrap();
    assert_eq!(response, their_response());
    assert!(received == information, "{length}");
    (wire, theirs)
}

/// An association that we have asked for, the same way.
async fn opened(length: usize) -> (Wire, impl OsiSingleValueAcseConnection) {
    let (stream, tpkt) = tcp().await;
    let information = value(length);
    let asks = async {
        let mut wire = Wire::open(stream).await;
        send_request(&mut wire, our_request(information.clone())).await;
        let answer = wire.receive_spdu().await;
        (wire, answer)
    };
    let answers = async {
        let presentation = their_presentation_answers(tpkt).await;
        let (mut listener, request) = Listener::new(presentation).await.unwrap();
        assert_eq!(request, their_request());
        listener.set_response(Some(their_response()));
        let (responder, received) = listener.responder().await.unwrap();
        assert!(received == information, "{length}");
        responder.accept(received).await.unwrap()
    };
    let ((wire, answer), theirs) = tokio::join!(asks, answers);
    let Spdu::Accept(answer) = answer else {
        panic!("expected ACCEPT; found {answer:?}");
    };
    let Ok(Accept::Normal(accept)) = Accept::read(&answer.user_data) else {
        panic!("expected CPA in normal mode");
    };
    assert_eq!(accept.responding.unwrap(), CALLED);
    assert_eq!(accept.results, accepted());
    let apdu = accept.user_data.unwrap().value(1, None).unwrap();
    assert!(Apdu::read(&apdu) == Ok(Apdu::Aare(our_response(information))));
    (wire, theirs)
}

/// Sends values of many lengths both ways.
async fn exchange(wire: &mut Wire, theirs: impl OsiSingleValueAcseConnection) {
    let (mut reader, mut writer) = theirs.split().await.unwrap();
    for length in DATA_LENGTHS {
        let sent = value(length);
        let ssdu = OurUserData::one(3, sent.clone()).write().into_bytes();
        let ((), received) = tokio::join!(wire.send_data(&ssdu, usize::MAX), reader.recv());
        assert!(
            received.unwrap() == AcseRecvResult::Data(sent.to_vec()),
            "{length}"
        );

        let mut queue = VecDeque::from([sent.to_vec()]);
        let (written, (ssdu, _)) = tokio::join!(writer.send(&mut queue), wire.receive_data());
        written.unwrap();
        let ssdu = Bytes::from(ssdu);
        let whole = OurUserData::read(&ssdu).unwrap().value(3, None);
        assert!(whole == Some(sent), "{length}");
        assert!(in_pieces(&ssdu) == octets(length), "{length}");
    }
}

/// The octets of a string in user data, as RTSE reads them.
fn in_pieces(ssdu: &Bytes) -> Vec<u8> {
    let mut reader = DataReader::new(3, false);
    let mut found = Vec::new();
    for piece in ssdu.chunks(1000) {
        reader.push(Bytes::copy_from_slice(piece));
        while let Some(octets) = reader.read().unwrap() {
            found.extend_from_slice(&octets);
        }
    }
    reader.end().unwrap();
    found
}

#[tokio::test]
async fn their_initiator_and_our_apdus() {
    for length in LENGTHS {
        let (mut wire, theirs) = asked(length).await;
        if length == 1 {
            exchange(&mut wire, theirs).await;
            wire.expect_end().await;
        }
    }
}

#[tokio::test]
async fn our_apdus_and_their_responder() {
    for length in LENGTHS {
        let (mut wire, theirs) = opened(length).await;
        if length == 1 {
            exchange(&mut wire, theirs).await;
            wire.expect_end().await;
        }
    }
}

/// A rejection by the ACSE service user: their initiator gets the AARE.
#[tokio::test]
async fn a_rejected_request() {
    let (stream, tpkt) = tcp().await;
    let (mut wire, initiator) = tokio::join!(Wire::answer(stream), their_initiator(tpkt));
    let information = value(1);
    let asks = initiator.initiate(theirs(&names::MTA_RTSE), information.to_vec());
    let (opened, ()) = tokio::join!(asks, async {
        receive_request(&mut wire).await;
        let rejected = Aare {
            result: OurResult::RejectedTransient,
            diagnostic: Diagnostic::User(UserDiagnostic::AuthenticationFailure),
            ..our_response(information.clone())
        };
        send_response(&mut wire, rejected).await;
    });
    let (_, response, _) = opened.unwrap();
    let category = AssociateSourceDiagnosticUserCategory::AuthenticationFailure;
    assert_eq!(
        response.associate_result,
        AssociateResult::RejectedTransient
    );
    let diagnostic = AssociateSourceDiagnostic::User(category);
    assert_eq!(response.associate_source_diagnostic, diagnostic);
}

fn refuse(user_data: Bytes) -> Spdu {
    Spdu::Refuse(session::Refuse {
        identifier: Default::default(),
        disconnect: disconnect::RELEASED,
        requirements: None,
        versions: None,
        reason: session::RefuseReason::UserData,
        user_data,
    })
}

/// CPR, from either side.
#[tokio::test]
async fn rejected_connections() {
    let (stream, tpkt) = tcp().await;
    let (mut wire, initiator) = tokio::join!(Wire::answer(stream), their_initiator(tpkt));
    let asks = initiator.initiate(theirs(&names::MTA_RTSE), value(1).to_vec());
    let (opened, ()) = tokio::join!(asks, async {
        receive_request(&mut wire).await;
        let reject = NormalReject {
            responding: Some(Bytes::from_static(CALLED)),
            results: accepted(),
            reason: Some(RejectReason::LocalLimitExceeded),
            user_data: None,
        };
        wire.send_spdu(&refuse(Reject::Normal(reject).write().into_bytes()))
            .await;
    });
    let Err(AcseError::ProtocolStackError(CoppError::Rejected(reason, _, None))) =
        opened.map(|_| ())
    else {
        panic!("expected CPR");
    };
    let limit = ProviderReason::Value(ProviderReasonValue::LocalLimitExceeded);
    assert_eq!(reason, Some(limit));

    let (stream, tpkt) = tcp().await;
    let asks = async {
        let mut wire = Wire::open(stream).await;
        send_request(&mut wire, our_request(value(1))).await;
        wire.receive_spdu().await
    };
    let answers = async {
        let listener = their_presentation_answers(tpkt).await;
        let results =
            PresentationContextResultType::ContextDefinitionList(vec![PresentationContextResult {
                result: PresentationContextResultCause::UserRejection,
                transfer_syntax_name: None,
                provider_reason: None,
            }]);
        let reason = ProviderReason::Value(ProviderReasonValue::TemporaryCongestion);
        listener.reject(results, Some(reason), None).await.unwrap();
    };
    let (refused, ()) = tokio::join!(asks, answers);
    let Spdu::Refuse(refused) = refused else {
        panic!("expected REFUSE; found {refused:?}");
    };
    assert_eq!(refused.reason, session::RefuseReason::UserData);
    let reject = NormalReject {
        responding: Some(Bytes::from_static(CALLED)),
        results: vec![ContextResult::UserRejection],
        reason: Some(RejectReason::TemporaryCongestion),
        user_data: None,
    };
    assert_eq!(Reject::read(&refused.user_data), Ok(Reject::Normal(reject)));
}

fn abrt() -> Bytes {
    Apdu::Abrt(Source::User, Vec::new()).write().into_bytes()
}

/// What their reader says of an ABORT SPDU with this PPDU.
async fn aborted(abort: Abort) -> AcseError {
    let (mut wire, theirs) = opened(1).await;
    let (mut reader, _writer) = theirs.split().await.unwrap();
    wire.send_spdu(&Spdu::Abort(session::Abort {
        disconnect: disconnect::RELEASED | disconnect::USER_ABORT,
        reflect: Bytes::new(),
        user_data: abort.write().into_bytes(),
    }))
    .await;
    reader.recv().await.unwrap_err()
}

/// The faults of rusty-copp 0.9.2: ARU in normal mode is `[0] IMPLICIT SEQUENCE` (X.226, "ARU-PPDU"), as theirs writes it,
/// but theirs reads SET. ARP is SEQUENCE, whose tag is octet 48; theirs looks for 30, and panics when it writes `[30]`. Each
/// abort ends the association there, without its reason.
#[tokio::test]
async fn our_aborts() {
    let user = Abort::User(Vec::new(), Some(OurUserData::one(1, abrt())));
    for abort in [user, Abort::Provider(Some(1))] {
        let error = aborted(abort).await;
        let AcseError::ProtocolStackError(CoppError::ProtocolError(_)) = error else {
            panic!("expected another error than {error:?}");
        };
    }
}

/// The ARU of theirs, in place of the answer to our request.
async fn their_abort(contexts: Vec<PresentationContextIdentifier>) -> Result<Abort, Fault> {
    let (stream, tpkt) = tcp().await;
    let asks = async {
        let mut wire = Wire::open(stream).await;
        send_request(&mut wire, our_request(value(1))).await;
        wire.receive_spdu().await
    };
    let answers = async {
        let listener = their_presentation_answers(tpkt).await;
        let values = UserData::FullyEncoded(vec![PresentationDataValueList {
            transfer_syntax_name: None,
            presentation_context_identifier: vec![1],
            presentation_data_values: PresentationDataValues::SingleAsn1Type(abrt().to_vec()),
        }]);
        let aborts = listener.user_abort(Some(contexts), Some(values));
        aborts.await.unwrap();
    };
    let (aborted, ()) = tokio::join!(asks, answers);
    let Spdu::Abort(aborted) = aborted else {
        panic!("expected ABORT; found {aborted:?}");
    };
    Abort::read(&aborted.user_data)
}

#[tokio::test]
async fn their_aborts() {
    let user = Abort::User(Vec::new(), Some(OurUserData::one(1, abrt())));
    assert_eq!(their_abort(Vec::new()).await, Ok(user));

    // The fault of rusty-copp 0.9.2: the fields of an item in the list of contexts have tags [0] and [1], where X.226 has
    // none ("Presentation-context-identifier-list").
    let acse = PresentationContextIdentifier {
        identifier: vec![1],
        transfer_syntax_name: theirs(&names::BASIC_ENCODING),
    };
    assert!(their_abort(vec![acse]).await.is_err());
}
