//! Port 25 with a front and workers: what clients see is what they see of a gateway that does all of it.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::harness::{
    Authority, Options, PATIENCE, Session, Sink, System, assert_has, descriptors, is_full, signal,
    wait_for, wait_until,
};
use crate::logins::connect_from;
use crate::{scripts, smuggling};

/// The processes of port 25, without the delay before the greeting.
pub(crate) fn with_front(options: Options) -> Options {
    options
        .set("front.workers", "2")
        .set("front.banner_delay", "\"0s\"")
}

pub(crate) fn without_rates(options: Options) -> Options {
    options
        .set("front.connections_per_minute", "0")
        .set("front.refused_recipients_per_hour", "0")
}

/// A system for strangers: nobody may relay.
pub(crate) fn for_strangers() -> Options {
    with_front(Options::default()).set("relay.networks", "[]")
}

/// Without nodes the next gateway cannot recover: whoever comes meanwhile is told to come again, and nothing worse.
#[test]
fn clients_hear_to_come_again_while_the_gateway_recovers() {
    let system = System::start(&for_strangers());
    let mut before = Session::greeted(system.smtp);
    let told = || {
        system
            .log()
            .matches("new connections get 421 4.3.2")
            .count()
    };
    // The gateway may have been shut at the start as well.
    let told_before = told();
    assert_eq!(system.signal_role("spool", Signal::SIGSTOP), 2);
    system.kill_and_wait("gateway");
    wait_for("a line of the log", || (told() > told_before).then_some(()));
    for _ in 0..5 {
        let mut session = Session::open(system.smtp).expect("a connection");
        let reply = session.reply();
        assert!(reply.starts_with("421 4.3.2 mx.example.org "), "{reply}");
        assert_eq!(session.rest(), "");
    }
    // A gateway that is back and recovers answers for itself.
    before.send(b"MAIL FROM:<a@example.net>\r\n");
    let reply = before.reply();
    let is_temporary = reply.starts_with("421 4.3.2") || reply.starts_with("451 4.3.2");
    assert!(is_temporary, "{reply}");
    assert_eq!(system.signal_role("spool", Signal::SIGCONT), 2);
    let mut session = wait_for("a greeting", || {
        let mut session = Session::open(system.smtp).ok()?;
        session.reply().starts_with("220").then_some(session)
    });
    session.command("EHLO client.example.net", "250");
    session.command("MAIL FROM:<a@example.net>", "250");
    assert_eq!(told(), told_before + 1, "{}", system.log());
}

#[test]
fn mail_comes_in_through_front_and_worker() {
    let system = System::start(&for_strangers());
    let mut session = Session::greeted(system.smtp);
    let huge = "MAIL FROM:<huge@example.net> SIZE=99999999999";
    session.command(huge, "552 5.3.4");
    session.command("MAIL FROM:<a@example.net>", "250 2.1.0");
    session.command("RCPT TO:<nobody@example.org>", "550 5.1.1");
    session.command("RCPT TO:<x@example.com>", "550 5.7.1");
    session.command("RCPT TO:<alice@example.org>", "250 2.1.5");
    session.command("RCPT TO:<bob@example.com>", "550 5.7.1");
    session.command("DATA", "354");
    session.send(b"Subject: first\r\n\r\none\r\n.\r\n");
    session.expect("250 2.0.0");
    // The worker has the session for good.
    session.command("MAIL FROM:<a@example.net>", "250 2.1.0");
    session.command("RCPT TO:<alice@example.org>", "250 2.1.5");
    session.send(b"BDAT 19 LAST\r\nSubject: 2nd\r\n\r\ntwo");
    session.expect("250 2.0.0");
    session.command("QUIT", "221");
    let mail = system.wait_mail("alice", 2);
    assert!(mail.iter().any(|text| text.contains("Subject: first")));
    for role in ["front refused", "worker refused", "gateway accepted"] {
        system.wait_log(&[role, "service=smtp"]);
    }
    // The machine of the session has refused this one without a question.
    system.wait_log(&["front refused", "reverse_path=huge@example.net"]);
}

