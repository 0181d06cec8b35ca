//! Extensions from the client through the queue to the next hop, and the outcome where the next hop lacks the
//! extension.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;

use vere_bench::sink::{RunningSink, SaveMode, SinkOptions};

use crate::harness::{
    Authority, Manners, Mx, Options, Session, Sink, System, assert_has, quoted, read_all, unfold,
    wait_for,
};

/// A sink with only the given extensions, and its directory.
fn sink_with(extensions: &[&str]) -> (RunningSink, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let options = SinkOptions {
        save: Some(folder.path().to_owned()),
        mode: SaveMode::Folder,
        extensions: extensions.iter().map(|&name| name.to_owned()).collect(),
        ..SinkOptions::default()
    };
    (RunningSink::start(options).expect("a sink"), folder)
}

/// A system that sends mail of each domain to its sink, and a session with it.
fn routed(able: &RunningSink, unable: &RunningSink) -> (System, Session) {
    let options = Options::default()
        .route("able.example", able.handle().address(), "")
        .route("unable.example", unable.handle().address(), "");
    let system = System::start(&options);
    let session = Session::greeted(system.smtp);
    (system, session)
}

#[test]
fn binary_text_goes_to_who_takes_it_and_back_otherwise() {
    let (able, folder) = sink_with(&["CHUNKING", "BINARYMIME", "PIPELINING"]);
    let (unable, nothing) = sink_with(&["8BITMIME", "CHUNKING"]);
    let (system, mut session) = routed(&able, &unable);
    let mut text = b"Subject: binary\r\nContent-Transfer-Encoding: binary\r\n\r\n".to_vec();
    // Every octet, ends of lines of every kind, an end of DATA.
    text.extend(0..=255);
    text.extend_from_slice(b"\n\r\n.\r\nQUIT\r\n\r");
    for domain in ["able.example", "unable.example"] {
        session.command("MAIL FROM:<alice@example.org> BODY=BINARYMIME", "250");
        session.command(&format!("RCPT TO:<x@{domain}>"), "250");
        session.command("DATA", "503 5.5.1");
        let (first, second) = text.split_at(100);
        session.send(format!("BDAT {}\r\n", first.len()).as_bytes());
        session.send(first);
        session.send(format!("BDAT {} LAST\r\n", second.len()).as_bytes());
        session.send(second);
        session.expect("250 2.0.0");
        session.expect("250 2.0.0 queued");
    }
    let arrived = wait_for("the binary message", || {
        let mut files = std::fs::read_dir(folder.path()).ok()?.flatten();
        let file = files.find(|file| file.path().extension().is_some_and(|end| end == "eml"));
        std::fs::read(file?.path()).ok()
    });
    assert!(
        arrived.ends_with(&text),
        "{}",
        String::from_utf8_lossy(&arrived)
    );
    let report = &system.wait_mail("alice", 1)[0];
    assert!(report.contains("Status: 5.6."), "{report}");
    assert_has(report, &["Final-Recipient: rfc822; x@unable.example\n"]);
    system.wait_empty();
    assert_eq!(read_all(nothing.path()).len(), 0);
}

#[test]
fn addresses_in_utf8_go_to_who_takes_them_and_back_otherwise() {
    let (able, folder) = sink_with(&["SMTPUTF8", "8BITMIME"]);
    let (unable, nothing) = sink_with(&["8BITMIME"]);
    let (system, mut session) = routed(&able, &unable);
    session.command("MAIL FROM:<alice@example.org>", "250");
    session.command("RCPT TO:<jörg@able.example>", "553 5.6.7");
    session.command("RSET", "250");
    for domain in ["able.example", "unable.example"] {
        session.command(
            "MAIL FROM:<alice@example.org> SMTPUTF8 BODY=8BITMIME",
            "250",
        );
        session.command(&format!("RCPT TO:<jörg@{domain}>"), "250");
        session.command("DATA", "354");
        session.command("Subject: grüße\r\n\r\nbody\r\n.", "250");
    }
    let text = wait_for("the message in UTF-8", || read_all(folder.path()).pop());
    assert_has(&text, &["X-Envelope-To: <jörg@able.example>\r\n"]);
    assert!(text.contains("\r\nSubject: grüße\r\n"), "{text}");
    let report = &system.wait_mail("alice", 1)[0];
    assert!(report.contains("Status: 5.6.9\n"), "{report}");
    system.wait_empty();
    assert_eq!(read_all(nothing.path()).len(), 0);
}

