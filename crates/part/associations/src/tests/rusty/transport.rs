//! TPKT and COTP, class 0 (RFC 1006, X.224).

use std::any::Any;
use std::collections::VecDeque;

use bytes::Bytes;
use rusty_cotp::{
    CotpConnection, CotpError, CotpProtocolInformation, CotpReader, CotpResponder, CotpWriter,
    RustyCotpConnection, RustyCotpResponder,
};
use rusty_tpkt::{TcpTpktConnection, TcpTpktReader, TcpTpktWriter};
use vere_osi::transport::{
    DisconnectReason, TPDU_SIZE_MAX, Transport, TransportError, TransportEvent,
};

use super::{DATA_HEADER, REFERENCE, Wire, octets, tcp};

const CALLING: &[u8] = b"calling";
const CALLED: &[u8] = &[0, 0xFF, 7];

/// The sizes that our side has in its configuration. The largest that X.224 clause 13.3.4 b) has for class 0 is 2,048, which
/// is what their side proposes, and the most that it accepts: a proposal of 4,096 or 8,192 ends the connection there.
const SIZES: [u32; 7] = [TPDU_SIZE_MAX, 8192, 2048, 1024, 512, 256, 128];

type Initiator = RustyCotpConnection<TcpTpktReader, TcpTpktWriter>;
type Responder = RustyCotpResponder<TcpTpktReader, TcpTpktWriter>;

fn selectors() -> CotpProtocolInformation {
    CotpProtocolInformation::initiator(Some(CALLING.to_vec()), Some(CALLED.to_vec()))
}

/// User data around the edges of one TPDU and of two, and long ones.
fn lengths(room: usize) -> Vec<usize> {
    let mut lengths = vec![1, 127, 128, 1000, 65_000, 1_000_000];
    for edge in [room, 2 * room] {
        lengths.extend([edge - 1, edge, edge + 1]);
    }
    lengths
}

/// TPDUs of a TSDU: all are full but the last, which has the end mark.
fn cut(length: usize, room: usize) -> Vec<(usize, bool)> {
    let whole = length.saturating_sub(1) / room;
    let mut tpdus = vec![(room + DATA_HEADER, false); whole];
    tpdus.push((length - whole * room + DATA_HEADER, true));
    tpdus
}

/// Sends user data of many lengths both ways, and compares them and the TPDUs that carry them.
async fn exchange<C: CotpConnection>(
    ours: &mut Wire,
    theirs: C,
) -> (impl CotpReader + use<C>, impl CotpWriter + use<C>) {
    let room = usize::try_from(ours.transport.tpdu_size()).unwrap() - DATA_HEADER;
    let (mut reader, mut writer) = theirs.split().await.unwrap();
    for length in lengths(room) {
        let data = octets(length);
        let ((), received) = tokio::join!(ours.send(data.clone()), reader.recv());
        assert!(received.unwrap().unwrap() == data, "{length} there");
        assert_eq!(std::mem::take(&mut ours.sent.passed), cut(length, room));

        let mut queue = VecDeque::from([data.clone()]);
        let (sent, received) = tokio::join!(writer.send(&mut queue), ours.receive());
        sent.unwrap();
        assert!(received == data, "{length} back");
        assert_eq!(std::mem::take(&mut ours.received.passed), cut(length, room));
    }
    // A TSDU without octets, which X.214 does not know: ours is an end mark alone. Theirs sends nothing for it.
    ours.send(Vec::new()).await;
    assert_eq!(reader.recv().await.unwrap(), Some(Vec::new()));
    (reader, writer)
}

async fn answered(tpkt: TcpTpktConnection) -> (impl CotpConnection, CotpProtocolInformation) {
    let (responder, asked) = Responder::new(tpkt, Default::default()).await.unwrap();
    let accepted = responder.accept(asked.clone().responder()).await.unwrap();
    (accepted, asked)
}

#[tokio::test]
async fn our_initiator_and_their_responder() {
    for size in SIZES {
        let (stream, tpkt) = tcp().await;
        let mut ours = Wire::new(stream, size);
        let (calling, called) = (Bytes::from_static(CALLING), Bytes::from_static(CALLED));
        ours.transport.connect(Some(calling), Some(called));
        let (event, (theirs, asked)) = tokio::join!(ours.event(), answered(tpkt));
        assert_eq!(asked.calling_tsap_id().unwrap(), CALLING);
        assert_eq!(asked.called_tsap_id().unwrap(), CALLED);
        assert_eq!(asked.initiator_reference(), REFERENCE);
        let TransportEvent::ConnectConfirm(confirm) = event else {
            panic!("expected a confirm; found {event:?}");
        };
        assert_eq!(confirm.calling.unwrap(), CALLING);
        assert_eq!(confirm.called.unwrap(), CALLED);
        assert_eq!(confirm.destination, REFERENCE);
        assert_eq!(ours.transport.tpdu_size(), size.min(2048));

        // Their end of the TCP connection is our T-DISCONNECT indication.
        drop(exchange(&mut ours, theirs).await);
        ours.expect_end().await;
    }
}

