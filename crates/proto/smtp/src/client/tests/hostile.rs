//! Servers that break the protocol, close, or lie.

use super::{ONE, PIPELINING, PLAIN, STUFFED, TWO, Talk, config, lmtp, message, short};
use crate::client::{CloseReason, Misbehaviour, Stage};
use crate::reply::ReplyError;

/// Replies of a good pipelined transaction.
const REPLIES: [&str; 5] = [
    "250 sender\r\n",
    "250 ok\r\n",
    "250 ok\r\n",
    "354 go\r\n",
    "250 2.0.0 queued\r\n",
];

/// Talks up to and with this many of [`REPLIES`].
fn after(replies: usize) -> Talk {
    let mut talk = Talk::ready(config(), PIPELINING);
    talk.begin(message(TWO));
    talk.hears();
    for reply in REPLIES.iter().take(replies) {
        talk.says(reply);
        talk.hears();
    }
    talk
}

#[test]
fn multi_line_floods_are_bounded() {
    let mut talk = Talk::new(config());
    for _ in 0..200 {
        talk.says("220-more\r\n");
    }
    let flood = CloseReason::Misbehaved(Misbehaviour::Malformed(ReplyError::TooManyLines(128)));
    assert_eq!(talk.closed(), flood);
    talk.says("220 and more\r\n");
    assert_eq!(talk.closed(), flood);

    let mut talk = Talk::new(config());
    talk.says_octets(&[b'2'; 5000]);
    let long = CloseReason::Misbehaved(Misbehaviour::Malformed(ReplyError::LineTooLong(2048)));
    assert_eq!(talk.closed(), long);
}

#[test]
fn replies_too_early() {
    // Both in one segment: the second before EHLO has gone.
    let mut talk = Talk::new(config());
    talk.says("220 mx\r\n250-mx\r\n250 PIPELINING\r\n");
    assert_eq!(
        talk.closed(),
        CloseReason::Misbehaved(Misbehaviour::TooEarly(Stage::Hello))
    );

    // Half of the command has gone.
    let mut talk = Talk::new(config());
    talk.says("220 mx\r\n");
    talk.client.sent(5);
    talk.says(PLAIN);
    assert_eq!(
        talk.closed(),
        CloseReason::Misbehaved(Misbehaviour::TooEarly(Stage::Hello))
    );

    // A success before the message has gone is no success.
    let mut talk = Talk::ready(config(), PIPELINING);
    talk.settles(
        ONE,
        &["250 ok\r\n250 ok\r\n354 go\r\n250 queued\r\n"],
        "~451",
    );
    assert_eq!(
        talk.closed(),
        CloseReason::Misbehaved(Misbehaviour::TooEarly(Stage::Final))
    );

    // Neither is one before its last octet has.
    let mut talk = Talk::ready(config(), PIPELINING);
    talk.offers(ONE, &["250 ok\r\n250 ok\r\n354 go\r\n"]);
    talk.client.sent(STUFFED.len() - 1);
    talk.says("250 queued\r\n");
    assert_eq!(short(&talk.done()), "~451");
}

#[test]
fn refusal_in_the_middle_of_the_message() {
    for (reply, is) in [
        ("552 5.3.4 too big", "-552"),
        ("451 4.3.0 disk", "~451"),
        ("421 4.3.2 bye", "~421"),
    ] {
        let mut talk = Talk::ready(config(), PIPELINING);
        talk.offers(ONE, &["250 ok\r\n250 ok\r\n354 go\r\n"]);
        talk.client.sent(10);
        talk.says(&format!("{reply}\r\n"));
        let outcome = talk.done();
        assert_eq!(short(&outcome), is);
        assert!(!outcome.connection_usable);
        assert!(matches!(
            talk.closed(),
            CloseReason::Refused(_) | CloseReason::ServerClosing(_)
        ));
    }
    // LMTP: the refusal is one recipient's.
    let mut talk = Talk::ready(lmtp(), PIPELINING);
    talk.settles(
        TWO,
        &["250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n552 5.3.4 too big\r\n"],
        "-552 ~451",
    );
}

#[test]
fn closing_reply_anywhere() {
    for replies in 0..REPLIES.len() {
        let mut talk = after(replies);
        talk.says("421 4.3.2 shutting down\r\n");
        assert_eq!(short(&talk.done()), "~421 ~421", "{replies}");
        assert!(matches!(talk.closed(), CloseReason::ServerClosing(reply) if reply.code == 421));
    }
    let mut talk = after(REPLIES.len());
    assert_eq!(short(&talk.done()), "+250 +250");
    talk.says("421 4.4.2 idle too long\r\n");
    assert!(matches!(talk.closed(), CloseReason::ServerClosing(_)));
    // One recipient was refused for good before.
    let mut talk = after(1);
    talk.says("550 5.1.1 no\r\n421 bye\r\n");
    assert_eq!(short(&talk.done()), "-550 ~421");
    // In reply to QUIT it is as good as 221.
    let mut talk = Talk::ready(config(), PLAIN);
    talk.client.quit(talk.now);
    talk.hears();
    talk.says("421 bye\r\n");
    assert_eq!(talk.closed(), CloseReason::Quit);
}

