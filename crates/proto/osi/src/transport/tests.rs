use super::*;
use crate::testing::hex;
use bytes::Bytes;
use vere_ber::Pieces;

fn transport(tpdu_size: u32) -> Transport {
    Transport::new(TransportConfig {
        reference: 1,
        tpdu_size,
    })
}

/// Two connected transports and the size each sends.
fn connected(ours: u32, theirs: u32) -> (Transport, Transport) {
    let (mut a, mut b) = (transport(ours), transport(theirs));
    a.connect(
        Some(Bytes::from_static(b"a")),
        Some(Bytes::from_static(b"b")),
    );
    b.receive(a.take_output().into_bytes());
    let Some(TransportEvent::ConnectIndication(request)) = b.poll() else {
        panic!("a request")
    };
    assert_eq!(request.called.unwrap(), "b");
    b.accept();
    a.receive(b.take_output().into_bytes());
    assert!(matches!(a.poll(), Some(TransportEvent::ConnectConfirm(_))));
    (a, b)
}

fn tsdus(transport: &mut Transport) -> Vec<Vec<u8>> {
    let mut whole = vec![Vec::new()];
    while let Some(event) = transport.poll() {
        let TransportEvent::Data { octets, end } = event else {
            panic!("data")
        };
        whole.last_mut().unwrap().extend_from_slice(&octets);
        if end {
            whole.push(Vec::new());
        }
    }
    whole.pop();
    whole
}

#[test]
fn a_request_of_another_stack_is_read() {
    // The connection request of libiec61850's MMS client, in many public captures.
    let mut called = transport(TPDU_SIZE_MAX);
    called.receive(hex("0300001611e00000000100c0010dc2020001c1020001"));
    let Some(TransportEvent::ConnectIndication(request)) = called.poll() else {
        panic!("a request")
    };
    assert_eq!(request.size.power, Some(8192));
    assert_eq!(request.source, 1);
    assert_eq!(request.calling.unwrap(), hex("0001"));
    called.accept();
    assert_eq!(called.tpdu_size(), 8192);
    let confirm = called.take_output().into_bytes();
    assert_eq!(confirm, hex("0300001611d00001000100c0010dc1020001c2020001"));
}

#[test]
fn a_request_without_parameters_has_the_size_of_rfc_1006() {
    // The connection request of an ICCP client in a public test of protocol replies.
    for (size, confirm) in [
        (TPDU_SIZE_MAX, "0300000b06d00001000100"),
        (1024, "0300000e09d00001000100c0010a"),
    ] {
        let mut called = transport(size);
        called.receive(hex("0300000b06e00000000100"));
        assert!(called.poll().is_some());
        called.accept();
        assert_eq!(called.tpdu_size(), size);
        assert_eq!(called.take_output().into_bytes(), hex(confirm));
    }
}

#[test]
fn sizes_are_negotiated() {
    for (ours, theirs, size) in [
        (TPDU_SIZE_MAX, TPDU_SIZE_MAX, 65_408),
        (TPDU_SIZE_MAX, 2048, 2048),
        (2048, TPDU_SIZE_MAX, 2048),
        (128, 128, 128),
        (1000, TPDU_SIZE_MAX, 896),
        (50_000, 60_000, 49_920),
    ] {
        let (a, b) = connected(ours, theirs);
        assert_eq!(
            (a.tpdu_size(), b.tpdu_size()),
            (size, size),
            "{ours} {theirs}"
        );
    }
}

/// A request proposed 8,192 by parameter 0xC0, which X.224 does not allow in class 0: rusty-cotp closed the connection.
#[test]
fn a_request_proposes_sizes_of_class_0_alone() {
    for (ours, power, preferred) in [
        (TPDU_SIZE_MAX, 2048, Some(65_408)),
        (8192, 2048, Some(8192)),
        (4096, 2048, Some(4096)),
        (2048, 2048, None),
        (1000, 512, Some(896)),
    ] {
        let (mut a, mut b) = (transport(ours), transport(ours));
        a.connect(None, None);
        b.receive(a.take_output().into_bytes());
        let Some(TransportEvent::ConnectIndication(request)) = b.poll() else {
            panic!("a request")
        };
        assert_eq!(request.size.power, Some(power));
        assert_eq!(request.size.preferred, preferred);
    }
}

