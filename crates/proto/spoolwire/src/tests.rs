use proptest::prelude::*;
use vere_units::Secret;

use super::*;

const MAX: usize = 1 << 20;

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn encoded(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn creation_frames() -> Vec<(&'static str, Vec<u8>)> {
    let queue = QueueId(3);
    let limits = kept_queue().limits;
    vec![
        (
            "create",
            encoded(|out| encode_create(out, Txn(1), queue, "a.test", limits)),
        ),
        (
            "create-read",
            encoded(|out| {
                let readers = read_queue().readers;
                let readers = readers.get();
                let charter = QueueCharter { limits, readers };
                encode_create(out, Txn(1), queue, "a.test", charter);
            }),
        ),
    ]
}

fn mutation_frames() -> Vec<(&'static str, Vec<u8>)> {
    let queue = QueueId(3);
    let put = Change::Put {
        queue,
        id: RecordId(7),
        meta: b"m",
        body: Some(b"hello"),
    };
    let same = Change::Put {
        queue: QueueId(4),
        id: RecordId(1),
        meta: b"n",
        body: None,
    };
    let delete = Change::Delete {
        queue,
        id: RecordId(6),
    };
    let replace = Change::Replace {
        queue,
        id: RecordId(7),
        meta: b"mm",
    };
    let (to, to_id) = (QueueId(4), RecordId(2));
    let move_to = Change::Move {
        queue,
        id: RecordId(7),
        to,
        to_id,
        meta: Some(b"x"),
    };
    vec![
        ("put", encoded(|out| encode_change(out, Txn(2), &put, 0))),
        (
            "delete",
            encoded(|out| encode_change(out, Txn(3), &delete, 0)),
        ),
        (
            "replace",
            encoded(|out| encode_change(out, Txn(4), &replace, 0)),
        ),
        (
            "move",
            encoded(|out| encode_change(out, Txn(5), &move_to, 0)),
        ),
        (
            "purge",
            encoded(|out| encode_purge(out, Txn(6), queue, RecordId(9), true)),
        ),
        (
            "batch",
            encoded(|out| encode_batch(out, Txn(7), [put, same, delete].into_iter(), 0)),
        ),
        (
            "refused",
            encoded(|out| encode_refused(out, Txn(5), Refusal::NodeFull)),
        ),
        ("owned", encoded(|out| encode_owned(out, Txn(5), 0x0304, 6))),
    ]
}

fn rebuilding_frames() -> Vec<(&'static str, Vec<u8>)> {
    let put = Change::Put {
        queue: QueueId(3),
        id: RecordId(7),
        meta: b"m",
        body: Some(b"hello"),
    };
    vec![
        ("reset", encoded(|out| encode_reset(out, Txn(7)))),
        (
            "kept-create",
            encoded(|out| encode_kept_create(out, Txn(7), &kept_queue())),
        ),
        (
            "kept-create-read",
            encoded(|out| encode_kept_create(out, Txn(7), &read_queue())),
        ),
        (
            "kept-put",
            encoded(|out| encode_change(out, Txn(7), &put, FLAG_KEPT)),
        ),
    ]
}

fn kept_queue() -> QueueStat {
    QueueStat {
        id: QueueId(3),
        name: "a.test".to_owned(),
        limits: QueueLimits {
            length_max: 1000,
            bytes_max: 1 << 20,
        },
        readers: KeptGrants::default(),
        first: RecordId(4),
        next: RecordId(8),
        length: 2,
        bytes: 100,
    }
}

/// One that `bill` may read.
fn read_queue() -> QueueStat {
    let readers = Grants::encode([("bill", Right::Read)]).unwrap();
    QueueStat {
        readers: Grants::read(&readers).unwrap().into(),
        ..kept_queue()
    }
}

fn other_frames() -> Vec<(&'static str, Vec<u8>)> {
    let (queue, seq) = (QueueId(3), Seq(8));
    let fetch = Request::Fetch {
        queue,
        from: RecordId(7),
        records: 10,
        octets: 4096,
    };
    let head = BlockHead {
        queue,
        records: 2,
        next: RecordId(9),
        octets: 100,
        end: true,
        known: false,
    };
    let refused = [(Txn(5), Refusal::QueueFull)];
    let signed = hello().sign(&greeting(), &Secret::new([1; 32]));
    let attached = Answer::Attached {
        seq,
        processed: Txn(10),
        acknowledged: Txn(9),
        refused: refused.to_vec(),
    };
    let attach = Request::Attach {
        acknowledged: Txn(4),
    };
    vec![
        ("greeting", encoded(|out| greeting().encode(out))),
        ("hello", encoded(|out| signed.encode(out))),
        ("welcome", encoded(|out| welcome().encode(out))),
        (
            "chartered",
            encoded(|out| encode_chartered(out, Txn(9), "east", charter())),
        ),
        ("fetch", encoded(|out| fetch.encode(out, seq))),
        ("attach", encoded(|out| attach.encode(out, seq))),
        (
            "complete",
            encoded(|out| Request::Complete.encode(out, seq)),
        ),
        (
            "duty",
            encoded(|out| Request::Duty { log: true }.encode(out, seq)),
        ),
        ("ack", encoded(|out| encode_ack(out, Txn(9), &refused))),
        (
            "block",
            encoded(|out| Answer::Block { seq, head }.encode(out)),
        ),
        ("stats", encoded(|out| stats(seq).encode(out))),
        (
            "queue-list",
            encoded(|out| {
                let queues = vec![kept_queue(), read_queue()];
                let end = true;
                Answer::QueueList { seq, queues, end }.encode(out);
            }),
        ),
        ("attached", encoded(|out| attached.encode(out))),
        (
            "close",
            encoded(|out| Answer::Close(CloseReason::TakenOver).encode(out)),
        ),
    ]
}

fn stats(seq: Seq) -> Answer {
    let stat = NodeStat {
        incarnation: Incarnation(0x0102),
        processed: Txn(10),
        acknowledged: Txn(9),
        queues: 1,
        records: 2,
        bytes: 100,
        memory_used: 4096,
        memory_max: 65_536,
        log_bytes: 512,
        epoch: 6,
        spilled: 8192,
        bytes_max: 1 << 20,
        fill: 62,
        synced: true,
        full: false,
        syncing: true,
        damaged: false,
    };
    Answer::Stats { seq, stat }
}

fn welcome() -> Welcome {
    Welcome {
        processed: Txn(9),
        acknowledged: Txn(8),
        owner: 5,
        epoch: 6,
        synced: true,
        syncing: false,
        frame_max: 1 << 26,
        proof: [3; SECRET_LEN],
        refused: vec![(Txn(4), Refusal::NodeFull), (Txn(6), Refusal::NoRecord)],
    }
}

/// A change of these octets breaks deployed nodes and logs: it needs a new version.
#[test]
fn golden_bytes() {
    let text: String = creation_frames()
        .iter()
        .chain(&mutation_frames())
        .chain(&rebuilding_frames())
        .chain(&other_frames())
        .map(|(name, octets)| format!("{name} {}\n", hex(octets)))
        .collect();
    assert_eq!(text, include_str!("golden.txt"));
}

/// What a node of version 2 began with: its checksum is another, and that is not what is told.
#[test]
fn an_earlier_version_is_not_taken_for_damage() {
    let mut octets = encoded(|out| greeting().encode(out));
    octets[24..28].copy_from_slice(&[2, 0, 2, 0]);
    octets[64..].copy_from_slice(&[0xb8, 0x65, 0xa2, 0x1a]);
    assert_eq!(Frame::read(&octets, MAX).unwrap_err(), WireError::Earlier);
    for (at, most) in [(16, 2), (24, 3), (26, 3)] {
        let mut damaged = octets.clone();
        (damaged[26], damaged[at]) = (most, 3);
        assert_eq!(Frame::read(&damaged, MAX).unwrap_err(), WireError::Checksum);
    }
}

fn greeting() -> Greeting {
    Greeting {
        incarnation: Incarnation(0x0102),
        version_min: VERSION,
        version_max: VERSION,
        challenge: [7; SECRET_LEN],
    }
}

/// `west` may adopt, `watch` may read.
const GRANTS: &[u8] = b"\x01\x04west\x02\x05watch";

fn charter() -> Charter<'static> {
    Charter {
        bytes_max: 1 << 30,
        grants: Grants::read(GRANTS).unwrap(),
    }
}

