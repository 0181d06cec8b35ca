//! Where a session may be handed over, and what becomes of it.

use std::sync::Arc;
use std::time::Duration;

use vere_units::Timestamp;

use super::super::{Host, config, peer, with_auth};
use crate::server::{Answer, Handover, HandoverRefused, Message, Peer, Role, Server, Step};

const LEAD: &str = "EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n";

/// Tries to hand over, which must fail, and puts the session back.
#[track_caller]
fn refused(host: &mut Host) -> HandoverRefused {
    let other = Server::new(Arc::clone(&host.server.config), peer(), host.now);
    let before = format!("{:?}", host.server);
    let (server, refused) = std::mem::replace(&mut host.server, other)
        .hand_over()
        .unwrap_err();
    assert_eq!(format!("{server:?}"), before);
    host.server = *server;
    refused
}

fn within(script: &str) -> Host {
    let mut with_all: Peer = peer();
    with_all.may_auth_in_clear = true;
    with_all.tls_available = true;
    let mut host = Host::new(with_auth(config(Role::Mx)), with_all);
    host.say(script);
    host
}

#[test]
fn every_other_state_refuses() {
    use HandoverRefused::{Chunks, Line, NoRecipient, Phase};
    let started = "EHLO x\r\nMAIL FROM:<a@b>\r\n";
    for (script, expected) in [
        (String::new(), NoRecipient),
        ("EHLO x\r\n".to_owned(), NoRecipient),
        (started.to_owned(), NoRecipient),
        (format!("{started}RCPT TO:<nobody@d>\r\n"), NoRecipient),
        (format!("{LEAD}RSET\r\n"), NoRecipient),
        (format!("{LEAD}EHLO x\r\n"), NoRecipient),
        (format!("{LEAD}DATA\r\n.\r\n"), NoRecipient),
        (format!("{LEAD}BDAT 0 LAST\r\n"), NoRecipient),
        (format!("{LEAD}DATA\r\nx"), Phase),
        (format!("{LEAD}BDAT 2\r\nx"), Phase),
        (format!("{LEAD}BDAT 2\r\nxy"), Chunks),
        (format!("{LEAD}STARTTLS\r\n"), Phase),
        (format!("{LEAD}QUIT\r\n"), Phase),
        (format!("{LEAD}D"), Line),
        (format!("{LEAD}\r"), Line),
        (format!("{LEAD}{}", "x".repeat(2_000)), Line),
        ("EHLO x\r\nAUTH LOGIN\r\n".to_owned(), Phase),
    ] {
        let mut host = within(&script);
        assert_eq!(refused(&mut host), expected, "{script:?}");
        assert_eq!(refused(&mut host), expected, "{script:?}");
    }
}

#[test]
fn an_open_question_refuses() {
    let mut host = within(LEAD);
    host.server.input(b"RCPT TO:<e@d>\r\nDATA\r\n", host.now);
    assert_eq!(refused(&mut host), HandoverRefused::Phase);
    let Step::Ask(_) = host.server.step() else {
        panic!("no question");
    };
    assert_eq!(refused(&mut host), HandoverRefused::Phase);
    host.server.answer(Answer::Policy(Ok(())), host.now);
    host.say("DATA\r\nx\r\n.\r\n");
    let recipients = |message: &Message| message.recipients.len();
    assert_eq!(
        host.messages.iter().map(recipients).collect::<Vec<_>>(),
        [2]
    );
}

#[test]
fn a_greeting_not_sent_refuses() {
    let mut config = config(Role::Mx);
    config.early_talkers_refused = false;
    let mut host = Host::before_greeting(config, peer());
    host.server
        .input(b"EHLO x\r\nMAIL FROM:<a@b>\r\n", host.now);
    assert!(matches!(host.server.step(), Step::Ask(_)));
    host.server.answer(Answer::Policy(Ok(())), host.now);
    host.server.input(b"RCPT TO:<c@d>\r\n", host.now);
    assert!(matches!(host.server.step(), Step::Ask(_)));
    host.server.answer(Answer::Policy(Ok(())), host.now);
    assert!(host.server.has_recipient());
    assert_eq!(refused(&mut host), HandoverRefused::Greeting);
    host.server.sent(5);
    assert_eq!(refused(&mut host), HandoverRefused::Greeting);
    host.server.sent(host.server.output().len());
    let handover = host.server.hand_over().unwrap();
    assert!(handover.replies.is_empty());
}

#[test]
fn a_session_that_ends_refuses() {
    let mut host = within(LEAD);
    host.server.shut_down();
    assert!(!host.server.has_recipient());
    assert_eq!(refused(&mut host), HandoverRefused::Phase);
    assert_eq!(
        host.say(""),
        "421 4.3.2 service shutting down, closing connection\r\n"
    );
    let mut host = within(LEAD);
    host.server.timed_out();
    assert_eq!(refused(&mut host), HandoverRefused::Phase);
}

#[test]
fn texts_of_the_host_have_bounds() {
    type Place = fn(&mut Server, String);
    let places: [(&str, Place); 6] = [
        ("name of the client", |server, text| {
            server.peer.name = Some(text)
        }),
        ("TLS version", |server, text| tls(server).version = text),
        ("TLS cipher suite", |server, text| tls(server).cipher = text),
        ("TLS server name", |server, text| {
            tls(server).sni = Some(text)
        }),
        ("account", |server, text| {
            server.session.account = Some(text)
        }),
        ("XCLIENT LOGIN", |server, text| {
            server.forwarded.get_or_insert_default().login = Some(text);
        }),
    ];
    for (name, place) in places {
        for text in ["x".repeat(1_025), "a\nb".to_owned(), "\u{85}".to_owned()] {
            let mut host = within(LEAD);
            place(&mut host.server, text);
            assert_eq!(refused(&mut host), HandoverRefused::Text(name));
        }
        for text in [String::new(), "x".repeat(1_024), "ü ".to_owned()] {
            let mut host = within(LEAD);
            place(&mut host.server, text);
            let handover = host.server.hand_over().unwrap();
            let mut octets = Vec::new();
            handover.encode(&mut octets);
            assert_eq!(Handover::decode(&octets), Ok(handover), "{name}");
        }
    }
}

