//! What is refused, or has bounds.

use super::*;

#[test]
fn lengths_are_checked_before_anything_else() {
    let mut octets = encoded(|out| Request::Stat.encode(out, Seq(1)));
    assert_eq!(Header::peek(&octets[..15], MAX), Ok(None));
    octets[0..4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(
        Header::peek(&octets, MAX),
        Err(WireError::Length { .. })
    ));
    octets[0..4].copy_from_slice(&19_u32.to_le_bytes());
    assert!(matches!(
        Header::peek(&octets, MAX),
        Err(WireError::Length { .. })
    ));
    octets[0..4].copy_from_slice(&20_u32.to_le_bytes());
    octets[6] = 1;
    assert_eq!(Header::peek(&octets, MAX), Err(WireError::Reserved));
}

/// A CLOSE was read whatever its number, which means nothing and must be 0; found by fuzzing.
#[test]
fn a_close_has_no_number() {
    let octets = encoded(|out| {
        crate::frame::write_frame(out, Op::Close, 0, 1, |out| {
            out.extend_from_slice(&CloseReason::TakenOver.code().to_le_bytes());
            out.extend_from_slice(&[0; 4]);
        });
    });
    let frame = Frame::read(&octets, MAX).unwrap().unwrap();
    assert_eq!(Answer::decode(&frame), Err(WireError::Layout(Op::Close)));
}

#[test]
fn a_batch_must_begin_bodies_before_sharing_them() {
    let same = Change::Put {
        queue: QueueId(0),
        id: RecordId(1),
        meta: b"",
        body: None,
    };
    let octets = encoded(|out| encode_batch(out, Txn(1), [same].into_iter(), 0));
    let frame = Frame::read(&octets, MAX).unwrap().unwrap();
    assert!(matches!(
        Mutation::decode(&frame),
        Err(WireError::Layout(Op::Batch))
    ));
    // Outside a batch there is nothing to share.
    let octets = encoded(|out| encode_change(out, Txn(1), &same, 0));
    let frame = Frame::read(&octets, MAX).unwrap().unwrap();
    assert!(matches!(Mutation::decode(&frame), Err(WireError::Reserved)));
}

#[test]
fn a_queue_is_made_with_readers_of_its_own() {
    let created = |readers: Grants<'_>| {
        let charter = QueueCharter {
            readers,
            ..QueueCharter::default()
        };
        let octets = encoded(|out| encode_create(out, Txn(1), QueueId(3), "q", charter));
        let frame = Frame::read(&octets, MAX).unwrap().unwrap();
        match Mutation::decode(&frame)? {
            Mutation::Create { charter, .. } => Ok(KeptGrants::from(charter.readers)),
            other => panic!("{other:?}"),
        }
    };
    for readers in [KeptGrants::default(), read_queue().readers] {
        assert_eq!(created(readers.get()), Ok(readers.clone()));
        let queue = QueueStat {
            readers: readers.clone(),
            ..kept_queue()
        };
        let octets = encoded(|out| encode_kept_create(out, Txn(1), &queue));
        let frame = Frame::read(&octets, MAX).unwrap().unwrap();
        match Mutation::decode_logged(&frame) {
            Ok(Mutation::KeptCreate { charter, name, .. }) => {
                assert_eq!((charter.readers, name), (readers.get(), "a.test"));
            }
            other => panic!("{other:?}"),
        }
    }
    // Who is to adopt does so with the whole group.
    let adopts = Grants::read(GRANTS).unwrap();
    assert_eq!(created(adopts), Err(WireError::Layout(Op::Create)));
    let queue = QueueStat {
        readers: adopts.into(),
        ..kept_queue()
    };
    let octets = encoded(|out| encode_kept_create(out, Txn(1), &queue));
    let frame = Frame::read(&octets, MAX).unwrap().unwrap();
    assert!(matches!(
        Mutation::decode_logged(&frame),
        Err(WireError::Layout(Op::Create))
    ));
}