fn hello() -> Hello<'static> {
    Hello {
        acknowledged: Txn(12),
        version: VERSION,
        role: Role::Owner,
        owner: 0x0304,
        epoch: 6,
        logged: true,
        group: "gateway",
        account: "east",
        charter: charter(),
        nonce: [9; SECRET_LEN],
        proof: [0; SECRET_LEN],
    }
}

#[test]
fn a_proof_holds_for_one_greeting_group_and_secret_only() {
    let secret = Secret::new([1; SECRET_LEN]);
    let signed = hello().sign(&greeting(), &secret);
    let octets = encoded(|out| signed.encode(out));
    let frame = Frame::read(&octets, HANDSHAKE_FRAME_MAX).unwrap().unwrap();
    let read = Hello::decode(&frame).unwrap();
    assert_eq!(read, signed);
    assert!(read.is_proven(&greeting(), &secret));
    assert!(!read.is_proven(&greeting(), &Secret::new([2; SECRET_LEN])));
    assert!(!read.is_proven(
        &Greeting {
            challenge: [8; SECRET_LEN],
            ..greeting()
        },
        &secret
    ));
    assert!(
        !Hello {
            group: "other",
            ..read
        }
        .is_proven(&greeting(), &secret)
    );
    assert!(
        !Hello {
            role: Role::Reader,
            ..read
        }
        .is_proven(&greeting(), &secret)
    );
    for other in [
        Hello { epoch: 7, ..read },
        Hello {
            logged: false,
            ..read
        },
        Hello {
            role: Role::Standby,
            ..read
        },
        Hello { owner: 1, ..read },
        Hello {
            account: "west",
            ..read
        },
        // The same octets, cut otherwise.
        Hello {
            group: "gatewaye",
            account: "ast",
            ..read
        },
        Hello {
            charter: Charter::OWN,
            ..read
        },
    ] {
        assert!(!other.is_proven(&greeting(), &secret), "{other:?}");
        let octets = encoded(|out| other.encode(out));
        let frame = Frame::read(&octets, HANDSHAKE_FRAME_MAX).unwrap().unwrap();
        assert_eq!(Hello::decode(&frame), Ok(other));
    }
    assert_ne!(read.answer(&greeting(), &secret), read.proof);
}

