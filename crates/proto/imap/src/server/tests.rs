//! What a session tells of what others did.

mod fetch;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use vere_sasl::{FakeKeys, Mechanism, NonceSource, ScramKeys};
use vere_units::Timestamp;

use super::answer::{FlagsChanged, FlagsOf, Gone, Opened};
use super::{
    Answer, Changes, Found, MailboxKey, Messages, Peer, Question, Refusal, Server, ServerConfig,
    Step,
};
use crate::command::SearchKey;
use crate::flags::Flags;
use crate::limits::Limits;
use crate::set::UidSet;

const NOW: Timestamp = Timestamp::from_millis(0);
const KEY: MailboxKey = 7;

/// A mailbox with three messages, of which another session removed the second by change 11 and changed
/// the third by change 12; nobody has told this session.
fn server() -> Server {
    let mut server = opened();
    assert!(say(&mut server, "e ENABLE QRESYNC").contains("e OK"));
    assert!(say(&mut server, "s SELECT INBOX").contains("HIGHESTMODSEQ 10"));
    server
}

/// The same before any command.
fn opened() -> Server {
    let config = ServerConfig {
        hostname: "mx.example.org".to_owned(),
        limits: Limits::default(),
        mechanisms: Mechanism::ALL.to_vec(),
        nonces: Arc::new(NonceSource::new([1; 32])),
        fake_keys: FakeKeys::new([2; 32], ScramKeys::ITERATIONS_MIN),
    };
    let peer = Peer {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
        tls: true,
        tls_available: false,
        may_auth_in_clear: true,
    };
    Server::preauthenticated(Arc::new(config), peer, "a".to_owned(), NOW)
}

fn third() -> FlagsOf {
    FlagsOf {
        uid: 3,
        flags: Flags::default(),
        mod_seq: 12,
    }
}

fn answer(question: &Question) -> Answer {
    match question {
        Question::Open { .. } => Answer::Opened(Ok(Box::new(Opened {
            mailbox: KEY,
            uid_validity: 1,
            uid_next: 4,
            mod_seq: 10,
            uids: UidSet::range(1, 3),
            first_unseen: None,
            recent_from: 4,
            keywords: Vec::new(),
        }))),
        Question::Changes { since, .. } => Answer::Changes(Ok(Changes {
            mod_seq: 12,
            uid_next: 4,
            gone: Gone::These(UidSet::range(2, 2)),
            changed: vec![third()].into_iter().filter(|_| *since < 12).collect(),
            recent_from: 4,
            ..Changes::default()
        })),
        // It is so already, by the change of the other session.
        Question::Store(_) => Answer::Flags(Ok(FlagsChanged {
            rows: vec![third()],
            changed: UidSet::new(),
            modified: UidSet::new(),
        })),
        Question::Fetch(_) => Answer::Messages(Ok(Messages::default())),
        other => panic!("{other:?}"),
    }
}

/// What is said to a command.
fn say(server: &mut Server, command: &str) -> String {
    say_to(server, command, answer)
}

/// The same where questions are answered otherwise.
fn say_to(server: &mut Server, command: &str, answer: impl Fn(&Question) -> Answer) -> String {
    server.input(format!("{command}\r\n").as_bytes(), NOW);
    let mut said = Vec::new();
    loop {
        match server.step() {
            Step::Send => {
                said.extend_from_slice(server.output());
                server.sent(server.output().len());
            }
            Step::Ask(question) => server.answer(answer(&question), NOW),
            _ => return String::from_utf8(said).expect("text"),
        }
    }
}

#[test]
fn noop_tells_what_the_session_has_not_heard_of_yet() {
    let mut server = server();
    let said = say(&mut server, "n NOOP");
    assert!(said.contains("* VANISHED 2\r\n"), "{said}");
    assert!(said.contains("* 2 FETCH (UID 3 FLAGS"), "{said}");
}

/// Else the client would take 12 for the last change that it knows, and never hear of 11.
#[test]
fn who_is_shown_a_change_is_told_those_before_it() {
    let mut server = server();
    let said = say(&mut server, "u UID STORE 3 +FLAGS (\\Seen)");
    assert!(said.contains("MODSEQ (12)"), "{said}");
    assert!(said.contains("* VANISHED 2\r\n"), "{said}");
    // By number it has to wait for the next command.
    let mut server = self::server();
    let said = say(&mut server, "t STORE 3 +FLAGS (\\Seen)");
    assert!(!said.contains("VANISHED"), "{said}");
    let said = say(&mut server, "c CAPABILITY");
    assert!(said.contains("* VANISHED 2\r\n"), "{said}");
}

