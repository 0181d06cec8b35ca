//! Greeting, EHLO, STARTTLS, timeouts.

use std::time::Duration;

use super::{ALL, ONE, PLAIN, Talk, config, lmtp, message, short};
use crate::client::{ClientConfig, ClientStep, CloseReason, Misbehaviour, Stage, TlsMode};

const STARTTLS: &str = "250-mx\r\n250-SIZE 5\r\n250 STARTTLS\r\n";

fn required() -> ClientConfig {
    ClientConfig {
        tls: TlsMode::Required,
        ..config()
    }
}

#[test]
fn greets_and_is_ready() {
    let mut talk = Talk::new(config());
    assert!(matches!(talk.client.step(), ClientStep::NeedInput));
    talk.exchange("", "220-mx wel");
    assert!(matches!(talk.client.step(), ClientStep::NeedInput));
    talk.says("come\r\n220 here\r\n");
    assert!(matches!(talk.client.step(), ClientStep::Send));
    talk.exchange("EHLO me.example\r\n", ALL);
    talk.is_ready();
    assert!(talk.client.extensions().pipelining);
    talk.client.quit(talk.now);
    talk.exchange("QUIT\r\n", "221 bye\r\n");
    assert_eq!(talk.closed(), CloseReason::Quit);
}

#[test]
fn falls_back_to_helo() {
    for refusal in ["500 what", "502 no", "501 syntax", "550 5.5.1 no"] {
        let mut talk = Talk::greeted(config());
        talk.says(&format!("{refusal}\r\n"));
        assert_eq!(talk.hears(), "HELO me.example\r\n");
        // What looks like an extension behind HELO is none.
        talk.says("250-old\r\n250 PIPELINING\r\n");
        talk.is_ready();
        assert!(!talk.client.extensions().pipelining);
    }
    let mut talk = Talk::greeted(config());
    talk.says("500 what\r\n");
    talk.hears();
    talk.says("550 go away\r\n");
    assert!(matches!(talk.leaves(), CloseReason::Refused(reply) if reply.code == 550));
}

#[test]
fn lmtp_has_no_helo() {
    let mut talk = Talk::new(lmtp());
    talk.says("220 store\r\n");
    talk.exchange("LHLO me.example\r\n", "500 what\r\n");
    assert!(matches!(talk.leaves(), CloseReason::Refused(_)));
}

#[test]
fn refused_greetings() {
    for (greeting, code) in [
        ("554 5.3.2 no mail here", 554),
        ("450 later", 450),
        ("521 none", 521),
    ] {
        let mut talk = Talk::new(config());
        talk.says(&format!("{greeting}\r\n"));
        assert!(matches!(talk.leaves(), CloseReason::Refused(reply) if reply.code == code));
        // A message given all the same is settled by that.
        talk.begin(message(ONE));
        let outcome = talk.done();
        assert!(short(&outcome).ends_with(&code.to_string()));
        assert!(!outcome.connection_usable);
    }
    let mut talk = Talk::new(config());
    talk.says("421 4.3.2 full\r\n");
    assert!(matches!(talk.closed(), CloseReason::ServerClosing(_)));
    let mut talk = Talk::new(config());
    talk.says("354 go ahead\r\n");
    let reason = talk.closed();
    assert!(matches!(
        reason,
        CloseReason::Misbehaved(Misbehaviour::WrongKind(Stage::Greeting, _))
    ));
}

#[test]
fn starttls_forgets_what_was_said() {
    let mut talk = Talk::greeted(config());
    talk.says("250-mx\r\n250-PIPELINING\r\n250-AUTH PLAIN\r\n250 STARTTLS\r\n");
    talk.exchange("STARTTLS\r\n", "220 go\r\n");
    assert!(matches!(talk.client.step(), ClientStep::StartTls));
    assert!(matches!(talk.client.step(), ClientStep::StartTls));
    assert!(!talk.client.is_secured());
    talk.client.tls_started(talk.now);
    assert!(talk.client.is_secured());
    assert_eq!(*talk.client.extensions(), Default::default());
    assert_eq!(talk.hears(), "EHLO me.example\r\n");
    // Offered again inside TLS, it is not asked for again.
    talk.says("250-mx\r\n250 STARTTLS\r\n");
    talk.is_ready();
}

