use super::*;
use proptest::prelude::*;

fn crlf(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").into_bytes()
}

/// The structure in short: kind, type, header and body as text.
fn outline(message: &[u8]) -> Vec<String> {
    let parsed = Parsed::of(message);
    let line = |part: &Part| {
        let (kind, subtype) = part.media_type();
        let body = String::from_utf8_lossy(&message[part.body.clone()]).replace("\r\n", "|");
        format!(
            "{} {:?} {}/{} {} {body:.30}",
            part.parent,
            part.kind,
            String::from_utf8_lossy(kind),
            String::from_utf8_lossy(subtype),
            part.lines,
        )
    };
    parsed.parts.iter().map(line).collect()
}

#[test]
fn a_plain_message() {
    let message = crlf(
        "Subject: =?utf-8?q?J=C3=B8?=\nFrom: a@b\nTo: c@d,\n e@f\nDate: Mon, 7 Feb 1994 23:30:00 -0800\nMessage-ID: <1@b>\nReferences: <x@y>\n <z@y>\n\nHello\nthere\n",
    );
    assert_eq!(outline(&message), ["0 Single text/plain 2 Hello|there|"]);
    let parsed = Parsed::of(&message);
    let envelope = parsed.envelope().unwrap();
    assert_eq!(
        envelope.subject.as_deref(),
        Some(&b"=?utf-8?q?J=C3=B8?="[..])
    );
    assert_eq!((envelope.to.len(), envelope.sender.len()), (2, 1));
    // The day as it is written, not the one in UTC.
    let sent = envelope.sent.unwrap();
    assert_eq!((sent.seconds.div_euclid(86_400), sent.day), (8_804, 8_803));
    assert_eq!(
        (parsed.preview.as_str(), parsed.references.len()),
        ("Hello there", 3)
    );
}

/// RFC 2046 section 5.1.1: the line end before a delimiter belongs to it; preamble and epilogue count
/// for nothing.
#[test]
fn multiparts_in_multiparts() {
    let message = crlf(
        "Content-Type: multipart/mixed; boundary=\"a b\"\n\npreamble --a b\n--a b\n\none\n--a b \nContent-Type: multipart/digest;\n boundary=inner\n\n--inner\n\nSubject: x\n\nbody\n--inner--\nepilogue\n--a b\nContent-Type: text/html\nX--a b\n\n\n--a b--\nepilogue\n--a b\n",
    );
    assert_eq!(
        outline(&message),
        [
            "0 Multipart multipart/mixed 23 preamble --a b|--a b||one|--a ",
            "0 Single text/plain 1 one",
            "0 Multipart multipart/digest 7 --inner||Subject: x||body|--in",
            "2 Message message/rfc822 3 Subject: x||body",
            "3 Single text/plain 1 body",
            "0 Single text/html 0 ",
        ]
    );
}

#[test]
fn broken_structures_keep_their_octets() {
    // No end, no empty line, an outer boundary within an inner part.
    let message = crlf(
        "Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: multipart/alternative; boundary=i\n\n--i\nX: y\n--o\n\nlast",
    );
    assert_eq!(
        outline(&message),
        [
            "0 Multipart multipart/mixed 8 --o|Content-Type: multipart/al",
            "0 Multipart multipart/alternative 2 --i|X: y",
            "1 Single text/plain 0 ",
            "0 Single text/plain 1 last",
        ]
    );
    assert_eq!(
        outline(b"Content-Type: multipart/mixed; boundary=b\r\n\r\nx"),
        ["0 Single multipart/mixed 1 x"]
    );
    assert_eq!(outline(b""), ["0 Single text/plain 0 "]);
    assert_eq!(outline(b"\r\n"), ["0 Single text/plain 0 "]);
    assert_eq!(outline(b"no header\r\n"), ["0 Single text/plain 0 "]);
    assert_eq!(
        outline(b"Content-Type: multipart/mixed\r\n\r\nx"),
        ["0 Single multipart/mixed 1 x"]
    );
}

/// Bombs: what is found is bounded, and so is what is kept of it.
#[test]
fn bombs_are_bounded() {
    let nested = "Content-Type: message/rfc822\n\n".repeat(100_000);
    assert!(Parsed::of(&crlf(&nested)).parts.len() <= DEPTH_MAX + 1);
    let multiparts: String = (0..20_000)
        .map(|n| format!("Content-Type: multipart/mixed; boundary={n}\n\n--{n}\n"))
        .collect();
    assert!(Parsed::of(&crlf(&multiparts)).parts.len() <= DEPTH_MAX + 1);
    let parts = format!(
        "Content-Type: multipart/mixed; boundary=b\n\n{}",
        "--b\n\n".repeat(500_000)
    );
    assert!(Parsed::of(&crlf(&parts)).parts.len() <= PARTS_MAX);
    for bomb in [
        format!("To: {}\n\n", "a@b,\n ".repeat(500_000)),
        format!("Subject: {}\n\n", "x".repeat(10_000_000)),
        "Received: x\n".repeat(1_000_000),
        format!("To: {}\n\n", "(".repeat(1_000_000)),
        format!("Content-Type: text/plain{}\n\n", ";a=b".repeat(500_000)),
        format!("References: {}\n\n", "<a@b>".repeat(500_000)),
    ] {
        let encoded = Parsed::of(&crlf(&bomb)).encode();
        assert!(
            encoded.len() < 256 * 1024,
            "{} octets of {:.20}",
            encoded.len(),
            bomb
        );
    }
}