/// The numbers of messages are those of EXISTS until it is said that one of them is gone.
#[test]
fn what_goes_while_a_mailbox_is_opened_is_not_counted() {
    let mut server = server();
    let said = say(&mut server, "r SELECT INBOX (QRESYNC (1 9))");
    let (_, behind) = said.split_once("* 2 EXISTS").expect("EXISTS");
    assert!(behind.contains("* VANISHED (EARLIER) 2\r\n"), "{said}");
    assert!(behind.contains("* 2 FETCH (UID 3 FLAGS"), "{said}");
    assert_eq!(said.matches("VANISHED").count(), 1, "{said}");
    let said = say(&mut server, "n NOOP");
    assert!(!said.contains("VANISHED"), "{said}");
}

/// The store has trouble: what was told is kept until the client can be told what changed besides, once for a
/// message however often it asks.
#[test]
fn what_a_client_was_told_is_kept_once() {
    let mut server = server();
    let ask = |server: &mut Server, command: &str| {
        server.input(format!("{command}\r\n").as_bytes(), NOW);
        loop {
            match server.step() {
                Step::Send => server.sent(server.output().len()),
                Step::Ask(Question::Store(_)) => {
                    let rows = [1, 2, 3].map(|uid| FlagsOf { uid, ..third() });
                    let done = FlagsChanged {
                        rows: rows.to_vec(),
                        ..FlagsChanged::default()
                    };
                    server.answer(Answer::Flags(Ok(done)), NOW);
                }
                Step::Ask(_) => server.answer(Answer::Changes(Err(Refusal::Unavailable)), NOW),
                _ => return server.memory(),
            }
        }
    };
    let once = ask(&mut server, "s STORE 1:3 +FLAGS (\\Seen)");
    for _ in 0..10 {
        assert_eq!(ask(&mut server, "s STORE 1:3 +FLAGS (\\Seen)"), once);
    }
    // None of it is told again.
    let said = say(&mut server, "n NOOP");
    assert!(!said.contains("FETCH"), "{said}");
}

/// A message that another session added meanwhile is none of the client's, nor is the number of its change.
#[test]
fn a_search_by_changes_is_of_what_the_client_knows() {
    let mut server = server();
    server.input(b"m SEARCH RETURN (COUNT) MODSEQ 1\r\n", NOW);
    let Step::Ask(Question::Search { key, .. }) = server.step() else {
        panic!("no search");
    };
    let in_view = |uid| match &key {
        SearchKey::And(keys) => keys
            .iter()
            .all(|key| !matches!(key, SearchKey::Messages(uids) if !uids.contains(uid))),
        _ => true,
    };
    let mut found = Found::default();
    for uid in (1..=4).filter(|uid| in_view(*uid)) {
        found.push(uid, 10 + u64::from(uid));
    }
    server.answer(Answer::Found(Ok(found)), NOW);
    let said = say(&mut server, "n NOOP");
    assert!(said.contains("COUNT 3 MODSEQ 13\r\n"), "{said}");
}

/// What lies between forgets a connection on which nothing is said; it costs an idle client no memory.
#[test]
fn who_idles_hears_every_two_minutes() {
    let mut server = server();
    say(&mut server, "i IDLE");
    let memory = server.memory();
    assert!(size_of::<Server>() <= 328, "{}", size_of::<Server>());
    for minutes in (2..30).step_by(2) {
        assert_eq!(server.deadline(), NOW + Duration::from_secs(minutes * 60));
        server.timed_out();
        assert_eq!(server.output(), b"* OK Still here\r\n");
        server.sent(server.output().len());
        assert_eq!(server.memory(), memory);
    }
    server.timed_out();
    assert!(server.output().starts_with(b"* BYE"));
    // Who does not idle is told nothing.
    let mut server = self::server();
    assert_eq!(server.deadline(), NOW + Duration::from_secs(1_800));
    say(&mut server, "i IDLE");
    assert!(say(&mut server, "DONE").contains("i OK"));
    assert_eq!(server.deadline(), NOW + Duration::from_secs(1_800));
}

/// It is told once, and not as something that the client need not look for among its numbers.
#[test]
fn what_a_session_still_counts_is_not_gone_earlier() {
    let mut server = server();
    let said = say(
        &mut server,
        "f UID FETCH 1:* FLAGS (CHANGEDSINCE 10 VANISHED)",
    );
    assert!(!said.contains("EARLIER"), "{said}");
    assert_eq!(said.matches("* VANISHED 2\r\n").count(), 1, "{said}");
}

/// In the middle of a message, too, which is not waited for.
#[test]
fn an_account_that_is_removed_ends_its_session_at_once() {
    for begun in ["", "i IDLE\r\n", "a APPEND INBOX {100+}\r\nhalf"] {
        let mut server = server();
        server.input(begun.as_bytes(), NOW);
        let _ = say(&mut server, "");
        server.end(Refusal::Removed);
        let said = say(&mut server, "n NOOP");
        assert_eq!(said, "* BYE [CONTACTADMIN] the account was removed\r\n");
        assert!(matches!(server.step(), Step::Close), "{begun}");
    }
}