/// What a client of ours may say, in one piece: pipelined commands, dots, a chunk, a refusal in between.
pub(crate) const TALK: &[u8] = b"EHLO client.example\r\nNOOP\r\nMAIL FROM:<a@example.net> BODY=8BITMIME\r\n\
    RCPT TO:<nobody@example.org>\r\nRCPT TO:<alice@example.org>\r\nRCPT TO:<bob@example.com>\r\nDATA\r\n\
    Subject: cut\r\n\r\n..dots\r\n.\r\nMAIL FROM:<>\r\nRCPT TO:<alice@example.org>\r\n\
    BDAT 5\r\nSubjeBDAT 9 LAST\r\nct: x\r\n\r\nRSET\r\nQUIT\r\n";

/// Says the talk in two pieces, and returns all replies without the names of messages.
fn talk(address: SocketAddr, split: usize) -> String {
    let session = Session::connect(address);
    session.socket().set_nodelay(true).expect("no delay");
    say_in_two(session, split)
}

/// Says the talk in two pieces behind a greeting.
pub(crate) fn say_in_two(mut session: Session, split: usize) -> String {
    let (first, second) = TALK.split_at(split);
    session.send(first);
    std::thread::sleep(Duration::from_millis(5));
    session.send(second);
    let replies = session.rest();
    let line = |line: &str| match line.split_once("queued as ") {
        Some((before, _)) => format!("{before}queued"),
        None => line.to_owned(),
    };
    // The front offers no authentication.
    let lines = replies.lines().filter(|line| !line.starts_with("250-AUTH"));
    lines.map(line).collect::<Vec<_>>().join("\n")
}

/// Every octet is said once and answered once, wherever the front gives the session away.
#[test]
fn a_session_cut_at_any_octet_says_the_same() {
    let plain = System::start(&Options::default().set("relay.networks", "[]"));
    let expected = talk(plain.smtp, 0);
    assert_has(&expected, &["550 5.1.1", "550 5.7.1", "queued", "221"]);
    drop(plain);
    let system = System::start(&without_rates(for_strangers()));
    cut_everywhere(&expected, |split| talk(system.smtp, split));
}

/// Says the talk cut at each octet.
pub(crate) fn cut_everywhere(expected: &str, talk: impl Fn(usize) -> String + Sync) {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(BTreeSet::new()));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let split = next.fetch_add(1, Ordering::Relaxed);
                    if split > TALK.len() {
                        return;
                    }
                    let said = talk(split);
                    if said != expected {
                        wrong.lock().expect("no panic").insert((split, said));
                    }
                }
            });
        }
    });
    assert_eq!(
        wrong.into_inner().expect("no panic"),
        BTreeSet::new(),
        "{expected}"
    );
}

/// Sends one message; returns whether it was acknowledged.
pub(crate) fn try_send(address: SocketAddr, subject: &str) -> Option<()> {
    let mut session = Session::try_connect(address).ok()?;
    session.set_patience(PATIENCE);
    try_send_over(&mut session, subject)
}

/// Says a command; returns whether the reply has the code.
pub(crate) fn try_say(session: &mut Session, line: &str, code: &str) -> Option<()> {
    session.try_send(format!("{line}\r\n").as_bytes()).ok()?;
    let reply = session.try_reply().ok()?;
    reply.starts_with(code).then_some(())
}

/// Sends one message in a session without a greeting; returns whether it was acknowledged.
pub(crate) fn try_send_over(session: &mut Session, subject: &str) -> Option<()> {
    let mut say = |line: &str, code: &str| try_say(session, line, code);
    say("EHLO client.example.net", "250")?;
    say("MAIL FROM:<a@example.net>", "250")?;
    say("RCPT TO:<alice@example.org>", "250")?;
    say("DATA", "354")?;
    say(&format!("Subject: {subject}\r\n\r\nbody\r\n."), "250")
}

#[test]
fn workers_that_are_killed_lose_nothing() {
    let system =
        System::start(&without_rates(for_strangers()).set("front.workers", many_workers()));
    killed_under_load(&system, |subject| try_send(system.smtp, subject));
}

/// How many messages are acknowledged at least while workers are killed.
const ACKNOWLEDGED_MIN: usize = 20;

