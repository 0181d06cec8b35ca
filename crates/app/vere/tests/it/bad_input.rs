//! Hostile octets against the running daemon: every attack gets a precise answer, memory and time remain small, and
//! further clients are served meanwhile.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::harness::{
    ATTACK_CPU_MAX, GREETING_MAX, Options, PATIENCE, Session, Sink, System, assert_has,
    assert_starts, cpu_time, is_full, private_memory, wait_until,
};

/// Private memory that an attack may add.
const GROWTH_MAX: u64 = 64 << 20;

/// Runs an attack; meanwhile and afterwards others are greeted within [`GREETING_MAX`], and the gateway's
/// memory stays small. Gives the CPU time that the gateway spent.
fn withstand(system: &System, attack: impl FnOnce()) -> Duration {
    let gateway = system.role_pids("gateway")[0];
    let before = private_memory(gateway);
    let (spent, peak) = (cpu_time(gateway), AtomicU64::new(0));
    let over = AtomicBool::new(false);
    let watch = || {
        let mut slowest = Duration::ZERO;
        loop {
            let is_last = over.load(Ordering::Acquire);
            peak.fetch_max(private_memory(gateway), Ordering::AcqRel);
            slowest = slowest.max(system.time_greeting(gateway).1);
            if is_last {
                return slowest;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let slowest = std::thread::scope(|scope| {
        let watcher = scope.spawn(watch);
        // A failed attack must not leave the watcher running.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attack));
        over.store(true, Ordering::Release);
        let slowest = watcher.join().expect("the watcher");
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        slowest
    });
    assert_eq!(system.role_pids("gateway"), [gateway], "the gateway lives");
    let growth = peak.load(Ordering::Acquire).saturating_sub(before);
    assert!(growth <= GROWTH_MAX, "memory grew by {growth} octets");
    assert!(slowest < GREETING_MAX, "a greeting took {slowest:?}");
    cpu_time(gateway).saturating_sub(spent)
}

/// Sends `total` octets of `piece` again and again; false when the server has closed.
fn flood(session: &mut Session, piece: &[u8], total: usize) -> bool {
    let mut sent = 0;
    while sent < total {
        if session.try_send(piece).is_err() {
            return false;
        }
        sent += piece.len();
    }
    true
}

#[test]
fn lines_that_cannot_be_commands_are_refused_by_their_fault() {
    let system = System::start(&Options::default().set("limits.errors_max", "100"));
    let mut session = Session::greeted(system.smtp);
    let cases: [(&[u8], &str); 9] = [
        (b"NO\rOP\r\n", "500 5.5.2"),
        (b"NO\0OP\r\n", "500 5.5.2"),
        (b"\r\n", "500 5.5.1"),
        (b"\xff\xfe\r\n", "500 5.5."),
        (b"WIBBLE\r\n", "500 5.5.1"),
        (b"MAIL FROM:a@example.net\r\n", "501 5.1.7"),
        (b"MAIL FROM:<a@example.net> WIBBLE=1\r\n", "555 5.5.4"),
        (b"MAIL FROM:<a@example.net> SIZE=x\r\n", "501 5.5.4"),
        (
            b"MAIL FROM:<a@example.net> SIZE=99999999999999999999\r\n",
            "5",
        ),
    ];
    for (octets, expected) in cases {
        session.send(octets);
        let reply = session.reply();
        let text = String::from_utf8_lossy(octets);
        assert!(
            reply.starts_with(expected),
            "{text:?}: {expected} expected, got {reply}"
        );
        // Each text is a single line, whatever its octets.
        session.command("NOOP", "250 2.0.0");
    }
    // No command runs behind a bare LF, which does not end a line for further servers.
    session.send(b"NOOP\nVRFY alice\r\n");
    session.expect("554 5.5.2");
    assert_eq!(session.rest(), "");
}

#[test]
fn other_protocols_are_shown_the_door() {
    let system = System::start(&Options::default());
    for octets in [
        b"GET / HTTP/1.1\r\nHost: mx.example.org\r\n\r\n".as_slice(),
        b"POST / HTTP/1.1\r\nContent-Length: 40\r\n\r\nMAIL FROM:<a@example.net>\r\n",
    ] {
        let mut session = Session::connect(system.smtp);
        session.send(octets);
        let rest = session.rest();
        assert!(rest.starts_with("554 5.5.0"), "{rest}");
        assert_eq!(rest.lines().count(), 1, "{rest}");
    }
    // And a TLS handshake at a port without implicit TLS.
    let mut session = Session::connect(system.smtp);
    session.send(b"\x16\x03\x01\x00\x05hello\r\n");
    session.expect("5");
}

#[test]
fn who_speaks_before_the_greeting_is_not_served() {
    let system = System::start(&Options::default());
    let session = system
        .speak_early(b"EHLO early\r\nMAIL FROM:<a@example.net>\r\nRCPT TO:<alice@example.org>\r\n");
    let rest = session.rest();
    assert!(rest.starts_with("554 5.5.0"), "{rest}");
    assert_eq!(rest.lines().count(), 1, "{rest}");
}

#[test]
fn a_command_line_without_end_takes_no_memory() {
    let system = System::start(&Options::default());
    let total = if is_full() { 1 << 30 } else { 64 << 20 };
    let spent = withstand(&system, || {
        let mut session = Session::greeted(system.smtp);
        if flood(&mut session, &[b'A'; 65_536], total) && session.try_send(b"\r\n").is_ok() {
            session.expect("500 5.5.2");
            session.command("NOOP", "250");
        }
        // An argument of any length for every command with an argument.
        for command in [
            "EHLO ",
            "MAIL FROM:<",
            "RCPT TO:<",
            "AUTH PLAIN ",
            "BDAT ",
            "VRFY ",
        ] {
            let mut session = Session::greeted(system.smtp);
            session.send(command.as_bytes());
            if flood(&mut session, &[b'1'; 65_536], 1 << 20) && session.try_send(b"\r\n").is_ok() {
                let reply = session
                    .try_reply()
                    .unwrap_or_else(|_| "5 closed".to_owned());
                assert!(reply.starts_with('5'), "{command}: {reply}");
            }
        }
    });
    assert!(spent < ATTACK_CPU_MAX || is_full(), "{spent:?} of CPU");
}

#[test]
fn a_message_without_end_takes_no_memory() {
    let options = Options::default().set("limits.message_size_max", "\"1 MiB\"");
    let system = System::start(&options);
    let total = if is_full() { 1 << 30 } else { 128 << 20 };
    let mut long_lines = vec![b'A'; 65_536];
    long_lines[998..1000].copy_from_slice(b"\r\n");
    let pieces: [&[u8]; 3] = [&[b'A'; 65_536], &long_lines, &b"X: y\r\n".repeat(10_000)];
    for piece in pieces {
        withstand(&system, || {
            let mut session = Session::greeted(system.smtp);
            session.envelope("a@example.net", &["alice@example.org"]);
            if flood(&mut session, piece, total) {
                session.send(b"\r\n.\r\n");
                session.expect("55");
            } else {
                let rest = session.rest();
                assert!(rest.is_empty() || rest.starts_with("552 5.3.4"), "{rest}");
            }
        });
    }
    system.submit("a@example.net", &["alice@example.org"], "A: b\r\n\r\n");
    system.wait_mail("alice", 1);
}

#[test]
fn the_largest_message_passes_and_one_octet_more_does_not() {
    let options = Options::default().set("limits.message_size_max", "\"1 MiB\"");
    let system = System::start(&options);
    let mut session = Session::greeted(system.smtp);
    let line = format!("{}\r\n", "A".repeat(62));
    let text = format!("A: b\r\n\r\n{}", line.repeat(16_384));
    for (excess, expected) in [(0, "250 2."), (1, "552 5.3.4")] {
        session.envelope("a@example.net", &["alice@example.org"]);
        let size = (1 << 20) - 2 + excess;
        let body = &text[..size];
        // The last line may be cut behind its CR.
        let body = body
            .strip_suffix('\r')
            .map_or(body.to_owned(), |cut| format!("{cut}A"));
        session.send(format!("{body}\r\n.\r\n").as_bytes());
        session.expect(expected);
    }
    system.wait_mail("alice", 1);
}

#[test]
fn chunks_of_any_announced_size_are_eaten_and_never_run() {
    let options = Options::default().set("limits.message_size_max", "\"1 MiB\"");
    let system = System::start(&options);
    let commands = b"RSET\r\nMAIL FROM:<evil@example.net>\r\nRCPT TO:<alice@example.org>\r\nBDAT 12 LAST\r\nA: evil\r\n\r\nx\r\n";
    for size in [
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999",
        "9223372036854775808",
        "4294967296",
        "4294967297 LAST",
        "-1",
        "0x10",
        "1e3",
        "",
        "10 LAST LAST",
        "10 FIRST",
    ] {
        withstand(&system, || {
            let mut session = Session::greeted(system.smtp);
            session.transaction("a@example.net", &["bob@example.org"]);
            session.send(format!("BDAT {size}\r\n").as_bytes());
            let _ = session.try_send(commands);
            let _ = session.socket().shutdown(Shutdown::Write);
            let rest = session.rest();
            let lines: Vec<&str> = rest.lines().collect();
            assert!(lines.len() <= 1, "BDAT {size}: something was run: {rest}");
            assert!(
                rest.is_empty() || rest.starts_with('5'),
                "BDAT {size}: {rest}"
            );
        });
    }
    // A refused chunk is consumed whole, and the octets behind the chunk are a command again.
    let mut session = Session::greeted(system.smtp);
    session.send(b"BDAT 36 LAST\r\nMAIL FROM:<evil@example.net>\r\nNOOP\r\nNOOP\r\n");
    session.expect("503 5.5.1");
    session.expect("250 2.0.0 ok");
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<a@example.net>", "250");
    session.command("RCPT TO:<nobody@example.org>", "550 5.1.1");
    session.send(b"BDAT 6\r\nRSET\r\nBDAT 6 LAST\r\nQUIT\r\nNOOP\r\n");
    session.expect("5");
    session.expect("5");
    session.expect("250 2.0.0 ok");
    assert_eq!(system.mail("alice").len() + system.mail("bob").len(), 0);
}

#[test]
fn more_recipients_than_allowed_are_refused_and_the_others_served() {
    let sink = Sink::start();
    let options = Options::to(sink.address).set("limits.recipients_max", "100");
    let system = System::start(&options);
    let spent = withstand(&system, || {
        let mut session = Session::greeted(system.smtp);
        session.command("MAIL FROM:<a@example.net>", "250");
        let mut commands = String::new();
        for number in 0..150 {
            let _ = write!(commands, "RCPT TO:<r{number}@example.com>\r\n");
        }
        session.send(commands.as_bytes());
        for number in 0..150 {
            session.expect(if number < 100 { "250" } else { "452 4.5.3" });
        }
        session.command("DATA", "354");
        session.command("A: b\r\n\r\n.", "250");
        let text = &sink.wait_mail(1)[0];
        assert_eq!(text.matches("X-Envelope-To:").count(), 100);

        // Without an end: the client is cut off, not remembered.
        let mut session = Session::greeted(system.smtp);
        session.command("MAIL FROM:<a@example.net>", "250");
        let piece = b"RCPT TO:<again@example.com>\r\n".repeat(1_000);
        let reader = session.socket().try_clone().expect("the socket");
        std::thread::scope(|scope| {
            scope.spawn(|| std::io::copy(&mut &reader, &mut std::io::sink()));
            assert!(!flood(&mut session, &piece, 64 << 20), "cut off");
            let _ = session.socket().shutdown(Shutdown::Both);
        });
    });
    assert!(spent < ATTACK_CPU_MAX, "{spent:?} of CPU");
}

#[test]
fn headers_of_any_shape_cost_time_in_proportion() {
    let system = System::start(&Options::default());
    let address_list = "To: a@example.net,\r\n".to_owned()
        + &" b@example.net,\r\n".repeat(400_000)
        + " c@example.net\r\n\r\nbody";
    let fields = "To: a@example.net\r\n".repeat(400_000) + "\r\nbody";
    let folded = "Message-ID:\r\n".to_owned() + &" x\r\n".repeat(1_000_000) + "\r\nbody";
    let nested = "Content-Type: multipart/mixed; boundary=a\r\n\r\n".to_owned()
        + &"--a\r\nContent-Type: message/rfc822\r\n\r\n".repeat(100_000);
    for text in [address_list, fields, folded, nested] {
        let spent = withstand(&system, || {
            system.submit("a@example.net", &["alice@example.org"], &text);
        });
        assert!(spent < ATTACK_CPU_MAX, "{spent:?} of CPU");
    }
    system.wait_mail("alice", 4);
    let mut session = Session::greeted(system.smtp);
    let looping = "Received: from a by b; Thu, 1 Jan 2026 00:00:00 +0000\r\n".repeat(100);
    let reply = session.message("a@example.net", &["alice@example.org"], &looping);
    assert!(reply.starts_with("554 5.4.6"), "{reply}");
}

#[test]
fn slow_clients_are_given_up() {
    let options = Options::default()
        .set("limits.command_timeout", "\"4s\"")
        .set("limits.data_timeout", "\"4s\"");
    let system = System::start(&options);
    // Waits for something that never comes: a greeting only, half a command, half a message.
    let silent = Session::connect(system.smtp);
    let mut half = Session::connect(system.smtp);
    half.send(b"EHL");
    let mut halted = Session::greeted(system.smtp);
    halted.envelope("a@example.net", &["alice@example.org"]);
    halted.send(b"A: b\r\n\r\nbod");
    for session in [silent, half, halted] {
        let rest = session.rest();
        assert!(rest.starts_with("421 4.4.2"), "{rest}");
    }
    // An octet now and then does not hold a connection: the time is for the whole line.
    withstand(&system, || {
        let mut drops = Session::connect(system.smtp);
        let began = Instant::now();
        while drops.try_send(b"N").is_ok() {
            let since = began.elapsed();
            assert!(since < PATIENCE, "still held after {since:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
        let mut drops = Session::greeted(system.smtp);
        drops.envelope("a@example.net", &["alice@example.org"]);
        let began = Instant::now();
        while drops.try_send(b"A").is_ok() {
            let since = began.elapsed();
            assert!(since < PATIENCE, "still held after {since:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    assert_eq!(system.mail("alice").len(), 0);
}

#[test]
fn half_a_message_is_none_and_a_whole_one_counts_whoever_leaves() {
    let system = System::start(&Options::default());
    // Broken off within the text, within the end, within a chunk.
    for text in [
        "A: b\r\n\r\nhalf",
        "A: b\r\n\r\nhalf\r\n.",
        "A: b\r\n\r\nhalf\r\n.\r",
    ] {
        let mut session = Session::greeted(system.smtp);
        session.envelope("a@example.net", &["alice@example.org"]);
        session.send(text.as_bytes());
        session.socket().shutdown(Shutdown::Write).expect("half");
        assert!(!session.rest().contains("250"));
    }
    let mut session = Session::greeted(system.smtp);
    session.transaction("a@example.net", &["alice@example.org"]);
    session.send(b"BDAT 100 LAST\r\nA: b\r\n\r\nhalf\r\n");
    session.socket().shutdown(Shutdown::Write).expect("half");
    assert!(!session.rest().contains("250"));
    // All commands in one segment, and the client's half closed: the server answers to the end.
    let mut session = Session::greeted(system.smtp);
    session.envelope("a@example.net", &["alice@example.org"]);
    session.send(b"Subject: whole\r\n\r\nbody\r\n.\r\nQUIT\r\n");
    session.socket().shutdown(Shutdown::Write).expect("half");
    let rest = session.rest();
    assert_starts(&rest, "250 2.");
    assert_has(&rest, &["\r\n221 "]);
    let texts = system.wait_mail("alice", 1);
    assert!(texts[0].contains("Subject: whole"));
}

#[test]
fn who_does_not_read_replies_is_stopped_not_buffered() {
    let system = System::start(&Options::default().set("limits.errors_max", "1000"));
    withstand(&system, || {
        for piece in [
            b"RCPT TO:<alice@example.org>\r\n".repeat(1_000),
            b"MAIL FROM:<a@example.net>\r\nRSET\r\n".repeat(1_000),
            b"HELP\r\n".repeat(1_000),
            b"EHLO again\r\n".repeat(1_000),
        ] {
            let mut sessions: Vec<Session> =
                (0..20).map(|_| Session::greeted(system.smtp)).collect();
            for session in &mut sessions {
                session.set_patience(Duration::from_millis(20));
                session.send(b"MAIL FROM:<a@example.net>\r\n");
                // Ends when the server reads no more, or has closed.
                flood(session, &piece, 4 << 20);
            }
        }
    });
}

#[test]
fn what_stands_in_addresses_reaches_no_file_and_no_query() {
    let options = Options::default()
        .set("directory.store", "\"sqlite:{data}/users.db\"")
        .set("limits.errors_max", "100");
    let system = System::start(&options);
    system.command(&["domain", "add", "example.org"]);
    system.add_account("alice@example.org");
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<\"../../x\"@example.net>", "250");
    for local in [
        "alice+tag",
        "\"../../../../tmp/x\"",
        "\"..\"",
        "\"a/b\"",
        "\"' OR 1=1 --\"",
        "\"'; DROP TABLE accounts; --\"",
        "\"|/bin/sh\"",
        "|/bin/sh",
        "/etc/passwd",
        "alice/bob",
        "alice/../bob",
        "alice+../../x",
    ] {
        session.send(format!("RCPT TO:<{local}@example.org>\r\n").as_bytes());
        let reply = session.reply();
        let expected = match local {
            "alice+tag" => "250",
            // No address at all: dots may not stand in a row.
            "alice/../bob" | "alice+../../x" => "501 5.1.3",
            _ => "550 5.1.1",
        };
        assert!(reply.starts_with(expected), "{local}: {reply}");
    }
    session.command("DATA", "354");
    session.command("Subject: tag\r\n\r\nbody\r\n.", "250");
    // Whatever the tag says, the mailbox is alice's.
    wait_until("mail for alice", || !system.mail("alice").is_empty());
    system.wait_empty();
    let maildirs = system.directory.path().join("data/maildir/example.org");
    let names: Vec<_> = std::fs::read_dir(maildirs)
        .expect("the mailboxes")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names, ["alice"]);
}

#[test]
fn one_client_with_broken_credentials_harms_no_other() {
    let system = System::start(&Options::default());
    let mut good = Session::greeted(system.submission);
    for exchange in [
        "AUTH PLAIN !!!!\r\n",
        "AUTH PLAIN =\r\n",
        "AUTH LOGIN ====\r\n",
        "AUTH PLAIN\r\n*\r\n",
        "AUTH SCRAM-SHA-256 biws\r\n",
        "AUTH SCRAM-SHA-256 bixhPWIsbj1hbGljZSxyPXg=\r\n",
        "AUTH WIBBLE\r\n",
    ] {
        let mut bad = Session::greeted(system.submission);
        bad.send(exchange.as_bytes());
        let mut reply = bad.reply();
        if reply.starts_with("334") {
            reply = bad.reply();
        }
        assert!(reply.starts_with('5'), "{exchange:?}: {reply}");
    }
    good.log_in("alice@example.org");
}

#[test]
fn a_next_hop_that_never_ends_its_replies_takes_no_memory() {
    for reply in [
        b"220-".repeat(16_384),
        b"220-still talking\r\n".repeat(4_096),
        vec![b'2'; 65_536],
        vec![0; 65_536],
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let system = System::start(&Options::to(listener.local_addr().expect("its address")));
        let talks = move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut sent = 0_u64;
            // Until the client has had enough.
            while sent < 256 << 20 && stream.write_all(&reply).is_ok() {
                sent += reply.len() as u64;
            }
            let _ = stream.read(&mut [0; 1024]);
            sent
        };
        withstand(&system, || {
            let hop = std::thread::spawn(talks);
            system.submit("a@example.net", &["x@example.com"], "A: b\r\n\r\n");
            let sent = hop.join().expect("the next hop");
            assert!(sent < 64 << 20, "{sent} octets of a reply were read");
        });
        assert_eq!(system.queued(), 1);
    }
}
