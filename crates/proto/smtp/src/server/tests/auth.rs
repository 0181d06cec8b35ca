//! AUTH, STARTTLS and XCLIENT.

use super::{Host, codes, config, peer, tls, with_auth};
use crate::server::{Role, ServerConfig};
use vere_sasl::client::{Credentials, Exchange};
use vere_sasl::server::LoginResult;
use vere_sasl::{Mechanism, Nonce, decode, encode};

const EHLO: &str = "EHLO client.example\r\n";

fn submission() -> Host {
    encrypted(with_auth(config(Role::Submission)))
}

fn encrypted(config: ServerConfig) -> Host {
    let mut peer = peer();
    peer.tls = Some(tls());
    let mut host = Host::new(config, peer);
    host.say(EHLO);
    host
}

#[test]
fn plain_and_login_succeed() {
    let plain = encode(b"\0tim\0tanstaaftanstaaf");
    let mut host = submission();
    host.gets("MAIL FROM:<a@b>\r\n", &["530 5.7.0"]);
    host.gets(format!("AUTH PLAIN {plain}\r\n"), &["235 2.7.0"]);
    assert_eq!(host.server.account(), Some("tim@example.org"));
    host.gets(format!("AUTH PLAIN {plain}\r\n"), &["503 5.5.1"]);
    assert!(!host.say(EHLO).contains("AUTH"));
    host.gets("MAIL FROM:<a@b> AUTH=x@y\r\n", &["250 2.1.0"]);
    assert_eq!(
        host.server
            .mail_from()
            .unwrap()
            .auth
            .as_ref()
            .unwrap()
            .as_str(),
        "x@y"
    );
    host.say("RCPT TO:<c@d>\r\nDATA\r\n.\r\n");
    assert_eq!(host.messages[0].session.protocol.as_str(), "ESMTPSA");
    assert_eq!(
        host.messages[0].session.account.as_deref(),
        Some("tim@example.org")
    );

    let mut host = submission();
    assert_eq!(host.say("AUTH plain\r\n"), "334 \r\n");
    host.gets(format!("{plain}\r\n"), &["235 2.7.0"]);

    let mut host = submission();
    assert_eq!(
        host.say("AUTH LOGIN\r\n"),
        format!("334 {}\r\n", encode(b"Username:"))
    );
    assert_eq!(
        host.say(encode(b"tim") + "\r\n"),
        format!("334 {}\r\n", encode(b"Password:"))
    );
    host.gets(encode(b"tanstaaftanstaaf") + "\r\n", &["235 2.7.0"]);
}

#[test]
fn failures_have_their_reply() {
    for (lines, want) in [
        ("AUTH CRAM-MD5\r\n", "504 5.5.4"),
        ("AUTH PLAIN !\r\n", "501 5.5.2"),
        ("AUTH PLAIN =\r\n", "501 5.5.2"),
        ("AUTH PLAIN\r\n*\r\n", "501 5.0.0"),
        ("AUTH PLAIN\r\nAA\r\n", "501 5.5.2"),
        ("AUTH PLAIN\r\nAA==\n", "554 5.5.2"),
        ("AUTH PLAIN AHRpbQB3cm9uZw==\r\n", "535 5.7.8"),
        ("AUTH PLAIN AGJyb2tlbgBwYXNz\r\n", "454 4.7.0"),
        ("AUTH LOGIN\r\ndGlt\r\n\r\n", "535 5.7.8"),
    ] {
        let reply = submission().say(lines);
        assert_eq!(codes(&reply).last(), Some(&want), "{lines}");
    }
    let mut long = submission();
    long.gets(
        format!("AUTH PLAIN\r\n{}\r\nNOOP\r\n", "A".repeat(20_000)),
        &["334", "500 5.5.6", "250 2.0.0"],
    );
    assert!(long.memory_max < 16_384);
}

#[test]
fn ends_of_logins_and_refused_senders_are_noted() {
    let mut host = submission();
    host.say("MAIL FROM:<a@b>\r\nAUTH PLAIN AHRpbQB3cm9uZw==\r\nAUTH PLAIN !\r\n");
    scram(&mut host, "ghost", "pencil");
    scram(&mut host, "user", "pencil");
    let notes = host.server.take_notes();
    let logins = notes.logins.iter();
    let logins: Vec<_> = logins
        .map(|login| (login.name.as_str(), login.mechanism, login.result))
        .collect();
    assert_eq!(
        logins,
        [
            ("tim", Mechanism::Plain, LoginResult::Rejected),
            ("ghost", Mechanism::ScramSha256, LoginResult::Rejected),
            ("user", Mechanism::ScramSha256, LoginResult::Accepted),
        ]
    );
    let refused = &notes.refused[0];
    assert_eq!(
        (refused.reverse_path.as_str(), notes.refused.len()),
        ("a@b", 1)
    );
    assert_eq!(refused.reply, "530 5.7.0 authentication required");
    assert!(host.server.take_notes().is_empty());
}