#[test]
fn tsdus_are_cut_and_put_together() {
    let (mut a, mut b) = connected(128, 128);
    let lengths = [0, 1, 124, 125, 126, 250, 251, 1000];
    for length in lengths {
        a.send(Pieces::from(vec![7; length]), false);
        a.send(Pieces::new(), true);
    }
    let octets = a.take_output().into_bytes();
    for chunk in [1, 2, 3, 50, 10_000] {
        for piece in octets.chunks(chunk) {
            b.receive(Bytes::copy_from_slice(piece));
        }
        let read: Vec<usize> = tsdus(&mut b).iter().map(Vec::len).collect();
        assert_eq!(read, lengths, "{chunk}");
    }
}

#[test]
fn a_tsdu_comes_in_pieces_before_its_packet_has_ended() {
    let (_, mut b) = connected(TPDU_SIZE_MAX, TPDU_SIZE_MAX);
    b.receive(hex("0300ffff02f080 6162"));
    let piece = TransportEvent::Data {
        octets: hex("6162"),
        end: false,
    };
    assert_eq!(b.poll(), Some(piece));
    assert_eq!(b.poll(), None);
}

#[test]
fn a_refusal_has_its_reason() {
    let (mut a, mut b) = (transport(128), transport(128));
    a.connect(None, None);
    b.receive(a.take_output().into_bytes());
    b.poll();
    b.disconnect(DisconnectReason::NotAttached);
    let refusal = b.take_output().into_bytes();
    assert_eq!(refusal, hex("0300000b068000000000 02"));
    a.receive(refusal);
    let refused = TransportError::Refused(DisconnectReason::NotAttached);
    assert_eq!(a.poll(), Some(TransportEvent::Disconnected(refused)));
    assert_eq!(a.state(), State::Closing);
}

#[test]
fn another_class_is_refused() {
    let mut called = transport(128);
    called.receive(hex("0300000b06e00000000140"));
    let failed = TransportError::Refused(DisconnectReason::NegotiationFailed);
    assert_eq!(called.poll(), Some(TransportEvent::Disconnected(failed)));
    assert_eq!(
        called.take_output().into_bytes(),
        hex("0300000b06800000000082")
    );
    let mut called = transport(128);
    called.receive(hex("0300000e09e00000000140c70100"));
    assert!(matches!(
        called.poll(),
        Some(TransportEvent::ConnectIndication(_))
    ));
}

#[test]
fn what_is_no_tpdu_is_rejected() {
    for (octets, error) in [
        ("0400000b06e00000000100", TpduError::Version(4).into()),
        ("0300000606e000", TpduError::Length.into()),
        ("0300000b07e00000000100", TpduError::Length.into()),
        ("0300000b06900000000100", TpduError::Code(0x90).into()),
        ("0300ffff06e000", TpduError::Length.into()),
        (
            "0300000e09e00000000100c00106",
            TpduError::Value(0xc0).into(),
        ),
        ("0300000702f080", TransportError::Unexpected(State::Closed)),
        (
            "0300000b06d00000000100",
            TransportError::Unexpected(State::Closed),
        ),
    ] {
        let mut called = transport(128);
        called.receive(hex(octets));
        assert_eq!(
            called.poll(),
            Some(TransportEvent::Disconnected(error)),
            "{octets}"
        );
        assert_eq!(called.take_output().into_bytes()[5], 0x70, "{octets}");
        assert_eq!(called.poll(), None);
    }
}

#[test]
fn the_end_of_the_network_is_told_once() {
    let (mut a, _) = connected(128, 128);
    a.ended();
    a.ended();
    assert_eq!(
        a.poll(),
        Some(TransportEvent::Disconnected(TransportError::Network))
    );
    assert_eq!(a.poll(), None);
}
