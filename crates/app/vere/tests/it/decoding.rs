//! Kills, stops and undecodable texts for the processes that decode texts for SEARCH and its index: answers are right
//! or put off, and the store goes on.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::sys::signal::Signal;

use crate::harness::{Options, System, children, is_full, signal, wait_for, wait_until};
use crate::imap::{Imap, Ports, start_with_store, with_store};

/// Messages in the mailbox at the beginning.
const MESSAGES: usize = 90;
/// Number of searching clients.
const CLIENTS: usize = 2;

/// Every text has both words, every third text has the words side by side.
fn message(number: usize) -> String {
    let fish = match number % 3 {
        0 => "blue fish",
        _ => "fish, not blue",
    };
    // "grün" in Latin-1.
    format!(
        "From: {number}@example.org\r\nSubject: =?iso-8859-1?q?gr=FCn?= {number}\r\n\
         Content-Type: text/plain; charset=iso-8859-1\r\n\
         Content-Transfer-Encoding: quoted-printable\r\n\r\n=62lue or gr=FCn {fish}\r\n"
    )
}

/// The answer to a search for the messages that `fits` accepts.
fn answer(fits: impl Fn(usize) -> bool) -> String {
    let found = (0..MESSAGES).filter(|number| fits(*number));
    let numbers: String = found.map(|number| format!(" {}", number + 1)).collect();
    format!("* SEARCH{numbers}\r\n")
}