/// Enough workers that some are alive: each pauses before it starts again.
pub(crate) fn many_workers() -> &'static str {
    if is_full() { "96" } else { "8" }
}

/// Workers are killed all the time, while clients send: no client waits for ever, and acknowledged mail is there.
pub(crate) fn killed_under_load(system: &System, try_send: impl Fn(&str) -> Option<()> + Sync) {
    let (kills, mut pause) = if is_full() { (3_000, 0) } else { (60, 40) };
    let start = Instant::now();
    let (enough, acked) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for client in 0..6 {
            let (try_send, enough, acked) = (&try_send, &enough, &acked);
            scope.spawn(move || {
                for number in 0.. {
                    if enough.load(Ordering::Relaxed) {
                        return;
                    }
                    let subject = format!("message {client}-{number}");
                    if try_send(&subject).is_some() {
                        acked.lock().expect("no panic").push(subject);
                    }
                }
            });
        }
        let mut killed = 0;
        // Where workers start slowly, no message comes between two kills: the kills go on with longer pauses.
        let enough_mail = || acked.lock().expect("no panic").len() > ACKNOWLEDGED_MIN;
        while killed < kills || (!enough_mail() && start.elapsed() < PATIENCE) {
            // The one that lives longest.
            if let Some(worker) = system.role_pids("worker").into_iter().min() {
                killed += u32::from(signal(worker, Signal::SIGKILL));
            }
            if killed > kills {
                pause = (2 * pause).clamp(1, 4_000);
            }
            std::thread::sleep(Duration::from_millis(pause));
        }
        enough.store(true, Ordering::Relaxed);
        let pace = f64::from(killed) / start.elapsed().as_secs_f64();
        eprintln!("{killed} workers killed, {pace:.0} a second");
    });
    let acked = acked.into_inner().expect("no panic");
    assert!(acked.len() > ACKNOWLEDGED_MIN, "{}", acked.len());
    wait_until("what was acknowledged", || {
        let mail = system.mail("alice").join("\n").replace("\r\n", "\n");
        acked
            .iter()
            .all(|subject| mail.contains(&format!("Subject: {subject}\n")))
    });
    assert_eq!(system.role_pids("front").len(), 1);
    try_send("the last").expect("it goes on");
}

#[test]
fn a_session_that_was_not_begun_goes_to_another_worker() {
    let system = System::start(&for_strangers().set("front.workers", "1"));
    saved_from_a_dead_worker(&system, || Session::greeted(system.smtp));
}

/// Sessions that a dead worker has not begun go to another, and the client notices nothing. The system has one worker.
pub(crate) fn saved_from_a_dead_worker(system: &System, greeted: impl Fn() -> Session) {
    let worker = wait_for("a worker", || system.role_pids("worker").first().copied());
    signal(worker, Signal::SIGSTOP);
    let mut session = greeted();
    session.command("MAIL FROM:<a@example.net>", "250");
    session.send(b"RCPT TO:<alice@example.org>\r\nDATA\r\n");
    // The stopped worker has the session in its queue.
    std::thread::sleep(Duration::from_millis(300));
    signal(worker, Signal::SIGKILL);
    session.expect("250 2.1.5");
    session.expect("354");
    session.send(b"Subject: saved\r\n\r\n.\r\n");
    session.expect("250 2.0.0");
}

/// A session that a dead worker has begun hears of it.
#[test]
fn a_session_that_was_begun_gets_421() {
    let system = System::start(&for_strangers());
    let mut session = Session::greeted(system.smtp);
    session.transaction("a@example.net", &["alice@example.org"]);
    wait_until("a worker to kill", || {
        system.signal_role("worker", Signal::SIGKILL) > 0
    });
    session.expect("421 4.3.0");
    let mut rest = Vec::new();
    let mut stream = session.socket();
    assert_eq!(stream.read_to_end(&mut rest).expect("the end"), 0);
}

#[test]
fn workers_are_replaced_after_their_sessions() {
    let options = for_strangers().set("front.sessions_per_worker", "3");
    let system = System::start(&options);
    let before = system.role_pids("worker");
    for number in 0..12 {
        try_send(system.smtp, &format!("number {number}")).expect("taken");
    }
    wait_until("other workers", || {
        let now = system.role_pids("worker");
        now.len() == 2 && now.iter().all(|pid| !before.contains(pid))
    });
    let log = system.log();
    assert!(!log.contains("worker ended"), "{log}");
}

