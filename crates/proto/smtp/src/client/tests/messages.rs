//! Messages to servers that keep to the protocol.

use std::time::Duration;

use bytes::Bytes;

use super::{ALL, BODY, ONE, PIPELINING, PLAIN, STUFFED, TWO, Talk, config, lmtp, message, short};
use crate::address::ReversePath;
use crate::client::{ClientConfig, CloseReason, Misbehaviour, OutgoingMessage, RECENT, Stage};
use crate::command::{BodyType, Notify, Orcpt, Ret, Xtext};

#[test]
fn one_command_at_a_time() {
    let mut talk = Talk::ready(config(), PLAIN);
    talk.begin(message(TWO));
    talk.exchange("MAIL FROM:<s@a.example>\r\n", "250 ok\r\n");
    talk.exchange("RCPT TO:<a@b.example>\r\n", "250 ok\r\n");
    talk.exchange("RCPT TO:<c@b.example>\r\n", "250 ok\r\n");
    talk.exchange("DATA\r\n", "354 go\r\n");
    talk.exchange(STUFFED, "250 2.0.0 queued\r\n");
    let outcome = talk.done();
    assert_eq!(short(&outcome), "+250 +250");
    assert!(outcome.connection_usable && !outcome.dsn_passed_on);
    talk.is_ready();
}

#[test]
fn all_at_once_with_pipelining() {
    let mut talk = Talk::ready(config(), PIPELINING);
    for _ in 0..3 {
        talk.begin(message(TWO));
        assert_eq!(
            talk.hears(),
            "MAIL FROM:<s@a.example>\r\nRCPT TO:<a@b.example>\r\nRCPT TO:<c@b.example>\r\nDATA\r\n"
        );
        talk.says("250 ok\r\n250 ok\r\n251 forwarded\r\n354 go\r\n");
        talk.exchange(STUFFED, "250 queued\r\n");
        assert_eq!(short(&talk.done()), "+250 +250");
        talk.is_ready();
    }
}

#[test]
fn partial_acceptance() {
    let mut talk = Talk::ready(config(), PIPELINING);
    talk.settles(
        &["a@b.example", "c@b.example", "d@b.example", "e@b.example"],
        &[
            "250 ok\r\n550 5.1.1 no\r\n250 ok\r\n450 4.2.1 later\r\n252 perhaps\r\n354 go\r\n",
            "250 queued\r\n",
        ],
        "-550 +250 ~450 +250",
    );
}

#[test]
fn everybody_refused() {
    // Without pipelining DATA is not tried, and RSET comes before the next message only.
    let mut talk = Talk::ready(config(), PLAIN);
    talk.settles(ONE, &["250 ok\r\n", "550 no\r\n"], "-550");
    assert_eq!(talk.hears(), "");
    talk.begin(message(ONE));
    talk.exchange("RSET\r\n", "250 ok\r\n");
    assert_eq!(talk.hears(), "MAIL FROM:<s@a.example>\r\n");

    // With it the server refuses DATA.
    let mut talk = Talk::ready(config(), PIPELINING);
    talk.settles(
        ONE,
        &["250 ok\r\n550 no\r\n554 no valid recipients\r\n"],
        "-550",
    );
    talk.begin(message(ONE));
    assert!(talk.hears().starts_with("RSET\r\nMAIL FROM"));
    talk.says("250 reset\r\n250 ok\r\n250 ok\r\n354 go\r\n");
    talk.exchange(STUFFED, "250 ok\r\n");
    assert_eq!(short(&talk.done()), "+250");
    // Behind a message there is nothing to reset.
    talk.begin(message(ONE));
    assert!(talk.hears().starts_with("MAIL FROM"));
}

/// A server that goes on to DATA though it refused everybody gets a lone dot (RFC 2920 section 3.1).
#[test]
fn data_for_nobody() {
    for last in ["554 no recipients\r\n", "250 thank you for nothing\r\n"] {
        let mut talk = Talk::ready(config(), PIPELINING);
        talk.offers(ONE, &["250 ok\r\n550 no\r\n354 go\r\n"]);
        assert_eq!(talk.hears(), ".\r\n");
        assert!(!matches!(
            talk.client.step(),
            crate::client::ClientStep::Done(_)
        ));
        talk.says(last);
        let outcome = talk.done();
        assert_eq!(short(&outcome), "-550");
        assert!(outcome.connection_usable);
    }
}