/// Searches until there is nothing more to be seen; gives how many answers there were.
fn search_while(ports: &Ports, enough: &AtomicBool, answered: &AtomicUsize) -> usize {
    let mut session = Imap::login(ports.imap, "alice@example.org", "secret");
    session.ok("EXAMINE INBOX");
    let first = format!("1:{MESSAGES}");
    let questions = [
        ("BODY \"blue fish\"", answer(|number| number % 3 == 0)),
        ("NOT BODY \"blue fish\"", answer(|number| number % 3 != 0)),
        ("BODY \"fish, n\" SUBJECT 1", {
            answer(|number| number % 3 != 0 && number.to_string().contains('1'))
        }),
        ("HEADER X-None \"\"", answer(|_| false)),
        ("NOT HEADER Content-Type iso-", answer(|_| false)),
    ];
    let mut right = 0;
    while !enough.load(Ordering::Relaxed) || right < 10 {
        for (question, expected) in &questions {
            let said = session.command(&format!("SEARCH {first} {question}"));
            let put_off = said.contains("NO [UNAVAILABLE]");
            assert!(put_off || said.contains(expected), "{question}: {said}");
            right += usize::from(!put_off);
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }
    right
}

/// Adds messages, so that there is something to be indexed; gives how many were taken in.
fn add_while(ports: &Ports, enough: &AtomicBool) -> usize {
    let mut session = Imap::login(ports.imap, "alice@example.org", "secret");
    let mut added = 0;
    while !enough.load(Ordering::Relaxed) {
        let text = message(added);
        let said = session.command(&format!("APPEND INBOX {{{}+}}\r\n{text}", text.len()));
        let refused = said.contains("NO [UNAVAILABLE]");
        assert!(refused || said.contains("OK [APPENDUID"), "{said}");
        added += usize::from(!refused);
    }
    added
}

#[test]
fn searches_are_right_or_put_off_while_processes_are_killed_and_stopped() {
    let faults = if is_full() { 100 } else { 10 };
    let (options, ports) = with_store(Options::default());
    let mut system = System::start(&options.set("limits.parse_timeout", "\"5s\""));
    let store = system.role_pids("store");
    let mut session = Imap::login(ports.imap, "alice@example.org", "secret");
    for number in 0..MESSAGES {
        session.append("INBOX", &message(number));
    }
    let (enough, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let added = std::thread::scope(|scope| {
        let searching: Vec<_> = (0..CLIENTS)
            .map(|_| scope.spawn(|| search_while(&ports, &enough, &answered)))
            .collect();
        let adding = scope.spawn(|| add_while(&ports, &enough));
        let is_over = || adding.is_finished() || searching.iter().any(|one| one.is_finished());
        for fault in 0..faults {
            let seen = answered.load(Ordering::Relaxed);
            let pid = wait_for("a process", || {
                let all = children(store[0]);
                all.get(fault % all.len().max(1)).copied()
            });
            let how = match fault % 4 {
                3 => Signal::SIGSTOP,
                _ => Signal::SIGKILL,
            };
            signal(pid, how);
            // The question differs each time.
            wait_until("answers", || {
                is_over() || answered.load(Ordering::Relaxed) > seen + CLIENTS
            });
        }
        enough.store(true, Ordering::Relaxed);
        for one in searching {
            assert!(one.join().expect("a client") >= 10);
        }
        adding.join().expect("a client")
    });
    session.ok("EXAMINE INBOX");
    let green = "{5+}\r\ngr\u{fc}n";
    let all = session.ok(&format!(
        "SEARCH CHARSET UTF-8 BODY {green} SUBJECT {green}"
    ));
    let found = all.lines().find_map(|line| line.strip_prefix("* SEARCH "));
    let found = found.map_or(0, |numbers| numbers.split(' ').count());
    assert_eq!(found, MESSAGES + added);
    assert_eq!(system.role_pids("store"), store, "the store went on");
    system.kill();
    let checked = system.command(&["store", "check"]);
    assert!(checked.contains("nothing is wrong"), "{checked}");
}

/// Each character takes eleven times its size when decomposed (U+FDFA): more than the memory of a process.
fn bomb() -> String {
    format!(
        "Subject: of paper\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nA lantern\r\n{}\r\n",
        format!("{}\r\n", "\u{FDFA}".repeat(300)).repeat(8_000)
    )
}

#[test]
fn a_message_that_cannot_be_decoded_is_searched_as_it_is() {
    let (mut system, ports) = start_with_store(Options::default());
    let store = system.role_pids("store");
    let mut session = Imap::login(ports.imap, "alice@example.org", "secret");
    for number in 0..9 {
        session.append("INBOX", &message(number));
    }
    session.append("INBOX", &bomb());
    session.ok("EXAMINE INBOX");
    let folder = system.directory.path().join("data/store/search");
    let segments = || std::fs::read_dir(&folder).map_or(0, |files| files.flatten().count());
    // At first no segment has the messages, then one segment has.
    for _ in 0..2 {
        for (question, expected) in [
            ("BODY lantern", " 10"),
            ("NOT BODY lantern", " 1 2 3 4 5 6 7 8 9"),
            ("SUBJECT paper", " 10"),
            // A possible match is neither.
            ("BODY fish", " 1 2 3 4 5 6 7 8 9"),
            ("NOT BODY fish", ""),
            ("BODY \"blue fish\"", " 1 4 7"),
            ("NOT BODY \"blue fish\"", " 2 3 5 6 8 9"),
            ("NOT NOT BODY \"blue fish\"", " 1 4 7"),
            ("OR BODY fish SUBJECT paper", " 1 2 3 4 5 6 7 8 9 10"),
        ] {
            let said = session.ok(&format!("SEARCH {question}"));
            assert!(
                said.contains(&format!("* SEARCH{expected}\r\n")),
                "{question}: {said}"
            );
        }
        wait_until("an index", || segments() > 0);
    }
    let explain = [
        "store",
        "explain",
        "alice@example.org",
        "INBOX",
        "BODY fish",
    ];
    let said = system.command(&explain);
    assert!(said.contains("1 cannot be decoded or read"), "{said}");
    assert_eq!(system.role_pids("store"), store, "the store went on");
    system.kill();
    let checked = system.command(&["store", "check"]);
    assert!(checked.contains("nothing is wrong"), "{checked}");
}