/// Wherever the connection breaks, everybody gets an outcome, and only the last octet of the last
/// reply makes it a success.
#[test]
fn lost_at_any_octet() {
    let whole = REPLIES.concat();
    for cut in 0..=whole.len() {
        let mut talk = Talk::ready(config(), PIPELINING);
        talk.begin(message(TWO));
        for octet in whole.as_bytes().iter().take(cut) {
            talk.hears();
            talk.says_octets(&[*octet]);
        }
        talk.hears();
        talk.client.connection_lost();
        let expected = if cut == whole.len() {
            "+250 +250"
        } else {
            "~451 ~451"
        };
        assert_eq!(short(&talk.done()), expected, "{cut}");
        assert!(matches!(talk.closed(), CloseReason::Lost(_)));
    }
}

#[test]
fn unasked_replies() {
    for reply in ["250 ok\r\n", "500 what\r\n", "354 go\r\n"] {
        let mut talk = Talk::ready(config(), PLAIN);
        talk.says(reply);
        assert!(matches!(
            talk.closed(),
            CloseReason::Misbehaved(Misbehaviour::Unasked(_))
        ));
    }
    // One too many within a transaction shows at the latest when it is over.
    let mut talk = after(REPLIES.len());
    talk.says("250 and another\r\n");
    assert_eq!(short(&talk.done()), "+250 +250");
    assert!(matches!(
        talk.closed(),
        CloseReason::Misbehaved(Misbehaviour::Unasked(_))
    ));
}

#[test]
fn replies_of_the_wrong_kind() {
    for (replies, reply, stage) in [
        (0, "354 go\r\n", Stage::Mail),
        (1, "334 \r\n", Stage::Recipient),
        (3, "250 ok\r\n", Stage::Data),
        (4, "354 more\r\n", Stage::Final),
    ] {
        let mut talk = after(replies);
        talk.says(reply);
        assert_eq!(short(&talk.done()), "~451 ~451");
        let CloseReason::Misbehaved(Misbehaviour::WrongKind(at, _)) = talk.closed() else {
            panic!("{reply}");
        };
        assert_eq!(at, stage);
    }
    // LMTP: 354 though nobody was taken. How many replies would follow?
    let mut talk = Talk::ready(lmtp(), PIPELINING);
    talk.settles(ONE, &["250 ok\r\n550 no\r\n354 go\r\n"], "-550");
    assert!(matches!(talk.closed(), CloseReason::Misbehaved(_)));
}

#[test]
fn reset_refused() {
    let mut talk = Talk::ready(config(), PIPELINING);
    talk.offers(ONE, &["250 ok\r\n550 no\r\n554 nobody\r\n"]);
    talk.done();
    talk.offers(ONE, &["500 reset what\r\n"]);
    // Nobody's fault among the recipients.
    assert_eq!(short(&talk.done()), "~451");
    assert!(matches!(talk.closed(), CloseReason::Misbehaved(_)));
}

#[test]
fn broken_line_ends_and_codes() {
    for reply in [
        "250 ok\n",
        "250 ok\r",
        "25 ok\r\n",
        "2500 ok\r\n",
        "abc\r\n",
        "\r\n",
        "150 x\r\n",
        "250-a\r\n251 b\r\n",
    ] {
        let mut talk = after(0);
        talk.says(reply);
        talk.says("250 ok\r\n");
        assert_eq!(short(&talk.done()), "~451 ~451", "{reply:?}");
        assert!(matches!(
            talk.closed(),
            CloseReason::Misbehaved(Misbehaviour::Malformed(_))
        ));
    }
}

#[test]
fn lost_between_messages() {
    let mut talk = Talk::ready(config(), PLAIN);
    talk.client.connection_lost();
    assert_eq!(talk.closed(), CloseReason::Lost(Stage::Idle));
    talk.begin(message(ONE));
    assert_eq!(short(&talk.done()), "~451");
}

/// A kept connection that the server closes as we begin: the message may go by another at once.
#[test]
fn closed_as_the_message_begins() {
    for says in ["", "421 4.4.2 idle too long\r\n"] {
        let mut talk = after(0);
        talk.says(says);
        talk.client.connection_lost();
        let outcome = talk.done();
        assert!(outcome.untried && !outcome.connection_usable);
    }
    for replies in 1..REPLIES.len() {
        let mut talk = after(replies);
        talk.client.connection_lost();
        assert!(!talk.done().untried, "{replies}");
    }
    let mut talk = after(REPLIES.len());
    assert!(!talk.done().untried);
}