#[test]
fn text_is_decoded() {
    let words = |line: &str| text::of_field(line.as_bytes());
    // RFC 2047 section 8.
    assert_eq!(words("=?ISO-8859-1?Q?a?= b"), "a b");
    assert_eq!(words("=?ISO-8859-1?Q?a?= =?ISO-8859-1?Q?b?="), "ab");
    assert_eq!(words("=?ISO-8859-1?Q?a?=\r\n  =?ISO-8859-1?Q?b?="), "ab");
    assert_eq!(words("=?ISO-8859-1?Q?a_b?="), "a b");
    assert_eq!(words("=?ISO-8859-1?Q?a?= =?ISO-8859-2?Q?_b?="), "a b");
    // A character across two words, an unknown charset, and no word at all.
    assert_eq!(words("=?utf-8?Q?=C3?= =?utf-8?Q?=B8?="), "ø");
    assert_eq!(words("=?x-none?Q?abc?="), "abc");
    assert_eq!(words("a =?utf-8?X?b?= =? ="), "a =?utf-8?X?b?= =? =");
    assert_eq!(
        text::quoted_printable(b"a=\r\nb =3D =zz \r\nc="),
        b"ab = =zz\r\nc="
    );
    assert_eq!(text::base64(b"aGVs\r\nbG8="), b"hello");
}

proptest! {
    #[test]
    fn whatever_comes_is_parsed_and_comes_back(
        pieces in proptest::collection::vec(prop_oneof![
            Just("Content-Type: multipart/mixed; boundary=x\r\n".to_owned()),
            Just("Content-Type: message/rfc822\r\n".to_owned()),
            Just("\r\n".to_owned()),
            Just("--x\r\n".to_owned()),
            Just("--x--\n".to_owned()),
            Just("From: \"a\\\" (b) <c@d>, g: x;\r\n".to_owned()),
            "[ -~\\r\\n]{0,20}",
        ], 0..30)
    ) {
        let message = pieces.concat().into_bytes();
        let parsed = Parsed::of(&message);
        prop_assert_eq!(Parsed::decode(&parsed.encode()), Ok(parsed.clone()));
        let encoded = parsed.encode();
        let found = EnvelopeView::read(&encoded).unwrap();
        let envelope = EnvelopeView::from(parsed.envelope().unwrap());
        prop_assert_eq!(
            (found.date, found.subject, found.in_reply_to, found.message_id),
            (envelope.date, envelope.subject, envelope.in_reply_to, envelope.message_id)
        );
        for (found, list) in found.lists.into_iter().zip(envelope.lists) {
            prop_assert!(found.eq(list));
        }
        let fields: Vec<u8> = fields(&message).flat_map(|field| field.raw).copied().collect();
        prop_assert!(message.starts_with(&fields));
        // What is left of the header is the empty line.
        prop_assert!(header_len(&message) - fields.len() <= 2);
        for (index, part) in parsed.parts.iter().enumerate() {
            let parent = &parsed.parts[part.parent];
            prop_assert!(part.parent < index.max(1));
            prop_assert!(part.header.end <= part.body.start && part.body.end <= message.len());
            if index > 0 {
                prop_assert!(part.header.start >= parent.body.start && part.body.end <= parent.body.end.max(part.body.start));
            }
        }
    }

    #[test]
    fn no_octets_make_the_decoder_panic(octets in proptest::collection::vec(any::<u8>(), 0..60)) {
        let mut octets = octets;
        octets.insert(0, 1);
        let _ = (Parsed::decode(&octets), EnvelopeView::read(&octets).is_ok());
    }
}

/// A parser that understood no date left none beside it; the date is kept as it was written.
#[test]
fn dates_that_were_not_understood_are_read_again() {
    let mut parsed = Parsed::of(b"Date: Sat, 14 Sep 2002 13:36:40\r\n\r\nx\r\n");
    let sent = |parsed: &Parsed| parsed.envelope().and_then(|envelope| envelope.sent);
    let expected = sent(&parsed).expect("a date");
    assert_eq!((expected.seconds, expected.day), (1_032_010_600, 11_944));
    for part in &mut parsed.parts {
        if let Some(envelope) = &mut part.envelope {
            envelope.sent = None;
        }
    }
    let again = Parsed::decode(&parsed.encode()).expect("what was encoded");
    assert_eq!(sent(&again), Some(expected));
}
