//! Whatever is written is read back as it was, and what is damaged is not.

use proptest::prelude::*;

use super::*;

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
        any::<bool>().prop_map(|records| Request::End { records }),
    ]
}

fn attached() -> impl Strategy<Value = Answer> {
    let refusal = proptest::sample::select(NodeRefusal::ALL);
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
    let refusal = proptest::sample::select(NodeRefusal::ALL);
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
            let crc = vere_checksum::crc32c(&octets[..len - 4]);
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