#[test]
fn flags_of_the_log_are_refused_on_the_wire() {
    let put = Change::Put {
        queue: QueueId(0),
        id: RecordId(1),
        meta: b"",
        body: Some(b"x"),
    };
    let octets = encoded(|out| encode_change(out, Txn(1), &put, FLAG_KEPT));
    let frame = Frame::read(&octets, MAX).unwrap().unwrap();
    assert!(matches!(Mutation::decode(&frame), Err(WireError::Reserved)));
    assert!(matches!(Mutation::decode_logged(&frame), Ok(Mutation::Change(read)) if read == put));
    let octets = encoded(|out| encode_kept_create(out, Txn(1), &kept_queue()));
    let frame = Frame::read(&octets, MAX).unwrap().unwrap();
    assert!(matches!(Mutation::decode(&frame), Err(WireError::Reserved)));
}

#[test]
fn a_reset_says_after_which_transaction() {
    let octets = encoded(|out| encode_reset(out, Txn(7)));
    let frame = Frame::read(&octets, FRAME_MIN).unwrap().unwrap();
    assert_eq!(decode_reset(&frame), Ok(Txn(7)));
    assert!(!frame.header.op.is_mutation());
    assert!(matches!(
        Mutation::decode_logged(&frame),
        Err(WireError::Operation(_))
    ));
    let octets = encoded(|out| Request::Complete.encode(out, Seq(7)));
    let frame = Frame::read(&octets, FRAME_MIN).unwrap().unwrap();
    assert!(matches!(
        decode_reset(&frame),
        Err(WireError::Operation(0x53))
    ));
}

#[test]
fn only_a_duty_has_flags() {
    for (request, flag) in [
        (Request::Complete, 0x01),
        (Request::Duty { log: true }, 0x02),
        (Request::End { records: true }, 0x02),
    ] {
        let mut octets = encoded(|out| request.encode(out, Seq(1)));
        octets[5] |= flag;
        let crc = vere_checksum::crc32c(&octets[..16]);
        octets[16..].copy_from_slice(&crc.to_le_bytes());
        let frame = Frame::read(&octets, MAX).unwrap().unwrap();
        assert_eq!(Request::decode(&frame), Err(WireError::Reserved));
    }
}

#[test]
fn metadata_is_bounded() {
    let meta = vec![0; META_MAX + 1];
    let put = Change::Replace {
        queue: QueueId(0),
        id: RecordId(1),
        meta: &meta,
    };
    let octets = encoded(|out| encode_change(out, Txn(1), &put, 0));
    let frame = Frame::read(&octets, 2 * META_MAX).unwrap().unwrap();
    assert!(matches!(
        Mutation::decode(&frame),
        Err(WireError::Layout(Op::Replace))
    ));
}

#[test]
fn a_list_of_queues_rises_and_ends_below_the_limit() {
    let queue = |id| QueueStat {
        id: QueueId(id),
        name: "q".to_owned(),
        limits: QueueLimits::UNLIMITED,
        readers: readers(&[]),
        first: RecordId(1),
        next: RecordId(1),
        length: 0,
        bytes: 0,
    };
    for (ids, good) in [
        (&[0, 5, QUEUES_MAX - 1][..], true),
        (&[QUEUES_MAX], false),
        (&[u32::MAX], false),
        (&[5, 5], false),
        (&[5, 4], false),
    ] {
        let list = Answer::QueueList {
            seq: Seq(1),
            queues: ids.iter().copied().map(queue).collect(),
            end: false,
        };
        let mut octets = Vec::new();
        list.encode(&mut octets);
        let frame = Frame::read(&octets, ANSWER_FRAME_MAX).unwrap().unwrap();
        let malformed = Err(WireError::Layout(Op::QueueList));
        let expected = if good { Ok(list) } else { malformed };
        assert_eq!(Answer::decode(&frame), expected, "{ids:?}");
    }
}
