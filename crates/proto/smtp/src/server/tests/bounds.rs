//! Every bound has its reply, and memory stays inside it.

use super::{Host, codes, config, peer};
use crate::server::{Role, Server, ServerConfig, Step};
use std::time::Duration;
use vere_units::ByteSize;

const EHLO: &str = "EHLO x\r\n";
const MAIL: &str = "MAIL FROM:<a@b>\r\n";
const RCPT: &str = "RCPT TO:<c@d>\r\n";

fn with(change: impl FnOnce(&mut ServerConfig)) -> Host {
    let mut config = config(Role::Mx);
    change(&mut config);
    let mut host = Host::new(config, peer());
    host.say(EHLO);
    host
}

#[test]
fn more_than_a_thousand_recipients() {
    let mut host = with(|_| {});
    host.say(MAIL);
    let reply = host.say(RCPT.repeat(1200));
    let codes = codes(&reply);
    assert_eq!(codes.len(), 1200);
    assert!(codes[..1000].iter().all(|code| *code == "250 2.1.5"));
    assert!(codes[1000..].iter().all(|code| *code == "452 4.5.3"));
    host.say("DATA\r\nx\r\n.\r\n");
    assert_eq!(host.messages[0].recipients.len(), 1000);
    assert!(!host.closed);
}

#[test]
fn the_next_transaction_takes_the_recipients_left_over() {
    let mut host = with(|config| config.limits.recipients_max = 2);
    let transaction = format!("{MAIL}{}DATA\r\n.\r\n", RCPT.repeat(3));
    for _ in 0..3 {
        let reply = host.say(&transaction);
        assert_eq!(codes(&reply)[3..], ["452 4.5.3", "354", "250 2.0.0"]);
    }
    host.say(MAIL);
    let reply = host.say(RCPT.repeat(9));
    assert_eq!(
        codes(&reply)[2..],
        ["452 4.5.3", "452 4.5.3", "452 4.5.3", "421 4.7.0"]
    );
}

#[test]
fn counts_end_the_session() {
    let mut errors = with(|config| config.limits.errors_max = 3);
    errors.gets(
        "X\r\n".repeat(9),
        &[
            "500 5.5.1",
            "500 5.5.1",
            "500 5.5.1",
            "500 5.5.1",
            "421 4.7.0",
        ],
    );
    let mut idle = with(|config| config.limits.idle_commands_max = 2);
    assert_eq!(
        codes(&idle.say("NOOP\r\nRSET\r\nHELP\r\nNOOP\r\n")).last(),
        Some(&"421 4.7.0")
    );
    let mut refused = with(|config| config.limits.refusals_max = 1);
    refused.say(MAIL);
    refused.gets(
        "RCPT TO:<nobody@d>\r\n".repeat(4),
        &["550 5.1.1", "550 5.1.1", "421 4.7.0"],
    );
    let mut transactions = with(|config| config.limits.transactions_max = 1);
    transactions.gets(
        format!("{MAIL}RSET\r\n{MAIL}"),
        &["250 2.1.0", "250 2.0.0", "421 4.7.0"],
    );
    assert!(errors.closed && idle.closed && refused.closed && transactions.closed);
}

#[test]
fn a_message_sets_the_idle_count_back() {
    let mut host = with(|config| config.limits.idle_commands_max = 2);
    for _ in 0..5 {
        host.say("NOOP\r\nNOOP\r\n");
        host.say(format!("{MAIL}{RCPT}DATA\r\n.\r\n"));
    }
    assert_eq!(host.messages.len(), 5);
}

#[test]
fn lines_have_their_own_lengths() {
    let line = |verb: &str, len: usize| format!("{verb} {}\r\n", "x".repeat(len - verb.len() - 3));
    for (verb, max) in [
        ("NOOP", 512),
        ("HELP", 512),
        ("MAIL", 1185),
        ("RCPT", 1040),
        ("AUTH", 12_290),
    ] {
        for piece in [1, 3, 100, 20_000] {
            let mut host = with(|_| {});
            let text = line(verb, max) + &line(verb, max + 1) + "NOOP\r\n";
            text.as_bytes()
                .chunks(piece)
                .for_each(|octets| host.give(octets));
            let transcript = String::from_utf8(host.sent).unwrap();
            let codes = codes(&transcript);
            assert_ne!(codes[1], "500 5.5.2", "{verb} in pieces of {piece}");
            assert_eq!(
                codes[2..],
                ["500 5.5.2", "250 2.0.0"],
                "{verb} in pieces of {piece}"
            );
        }
    }
}

#[test]
fn endless_lines_are_not_kept() {
    let mut host = with(|_| {});
    for _ in 0..100 {
        host.give(&[b'x'; 1000]);
    }
    assert!(host.memory_max < 2048, "{}", host.memory_max);
    host.gets("\r\nNOOP\r\n", &["500 5.5.2", "250 2.0.0"]);
}

