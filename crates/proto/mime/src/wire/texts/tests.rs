use super::*;
use crate::wire::{READY, Request, answer, read_request_head};
use proptest::prelude::*;

/// Both sides: what is asked, and the content of the answer.
fn asked(question: Question<'_>, items: &[Item<'_>]) -> Result<Vec<u8>, WireError> {
    let frame = request(question, items.iter().copied()).unwrap();
    let (head, content) = frame.split_first_chunk().unwrap();
    let (asked, octets) = read_request_head(head)?;
    assert_eq!(octets, content.len());
    let frame = answer(asked, content)?;
    let (head, content) = frame.split_first_chunk().unwrap();
    let octets = match question {
        Question::Texts => texts_head(head, items.iter().copied())?,
        _ => holds_head(head, items.len())?,
    };
    assert_eq!(octets, content.len());
    Ok(content.to_vec())
}

/// What is seen without asking anybody.
fn here(own: &[u8], message: &[u8]) -> Vec<(Zone, String)> {
    let parts = Parsed::of(message).parts;
    let searched = Searched {
        own,
        message,
        parts: &parts,
    };
    let mut all = Vec::new();
    let _ = searched.texts(|_| true, &mut |zone, text| {
        all.push((zone, text.to_owned()));
        ControlFlow::Continue(())
    });
    all
}

fn item<'a>(own: &'a [u8], record: &'a [u8], message: &'a [u8]) -> Item<'a> {
    Item {
        zones: 0x7F,
        own,
        record,
        message,
    }
}

fn owned(texts: &Texts) -> Vec<(Zone, String)> {
    let each = texts.iter();
    each.map(|(zone, text)| (zone, text.to_owned())).collect()
}

const OWN: &[u8] = b"Delivered-To: =?utf-8?q?=C3=84nn?= <ann@demo.test>\r\n";
const MAIL: &[u8] = b"Subject: =?utf-8?b?w6Q=?= one\r\nX-Kind: odd\r\n\
    Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\
    Content-Transfer-Encoding: base64\r\n\r\nZnJlZSB0ZXh0\r\n--x--\r\n";

#[test]
fn texts_are_those_that_are_seen_here() {
    let record = Parsed::of(MAIL).encode();
    // Encoded, unknown, of another version; fields alone; nothing at all.
    let items = [
        item(OWN, &record, MAIL),
        item(OWN, b"", MAIL),
        item(b"", b"\xFFwrong", MAIL),
        item(OWN, b"", b""),
        item(b"", b"", b""),
    ];
    let content = asked(Question::Texts, &items).unwrap();
    let all = texts(&content, items.len()).unwrap();
    assert!(all.iter().all(|texts| texts.complete));
    assert_eq!(owned(&all[0]), here(OWN, MAIL));
    assert_eq!(all[1], all[0]);
    assert_eq!(owned(&all[2]), here(b"", MAIL));
    let alone = "Delivered-To: A\u{308}NN <ANN@DEMO.TEST>";
    let alone = alone.replace("Delivered-To", "DELIVERED-TO");
    assert_eq!(owned(&all[3]), [(Zone::Header, alone)]);
    assert_eq!(owned(&all[4]), []);
}

#[test]
fn messages_have_what_they_have() {
    let record = Parsed::of(MAIL).encode();
    let header = &MAIL[..crate::header_len(MAIL)];
    let bit = |zone: Zone| 1 << zone as u8;
    let all = item(OWN, &record, MAIL);
    let body = Item {
        zones: bit(Zone::Body),
        ..all
    };
    let fields = Item {
        zones: bit(Zone::Header),
        ..all
    };
    let subject = Item {
        zones: bit(Zone::Subject),
        message: header,
        ..all
    };
    let other = item(b"", b"", b"Subject: other\r\n\r\n");
    let items = [all, body, fields, subject, other];
    for (what, expected) in [
        ("free", [true, true, false, false, false]),
        ("\u{e4} one", [true, false, true, true, false]),
        ("ann@", [true, false, true, false, false]),
        ("", [true; 5]),
    ] {
        let what = crate::casemap(what);
        let content = asked(Question::Zones(what.as_bytes()), &items).unwrap();
        assert_eq!(holds(&content), Ok(expected.to_vec()), "{what}");
    }
    for (name, what, expected) in [
        ("x-kind", "DD", [true, true, true, true, false]),
        ("Subject", "", [true; 5]),
        ("delivered-to", "DEMO", [true, true, true, true, false]),
        ("x-other", "", [false; 5]),
    ] {
        let question = Question::Field {
            name,
            what: what.as_bytes(),
        };
        let content = asked(question, &items).unwrap();
        assert_eq!(holds(&content), Ok(expected.to_vec()), "{name}");
    }
    assert_eq!(asked(Question::Zones(b"X"), &[]), Ok(Vec::new()));
}

