use super::{
    EnhancedStatusCode, REPLY_LINE_OCTETS_MAX, Reply, ReplyClass, ReplyError, ReplyLimits,
    ReplyParser,
};
use proptest::prelude::{any, prop, proptest};

fn encoded(reply: &Reply) -> String {
    let mut out = Vec::new();
    reply.encode(&mut out);
    String::from_utf8(out).unwrap()
}

fn parse(bytes: &str) -> Result<(usize, Option<Reply>), ReplyError> {
    ReplyParser::default().parse(bytes.as_bytes())
}

#[test]
fn replies_encode_with_codes_on_every_line() {
    let status = EnhancedStatusCode::new(5, 1, 10);
    assert_eq!(encoded(&Reply::new(550, status, "no")), "550 5.1.10 no\r\n");
    let two = Reply {
        code: 550,
        enhanced: Some(status),
        text: vec!["a".into(), "b".into()],
    };
    assert_eq!(encoded(&two), "550-5.1.10 a\r\n550 5.1.10 b\r\n");
    assert_eq!(encoded(&Reply::lines(250, vec![])), "250 \r\n");
}

#[test]
fn text_cannot_end_a_line_or_outgrow_it() {
    let reply = Reply::new(550, None, "a\r\n250 b\0");
    assert_eq!(encoded(&reply), "550 a??250 b?\r\n");
    let long = encoded(&Reply::new(550, None, "é".repeat(400)));
    assert!(long.len() <= REPLY_LINE_OCTETS_MAX && long.ends_with("é\r\n"));
}

#[test]
fn every_split_of_a_reply_reads_the_same() {
    let wire = "250-2.1.0 first\r\n250-second\r\n250 2.1.0 third\r\n354 go\r\n";
    let want = Reply {
        code: 250,
        enhanced: Some(EnhancedStatusCode::new(2, 1, 0)),
        text: vec!["first".into(), "second".into(), "third".into()],
    };
    for split in 0..wire.len() {
        let mut parser = ReplyParser::default();
        let mut replies = Vec::new();
        for mut part in [&wire.as_bytes()[..split], &wire.as_bytes()[split..]] {
            while !part.is_empty() {
                let (taken, reply) = parser.parse(part).unwrap();
                part = &part[taken..];
                replies.extend(reply);
            }
        }
        assert_eq!(
            replies,
            [want.clone(), Reply::new(354, None, "go")],
            "split at {split}"
        );
        assert!(!parser.is_within_reply());
    }
}

#[test]
fn what_is_no_reply_is_refused_by_cause() {
    for (wire, error) in [
        ("25 ok\r\n", ReplyError::BadCode),
        ("150 ok\r\n", ReplyError::BadCode),
        ("600 ok\r\n", ReplyError::BadCode),
        ("250ok\r\n", ReplyError::BadCode),
        ("\r\n", ReplyError::BadCode),
        ("250 ok\n", ReplyError::BareLineEnd),
        ("250 o\rk\r\n", ReplyError::BareLineEnd),
        (
            "250-a\r\n550 b\r\n",
            ReplyError::CodeChanged {
                first: 250,
                now: 550,
            },
        ),
    ] {
        assert_eq!(parse(wire), Err(error), "{wire:?}");
    }
    let endless = format!("250-{}", "x".repeat(5000));
    assert_eq!(parse(&endless), Err(ReplyError::LineTooLong(2048)));
    assert_eq!(
        parse(&"250-x\r\n".repeat(129)),
        Err(ReplyError::TooManyLines(128))
    );
}

#[test]
fn a_status_code_of_another_class_stays_text() {
    let (_, reply) = parse("550 2.1.1 odd\r\n").unwrap();
    assert_eq!(reply, Some(Reply::new(550, None, "2.1.1 odd")));
    let (_, reply) = parse("421\r\n").unwrap();
    assert_eq!(reply.unwrap().class(), ReplyClass::Transient);
    for text in [
        "", "5", "5.1", "5.1.1.1", "3.1.1", "5.1000.1", "5..1", "5.+1.1",
    ] {
        assert!(text.parse::<EnhancedStatusCode>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn parsing_never_panics_and_memory_stays_bounded(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20)
    ) {
        let mut parser = ReplyParser::new(ReplyLimits { line_octets_max: 64, lines_max: 3 });
        'parts: for part in &parts {
            let mut rest = &part[..];
            while !rest.is_empty() {
                match parser.parse(rest) {
                    Ok((taken, _)) => rest = &rest[taken..],
                    Err(_) => break 'parts,
                }
                assert!(parser.partial.len() <= 64);
            }
        }
    }

    #[test]
    fn what_is_encoded_parses_back(
        code in 200_u16..600, lines in prop::collection::vec("[a-z ]{0,40}", 1..5)
    ) {
        let reply = Reply::lines(code, lines);
        let mut wire = Vec::new();
        reply.encode(&mut wire);
        let parsed = ReplyParser::default().parse(&wire);
        assert_eq!(parsed, Ok((wire.len(), Some(reply))));
    }
}