#[test]
fn mail_refused() {
    let mut talk = Talk::ready(config(), PIPELINING);
    talk.begin(message(TWO));
    talk.hears();
    // The replies behind it are about commands out of order, whatever they say.
    talk.says("451 4.3.0 later\r\n503 no\r\n250 odd\r\n354 very odd\r\n");
    talk.exchange(".\r\n", "503 bad sequence\r\n");
    let outcome = talk.done();
    assert_eq!(short(&outcome), "~451 ~451");
    assert!(outcome.sender_refused);

    let mut talk = Talk::ready(config(), PLAIN);
    let outcome = talk.settles(ONE, &["550 5.7.1 not you\r\n"], "-550");
    assert!(outcome.sender_refused);
    talk.begin(message(ONE));
    assert!(
        talk.hears().starts_with("MAIL"),
        "nothing is open, so nothing is reset"
    );
}

#[test]
fn data_or_message_refused() {
    let mut talk = Talk::ready(config(), PIPELINING);
    talk.settles(
        TWO,
        &["250 ok\r\n250 ok\r\n550 no\r\n451 4.3.0 not now\r\n"],
        "~451 -550",
    );
    talk.begin(message(ONE));
    assert!(talk.hears().starts_with("RSET\r\n"));
    talk.says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n");
    talk.hears();
    talk.says("552 5.3.4 too big\r\n");
    let outcome = talk.done();
    assert_eq!(short(&outcome), "-552");
    assert!(outcome.connection_usable);
}

#[test]
fn lmtp_replies_for_each() {
    let mut talk = Talk::ready(lmtp(), PIPELINING);
    talk.offers(
        &["a@b.example", "c@b.example", "d@b.example", "e@b.example"],
        &[
            "250 ok\r\n250 ok\r\n550 5.1.1 no\r\n250 ok\r\n250 ok\r\n354 go\r\n",
            "250 2.0.0 stored\r\n452 4.2.2 full\r\n",
        ],
    );
    assert!(matches!(
        talk.client.step(),
        crate::client::ClientStep::NeedInput
    ));
    talk.says("250 2.0.0 stored\r\n");
    assert_eq!(short(&talk.done()), "+250 -550 ~452 +250");
    talk.is_ready();
}

/// Those with a reply keep it when the connection breaks.
#[test]
fn lmtp_lost_between_replies() {
    let mut talk = Talk::ready(lmtp(), PIPELINING);
    talk.offers(
        TWO,
        &["250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n", "250 stored\r\n"],
    );
    talk.client.connection_lost();
    assert_eq!(short(&talk.done()), "+250 ~451");
}

#[test]
fn parameters_as_offered() {
    let full = || {
        let mut message = message(ONE);
        message.ret = Some(Ret::Headers);
        message.envid = Xtext::parse("QQ314159");
        message.recipients[0].notify = Some(Notify::On {
            success: true,
            failure: true,
            delay: false,
        });
        message.recipients[0].orcpt = Orcpt::parse("rfc822;A@b.example");
        message.body_type = BodyType::EightBitMime;
        message.smtputf8 = true;
        message
    };
    let mut talk = Talk::ready(config(), ALL);
    talk.begin(full());
    assert_eq!(
        talk.hears(),
        format!(
            "MAIL FROM:<s@a.example> SIZE={} BODY=8BITMIME SMTPUTF8 RET=HDRS ENVID=QQ314159\r\n\
             RCPT TO:<a@b.example> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;A@b.example\r\nDATA\r\n",
            BODY.len()
        )
    );
    talk.says("250 ok\r\n250 ok\r\n354 go\r\n");
    talk.hears();
    talk.says("250 ok\r\n");
    assert!(talk.done().dsn_passed_on);

    // Nothing needs the extensions after all, so it goes without them.
    let mut talk = Talk::ready(config(), PIPELINING);
    talk.begin(full());
    assert_eq!(
        talk.hears(),
        "MAIL FROM:<s@a.example>\r\nRCPT TO:<a@b.example>\r\nDATA\r\n"
    );
}

fn with_body(body: &'static [u8]) -> OutgoingMessage {
    OutgoingMessage {
        body: Bytes::from_static(body),
        ..message(ONE)
    }
}

