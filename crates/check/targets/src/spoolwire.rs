//! Frames between a gateway and its spool nodes.

use vere_spoolwire::{
    Answer, CHECKSUM_LEN, Change, Frame, Greeting, HEADER_LEN, Hello, Mutation, Op, Plain, Request,
    Seq, Txn, Welcome, decode_reset, encode_reset,
};

/// The longest frame accepted here.
const FRAME_MAX: usize = 64 * 1024;

pub(crate) const SEEDS: &[&[u8]] = &[
    // PUT into queue 3, record 7, metadata of one octet, a body.
    b"\x21\0\x02\0\0\0\0\0\0\0\x03\0\0\0\x01\0\0\0\x07\0\0\0\0\0\0\0mhello",
    b"\x22\0\x03\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0",
    b"\x04\0\x09\0\0\0\0\0\0\0",
    // CLOSE with a meaningless number, which was decoded and not encoded again.
    b"\x0f\0\0\xff\xff\xff\x01\x08\x06\x02\x02\0\0\0\0\0\0\0",
    b"\x40\0\x01\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0",
    // ATTACH, RESET, DUTY with the log, and a kept CREATE of queue 3.
    b"\x50\0\x01\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0",
    b"\x52\0\x07\0\0\0\0\0\0\0",
    b"\x54\x01\x01\0\0\0\0\0\0\0",
    b"\x20\x80\x07\0\0\0\0\0\0\0\x03\0\0\0\x01\0\0\0\xe8\x03\0\0\0\0\0\0\
      \0\0\x10\0\0\0\0\0\x04\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\
      \x64\0\0\0\0\0\0\0q",
    // The same queue, readable by "bill", and a CREATE of a queue readable by "bill".
    b"\x20\x80\x07\0\0\0\0\0\0\0\x03\0\0\0\x01\0\x06\0\xe8\x03\0\0\0\0\0\0\
      \0\0\x10\0\0\0\0\0\x04\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\
      \x64\0\0\0\0\0\0\0q\x02\x04bill",
    b"\x20\0\x01\0\0\0\0\0\0\0\x03\0\0\0\x01\0\0\0\xe8\x03\0\0\0\0\0\0\
      \0\0\x10\0\0\0\0\0q\x02\x04bill",
];

/// Takes octets as frames, and also as the content of a frame with correct length and checksum, which
/// random octets would never have.
pub(crate) fn frames(octets: &[u8]) {
    plain(octets);
    if let Ok(Some(frame)) = Frame::read(octets, FRAME_MAX) {
        decode(&frame);
    }
    let Some((&[op, flags, ref number @ ..], payload)) = octets.split_first_chunk::<10>() else {
        return;
    };
    let length = HEADER_LEN + payload.len() + CHECKSUM_LEN;
    if length > FRAME_MAX {
        return;
    }
    let mut framed = Vec::with_capacity(length);
    framed.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    framed.extend_from_slice(&[op, flags, 0, 0]);
    framed.extend_from_slice(number);
    framed.extend_from_slice(payload);
    framed.extend_from_slice(&vere_checksum::crc32c(&framed).to_le_bytes());
    plain(&framed);
    match Frame::read(&framed, FRAME_MAX) {
        Ok(Some(frame)) => decode(&frame),
        Ok(None) => panic!("a whole frame is not seen as whole"),
        Err(_) => assert!(Op::from_code(op).is_none()),
    }
    for cut in [0, HEADER_LEN.min(length), length - 1] {
        assert!(
            !matches!(Frame::read(&framed[..cut], FRAME_MAX), Ok(Some(_))),
            "cut at {cut}"
        );
    }
}

/// Runs every decoder on every frame: a decoder must refuse a frame of another kind.
fn decode(frame: &Frame<'_>) {
    if let Ok(Mutation::Batch(changes)) = Mutation::decode(frame) {
        assert!(changes.count() <= FRAME_MAX);
    }
    let _ = Mutation::decode_logged(frame);
    let number = frame.header.number;
    again(frame, Request::decode(frame).ok(), |request, out| {
        request.encode(out, Seq(number));
    });
    again(frame, Hello::decode(frame).ok(), Hello::encode);
    again(frame, decode_reset(frame).ok(), |txn, out| {
        encode_reset(out, *txn);
    });
    let _ = vere_spoolwire::decode_refused(frame);
    let _ = vere_spoolwire::decode_owned(frame);
    again(frame, Answer::decode(frame).ok(), Answer::encode);
    again(frame, Greeting::decode(frame).ok(), Greeting::encode);
    again(frame, Welcome::decode(frame).ok(), Welcome::encode);
}

/// The fast decoder of a PUT or DELETE with the expected number agrees with the general decoder.
fn plain(octets: &[u8]) {
    let frame = Frame::read(octets, FRAME_MAX).ok().flatten();
    let frame = frame.filter(|frame| frame.header.flags == 0);
    let change = |frame: &Frame<'_>| match Mutation::decode(frame) {
        Ok(Mutation::Change(Change::Delete { queue, id })) => Some((queue, id, None)),
        Ok(Mutation::Change(Change::Put {
            queue,
            id,
            meta,
            body: Some(body),
        })) => Some((queue, id, Some((meta.len(), meta.len() + body.len())))),
        _ => None,
    };
    let long = frame.and_then(|frame| Some((change(&frame)?, frame.header.len)));
    let number = octets.get(8..16).and_then(<[u8]>::first_chunk);
    let number = Txn(number.map_or(0, |number| u64::from_le_bytes(*number)));
    let short = Plain::read(octets, FRAME_MAX, number).map(|(plain, len)| {
        let put = plain.put;
        let put = put.map(|put| (put.meta_len as usize, put.len as usize));
        ((plain.queue, plain.id, put), len)
    });
    assert_eq!(long, short);
    let another = Txn(number.0.wrapping_add(1));
    assert_eq!(Plain::read(octets, FRAME_MAX, another), None);
}

/// A decoded value encodes to a frame with the same content.
fn again<T: std::fmt::Debug>(
    frame: &Frame<'_>,
    value: Option<T>,
    encode: impl Fn(&T, &mut Vec<u8>),
) {
    let Some(value) = value else {
        return;
    };
    let mut encoded = Vec::new();
    encode(&value, &mut encoded);
    match Frame::read(&encoded, usize::MAX) {
        Ok(Some(same)) => assert_eq!(
            (
                same.header.op,
                same.header.flags,
                same.header.number,
                same.payload
            ),
            (
                frame.header.op,
                frame.header.flags,
                frame.header.number,
                frame.payload
            ),
            "{value:?}"
        ),
        other => panic!("{value:?} encodes to {other:?}"),
    }
}
