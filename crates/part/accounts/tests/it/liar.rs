//! Servers that lie, refuse, or ask for patience.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use vere_ports::mail_accounts::{Answer, Fault, Request, Urgency};

use crate::harness::{Volume, append, commit, list, mail, read, remove, run, settings};

/// A server that accepts every login and every APPEND, and takes the answer to any other command from `say`, without
/// the tag of the last line.
pub(crate) fn server(say: impl Fn(&str) -> String + Send + Sync + 'static) -> SocketAddr {
    server_with("", say)
}

/// The same with further capabilities.
pub(crate) fn server_with(
    further: &'static str,
    say: impl Fn(&str) -> String + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let say = Arc::new(say);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let say = Arc::clone(&say);
            // The client ends connections of liars.
            std::thread::spawn(move || drop(converse(&stream, further, say.as_ref())));
        }
    });
    address
}

fn converse(
    mut stream: &TcpStream,
    further: &str,
    say: &dyn Fn(&str) -> String,
) -> std::io::Result<()> {
    let able = format!("IMAP4rev1 AUTH=PLAIN SASL-IR LITERAL+ UIDPLUS NAMESPACE {further}");
    let able = able.trim_end();
    let mut reader = BufReader::new(stream.try_clone()?);
    stream.write_all(format!("* OK [CAPABILITY {able}] hello\r\n").as_bytes())?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let (tag, command) = line.trim_end().split_once(' ').unwrap_or(("", ""));
        // Each literal is followed by the rest of the command, perhaps with a further literal.
        let mut part = command.to_owned();
        while let Some(octets) = part
            .trim_end()
            .strip_suffix("+}")
            .and_then(|rest| rest.rsplit('{').next())
        {
            let octets: u64 = octets.parse().expect("a number");
            std::io::copy(&mut (&mut reader).take(octets), &mut std::io::sink())?;
            part.clear();
            reader.read_line(&mut part)?;
        }
        let said = match command.split(' ').next().unwrap_or_default() {
            "AUTHENTICATE" => format!("OK [CAPABILITY {able}] in"),
            "NAMESPACE" => "* NAMESPACE ((\"\" \"/\")) NIL NIL\r\nOK".to_owned(),
            _ => say(command),
        };
        let (before, last) = said.rsplit_once('\n').unwrap_or(("", &said));
        let newline = if before.is_empty() { "" } else { "\n" };
        stream.write_all(format!("{before}{newline}{tag} {last}\r\n").as_bytes())?;
        line.clear();
    }
    Ok(())
}

const SELECTED: &str =
    "* 1 EXISTS\r\n* OK [UIDVALIDITY 5] x\r\n* OK [UIDNEXT 8] x\r\nOK [READ-WRITE] open";

/// The answer to a read of UID 7 of UIDVALIDITY 5, when the server says this to FETCH.
fn reading(said: &'static str) -> Result<Answer, Fault> {
    let address = server(move |command| match command.split(' ').next() {
        Some("SELECT") => SELECTED.to_owned(),
        _ => said.to_owned(),
    });
    let mut answer = Ok(Answer::Gone);
    run(async {
        let mut volume = Volume::at(address, 2);
        answer = volume.ask(read("data", (5, 7), &[(0, 4)])).await;
    });
    answer
}

#[test]
fn wrong_parts_are_refused() {
    let honest = reading("* 1 FETCH (UID 7 BODY[TEXT]<0> {4}\r\nabcd)\r\nOK");
    assert_eq!(honest, Ok(Answer::Read(vec!["abcd".into()])));
    assert_eq!(reading("OK"), Ok(Answer::Gone));
    // Another mail, another part, flags of this one: no answer to the question.
    assert_eq!(
        reading("* 1 FETCH (UID 6 BODY[TEXT]<0> {4}\r\nabcd)\r\nOK"),
        Ok(Answer::Gone)
    );
    assert_eq!(
        reading("* 1 FETCH (UID 7 BODY[TEXT]<1> {4}\r\nabcd)\r\nOK"),
        Ok(Answer::Gone)
    );
    assert_eq!(
        reading("* 1 FETCH (UID 7 FLAGS (\\Seen))\r\nOK"),
        Ok(Answer::Gone)
    );
    let long = reading("* 1 FETCH (UID 7 BODY[TEXT]<0> {5}\r\nabcde)\r\nOK");
    assert!(matches!(long, Err(Fault::Refused(_))), "{long:?}");
    for broken in [
        "* 1 FETCH (UID 7 BODY[TEXT]<0> {999999999999}\r\nabcde)\r\nOK",
        "* 1 FETCH (UID 7 BODY[TEXT]<0> {4}\r\nabcd",
        "* 1 FETCH ((((((\r\nOK",
        "* BYE enough\r\nOK",
    ] {
        let broken = reading(broken);
        assert!(matches!(broken, Err(Fault::Unreachable(_))), "{broken:?}");
    }
}