/// Refused before a single command.
fn refused_locally(config: ClientConfig, hello: &str, message: OutgoingMessage) -> String {
    let mut talk = Talk::ready(config, hello);
    talk.begin(message);
    assert_eq!(talk.hears(), "");
    let outcome = talk.done();
    assert!(outcome.connection_usable);
    talk.is_ready();
    outcome.recipients[0].reply().to_string()
}

#[test]
fn size_is_honoured() {
    let mut talk = Talk::ready(config(), "250-mx\r\n250 SIZE 22\r\n");
    talk.begin(message(ONE));
    assert_eq!(talk.hears(), "MAIL FROM:<s@a.example> SIZE=22\r\n");
    let refused = refused_locally(config(), "250-mx\r\n250 SIZE 21\r\n", message(ONE));
    assert!(refused.starts_with("552 5.3.4"), "{refused}");
    for unlimited in ["250-mx\r\n250 SIZE 0\r\n", "250-mx\r\n250 SIZE\r\n"] {
        let mut talk = Talk::ready(config(), unlimited);
        talk.begin(message(ONE));
        assert!(talk.hears().ends_with(" SIZE=22\r\n"));
    }
}

#[test]
fn eight_bit_needs_the_extension() {
    let body = "Subject: x\r\n\r\nh\u{e9}\r\n".as_bytes();
    let mut talk = Talk::ready(config(), "250-mx\r\n250 8BITMIME\r\n");
    talk.begin(with_body(body));
    assert_eq!(talk.hears(), "MAIL FROM:<s@a.example> BODY=8BITMIME\r\n");
    let refused = refused_locally(config(), PLAIN, with_body(body));
    assert!(refused.starts_with("554 5.6.3"), "{refused}");
    let mut talk = Talk::ready(
        ClientConfig {
            just_send_8bit: true,
            ..config()
        },
        PLAIN,
    );
    talk.begin(with_body(body));
    assert_eq!(talk.hears(), "MAIL FROM:<s@a.example>\r\n");
}

#[test]
fn binary_goes_by_bdat() {
    let binary = OutgoingMessage {
        body_type: BodyType::BinaryMime,
        ..with_body(b"\0\r\n.\n\r\r\n")
    };
    let mut talk = Talk::ready(config(), ALL);
    talk.begin(binary.clone());
    let heard = talk.hears();
    assert_eq!(
        heard,
        "MAIL FROM:<s@a.example> SIZE=8 BODY=BINARYMIME\r\nRCPT TO:<a@b.example>\r\n"
    );
    talk.says("250 ok\r\n250 ok\r\n");
    talk.exchange("BDAT 8 LAST\r\n\0\r\n.\n\r\r\n", "250 ok\r\n");
    assert_eq!(short(&talk.done()), "+250");

    // Nobody accepted: no chunk. A chunk refused: RSET (RFC 3030 section 4.2).
    talk.begin(binary.clone());
    talk.hears();
    talk.says("250 ok\r\n550 no\r\n");
    assert_eq!(short(&talk.done()), "-550");
    talk.begin(binary.clone());
    assert!(talk.hears().starts_with("RSET\r\n"));
    talk.says("250 ok\r\n250 ok\r\n250 ok\r\n");
    assert!(talk.hears().starts_with("BDAT 8 LAST\r\n"));
    talk.says("554 5.6.0 no\r\n");
    assert_eq!(short(&talk.done()), "-554");
    talk.begin(binary.clone());
    assert!(talk.hears().starts_with("RSET\r\n"));

    let refused = refused_locally(
        config(),
        "250-mx\r\n250-CHUNKING\r\n250 8BITMIME\r\n",
        binary,
    );
    assert!(refused.starts_with("554 5.6.3"), "{refused}");
}

pub(super) fn one_round() -> ClientConfig {
    ClientConfig {
        one_round_max: 100,
        ..config()
    }
}