#[test]
fn messages_are_bounded() {
    let text = |octets: usize| format!("{MAIL}{RCPT}DATA\r\n{}\r\n.\r\n", "x".repeat(octets - 2));
    let mut host = with(|config| {
        config.limits.message_size_max = ByteSize::new(1000);
        config.limits.refused_size_max = ByteSize::new(5000);
    });
    host.gets("MAIL FROM:<a@b> SIZE=1001\r\n", &["552 5.3.4"]);
    assert_eq!(codes(&host.say(text(1000))).last(), Some(&"250 2.0.0"));
    for piece in [1, 100, 10_000] {
        let from = host.sent.len();
        text(1001)
            .as_bytes()
            .chunks(piece)
            .for_each(|octets| host.give(octets));
        let transcript = String::from_utf8(host.sent[from..].to_vec()).unwrap();
        assert_eq!(
            codes(&transcript).last(),
            Some(&"552 5.3.4"),
            "pieces of {piece}"
        );
    }
    assert!(!host.closed && host.messages.len() == 1);
    host.say(format!("{MAIL}{RCPT}DATA\r\n"));
    for _ in 0..60 {
        host.give(&[b'x'; 100]);
    }
    assert!(!host.closed);
    host.gets("x".repeat(1000), &["552 5.3.4"]);
    assert!(host.closed && host.memory_max < 4096, "{}", host.memory_max);
}

/// A client that does not read is not read from.
#[test]
fn output_is_bounded() {
    let mut host = with(|config| config.limits.idle_commands_max = usize::MAX);
    let script = "HELP\r\n".repeat(10_000);
    let taken = host.server.input(script.as_bytes(), host.now);
    assert!(taken < script.len());
    assert!(host.server.output().len() < 16_384 + 512);
    assert!(matches!(host.server.step(), Step::Send));
    host.server.sent(100);
    host.sends_whole = false;
    assert_eq!(host.server.input(&script.as_bytes()[taken..], host.now), 6);
    host.give(&script.as_bytes()[taken + 6..]);
    assert!(host.server.memory() <= 512);
}

#[test]
fn idle_sessions_are_small() {
    let mut peer = peer();
    peer.name = Some("client.example".to_owned());
    peer.tls = Some(super::tls());
    let mut host = Host::new(config(Role::Mx), peer);
    host.say("EHLO client.example\r\nNOOP\r\n");
    let total = size_of::<Server>() + host.server.memory() + 200;
    assert!(total < 2048, "{total}");
    let mut busy = with(|_| {});
    busy.say(format!(
        "{MAIL}{RCPT}DATA\r\n{}\r\n.\r\n",
        "x".repeat(60_000)
    ));
    assert!(busy.server.memory() <= 512, "{}", busy.server.memory());
}

#[test]
fn time_runs_out_for_commands() {
    let mut host = with(|_| {});
    let start = host.now;
    assert_eq!(host.server.deadline(), start + Duration::from_secs(300));
    host.now = start + Duration::from_secs(200);
    host.say("NO");
    assert_eq!(
        host.server.deadline(),
        start + Duration::from_secs(300),
        "half a command is none"
    );
    host.say("OP\r\n");
    assert_eq!(host.server.deadline(), start + Duration::from_secs(500));
    host.server.timed_out();
    host.gets("", &["421 4.4.2"]);
    assert!(host.closed);
}

#[test]
fn time_runs_out_for_text() {
    let mut host = with(|_| {});
    let start = host.now;
    host.say(format!("{MAIL}{RCPT}DATA\r\n"));
    assert_eq!(host.server.deadline(), start + Duration::from_secs(600));
    host.now = start + Duration::from_secs(500);
    host.give(b"x");
    assert_eq!(
        host.server.deadline(),
        start + Duration::from_secs(600),
        "an octet does not help"
    );
    host.give(&lines(30 * 1024));
    assert_eq!(host.server.deadline(), start + Duration::from_secs(630));
    // From here on the rate of the last minute counts.
    host.give(&lines(1_000 * 1024));
    assert_eq!(host.server.deadline(), start + Duration::from_secs(560));
    host.now = start + Duration::from_secs(550);
    host.give(&lines(20 * 1024));
    let left = host.server.deadline().saturating_since(host.now);
    assert_eq!(left.as_secs(), 30, "10 s were left, and 20 s are earned");
    host.server.timed_out();
    host.gets("\r\n.\r\nNOOP\r\n", &["421 4.4.2"]);
    assert!(host.closed && host.messages.is_empty());
}

/// Text of this many octets or a few more, in lines.
fn lines(octets: usize) -> Vec<u8> {
    let line = [[b'x'; 78].as_slice(), b"\r\n"].concat();
    line.repeat(octets.div_ceil(line.len()))
}

