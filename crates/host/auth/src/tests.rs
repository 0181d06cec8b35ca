//! Whole evaluations, with records in memory.

mod dmarc;
mod dmarc_rules;
mod hostile;
mod suites;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use ring::digest::{SHA256, digest};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use vere_mime::Field;

use super::*;
use crate::body::Body;
use crate::canonical::{Canonicalization, Header, own_field};
use crate::questions::Questions;
use crate::signature::{Found, Kind};

/// The time of all evaluations.
const NOW: u64 = 1_700_000_000;
const CLIENT: &str = "192.0.2.1";

/// Records in memory.
#[derive(Debug, Default)]
struct Zone {
    texts: HashMap<String, Vec<Vec<u8>>>,
    hosts: HashMap<String, IpAddr>,
    names: Vec<String>,
    /// Names that exist without a record that anybody asks for.
    others: HashSet<String>,
    unavailable: HashSet<String>,
    questions: Cell<u32>,
}

impl Zone {
    fn with(mut self, name: &str, text: impl Into<Vec<u8>>) -> Self {
        self.texts
            .entry(name.to_owned())
            .or_default()
            .push(text.into());
        self
    }

    /// A zone with the key of the tests at these names.
    fn signing(names: &[&str]) -> Self {
        names
            .iter()
            .fold(Self::default(), |zone, name| zone.with(name, record()))
    }

    fn without_answer(mut self, name: &str) -> Self {
        self.unavailable.insert(name.to_owned());
        self
    }

    fn answer(&self, name: &str) -> Result<(), Unavailable> {
        self.questions.set(self.questions.get() + 1);
        assert!(
            name::is_name(name) && name.to_ascii_lowercase() == name,
            "{name}"
        );
        match self.unavailable.contains(name) {
            true => Err(Unavailable),
            false => Ok(()),
        }
    }

    fn evaluate(&self, message: &[u8], session: Session<'_>) -> Authentication {
        let message = Message::of(message);
        ready(authenticate(self, &message, session, NOW))
    }
}

impl Dns for Zone {
    async fn texts(&self, name: &str) -> Result<Vec<Vec<u8>>, Unavailable> {
        self.answer(name)?;
        Ok(self.texts.get(name).cloned().unwrap_or_default())
    }

    async fn exists(&self, name: &str) -> Result<bool, Unavailable> {
        self.answer(name)?;
        Ok(self.others.contains(name) || self.hosts.contains_key(name))
    }

    async fn addresses(&self, name: &str, _: Family) -> Result<Vec<IpAddr>, Unavailable> {
        self.answer(name)?;
        Ok(self.hosts.get(name).copied().into_iter().collect())
    }

    async fn names(&self, _: IpAddr) -> Result<Vec<String>, Unavailable> {
        self.answer("names")?;
        Ok(self.names.clone())
    }
}

fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    for _ in 0..1_000 {
        if let Poll::Ready(value) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return value;
        }
    }
    panic!("an evaluation that waits for nothing");
}

fn session(spf: Option<(SpfResult, &str)>) -> Session<'_> {
    Session {
        client: CLIENT.parse().unwrap(),
        helo: "mx.example.org",
        reverse_path: spf.map_or("", |(_, path)| path),
        spf: spf.map(|(result, _)| result),
        spf_helo: None,
    }
}

fn pair() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
}

fn record() -> String {
    format!(
        "v=DKIM1; k=ed25519; p={}",
        STANDARD.encode(pair().public_key().as_ref())
    )
}

