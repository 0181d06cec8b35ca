//! AUTH by the client machine.

use super::{Talk, config};
use crate::client::{ClientConfig, CloseReason, TlsMode};
use vere_sasl::client::{Credentials, ExchangeError};
use vere_sasl::server::{Exchange, Step};
use vere_sasl::{FakeKeys, Mechanism, NonceSource, ScramKeys, decode, encode};

fn secured() -> ClientConfig {
    ClientConfig {
        auth: Some(Credentials::new("tim", "tanstaaf")),
        tls: TlsMode::Implicit,
        ..config()
    }
}

/// Talks up to the reply to EHLO and returns what the client answers to these mechanisms.
fn offered(config: ClientConfig, mechanisms: &str) -> (Talk, String) {
    let mut talk = Talk::greeted(config);
    talk.says(&format!("250-mx\r\n250 AUTH {mechanisms}\r\n"));
    let heard = talk.hears();
    (talk, heard)
}

#[test]
fn plain_in_one_line() {
    let (mut talk, heard) = offered(secured(), "PLAIN LOGIN");
    assert_eq!(
        heard,
        format!("AUTH PLAIN {}\r\n", encode(b"\0tim\0tanstaaf"))
    );
    talk.says("235 2.7.0 welcome\r\n");
    talk.is_ready();
}

#[test]
fn long_plain_waits_for_the_challenge() {
    let long = "p".repeat(400);
    let credentials = Some(Credentials::new("tim", &*long));
    let (mut talk, heard) = offered(
        ClientConfig {
            auth: credentials,
            ..secured()
        },
        "PLAIN",
    );
    assert_eq!(heard, "AUTH PLAIN\r\n");
    talk.says("334 \r\n");
    assert_eq!(
        talk.hears(),
        encode(format!("\0tim\0{long}").as_bytes()) + "\r\n"
    );
    talk.says("235 ok\r\n");
    talk.is_ready();
}

#[test]
fn login_by_prompts() {
    let (mut talk, heard) = offered(secured(), "LOGIN");
    assert_eq!(heard, "AUTH LOGIN\r\n");
    talk.says("334 VXNlcm5hbWU6\r\n");
    talk.exchange("dGlt\r\n", "334 UGFzc3dvcmQ6\r\n");
    assert_eq!(talk.hears(), encode(b"tanstaaf") + "\r\n");
    talk.says("235 ok\r\n");
    talk.is_ready();
}

#[test]
fn scram_is_preferred_and_both_prove() {
    let (mut talk, heard) = offered(secured(), "PLAIN SCRAM-SHA-256 LOGIN");
    let initial = heard
        .strip_prefix("AUTH SCRAM-SHA-256 ")
        .unwrap()
        .trim_end();
    let nonces = NonceSource::new([5; 32]);
    let keys = ScramKeys::derive("tanstaaf", b"0123456789abcdef", 4096).unwrap();
    let (mut server, mut step) = Exchange::begin(
        Mechanism::ScramSha256,
        Some(&decode(initial.as_bytes()).unwrap()),
        nonces.next(),
    );
    loop {
        step = match step {
            Step::ScramUser(name) => {
                assert_eq!(name, "tim");
                server.keys(Some(keys.clone()), &FakeKeys::new([0; 32], 4096))
            }
            Step::Challenge(challenge) => {
                talk.says(&format!("334 {}\r\n", encode(&challenge)));
                server.respond(&decode(talk.hears().trim_end().as_bytes()).unwrap())
            }
            Step::Authenticated { .. } => break,
            other => panic!("{other:?}"),
        };
    }
    talk.says("235 ok\r\n");
    talk.is_ready();
}

/// A server that cannot prove to know the password gets no mail.
#[test]
fn scram_server_must_prove() {
    let (mut talk, _) = offered(secured(), "SCRAM-SHA-256");
    talk.says("235 trust me\r\n");
    assert_eq!(
        talk.leaves(),
        CloseReason::AuthBroken(ExchangeError::Unproven)
    );
}

#[test]
fn broken_exchange_is_cancelled() {
    for challenge in ["334 !!\r\n", "334 cj1ldmls\r\n"] {
        let (mut talk, _) = offered(secured(), "SCRAM-SHA-256");
        talk.says(challenge);
        assert_eq!(talk.hears(), "*\r\nQUIT\r\n");
        assert!(matches!(talk.closed(), CloseReason::AuthBroken(_)));
    }
}

#[test]
fn no_password_in_clear() {
    let clear = || ClientConfig {
        tls: TlsMode::Off,
        ..secured()
    };
    let (mut talk, heard) = offered(clear(), "PLAIN LOGIN");
    assert_eq!(heard, "QUIT\r\n");
    assert_eq!(talk.closed(), CloseReason::AuthUnavailable);

    let (_, heard) = offered(clear(), "PLAIN SCRAM-SHA-256");
    assert!(heard.starts_with("AUTH SCRAM-SHA-256 "));

    let (_, heard) = offered(
        ClientConfig {
            auth_in_clear: true,
            ..clear()
        },
        "PLAIN",
    );
    assert!(heard.starts_with("AUTH PLAIN "));
}

#[test]
fn refusals() {
    let (mut talk, _) = offered(secured(), "PLAIN LOGIN");
    talk.says("535 5.7.8 no\r\n");
    assert!(matches!(talk.leaves(), CloseReason::AuthRefused(reply) if reply.code == 535));

    // Too weak, or not there after all: the next one.
    for code in [504, 534] {
        let (mut talk, _) = offered(secured(), "PLAIN LOGIN");
        talk.says(&format!("{code} not this\r\n"));
        talk.exchange("AUTH LOGIN\r\n", &format!("{code} not this\r\n"));
        assert!(matches!(talk.leaves(), CloseReason::AuthRefused(_)));
    }

    let (mut talk, heard) = offered(secured(), "CRAM-MD5 GSSAPI");
    assert_eq!(heard, "QUIT\r\n");
    assert_eq!(talk.closed(), CloseReason::AuthUnavailable);

    let (mut talk, _) = offered(secured(), "PLAIN");
    talk.says("250 odd\r\n");
    assert!(matches!(talk.closed(), CloseReason::Misbehaved(_)));
}

/// A server that asks for ever: the mechanism's last message is the last.
#[test]
fn endless_challenges_end() {
    let (mut talk, _) = offered(secured(), "PLAIN");
    talk.says("334 \r\n");
    assert_eq!(talk.hears(), "*\r\nQUIT\r\n");
    assert_eq!(
        talk.closed(),
        CloseReason::AuthBroken(ExchangeError::Surplus)
    );
}
