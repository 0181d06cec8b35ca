//! What each command does in each state, and that the pieces in which octets arrive do not matter.

use super::{Host, codes, config, peer, tls, with_auth};
use crate::server::{Role, Step};

const EHLO: &str = "EHLO client.example\r\n";
const MAIL: &str = "MAIL FROM:<a@b.example>\r\n";
const RCPT: &str = "RCPT TO:<c@d.example>\r\n";

/// A host in one of the states of the module's table.
fn in_state(state: &str) -> Host {
    let mut peer = peer();
    peer.tls_available = true;
    peer.may_xclient = true;
    peer.may_auth_in_clear = true;
    let mut host = Host::new(with_auth(config(Role::Mx)), peer);
    let lead = match state {
        "connected" => String::new(),
        "greeted" => EHLO.to_owned(),
        "helo" => "HELO client.example\r\n".to_owned(),
        "mail" => format!("{EHLO}{MAIL}"),
        "rcpt" => format!("{EHLO}{MAIL}{RCPT}"),
        "chunks" => format!("{EHLO}{MAIL}{RCPT}BDAT 3\r\nabc"),
        other => panic!("{other}"),
    };
    host.say(lead);
    host
}

const STATES: [&str; 6] = ["connected", "greeted", "helo", "mail", "rcpt", "chunks"];

/// The reply to a command out of order.
const BAD: &str = "503 5.5.1";

/// Rows: a command and the beginning of its reply in each of [`STATES`].
const TABLE: [(&str, [&str; 6]); 21] = [
    ("EHLO x", ["250", "250", "250", "250", "250", "250"]),
    ("HELO x", ["250", "250", "250", "250", "250", "250"]),
    ("EHLO", ["501", "501", "501", "501", "501", "501"]),
    (
        "MAIL FROM:<a@b>",
        [BAD, "250 2.1.0", "250 2.1.0", BAD, BAD, BAD],
    ),
    (
        "MAIL FROM:<a@b> SIZE=1",
        [BAD, "250 2.1.0", "555 5.5.4", BAD, BAD, BAD],
    ),
    (
        "RCPT TO:<c@d>",
        [BAD, BAD, BAD, "250 2.1.5", "250 2.1.5", BAD],
    ),
    (
        "RCPT TO:<nobody@d>",
        [BAD, BAD, BAD, "550 5.1.1", "550 5.1.1", BAD],
    ),
    ("DATA", [BAD, BAD, BAD, "554 5.5.1", "354", BAD]),
    (
        "BDAT 0",
        [BAD, BAD, BAD, "554 5.5.1", "250 2.0.0", "250 2.0.0"],
    ),
    (
        "BDAT 0 LAST",
        [BAD, BAD, BAD, "554 5.5.1", "250 2.0.0", "250 2.0.0"],
    ),
    ("RSET", ["250 2.0.0"; 6]),
    ("NOOP", ["250 2.0.0"; 6]),
    ("VRFY c", ["252 2.5.0"; 6]),
    ("EXPN c", ["502 5.5.1"; 6]),
    ("HELP", ["214 2.0.0"; 6]),
    ("QUIT", ["221 2.0.0"; 6]),
    (
        "STARTTLS",
        [BAD, "220 2.0.0", BAD, "220 2.0.0", "220 2.0.0", "220 2.0.0"],
    ),
    ("AUTH PLAIN", [BAD, "334", BAD, BAD, BAD, BAD]),
    (
        "XCLIENT ADDR=192.0.2.9",
        ["220", "220", "220", BAD, BAD, BAD],
    ),
    ("ETRN d", ["502 5.5.1"; 6]),
    ("XYZZY", ["500 5.5.1"; 6]),
];

#[test]
fn every_command_in_every_state() {
    for (command, replies) in TABLE {
        for (state, want) in STATES.iter().zip(replies) {
            let mut host = in_state(state);
            let reply = host.say(format!("{command}\r\n"));
            assert_eq!(codes(&reply), [want], "{command} when {state}: {reply}");
        }
    }
}

