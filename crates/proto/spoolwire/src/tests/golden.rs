//! The octets of every frame.

use super::*;

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
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
            encoded(|out| encode_refused(out, Txn(5), NodeRefusal::NodeFull)),
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
    let refused = [(Txn(5), NodeRefusal::QueueFull)];
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
        (
            "end",
            encoded(|out| Request::End { records: true }.encode(out, seq)),
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
    assert_eq!(text, include_str!("../golden.txt"));
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