/// The most that texts of few octets have.
#[test]
fn no_honest_texts_are_longer_than_is_believed() {
    let wide = "\u{FDFA}".repeat(500);
    let utf16: Vec<u8> = wide.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let body = [
        b"Content-Type: text/plain; charset=utf-16be\r\n\r\n",
        utf16.as_slice(),
    ]
    .concat();
    let word = [b"Subject: =?utf-16be?Q?", utf16.as_slice(), b"?=\r\n\r\n"].concat();
    let plain = format!("Subject: {wide}\r\nTo: {wide}\r\n\r\n{wide}").into_bytes();
    let short = b"a\n".repeat(1_000);
    let names = b"Cc:\n".repeat(1_000);
    let bad = [b"\r\n".as_slice(), &[0xBD; 1_000]].concat();
    for message in [
        body,
        word,
        plain,
        short,
        names,
        bad,
        Vec::new(),
        b"\n".to_vec(),
    ] {
        let record = Parsed::of(&message).encode();
        let items = [item(b"", &record, &message)];
        let content = asked(Question::Texts, &items).unwrap();
        let all = texts(&content, 1).unwrap();
        assert_eq!(owned(&all[0]), here(b"", &message));
    }
}

#[test]
fn texts_beyond_the_bound_are_cut_off() {
    let long = [
        b"Subject: x\r\n\r\n".as_slice(),
        &vec![b'a'; TEXTS_OCTETS_MAX],
    ]
    .concat();
    let items = [item(b"", b"", &long), item(b"", b"", MAIL)];
    let content = asked(Question::Texts, &items).unwrap();
    let all = texts(&content, 2).unwrap();
    assert!(!all[0].complete && all[1].complete);
    assert_eq!(owned(&all[0]).len(), 2);
    assert_eq!(owned(&all[1]), here(b"", MAIL));
}

#[test]
fn frames_that_say_something_else_are_refused() {
    let items = [item(OWN, b"", MAIL)];
    let frame = request(Question::Zones(b"X"), items).unwrap();
    let content = &frame[HEAD_OCTETS..];
    for cut in 0..content.len() {
        let said = answer(Request::Zones, &content[..cut]);
        // Without a message there is one fewer.
        let expected = match cut {
            5 => Ok(0),
            _ => Err(WireError::Content),
        };
        assert_eq!(
            said.map(|frame| frame.len() - HEAD_OCTETS),
            expected,
            "{cut}"
        );
    }
    assert_eq!(
        answer(Request::Field, b"\x01\0\0\0\xFF\0\0\0\0"),
        Err(WireError::Content)
    );
    let head = |kind, content| head(kind, content).unwrap();
    assert_eq!(holds_head(&head(HOLDS, 2), 2), Ok(2));
    assert_eq!(holds_head(&head(HOLDS, 1), 2), Err(WireError::Length(1)));
    assert_eq!(holds_head(&head(HOLDS, 3), 2), Err(WireError::Length(3)));
    assert_eq!(
        holds_head(&head(TEXTS_FOUND, 2), 2),
        Err(WireError::Kind(TEXTS_FOUND))
    );
    assert_eq!(holds(&[0, 1, 2]), Err(WireError::Content));
    let most = TEXT_GROWTH * (OWN.len() + MAIL.len()) + TEXT_OCTETS_MIN;
    assert_eq!(texts_head(&head(TEXTS_FOUND, most), items), Ok(most));
    let more = texts_head(&head(TEXTS_FOUND, most + 1), items);
    assert_eq!(more, Err(WireError::Length(most + 1)));
    assert!(texts_head(&head(READY, 1), items).is_err());
    let wrong: [&[u8]; 7] = [
        b"",
        b"\0",
        b"\x07\0\0\0\0\xFE",
        b"\0\x05\0\0\0abc\xFE",
        b"\0\x01\0\0\0\xFF\xFE",
        b"\xFE\xFE",
        b"\0\xFF\xFF\xFF\xFF\xFE",
    ];
    for wrong in wrong {
        assert_eq!(texts(wrong, 1), Err(WireError::Content), "{wrong:?}");
    }
}

