//! No second message inside a first message gets past the system (CVE-2023-51764 and its kin).

use crate::harness::{Options, Session, Sink, System};
use crate::imap::{Imap, start_with_store};

/// What some server somewhere takes for the end of a message, and ours must not.
const ENDS: [&str; 17] = [
    "\n.\n",
    "\n.\r\n",
    "\r\n.\n",
    "\r.\r",
    "\r.\r\n",
    "\r\n.\r",
    "\n.\r",
    "\r.\n",
    "\r\n.\r\r\n",
    "\r\n\0.\r\n",
    "\r\n.\0\r\n",
    "\r\n.\r\0\n",
    "\n\r.\n\r",
    "\r\r\n.\r\r\n",
    "\n\n.\n\n",
    "\r\n.\n.\r\n",
    "\r\n.\r.\r\n",
];

const INNER: &str = "MAIL FROM:<admin@example.org>\r\nRCPT TO:<alice@example.org>\r\n\
    RCPT TO:<x@example.com>\r\nDATA\r\nSubject: smuggled\r\n\r\nevil";

fn assert_refused(reply: &str, end: &str) {
    let codes = ["554 5.5.2", "554 5.6.0"];
    assert!(
        codes.iter().any(|code| reply.starts_with(code)),
        "{end:?}: {reply}"
    );
}

#[test]
fn nothing_but_the_right_end_ends_a_message() {
    let sink = Sink::start();
    only_the_right_end_ends(&Options::to(sink.address), &sink);
}

/// Sends messages with each end, and a last one by which the others are not missed.
pub(crate) fn only_the_right_end_ends(options: &Options, sink: &Sink) {
    let system = System::start(options);
    for end in ENDS {
        let mut session = Session::greeted(system.smtp);
        session.envelope("a@example.net", &["alice@example.org", "x@example.com"]);
        session.send(format!("Subject: outer\r\n\r\nfirst{end}{INNER}\r\n.\r\n").as_bytes());
        // A single answer to the whole input, with the reason.
        let reply = session.reply();
        assert_refused(&reply, end);
        session.command("NOOP", "250 2.0.0");
        session.command("QUIT", "221");
    }
    assert_only_control(&system, sink);
}

#[test]
fn the_same_ends_within_a_chunk_are_not_relayed() {
    let sink = Sink::start();
    let system = System::start(&Options::to(sink.address));
    for end in ENDS {
        let mut session = Session::greeted(system.smtp);
        session.transaction("a@example.net", &["alice@example.org", "x@example.com"]);
        let text = format!("Subject: outer\r\n\r\nfirst{end}{INNER}\r\n.\r\n");
        session.send(format!("BDAT {} LAST\r\n{text}", text.len()).as_bytes());
        let reply = session.reply();
        assert_refused(&reply, end);
        session.command("NOOP", "250 2.0.0");
    }
    assert_only_control(&system, &sink);
}

#[test]
fn a_chunk_may_hold_an_end_and_it_goes_on_as_text() {
    let sink = Sink::start();
    let system = System::start(&Options::to(sink.address));
    let mut session = Session::greeted(system.smtp);
    session.transaction("a@example.net", &["alice@example.org", "x@example.com"]);
    let text = format!("Subject: outer\r\n\r\nfirst\r\n.\r\n{INNER}\r\n.\r\n");
    session.send(format!("BDAT {} LAST\r\n{text}", text.len()).as_bytes());
    session.expect("250 2.");
    // The dots are doubled on the way out and so remain one message.
    let sunk = &sink.wait_mail(1)[0];
    assert!(sunk.ends_with(&text), "{sunk}");
    let filed = &system.wait_mail("alice", 1)[0];
    assert!(filed.ends_with(&text.replace("\r\n", "\n")), "{filed}");
    assert_eq!((sink.mail().len(), system.mail("alice").len()), (1, 1));
}