#[test]
fn nothing_is_removed_from_a_mailbox_with_other_uids() {
    let stored = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = std::sync::Arc::clone(&stored);
    let address = server(move |command| {
        if command.starts_with("UID STORE") {
            flag.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        match command.starts_with("SELECT") {
            true => SELECTED.to_owned(),
            false => "OK".to_owned(),
        }
    });
    run(async {
        let mut volume = Volume::at(address, 2);
        let renumbered = Err(Fault::Renumbered {
            expected: 4,
            found: 5,
        });
        assert_eq!(volume.ask(remove("data", 4, &[7])).await, renumbered);
        assert_eq!(volume.ask(read("data", (4, 7), &[])).await, renumbered);
    });
    assert!(!stored.load(std::sync::atomic::Ordering::Relaxed));
}

#[test]
fn refusals_have_names() {
    for (said, check) in [
        (
            "NO [OVERQUOTA] full",
            (|fault| matches!(fault, Fault::OverQuota(_))) as fn(Fault) -> bool,
        ),
        ("NO [TOOBIG] long", |fault| {
            matches!(fault, Fault::TooBig(..))
        }),
        ("NO [READ-ONLY] no", |fault| {
            matches!(fault, Fault::ReadOnly(_))
        }),
        ("NO no", |fault| matches!(fault, Fault::Refused(_))),
        ("BAD what", |fault| matches!(fault, Fault::Refused(_))),
        (
            "NO Request is throttled. Suggested Backoff Time: 700 milliseconds",
            |fault| matches!(fault, Fault::Throttled(_, 700)),
        ),
        ("NO [LIMIT] wait", |fault| {
            matches!(fault, Fault::Throttled(_, 1_000))
        }),
    ] {
        let address = server(move |_| said.to_owned());
        run(async {
            let mut volume = Volume::at(address, 2);
            let answer = volume.ask(append("data", &mail("x", b"y"))).await;
            assert!(check(answer.clone().expect_err(said)), "{said}: {answer:?}");
        });
    }
    // APPENDUID with more UIDs than mails is no answer about UIDs.
    let address = server(|_| "OK [APPENDUID 5 1:4294967295] stored".to_owned());
    run(async {
        let mut volume = Volume::at(address, 2);
        let answer = volume.ask(append("data", &mail("x", b"y"))).await;
        assert_eq!(answer, Ok(Answer::Appended(None)));
    });
}

/// A throttled account is left alone for the time that the account asks for.
#[test]
fn patience_is_kept() {
    let address = server(|command| match command.starts_with("SELECT") {
        true => "NO [UNAVAILABLE] Suggested Backoff Time: 1500 milliseconds".to_owned(),
        false => "BAD no mailbox".to_owned(),
    });
    run(async {
        let mut volume = Volume::at(address, 2);
        let answer = volume.ask(list("log", 1, None)).await;
        assert!(
            matches!(answer, Err(Fault::Throttled(_, 1_500))),
            "{answer:?}"
        );
        let begin = Instant::now();
        let id = volume.send(Urgency::Waited, Request::Mailboxes);
        assert!(matches!(volume.wait(id).await, Err(Fault::Refused(_))));
        assert!(
            begin.elapsed() > Duration::from_millis(1_000),
            "{:?}",
            begin.elapsed()
        );
    });
}

/// A wish for more patience than a request has is told at once: a replica may serve.
#[test]
fn a_long_wish_for_patience_is_told_to_every_request() {
    let address = server(|command| match command.starts_with("SELECT") {
        true => "NO [UNAVAILABLE] Suggested Backoff Time: 3600000 milliseconds".to_owned(),
        false => "OK".to_owned(),
    });
    run(async {
        let mut volume = Volume::at(address, 2);
        let begin = Instant::now();
        for request in [list("log", 1, None), Request::Mailboxes, Request::Quota] {
            let answer = volume.ask(request).await;
            let told = |millis: &u64| (3_590_000..=3_600_000).contains(millis);
            assert!(
                matches!(&answer, Err(Fault::Throttled(_, millis)) if told(millis)),
                "{answer:?}"
            );
        }
        let took = begin.elapsed();
        assert!(took < Duration::from_secs(5), "{took:?}");
    });
}

/// A connection that watches a mailbox serves no request: requests do not wait for a login that fails for ever.
#[test]
fn requests_do_not_wait_for_ever_beside_a_watch() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let refuses = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (own, first) = (Arc::clone(&refuses), Arc::new(std::sync::Mutex::new(None)));
    let lead = Arc::clone(&first);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if own.load(Ordering::Relaxed) {
                drop((&stream).write_all(b"* BYE Too many simultaneous connections\r\n"));
                continue;
            }
            let copy = stream.try_clone().expect("a descriptor");
            lead.lock().expect("a lock").get_or_insert(copy);
            std::thread::spawn(move || {
                converse(&stream, "", &|command| match command.split(' ').next() {
                    Some("SELECT") => SELECTED.to_owned(),
                    _ => "OK".to_owned(),
                })
            });
        }
    });
    run(async {
        let mut own = settings(address, 2);
        own.times.wait = Duration::from_secs(2);
        let mut volume = Volume::new(own);
        let answer = volume.ask(append("data", &mail("x", b"y"))).await;
        assert_eq!(answer, Ok(Answer::Appended(None)));
        let mailbox = "log".to_owned();
        assert_eq!(
            volume.ask(Request::Watch { mailbox }).await,
            Ok(Answer::Changed)
        );
        refuses.store(true, Ordering::Relaxed);
        let lead = first.lock().expect("a lock").take().expect("a connection");
        lead.shutdown(std::net::Shutdown::Both).expect("an end");
        let begin = Instant::now();
        // The first one may be on the way when the connection ends.
        for _ in 0..2 {
            let answer = volume.ask(append("data", &mail("x", b"y"))).await;
            assert!(answer.is_err(), "{answer:?}");
        }
        let took = begin.elapsed();
        assert!(took < Duration::from_secs(10), "{took:?}");
    });
}