#[test]
fn a_small_message_leaves_with_its_envelope() {
    let mut talk = Talk::ready(one_round(), ALL);
    let two = message(TWO);
    talk.begin(two.clone());
    let sent = format!(
        "MAIL FROM:<s@a.example> SIZE={size}\r\nRCPT TO:<a@b.example>\r\nRCPT TO:<c@b.example>\r\n\
         BDAT {size} LAST\r\n{BODY}",
        size = BODY.len()
    );
    talk.exchange(&sent, "250 ok\r\n250 ok\r\n550 no\r\n");
    talk.says("250 ok\r\n");
    assert_eq!(short(&talk.done()), "+250 -550");

    // Whatever is refused, the chunk has its reply, and what follows begins anew.
    talk.begin(two.clone());
    talk.exchange(&sent, "250 ok\r\n550 no\r\n451 no\r\n503 5.5.1 nobody\r\n");
    assert_eq!(short(&talk.done()), "-550 ~451");
    talk.begin(two.clone());
    talk.exchange(
        format!("RSET\r\n{sent}"),
        "250 ok\r\n452 4.3.1 full\r\n503 no\r\n503 no\r\n503 no\r\n",
    );
    assert_eq!(short(&talk.done()), "~452 ~452");
    talk.begin(two.clone());
    talk.exchange(&sent, "250 ok\r\n250 ok\r\n250 ok\r\n554 5.6.0 no\r\n");
    assert_eq!(short(&talk.done()), "-554 -554");
    talk.begin(two);
    talk.exchange(format!("RSET\r\n{sent}"), "421 bye\r\n");
    assert_eq!(short(&talk.done()), "~421 ~421");
}

/// A server that has closed meanwhile must not have the message already.
#[test]
fn where_the_server_was_silent_for_a_while_the_envelope_goes_first() {
    let mut talk = Talk::ready(one_round(), ALL);
    talk.wait(RECENT);
    talk.begin(message(ONE));
    assert!(talk.hears().contains("BDAT"));
    talk.says("250 ok\r\n250 ok\r\n250 ok\r\n");
    assert_eq!(short(&talk.done()), "+250");
    talk.wait(RECENT + Duration::from_millis(1));
    talk.begin(message(ONE));
    let envelope = talk.hears();
    assert!(
        envelope.ends_with("RCPT TO:<a@b.example>\r\nDATA\r\n"),
        "{envelope}"
    );
    talk.says("250 ok\r\n250 ok\r\n354 go on\r\n");
    talk.hears();
    talk.says("250 ok\r\n");
    assert_eq!(short(&talk.done()), "+250");
    // It has just replied.
    talk.begin(message(ONE));
    assert!(talk.hears().contains("BDAT"));
}

/// Recipients that were too many are not tried again with a message that was taken for nobody, nor do
/// they fail by what is said of its chunk.
#[test]
fn a_chunk_that_is_for_nobody_settles_nothing() {
    let mut talk = Talk::ready(one_round(), ALL);
    talk.settles(
        TWO,
        &["250 ok\r\n452 4.5.3 many\r\n452 many\r\n250 odd\r\n"],
        "~452 ~452",
    );

    let size = BODY.len();
    let envelope = format!(
        "MAIL FROM:<s@a.example> SIZE={size}\r\nRCPT TO:<a@b.example>\r\nBDAT {size} LAST\r\n"
    );
    let mut talk = Talk::ready(one_round(), ALL);
    talk.begin(message(ONE));
    talk.client.sent(envelope.len());
    talk.says("250 ok\r\n452 full\r\n503 no\r\n");
    assert_eq!(short(&talk.done()), "~452");
    let early = Misbehaviour::TooEarly(Stage::Final);
    assert_eq!(talk.closed(), CloseReason::Misbehaved(early));
}

#[test]
fn what_is_long_or_would_be_changed_waits_for_its_recipients() {
    let long = format!("Subject: x\r\n\r\n{}\r\n", "x".repeat(100));
    for (offered, body) in [
        (ALL, long.as_str()),
        (ALL, "Subject: x\r\n\r\nhello"),
        (PIPELINING, BODY),
        ("250-mx\r\n250 CHUNKING\r\n", BODY),
    ] {
        let mut talk = Talk::ready(one_round(), offered);
        talk.begin(with_body(body.to_owned().leak().as_bytes()));
        assert!(!talk.hears().contains("BDAT"), "{offered}");
    }
    let lmtp = ClientConfig {
        lmtp: true,
        ..one_round()
    };
    let mut talk = Talk::ready(lmtp, ALL);
    talk.begin(message(ONE));
    assert!(talk.hears().ends_with("DATA\r\n"));
}

