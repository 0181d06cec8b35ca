//! Recipients of other systems, which the broker asks before mail for them is accepted: Debian's Postfix, next hops that
//! hold still, systems that lead to each other.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use crate::front::for_strangers;
use crate::harness::{Options, PATIENCE, Session, System, free_address, wait_for, wait_until};
use crate::metrics::wait_lines;
use crate::peers::Postfix;

/// The processes of port 25 for strangers, with a route to a next hop that is asked.
fn asking(domain: &str, next_hop: SocketAddr, lines: &str) -> Options {
    let lines = format!("call_ahead = \"yes\"\n{lines}");
    for_strangers().route(domain, next_hop, &lines)
}

/// A connection in a transaction.
fn begun(system: &System) -> Session {
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<me@example.net>", "250");
    session
}

/// The reply to a recipient, in a separate connection.
fn reply_to(system: &System, recipient: &str) -> String {
    let mut session = begun(system);
    session.send(format!("RCPT TO:<{recipient}>\r\n").as_bytes());
    session.reply()
}

fn assert_reply(system: &System, recipient: &str, expected: &str) {
    let reply = reply_to(system, recipient);
    assert!(reply.starts_with(expected), "{recipient}: {reply}");
}

/// A Postfix that knows ann@example.com, whose mail it keeps, and bob@relay.test.
fn postfix(lines: &str) -> Option<Postfix> {
    Postfix::start(&format!(
        "virtual_mailbox_maps = inline:{{ann@example.com=box/}}\n\
         relay_domains = relay.test\n\
         relay_recipient_maps = inline:{{bob@relay.test=x}}\n\
         {lines}"
    ))
}

#[test]
fn postfix_decides_about_its_recipients() {
    let Some(postfix) = postfix("") else {
        return;
    };
    let endpoint = free_address();
    let next_hop = postfix.address;
    let options = asking("example.com", next_hop, "")
        .route("relay.test", next_hop, "call_ahead = \"yes\"\n")
        .set("metrics.front", &format!("\"{endpoint}\""));
    let system = System::start(&options);
    let mut session = begun(&system);
    session.command("RCPT TO:<nobody@example.com>", "550 5.1.1");
    session.command("RCPT TO:<ann@relay.test>", "550 5.1.1");
    session.command("RCPT TO:<x@elsewhere.test>", "550 5.7.1");
    session.command("RCPT TO:<ann@example.com>", "250 2.1.5");
    // A worker asks about the further recipients.
    session.command("RCPT TO:<eve@example.com>", "550 5.1.1");
    session.command("RCPT TO:<bob@relay.test>", "250 2.1.5");
    session.command("RCPT TO:<alice@example.org>", "250 2.1.5");
    session.command("RSET", "250");
    let text = "Subject: across\r\n\r\nbody";
    session.message("me@example.net", &["ann@example.com"], text);
    let arrived = wait_for("the message in Postfix's mailbox", || postfix.mail().pop());
    assert!(arrived.contains("\nSubject: across\n"), "{arrived}");
    system.wait_empty();
    system.wait_log(&["front refused", "nobody@example.com", "5.1.1"]);
    system.wait_log(&["worker refused", "eve@example.com", "5.1.1"]);
    wait_lines(
        endpoint,
        &[
            "vere_broker_calls_total{result=\"accepted\"} 2",
            "vere_broker_calls_total{result=\"refused\"} 3",
            "vere_broker_call_answers_total{source=\"called\"} 5",
            "vere_broker_call_answers_total{source=\"kept\"} 1",
            "vere_broker_call_answers_total{source=\"denied\"} 0",
        ],
    );
    // No report about a refused recipient, and no text of a call.
    assert_eq!(postfix.mail().len(), 1);
}