/// What is told of the body without a parser.
fn plainly(message: &[u8], zones: u8, what: &[u8]) -> Option<bool> {
    let record = Parsed::of(message).encode();
    let item = Item {
        zones,
        ..item(b"", &record, message)
    };
    plainly_holds(Question::Zones(what), &item)
}

#[test]
fn what_is_not_decoded_is_told_without_a_parser() {
    let body = 1 << Zone::Body as u8;
    let has = |head: &str, text: &[u8]| {
        let message = [head.as_bytes(), b"\r\n", text].concat();
        plainly(&message, body, b"BLUE FISH")
    };
    let of = |charset: &str| format!("Content-Type: text/plain; charset={charset}\r\n");
    assert_eq!(has("", b"A blue Fish.\r\n"), Some(true));
    assert_eq!(has("", b"blue\r\nfish\r\n"), Some(false));
    assert_eq!(has("Subject: blue fish\r\n", b"\r\n"), Some(false));
    for plain in ["us-ascii", "UTF-8", "iso-8859-15", "windows-1251"] {
        assert_eq!(has(&of(plain), b"no"), Some(false), "{plain}");
        assert_eq!(has(&of(plain), b"blue fish"), Some(true), "{plain}");
        assert_eq!(has(&of(plain), b"gr\xFCn, blue fish"), None, "{plain}");
    }
    for other in ["utf-16", "utf-7", "iso-2022-jp", "hz-gb-2312", "x"] {
        assert_eq!(has(&of(other), b"blue fish"), None, "{other}");
    }
    for encoding in ["base64", "quoted-printable"] {
        let head = format!("Content-Transfer-Encoding: {encoding}\r\n");
        assert_eq!(has(&head, b"blue fish"), None, "{encoding}");
    }
    // A plain part that has it is enough; one that has not is not.
    let parts = |text: &str| {
        let head = "Content-Type: multipart/mixed; boundary=x\r\n";
        let parts = format!(
            "--x\r\nContent-Transfer-Encoding: base64\r\n\r\nZnJlZSB0ZXh0\r\n\
             --x\r\nContent-Type: image/gif\r\n\r\n\x01\r\n--x\r\n\r\n{text}\r\n--x--\r\n"
        );
        has(head, parts.as_bytes())
    };
    assert_eq!([parts("blue fish"), parts("fish")], [Some(true), None]);
    // A header with an encoded word may have anything.
    let header = 1 << Zone::Header as u8;
    let fields = |head: &str| plainly(head.as_bytes(), header, b"SUBJECT: BLUE FISH");
    assert_eq!(fields("subject: blue\r\n fish\r\n\r\n"), Some(true));
    assert_eq!(fields("Subject:\tfish\r\nblue fish\r\n\r\n"), Some(false));
    assert_eq!(fields("Subject: =?utf-8?q?blue?= fish\r\n\r\n"), None);
    assert_eq!(fields("S\u{fc}bject: blue fish\r\n\r\n"), None);
    // So may what each part says it has again.
    let mut repeated = Parsed::of(b"\r\nfish");
    repeated.parts.push(repeated.parts[0].clone());
    let repeated = repeated.encode();
    let repeated = item(b"", &repeated, b"\r\nfish");
    let fish = Question::Zones(b"FISH");
    assert_eq!(plainly_holds(fish, &repeated), None);
    // What nobody took apart, or what is asked otherwise, is for a parser.
    let unknown = item(b"", b"", b"\r\nblue fish");
    assert_eq!(plainly_holds(Question::Zones(b"BLUE"), &unknown), None);
    let record = Parsed::of(MAIL).encode();
    let known = item(b"", &record, MAIL);
    assert_eq!(plainly_holds(Question::Texts, &known), None);
}