/// SMTP smuggling (CVE-2023-51764 and its kin), outbound: what a lax server could take for the end
/// of the message never leaves behind DATA.
#[test]
fn bare_line_ends_never_leave_behind_data() {
    for body in [
        &b"a\r\n\r\nb\n.\nMAIL FROM:<x@y>\r\n"[..],
        b"a\r\n\r\nb\n.\r\nMAIL\r\n",
        b"a\r\n\r\nb\r.\rMAIL\r\n",
        b"a\r\n\r\nb\r\n.\n",
        b"a\r\n\r\nb\r\n.\r",
        b"a\r\n\0\r\n",
    ] {
        let refused = refused_locally(config(), PIPELINING, with_body(body));
        assert!(refused.starts_with("554 5.6.3"), "{refused}");
        let mut talk = Talk::ready(config(), ALL);
        talk.begin(with_body(body));
        assert!(talk.hears().contains("BODY=BINARYMIME"));
    }
}

#[test]
fn declared_binary_that_is_text_can_go_by_data() {
    let mut talk = Talk::ready(config(), PLAIN);
    talk.begin(OutgoingMessage {
        body_type: BodyType::BinaryMime,
        ..with_body(b"a\r\n\r\nb")
    });
    talk.exchange("MAIL FROM:<s@a.example>\r\n", "250 ok\r\n");
    talk.hears();
    talk.says("250 ok\r\n");
    talk.hears();
    talk.says("354 ok\r\n");
    assert_eq!(talk.hears(), "a\r\n\r\nb\r\n.\r\n");
}

#[test]
fn utf8_addresses_need_the_extension() {
    let mut talk = Talk::ready(config(), ALL);
    let mut utf8 = message(&["d\u{f8}d@b.example", "c@b.example"]);
    utf8.recipients[1].orcpt = Orcpt::parse("utf-8;d\u{f8}d@b.example");
    talk.begin(utf8.clone());
    let heard = talk.hears();
    assert!(
        heard.starts_with("MAIL FROM:<s@a.example> SIZE=22 SMTPUTF8\r\n"),
        "{heard}"
    );
    assert!(heard.contains("<d\u{f8}d@b.example>") && heard.contains("ORCPT=utf-8;d\u{f8}d@"));

    // Only those that need it fail; an original recipient is written in ASCII.
    let mut talk = Talk::ready(config(), "250-mx\r\n250-DSN\r\n250 PIPELINING\r\n");
    talk.begin(utf8);
    let heard = talk.hears();
    assert!(!heard.contains('\u{f8}'));
    assert!(
        heard.contains("RCPT TO:<c@b.example> ORCPT=utf-8;d\\x{F8}d@b.example\r\n"),
        "{heard}"
    );
    talk.says("250 ok\r\n250 ok\r\n354 go\r\n");
    talk.hears();
    talk.says("250 ok\r\n");
    let outcome = talk.done();
    assert_eq!(short(&outcome), "-553 +250");
    assert!(
        outcome.recipients[0]
            .reply()
            .to_string()
            .starts_with("553 5.6.7")
    );

    let mut sender = message(&["c@b.example"]);
    sender.reverse_path = ReversePath::parse("<s\u{f8}r@a.example>").unwrap();
    assert!(refused_locally(config(), PLAIN, sender).starts_with("550 5.6.7"));
    let mut header = with_body("Subject: \u{f8}\r\n\r\n\r\n".as_bytes());
    header.smtputf8 = true;
    let lax = ClientConfig {
        just_send_8bit: true,
        ..config()
    };
    assert!(refused_locally(lax, PLAIN, header).starts_with("550 5.6.9"));
}

#[test]
fn null_sender_and_no_recipients() {
    let mut talk = Talk::ready(config(), PLAIN);
    talk.begin(OutgoingMessage {
        reverse_path: ReversePath::Null,
        ..message(ONE)
    });
    assert_eq!(talk.hears(), "MAIL FROM:<>\r\n");
    let mut talk = Talk::ready(config(), PLAIN);
    talk.begin(message(&[]));
    assert_eq!(short(&talk.done()), "");
    talk.is_ready();
}