/// Adds a field with a signature over the signed octets, by the canonicalization that the tests of this crate check against the
/// standard's examples.
fn signed(message: &str, field: &str, signed: &str) -> String {
    let (tags, kind) = (field.to_owned(), Kind::Dkim);
    let body = message.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let length = tags
        .split("; l=")
        .nth(1)
        .and_then(|rest| rest.split(';').next()?.parse().ok());
    let mut hash = Body::new(Canonicalization::Relaxed, length);
    hash.take(body.as_bytes());
    let hash = STANDARD.encode(hash.finish().hash);
    let field = format!("{field}; c=relaxed/relaxed; h={signed}; bh={hash}; b=\r\n");
    let own = Field::of(field.as_bytes());
    let mut octets = Vec::new();
    let names: Vec<_> = signed.split(':').map(str::to_lowercase).collect();
    Header::of(message.as_bytes()).named(&names, Canonicalization::Relaxed, &mut octets);
    let found = Found::of(0, own.value, kind);
    let place = found.signature.as_ref().map_or_else(
        |fault| panic!("{fault}: {field}"),
        |signature| signature.place.clone(),
    );
    own_field(&own, &place, Canonicalization::Relaxed, &mut octets);
    let value = STANDARD.encode(pair().sign(digest(&SHA256, &octets).as_ref()));
    format!("{}{value}\r\n{message}", field.trim_ascii_end())
}

const TAGS: &str = "DKIM-Signature: v=1; a=ed25519-sha256; d=example.org; s=sel";
const TEXT: &str = "From: Ann <ann@example.org>\r\nTo: b@example.com\r\nSubject: x\r\n\r\nhi\r\n";
const KEY: &str = "sel._domainkey.example.org";

fn fault(zone: &Zone, message: &str) -> Option<Fault> {
    zone.evaluate(message.as_bytes(), session(None)).dkim[0].fault
}

/// The message of RFC 8463 appendix A.3, with the keys of appendix A.2.
const RFC_8463: &str = "DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r
 d=football.example.com; i=@football.example.com;\r
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r
 subject : date : message-id : from : subject : date;\r
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r
 b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus\r
 Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==\r
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;\r
 d=football.example.com; i=@football.example.com;\r
 q=dns/txt; s=test; t=1528637909; h=from : to : subject :\r
 date : message-id : from : subject : date;\r
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r
 b=F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3\r
 DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2Jz\r
 dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=\r
From: Joe SixPack <joe@football.example.com>\r
To: Suzie Q <suzie@shopping.example.net>\r
Subject: Is dinner ready?\r
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r
Message-ID: <20030712040037.46341.5F8J@football.example.com>\r
\r
Hi.\r
\r
We lost the game.  Are you hungry yet?\r
\r
Joe.\r
";

