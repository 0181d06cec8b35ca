//! Answers of content filters: rspamd and milters. Nothing exceeds the bounds, the changed message has the fields
//! that were asked for and no others, and octets in pieces mean the same as whole.

use vere_milter::{Change, Client, Ending, Limits, MilterError, Session, apply};
use vere_mime::{fields, header_len};

use vere_filters::{Bounds, Verdict, read_rspamd_answer};

/// Answers with an action, symbols and changes.
pub(super) const RSPAMD_SEEDS: &[&[u8]] = &[
    br#"{"action":"add header","score":7.5,"required_score":15,"symbols":{"A":{"score":1,"options":["x"]}}}"#,
    br#"{"action":"rewrite subject","subject":"x","milter":{"remove_headers":{"A":0,"B":[-1,1]}}}"#,
    br#"{"action":"no action","milter":{"add_headers":{"X":{"value":"a\n b","order":0},"Y":["1","2"]},"add_rcpt":["<a@b>"]}}"#,
    br#"{"action":"soft reject","messages":{"smtp_message":"later"},"milter":{"reject":"discard"}}"#,
];

/// Octets of a filter up to the end of the message; where none are left, each command gets `c`.
pub(super) const MILTER_SEEDS: &[&[u8]] = &[
    b"\0\0\0\x0dO\0\0\0\x06\0\0\x01\xff\0\x0f\xf2\x80\0\0\0\x09i\0\0\0\x01A\0b\0\0\0\0\x08m\0\0\0\x01A\0\0\0\0\0\x03bxy\0\0\0\x01c",
    b"\0\0\0\x0dO\0\0\0\x06\0\0\x01\xff\0\x1f\xf2\x80\0\0\0\x05+<a>\0\0\0\0\x05qwhy\0\0\0\0\x01a",
    b"\0\0\0\x0dO\0\0\0\x02\0\0\0\x3f\0\0\0\0\0\0\0\x01c\0\0\0\x01c\0\0\0\x0ey550 5.7.1 no\0",
];

const MESSAGE: &[u8] = b"A: 1\r\nB: 2\r\na: 3\r\n folded\r\n\r\nbody\r\n";
const LIMITS: Limits = Limits {
    changes: 8,
    octets: 512,
    body: 256,
};

/// Reads an answer of rspamd.
pub(super) fn rspamd(octets: &[u8]) {
    let bounds = Bounds {
        answer_octets: 8 * 1024,
        symbols: 8,
        options: 2,
        text_octets: 16,
        changes: LIMITS.changes,
        change_octets: LIMITS.octets,
    };
    let Ok(outcome) = read_rspamd_answer(octets, &bounds, MESSAGE) else {
        return;
    };
    assert!(octets.len() <= bounds.answer_octets);
    assert!(outcome.symbols.len() <= bounds.symbols);
    for symbol in &outcome.symbols {
        assert!(symbol.options.len() <= bounds.options);
        let texts = symbol.options.iter().chain([&symbol.name]);
        texts.for_each(|text| assert!(text.len() <= bounds.text_octets));
    }
    if let Verdict::Defer(text) | Verdict::Reject(text) = &outcome.verdict {
        assert!(text.bytes().all(|octet| (b' '..=b'~').contains(&octet)));
        assert!(outcome.changes.is_empty());
    }
    changed(&outcome.changes);
}

/// Shows a message to a filter that sends these octets, as a whole and octet by octet.
pub(super) fn milter(octets: &[u8]) {
    let whole = talk(octets, octets.len().max(1));
    assert_eq!(whole, talk(octets, 1));
    if let Ok(Some(ending)) = whole {
        changed(&ending.changes);
    }
}

fn talk(mut octets: &[u8], piece: usize) -> Result<Option<Ending>, MilterError> {
    let session = Session {
        client: [192, 0, 2, 1].into(),
        port: 25,
        client_name: "",
        helo: "h",
        reverse_path: "",
        recipients: &["a@b"],
        account: "",
        id: "1",
        host: "x",
        tls_version: "",
        tls_cipher: "",
    };
    let mut client = Client::new(session, MESSAGE, LIMITS);
    for _ in 0..octets.len() + 64 {
        while client.output().is_some() {}
        if client.is_over() {
            return Ok(client.end());
        }
        // An answer to each command: a whole packet, so that none comes unasked.
        let length = octets
            .first_chunk::<4>()
            .map(|length| u32::from_be_bytes(*length) as usize);
        let length = length.map_or(octets.len(), |length| {
            length.saturating_add(4).min(octets.len())
        });
        let (packet, rest) = octets.split_at(length);
        octets = rest;
        let packet = if packet.is_empty() {
            &b"\0\0\0\x01c"[..]
        } else {
            packet
        };
        for part in packet.chunks(piece) {
            client.input(part)?;
        }
    }
    Ok(None)
}

/// Checks the message with changes of a filter.
fn changed(changes: &[Change]) {
    assert!(changes.len() <= LIMITS.changes);
    let octets = changes
        .iter()
        .filter(|change| !matches!(change, Change::ReplaceBody(_)));
    assert!(octets.map(Change::octets).sum::<usize>() <= LIMITS.octets);
    let after = apply(MESSAGE, changes);
    let mut more = 0;
    let mut body = None;
    for change in changes {
        match change {
            Change::AddHeader { .. }
            | Change::InsertHeader { .. }
            | Change::ChangeHeader { .. } => more += 1,
            Change::ReplaceBody(octets) => body = Some(octets),
            _ => {}
        }
    }
    assert!(fields(&after).all(|field| field.is_named()));
    assert!(fields(&after).count() <= fields(MESSAGE).count() + more);
    match body {
        None => assert!(after.ends_with(b"\r\n\r\nbody\r\n") || after == b"\r\nbody\r\n"),
        Some(octets) => assert!(
            octets.len() <= LIMITS.body && after.len() - header_len(&after) <= 2 * LIMITS.body
        ),
    }
}