#[test]
fn a_message_goes_through() {
    let mut host = Host::before_greeting(config(Role::Mx), peer());
    assert_eq!(host.say(""), "220 mx.example.org ESMTP Veredarius\r\n");
    assert_eq!(
        host.say(EHLO),
        "250-mx.example.org\r\n250-PIPELINING\r\n250-SIZE 52428800\r\n250-8BITMIME\r\n\
         250-CHUNKING\r\n250-BINARYMIME\r\n250-SMTPUTF8\r\n250-DSN\r\n250-MT-PRIORITY\r\n\
         250-LIMITS MAILMAX=10000 RCPTMAX=1000\r\n250 ENHANCEDSTATUSCODES\r\n"
    );
    assert_eq!(host.say(MAIL), "250 2.1.0 sender ok\r\n");
    assert_eq!(host.say(RCPT), "250 2.1.5 recipient ok\r\n");
    assert_eq!(host.say("DATA\r\n"), "354 end data with <CRLF>.<CRLF>\r\n");
    assert_eq!(
        host.say("Subject: x\r\n\r\n..dot\r\n.\r\n"),
        "250 2.0.0 queued as ID1\r\n"
    );
    assert!(!host.server.is_closing());
    assert_eq!(host.say("QUIT\r\n"), "221 2.0.0 closing connection\r\n");
    assert!(host.server.is_closing());
    assert!(host.closed);
    let message = &host.messages[0];
    assert_eq!(message.body, b"Subject: x\r\n\r\n.dot\r\n");
    assert_eq!(message.reverse_path.reverse_path.as_str(), "a@b.example");
    assert_eq!(message.recipients[0].forward_path.as_str(), "c@d.example");
    assert_eq!(message.session.protocol.as_str(), "ESMTP");
    assert_eq!(
        message.session.helo.as_ref().unwrap().to_string(),
        "client.example"
    );
}

#[test]
fn what_is_offered_follows_configuration_and_connection() {
    let mut config = with_auth(config(Role::Submission));
    config.extensions.chunking = false;
    config.extensions.smtputf8 = false;
    config.extensions.dsn = false;
    let mut clear = peer();
    clear.tls_available = true;
    let reply = Host::new(config.clone(), clear.clone()).say(EHLO);
    assert!(reply.contains("250-STARTTLS\r\n"));
    for absent in [
        "AUTH",
        "CHUNKING",
        "BINARYMIME",
        "SMTPUTF8",
        "DSN",
        "XCLIENT",
    ] {
        assert!(!reply.contains(absent), "{absent}");
    }
    let mut encrypted = clear;
    encrypted.tls = Some(tls());
    encrypted.may_xclient = true;
    let reply = Host::new(config, encrypted).say(EHLO);
    assert!(reply.contains("250-AUTH SCRAM-SHA-256 PLAIN LOGIN\r\n"));
    assert!(reply.contains("250-XCLIENT NAME ADDR PORT PROTO HELO LOGIN DESTADDR DESTPORT\r\n"));
    assert!(!reply.contains("STARTTLS"));
}

#[test]
fn extensions_that_are_off_are_not_understood() {
    let mut config = config(Role::Mx);
    config.extensions.chunking = false;
    config.extensions.smtputf8 = false;
    config.extensions.dsn = false;
    let mut host = Host::new(config, peer());
    host.say(EHLO);
    for parameter in ["BODY=BINARYMIME", "SMTPUTF8", "RET=HDRS", "ENVID=x"] {
        let reply = host.say(format!("MAIL FROM:<a@b> {parameter}\r\n"));
        assert_eq!(codes(&reply), ["555 5.5.4"], "{parameter}");
    }
    host.say(MAIL);
    host.gets("RCPT TO:<c@d> NOTIFY=NEVER\r\n", &["555 5.5.4"]);
    host.gets(RCPT, &["250 2.1.5"]);
    host.gets("BDAT 6 LAST\r\nQUIT\r\n", &["502 5.5.1"]);
}