#[test]
fn handshake_frames_are_read_back() {
    let octets = encoded(|out| greeting().encode(out));
    let frame = Frame::read(&octets, HANDSHAKE_FRAME_MAX).unwrap().unwrap();
    assert_eq!(Greeting::decode(&frame), Ok(greeting()));
    for (synced, syncing) in [(false, false), (true, false), (false, true), (true, true)] {
        let welcome = Welcome {
            synced,
            syncing,
            ..welcome()
        };
        let octets = encoded(|out| welcome.encode(out));
        let frame = Frame::read(&octets, WELCOME_FRAME_MAX).unwrap().unwrap();
        assert_eq!(Welcome::decode(&frame), Ok(welcome));
        assert!(matches!(
            Greeting::decode(&frame),
            Err(WireError::Operation(_))
        ));
    }
}

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
    ] {
        let mut octets = encoded(|out| request.encode(out, Seq(1)));
        octets[5] |= flag;
        let crc = crate::checksum(&octets[..16]);
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

#[derive(Debug, Clone)]
enum Owned {
    Put(u32, u64, Vec<u8>, Option<Vec<u8>>),
    Delete(u32, u64),
    Replace(u32, u64, Vec<u8>),
    Move(u32, u64, u32, u64, Option<Vec<u8>>),
}

impl Owned {
    fn change(&self) -> Change<'_> {
        match self {
            Self::Put(queue, id, meta, body) => Change::Put {
                queue: QueueId(*queue),
                id: RecordId(*id),
                meta,
                body: body.as_deref(),
            },
            Self::Delete(queue, id) => Change::Delete {
                queue: QueueId(*queue),
                id: RecordId(*id),
            },
            Self::Replace(queue, id, meta) => Change::Replace {
                queue: QueueId(*queue),
                id: RecordId(*id),
                meta,
            },
            Self::Move(queue, id, to, to_id, meta) => Change::Move {
                queue: QueueId(*queue),
                id: RecordId(*id),
                to: QueueId(*to),
                to_id: RecordId(*to_id),
                meta: meta.as_deref(),
            },
        }
    }
}