fn zone_of_rfc_8463() -> Zone {
    Zone::default()
        .with(
            "brisbane._domainkey.football.example.com",
            "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        )
        .with(
            "test._domainkey.football.example.com",
            "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQi\
             Y/J16JYi0Qvx/byYzCNb3W91y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G+\
             2kryOTIKT+l/K4w3QIDAQAB",
        )
        .with("_dmarc.example.com", "v=DMARC1; p=reject")
}

#[test]
fn the_message_of_the_standard_is_authentic() {
    let mut zone = zone_of_rfc_8463();
    zone.names.push("mx.Example.org".to_owned());
    zone.hosts
        .insert("mx.example.org".to_owned(), CLIENT.parse().unwrap());
    let session = session(Some((SpfResult::SoftFail, "joe@football.example.com")));
    let authentication = zone.evaluate(RFC_8463.as_bytes(), session);
    let field = String::from_utf8(authentication.field("mx.example.net", session)).unwrap();
    assert_eq!(
        field,
        "Authentication-Results: mx.example.net;\r
\tspf=softfail smtp.mailfrom=joe@football.example.com;\r
\tdkim=pass header.d=football.example.com header.i=@football.example.com\r
\theader.s=brisbane header.a=ed25519-sha256 header.b=\"/gCrinpc\";\r
\tdkim=pass header.d=football.example.com header.i=@football.example.com\r
\theader.s=test header.a=rsa-sha256 header.b=F45dVWDf;\r
\tarc=none;\r
\tdmarc=pass (p=reject) header.from=football.example.com;\r
\tiprev=pass (mx.example.org) policy.iprev=192.0.2.1\r\n"
    );
    for (old, new) in [("dinner", "Dinner"), ("Joe SixPack", "Joe  Six Pack")] {
        let changed = zone.evaluate(RFC_8463.replace(old, new).as_bytes(), session);
        assert_eq!(changed.dkim[0].fault, Some(Fault::Value), "{new}");
        assert_eq!(changed.dkim[1].fault, Some(Fault::Value), "{new}");
        assert_eq!(changed.dmarc.result, DmarcResult::Fail);
    }
    let changed = zone.evaluate(RFC_8463.replace("the game", "a game").as_bytes(), session);
    assert_eq!(changed.dkim[0].fault, Some(Fault::BodyHash));
    assert_eq!(changed.dkim[0].result(), DkimResult::Fail);
    // Relaxed forms allow this, and an added field is none of the signed ones.
    let folded = RFC_8463.replace("Is dinner ready?", "Is\r\n\t dinner ready? ");
    let folded = format!("Received: from a\r\n{folded}\r\n\r\n").replace("game.  Are", "game. Are");
    assert_eq!(
        zone.evaluate(folded.as_bytes(), session).dmarc.result,
        DmarcResult::Pass
    );
}

#[test]
fn a_second_from_field_never_passes() {
    let zone = zone_of_rfc_8463().with(KEY, record());
    // The field is inserted above and below, and a signature that names From once is valid with it.
    let message = signed(TEXT, TAGS, "from:to");
    for other in [
        format!("From: boss@example.com\r\n{message}"),
        message.replacen("To: b", "From: boss@example.com\r\nTo: b", 1),
        message.replacen("To: b", "From : boss@example.com\r\nTo: b", 1),
        format!("From\r\n : boss@example.com\r\n{message}"),
        message.replacen("To: b", "X: y\rFrom: boss@example.com\r\nTo: b", 1),
        message.replacen("To: b", "no field\r\nTo: b", 1),
    ] {
        let dmarc = zone.evaluate(other.as_bytes(), session(None)).dmarc;
        assert_eq!(dmarc.result, DmarcResult::PermError, "{other}");
    }
}

#[test]
fn signatures_count_in_their_time() {
    let zone = Zone::signing(&[KEY]);
    let with = |tags: &str| signed(TEXT, &format!("{TAGS}{tags}"), "From:From:To");
    for (tags, expected) in [
        (String::new(), None),
        (format!("; t={NOW}; x={}", NOW + 1), None),
        (format!("; t={}", NOW + 3_600), None),
        (format!("; t={}", NOW + 90_000), Some(Fault::Future)),
        (format!("; x={NOW}"), Some(Fault::Expired)),
        (
            format!("; t={}; x={}", NOW + 10, NOW + 5),
            Some(Fault::Expired),
        ),
        ("; x=99999999999999999999999999".to_owned(), None),
        ("; i=ann@mail.example.org".to_owned(), None),
    ] {
        assert_eq!(fault(&zone, &with(&tags)), expected, "{tags}");
    }
}

#[test]
fn keys_decide() {
    let message = signed(TEXT, TAGS, "from");
    let below = signed(TEXT, &format!("{TAGS}; i=@a.example.org"), "from");
    let with = |tags: &str| Zone::default().with(KEY, record() + tags);
    for (zone, message, expected) in [
        (Zone::default(), &message, Some(Fault::NoKey)),
        (
            Zone::default().without_answer(KEY),
            &message,
            Some(Fault::KeyUnavailable),
        ),
        (
            with("").with(KEY, record()),
            &message,
            Some(Fault::SeveralKeys),
        ),
        (with("").with(KEY, "v=spf1 -all"), &message, None),
        (with("; t=s"), &message, None),
        (with("; t=s"), &below, Some(Fault::KeyStrict)),
        (with("; h=sha1"), &message, Some(Fault::KeyUse)),
        (
            Zone::default().with(KEY, "v=DKIM1; p="),
            &message,
            Some(Fault::KeyRevoked),
        ),
        (
            Zone::default().with(KEY, "p=YQ=="),
            &message,
            Some(Fault::KeyUse),
        ),
    ] {
        assert_eq!(fault(&zone, message), expected);
    }
}

/// RFC 6376 section 3.6.1, flag `y`: a failure counts no more than a missing signature.
#[test]
fn domains_that_test_are_not_blamed() {
    let zone = |tags: &str| Zone::default().with(KEY, record() + tags);
    let message = signed(TEXT, TAGS, "from");
    let changed = message.replace("hi", "ho");
    for (tags, message, expected, is_testing) in [
        ("", &message, DkimResult::Pass, false),
        ("; t=y", &message, DkimResult::Pass, true),
        ("; t=s:y", &message, DkimResult::Pass, true),
        ("", &changed, DkimResult::Fail, false),
        ("; t=y", &changed, DkimResult::Neutral, true),
        ("; t=x", &changed, DkimResult::Fail, false),
        ("; t=y; h=sha1", &message, DkimResult::PermError, true),
    ] {
        let authentication = zone(tags).evaluate(message.as_bytes(), session(None));
        let signed = &authentication.dkim[0];
        assert_eq!(
            (signed.result(), signed.is_testing),
            (expected, is_testing),
            "{tags}"
        );
    }
    let session = session(None);
    let field = zone("; t=y")
        .evaluate(changed.as_bytes(), session)
        .field("mx.example.net", session);
    let field = String::from_utf8(field).unwrap();
    assert!(
        field.contains("dkim=neutral (body changed) (testing)"),
        "{field}"
    );
}

/// Whoever passes a message on can write signatures above the author's.
#[test]
fn signatures_above_the_authors_do_not_hide_it() {
    let junk = |domain: &str, count: usize| {
        let field = TAGS.replace("example.org", domain) + "; h=from; bh=YQ==; b=YQ==\r\n";
        field.repeat(count)
    };
    let zone = Zone::signing(&[KEY]).with("_dmarc.example.org", "v=DMARC1; p=reject");
    let message = signed(TEXT, TAGS, "from");
    let above = junk("example.net", 500) + &junk("", 500);
    let authentication = zone.evaluate((above + &message).as_bytes(), session(None));
    assert_eq!(authentication.dkim.len(), SIGNATURES_MAX);
    assert_eq!(authentication.ignored, 991);
    assert_eq!(authentication.dmarc.result, DmarcResult::Pass);
    // The order is that of the message.
    assert_eq!(authentication.dkim[9].fault, None);
    assert!(zone.questions.get() < QUESTIONS_MAX);
    // A signature of a domain below, or of one beside, is nearer than others as well.
    for domain in ["a.example.org", "b.example.org"] {
        let zone = Zone::signing(&[&format!("sel._domainkey.{domain}")])
            .with("_dmarc.example.org", "v=DMARC1; p=reject");
        let text = TEXT.replace("ann@", "ann@a.");
        let message = signed(&text, &TAGS.replace("example.org", domain), "from");
        let message = junk("example.net", 20) + &message;
        let authentication = zone.evaluate(message.as_bytes(), session(None));
        assert_eq!(authentication.dmarc.result, DmarcResult::Pass, "{domain}");
    }
    // Ten of the author's own domain are all that is checked, whoever wrote them.
    let message = junk("example.org", 10) + &message;
    let authentication = zone.evaluate(message.as_bytes(), session(None));
    assert_eq!(authentication.dmarc.result, DmarcResult::Fail);
}

/// Anybody can add to a message whose body is signed in part.
#[test]
fn a_part_of_the_body_is_not_enough() {
    let zone = Zone::signing(&[KEY]).with("_dmarc.example.org", "v=DMARC1; p=reject");
    let message = signed(TEXT, &format!("{TAGS}; l=4"), "from:to");
    let evaluate = |message: &str| {
        let authentication = zone.evaluate(message.as_bytes(), session(None));
        (authentication.dkim[0].fault, authentication.dmarc.result)
    };
    assert_eq!(evaluate(&message), (None, DmarcResult::Pass));
    let longer = message.clone() + "buy\r\n";
    assert_eq!(
        evaluate(&longer),
        (Some(Fault::PartialBody), DmarcResult::Fail)
    );
    // Empty lines at the end are no part of a body.
    assert_eq!(
        evaluate(&(message.clone() + "\r\n\r\n")),
        (None, DmarcResult::Pass)
    );
    let nothing = signed(TEXT, &format!("{TAGS}; l=0"), "from:to");
    assert_eq!(
        evaluate(&nothing),
        (Some(Fault::PartialBody), DmarcResult::Fail)
    );
    let beyond = signed(TEXT, &format!("{TAGS}; l=5"), "from:to");
    assert_eq!(
        evaluate(&beyond),
        (Some(Fault::LengthBeyond), DmarcResult::Fail)
    );
}

#[test]
fn bodies_without_content_or_end_are_signed() {
    let zone = Zone::signing(&[KEY]);
    for body in ["", "\r\n", "\r\n\r\n", "x", "x\0y", "\u{fc} \t\r\n \r\n"] {
        let text = TEXT.replace("\r\n\r\nhi\r\n", &format!("\r\n\r\n{body}"));
        assert_eq!(fault(&zone, &signed(&text, TAGS, "from")), None, "{body:?}");
    }
    // A message that is a header alone.
    let header = TEXT.strip_suffix("\r\nhi\r\n").unwrap();
    assert_eq!(fault(&zone, &signed(header, TAGS, "from")), None);
}

#[test]
fn questions_are_bounded() {
    let field =
        |domain: usize| TAGS.replace("example.org", &format!("a{domain}.b.c.d.e.f.g.example.org"));
    let many: String = (0..1_000)
        .map(|n| field(n) + "; h=from; bh=YQ==; b=YQ==\r\n")
        .collect();
    let zone = Zone::default();
    let authentication = zone.evaluate((many + TEXT).as_bytes(), session(None));
    assert_eq!(
        (authentication.dkim.len(), authentication.ignored),
        (SIGNATURES_MAX, 990)
    );
    assert!(zone.questions.get() <= QUESTIONS_MAX);
    let field = authentication.field("mx.example.net", session(None));
    assert!(
        String::from_utf8(field)
            .unwrap()
            .contains("(990 more signatures ignored)")
    );

    // Beyond the bound there is no answer, whoever asks.
    let zone = Zone::default();
    let questions = Questions::new(&zone);
    for n in 0..QUESTIONS_MAX {
        let found = ready(questions.texts(&format!("n{n}.example.org")));
        assert!(found.is_ok_and(|texts| texts.is_empty()));
    }
    let name = "one.more.example.org";
    assert!(ready(questions.texts(name)).is_err());
    assert!(ready(questions.exists(name)).is_err());
    assert!(ready(questions.texts("n0.example.org")).is_ok());
    assert_eq!(zone.questions.get(), QUESTIONS_MAX);
}

#[test]
fn clients_have_names_or_do_not() {
    let result = |zone: Zone| zone.evaluate(TEXT.as_bytes(), session(None)).iprev.result;
    let named = |names: &[&str]| Zone {
        names: names.iter().map(ToString::to_string).collect(),
        hosts: [("mx.example.org".to_owned(), CLIENT.parse().unwrap())].into(),
        ..Zone::default()
    };
    assert_eq!(
        result(named(&["other.example", "MX.example.org."])),
        IprevResult::Pass
    );
    assert_eq!(result(named(&["other.example"])), IprevResult::Fail);
    assert_eq!(result(named(&[])), IprevResult::PermError);
    assert_eq!(result(named(&["a b"])), IprevResult::PermError);
    assert_eq!(
        result(named(&["a", "b", "c", "d", "e", "mx.example.org"])),
        IprevResult::Fail
    );
    assert_eq!(
        result(named(&["a"]).without_answer("a")),
        IprevResult::TempError
    );
    assert_eq!(
        result(Zone::default().without_answer("names")),
        IprevResult::TempError
    );
}

/// The words of RFC 8601 are those that are shown.
#[test]
fn results_are_shown_by_their_words() {
    let dkim = [
        DkimResult::Pass,
        DkimResult::Fail,
        DkimResult::Policy,
        DkimResult::Neutral,
        DkimResult::TempError,
        DkimResult::PermError,
    ];
    assert_eq!(
        dkim.map(|result| result.to_string()),
        [
            "pass",
            "fail",
            "policy",
            "neutral",
            "temperror",
            "permerror"
        ]
    );
    let dmarc = [
        DmarcResult::None,
        DmarcResult::Pass,
        DmarcResult::Fail,
        DmarcResult::TempError,
        DmarcResult::PermError,
    ];
    assert_eq!(
        dmarc.map(|result| result.to_string()),
        ["none", "pass", "fail", "temperror", "permerror"]
    );
    let iprev = [
        IprevResult::Pass,
        IprevResult::Fail,
        IprevResult::TempError,
        IprevResult::PermError,
    ];
    assert_eq!(
        iprev.map(|result| result.to_string()),
        ["pass", "fail", "temperror", "permerror"]
    );
    let policies = [Policy::None, Policy::Quarantine, Policy::Reject];
    assert_eq!(
        policies.map(|policy| policy.to_string()),
        ["none", "quarantine", "reject"]
    );
}

/// A field that any reader understands in the same way.
fn check_field(field: &[u8]) {
    assert!(field.is_ascii() && field.ends_with(b"\r\n"));
    let text = std::str::from_utf8(field).unwrap();
    let lines: Vec<_> = text.strip_suffix("\r\n").unwrap().split("\r\n").collect();
    for (number, line) in lines.iter().enumerate() {
        assert!(
            line.len() <= 998 && !line.contains(['\r', '\n', '\0']),
            "{line:?}"
        );
        assert_eq!(line.starts_with('\t'), number > 0, "{line:?}");
        assert!(!line.trim().is_empty());
    }
    assert!(field.len() <= 16 * 1024, "{}", field.len());
}

proptest! {
    #[test]
    fn any_octets_have_results(octets in proptest::collection::vec(any::<u8>(), 0..300), tags in "[ -~]{0,80}", path in ".{0,40}") {
        let header = [b"DKIM-Signature: ", tags.as_bytes(), b"\r\nARC-Seal: i=1;", tags.as_bytes(), b"\r\nFrom: ", &octets, b"\r\n"].concat();
        for message in [&octets, &header] {
            let session = session(Some((SpfResult::Fail, &path)));
            let authentication = Zone::default().evaluate(message, session);
            prop_assert!(authentication.dmarc.result != DmarcResult::Pass);
            prop_assert!(authentication.dkim.iter().all(|signed| signed.fault.is_some()));
            prop_assert_ne!(authentication.arc.as_str(), "pass");
            let field = authentication.field("mx.example.net", session);
            check_field(&field);
            prop_assert_eq!(foreign_fields(&field, "MX.EXAMPLE.NET").len(), 1);
            let cut: Vec<_> = foreign_fields(message, "mx.example.net");
            prop_assert!(cut.iter().all(|range| range.end <= message.len()));
        }
    }

    /// A text that comes in pieces has the results of the whole text.
    #[test]
    fn pieces_have_the_results_of_the_whole(cuts in proptest::collection::vec(0_usize..1_500, 0..6)) {
        let mut hashing = Hashing::default();
        let mut rest = RFC_8463.as_bytes();
        for cut in cuts {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            hashing.take(piece);
            rest = behind;
        }
        hashing.take(rest);
        let message = hashing.finish();
        let zone = zone_of_rfc_8463();
        let results = ready(authenticate(&zone, &message, session(None), NOW));
        prop_assert_eq!(results, zone.evaluate(RFC_8463.as_bytes(), session(None)));
    }

    /// A changed octet of a signed field or of the body breaks each signature, or is one that canonicalization takes away.
    #[test]
    fn a_change_is_noticed(at in any::<proptest::sample::Index>(), octet in b'!'..=b'~') {
        let mut message = RFC_8463.as_bytes().to_vec();
        let begin = RFC_8463.find("From: Joe").unwrap();
        let at = begin + at.index(message.len() - begin);
        prop_assume!(message[at] != octet && !message[at].eq_ignore_ascii_case(&octet));
        prop_assume!(!message[at].is_ascii_whitespace());
        message[at] = octet;
        let results = zone_of_rfc_8463().evaluate(&message, session(None));
        prop_assert!(results.dkim.iter().all(|signed| signed.fault.is_some()));
    }
}
