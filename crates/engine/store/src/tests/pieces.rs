//! Messages read in pieces are the messages.

use vere_ports::storage::Storage as _;

use super::*;
use crate::BodyReader;

/// Octets that do not get smaller.
fn noise(octets: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..octets).map(|_| next()).collect()
}

fn pieces(
    reader: &BodyReader<MemoryDisk>,
    blob: crate::BlobId,
    from: usize,
    step: usize,
) -> Vec<u8> {
    let body = reader.open(blob).unwrap();
    body.check().unwrap();
    let mut pieces = body.pieces(from);
    let mut read = Vec::new();
    loop {
        let mut piece = vec![0; step];
        pieces.read(&mut piece).unwrap();
        read.extend_from_slice(&piece);
        assert_eq!(pieces.at(), from.min(body.octets()) + read.len());
        if piece.len() < step {
            return read;
        }
    }
}

#[test]
fn pieces_are_the_message() {
    let mut bench = Bench::new();
    let header = b"Subject: x\r\n\r\n".as_slice();
    let texts = [
        [header, &noise(200_000)].concat(),
        [header, &b"so it goes, ".repeat(40_000)].concat(),
        header.to_vec(),
        [b"X-Long: ".as_slice(), &b"h".repeat(90_000), b"\r\n\r\nx"].concat(),
        Vec::new(),
    ];
    for (text, number) in texts.iter().zip(1..) {
        let body = Prepared::new(text, b"parsed", &[]).unwrap();
        let done = bench
            .store
            .deliver(&body, &[target(bench.inbox)], operation(number));
        safe(&mut bench.store, done.unwrap()).remove(0).unwrap();
    }
    let snapshot = bench.snapshot(bench.inbox);
    let reader = bench.store.body_reader();
    for (message, text) in snapshot.iter_from(0).zip(&texts) {
        for (from, step) in [
            (0, 1_000),
            (0, 1 << 20),
            (5, 999),
            (100_000, 70_001),
            (1 << 20, 9),
        ] {
            let expected = &text[from.min(text.len())..];
            let read = pieces(&reader, message.blob, from, step);
            assert!(read == expected, "{} from {from} by {step}", text.len());
        }
    }
}

#[test]
fn what_is_damaged_is_noticed_before_its_first_piece() {
    let mut bench = Bench::new();
    let text = [b"Subject: x\r\n\r\n".as_slice(), &noise(100_000)].concat();
    let body = Prepared::new(&text, b"parsed", &[]).unwrap();
    let done = bench
        .store
        .deliver(&body, &[target(bench.inbox)], operation(1));
    safe(&mut bench.store, done.unwrap()).remove(0).unwrap();
    let blob = bench.snapshot(bench.inbox).get(0).unwrap().blob;
    let reader = bench.store.body_reader();
    reader.open(blob).unwrap().check().unwrap();
    for name in bench.disk.list().unwrap() {
        let file = bench.disk.open(&name).unwrap();
        let mut octets = vec![0; file.len().unwrap() as usize];
        file.read_at(&mut octets, 0).unwrap();
        let end = &text[text.len() - 20..];
        if let Some(at) = octets.windows(end.len()).position(|found| found == end) {
            file.write_at([b"x", b"yz"], at as u64).unwrap();
        }
    }
    let checked = reader.open(blob).unwrap().check();
    assert!(
        matches!(checked, Err(StoreError::Damaged(_))),
        "{checked:?}"
    );
}
