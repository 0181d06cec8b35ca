use proptest::prelude::*;

use vere_mime::{DEPTH_MAX, EnvelopeView, PARTS_MAX, Parsed};

use super::*;
use crate::command::{Command, FetchItem, Section, parse};

/// The message of RFC 9051 section 6.4.5.1's example, in small.
const MIXED: &str = "From: a@x\r\nSubject: all\r\nContent-Type: multipart/mixed; boundary=A\r\n\r\npreamble\r\n\
--A\r\n\r\none\r\n\
--A\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\ndHdv\r\n\
--A\r\nContent-Type: message/rfc822\r\n\r\nSubject: three\r\nContent-Type: multipart/alternative; boundary=\"B C\"\r\n\r\n\
--B C\r\nContent-Type: text/plain\r\n\r\nthree.one\r\n\
--B C\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>\r\n--B C--\r\nepilogue B\r\n\
--A--\r\nepilogue\r\n";

fn section(text: &str) -> Section {
    match parse(format!("a fetch 1 body[{text}]").as_bytes(), false).command {
        Ok(Command::Fetch(fetch)) => match fetch.items.into_iter().next() {
            Some(FetchItem::Section { section, .. }) => section,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn show(message: &str, text: &str) -> Option<String> {
    show_behind("", message, text)
}

/// As a recipient is shown it whose copy has fields of its own.
fn show_behind(own: &str, message: &str, text: &str) -> Option<String> {
    let whole = [own, message].concat();
    let content = Content {
        octets: whole.as_bytes(),
        own: own.len(),
        behind: 0,
        header: 0,
    };
    let found = content.section(&Parsed::of(message.as_bytes()), &section(text));
    found.map(|found| match found {
        Extract::Range(range) => whole[range].to_owned(),
        Extract::Made(octets) => String::from_utf8(octets).unwrap(),
    })
}

fn structure_of(message: &str, extended: bool) -> String {
    let mut out = Vec::new();
    body_structure(&Parsed::of(message.as_bytes()), extended, &mut out);
    String::from_utf8(out).unwrap()
}

fn envelope_of(message: &str) -> String {
    let mut out = Vec::new();
    let encoded = Parsed::of(message.as_bytes()).encode();
    envelope(EnvelopeView::read(&encoded).unwrap(), &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn sections_are_found() {
    let found = |text: &str| show(MIXED, text);
    assert_eq!(found("").as_deref(), Some(MIXED));
    assert_eq!(found("1").as_deref(), Some("one"));
    assert_eq!(found("2").as_deref(), Some("dHdv"));
    assert_eq!(found("3.1").as_deref(), Some("three.one"));
    assert_eq!(found("3.2").as_deref(), Some("<p>"));
    assert_eq!(
        found("3.2.MIME").as_deref(),
        Some("Content-Type: text/html; charset=utf-8\r\n\r\n")
    );
    assert!(found("3.HEADER").unwrap().starts_with("Subject: three\r\n"));
    assert!(found("3.TEXT").unwrap().starts_with("--B C\r\n"));
    assert!(found("3").unwrap().ends_with("epilogue B"));
    assert_eq!(
        found("HEADER.FIELDS (SUBJECT x)").as_deref(),
        Some("Subject: all\r\n\r\n")
    );
    assert_eq!(
        found("3.HEADER.FIELDS.NOT (content-type)").as_deref(),
        Some("Subject: three\r\n\r\n")
    );
    assert!(found("TEXT").unwrap().starts_with("preamble\r\n--A"));
    for absent in ["4", "1.1", "1.HEADER", "2.1", "3.3", "1.TEXT", "3.1.1"] {
        assert_eq!(found(absent), None, "{absent}");
    }
}

#[test]
fn a_message_without_parts_has_one() {
    let message = "A: b\r\n\r\nbody\r\n";
    assert_eq!(show(message, "1").as_deref(), Some("body\r\n"));
    assert_eq!(show(message, "1.MIME").as_deref(), Some("A: b\r\n\r\n"));
    assert_eq!(show(message, "2"), None);
    assert_eq!(show(message, "1.1"), None);
    assert_eq!(show(message, "HEADER").as_deref(), Some("A: b\r\n\r\n"));
    assert_eq!(show("A: b", "TEXT").as_deref(), Some(""));
}

#[test]
fn own_fields_stand_before_the_header_and_move_the_rest() {
    let own = "Return-Path: <r@x>\r\nDelivered-To: d\r\n";
    for text in [
        "1", "2", "3", "3.1", "3.2.MIME", "3.HEADER", "3.TEXT", "TEXT", "4",
    ] {
        assert_eq!(show_behind(own, MIXED, text), show(MIXED, text), "{text}");
    }
    for text in ["", "HEADER"] {
        let wanted = show(MIXED, text).map(|found| [own, &found].concat());
        assert_eq!(show_behind(own, MIXED, text), wanted, "{text}");
    }
    assert_eq!(
        show_behind(own, MIXED, "HEADER.FIELDS (Subject Delivered-To)").as_deref(),
        Some("Delivered-To: d\r\nSubject: all\r\n\r\n")
    );
    let single = "A: b\r\n\r\nbody\r\n";
    assert_eq!(show_behind(own, single, "1").as_deref(), Some("body\r\n"));
    assert_eq!(
        show_behind(own, single, "1.MIME"),
        Some([own, "A: b\r\n\r\n"].concat())
    );
}

#[test]
fn lines_that_are_no_fields_stay_in_the_header() {
    let header = "From a@b Thu Jan  1 00:00\r\nFrom: a\r\n b\r\nno colon here\r\nTo : c\r\n: d\r\nlast\r\n\r\n";
    let message = [header, " Subject: body\r\n"].concat();
    assert_eq!(show(&message, "HEADER").as_deref(), Some(header));
    assert_eq!(show(&message, "").as_deref(), Some(message.as_str()));
    assert_eq!(
        show(&message, "HEADER.FIELDS.NOT (X)").as_deref(),
        Some("From: a\r\n b\r\nTo : c\r\n\r\n")
    );
}

#[test]
fn structures_are_written() {
    assert_eq!(
        structure_of(MIXED, false),
        "((\"text\" \"plain\" (\"charset\" \"us-ascii\") NIL NIL \"7bit\" 3 1)\
         (\"application\" \"octet-stream\" NIL NIL NIL \"base64\" 4)\
         (\"message\" \"rfc822\" NIL NIL NIL \"7bit\" 190 \
         (NIL \"three\" NIL NIL NIL NIL NIL NIL NIL NIL) \
         ((\"text\" \"plain\" NIL NIL NIL \"7bit\" 9 1)\
         (\"text\" \"html\" (\"charset\" \"utf-8\") NIL NIL \"7bit\" 3 1) \"alternative\") 13) \"mixed\")"
    );
    let single = "Content-Type: image/png; name=\"a b.png\"\r\nContent-ID: <x@y>\r\nContent-Disposition: \
                  attachment; filename=a.png\r\nContent-Language: de, en\r\nContent-Location: l\r\n\r\nx";
    assert_eq!(
        structure_of(single, true),
        "(\"image\" \"png\" (\"name\" \"a b.png\") \"<x@y>\" NIL \"7bit\" 1 NIL \
         (\"attachment\" (\"filename\" \"a.png\")) (\"de\" \"en\") \"l\")"
    );
    let broken = "Content-Type: multipart/mixed; boundary=x\r\n\r\nno parts\r\n";
    assert_eq!(
        structure_of(broken, false),
        "(\"text\" \"plain\" (\"charset\" \"us-ascii\") NIL NIL \"7bit\" 10 1)"
    );
    let digest = "Content-Type: multipart/digest; boundary=x\r\n\r\n--x\r\n\r\nSubject: in\r\n\r\nt\r\n--x--\r\n";
    assert!(
        structure_of(digest, false)
            .starts_with("((\"message\" \"rfc822\" NIL NIL NIL \"7bit\" 16 (NIL \"in\"")
    );
}

/// RFC 9051 section 8 has this envelope.
#[test]
fn envelopes_are_written() {
    let header = "Date: Wed, 17 Jul 1996 02:23:25 -0700 (PDT)\r\nFrom: Terry Gray <gray@cac.washington.edu>\r\n\
                  Subject: IMAP4rev2 WG mtg summary and minutes\r\nTo: imap@cac.washington.edu\r\n\
                  cc: minutes@CNRI.Reston.VA.US, John Klensin <KLENSIN@MIT.EDU>\r\n\
                  Message-Id: <B27397-0100000@cac.washington.edu>\r\n\r\n";
    let gray = "((\"Terry Gray\" NIL \"gray\" \"cac.washington.edu\"))";
    assert_eq!(
        envelope_of(header),
        format!(
            "(\"Wed, 17 Jul 1996 02:23:25 -0700 (PDT)\" \"IMAP4rev2 WG mtg summary and minutes\" \
             {gray} {gray} {gray} ((NIL NIL \"imap\" \"cac.washington.edu\")) \
             ((NIL NIL \"minutes\" \"CNRI.Reston.VA.US\")(\"John Klensin\" NIL \"KLENSIN\" \"MIT.EDU\")) \
             NIL NIL \"<B27397-0100000@cac.washington.edu>\")"
        )
    );
    assert_eq!(
        envelope_of("Subject: h\u{e4}\r\n\r\n"),
        "(NIL {3}\r\nhä NIL NIL NIL NIL NIL NIL NIL NIL)"
    );
}

#[test]
fn binary_is_decoded() {
    let of = |message: &str, path: &[u32]| {
        let content = Content {
            octets: message.as_bytes(),
            own: 0,
            behind: 0,
            header: 0,
        };
        let found = content.binary(&Parsed::of(message.as_bytes()), path);
        found.map(|found| {
            found.map(|found| match found {
                Extract::Range(range) => message.as_bytes()[range].to_vec(),
                Extract::Made(octets) => octets,
            })
        })
    };
    assert_eq!(of(MIXED, &[2]), Ok(Some(b"two".to_vec())));
    assert_eq!(of(MIXED, &[9]), Ok(None));
    let strange = "Content-Transfer-Encoding: x-zip\r\n\r\nx";
    assert_eq!(of(strange, &[1]), Err(UnknownEncoding));
}

/// Each level has its own boundary, of which those outside end those within.
#[test]
fn depth_and_parts_are_bounded() {
    let mut deep = String::new();
    for level in 0..10_000 {
        deep.push_str(&format!(
            "Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n"
        ));
    }
    let written = structure_of(&deep, true);
    assert!(written.len() < 20_000, "{}", written.len());
    let messages = "Content-Type: message/rfc822\r\n\r\n".repeat(10_000);
    assert!(structure_of(&messages, true).matches("message").count() <= DEPTH_MAX);
    let wide = format!(
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n{}",
        "--b\r\n\r\n".repeat(50_000)
    );
    let written = structure_of(&wide, false);
    assert_eq!(written.matches("\"plain\"").count(), PARTS_MAX - 1);
}

fn balanced(text: &[u8]) -> bool {
    let parsed = parse(&[b"a search text ", text].concat(), false);
    drop(parsed);
    let (mut depth, mut at) = (0_i64, 0);
    while at < text.len() {
        match text[at] {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'"' => {
                at += 1;
                while text[at] != b'"' {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'{' => {
                let end = at + text[at..].iter().position(|octet| *octet == b'}').unwrap();
                let length: usize = std::str::from_utf8(&text[at + 1..end])
                    .unwrap()
                    .parse()
                    .unwrap();
                at = end + 2 + length;
            }
            _ => {}
        }
        if depth < 0 {
            return false;
        }
        at += 1;
    }
    depth == 0
}

proptest! {
    #[test]
    fn fields_are_found_by_any_of_their_names(
        header in proptest::collection::vec("[a-cA-C]{1,2}", 0..8),
        names in proptest::collection::vec("[a-fA-F]{1,2}", 0..20),
        wanted in any::<bool>(),
    ) {
        let line = |name: &String| format!("{name}: x\r\n");
        let text: String = header.iter().map(line).collect();
        let named = |field: &&String| names.iter().any(|name| name.eq_ignore_ascii_case(field));
        let left = header.iter().filter(|field| named(field) == wanted).map(line);
        let expected = left.collect::<String>() + "\r\n";
        let found = header_fields(text.as_bytes(), &names, wanted);
        prop_assert_eq!(String::from_utf8(found).unwrap(), expected);
    }

    #[test]
    fn any_message_is_shown(
        lines in proptest::collection::vec(prop::sample::select(vec![
            "", "--A", "--A--", "--B", "--B--", "Content-Type: multipart/mixed; boundary=A",
            "Content-Type: multipart/digest; boundary=B", "Content-Type: message/rfc822",
            "From: \"a (b\" <c@d>, g: x;", "Subject: \u{e4}\"\\", " folded (", "Content-Disposition: a; b=\"c",
            "text", "Content-Transfer-Encoding: base64",
        ]), 0..40),
        crlf in any::<bool>(),
    ) {
        let message = lines.join(if crlf { "\r\n" } else { "\n" });
        let message = message.as_bytes();
        let parsed = Parsed::of(message);
        let mut out = Vec::new();
        body_structure(&parsed, true, &mut out);
        prop_assert!(balanced(&out), "{}", String::from_utf8_lossy(&out));
        out.clear();
        envelope(EnvelopeView::read(&parsed.encode()).unwrap(), &mut out);
        prop_assert!(balanced(&out), "{}", String::from_utf8_lossy(&out));
        for path in ["1", "1.1", "2", "1.MIME", "2.TEXT", "TEXT", "HEADER"] {
            // Also when what was found is of another message.
            for (octets, own) in [(message, 0), (&message[..message.len() / 2], 3)] {
                let content = Content {
                    octets,
                    own,
                    behind: 0,
                    header: 0,
                };
                if let Some(Extract::Range(range)) = content.section(&parsed, &section(path)) {
                    prop_assert!(range.start <= range.end && range.end <= octets.len());
                }
            }
        }
    }
}

/// A message that is a message, and one within that, as it is and with a digest.
#[test]
fn messages_that_are_messages_have_one_part() {
    let inner = "From: c@x\r\nSubject: inner\r\n\r\nHello\r\n";
    let middle = format!("From: b@x\r\nContent-Type: message/rfc822\r\n\r\n{inner}");
    let outer = format!("From: a@x\r\nContent-Type: message/rfc822\r\n\r\n{middle}");
    let outer_header = outer.strip_suffix(&middle);
    for (path, expected) in [
        ("1", Some(middle.as_str())),
        ("1.mime", outer_header),
        ("1.header", middle.strip_suffix(inner)),
        ("1.text", Some(inner)),
        ("1.1", Some(inner)),
        ("1.1.mime", middle.strip_suffix(inner)),
        ("1.1.header", Some("From: c@x\r\nSubject: inner\r\n\r\n")),
        ("1.1.text", Some("Hello\r\n")),
        ("1.1.1", Some("Hello\r\n")),
        ("1.1.1.mime", Some("From: c@x\r\nSubject: inner\r\n\r\n")),
        ("1.1.1.header", None),
        ("1.1.1.1", None),
        ("2", None),
        ("1.2", None),
    ] {
        assert_eq!(show(&outer, path).as_deref(), expected, "{path}");
    }
    let digest = "Content-Type: message/rfc822\r\n\r\nSubject: d\r\n\
        Content-Type: multipart/digest; boundary=D\r\n\r\n\
        --D\r\n\r\nSubject: one\r\n\r\n1\r\n--D\r\n\r\nSubject: two\r\n\r\n2\r\n--D--\r\n";
    for (path, expected) in [
        (
            "1.header",
            "Subject: d\r\nContent-Type: multipart/digest; boundary=D\r\n\r\n",
        ),
        ("1.1.header", "Subject: one\r\n\r\n"),
        ("1.2", "Subject: two\r\n\r\n2"),
        ("1.2.1", "2"),
        ("1.2.text", "2"),
    ] {
        assert_eq!(show(digest, path).as_deref(), Some(expected), "{path}");
    }
}