fn tls(server: &mut Server) -> &mut crate::server::TlsInfo {
    server.peer.tls.get_or_insert_with(super::super::tls)
}

#[test]
fn recipients_and_replies_have_bounds() {
    let mut host = within("");
    Arc::make_mut(&mut host.server.config).limits.recipients_max = 2_000;
    host.say(LEAD);
    host.say("RCPT TO:<c@d>\r\n".repeat(999));
    host.sends_whole = false;
    let recipients = host
        .server
        .session
        .transaction
        .as_ref()
        .map(|open| open.recipients.len());
    assert_eq!(recipients, Some(1_000));
    assert_eq!(host.server.check_hand_over(), Ok(()));
    host.say("RCPT TO:<c@d>\r\n");
    assert_eq!(refused(&mut host), HandoverRefused::Recipients(1_001));

    let mut host = within(LEAD);
    let config = Arc::make_mut(&mut host.server.config);
    config.limits.output_octets_max = usize::MAX;
    config.limits.idle_commands_max = usize::MAX;
    while host.server.output().len() <= 32_768 {
        host.server.input(b"NOOP\r\n", host.now);
    }
    host.server.sent(host.server.output().len() - 32_769);
    assert_eq!(refused(&mut host), HandoverRefused::Replies(32_769));
    host.server.sent(1);
    let handover = host.server.hand_over().unwrap();
    let mut octets = Vec::new();
    handover.encode(&mut octets);
    assert_eq!(Handover::decode(&octets), Ok(handover));
}

/// A handover of a session with two recipients, two refused ones and one of each count.
fn counted() -> Handover {
    let mut host = within(LEAD);
    host.say("RCPT TO:<e@d>\r\nRCPT TO:<nobody@d>\r\nRCPT TO:<later@d>\r\nX\r\nNOOP\r\n");
    host.server.input(b"NOOP\r\n", host.now);
    host.server.counts.auth_failures = 1;
    host.server.hand_over().unwrap()
}

#[test]
fn smaller_limits_end_a_session_at_the_next_count() {
    type Limit = fn(&mut crate::limits::Limits);
    let limits: [(Limit, &str, &str); 6] = [
        (|limits| limits.errors_max = 0, "X\r\n", "421 4.7.0"),
        (
            |limits| limits.idle_commands_max = 0,
            "NOOP\r\n",
            "421 4.7.0",
        ),
        (
            |limits| limits.refusals_max = 0,
            "RCPT TO:<nobody@d>\r\n",
            "421 4.7.0",
        ),
        (
            |limits| limits.recipients_max = 0,
            "RCPT TO:<f@d>\r\n",
            "421 4.7.0",
        ),
        (
            |limits| limits.transactions_max = 0,
            "RSET\r\nMAIL FROM:<>\r\n",
            "421 4.7.0",
        ),
        (
            |limits| limits.auth_failures_max = 0,
            "RSET\r\nAUTH PLAIN AHRpbQB4\r\n",
            "421 4.7.0",
        ),
    ];
    for (limit, command, expected) in limits {
        let mut host = within("");
        let config = Arc::make_mut(&mut host.server.config);
        limit(&mut config.limits);
        config.limits.output_octets_max = 1;
        host.server = Server::resume(Arc::clone(&host.server.config), counted(), host.now);
        host.sends_whole = false;
        assert!(matches!(host.server.step(), Step::Send));
        assert_eq!(
            host.server.input(command.as_bytes(), host.now),
            0,
            "replies wait"
        );
        assert_eq!(host.say(""), "250 2.0.0 ok\r\n");
        let replies = host.say(command);
        assert_eq!(
            super::super::codes(&replies).last(),
            Some(&expected),
            "{command}"
        );
        assert!(host.closed);
    }
    // The transaction that was accepted is carried out.
    let mut host = within("");
    let config = Arc::make_mut(&mut host.server.config);
    config.limits.recipients_max = 0;
    config.role = Role::Submission;
    host.server = Server::resume(Arc::clone(&host.server.config), counted(), host.now);
    host.sends_whole = false;
    host.say("DATA\r\n.\r\n");
    assert_eq!(host.messages.len(), 1);
}

#[test]
fn no_session_is_without_a_deadline() {
    let now = Timestamp::from_millis(5_000_000);
    let resumed = Server::resume(Arc::new(config(Role::Mx)), counted(), now);
    assert_eq!(resumed.deadline(), now + Duration::from_secs(300));
}

/// The packets of a busy front are small.
#[test]
fn a_usual_session_takes_little() {
    let mut peer = peer();
    peer.name = Some("mail-wr1-f41.example.com".to_owned());
    peer.tls = Some(super::super::tls());
    let mut host = Host::new(config(Role::Mx), peer);
    host.say("EHLO mail-wr1-f41.example.com\r\n");
    host.say("MAIL FROM:<newsletter@news.example.com> SIZE=20480 BODY=8BITMIME\r\n");
    host.server
        .input(b"RCPT TO:<someone@example.org>\r\n", host.now);
    assert!(matches!(host.server.step(), Step::Ask(_)));
    host.server.answer(Answer::Policy(Ok(())), host.now);
    let mut octets = Vec::new();
    host.server.hand_over().unwrap().encode(&mut octets);
    assert!(octets.len() < 320, "{}", octets.len());
}