#[test]
fn who_speaks_before_the_greeting_is_refused() {
    let system = System::start(&for_strangers().set("front.banner_delay", "\"1s\""));
    let mut stream = TcpStream::connect(system.smtp).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream.write_all(b"EHLO bot.example\r\n").expect("taken");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("the reply");
    assert!(said.starts_with("554 5.5.0"), "{said}");
    // A client that waits is greeted, and next time at once.
    try_send(system.smtp, "patient").expect("taken");
    let began = std::time::Instant::now();
    Session::connect(system.smtp);
    assert!(began.elapsed() < Duration::from_millis(900));
}

/// Where every worker has as many sessions as it may, a recipient is put off, and taken when there is room again.
#[test]
fn full_workers_put_recipients_off() {
    let options = for_strangers()
        .set("front.workers", "1")
        .set("front.sessions_at_once", "2");
    let system = System::start(&options);
    let mut sessions: Vec<Session> = (0..2).map(|_| Session::greeted(system.smtp)).collect();
    for session in &mut sessions {
        session.transaction("a@example.net", &["alice@example.org"]);
    }
    let mut other = Session::greeted(system.smtp);
    other.command("MAIL FROM:<a@example.net>", "250");
    other.command("RCPT TO:<alice@example.org>", "451 4.3.2");
    sessions.clear();
    wait_until("room", || {
        other.send(b"RCPT TO:<alice@example.org>\r\n");
        other.reply().starts_with("250")
    });
}

/// The mode for comparison: a process for each connection, from the greeting on.
#[test]
fn a_worker_may_have_a_connection_from_its_greeting_on() {
    let options = for_strangers()
        .set("front.hand_over", "\"connected\"")
        .set("front.sessions_at_once", "1");
    let system = System::start(&options);
    // The front is ready with its first worker.
    let greeted = |_| {
        let mut session = wait_for("a worker", || Session::try_connect(system.smtp).ok());
        session.command("EHLO client.example.net", "250");
        session
    };
    let mut sessions: Vec<Session> = (0..2).map(greeted).collect();
    let mut third = String::new();
    let mut stream = TcpStream::connect(system.smtp).expect("a connection");
    stream.read_to_string(&mut third).expect("a reply");
    assert!(third.starts_with("421 4.3.2"), "{third}");
    for session in &mut sessions {
        session.command("MAIL FROM:<a@example.net>", "250");
        session.command("RCPT TO:<nobody@example.org>", "550 5.1.1");
        session.command("RSET", "250");
        session.submit(
            "a@example.net",
            &["alice@example.org"],
            "Subject: x\r\n\r\ny",
        );
    }
    system.wait_mail("alice", 2);
    drop(sessions);
    wait_until("room", || try_send(system.smtp, "again").is_some());
}

/// Refused recipients end a session, and an address that harvests hears no more.
#[test]
fn harvesters_are_turned_away() {
    let options = for_strangers()
        .set("front.refused_recipients_max", "3")
        .set("front.refused_recipients_per_hour", "5");
    let system = System::start(&options);
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<a@example.net>", "250");
    session.command("RCPT TO:<n1@example.org>", "550 5.1.1");
    session.command("RCPT TO:<n2@example.org>", "550 5.1.1");
    session.command("RCPT TO:<n3@example.org>", "550 5.1.1");
    session.expect("421");
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<a@example.net>", "250");
    session.command("RCPT TO:<n4@example.org>", "550 5.1.1");
    session.command("RCPT TO:<n5@example.org>", "550 5.1.1");
    drop(session);
    let mut refused = String::new();
    let mut stream = TcpStream::connect(system.smtp).expect("a connection");
    stream.shutdown(Shutdown::Write).expect("shut");
    stream.read_to_string(&mut refused).expect("a reply");
    assert!(refused.starts_with("421 4.7.0"), "{refused}");
}