/// Every extension in one dialogue, with faults, ends with the same replies and messages whatever the
/// pieces.
#[test]
fn pieces_do_not_matter() {
    let script: &[u8] = b"NOOP\r\nEHLO client.example\r\nMAIL FROM:<a@b> SIZE=100 BODY=8BITMIME\r\n\
        RCPT TO:<c@d> NOTIFY=NEVER\r\nRCPT TO:<nobody@d>\r\nDATA\r\n\
        ..\r\n.x\r\n\r\n...\r\nabc.\r\n.\r\n\
        MAIL FROM:<>\r\nRCPT TO:<c@d>\r\nDATA\r\nbare\nlf\r\n.\n.\r\r\n.\r\n\
        MAIL FROM:<a@b> SMTPUTF8\r\nRCPT TO:<\xc3\xa9@d>\r\nBDAT 10\r\nQUIT\r\n.\r\n\rBDAT 4 LAST\r\nx\r\n.\
        MAIL FROM:<a@b> BODY=BINARYMIME\r\nRCPT TO:<c@d>\r\nBDAT 5 LAST\r\n\0\r\n.\n\
        BDAT 6 LAST\r\nRSET\r\nNO\0OP\r\nNO\rOP\r\nMAIL FROM:<later@b>\r\nQUIT\r\nignored";
    let mut whole = Host::mx();
    whole.give(script);
    assert!(whole.closed);
    let transcript = String::from_utf8(whole.sent.clone()).unwrap();
    assert_eq!(
        codes(&transcript),
        [
            "250 2.0.0",
            "250",
            "250 2.1.0",
            "250 2.1.5",
            "550 5.1.1",
            "354",
            "250 2.0.0",
            "250 2.1.0",
            "250 2.1.5",
            "354",
            "554 5.5.2",
            "250 2.1.0",
            "250 2.1.5",
            "250 2.0.0",
            "554 5.5.2",
            "250 2.1.0",
            "250 2.1.5",
            "250 2.0.0",
            "503 5.5.1",
            "500 5.5.2",
            "500 5.5.2",
            "451 4.7.1",
            "221 2.0.0",
        ]
    );
    assert_eq!(whole.messages[0].body, b".\r\nx\r\n\r\n..\r\nabc.\r\n");
    assert_eq!(whole.messages[1].body, b"\0\r\n.\n");
    let check = |host: &Host, what: &str| {
        assert_eq!(host.sent, whole.sent, "{what}");
        assert_eq!(host.messages, whole.messages, "{what}");
        assert_eq!(host.questions, whole.questions, "{what}");
    };
    for split in 0..=script.len() {
        let mut host = Host::mx();
        host.give(&script[..split]);
        host.give(&script[split..]);
        check(&host, &format!("split at {split}"));
    }
    for size in 1..20 {
        let mut host = Host::mx();
        script.chunks(size).for_each(|piece| host.give(piece));
        check(&host, &format!("pieces of {size}"));
    }
}

#[test]
fn replies_to_pipelined_commands_leave_together() {
    let mut host = Host::mx();
    host.say(EHLO);
    host.sends = 0;
    host.gets(
        format!("{MAIL}{RCPT}{RCPT}DATA\r\n"),
        &["250 2.1.0", "250 2.1.5", "250 2.1.5", "354"],
    );
    assert_eq!(host.sends, 1);
    host.gets(
        format!("x\r\n.\r\n{MAIL}{RCPT}DATA\r\n"),
        &["250 2.0.0", "250 2.1.0", "250 2.1.5", "354"],
    );
    assert_eq!(host.sends, 2);
}

#[test]
fn nothing_goes_on_while_a_question_is_open() {
    let mut host = Host::mx();
    host.say(EHLO);
    let script = format!("{MAIL}{RCPT}");
    assert_eq!(host.server.input(script.as_bytes(), host.now), MAIL.len());
    assert!(matches!(host.server.step(), Step::Ask(_)));
    assert!(matches!(host.server.step(), Step::NeedAnswer));
    assert_eq!(host.server.input(RCPT.as_bytes(), host.now), 0);
    assert_eq!(host.server.deadline(), vere_units::Timestamp::MAX);
}

#[test]
fn refusals_of_the_host_reach_the_client() {
    let mut host = Host::mx();
    host.say(EHLO);
    host.gets("MAIL FROM:<nobody@x>\r\n", &["550 5.1.1"]);
    host.gets("MAIL FROM:<later@x>\r\n", &["451 4.7.1"]);
    let reply = host.say(format!("{MAIL}{RCPT}DATA\r\nSubject: full\r\n.\r\n"));
    assert_eq!(codes(&reply).last(), Some(&"452 4.3.1"));
    host.gets(
        format!("{MAIL}RCPT TO:<gone@x>\r\nNOOP\r\n"),
        &["250 2.1.0", "421 4.3.2"],
    );
    assert!(host.closed);
}

#[test]
fn only_authenticated_clients_are_believed_about_auth() {
    let mut host = Host::mx();
    host.say(EHLO);
    host.say("MAIL FROM:<a@b> AUTH=x@y\r\n");
    assert!(
        host.server
            .mail_from()
            .unwrap()
            .auth
            .as_ref()
            .unwrap()
            .is_null()
    );
}

#[test]
fn addresses_in_utf_8_need_smtputf8() {
    let mut host = Host::mx();
    host.say(EHLO);
    host.gets("MAIL FROM:<é@b>\r\n", &["553 5.6.7"]);
    host.say(MAIL);
    host.gets("RCPT TO:<c@é>\r\n", &["553 5.6.7"]);
    host.gets("RCPT TO:<c@d> ORCPT=utf-8;é@d\r\n", &["553 5.6.7"]);
    host.say("RSET\r\nMAIL FROM:<é@b> SMTPUTF8\r\n");
    host.gets("RCPT TO:<c@é> ORCPT=utf-8;é@d\r\n", &["250 2.1.5"]);
    host.say("DATA\r\n.\r\n");
    assert_eq!(host.messages[0].session.protocol.as_str(), "UTF8SMTP");
    assert_eq!(host.messages[0].body, b"");
}