#[test]
fn success_is_reported_where_it_was_asked_for() {
    let (able, folder) = sink_with(&["DSN", "ENHANCEDSTATUSCODES"]);
    let (unable, _nothing) = sink_with(&[]);
    let (system, mut session) = routed(&able, &unable);
    session.command(
        "MAIL FROM:<alice@example.org> RET=HDRS ENVID=QQ314159",
        "250",
    );
    // The next hop takes the request over; the second cannot, so we report that we relayed; the third
    // is ours; the fourth is not to be told of.
    for recipient in [
        "x@able.example> NOTIFY=SUCCESS",
        "x@unable.example> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;orig@unable.example",
        "bob@example.org> NOTIFY=SUCCESS",
        "y@unable.example> NOTIFY=NEVER",
    ] {
        session.command(&format!("RCPT TO:<{recipient}"), "250");
    }
    session.command("DATA", "354");
    session.command("Subject: asked\r\n\r\nsecret body\r\n.", "250");
    let reports = system.wait_mail("alice", 2);
    let about = |recipient: &str| {
        let field = format!("Final-Recipient: rfc822; {recipient}\n");
        reports.iter().find(|report| report.contains(&field))
    };
    let relayed = about("x@unable.example").expect("a report");
    let parts = [
        "Action: relayed\n",
        "Original-Recipient: rfc822; orig@unable.example\n",
        "Original-Envelope-Id: QQ314159\n",
        "Subject: asked\n",
    ];
    assert_has(relayed, &parts);
    assert!(
        !relayed.contains("secret body"),
        "only the header: {relayed}"
    );
    let delivered = about("bob@example.org").expect("a report");
    assert!(delivered.contains("Action: delivered\n"), "{delivered}");
    assert!(about("x@able.example").is_none() && about("y@unable.example").is_none());
    wait_for("the message", || read_all(folder.path()).pop());
    system.wait_empty();
}

#[test]
fn we_authenticate_at_a_next_hop_that_wants_it() {
    let authority = Authority::new();
    let files = authority.sign("mx", &["hub.example.net"]);
    // The next hop is a Veredarius that lets only its users relay.
    let sink = Sink::start();
    let hub = System::start(
        &Options::to(sink.address)
            .certificate(&files)
            .unset("relay.networks")
            .unset("auth.plaintext_networks"),
    );
    let port = hub.submission.port();
    let route = |password: &str| {
        Options::default()
            .set("delivery.ca", &quoted(&authority.ca))
            .record("hub.example.net A 127.0.0.1")
            .route(
                "*",
                format!("hub.example.net:{port}"),
                &format!(
                    "tls = \"required\"\nusername = \"alice@example.org\"\npassword = \"{password}\""
                ),
            )
    };
    let system = System::start(&route("wrong"));
    system.submit_about("alice@example.org", &["x@example.com"], "authenticated");
    // A wrong password is a matter for the operator, not a reason to return mail.
    system.wait_last_reply("535");
    assert_eq!(system.queued(), 1);
    system.reconfigure(&route("secret"));
    let text = &sink.wait_mail(1)[0];
    assert!(text.contains("with ESMTPSA"), "{text}");
    system.wait_empty();
}