/// CVE-2021-33515 and its kin: replies sent in plaintext must not be taken as said inside TLS.
#[test]
fn starttls_injection_is_refused() {
    let mut talk = Talk::greeted(config());
    talk.says(STARTTLS);
    talk.hears();
    talk.says("220 go\r\n250 mx\r\n");
    assert_eq!(talk.closed(), CloseReason::InjectedBeforeTls);

    // In the next segment.
    let mut talk = Talk::greeted(config());
    talk.says(STARTTLS);
    talk.hears();
    talk.says("220 go\r\n");
    talk.says("2");
    assert_eq!(talk.closed(), CloseReason::InjectedBeforeTls);
    talk.client.tls_started(talk.now);
    assert_eq!(talk.closed(), CloseReason::InjectedBeforeTls);
}

#[test]
fn starttls_refused_or_missing() {
    let mut talk = Talk::greeted(config());
    talk.says(STARTTLS);
    talk.hears();
    talk.says("454 4.7.0 not now\r\n");
    talk.is_ready();

    let mut talk = Talk::greeted(required());
    talk.says(STARTTLS);
    talk.hears();
    talk.says("454 4.7.0 not now\r\n");
    assert!(matches!(talk.leaves(), CloseReason::TlsRefused(_)));

    let mut talk = Talk::greeted(required());
    talk.says(PLAIN);
    assert_eq!(talk.leaves(), CloseReason::TlsUnavailable);
    talk.begin(message(ONE));
    assert_eq!(short(&talk.done()), "~451");
}

#[test]
fn tls_modes() {
    let mut talk = Talk::ready(
        ClientConfig {
            tls: TlsMode::Off,
            ..config()
        },
        STARTTLS,
    );
    assert!(!talk.client.is_secured());
    talk.is_ready();
    let talk = Talk::ready(
        ClientConfig {
            tls: TlsMode::Implicit,
            ..config()
        },
        STARTTLS,
    );
    assert!(talk.client.is_secured());
}

#[test]
fn failed_handshake() {
    let mut talk = Talk::greeted(required());
    talk.says(STARTTLS);
    talk.hears();
    talk.says("220 go\r\n");
    talk.client.connection_lost();
    assert_eq!(talk.closed(), CloseReason::Lost(Stage::StartTls));
}

#[test]
fn deadlines_are_those_of_rfc_5321() {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let mut talk = Talk::new(config());
    let expects = |talk: &Talk, time| assert_eq!(talk.client.deadline(), talk.now + time);
    expects(&talk, minutes(5));
    talk.wait(minutes(1));
    talk.says("220 m");
    // Part of a reply buys no time.
    assert_eq!(talk.client.deadline(), talk.now + minutes(4));
    talk.says("x\r\n");
    expects(&talk, minutes(5));
    talk.hears();
    talk.says(PLAIN);
    assert_eq!(talk.client.deadline(), vere_units::Timestamp::MAX);
    talk.wait(minutes(60));
    talk.begin(message(ONE));
    expects(&talk, minutes(5));
    talk.hears();
    talk.says("250 ok\r\n");
    expects(&talk, minutes(5));
    talk.hears();
    talk.says("250 ok\r\n");
    expects(&talk, minutes(2));
    talk.hears();
    talk.says("354 go\r\n");
    expects(&talk, minutes(3));
    // What moves gets more time, what then stands does not; the end has its own.
    talk.client.sent(1);
    let before = talk.client.deadline();
    talk.client.timed_out();
    assert_eq!(talk.client.deadline(), before + minutes(3));
    talk.hears();
    talk.client.timed_out();
    assert_eq!(talk.client.deadline(), before + minutes(13));
    talk.client.timed_out();
    assert_eq!(short(&talk.done()), "~451");
    assert_eq!(talk.closed(), CloseReason::TimedOut(Stage::Final));
}

#[test]
fn timeouts_name_their_stage() {
    let mut talk = Talk::new(config());
    talk.client.timed_out();
    assert_eq!(talk.closed(), CloseReason::TimedOut(Stage::Greeting));

    let mut talk = Talk::ready(config(), PLAIN);
    talk.begin(message(ONE));
    talk.client.timed_out();
    assert_eq!(short(&talk.done()), "~451");
    assert_eq!(talk.closed(), CloseReason::TimedOut(Stage::Mail));

    // Nothing depends on QUIT.
    let mut talk = Talk::ready(config(), PLAIN);
    talk.client.quit(talk.now);
    talk.client.timed_out();
    assert_eq!(talk.closed(), CloseReason::Quit);
}

#[test]
fn quit_waits_for_what_is_under_way() {
    let mut talk = Talk::new(config());
    talk.client.quit(talk.now);
    talk.says("220 mx\r\n");
    talk.exchange("EHLO me.example\r\n", PLAIN);
    assert_eq!(talk.hears(), "QUIT\r\n");
    talk.client.connection_lost();
    assert_eq!(talk.closed(), CloseReason::Quit);
}