/// An existing recipient buys a harvester nothing: one count holds in front and worker, and the address is charged for both.
#[test]
fn harvesters_are_turned_away_behind_a_recipient_that_exists() {
    let options = for_strangers()
        .set("front.refused_recipients_max", "4")
        .set("front.refused_recipients_per_hour", "6");
    let system = System::start(&options);
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<a@example.net>", "250");
    session.command("RCPT TO:<n1@example.org>", "550 5.1.1");
    session.command("RCPT TO:<alice@example.org>", "250");
    session.command("RCPT TO:<n2@example.org>", "550 5.1.1");
    session.command("RSET", "250");
    session.command("MAIL FROM:<a@example.net>", "250");
    session.command("RCPT TO:<n3@example.org>", "550 5.1.1");
    session.command("RCPT TO:<n4@example.org>", "550 5.1.1");
    session.expect("421 4.7.0");
    drop(session);
    let mut session = Session::greeted(system.smtp);
    session.transaction("a@example.net", &["alice@example.org"]);
    session.command("RCPT TO:<n5@example.org>", "550 5.1.1");
    session.command("RCPT TO:<n6@example.org>", "550 5.1.1");
    drop(session);
    // The end of a session is told behind the last reply.
    wait_until("an address that is turned away", || {
        let mut said = String::new();
        let mut stream = TcpStream::connect(system.smtp).expect("a connection");
        stream.shutdown(Shutdown::Write).expect("shut");
        stream.read_to_string(&mut said).expect("a reply");
        said.starts_with("421 4.7.0")
    });
}

/// The first attempt is put off, a later one taken, and a restart forgets nothing.
#[test]
fn unknown_clients_are_put_off_once() {
    let options = for_strangers()
        .set("front.greylist", "\"on\"")
        .set("front.greylist_delay", "\"1s\"");
    let system = System::start(&options);
    let attempt = |sender: &str| {
        let mut session = Session::greeted(system.smtp);
        session.command(&format!("MAIL FROM:<{sender}>"), "250");
        session.send(b"RCPT TO:<alice@example.org>\r\n");
        session.reply()
    };
    let first = attempt("a@example.net");
    assert!(first.starts_with("451 4.7.1"), "{first}");
    wait_until("the delay", || attempt("a@example.net").starts_with("250"));
    let front = system.role_pids("front")[0];
    signal(front, Signal::SIGTERM);
    wait_until("another front", || {
        system
            .role_pids("front")
            .first()
            .is_some_and(|pid| *pid != front)
    });
    assert!(attempt("a@example.net").starts_with("250"));
    let other = attempt("b@example.net");
    assert!(other.starts_with("451 4.7.1"), "{other}");
}

#[test]
fn refused_networks_get_no_greeting() {
    let options = for_strangers().set("front.refused_networks", "[\"127.0.0.0/8\"]");
    let system = System::start(&options.set("front.allowed_networks", "[\"127.0.0.1\"]"));
    let mut said = String::new();
    let mut stream = connect_from("127.0.0.9", system.smtp);
    stream.read_to_string(&mut said).expect("a reply");
    assert!(said.starts_with("554 5.7.1"), "{said}");
    try_send(system.smtp, "allowed").expect("taken");
}

/// A client that closes its side behind its last command is answered, and its place is free at once.
#[test]
fn half_closed_clients_leave_at_once() {
    let options = for_strangers().set("limits.connections_per_client_max", "2");
    let system = System::start(&options);
    for _ in 0..4 {
        let mut stream = TcpStream::connect(system.smtp).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        let mut greeting = [0; 4];
        stream.read_exact(&mut greeting).expect("a greeting");
        stream
            .write_all(b"EHLO a.example\r\nMAIL FROM:<a@example.net>\r\n")
            .expect("taken");
        stream.shutdown(Shutdown::Write).expect("shut");
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("the replies");
        assert!(said.ends_with("250 2.1.0 sender ok\r\n"), "{said}");
    }
}