/// Hands the text over to alice and bob by LMTP, in a chunk or as lines, and gives what is said of each.
fn hand_over(lmtp: std::net::SocketAddr, text: &str, chunk: bool) -> [String; 2] {
    let mut session = Session::lmtp(lmtp);
    session.transaction("a@example.net", &["alice@example.org", "bob@example.org"]);
    if chunk {
        session.send(format!("BDAT {} LAST\r\n{text}", text.len()).as_bytes());
    } else {
        session.command("DATA", "354");
        session.send(text.as_bytes());
    }
    let replies = [session.reply(), session.reply()];
    session.command("NOOP", "250 2.0.0");
    session.command("QUIT", "221");
    replies
}

#[test]
fn the_store_takes_the_right_end_only_too() {
    let (_system, ports) = start_with_store(Options::default());
    let bare = |end: &str| {
        let rest = end.replace("\r\n", "");
        rest.contains(['\r', '\n'])
    };
    assert_eq!(
        ENDS.iter().filter(|end| !bare(end)).count(),
        2,
        "those with NUL"
    );
    for end in ENDS.iter().filter(|end| bare(end)) {
        for chunk in [false, true] {
            let text = format!("Subject: outer\r\n\r\nfirst{end}{INNER}\r\n.\r\n");
            for reply in hand_over(ports.lmtp, &text, chunk) {
                assert_refused(&reply, end);
            }
        }
    }
    // A NUL beside the dot is text, and so are the octets behind the NUL.
    let mut texts = 0;
    for end in ENDS.iter().filter(|end| !bare(end)) {
        let text = format!("Subject: whole\r\n\r\nfirst{end}{INNER}\r\n.\r\n");
        for reply in hand_over(ports.lmtp, &text, false) {
            assert!(reply.starts_with("250 2."), "{end:?}: {reply}");
        }
        texts += 1;
    }
    for user in ["alice@example.org", "bob@example.org"] {
        let mut session = Imap::login(ports.imap, user, "secret");
        assert_eq!(session.exists("INBOX"), texts, "{user}");
        session.ok("SELECT INBOX");
        let found = session.ok("SEARCH SUBJECT whole BODY evil");
        assert!(found.contains("* SEARCH 1 2\r\n"), "{found}");
    }
}

#[test]
fn addresses_and_parameters_carry_no_line_ends_onwards() {
    let sink = Sink::with_faults(&["rcpt=550 5.1.1 nobody"]);
    let system = System::start(&Options::to(sink.address));
    for line in [
        "MAIL FROM:<\"a\rRCPT TO:<x@example.com>\r\"@example.net>",
        "MAIL FROM:<\"a\nb\"@example.net>",
        "MAIL FROM:<a@example.net> ENVID=a\nb",
        // Nor in disguise (RFC 3461 section 4.4: the decoded text is printable).
        "MAIL FROM:<a@example.net> ENVID=a+0D+0ARSET",
        "MAIL FROM:<a\0b@example.net>",
    ] {
        let mut session = Session::greeted(system.smtp);
        session.send(format!("{line}\r\nQUIT\r\n").as_bytes());
        // A single refusal, then the goodbye or nothing at all.
        let rest = session.rest();
        let codes: Vec<&str> = rest.lines().map(|line| &line[..3]).collect();
        assert!(
            matches!(codes[..], ["500" | "501", "221"] | ["554"]),
            "{line:?}: {rest}"
        );
    }
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<alice@example.org> ENVID=a+2Bb", "250");
    // Where only the encoded form goes on, the form is allowed; a report must not decode the text into lines.
    session.command(
        "RCPT TO:<x@example.com> ORCPT=rfc822;x+0D+0ASmuggled:+20yes@example.com",
        "250",
    );
    session.command("DATA", "354");
    session.command("Subject: control\r\n\r\nbody\r\n.", "250");
    let report = &system.wait_mail("alice", 1)[0];
    assert!(!report.contains("\nSmuggled:"), "{report}");
}

/// Sends a valid message and finds no other message anywhere.
fn assert_only_control(system: &System, sink: &Sink) {
    system.submit_about(
        "a@example.net",
        &["alice@example.org", "x@example.com"],
        "control",
    );
    for texts in [sink.wait_mail(1), system.wait_mail("alice", 1)] {
        assert!(texts[0].contains("Subject: control"), "{}", texts[0]);
    }
    system.wait_empty();
    assert_eq!((sink.mail().len(), system.mail("alice").len()), (1, 1));
}
