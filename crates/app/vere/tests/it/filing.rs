//! Destinations of mail: aliases, catch-alls and tags, over LMTP and SMTP, and the privacy of mailboxes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use nix::sys::signal::Signal;

use crate::harness::{Options, Session, System};
use crate::imap::{Imap, Ports, start_with_store, wait_messages, with_store};

const ALICE: &str = "alice@example.org";
const BOB: &str = "bob@example.org";

/// A system with two accounts, an alias for both, an alias with a tag, and a domain whose whole mail is alice's.
fn office() -> (System, Ports) {
    let (system, ports) = start_with_store(Options::default());
    system.command(&["alias", "add", "both@example.org", ALICE, BOB]);
    let lists = "alice+Lists@example.org";
    system.command(&["alias", "add", "lists@example.org", lists]);
    system.command(&["domain", "add", "all.example", "--catch-all", ALICE]);
    Imap::login(ports.imap, ALICE, "secret").ok("CREATE lists");
    (system, ports)
}

/// Hands a message over by LMTP; what is said of each recipient.
fn hand_over(lmtp: SocketAddr, to: &[&str], text: &str) -> Vec<String> {
    let mut session = Session::lmtp(lmtp);
    session.envelope("me@example.net", to);
    session.send(format!("{text}\r\n.\r\n").as_bytes());
    to.iter().map(|_| session.reply()).collect()
}

/// The messages of a mailbox with a given subject.
fn with_subject(ports: &Ports, user: &str, mailbox: &str, subject: &str) -> usize {
    let mut session = Imap::login(ports.imap, user, "secret");
    session.ok(&format!("EXAMINE {mailbox}"));
    let said = session.ok(&format!("SEARCH SUBJECT {subject}"));
    let found = said.lines().find(|line| line.starts_with("* SEARCH"));
    found.expect("an answer").split(' ').count() - 2
}

/// The recipients of a message, and the number of copies in each of alice's and bob's mailboxes.
const WAYS: [(&str, &[&str], [usize; 3]); 6] = [
    ("alias", &["both@example.org"], [1, 0, 1]),
    ("member", &["both@example.org", BOB], [1, 0, 1]),
    ("tag", &["lists@example.org"], [0, 1, 0]),
    (
        "folders",
        &["lists@example.org", ALICE, "alice+LISTS@example.org"],
        [1, 1, 0],
    ),
    ("catchall", &["nobody@all.example"], [1, 0, 0]),
    (
        "both",
        &["one@all.example", "two@all.example", ALICE],
        [1, 0, 0],
    ),
];

fn filed(ports: &Ports, subject: &str) -> [usize; 3] {
    [(ALICE, "INBOX"), (ALICE, "lists"), (BOB, "INBOX")]
        .map(|(user, mailbox)| with_subject(ports, user, mailbox, subject))
}

#[test]
fn lmtp_files_by_aliases_catch_alls_and_tags_once_for_each_mailbox() {
    let (_system, ports) = office();
    for (subject, to, expected) in WAYS {
        let text = format!("Subject: {subject}\r\n\r\ntext");
        for reply in hand_over(ports.lmtp, to, &text) {
            assert!(reply.starts_with("250 2."), "{subject}: {reply}");
        }
        assert_eq!(filed(&ports, subject), expected, "{subject}");
    }
    let mut session = Session::lmtp(ports.lmtp);
    session.command("MAIL FROM:<>", "250");
    session.command("RCPT TO:<nobody@example.org>", "550 5.1.1");
    session.command("RCPT TO:<nobody@elsewhere.example>", "5");
}

#[test]
fn smtp_files_by_aliases_catch_alls_and_tags_once_for_each_mailbox() {
    let (system, ports) = office();
    let mut session = Session::greeted(system.smtp);
    for (subject, to, _) in WAYS {
        session.submit(
            "me@example.net",
            to,
            &format!("Subject: {subject}\r\n\r\ntext"),
        );
    }
    let sum = |at: usize| WAYS.iter().map(|(_, _, filed)| filed[at]).sum();
    wait_messages(&ports, ALICE, "INBOX", sum(0));
    wait_messages(&ports, ALICE, "lists", sum(1));
    wait_messages(&ports, BOB, "INBOX", sum(2));
    system.wait_empty();
    for (subject, _, expected) in WAYS {
        assert_eq!(filed(&ports, subject), expected, "{subject}");
    }
}

