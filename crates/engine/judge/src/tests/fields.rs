//! The fields `X-Spam-*`.

use super::*;

fn fields(lines: &str, facts: &Facts) -> String {
    let judgement = judge(lines).judge(facts, &["ann@example.org"]);
    judgement.fields(&judgement.recipients[0])
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[test]
fn fields_are_those_of_spamassassin() {
    let facts = Facts {
        spf: Some(AuthResult::Fail),
        helo: Some(HeloForm::Ours),
        iprev: Some(AuthResult::None),
        spf_helo: Some(AuthResult::Pass),
        ..Facts::default()
    };
    let expected = format!(
        "X-Spam-Flag: YES\r\nX-Spam-Score: 8.5\r\nX-Spam-Level: ********\r\n\
         X-Spam-Status: Yes, score=8.5 required=5.0 tests=HELO_OURS,SPF_FAIL,RDNS_NONE\r\n\
         \tautolearn=no version=Veredarius-{}\r\n",
        version()
    );
    assert_eq!(fields("", &facts), expected);
    let good = Facts {
        dkim: Some(vec![Signature {
            domain: word("d.example"),
            result: AuthResult::Pass,
        }]),
        spf: Some(AuthResult::Pass),
        ..Facts::default()
    };
    let expected = format!(
        "X-Spam-Score: -0.1\r\nX-Spam-Status: No, score=-0.1 required=5.0 tests=DKIM_VALID autolearn=no\r\n\
         \tversion=Veredarius-{}\r\n",
        version()
    );
    assert_eq!(fields("", &good), expected);
    let never = fields("tag_at = \"never\"", &Facts::default());
    assert!(
        never.contains("X-Spam-Status: No, score=0.0 tests=none autolearn=no"),
        "{never}"
    );
    assert!(!never.contains("Level"));
}

/// A score just below the threshold must not look as if it had reached the threshold.
#[test]
fn scores_are_not_rounded() {
    let facts = Facts {
        spf: Some(AuthResult::Fail),
        ..Facts::default()
    };
    let found = fields("[judging.weights]\nSPF_FAIL = 4.96", &facts);
    assert!(found.contains("No, score=4.96 required=5.0"), "{found}");
}

#[test]
fn a_verdict_beside_the_score_marks_the_message() {
    let facts = Facts {
        viruses: vec![Virus {
            filter: word("clamav"),
            name: word("x"),
        }],
        ..Facts::default()
    };
    let found = fields("virus = \"tag\"\n[judging.weights]\nVIRUS = 0", &facts);
    assert!(found.starts_with("X-Spam-Flag: YES\r\n"), "{found}");
    assert!(
        found.contains("Yes, score=0.0 required=5.0 tests=VIRUS "),
        "{found}"
    );
}

#[test]
fn many_tests_are_folded_and_bounded() {
    let symbol = |n: usize| Symbol {
        name: format!("SYMBOL_WITH_A_NAME_{n}"),
        score: Score::from_points(200 - i64::try_from(n % 100).unwrap()),
    };
    let facts = Facts {
        filters: vec![Filter {
            name: word("rspamd"),
            action: None,
            // Each name comes twice.
            symbols: (0..100).chain(0..100).map(symbol).collect(),
        }],
        ..Facts::default()
    };
    let found = fields("", &facts);
    assert!(found.contains(&format!("X-Spam-Level: {}\r\n", "*".repeat(50))));
    for line in found.split("\r\n") {
        assert!(line.len() <= 78, "{line}");
        assert!(!line.trim_end_matches(char::is_whitespace).is_empty() || line.is_empty());
    }
    let status: String = found
        .split("X-Spam-Status")
        .nth(1)
        .unwrap()
        .replace("\r\n\t", "");
    let tests = status.split("tests=").nth(1).unwrap();
    let tests = tests.split("autolearn").next().unwrap().trim();
    let expected: Vec<String> = (0..64).map(|n| format!("SYMBOL_WITH_A_NAME_{n}")).collect();
    assert_eq!(tests, expected.join(","));
}

#[test]
fn lines_have_78_octets_at_most() {
    let named = |length: usize| Facts {
        filters: vec![Filter {
            name: word("f"),
            action: None,
            symbols: vec![Symbol {
                name: "X".repeat(length),
                score: score("1.0"),
            }],
        }],
        ..Facts::default()
    };
    let start = "X-Spam-Status: No, score=1.0 required=5.0 tests=".len();
    let first = |length: usize| {
        let found = fields("", &named(length));
        let line = found.lines().find(|line| line.starts_with("X-Spam-Status"));
        line.unwrap().len()
    };
    assert_eq!(first(78 - start), 78);
    assert_eq!(
        first(79 - start),
        "X-Spam-Status: No, score=1.0 required=5.0".len()
    );
}

/// A spammer writes `X-Spam-Status: No` to be believed.
#[test]
fn foreign_fields_are_found() {
    let message = b"Received: x\r\nX-Spam-Status: No\r\n\tfolded\r\nx-SPAM: no\r\nX-Spam-Flag : NO\nX-Spamd: 1\r\nX-Spa: 1\r\n\
                    Subject: X-Spam-Flag: NO\r\n\r\nX-Spam-Flag: YES\r\n";
    let found = foreign_fields(message);
    let texts: Vec<_> = found.iter().map(|range| &message[range.clone()]).collect();
    let expected: [&[u8]; 3] = [
        b"X-Spam-Status: No\r\n\tfolded\r\n",
        b"x-SPAM: no\r\n",
        b"X-Spam-Flag : NO\n",
    ];
    assert_eq!(texts, expected);
    assert_eq!(foreign_fields(b""), []);
    let whole = foreign_fields(b"X-Spam-Level: *");
    assert!(matches!(&whole[..], [range] if *range == (0..15)));
}

/// The word of a release for the program below: our fields alone, above the first Received field.
#[test]
fn a_release_changes_only_fields_of_ours_that_say_yes() {
    let ours = "ARC-Seal: i=1\r\nX-Spam-Author: a@b.example\r\nX-Spam-Flag: YES\r\nX-Spam-Score: 8.5\r\nX-Spam-Level: ********\r\n\
        X-Spam-Status: Yes, score=8.5 required=5.0 tests=HELO_OURS\r\n\tautolearn=no\r\n\
        Authentication-Results: a; none\r\n";
    let rest = "Received: from a\r\n\tby b\r\nX-Spam-Flag: YES\r\nX-Spam-Status: Yes, x\r\n\r\nX-Spam-Flag: YES\r\n";
    let message = format!("{ours}{rest}");
    let expected = format!(
        "ARC-Seal: i=1\r\nX-Spam-Score: 8.5\r\nX-Spam-Level: ********\r\n\
         X-Spam-Status: No, score=8.5 required=5.0 tests=HELO_OURS\r\n\tautolearn=no\r\n\treleased=yes\r\n\
         Authentication-Results: a; none\r\n{rest}"
    );
    let released = as_released(message.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(released).unwrap(), expected);
    assert!(expected.len() <= message.len());
    // A filter has kept a good message aside: the author leaves all the same.
    let good = format!("X-Spam-Status: No, score=0\r\n{rest}");
    let noted = format!("X-Spam-Author: a@b.example\r\n{good}");
    assert_eq!(as_released(noted.as_bytes()), Some(good.into_bytes()));
    for unchanged in [
        rest.to_owned(),
        expected.clone(),
        String::new(),
        format!("{ours}\r\n{rest}"),
        "X-Spam-Flag: NO\r\nX-Spam-Status: No, x\r\nReceived: a\r\n\r\n".to_owned(),
    ] {
        assert_eq!(as_released(unchanged.as_bytes()), None, "{unchanged}");
    }
}

#[test]
fn the_author_is_noted_above_the_first_received_field() {
    let odd = "\"é-x\"@b.example";
    for author in ["a@b.example", odd] {
        let message = format!(
            "X-Spam-Score: 1\r\n{}Received: x\r\n\r\n",
            author_field(author)
        );
        assert_eq!(noted_author(message.as_bytes()), Some(author));
    }
    for author in ["", "a b@c", "a@b\r\nX: y", "a@\u{7f}", &"x".repeat(321)] {
        assert_eq!(author_field(author), "", "{author}");
    }
    let strange = "Received: x\r\nX-Spam-Author: a@b\r\n\r\nX-Spam-Author: a@b\r\n";
    assert_eq!(noted_author(strange.as_bytes()), None);
    let foreign = foreign_fields(b"X-Spam-Author: a@b\r\n\r\n");
    assert_eq!(foreign.first(), Some(&(0..20)));
}