proptest! {
    #[test]
    fn what_is_told_without_a_parser_is_what_it_says(
        zones in any::<u8>(),
        own in "(Delivered-To: (blue|=\\?q) fish\r\n)?",
        pieces in proptest::collection::vec(prop_oneof![
            Just(b"Content-Type: multipart/mixed; boundary=x\r\n".to_vec()),
            "Content-Type: text/plain; charset=(utf-(8|16|7)|iso-(8859-1|2022-jp)|us-ascii)\r\n"
                .prop_map(String::into_bytes),
            "Content-Transfer-Encoding: (base64|quoted-printable|7bit)\r\n"
                .prop_map(String::into_bytes),
            "(Subject|To|X-\u{fc}): (=\\?utf-8\\?q\\?)?blue(\\?=|\r\n)? fish\r\n"
                .prop_map(String::into_bytes),
            "(=62|b|\u{e4}|\u{fb01}|\\+AO8-)?l?ue ?fish(=\r\n)?".prop_map(String::into_bytes),
            Just(b"\r\n".to_vec()),
            Just(b"\r\n\r\n".to_vec()),
            Just(b"\r\n--x\r\n".to_vec()),
            Just(b"\x1B$B".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..4),
        ], 0..12),
        // Places that are not those that a parser found.
        lies in prop_oneof![
            4 => Just(Vec::new()),
            1 => proptest::collection::vec((0..90_usize, 0..90_usize, 0..90_usize), 1..4),
        ]
    ) {
        let message = pieces.concat();
        let mut found = Parsed::of(&message);
        for (part, (header, body, octets)) in found.parts.iter_mut().zip(lies) {
            (part.header, part.body) = (header..header + octets, body..body + octets);
        }
        let record = found.encode();
        let all = Item { zones, ..item(own.as_bytes(), &record, &message) };
        let mut items = vec![all];
        items.extend(Zone::ALL.map(|zone| Item { zones: 1 << zone as u8, ..all }));
        for what in ["BLUE FISH", "UE", "=62", "FI", ": BLUE F", "\r\n", "B", "-TO: B"] {
            let question = Question::Zones(what.as_bytes());
            let said = holds(&asked(question, &items).unwrap()).unwrap();
            for (item, said) in items.iter().zip(said) {
                let told = plainly_holds(question, item);
                prop_assert!(told.is_none_or(|told| told == said), "{what} {:b}", item.zones);
            }
        }
    }

    #[test]
    fn whatever_a_message_is_its_texts_come_back(
        own in "(Delivered-To: [ -~]{0,10}\r\n)?",
        pieces in proptest::collection::vec(prop_oneof![
            Just(b"Content-Type: multipart/mixed; boundary=x\r\n".to_vec()),
            Just(b"Content-Type: text/plain; charset=utf-16\r\n".to_vec()),
            Just(b"Content-Transfer-Encoding: base64\r\n".to_vec()),
            Just(b"Subject: =?iso-2022-jp?b?".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"--x\r\n".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..30),
        ], 0..20)
    ) {
        let message = pieces.concat();
        let record = Parsed::of(&message).encode();
        let items = [item(own.as_bytes(), &record, &message), item(b"", &record, &message)];
        let content = asked(Question::Texts, &items);
        let all = texts(&content.unwrap(), 2).unwrap();
        prop_assert_eq!(owned(&all[0]), here(own.as_bytes(), &message));
        prop_assert_eq!(owned(&all[1]), here(b"", &message));
    }

    #[test]
    fn no_octets_make_either_side_panic(octets in proptest::collection::vec(any::<u8>(), 0..80)) {
        for request in [Request::Texts, Request::Zones, Request::Field] {
            let _ = answer(request, &octets);
        }
        let _ = (holds(&octets), texts(&octets, 2));
    }
}