/// Octets that come now and then hold memory, and what was sent before buys little.
#[test]
fn a_literal_that_comes_slowly_ends_the_session() {
    let at = |seconds: u64| NOW + Duration::from_secs(seconds);
    let slow = "* BYE [UNAVAILABLE] the command comes too slowly\r\n";
    // One octet, and no more for ever; then what waits whole for the end of its command.
    for rest in ["x", &"x".repeat(1_500_000)] {
        let mut server = server();
        server.input(b"a APPEND INBOX {1500000+}\r\n", NOW);
        assert_eq!(server.deadline(), at(60));
        server.input(rest.as_bytes(), at(30));
        assert!(server.deadline() <= at(90), "{:?}", server.deadline());
        server.timed_out();
        assert_eq!(server.output(), slow.as_bytes());
        assert_eq!(server.message_memory(), 0);
    }
    // An octet every minute, after a lot: no time is left of that.
    let mut server = self::server();
    server.input(b"a APPEND INBOX {50000000+}\r\n", NOW);
    server.input(&vec![b'x'; 40_000_000], at(1));
    let late = (2..10_000).find(|second| {
        if second % 50 == 0 {
            server.input(b"x", at(*second));
        }
        server.deadline() <= at(*second)
    });
    assert_eq!(late, Some(61));
    // As fast as wanted, but not for ever.
    let mut server = self::server();
    server.input(b"a APPEND INBOX {50000000+}\r\n", NOW);
    let late = (1..10_000).find(|second| {
        server.input(&[b'x'; 1_100], at(*second));
        server.deadline() <= at(*second)
    });
    assert_eq!(late, Some(7_200));
    // Behind it the session goes on as ever.
    let mut server = self::server();
    server.input(b"a NOOP {3+}\r\nabc\r\n", at(5));
    let _ = say(&mut server, "");
    assert!(server.deadline() >= at(1_800));
}

/// RFC 7162 section 3.1.
#[test]
fn the_first_command_that_enables_condstore_tells_where_the_mailbox_stands() {
    let told = "* OK [HIGHESTMODSEQ 10] the last change\r\n";
    for command in [
        "ENABLE CONDSTORE",
        "ENABLE QRESYNC",
        "FETCH 1 MODSEQ",
        "FETCH 1 FLAGS (CHANGEDSINCE 1)",
        "STORE 3 (UNCHANGEDSINCE 1) +FLAGS (\\Seen)",
    ] {
        let mut server = opened();
        say(&mut server, "s SELECT INBOX");
        assert!(!say(&mut server, "f FETCH 1 FLAGS").contains("HIGHESTMODSEQ"));
        let said = say(&mut server, &format!("a {command}"));
        assert!(said.starts_with(told), "{command}: {said}");
        let said = say(&mut server, &format!("b {command}"));
        assert!(!said.contains(told), "{command}, once more: {said}");
    }
    // Before a mailbox is open there is nothing to tell.
    let said = say(&mut opened(), "a ENABLE CONDSTORE");
    assert!(!said.contains("HIGHESTMODSEQ"), "{said}");
}

/// RFC 7162 section 3.2.11.
#[test]
fn a_session_goes_on_without_a_mailbox_that_is_gone() {
    let gone = |question: &Question| match question {
        Question::Changes { .. } => Answer::Changes(Err(Refusal::Gone)),
        Question::Fetch(_) => Answer::Messages(Err(Refusal::Gone)),
        Question::Change(_) => Answer::Done(Ok(())),
        other => answer(other),
    };
    let closed = "* OK [CLOSED] the mailbox is gone\r\n";
    for (command, end) in [
        ("DELETE INBOX", "a OK deleted\r\n"),
        (
            "FETCH 1 FLAGS",
            "a NO [NONEXISTENT] the mailbox is gone\r\n",
        ),
    ] {
        let mut server = server();
        assert_eq!(
            say_to(&mut server, &format!("a {command}"), gone),
            format!("{closed}{end}")
        );
        assert!(say(&mut server, "b FETCH 1 FLAGS").starts_with("b BAD"));
        assert!(say(&mut server, "c SELECT INBOX").contains("c OK"));
    }
}

#[test]
fn everything_from_somewhere_on_may_be_nothing() {
    let empty = |question: &Question| match (question, answer(question)) {
        (_, Answer::Opened(Ok(opened))) => Answer::Opened(Ok(Box::new(Opened {
            uids: UidSet::new(),
            ..*opened
        }))),
        (_, other) => other,
    };
    for (set, end) in [
        ("1:*", "OK"),
        ("*:4,1:*", "OK"),
        ("*", "BAD"),
        ("1", "BAD"),
        ("1:2", "BAD"),
        ("1:*,2", "BAD"),
    ] {
        let mut server = opened();
        say_to(&mut server, "s SELECT INBOX", empty);
        let said = say(&mut server, &format!("a FETCH {set} FLAGS"));
        assert!(said.starts_with(&format!("a {end}")), "{set}: {said}");
    }
}