/// An LMTP server for a single message: accepts recipients, and after the text answers for each recipient, 550 for
/// addresses with `bad`.
fn lmtp_server() -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let serve = move || {
        let (stream, _) = listener.accept().expect("a connection");
        let mut writer = stream.try_clone().expect("the stream");
        let mut say = |line: &str| {
            writer
                .write_all(format!("{line}\r\n").as_bytes())
                .expect("it reads");
        };
        say("220 store.example LMTP");
        let mut dialogue = String::new();
        let mut recipients: Vec<String> = Vec::new();
        let mut in_text = false;
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { break };
            dialogue.push_str(&line);
            dialogue.push('\n');
            match line.split(' ').next().unwrap_or_default() {
                "." if in_text => {
                    in_text = false;
                    for recipient in recipients.drain(..) {
                        let is_bad = recipient.contains("bad");
                        say(if is_bad {
                            "550 5.2.1 closed"
                        } else {
                            "250 2.1.5 kept"
                        });
                    }
                }
                _ if in_text => {}
                "LHLO" => say("250-store.example\r\n250 PIPELINING"),
                "RCPT" => {
                    recipients.push(line);
                    say("250 2.1.5 ok");
                }
                "DATA" => {
                    in_text = true;
                    say("354 go on");
                }
                "QUIT" => {
                    say("221 2.0.0 bye");
                    break;
                }
                _ => say("250 2.0.0 ok"),
            }
        }
        dialogue
    };
    (address, std::thread::spawn(serve))
}

#[test]
fn a_mailbox_server_answers_for_each_recipient_by_lmtp() {
    let (address, server) = lmtp_server();
    let options = Options::default()
        .route("example.com", address, "protocol = \"lmtp\"")
        .set("delivery.messages_per_connection_max", "1");
    let system = System::start(&options);
    system.submit(
        "alice@example.org",
        &["good@example.com", "bad@example.com", "fine@example.com"],
        "Subject: by LMTP\r\n\r\n..dot",
    );
    let report = &system.wait_mail("alice", 1)[0];
    assert_has(report, &["Final-Recipient: rfc822; bad@example.com\n"]);
    assert!(!report.contains("good@example.com\nAction"), "{report}");
    system.wait_empty();
    let dialogue = server.join().expect("the server");
    assert!(dialogue.starts_with("LHLO mx.example.org\n"), "{dialogue}");
    assert!(dialogue.contains("\n..dot\n.\n"), "{dialogue}");
}

#[test]
fn urgent_messages_leave_first_and_next_hops_are_told_also_after_a_kill() {
    let hop = Mx::start(Manners {
        keywords: &["MT-PRIORITY"],
        ..Manners::default()
    });
    let options = Options::to(hop.address)
        .set("priority.networks", "[\"127.0.0.0/8\"]")
        .set("priority.policy", "\"mixer\"")
        .set("delivery.connections_per_destination_max", "1");
    let mut system = System::start(&options);
    let destination = format!("relay:{}", hop.address);
    system.command(&["queue", "hold", &destination]);
    let mut session = Session::greeted(system.smtp);
    let keywords = session.command("EHLO client", "250");
    assert!(keywords.contains("MT-PRIORITY MIXER"), "{keywords}");
    for parameter in ["", " MT-PRIORITY=-4", " MT-PRIORITY=6"] {
        let mail = format!("MAIL FROM:<alice@example.org>{parameter}");
        session.command(&mail, "250 2.1.0");
        session.command("RCPT TO:<x@example.com>", "250");
        session.command("DATA", "354");
        session.send(b"A: b\r\n\r\nc\r\n.\r\n");
        session.expect("250 2.0.0");
    }
    system.crash();
    let queue = system.wait_queue("the queue", |queue| queue["messages"] == 3);
    let wanted = serde_json::json!({"-4": 1, "0": 1, "6": 1});
    assert_eq!(queue["priorities"], wanted);
    let shown = system.command(&["queue", "show", &destination]);
    assert!(shown.contains("priority 6\n"), "{shown}");
    system.command(&["queue", "release", &destination]);
    let seen = hop.wait_messages(3);
    let mails: Vec<_> = (seen.last().iter())
        .flat_map(|seen| seen.commands.iter())
        .filter(|line| line.starts_with("MAIL"))
        .map(|line| {
            line.split_once("MT-PRIORITY")
                .map_or("", |(_, value)| value)
        })
        .collect();
    assert_eq!(mails, ["=6", "", "=-4"], "{seen:#?}");
    let last = seen.last().map(|seen| seen.text.as_str());
    let traced = last.is_some_and(|text| unfold(text).contains("priority -4;"));
    assert!(traced, "{seen:#?}");
}