/// What was sent bought a second for each 64 octets: 33 MB held a connection, and its memory, for six days.
#[test]
fn nothing_that_was_sent_buys_days() {
    let mut host = with(|_| {});
    let start = host.now;
    host.say(format!("{MAIL}{RCPT}DATA\r\n"));
    host.give(&lines(33 * 1024 * 1024));
    // Octets now and then, as often as it helps.
    for _ in 0..10 {
        host.now = host.now + Duration::from_secs(10);
        if host.now < host.server.deadline() {
            host.give(&lines(1024));
        }
    }
    let end = host.server.deadline();
    assert!(end < start + Duration::from_secs(70), "{end:?}");
    host.server.timed_out();
    host.gets("", &["421 4.4.2"]);
    assert!(host.closed && host.messages.is_empty());
}

#[test]
fn no_rate_buys_more_than_the_time_of_one_message() {
    let mut host = with(|_| {});
    let start = host.now;
    host.say(format!("{MAIL}{RCPT}DATA\r\n"));
    while host.now < host.server.deadline() {
        host.give(&lines(2 * 1024));
        host.now = host.now + Duration::from_secs(1);
        assert!(host.now <= start + Duration::from_secs(7_200));
    }
    assert_eq!(host.now, start + Duration::from_secs(7_200));
}

/// A NOOP every five minutes held the text of a chunk for eight hours.
#[test]
fn who_pauses_between_chunks_is_as_slow_as_within_one() {
    let mut host = with(|_| {});
    let start = host.now;
    host.say(format!("{MAIL}{RCPT}"));
    let text = lines(100 * 1024);
    host.say(format!("BDAT {}\r\n", text.len()));
    host.give(&text);
    host.now = host.now + Duration::from_secs(50);
    host.say("NOOP\r\n");
    assert_eq!(host.server.deadline(), start + Duration::from_secs(60));
    host.server.timed_out();
    host.gets("", &["421 4.4.2"]);
    assert!(host.server.message_memory() == 0);
}

#[test]
fn small_chunks_earn_no_more_time() {
    let mut host = with(|_| {});
    let start = host.now;
    host.say(format!("{MAIL}{RCPT}"));
    for minute in 0..9 {
        host.now = start + Duration::from_secs(60 * minute);
        host.gets("BDAT 1\r\nx", &["250 2.0.0"]);
    }
    host.say("BDAT 2\r\nx");
    assert_eq!(host.server.deadline(), start + Duration::from_secs(600));
}

#[test]
fn a_client_that_does_not_read_gets_no_farewell() {
    let mut host = with(|_| {});
    host.server.input(b"NOOP\r\n", host.now);
    host.server.timed_out();
    assert!(matches!(host.server.step(), Step::Close));
}

#[test]
fn shutdown_waits_for_the_message() {
    let mut idle = with(|_| {});
    idle.server.shut_down();
    idle.gets("NOOP\r\n", &["421 4.3.2"]);
    assert!(idle.closed);
    let mut busy = with(|_| {});
    busy.say(format!("{MAIL}{RCPT}DATA\r\nx"));
    busy.server.shut_down();
    busy.gets("\r\n.\r\nNOOP\r\n", &["250 2.0.0", "421 4.3.2"]);
    assert!(busy.closed && busy.messages.len() == 1);
    let mut chunk = with(|_| {});
    chunk.say(format!("{MAIL}{RCPT}BDAT 3\r\nx"));
    chunk.server.shut_down();
    chunk.gets("yzBDAT 1 LAST\r\nx", &["250 2.0.0", "421 4.3.2"]);
}

/// The host keeps what came elsewhere; what it has counts, and nothing that is over does.
#[test]
fn what_was_set_aside_belongs_to_one_message() {
    let mut host = with(|config| config.limits.message_size_max = ByteSize::new(2_400));
    host.say(format!("{MAIL}{RCPT}BDAT 800\r\n"));
    host.give(&lines(800));
    assert_eq!(host.server.set_aside(), lines(800));
    assert_eq!(
        (host.server.aside(), host.server.message_memory()),
        (800, 0)
    );
    host.say("RSET\r\n");
    assert_eq!((host.server.aside(), host.server.set_aside().len()), (0, 0));
    host.say(format!("{MAIL}{RCPT}DATA\r\n"));
    host.give(&lines(800));
    host.server.set_aside();
    host.give(&lines(800));
    assert_eq!(
        (host.server.aside(), host.server.message_memory()),
        (800, 800)
    );
    host.give(b".\r\n");
    host.say("");
    let message = host.messages.pop().expect("a message");
    assert_eq!((message.aside, message.body), (800, lines(800)));
    assert_eq!(host.server.aside(), 0);
    // All of it is bounded.
    host.say(format!("{MAIL}{RCPT}DATA\r\n"));
    for _ in 0..3 {
        host.give(&lines(800));
        host.server.set_aside();
    }
    assert_eq!(host.server.aside(), 2_400);
    host.give(b"x");
    assert_eq!(host.server.aside(), 0);
    host.gets("\r\n.\r\n", &["552 5.3.4"]);
}
