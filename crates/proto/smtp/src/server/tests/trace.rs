//! The trace header and the count of those that are there.

use super::{peer, tls};
use crate::address::{AddrSpec, DomainOrLiteral, ForwardPath, ReversePath};
use crate::server::{Protocol, SessionInfo, SpfIdentity, received_header, received_spf_header};
use vere_units::Timestamp;

fn session() -> SessionInfo {
    SessionInfo {
        helo: Some(DomainOrLiteral::parse("client.example").unwrap()),
        address: peer().address,
        local: peer().local,
        name: None,
        tls: None,
        account: None,
        protocol: Protocol {
            esmtp: true,
            ..Protocol::default()
        },
        priority: None,
    }
}

fn header(session: &SessionInfo, recipient: Option<&str>) -> String {
    let recipient = recipient.map(|text| ForwardPath::from(AddrSpec::parse(text).unwrap()));
    let time = Timestamp::from_millis(1_777_863_721_000);
    let field = received_header(session, "mx.example.org", "01HZX", time, recipient.as_ref());
    String::from_utf8(field).unwrap()
}

#[test]
fn the_header_names_the_session() {
    assert_eq!(
        header(&session(), None),
        "Received: from client.example ([192.0.2.7]) by mx.example.org with ESMTP\r\n\
         \tid 01HZX; Mon, 04 May 2026 03:02:01 +0000\r\n"
    );
    let mut encrypted = session();
    encrypted.name = Some("dyn-7.client.example".to_owned());
    encrypted.address = "[::ffff:192.0.2.7]:1".parse().unwrap();
    encrypted.tls = Some(tls());
    encrypted.protocol = Protocol {
        esmtp: true,
        smtputf8: true,
        tls: true,
        auth: true,
    };
    assert_eq!(
        header(&encrypted, Some("user@example.net")),
        "Received: from client.example (dyn-7.client.example [192.0.2.7])\r\n\
         \tby mx.example.org with UTF8SMTPSA (TLSv1.3 TLS13_AES_256_GCM_SHA384) id 01HZX\r\n\
         \tfor <user@example.net>; Mon, 04 May 2026 03:02:01 +0000\r\n"
    );
}

#[test]
fn nothing_from_outside_ends_a_line_and_lines_stay_short() {
    let mut session = session();
    session.name = Some("a\r\nSubject: x".to_owned());
    session.helo =
        Some(DomainOrLiteral::parse(&["x".repeat(60), "y".repeat(60)].join(".")).unwrap());
    let field = header(&session, Some(&format!("{}@example.net", "z".repeat(200))));
    assert!(!field.contains("\r\nSubject"));
    assert!(field.split("\r\n").all(|line| line.len() < 300));
    assert!(
        field
            .split("\r\n")
            .skip(1)
            .all(|line| line.is_empty() || line.starts_with('\t'))
    );
}

#[test]
fn protocols_have_their_registered_names() {
    let name = |esmtp, smtputf8, tls, auth| {
        Protocol {
            esmtp,
            smtputf8,
            tls,
            auth,
        }
        .as_str()
    };
    assert_eq!(name(false, false, true, false), "SMTP");
    assert_eq!(name(true, false, true, false), "ESMTPS");
    assert_eq!(name(true, false, false, true), "ESMTPA");
    assert_eq!(name(true, true, true, false), "UTF8SMTPS");
}

#[test]
fn a_priority_is_in_the_trace() {
    let session = SessionInfo {
        priority: Some(-3),
        ..session()
    };
    assert!(header(&session, Some("a@b.example")).contains("for <a@b.example> priority -3;"));
}

fn spf(session: &SessionInfo, path: &str) -> String {
    let path = ReversePath::parse(path).unwrap();
    let identity = match path {
        ReversePath::Null => SpfIdentity::Helo,
        ReversePath::Address(_) => SpfIdentity::MailFrom,
    };
    let field = received_spf_header((identity, "softfail"), session, &path, "mx.example.org");
    String::from_utf8(field).unwrap()
}

#[test]
fn the_field_of_spf_names_the_identity_that_was_asked_about() {
    assert_eq!(
        spf(&session(), "<a@b.example>"),
        "Received-SPF: softfail receiver=mx.example.org; client-ip=192.0.2.7;\r\n\
         \tenvelope-from=\"a@b.example\"; helo=client.example; identity=mailfrom\r\n"
    );
    let mut other = session();
    other.address = "[2001:db8::7]:1".parse().unwrap();
    other.helo = Some(DomainOrLiteral::parse("[192.0.2.7]").unwrap());
    assert_eq!(
        spf(&other, "<>"),
        "Received-SPF: softfail receiver=mx.example.org; client-ip=\"2001:db8::7\";\r\n\
         \tenvelope-from=\"\"; helo=\"[192.0.2.7]\"; identity=helo\r\n"
    );
}

/// The words of a stranger end neither the text nor the field.
#[test]
fn the_field_of_spf_quotes_what_a_stranger_says() {
    let says = |path| {
        let field = spf(&session(), path);
        let (_, rest) = field.split_once("envelope-from=").unwrap();
        rest.split_once("; helo=").unwrap().0.to_owned()
    };
    assert_eq!(
        says(r#"<"a\" pass; x=\\"@b.example>"#),
        r#""\"a\\\" pass; x=\\\\\"@b.example""#
    );
    assert_eq!(says("<a++b@b.example>"), r#""a++b@b.example""#);
    assert_eq!(says("<\u{fc}@b.example>"), "\"\u{fc}@b.example\"");
    let long = format!("<{}@{}.example>", "a".repeat(64), "b".repeat(60));
    for line in spf(&session(), &long).lines() {
        assert!(line.len() < 200, "{line}");
    }
}