/// RFC 9422: rounds of at most RCPTMAX recipients.
#[test]
fn recipient_limit_makes_rounds() {
    let mut talk = Talk::ready(
        config(),
        "250-mx\r\n250-PIPELINING\r\n250 LIMITS RCPTMAX=2\r\n",
    );
    talk.begin(message(&["a@b.example", "b@b.example", "c@b.example"]));
    assert_eq!(talk.hears().matches("RCPT").count(), 2);
    talk.says("250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n");
    talk.hears();
    talk.says("250 one\r\n");
    assert!(talk.hears().contains("RCPT TO:<c@b.example>"));
    talk.says("250 ok\r\n250 ok\r\n354 go\r\n");
    talk.exchange(STUFFED, "451 two\r\n");
    assert_eq!(short(&talk.done()), "+250 +250 ~451");
}

/// RFC 5321 section 4.5.3.1.10: those beyond the server's limit follow in another transaction.
#[test]
fn too_many_recipients_make_rounds() {
    for reply in ["452 4.5.3 too many", "552 too many"] {
        let mut talk = Talk::ready(config(), PIPELINING);
        talk.offers(
            &["a@b.example", "b@b.example"],
            &[
                &format!("250 ok\r\n250 ok\r\n{reply}\r\n354 go\r\n"),
                "250 one\r\n",
            ],
        );
        assert_eq!(
            talk.hears(),
            "MAIL FROM:<s@a.example>\r\nRCPT TO:<b@b.example>\r\nDATA\r\n"
        );
        // Refused alone as well: then it is not a matter of number.
        talk.says(&format!("250 ok\r\n{reply}\r\n554 nobody\r\n"));
        assert_eq!(short(&talk.done()), format!("+250 ~{}", &reply[..3]));
    }
    let mut talk = Talk::ready(config(), PIPELINING);
    talk.settles(
        ONE,
        &["250 ok\r\n552 5.2.2 mailbox full\r\n554 nobody\r\n"],
        "-552",
    );
}

/// RFC 9422: MAILMAX counts, then the client leaves by itself.
#[test]
fn mail_limit_ends_the_connection() {
    let mut talk = Talk::ready(
        config(),
        "250-mx\r\n250-PIPELINING\r\n250 LIMITS MAILMAX=2\r\n",
    );
    for usable in [true, false] {
        let outcome = talk.settles(
            ONE,
            &["250 ok\r\n250 ok\r\n354 go\r\n", "250 queued\r\n"],
            "+250",
        );
        assert_eq!(outcome.connection_usable, usable);
    }
    talk.exchange("QUIT\r\n", "221 bye\r\n");
    assert_eq!(talk.closed(), CloseReason::Quit);
}

#[test]
fn mail_limit_within_rounds() {
    let hello = "250-mx\r\n250-PIPELINING\r\n250 LIMITS MAILMAX=1 RCPTMAX=1\r\n";
    let mut talk = Talk::ready(config(), hello);
    talk.settles(
        &["a@b.example", "b@b.example"],
        &["250 ok\r\n250 ok\r\n354 go\r\n", "250 queued\r\n"],
        "+250 ~451",
    );
}

/// A thousand recipients are made in pieces, and their replies may come meanwhile.
#[test]
fn many_recipients_are_made_in_pieces() {
    let names: Vec<String> = (0..2000).map(|n| format!("user{n}@b.example")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut talk = Talk::ready(config(), PIPELINING);
    talk.begin(message(&names));
    let mut replies = 0;
    let mut heard = String::new();
    while !heard.ends_with("DATA\r\n") {
        let output = talk.client.output();
        assert!(output.len() < 32 * 1024);
        let octets = output.len().min(1000);
        heard.push_str(std::str::from_utf8(&output[..octets]).unwrap());
        talk.client.sent(octets);
        while replies < heard.matches("\r\n").count() - usize::from(heard.ends_with("DATA\r\n")) {
            talk.says("250 ok\r\n");
            replies += 1;
        }
    }
    assert_eq!(heard.matches("RCPT").count(), 2000);
    talk.says("354 go\r\n");
    talk.hears();
    talk.says("250 ok\r\n");
    assert!(
        talk.done()
            .recipients
            .iter()
            .all(|outcome| outcome.reply().code == 250)
    );
}

#[test]
fn begin_out_of_turn_is_deferred() {
    let mut talk = Talk::new(config());
    talk.begin(message(ONE));
    assert_eq!(short(&talk.done()), "~451");
    talk.says("220 mx\r\n");
    assert_eq!(talk.hears(), "EHLO me.example\r\n");
}