fn octets() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..40)
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

fn owned() -> impl Strategy<Value = Owned> {
    prop_oneof![
        (
            any::<u32>(),
            any::<u64>(),
            octets(),
            proptest::option::of(octets())
        )
            .prop_map(|(queue, id, meta, body)| Owned::Put(queue, id, meta, body)),
        (any::<u32>(), any::<u64>()).prop_map(|(queue, id)| Owned::Delete(queue, id)),
        (any::<u32>(), any::<u64>(), octets())
            .prop_map(|(queue, id, meta)| Owned::Replace(queue, id, meta)),
        (
            any::<u32>(),
            any::<u64>(),
            any::<u32>(),
            any::<u64>(),
            proptest::option::of(octets())
        )
            .prop_map(|(queue, id, to, to_id, meta)| Owned::Move(queue, id, to, to_id, meta)),
    ]
}

fn queue_stat() -> impl Strategy<Value = QueueStat> {
    (
        "[a-z.]{1,40}",
        any::<(u32, u64, u64, u64)>(),
        any::<(u64, u64, u64)>(),
        proptest::collection::vec("[a-z]{1,32}", 0..=GRANTS_MAX),
    )
        .prop_map(
            |(name, (id, length_max, bytes_max, first), (next, length, bytes), names)| QueueStat {
                id: QueueId(id),
                name,
                limits: QueueLimits {
                    length_max,
                    bytes_max,
                },
                readers: readers(&names),
                first: RecordId(first),
                next: RecordId(next),
                length,
                bytes,
            },
        )
}

fn readers(names: &[String]) -> KeptGrants {
    let named = names.iter().map(|name| (name.as_str(), Right::Read));
    let octets = Grants::encode(named).unwrap();
    Grants::read(&octets).unwrap().into()
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        any::<(u32, u64, u32, u32)>().prop_map(|(queue, from, records, octets)| Request::Fetch {
            queue: QueueId(queue),
            from: RecordId(from),
            records,
            octets,
        }),
        Just(Request::Stat),
        any::<(u32, u32)>().prop_map(|(from, count)| Request::Queues {
            from: QueueId(from),
            count
        }),
        Just(Request::Heartbeat),
        any::<u64>().prop_map(|txn| Request::Attach {
            acknowledged: Txn(txn)
        }),
        Just(Request::Complete),
        any::<bool>().prop_map(|log| Request::Duty { log }),
    ]
}

fn attached() -> impl Strategy<Value = Answer> {
    let refusal = proptest::sample::select(Refusal::ALL);
    let refused = (any::<u64>().prop_map(Txn), refusal);
    let refused = proptest::collection::vec(refused, 0..9);
    (any::<(u64, u64, u64)>(), refused).prop_map(|((seq, processed, acknowledged), refused)| {
        Answer::Attached {
            seq: Seq(seq),
            processed: Txn(processed),
            acknowledged: Txn(acknowledged),
            refused,
        }
    })
}

fn stats_answer() -> impl Strategy<Value = Answer> {
    (
        any::<u64>(),
        any::<[u64; 13]>(),
        any::<(bool, bool, bool, bool)>(),
    )
        .prop_map(|(seq, f, (synced, full, syncing, damaged))| Answer::Stats {
            seq: Seq(seq),
            stat: NodeStat {
                incarnation: Incarnation(f[0]),
                processed: Txn(f[1]),
                acknowledged: Txn(f[2]),
                queues: f[3],
                records: f[4],
                bytes: f[5],
                memory_used: f[6],
                memory_max: f[7],
                log_bytes: f[8],
                epoch: f[9],
                spilled: f[10],
                bytes_max: f[11],
                fill: f[12],
                synced,
                full,
                syncing,
                damaged,
            },
        })
}