/// The gateway dies while a client sends its text: the client hears of it, and no worker or descriptor is left behind.
#[test]
fn a_gateway_that_dies_amid_a_message_leaves_nothing_behind() {
    let system = System::start(&for_strangers());
    let mut session = Session::greeted(system.smtp);
    session.envelope("a@example.net", &["alice@example.org"]);
    session.send(b"Subject: lost\r\n");
    let workers = system.role_pids("worker");
    assert_eq!(system.signal_role("gateway", Signal::SIGKILL), 1);
    std::thread::sleep(Duration::from_millis(100));
    session.send(b"\r\n.\r\n");
    let reply = session.reply();
    assert!(reply.starts_with('4'), "{reply}");
    drop(session);
    wait_until("other workers", || {
        let now = system.role_pids("worker");
        now.len() == 2 && now.iter().all(|worker| !workers.contains(worker))
    });
    wait_until("mail again", || try_send(system.smtp, "behind").is_some());
    let gateway = system.role_pids("gateway")[0];
    let before = descriptors(gateway);
    for _ in 0..3 {
        for worker in system.role_pids("worker") {
            signal(worker, Signal::SIGKILL);
        }
        wait_until("mail again", || try_send(system.smtp, "behind").is_some());
    }
    wait_until("descriptors that are closed", || {
        system.role_pids("worker").len() == 2 && descriptors(gateway) <= before + 1
    });
}

/// A worker that is stuck is ended, and its sessions hear of it.
#[test]
fn a_worker_that_stands_still_is_replaced() {
    let system = System::start(&for_strangers());
    let mut session = Session::greeted(system.smtp);
    session.transaction("a@example.net", &["alice@example.org"]);
    let workers = system.role_pids("worker");
    for worker in &workers {
        signal(*worker, Signal::SIGSTOP);
    }
    session.expect("421 4.3.0");
    wait_until("other workers", || {
        let now = system.role_pids("worker");
        now.len() == 2 && now.iter().all(|worker| !workers.contains(worker))
    });
    try_send(system.smtp, "again").expect("taken");
}

/// Without a gateway the front takes no mail, and takes it again when there is one.
#[test]
fn a_gateway_that_is_replaced_stops_mail_for_a_moment() {
    let system = System::start(&for_strangers());
    try_send(system.smtp, "before").expect("taken");
    assert_eq!(system.signal_role("gateway", Signal::SIGKILL), 1);
    wait_until("mail again", || try_send(system.smtp, "behind").is_some());
    for role in ["broker", "workers", "front"] {
        let pid = system.role_pids(role)[0];
        signal(pid, Signal::SIGKILL);
        wait_until("another process", || {
            system
                .role_pids(role)
                .first()
                .is_some_and(|other| *other != pid)
        });
        wait_until("mail again", || try_send(system.smtp, role).is_some());
    }
}

/// proc_pid_status(5) says what the kernel enforces.
#[test]
fn workers_are_in_a_sandbox() {
    let system = System::start(&for_strangers());
    try_send(system.smtp, "one").expect("taken");
    for worker in system.role_pids("worker") {
        let path = format!("/proc/{worker}/status");
        // It may have just been started.
        wait_until("a sandbox", || {
            let status = std::fs::read_to_string(&path).expect("status");
            let in_part = system.log().contains("worker is confined in part");
            let has = |line| status.contains(line);
            (in_part || has("Seccomp:\t2"))
                && has("NoNewPrivs:\t1")
                && has("CapEff:\t0000000000000000")
        });
        let links = Path::new("/proc").join(worker.to_string()).join("fd");
        let files = std::fs::read_dir(links).expect("descriptors").flatten();
        let names = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        let files: Vec<_> = names.filter(|name| name.starts_with("/tmp/vere")).collect();
        assert!(files.is_empty(), "{files:?}");
    }
}

#[test]
fn scripts_pass_through_the_front() {
    let sink = Sink::start();
    let authority = Authority::new();
    let files = authority.sign("mx", &["mx.example.org"]);
    let options = Options::to(sink.address).set("priority.networks", "[\"127.0.0.0/8\"]");
    let system = System::start(&with_front(options).certificate(&files));
    system.add_script_accounts();
    let passed = scripts::run_all(&scripts::target(&system, &["relay", "priority", "tls"]));
    assert!(passed.len() > 15, "only {passed:?} ran");
}

#[test]
fn nothing_is_smuggled_through_the_front() {
    let sink = Sink::start();
    smuggling::only_the_right_end_ends(&with_front(Options::to(sink.address)), &sink);
}