#[test]
fn nobody_reaches_the_mailboxes_of_others() {
    let (_system, ports) = start_with_store(Options::default());
    let mut bob = Imap::login(ports.imap, BOB, "secret");
    bob.ok("CREATE Secret");
    bob.append("Secret", "Subject: bob's\r\n\r\ntext");
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    alice.append("INBOX", "Subject: alice's\r\n\r\ntext");
    for pattern in ["*", "%", "*Secret*", "*bob*"] {
        for list in ["LIST", "LSUB"] {
            let said = alice.ok(&format!("{list} \"\" \"{pattern}\""));
            assert!(!said.contains("Secret") && !said.contains("bob@"), "{said}");
        }
    }
    alice.ok("SELECT INBOX");
    for name in [
        "Secret",
        "bob@example.org/Secret",
        "/bob@example.org/Secret",
        "../bob@example.org/Secret",
        "user/bob@example.org/Secret",
        "user.bob.Secret",
        "#user/bob/Secret",
        "~bob/Secret",
        "\"Other Users/bob@example.org/Secret\"",
    ] {
        for command in [
            "EXAMINE @",
            "STATUS @ (MESSAGES)",
            "DELETE @",
            "RENAME @ mine",
        ] {
            // A command that opens a mailbox leaves no mailbox open after a refusal.
            let said = alice.command(&command.replace('@', name));
            assert!(said.contains(" NO "), "{command} {name}: {said}");
        }
        alice.ok("SELECT INBOX");
        for command in ["COPY 1 @", "MOVE 1 @", "APPEND @ {4+}\r\na: b"] {
            let said = alice.command(&command.replace('@', name));
            assert!(said.contains(" NO "), "{command} {name}: {said}");
        }
    }
    // Nor does a name of one's own lead there.
    alice.ok("CREATE Secret");
    assert_eq!(alice.exists("Secret"), 0);
    alice.ok("DELETE Secret");
    assert_eq!(bob.exists("Secret"), 1);
    assert_eq!(alice.exists("INBOX"), 1);
    // Alice's password and bob's name: alice NUL, in the order of RFC 4616, bob NUL alice NUL secret.
    let stream = std::net::TcpStream::connect(ports.imap).expect("the IMAP port");
    let said = Imap::greeted(stream)
        .command("AUTHENTICATE PLAIN Ym9iQGV4YW1wbGUub3JnAGFsaWNlQGV4YW1wbGUub3JnAHNlY3JldA==");
    assert!(said.contains(" NO [AUTHENTICATIONFAILED]"), "{said}");
}

#[test]
fn the_stores_folders_are_nobody_elses_business() {
    let (options, _ports) = with_store(Options::default());
    let mut system = System::start(&options);
    let store = system.directory.path().join("data/store");
    let folders = || -> Vec<PathBuf> {
        let below = ["", "log", "search"].map(|name| store.join(name));
        let open = |path: &PathBuf| {
            let about = std::fs::metadata(path).expect("a folder");
            about.permissions().mode() & 0o077 != 0
        };
        below.into_iter().filter(open).collect()
    };
    assert_eq!(folders(), Vec::<PathBuf>::new());
    // Directories of an older version are closed.
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o755)).expect("the mode");
    system.restart();
    assert_eq!(folders(), Vec::<PathBuf>::new());
}

/// A proxy to an LMTP server that withholds replies to messages until the test releases the replies.
struct Mute {
    address: SocketAddr,
    keeps: Arc<AtomicBool>,
}

