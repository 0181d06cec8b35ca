//! Kills and stops of the processes that parse messages: every message is kept all the same.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::harness::{
    Options, System, assert_has, children, is_full, signal, wait_for, wait_until,
};
use crate::imap::{Imap, Ports, start_with_store, with_store};

/// Number of clients that add messages.
const CLIENTS: usize = 3;

fn message(client: usize, number: usize) -> String {
    format!(
        "From: a@example.org\r\nSubject: message {client} {number}\r\n\
         Content-Type: multipart/mixed; boundary=b\r\n\r\n\
         --b\r\n\r\ntext of {client} {number}\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>\r\n--b--\r\n"
    )
}

/// Adds messages with several clients until there is nothing more to be seen, while something happens to
/// the processes; gives how many each added.
fn add_while(ports: &Ports, enough: &AtomicBool, added: &AtomicUsize) -> Vec<usize> {
    let client = |client: usize| {
        let mut session = Imap::login(ports.imap, "alice@example.org", "secret");
        let mut number = 0;
        while !enough.load(Ordering::Relaxed) || number < 20 {
            session.append("INBOX", &message(client, number));
            added.fetch_add(1, Ordering::Relaxed);
            number += 1;
        }
        number
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| scope.spawn(move || client(number)))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("a client"))
            .collect()
    })
}

/// Every message is present once, with its subject and octets.
fn all_there(ports: &Ports, added: &[usize]) {
    let mut session = Imap::login(ports.imap, "alice@example.org", "secret");
    session.ok("SELECT INBOX");
    let envelopes = session.ok("FETCH 1:* ENVELOPE");
    let total: usize = added.iter().sum();
    assert_eq!(envelopes.matches("FETCH (ENVELOPE").count(), total);
    for (client, count) in added.iter().enumerate() {
        for number in 0..*count {
            let subject = format!("\"message {client} {number}\"");
            assert_eq!(envelopes.matches(&subject).count(), 1, "{subject}");
        }
    }
    let bodies = session.ok("FETCH 1:* BODY.PEEK[1]");
    let last = format!("text of 0 {}", added[0] - 1);
    assert_has(&bodies, &[&last, "text of 1 0"]);
}

/// Lets something happen to the processes of the store while messages are added: none is lost, none refused. `act`
/// gets the store, and what waits for so many further messages.
fn while_adding(system: &System, ports: &Ports, act: impl FnOnce(u32, &dyn Fn(usize))) {
    let store = system.role_pids("store");
    let (enough, added) = (AtomicBool::new(false), AtomicUsize::new(0));
    let counts = std::thread::scope(|scope| {
        let adding = scope.spawn(|| add_while(ports, &enough, &added));
        act(store[0], &|count| {
            let seen = added.load(Ordering::Relaxed);
            wait_until("messages", || {
                adding.is_finished() || added.load(Ordering::Relaxed) > seen + count
            });
        });
        enough.store(true, Ordering::Relaxed);
        adding.join().expect("clients")
    });
    all_there(ports, &counts);
    assert_eq!(system.role_pids("store"), store, "the store went on");
}

/// Each line of proc_pid_status(5) says what the kernel enforces, whatever the log says.
#[test]
fn processes_that_parse_messages_are_in_a_sandbox() {
    let (system, ports) = start_with_store(Options::default());
    let told = system.wait_log(&["parsers are confined", "held"]);
    let mut session = Imap::login(ports.imap, "alice@example.org", "secret");
    session.append("INBOX", &message(0, 0));
    let store = system.role_pids("store")[0];
    let parser = *children(store).first().expect("a parser");
    let status = std::fs::read_to_string(format!("/proc/{parser}/status")).expect("its status");
    let line = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let words = line.map(|line| line.split_whitespace().map(str::to_owned).collect());
        words.unwrap_or_else(Vec::new)
    };
    assert_eq!(line("NoNewPrivs:"), ["1"]);
    assert_eq!(line("CapEff:"), ["0000000000000000"]);
    if told.contains("calls") && !told.contains("missing=calls") {
        assert_eq!(line("Seccomp:"), ["2"], "{told}");
    }
    if nix::unistd::geteuid().is_root() {
        assert_eq!(line("Uid:"), ["65534"; 4]);
        assert!(line("Groups:").is_empty(), "{status}");
    }
}

#[test]
fn processes_that_are_killed_lose_and_refuse_nothing() {
    let kills = if is_full() { 200 } else { 12 };
    let (system, ports) = start_with_store(Options::default());
    while_adding(&system, &ports, |store, wait_more| {
        for _ in 0..kills {
            let pid = wait_for("a process", || children(store).first().copied());
            signal(pid, Signal::SIGKILL);
            // The message differs each time.
            wait_more(CLIENTS);
        }
    });
}

#[test]
fn processes_that_stand_still_are_replaced() {
    let (options, ports) = with_store(Options::default());
    let system = System::start(&options.set("limits.parse_timeout", "\"2s\""));
    while_adding(&system, &ports, |store, wait_more| {
        // A process at its start is waited for much longer.
        wait_more(30);
        let stopped = children(store);
        for pid in &stopped {
            signal(*pid, Signal::SIGSTOP);
        }
        // Each process has a message, or gets a message, and is ended after too long a silence.
        wait_until("the end of those that stand still", || {
            let now = children(store);
            stopped.iter().all(|pid| !now.contains(pid))
        });
        wait_more(10);
    });
}

/// A message that no process survives is simulated by a kill of every process: the message is kept.
#[test]
fn messages_are_kept_when_every_process_is_killed() {
    let (system, ports) = start_with_store(Options::default());
    let store = system.role_pids("store")[0];
    let (enough, pause) = (AtomicBool::new(false), AtomicU64::new(1));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !enough.load(Ordering::Relaxed) {
                for pid in children(store) {
                    signal(pid, Signal::SIGKILL);
                }
                std::thread::sleep(Duration::from_millis(pause.load(Ordering::Relaxed)));
            }
        });
        let mut session = Imap::login(ports.imap, "alice@example.org", "secret");
        let mut kept = 0;
        // A process killed before it is ready is no fault of the message: then the message is refused temporarily,
        // and on a slow machine the processes get more time.
        for number in 0..30 {
            let text = message(0, number);
            let said = session.command(&format!("APPEND INBOX {{{}+}}\r\n{text}", text.len()));
            let refused = said.contains("NO [UNAVAILABLE]");
            assert!(refused || said.contains("OK [APPENDUID"), "{said}");
            kept += usize::from(!refused);
            let longer = (2 * pause.load(Ordering::Relaxed)).min(100);
            pause.store(if refused { longer } else { 1 }, Ordering::Relaxed);
        }
        enough.store(true, Ordering::Relaxed);
        assert!(kept > 0, "none of 30 was kept");
        session.ok("SELECT INBOX");
        let said = session.ok("FETCH 1:* (RFC822.SIZE BODYSTRUCTURE ENVELOPE)");
        assert_eq!(said.matches("RFC822.SIZE").count(), kept);
    });
}