/// Postfix accepts every recipient of a domain without a list, and is asked about one of them.
#[test]
fn a_postfix_without_a_list_accepts_everybody() {
    let Some(postfix) = Postfix::start("") else {
        return;
    };
    let endpoint = free_address();
    let options =
        asking("example.com", postfix.address, "").set("metrics.front", &format!("\"{endpoint}\""));
    let system = System::start(&options);
    for number in 0..5 {
        assert_reply(&system, &format!("u{number}@example.com"), "250");
    }
    wait_lines(
        endpoint,
        &[
            "vere_broker_calls_total{result=\"accepted\"} 1",
            "vere_broker_call_answers_total{source=\"kept\"} 4",
        ],
    );
}

/// A route that demands TLS is asked with TLS or not at all.
#[test]
fn a_next_hop_without_the_tls_of_its_route_is_not_asked() {
    let Some(postfix) = postfix("") else {
        return;
    };
    let system = System::start(&asking(
        "example.com",
        postfix.address,
        "tls = \"required\"\n",
    ));
    assert_reply(&system, "ann@example.com", "450 4.4.1");
    system.wait_log(&[
        "next hop cannot be asked about recipients",
        "TLS is required",
    ]);
    // The last line of a session has the number of each command.
    let sessions = wait_for("the end of the session", || {
        let log = postfix.log();
        log.contains("ehlo=1").then_some(log)
    });
    assert!(!sessions.contains("rcpt="), "{sessions}");
}

#[test]
fn a_next_hop_that_is_away_is_treated_by_the_settings_of_now() {
    let away = free_address();
    let options = asking("example.com", away, "");
    let system = System::start(&options);
    assert_reply(&system, "ann@example.com", "450 4.4.1");
    system.wait_log(&["next hop cannot be asked about recipients"]);
    let accepting = options
        .clone()
        .set("front.call_ahead_unavailable", "\"accept\"");
    system.reconfigure(&accepting);
    wait_until("the other treatment", || {
        reply_to(&system, "bob@example.com").starts_with("250")
    });
    // A route without call-ahead is open to clients that may relay, and to nobody else.
    system.reconfigure(&for_strangers().route("example.com", away, ""));
    wait_until("a closed route", || {
        reply_to(&system, "eve@example.com").starts_with("550 5.7.1")
    });
    system.reconfigure(&options);
    wait_until("a route that is asked", || {
        reply_to(&system, "eve@example.com").starts_with("450 4.4.1")
    });
}

#[test]
fn clients_that_may_relay_are_accepted_without_a_call() {
    let Some(postfix) = postfix("") else {
        return;
    };
    let options =
        asking("example.com", postfix.address, "").set("relay.networks", "[\"127.0.0.0/8\"]");
    let system = System::start(&options);
    assert_reply(&system, "nobody@example.com", "250 2.1.5");
    assert!(
        !postfix.log().contains("NOQUEUE: reject"),
        "{}",
        postfix.log()
    );
}

/// A next hop whose replies to RCPT wait until the test opens its gate.
struct Gated {
    address: SocketAddr,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    recipients: Mutex<Vec<String>>,
}

impl Gated {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let address = listener.local_addr().expect("its address");
        let gate = Arc::new(Gate::default());
        let shared = Arc::clone(&gate);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let gate = Arc::clone(&shared);
                // A client that leaves is no failure of the test.
                std::thread::spawn(move || gate.serve(stream));
            }
        });
        Self { address, gate }
    }

    fn open(&self) {
        *self.gate.open.lock().expect("no panic") = true;
        self.gate.opened.notify_all();
    }

    fn times_asked_about(&self, recipient: &str) -> usize {
        let recipients = self.gate.recipients.lock().expect("no panic");
        let same = recipients.iter().filter(|one| one.contains(recipient));
        same.count()
    }
}