fn answer() -> impl Strategy<Value = Answer> {
    let refusal = proptest::sample::select(Refusal::ALL);
    let reason = proptest::sample::select(CloseReason::ALL);
    prop_oneof![
        (
            any::<u64>(),
            proptest::collection::vec((any::<u64>(), refusal), 0..9)
        )
            .prop_map(|(through, refused)| Answer::Ack {
                through: Txn(through),
                refused: refused
                    .into_iter()
                    .map(|(txn, code)| (Txn(txn), code))
                    .collect(),
            }),
        any::<(u64, u32, u32, u64, u64, bool)>().prop_map(
            |(seq, queue, records, next, octets, end)| Answer::Block {
                seq: Seq(seq),
                head: BlockHead {
                    queue: QueueId(queue),
                    records,
                    next: RecordId(next),
                    octets,
                    end,
                    known: !end,
                },
            }
        ),
        stats_answer(),
        (
            any::<u64>(),
            proptest::collection::vec(queue_stat(), 0..5),
            any::<bool>()
        )
            .prop_map(|(seq, mut queues, end)| {
                for (id, queue) in (0..QUEUES_MAX).rev().zip(queues.iter_mut().rev()) {
                    queue.id = QueueId(id);
                }
                Answer::QueueList {
                    seq: Seq(seq),
                    queues,
                    end,
                }
            }),
        any::<(u64, u64, u64)>().prop_map(|(seq, processed, acknowledged)| Answer::Alive {
            seq: Seq(seq),
            processed: Txn(processed),
            acknowledged: Txn(acknowledged),
        }),
        attached(),
        reason.prop_map(Answer::Close),
    ]
}