#[test]
fn scram_succeeds_and_names_the_account() {
    let mut host = submission();
    let reply = scram(&mut host, "user", "pencil");
    assert_eq!(codes(&reply), ["235 2.7.0"]);
    assert_eq!(host.server.account(), Some("user@example.org"));
    for (user, password) in [("user", "wrong"), ("ghost", "pencil")] {
        let mut host = submission();
        assert_eq!(
            codes(&scram(&mut host, user, password)),
            ["535 5.7.8"],
            "{user}"
        );
    }
    let mut host = submission();
    let first = encode(b"n,,n=broken,r=abc");
    host.gets(format!("AUTH SCRAM-SHA-256 {first}\r\n"), &["454 4.7.0"]);
}

#[test]
fn how_authentications_end_is_tallied() {
    let tallied = |host: &Host| {
        let tally = host.tally;
        (tally.authenticated, tally.rejected, tally.undecided)
    };
    for (lines, want) in [
        ("AUTH PLAIN AHRpbQB0YW5zdGFhZnRhbnN0YWFm\r\n", (1, 0, 0)),
        ("AUTH PLAIN AHRpbQB3cm9uZw==\r\n", (0, 1, 0)),
        ("AUTH PLAIN AGJyb2tlbgBwYXNz\r\n", (0, 0, 1)),
        // Given up, or no exchange at all.
        ("AUTH PLAIN\r\n*\r\nAUTH CRAM-MD5\r\n", (0, 0, 0)),
    ] {
        let mut host = submission();
        host.say(lines);
        assert_eq!(tallied(&host), want, "{lines}");
    }
    for (password, want) in [("pencil", (1, 0, 0)), ("wrong", (0, 1, 0))] {
        let mut host = submission();
        scram(&mut host, "user", password);
        assert_eq!(tallied(&host), want, "{password}");
    }
}

#[test]
fn guessing_ends_the_session() {
    let mut host = submission();
    host.gets(
        "AUTH PLAIN AHRpbQB3cm9uZw==\r\n".repeat(5),
        &["535 5.7.8", "535 5.7.8", "535 5.7.8", "421 4.7.0"],
    );
    assert!(host.closed);
}

#[test]
fn auth_needs_tls_unless_allowed() {
    let mut clear = Host::new(with_auth(config(Role::Submission)), peer());
    clear.say(EHLO);
    clear.gets("AUTH PLAIN AHRpbQB4\r\n", &["538 5.7.11"]);
    let reply = clear.say("MAIL FROM:<a@b>\r\n");
    assert_eq!(reply, "530 5.7.0 must issue a STARTTLS command first\r\n");
    let mut allowed = peer();
    allowed.may_auth_in_clear = true;
    let mut allowed = Host::new(with_auth(config(Role::Submission)), allowed);
    assert!(allowed.say(EHLO).contains("AUTH"));
    let mut relay = peer();
    relay.may_relay = true;
    let mut relay = Host::new(config(Role::Submission), relay);
    relay.say(EHLO);
    relay.gets("MAIL FROM:<a@b>\r\n", &["250 2.1.0"]);
    assert_eq!(
        codes(&Host::mx().say("EHLO x\r\nAUTH PLAIN\r\n")),
        ["250", "502 5.5.1"]
    );
}

fn tls_peer() -> crate::server::Peer {
    let mut peer = peer();
    peer.tls_available = true;
    peer.may_auth_in_clear = true;
    peer
}

#[test]
fn starttls_forgets_everything() {
    let mut host = Host::new(with_auth(config(Role::Mx)), tls_peer());
    host.say(EHLO);
    host.say(format!(
        "AUTH PLAIN {}\r\n",
        encode(b"\0tim\0tanstaaftanstaaf")
    ));
    host.say("MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n");
    host.gets("STARTTLS\r\n", &["220 2.0.0"]);
    assert!(host.start_tls);
    // What comes now is the handshake and none of the machine's business.
    assert_eq!(host.server.input(b"\x16\x03\x01", host.now), 0);
    host.server.tls_started(tls());
    host.start_tls = false;
    assert_eq!(host.server.account(), None);
    assert!(host.server.helo().is_none() && host.server.mail_from().is_none());
    host.gets("MAIL FROM:<a@b>\r\n", &["503 5.5.1"]);
    assert!(!host.say(EHLO).contains("STARTTLS"));
    host.gets("STARTTLS\r\n", &["503 5.5.1"]);
    host.say("MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n.\r\n");
    assert_eq!(host.messages[0].session.protocol.as_str(), "ESMTPS");
}

/// Commands sent in the clear behind STARTTLS must not run as if they had come encrypted.
#[test]
fn starttls_injection_is_refused() {
    for injected in [
        "NOOP\r\n",
        "x",
        "\r\n",
        "EHLO evil\r\nMAIL FROM:<evil@x>\r\n",
    ] {
        let mut host = Host::new(config(Role::Mx), tls_peer());
        host.say(EHLO);
        host.gets(format!("STARTTLS\r\n{injected}"), &["554 5.5.0"]);
        assert!(host.closed && !host.start_tls, "{injected:?}");

        // The same when they arrive before the 220 has left.
        let mut host = Host::new(config(Role::Mx), tls_peer());
        host.say(EHLO);
        assert_eq!(host.server.input(b"STARTTLS\r\n", host.now), 10);
        assert_eq!(
            codes(&host.say(injected)).last(),
            Some(&"554 5.5.0"),
            "{injected:?}"
        );
        assert!(host.closed && !host.start_tls, "{injected:?}");
    }
}