impl Gate {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut to = stream.try_clone()?;
        to.write_all(b"220 hop.example ESMTP\r\n")?;
        for line in BufReader::new(stream).lines() {
            let line = line?;
            let reply: &[u8] = match line.get(..4) {
                Some("RCPT") => {
                    self.recipients.lock().expect("no panic").push(line.clone());
                    let open = self.open.lock().expect("no panic");
                    let open = self.opened.wait_while(open, |open| !*open);
                    drop(open.expect("no panic"));
                    match line.contains("ann@") {
                        true => b"250 ok\r\n",
                        false => b"550 5.1.1 nobody\r\n",
                    }
                }
                Some("QUIT") => return to.write_all(b"221 bye\r\n"),
                _ => b"250 ok\r\n",
            };
            to.write_all(reply)?;
        }
        Ok(())
    }
}

#[test]
fn many_who_ask_share_a_call_and_delay_nobody_else() {
    const CLIENTS: usize = 10;
    let hop = Gated::start();
    let endpoint = free_address();
    let options = asking("example.com", hop.address, "")
        .set("front.call_ahead_timeout", "\"15s\"")
        .set("metrics.front", &format!("\"{endpoint}\""));
    let system = System::start(&options);
    let mut sessions: Vec<Session> = (0..CLIENTS).map(|_| begun(&system)).collect();
    for session in &mut sessions {
        session.send(b"RCPT TO:<ann@example.com>\r\n");
    }
    let shared = format!(
        "vere_broker_call_answers_total{{source=\"shared\"}} {}",
        CLIENTS - 1
    );
    wait_lines(endpoint, &[&shared]);
    // Behind the waiting questions, an answer about a local recipient would come only after the failed call.
    assert_reply(&system, "alice@example.org", "250 2.1.5");
    assert_reply(&system, "nobody@example.org", "550 5.1.1");
    hop.open();
    for session in &mut sessions {
        session.expect("250 2.1.5");
    }
    assert_eq!(hop.times_asked_about("<ann@example.com>"), 1);
    // Both processes ask one broker.
    sessions[0].command("RCPT TO:<bob@example.com>", "550 5.1.1");
    assert_reply(&system, "bob@example.com", "550 5.1.1");
    assert_eq!(hop.times_asked_about("<bob@example.com>"), 1);
}

/// A client that leaves while a call is under way leaves no trace but the result.
#[test]
fn clients_that_leave_meanwhile_disturb_nobody() {
    let hop = Gated::start();
    let options = asking("example.com", hop.address, "").set("front.call_ahead_timeout", "\"15s\"");
    let system = System::start(&options);
    for _ in 0..20 {
        let mut session = begun(&system);
        session.send(b"RCPT TO:<ann@example.com>\r\n");
    }
    let mut last = begun(&system);
    last.send(b"RCPT TO:<ann@example.com>\r\n");
    wait_until("a call", || hop.times_asked_about("<ann@example.com>") == 1);
    hop.open();
    let reply = last.reply();
    // Those who left may still have the share of the network; the client comes again then.
    if !reply.starts_with("250") {
        assert!(reply.starts_with("450 4.4.1"), "{reply}");
    }
    wait_until("an answer", || {
        reply_to(&system, "ann@example.com").starts_with("250 2.1.5")
    });
    assert_eq!(hop.times_asked_about("<ann@example.com>"), 1);
}

/// Each of two systems believes that the other one knows the recipients.
#[test]
fn systems_that_lead_to_each_other_come_to_an_end() {
    let first = System::start(&for_strangers());
    let timeout = ("front.call_ahead_timeout", "\"2s\"");
    let second = asking("loop.test", first.smtp, "").set(timeout.0, timeout.1);
    let second = System::start(&second);
    first.reconfigure(&asking("loop.test", second.smtp, "").set(timeout.0, timeout.1));
    wait_until("a route that is asked", || {
        !reply_to(&first, "x@loop.test").starts_with("550 5.7.1")
    });
    for system in [&first, &second] {
        assert_reply(system, "y@loop.test", "450 4.4.1");
        assert_reply(system, "alice@example.org", "250 2.1.5");
    }
}