proptest! {
    #[test]
    fn changes_are_read_back(change in owned(), txn in any::<u64>()) {
        let change = change.change();
        prop_assume!(!matches!(change, Change::Put { body: None, .. }));
        let octets = encoded(|out| encode_change(out, Txn(txn), &change, 0));
        prop_assert_eq!(octets.len(), change_len(&change) + FRAME_MIN);
        let frame = Frame::read(&octets, MAX).unwrap().unwrap();
        prop_assert_eq!(frame.header.number, txn);
        match Mutation::decode(&frame).unwrap() {
            Mutation::Change(read) => prop_assert_eq!(read, change),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    /// The short way finds what the long one does, and nothing where that has an error.
    #[test]
    fn plain_changes_are_read_alike(
        put in any::<bool>(),
        flags in prop_oneof![9 => Just(0_u8), 1 => any::<u8>()],
        lengths in (0_u32..40, prop_oneof![0_u32..40, Just(META_MAX as u32 + 1), any::<u32>()]),
        numbers in any::<(u64, u32, u64)>(),
        cut in 0_usize..40,
        damaged in any::<prop::sample::Index>(),
    ) {
        let op = if put { Op::Put } else { Op::Delete };
        let (txn, queue, id) = numbers;
        let (len, meta_len) = lengths;
        let mut payload = queue.to_le_bytes().to_vec();
        payload.extend(meta_len.to_le_bytes());
        payload.extend(id.to_le_bytes());
        payload.extend(vec![7; len as usize]);
        payload.truncate((TARGET_LEN + len as usize).saturating_sub(cut.saturating_sub(20)));
        let octets = encoded(|out| {
            crate::frame::write_frame(out, op, flags, txn, |out| out.extend(&payload));
        });
        let frame = Frame::read(&octets, MAX).unwrap().unwrap();
        let long = match Mutation::decode(&frame) {
            Ok(Mutation::Change(Change::Put { queue, id, meta, body: Some(body) })) => {
                let (meta_len, body_len) = (meta.len() as u32, body.len() as u32);
                let put = PlainPut { meta_len, len: meta_len + body_len };
                Some(Plain { queue, id, put: Some(put) })
            }
            Ok(Mutation::Change(Change::Delete { queue, id })) => {
                Some(Plain { queue, id, put: None })
            }
            _ => None,
        };
        let short = |octets: &[u8], txn: u64| Plain::read(octets, MAX, Txn(txn));
        let long = long.filter(|_| flags == 0).map(|plain| (plain, octets.len()));
        prop_assert_eq!(short(&octets, txn), long);
        // What follows does not matter; another number, a part, a longer frame than may be does.
        let followed = [&octets[..], b"more"].concat();
        prop_assert_eq!(short(&followed, txn), long);
        prop_assert_eq!(short(&octets, txn ^ 1), None);
        prop_assert_eq!(short(&octets[..octets.len() - 1], txn), None);
        prop_assert_eq!(Plain::read(&octets, octets.len() - 1, Txn(txn)), None);
        let mut flipped = octets.clone();
        flipped[damaged.index(octets.len())] ^= 1;
        prop_assert_eq!(short(&flipped, txn), None);
    }

    #[test]
    fn batches_are_read_back(mut changes in proptest::collection::vec(owned(), 1..12)) {
        changes.insert(0, Owned::Put(0, 1, vec![], Some(vec![1])));
        let items = || changes.iter().map(Owned::change);
        let octets = encoded(|out| encode_batch(out, Txn(5), items(), 0));
        let frame = Frame::read(&octets, MAX).unwrap().unwrap();
        let Mutation::Batch(read) = Mutation::decode(&frame).unwrap() else {
            panic!("not a batch")
        };
        let read: Vec<_> = read.collect();
        prop_assert_eq!(read.len(), changes.len());
        for ((offset, read), change) in read.into_iter().zip(items()) {
            prop_assert_eq!(read, change);
            let body = HEADER_LEN + offset + ITEM_HEADER_LEN;
            prop_assert!(body + change_len(&change) <= octets.len() - CHECKSUM_LEN);
        }
    }

    #[test]
    fn kept_queues_are_read_back(mut queue in queue_stat(), txn in any::<u64>()) {
        queue.id.0 %= QUEUES_MAX;
        let octets = encoded(|out| encode_kept_create(out, Txn(txn), &queue));
        let frame = Frame::read(&octets, MAX).unwrap().unwrap();
        prop_assert_eq!((frame.header.number, frame.header.flags), (txn, FLAG_KEPT));
        let Mutation::KeptCreate { queue: id, name, charter, next } =
            Mutation::decode_logged(&frame).unwrap()
        else {
            panic!("not a queue")
        };
        prop_assert_eq!((id, name), (queue.id, queue.name.as_str()));
        prop_assert_eq!((charter, next), (queue.charter(), queue.next));
    }

    #[test]
    fn requests_are_read_back(request in request(), seq in any::<u64>()) {
        let octets = encoded(|out| request.encode(out, Seq(seq)));
        let frame = Frame::read(&octets, REQUEST_FRAME_MAX).unwrap().unwrap();
        prop_assert_eq!(Request::decode(&frame), Ok(request));
        prop_assert_eq!(frame.header.number, seq);
    }

    #[test]
    fn answers_are_read_back(answer in answer()) {
        let octets = encoded(|out| answer.encode(out));
        let frame = Frame::read(&octets, ANSWER_FRAME_MAX).unwrap().unwrap();
        prop_assert_eq!(Answer::decode(&frame), Ok(answer));
    }

    #[test]
    fn a_flipped_bit_is_noticed(change in owned(), at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let mut octets = encoded(|out| encode_change(out, Txn(1), &change.change(), 0));
        let at = at.index(octets.len());
        octets[at] ^= 1 << bit;
        // A changed length may ask for more; nothing may be taken for a frame.
        prop_assert!(!matches!(Frame::read(&octets, MAX), Ok(Some(_))));
    }

    #[test]
    fn any_octets_are_survived(mut octets in proptest::collection::vec(any::<u8>(), 20..200)) {
        let len = octets.len();
        octets[0..4].copy_from_slice(&u32::try_from(len).unwrap().to_le_bytes());
        octets[6..8].fill(0);
        for op in 0..=0x61 {
            octets[4] = op;
            let crc = crate::checksum(&octets[..len - 4]);
            octets[len - 4..].copy_from_slice(&crc.to_le_bytes());
            let Ok(Some(frame)) = Frame::read(&octets, MAX) else { continue };
            let _ = Mutation::decode(&frame).map(|mutation| match mutation {
                Mutation::Batch(changes) => changes.count(),
                _ => 0,
            });
            let _ = Mutation::decode_logged(&frame);
            let _ = Request::decode(&frame);
            let _ = Answer::decode(&frame);
            let _ = Greeting::decode(&frame);
            let _ = Hello::decode(&frame);
            let _ = Welcome::decode(&frame);
            let _ = decode_refused(&frame);
            let _ = decode_owned(&frame);
            let _ = decode_reset(&frame);
        }
    }
}
