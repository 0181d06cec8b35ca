//! Messages that break parsers: each has a result, with bounded work.

use super::*;

/// A message with a valid signature and a policy, to which the cases add.
fn base() -> (Zone, String) {
    let zone = Zone::signing(&[KEY]).with("_dmarc.example.org", "v=DMARC1; p=reject");
    (zone, signed(TEXT, TAGS, "from:to"))
}

/// Evaluates a message, and checks the bounds that every message has.
fn evaluate(zone: &Zone, message: &[u8]) -> Authentication {
    let hashed = Message::of(message);
    assert!(hashed.header.len() <= HEADER_OCTETS_MAX);
    assert!(hashed.bodies.len() <= 4, "{}", hashed.bodies.len());
    assert!(hashed.signatures.len() <= SIGNATURES_MAX);
    assert!(hashed.chain.sets.len() <= ARC_SETS_MAX);
    let before = zone.questions.get();
    let session = session(None);
    let authentication = ready(authenticate(zone, &hashed, session, NOW));
    assert!(zone.questions.get() - before <= QUESTIONS_MAX);
    check_field(&authentication.field("mx.example.net", session));
    let ranges = foreign_fields(message, "mx.example.net");
    assert!(ranges.iter().all(|range| range.end <= message.len()));
    authentication
}

fn shown(authentication: &Authentication) -> String {
    let dkim: Vec<_> = authentication
        .dkim
        .iter()
        .map(|signed| {
            signed
                .fault
                .map_or("pass".to_owned(), |fault| fault.to_string())
        })
        .collect();
    let dkim = match &dkim[..] {
        [] => "-",
        [first, ..] => first,
    };
    let arc = authentication.arc.as_str();
    format!("{dkim} / {arc} / {}", authentication.dmarc.result)
}