#[test]
fn tls_started_out_of_turn_does_nothing() {
    let mut host = Host::mx();
    host.say(EHLO);
    host.server.tls_started(tls());
    assert!(host.server.peer().tls.is_none() && host.server.helo().is_some());
}

#[test]
fn tls_can_be_required() {
    let mut config = config(Role::Submission);
    config.tls_required = true;
    let mut host = Host::new(config, tls_peer());
    let script = format!("{EHLO}NOOP\r\nMAIL FROM:<a@b>\r\nBDAT 6 LAST\r\nQUIT\r\nSTARTTLS\r\n");
    host.gets(
        script,
        &["250", "250 2.0.0", "530 5.7.0", "530 5.7.0", "220 2.0.0"],
    );
}

/// Runs the exchange with the client's side of our own, up to the last reply.
fn scram(host: &mut Host, user: &str, password: &str) -> String {
    let nonce = Nonce::new("rOprNGfwEbeRWgbNEkqO").unwrap();
    let (mut exchange, initial) = Exchange::begin(
        Mechanism::ScramSha256,
        &Credentials::new(user, password),
        nonce,
    )
    .unwrap();
    let mut reply = host.say(format!(
        "AUTH SCRAM-SHA-256 {}\r\n",
        encode(&initial.unwrap())
    ));
    while let Some(challenge) = reply.strip_prefix("334 ") {
        let challenge = decode(challenge.trim_end().as_bytes()).unwrap();
        let response = exchange.respond(&challenge).unwrap();
        reply = host.say(encode(&response) + "\r\n");
    }
    reply
}

#[test]
fn xclient_replaces_the_client() {
    let mut proxy = peer();
    proxy.may_xclient = true;
    proxy.name = Some("proxy.example".to_owned());
    let mut host = Host::new(with_auth(config(Role::Submission)), proxy);
    host.say(EHLO);
    let reply = host.say(
        "XCLIENT NAME=client.example ADDR=IPv6:2001:db8::7 PORT=99 PROTO=ESMTP \
         HELO=he.example LOGIN=joe+40x DESTADDR=192.0.2.3 DESTPORT=587\r\n",
    );
    assert_eq!(reply, "220 mx.example.org ESMTP Veredarius\r\n");
    host.gets("MAIL FROM:<a@b>\r\n", &["503 5.5.1"]);
    host.say("EHLO proxy.example\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n.\r\n");
    let session = &host.messages[0].session;
    assert_eq!(session.address.to_string(), "[2001:db8::7]:99");
    assert_eq!(session.local.to_string(), "192.0.2.3:587");
    assert_eq!(session.name.as_deref(), Some("client.example"));
    assert_eq!(session.helo.as_ref().unwrap().to_string(), "he.example");
    assert_eq!(session.account.as_deref(), Some("joe@x"));
    assert_eq!(session.protocol.as_str(), "ESMTPA");
    assert!(host.server.peer().may_relay && host.server.peer().may_xclient);
    // A later one keeps what it does not mention, but a name belongs to its address.
    host.say("XCLIENT ADDR=192.0.2.8 LOGIN=[UNAVAILABLE]\r\n");
    assert_eq!(host.server.peer().name, None);
    assert_eq!(host.server.account(), None);
    assert_eq!(host.server.helo().unwrap().to_string(), "he.example");
}

#[test]
fn xclient_is_for_permitted_peers_only() {
    let mut host = Host::mx();
    host.say(EHLO);
    host.gets("XCLIENT ADDR=192.0.2.9\r\n", &["550 5.7.0"]);
    let mut proxy = peer();
    proxy.may_xclient = true;
    for bad in [
        "XCLIENT ADDR=x",
        "XCLIENT FOO=x",
        "XCLIENT ADDR",
        "XCLIENT ADDR=192.0.2.9 ADDR=192.0.2.9",
        "XCLIENT PORT=65536",
        "XCLIENT NAME=a+0D+0Ab",
        "XCLIENT PROTO=LMTP",
        "XCLIENT HELO=a+20b",
    ] {
        let mut host = Host::new(config(Role::Mx), proxy.clone());
        assert_eq!(
            codes(&host.say(format!("{bad}\r\n"))),
            ["501 5.5.4"],
            "{bad}"
        );
    }
    let mut host = Host::new(config(Role::Mx), proxy);
    host.say("EHLO x\r\n");
    host.gets("XCLIENT ADDR=192.0.2.66\r\n", &["554 5.7.1"]);
    assert_eq!(host.server.peer().address.ip().to_string(), "192.0.2.7");
}
