use proptest::prelude::*;

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
    let structure = Structure::of(message.as_bytes());
    extract(message.as_bytes(), &structure, &section(text)).map(|found| match found {
        Extract::Range(range) => message[range].to_owned(),
        Extract::Made(octets) => String::from_utf8(octets).unwrap(),
    })
}

fn structure_of(message: &str, extended: bool) -> String {
    let mut out = Vec::new();
    body_structure(
        message.as_bytes(),
        &Structure::of(message.as_bytes()),
        extended,
        &mut out,
    );
    String::from_utf8(out).unwrap()
}

fn envelope_of(message: &str) -> String {
    let mut out = Vec::new();
    envelope(message.as_bytes(), &mut out);
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
    let structure = Structure::of(MIXED.as_bytes());
    let of = |path: &[u32]| binary(MIXED.as_bytes(), &structure, path);
    assert_eq!(of(&[2]), Ok(Some(b"two".to_vec())));
    assert_eq!(of(&[9]), Ok(None));
    let strange = "Content-Transfer-Encoding: x-zip\r\n\r\nx";
    assert_eq!(
        binary(strange.as_bytes(), &Structure::of(strange.as_bytes()), &[1]),
        Err(UnknownEncoding)
    );
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
    assert_eq!(
        Structure::of(wide.as_bytes())
            .root()
            .map(|root| match &root.kind {
                Kind::Multipart(children) => children.len(),
                _ => 0,
            }),
        Some(PARTS_MAX - 1)
    );
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
        let structure = Structure::of(message);
        let mut out = Vec::new();
        body_structure(message, &structure, true, &mut out);
        prop_assert!(balanced(&out), "{}", String::from_utf8_lossy(&out));
        out.clear();
        envelope(message, &mut out);
        prop_assert!(balanced(&out), "{}", String::from_utf8_lossy(&out));
        for path in ["1", "1.1", "2", "1.MIME", "2.TEXT", "TEXT", "HEADER"] {
            if let Some(Extract::Range(range)) = extract(message, &structure, &section(path)) {
                prop_assert!(range.start <= range.end && range.end <= message.len());
            }
        }
    }
}