#[tokio::test]
async fn their_initiator_and_our_responder() {
    for size in SIZES {
        let (stream, tpkt) = tcp().await;
        let mut ours = Wire::new(stream, size);
        let asking = selectors();
        let reference = asking.initiator_reference();
        let asks = Initiator::initiate(tpkt, asking, Default::default());
        let answers = async {
            let event = ours.event().await;
            ours.transport.accept();
            ours.flush().await;
            event
        };
        let (theirs, event) = tokio::join!(asks, answers);
        let TransportEvent::ConnectIndication(request) = event else {
            panic!("expected a request; found {event:?}");
        };
        assert_eq!(request.calling.unwrap(), CALLING);
        assert_eq!(request.called.unwrap(), CALLED);
        assert_eq!((request.source, request.destination), (reference, 0));
        assert_eq!(
            (request.size.power, request.size.preferred),
            (Some(2048), None)
        );
        assert_eq!(ours.transport.tpdu_size(), size.min(2048));

        let theirs = theirs.unwrap();
        let information = theirs.get_protocol_infomation_list().last().unwrap();
        let information: &dyn Any = &**information;
        let confirmed: &CotpProtocolInformation = information.downcast_ref().unwrap();
        assert_eq!(confirmed.called_tsap_id().unwrap(), CALLED);
        // The fault of rusty-cotp 1.2.0: the reference of the responder is SRC-REF of the CC TPDU (X.224 clause 13.4); their
        // interface shows DST-REF, the reference of the initiator.
        assert_eq!(confirmed.responder_reference(), reference);

        // Our end of the TCP connection is their end of the data.
        let (mut reader, _writer) = exchange(&mut ours, theirs).await;
        drop(ours);
        assert_eq!(reader.recv().await.unwrap(), None);
    }
}

/// A responder that does not want the connection says so by a DR TPDU, or closes the TCP connection: theirs has no DR.
#[tokio::test]
async fn refused_connections() {
    let (stream, tpkt) = tcp().await;
    let mut ours = Wire::new(stream, TPDU_SIZE_MAX);
    let asks = Initiator::initiate(tpkt, selectors(), Default::default());
    let answers = async {
        ours.event().await;
        ours.transport.disconnect(DisconnectReason::NotAttached);
        ours.flush().await;
    };
    let (refused, ()) = tokio::join!(asks, answers);
    let Err(CotpError::ProtocolError(text)) = refused.map(|_| ()) else {
        panic!("expected a refusal");
    };
    assert!(text.contains("disconnect"), "{text}");

    let (stream, tpkt) = tcp().await;
    let mut ours = Wire::new(stream, TPDU_SIZE_MAX);
    ours.transport.connect(None, None);
    let (event, ()) = tokio::join!(ours.event(), async {
        drop(Responder::new(tpkt, Default::default()).await.unwrap());
    });
    assert_eq!(event, TransportEvent::Disconnected(TransportError::Network));
}

/// An ER TPDU, by which our side answers octets that are no TPDU, ends their connection.
#[tokio::test]
async fn a_rejected_tpdu() {
    let (stream, tpkt) = tcp().await;
    let (mut ours, (theirs, _)) = tokio::join!(Wire::open(stream), answered(tpkt));
    let (mut reader, mut writer) = theirs.split().await.unwrap();
    // TPDUs of another machine that asks for a connection again.
    let mut again = Transport::new(Default::default());
    again.connect(None, None);
    ours.transport.receive(again.take_output().into_bytes());
    let event = ours.event().await;
    assert!(matches!(
        event,
        TransportEvent::Disconnected(TransportError::Unexpected(_))
    ));
    ours.flush().await;
    let Err(CotpError::ProtocolError(text)) = reader.recv().await else {
        panic!("expected an error");
    };
    assert!(text.contains("error from the remote host"), "{text}");
    drop(ours);
    let mut queue = VecDeque::from([octets(1)]);
    let _closed = writer.send(&mut queue).await;
}