impl Mute {
    fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let keeps = Arc::new(AtomicBool::new(true));
        let shared = Arc::clone(&keeps);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(server).expect("the server");
                let both = [&client, &server].map(|side| side.try_clone().expect("a descriptor"));
                let is_mute = Arc::new(AtomicBool::new(false));
                let (keeps, becomes_mute) = (Arc::clone(&shared), Arc::clone(&is_mute));
                let mut end = Vec::new();
                thread::spawn(move || {
                    hand_on(client, server, |octets| {
                        end.extend_from_slice(octets);
                        let is_message = end.ends_with(b"\r\n.\r\n");
                        becomes_mute.fetch_or(is_message && keeps.load(SeqCst), SeqCst);
                        true
                    });
                });
                let [client, server] = both;
                thread::spawn(move || hand_on(server, client, |_| !is_mute.load(SeqCst)));
            }
        });
        Self { address, keeps }
    }
}

/// Forwards the octets that `passes` accepts, until a side ends.
fn hand_on(mut from: TcpStream, mut to: TcpStream, mut passes: impl FnMut(&[u8]) -> bool) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if passes(&buffer[..count]) && to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}

/// The gateway is killed before the reply that the message is filed; the next gateway delivers the message once more.
#[test]
fn a_gateway_killed_between_filing_and_noting_it_files_nothing_twice() {
    let (office, ports) = office();
    office.command(&["domain", "add", "inner.example", "--catch-all", ALICE]);
    let mute = Mute::to(ports.lmtp);
    let options = Options::default().route("inner.example", mute.address, "protocol = \"lmtp\"");
    let system = System::start(&options);
    let text = "Subject: once\r\n\r\ntext";
    let id = system.submit("me@example.net", &["a@inner.example"], text);
    wait_messages(&ports, ALICE, "INBOX", 1);
    assert!(!system.log().contains("delivered"), "{}", system.log());
    mute.keeps.store(false, SeqCst);
    assert_eq!(system.signal_role("gateway", Signal::SIGKILL), 1);
    system.wait_log(&["delivered", &id]);
    assert_eq!(with_subject(&ports, ALICE, "INBOX", "once"), 1);
}

/// Two equal messages without the id of a server may well be two; with the id of a server both are a single message.
#[test]
fn the_same_message_is_filed_again_unless_a_server_named_it() {
    let (_system, ports) = office();
    let named = "Received: from a by mx.example.net with ESMTP id 7;\r\n\tTue, 24 Nov 2026 07:00:00 +0000\r\n";
    for (trace, subject, expected) in [("", "plain", 2), (named, "named", 1)] {
        for _ in 0..2 {
            let text = format!("{trace}Subject: {subject}\r\n\r\ntext");
            for reply in hand_over(ports.lmtp, &[ALICE, BOB], &text) {
                assert!(reply.starts_with("250 2."), "{subject}: {reply}");
            }
        }
        for user in [ALICE, BOB] {
            assert_eq!(
                with_subject(&ports, user, "INBOX", subject),
                expected,
                "{user}"
            );
        }
    }
}

#[test]
fn messages_are_found_by_the_day_of_dates_without_a_zone() {
    let (_system, ports) = office();
    let mut session = Imap::login(ports.imap, ALICE, "secret");
    for date in [
        "Sat, 14 Sep 2002 13:36:40",
        "Sat Sep 14 13:36:40 2002",
        "Sun, 15 Sep 2002 01:02:03 +0200",
        "no date",
    ] {
        session.append("INBOX", &format!("Date: {date}\r\n\r\ntext\r\n"));
    }
    session.ok("SELECT INBOX");
    for (key, expected) in [
        ("SENTON 14-Sep-2002", "* SEARCH 1 2"),
        ("SENTSINCE 14-Sep-2002", "* SEARCH 1 2 3"),
        ("SENTBEFORE 15-Sep-2002", "* SEARCH 1 2"),
    ] {
        let said = session.ok(&format!("SEARCH {key}"));
        assert!(said.lines().any(|line| line == expected), "{key}: {said}");
    }
}