/// A server that admits a single connection serves everything over one connection.
#[test]
fn one_connection_is_enough() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            std::thread::spawn(move || match number {
                0 => drop(converse(&stream, "", &|_| "OK".to_owned())),
                _ => drop((&stream).write_all(b"* BYE Too many simultaneous connections\r\n")),
            });
        }
    });
    run(async {
        let mut volume = Volume::at(address, 4);
        let begin = Instant::now();
        for _ in 0..20 {
            let answer = volume.ask(append("data", &mail("x", b"y"))).await;
            assert_eq!(answer, Ok(Answer::Appended(None)));
        }
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "{:?}",
            begin.elapsed()
        );
    });
}

/// Connections of a server that accepts everything, counted.
fn counted() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let count = Arc::new(AtomicUsize::new(0));
    let own = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            own.fetch_add(1, Ordering::Relaxed);
            std::thread::spawn(move || drop(converse(&stream, "", &|_| "OK".to_owned())));
        }
    });
    (address, count)
}

/// A second connection would cost the first mails of a file several round trips.
#[test]
fn an_account_without_commits_needs_no_connection_for_commits() {
    let (address, connections) = counted();
    run(async {
        let mut volume = Volume::at(address, 4);
        for _ in 0..5 {
            let answer = volume.ask(append("data", &mail("x", b"y"))).await;
            assert_eq!(answer, Ok(Answer::Appended(None)));
        }
        assert_eq!(connections.load(Ordering::Relaxed), 1);
        // From the first commit on, commits have a connection of their own.
        let id = volume.send(Urgency::Commit, commit(&mail("c", b"d")));
        assert_eq!(volume.wait(id).await, Ok(Answer::Appended(None)));
        let answer = volume.ask(append("data", &mail("x", b"y"))).await;
        assert_eq!(answer, Ok(Answer::Appended(None)));
        assert_eq!(connections.load(Ordering::Relaxed), 2);
    });
}