/// Compares the results of messages.
fn check(zone: &Zone, cases: &[(&str, String, &str)]) {
    let found = cases.iter().map(|(name, message, expected)| {
        let found = shown(&evaluate(zone, message.as_bytes()));
        (found != *expected).then(|| format!("{name}: {found}, not {expected}"))
    });
    let differences: Vec<_> = found.flatten().collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// A name, what is changed in the message with a valid signature, and the result of the first signature, of ARC, and of DMARC.
#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn headers_that_break_parsers() {
    let (zone, message) = base();
    let above = |text: &str| format!("{text}{message}");
    let from = |text: &str| message.replace("From: Ann <ann@example.org>", text);
    let cases = [
        ("the message itself", message.clone(), "pass / none / pass"),
        ("nothing", String::new(), "- / none / permerror"),
        ("a line end", "\r\n".to_owned(), "- / none / permerror"),
        (
            "a body alone",
            "\r\nFrom: a@example.org\r\n".to_owned(),
            "- / none / permerror",
        ),
        (
            "no line end",
            "From: a@example.org".to_owned(),
            "- / none / fail",
        ),
        (
            "no From",
            from("X: y"),
            "signature wrong / none / permerror",
        ),
        (
            "an empty From",
            from("From:"),
            "signature wrong / none / permerror",
        ),
        (
            "two From, the upper one unsigned",
            above("From: b@example.com\r\n"),
            "pass / none / permerror",
        ),
        (
            "two From, the lower one unsigned",
            message.replace("Subject", "From: b@example.com\r\nSubject"),
            "signature wrong / none / permerror",
        ),
        (
            "From in an odd case, twice",
            above("fRoM: ann@example.org\r\n"),
            "pass / none / permerror",
        ),
        (
            "a folded name",
            above("Fr\r\n om: b@example.com\r\n"),
            "pass / none / permerror",
        ),
        (
            "a line of blanks",
            message.replace("To: b", "X: y\r\n \t\r\nTo: b"),
            "pass / none / pass",
        ),
        (
            "a bare CR",
            above("X: y\rFrom: b@example.com\r\n"),
            "pass / none / permerror",
        ),
        (
            "a bare LF",
            above("X: y\nFrom: b@example.com\r\n"),
            "pass / none / permerror",
        ),
        (
            "lines that end with LF",
            message.replace("\r\n", "\n"),
            "body changed / none / permerror",
        ),
        ("NUL", above("X: \0\r\n"), "pass / none / permerror"),
        ("no field", above("junk\r\n"), "pass / none / permerror"),
        (
            "a blank first line",
            above(" X: y\r\n"),
            "pass / none / permerror",
        ),
        (
            "octets above ASCII",
            above("X: \u{fc}\u{1f4e7}\u{feff}\r\n"),
            "pass / none / pass",
        ),
        (
            "a folded From",
            from("From: Ann\r\n <ann@example.org>"),
            "pass / none / pass",
        ),
        (
            "comments in each other",
            from(&format!(
                "From: {}x{} ann@example.org",
                "(".repeat(5_000),
                ")".repeat(5_000)
            )),
            "signature wrong / none / fail",
        ),
        (
            "comments without an end",
            from(&format!("From: {}ann@example.org", "(".repeat(5_000))),
            "signature wrong / none / permerror",
        ),
        (
            "angles",
            from(&format!(
                "From: {}ann@example.org{}",
                "<".repeat(5_000),
                ">".repeat(5_000)
            )),
            "signature wrong / none / fail",
        ),
        (
            "groups in each other",
            from(&format!("From: {}ann@example.org", "a:".repeat(5_000))),
            "signature wrong / none / permerror",
        ),
        (
            "quotes",
            from(&format!("From: {}ann@example.org", "\"".repeat(4_999))),
            "signature wrong / none / permerror",
        ),
        (
            "many authors",
            from(&format!("From: {}", "a@b.example,".repeat(5_000))),
            "signature wrong / none / none",
        ),
        (
            "many domains",
            from(&format!(
                "From: {}",
                (0..5_000)
                    .map(|n| format!("a@b{n}.example,"))
                    .collect::<String>()
            )),
            "signature wrong / none / none",
        ),
        (
            "a long domain",
            from(&format!("From: a@{}example.org", "a.".repeat(5_000))),
            "signature wrong / none / permerror",
        ),
        (
            "encoded words",
            from("From: =?utf-8?q?b=40example=2Ecom?= <ann@example.org>"),
            "signature wrong / none / fail",
        ),
    ];
    check(&zone, &cases);
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn signatures_that_break_parsers() {
    let (zone, message) = base();
    let tags = format!("{TAGS}; h=from; bh=YQ==; b=YQ==");
    let with = |field: &str| format!("{field}\r\n{TEXT}");
    let named = |count: usize| signed(TEXT, TAGS, &vec!["from"; count].join(":"));
    let set = |n: usize, cv: &str| {
        let tags = "a=ed25519-sha256; d=example.org; s=sel; b=YQ";
        format!(
            "ARC-Seal: i={n}; cv={cv}; {tags}\r\nARC-Message-Signature: i={n}; h=from; bh=YQ; {tags}\r\n\
             ARC-Authentication-Results: i={n}; a.example; none\r\n"
        )
    };
    let sets = |count: usize| {
        (2..=count).map(|n| set(n, "pass")).collect::<String>() + &set(1, "none") + &message
    };
    let cases = [
        (
            "1,000 signatures",
            format!("{tags}\r\n").repeat(1_000) + &message,
            "body changed / none / fail",
        ),
        (
            "no tags",
            with("DKIM-Signature:"),
            "malformed signature / none / fail",
        ),
        (
            "semicolons",
            with(&format!("DKIM-Signature: v=1{}", ";".repeat(10_000))),
            "malformed signature / none / fail",
        ),
        (
            "many tags",
            with(&format!("{tags}{}", "; x=y".repeat(10_000))),
            "malformed signature / none / fail",
        ),
        (
            "a long value",
            with(&format!(
                "{TAGS}; h=from; bh=YQ==; b={}",
                "A".repeat(100_000)
            )),
            "body changed / none / fail",
        ),
        (
            "a long domain",
            with(&tags.replace("example.org", &"a.".repeat(10_000))),
            "no domain name in d or s / none / fail",
        ),
        (
            "a long selector",
            with(&tags.replace("sel", &"a".repeat(10_000))),
            "no domain name in d or s / none / fail",
        ),
        (
            "a long identity",
            with(&format!("{tags}; i={}@example.org", "a".repeat(10_000))),
            "body changed / none / fail",
        ),
        (
            "digits",
            with(&format!("{tags}; t={}", "9".repeat(10_000))),
            "malformed signature / none / fail",
        ),
        (
            "a length of 76 digits",
            with(&format!("{tags}; l={}", "9".repeat(76))),
            "l beyond the body / none / fail",
        ),
        (
            "no value",
            with(&format!("{TAGS}; h=from; bh=; b=")),
            "body changed / none / fail",
        ),
        (
            "8-bit tags",
            with("DKIM-Signature: v=1; \u{fc}=1"),
            "malformed signature / none / fail",
        ),
        (
            "NUL in tags",
            with(&tags.replace("v=1", "v=\0")),
            "unknown version / none / permerror",
        ),
        ("From 500 times", named(500), "pass / none / pass"),
        (
            "1,000 names",
            with(&format!(
                "{TAGS}; h={}; bh=YQ==; b=YQ==",
                vec!["from"; 1_000].join(":")
            )),
            "malformed signature / none / fail",
        ),
        ("sets of ARC", sets(20), "pass / fail / pass"),
        ("more sets of ARC", sets(51), "pass / fail / pass"),
        ("1,000 sets of ARC", sets(1_000), "pass / fail / pass"),
    ];
    check(&zone, &cases);
}

#[test]
fn bodies_that_break_parsers() {
    let zone = base().0;
    for (body, expected) in [
        ("", "pass"),
        ("\r\n", "pass"),
        ("no line end", "pass"),
        ("a bare CR \r at the end\r", "pass"),
        ("a bare LF\nin a line", "pass"),
        ("\0\r\n", "pass"),
        ("\u{fc} \t\r\n", "pass"),
        (".\r\n.\r\n", "pass"),
        ("\r\n.\r\nFrom: b@example.com\r\n", "pass"),
        (&"x".repeat(1_000_000), "pass"),
        (&"\r\n".repeat(100_000), "pass"),
        (&" \t".repeat(100_000), "pass"),
    ] {
        let text = TEXT.replace("\r\n\r\nhi\r\n", &format!("\r\n\r\n{body}"));
        let found = shown(&evaluate(&zone, signed(&text, TAGS, "from").as_bytes()));
        let begin: String = body.chars().take(30).collect();
        assert_eq!(found, format!("{expected} / none / pass"), "{begin:?}");
    }
}

#[test]
fn a_header_has_256_kib_at_most() {
    let (zone, message) = base();
    let (header, body) = message.split_once("\r\n\r\n").unwrap();
    let with = |octets: usize| {
        let filler = octets - header.len() - "\r\n".len() - "\r\n\r\n".len() - "X: \r\n".len();
        // The empty line behind the header counts.
        format!(
            "X: {}\r\n{header}\r\n\r\n{body}",
            "x".repeat(filler + "\r\n".len())
        )
    };
    let of = |octets| shown(&evaluate(&zone, with(octets).as_bytes()));
    assert_eq!(of(HEADER_OCTETS_MAX), "pass / none / pass");
    assert_eq!(
        of(HEADER_OCTETS_MAX + 1),
        "header too long / none / permerror"
    );
    assert_eq!(
        of(HEADER_OCTETS_MAX * 4),
        "header too long / none / permerror"
    );
    // The fields of a long header count once, whatever the number of their names.
    let names = vec!["x"; 499].join(":");
    let long = format!("X: {}\r\n", "x".repeat(400)).repeat(600);
    let text = format!("{long}{TEXT}");
    let message = signed(&text, TAGS, &format!("from:{names}"));
    assert_eq!(
        shown(&evaluate(&zone, message.as_bytes())),
        "pass / none / pass"
    );
}

#[test]
fn keys_that_break_parsers() {
    let message = base().1;
    let long = |octets: usize| format!("v=DKIM1; k=ed25519; n={}; p=", "x".repeat(octets));
    let key = record();
    for (name, records, expected) in [
        ("nothing", vec![String::new()], "malformed key"),
        ("a long record", vec![long(60_000)], "malformed key"),
        (
            "a long key",
            vec![format!("v=DKIM1; p={}", "A".repeat(60_000))],
            "malformed key",
        ),
        (
            "a long key of the other kind",
            vec![format!("v=DKIM1; k=ed25519; p={}", "A".repeat(4_000))],
            "signature wrong",
        ),
        (
            "an empty key",
            vec!["v=DKIM1; k=ed25519; p=".to_owned()],
            "key revoked",
        ),
        (
            "a short key",
            vec!["v=DKIM1; k=ed25519; p=YQ==".to_owned()],
            "signature wrong",
        ),
        (
            "no base 64",
            vec!["v=DKIM1; k=ed25519; p=*".to_owned()],
            "malformed key",
        ),
        (
            "another kind",
            vec!["v=DKIM1; k=rsa; p=YQ==".to_owned()],
            "key for another use",
        ),
        ("1,000 keys", vec![key.clone(); 1_000], "several keys"),
        (
            "1,000 records before the key",
            [vec!["v=spf1 -all".to_owned(); 1_000], vec![key.clone()]].concat(),
            "no key",
        ),
        ("other records", vec!["v=spf1 -all".to_owned(), key], "pass"),
    ] {
        let zone = Zone::default();
        let zone = records
            .into_iter()
            .fold(zone, |zone, text| zone.with(KEY, text));
        let found = shown(&evaluate(&zone, message.as_bytes()));
        assert_eq!(found, format!("{expected} / none / none"), "{name}");
    }
}

/// Octets that are no text, in each place of a message.
#[test]
fn octets_that_are_no_text() {
    let (zone, message) = base();
    for octet in [0_u8, b'\r', b'\n', 0x7f, 0x80, 0xc0, 0xff] {
        for at in 0..message.len() {
            let mut octets = message.clone().into_bytes();
            octets.insert(at, octet);
            let changed = evaluate(&zone, &octets);
            // An octet inside the text that is signed, or in the signature, is never overlooked.
            let is_signed = message[at..].starts_with("nn@example.org>");
            assert!(
                !is_signed || changed.dmarc.result != DmarcResult::Pass,
                "{octet} at {at}"
            );
        }
    }
}
