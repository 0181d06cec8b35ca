//! Import and export with other servers: over TLS, and with a lying server.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::ExitStatus;

use vere_bench::peer::PeerError;
use vere_bench::store::{MailPeer, SystemName};

use crate::harness::{Authority, Options, System, free_address, is_full, skip, wait_for};
use crate::imap::{Imap, start_with_store, with_store};
use crate::peers::Dovecot;

pub(crate) const ACCOUNT: &str = "alice@example.org";
const MESSAGE: &str = "Subject: one\r\n\r\nhello\r\n";

/// A file with the password of all accounts.
pub(crate) fn password(folder: &Path) -> String {
    let file = folder.join("password");
    fs::write(&file, "secret\n").expect("room");
    file.display().to_string()
}

/// Imports or exports so many messages.
pub(crate) fn carries(system: &System, command: &[&str], at: &[&str], count: usize) {
    let said = system.command(&[command, at].concat());
    let begin = format!("{count} messages (");
    assert!(said.starts_with(&begin), "{command:?}: {said}");
}

#[test]
fn accounts_are_reached_within_tls_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    let files = authority.sign("imap", &["localhost"]);
    let ca = authority.ca.display().to_string();
    let imaps = free_address();
    let (options, ports) = with_store(Options::default());
    let options = options
        .set("imaps.listen", &format!("[\"{imaps}\"]"))
        .certificate(&files);
    let system = System::start(&options);
    let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
    for number in 0..30 {
        let text = format!(
            "Subject: {number}\r\n\r\n{}\r\n",
            "x".repeat(number * 1_000)
        );
        alice.append("INBOX", &text);
    }
    let password = password(folder.path());
    let at = |scheme: &str, host: &str, port: u16| format!("{scheme}://{ACCOUNT}@{host}:{port}");
    for (number, (scheme, port)) in [("imap", ports.imap.port()), ("imaps", imaps.port())]
        .into_iter()
        .enumerate()
    {
        let place = at(scheme, "localhost", port);
        let into = format!("in{number}");
        let import = [
            "import",
            "-a",
            "bob@example.org",
            "--password-file",
            &password,
            "--into",
            &into,
        ];
        // An unknown CA, and a name missing from the certificate.
        for wrong in [
            vec![place.as_str()],
            vec!["--ca", &ca, &at(scheme, "127.0.0.1", port)],
        ] {
            let said = system.refused(&[&import[..], &wrong].concat());
            assert!(said.to_lowercase().contains("certificate"), "{said}");
            // The user of a private CA gets a hint.
            let hint = "(UnknownIssuer); --ca FILE names one that is trusted too";
            assert_eq!(said.contains(hint), wrong.len() == 1, "{said}");
        }
        carries(&system, &import, &["--ca", &ca, &place], 30);
        let mut bob = Imap::login(ports.imap, "bob@example.org", "secret");
        assert_eq!(bob.exists(&into), 30);
        // And back, into an account without mailboxes.
        let out = place.replace(ACCOUNT, "carol@example.org");
        if number == 0 {
            system.add_account("carol@example.org");
        }
        let export = ["export", "-a", "bob@example.org", "--only", &into];
        let there = ["--password-file", &password, "--ca", &ca, &out];
        carries(&system, &export, &there, 30);
        let mut carol = Imap::login(ports.imap, "carol@example.org", "secret");
        assert_eq!(carol.exists(&into), 30);
    }
    // Without a certificate there is no STARTTLS, and the password is not said.
    system.stop();
    let (system, ports) = start_with_store(Options::default());
    let place = at("imap", "localhost", ports.imap.port());
    let import = ["import", "-a", "bob@example.org", "--password-file"];
    let (code, said) =
        system.failing_command(&[&import[..], &[&password, "--ca", &ca, &place]].concat());
    assert_eq!(code, Some(1), "{said}");
}

/// The announced capabilities of the servers in these tests.
const ABLE: &str = "IMAP4rev1 AUTH=PLAIN SASL-IR BINARY";

/// A server's reaction to a command.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Sends this text, where characters up to U+00FF stand for octets, and OK.
    Done(String),
    /// Sends this tagged response, and nothing else.
    Ends(&'static str),
    /// Sends this text and closes the connection.
    Closes(&'static str),
}

/// A server that greets, accepts every login, and answers each command with the text of `answer` before its OK.
fn server(answer: impl Fn(&str) -> String + Send + 'static) -> SocketAddr {
    odd_server(move |command| Answer::Done(answer(command)))
}

/// The same with commands that may fail.
pub(crate) fn odd_server(answer: impl Fn(&str) -> Answer + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // An early disconnect of the client is the purpose of some answers.
            let _ = converse(&stream.expect("a connection"), &answer);
        }
    });
    address
}

fn converse(mut stream: &TcpStream, answer: impl Fn(&str) -> Answer) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    stream.write_all(format!("* OK [CAPABILITY {ABLE}] hello\r\n").as_bytes())?;
    while let Some(line) = lines.next().transpose()? {
        let (tag, command) = line.split_once(' ').unwrap_or((&line, ""));
        let (said, end) = match answer(command) {
            Answer::Done(said) => (said, "OK done"),
            Answer::Ends(end) => (String::new(), end),
            Answer::Closes(said) => return stream.write_all(said.as_bytes()),
        };
        let said: Vec<u8> = said.chars().map(|one| one as u8).collect();
        stream.write_all(&said)?;
        stream.write_all(format!("{tag} {end}\r\n").as_bytes())?;
    }
    Ok(())
}

/// Answers as a mailbox with a single message.
pub(crate) fn honest(command: &str) -> String {
    if command.starts_with("CAPABILITY") {
        return format!("* CAPABILITY {ABLE}\r\n");
    }
    if command.starts_with("LIST") {
        return "* LIST () \"/\" INBOX\r\n".to_owned();
    }
    if command.starts_with("EXAMINE") {
        return "* 1 EXISTS\r\n* OK [UIDVALIDITY 1] fine\r\n".to_owned();
    }
    if command.contains("FETCH") && command.contains("BODY.PEEK") {
        return fetched(7, MESSAGE);
    }
    if command.contains("FETCH") {
        let size = MESSAGE.len();
        return format!(
            "* 1 FETCH (UID 7 FLAGS (\\Seen) INTERNALDATE \"17-Jul-1996 09:44:25 +0000\" RFC822.SIZE {size})\r\n"
        );
    }
    String::new()
}

fn fetched(uid: u32, message: &str) -> String {
    format!(
        "* 1 FETCH (UID {uid} BODY[] {{{}}}\r\n{message})\r\n",
        message.len()
    )
}

pub(crate) fn import(system: &System, from: SocketAddr, folder: &Path) -> Result<(), ExitStatus> {
    let place = format!("imap://{ACCOUNT}@{from}");
    let password = password(folder);
    let arguments = [
        "import",
        "--clear",
        "-a",
        ACCOUNT,
        "--password-file",
        &password,
        &place,
    ];
    let mut child = system.start_command(&arguments);
    let status = wait_for("the end of an import", || child.ended());
    match status.success() {
        true => Ok(()),
        false => Err(status),
    }
}

#[test]
fn what_a_server_tells_unasked_is_not_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let (system, ports) = start_with_store(Options::default());
    let liar = server(|command| match command.contains("BODY.PEEK") {
        // Unrequested messages, the requested message, and the same message again with other content.
        true => {
            let mut said: String = (100..400)
                .map(|uid| fetched(uid, &format!("Subject: {uid}\r\n\r\n{}", "x".repeat(9_000))))
                .collect();
            said += &fetched(7, MESSAGE);
            said += &fetched(7, "Subject: other\r\n\r\n");
            said
        }
        false => honest(command),
    });
    import(&system, liar, folder.path()).expect("an import");
    let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
    assert_eq!(alice.exists("INBOX"), 1);
    alice.ok("SELECT INBOX");
    assert_eq!(alice.body(1), MESSAGE);
}

/// Malformed answers: each import ends, with an error.
#[test]
fn servers_that_break_the_protocol_end_the_import() {
    let folder = tempfile::tempdir().expect("a folder");
    let (system, ports) = start_with_store(Options::default());
    let breaks: [fn(&str) -> String; 4] = [
        // A message above every limit, which is not awaited; a name without an end, a truncated message, and a
        // missing message.
        |command| match command.contains("BODY.PEEK") {
            true => "* 1 FETCH (UID 7 BODY[] {999999999999}\r\nab".to_owned(),
            false => honest(command),
        },
        |command| match command.starts_with("LIST") {
            true => format!("* LIST () \"/\" \"{}\"\r\n", "x".repeat(3 << 20)),
            false => honest(command),
        },
        |command| match command.contains("BODY.PEEK") {
            true => "* 1 FETCH (UID 7 BODY[] {5}\r\nab* BYE\r\n".to_owned(),
            false => honest(command),
        },
        |command| match command.contains("BODY.PEEK") {
            true => "* BYE tired\r\n".to_owned(),
            false => honest(command),
        },
    ];
    for (number, answer) in breaks.into_iter().enumerate() {
        let liar = server(answer);
        import(&system, liar, folder.path()).expect_err(&format!("number {number}"));
    }
    let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
    assert_eq!(alice.exists("INBOX"), 0);
}

#[test]
fn a_message_that_is_too_large_is_named_and_not_read() {
    let (system, ports) = start_with_store(Options::default());
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(|command| match command.contains("RFC822.SIZE") {
        true => {
            let large = "* 2 FETCH (UID 8 FLAGS () RFC822.SIZE 300000000)\r\n";
            honest(command) + large
        }
        false => {
            assert!(!command.contains("8:8"), "{command}");
            honest(command)
        }
    });
    let end = import(&system, server, folder.path()).expect_err("a message was left out");
    assert_eq!(end.code(), Some(3));
    let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
    assert_eq!(alice.exists("INBOX"), 1);
}

/// Names below a common prefix lose the prefix on import and get the prefix on export.
#[test]
fn a_common_beginning_of_names_is_left_out() {
    let Some(dovecot) = Dovecot::start_with(
        "namespace inbox {\n  inbox = yes\n  prefix = INBOX.\n  separator = .\n}\n",
    ) else {
        return;
    };
    let (system, ports) = start_with_store(Options::default());
    let password = password(system.directory.path());
    let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
    alice.ok("CREATE Work/2026");
    for (mailbox, text) in [("INBOX", "1"), ("Sent", "2"), ("Work/2026", "3")] {
        alice.append(mailbox, &format!("Subject: {text}\r\n\r\n{text}\r\n"));
    }
    let place = format!("imap://{ACCOUNT}@{}", dovecot.imap);
    let at = ["--clear", "--password-file", &password, &place];
    carries(&system, &["export", "-a", ACCOUNT], &at, 3);
    for name in ["cur", ".Sent/cur", ".Work.2026/cur"] {
        let there = dovecot.maildir(ACCOUNT).join(name);
        let new = dovecot.maildir(ACCOUNT).join(name.replace("cur", "new"));
        let count = |folder: &Path| fs::read_dir(folder).map_or(0, Iterator::count);
        assert_eq!(count(&there) + count(&new), 1, "{name}");
    }
    let bob = "bob@example.org";
    carries(&system, &["import", "-a", bob], &at, 3);
    carries(&system, &["import", "-a", bob], &at, 0);
    let mut bob = Imap::login(ports.imap, bob, "secret");
    for mailbox in ["INBOX", "Sent", "Work/2026"] {
        assert_eq!(bob.exists(mailbox), 1, "{mailbox}");
    }
}

/// Subscriptions are carried once: later changes by the user remain.
#[test]
fn subscriptions_are_carried_and_then_left_alone() {
    let Some(dovecot) = Dovecot::start() else {
        return;
    };
    let (system, ports) = start_with_store(Options::default());
    let password = password(system.directory.path());
    let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
    for mailbox in ["INBOX", "Old", "Work"] {
        if mailbox != "INBOX" {
            alice.ok(&format!("CREATE {mailbox}"));
        }
        alice.append(mailbox, &format!("Subject: {mailbox}\r\n\r\n{mailbox}\r\n"));
    }
    for mailbox in ["INBOX", "Work"] {
        alice.ok(&format!("SUBSCRIBE {mailbox}"));
    }
    let place = format!("imap://{ACCOUNT}@{}", dovecot.imap);
    let at = ["--clear", "--password-file", &password, &place];
    carries(&system, &["export", "-a", ACCOUNT], &at, 3);
    let bob = "bob@example.org";
    let import = [&["import", "-a", bob], at.as_slice()].concat();
    carries(&system, &import, &[], 3);
    let mut bob = Imap::login(ports.imap, bob, "secret");
    let subscribed = |bob: &mut Imap| {
        let said = bob.ok("LSUB \"\" *");
        let names = ["INBOX", "Old", "Work"].into_iter();
        let names = names.filter(|name| said.contains(&format!("\"{name}\"")));
        names.collect::<Vec<_>>()
    };
    assert_eq!(subscribed(&mut bob), ["INBOX", "Work"]);
    bob.ok("UNSUBSCRIBE Work");
    carries(&system, &import, &[], 0);
    assert_eq!(subscribed(&mut bob), ["INBOX"]);
}

/// The same server without Courier's possible alert before the greeting: without a login the alert comes from a part
/// that usually speaks later.
fn without_alert(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.expect("a connection");
            let there = TcpStream::connect(server).expect("the server");
            let mut said = BufReader::new(there.try_clone().expect("a socket"));
            let mut greeting = String::new();
            while greeting.is_empty() || greeting.contains("[ALERT]") {
                greeting.clear();
                said.read_line(&mut greeting).expect("a greeting");
            }
            let (mut to_server, mut from_client) = (there, client.try_clone().expect("a socket"));
            std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
            std::thread::spawn(move || {
                let mut client = client;
                client.write_all(greeting.as_bytes())?;
                std::io::copy(&mut said, &mut client)?;
                client.shutdown(std::net::Shutdown::Write)
            });
        }
    });
    address
}

/// There and back with servers with their own forms of names, dates and flags.
#[test]
fn mail_goes_to_cyrus_and_courier_and_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), open).expect("its mode");
    let password = password(folder.path());
    for name in [SystemName::Cyrus, SystemName::Courier] {
        let peer = match MailPeer::start(name, folder.path()) {
            Ok(peer) => peer,
            Err(PeerError::Unavailable { name, reason }) => {
                skip(&format!("export to {name}"), &reason);
                continue;
            }
            Err(error) if !is_full() => {
                skip(&format!("export to {name:?}"), &error.to_string());
                continue;
            }
            Err(error) => panic!("{name:?}: {error}"),
        };
        let (system, ports) = start_with_store(Options::default());
        let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
        let mailboxes = ["INBOX", "Sent", "Work/2026"];
        for mailbox in &mailboxes[1..] {
            // Some are there from the beginning.
            alice.command(&format!("CREATE {mailbox}"));
        }
        for number in 0..40 {
            let mailbox = mailboxes[number % mailboxes.len()];
            let flags = ["", "\\Seen", "\\Flagged \\Answered"][number / 3 % 3];
            let text = format!("From: a@b.example\r\nSubject: {number}\r\n\r\nThe text\r\n");
            let date = format!("{:02}-Feb-2004 10:11:{number:02} +0000", number % 28 + 1);
            let length = text.len();
            alice.ok(&format!(
                "APPEND {mailbox} ({flags}) \"{date}\" {{{length}+}}\r\n{text}"
            ));
        }
        let place = format!("imap://{}@{}", peer.account(), without_alert(peer.imap()));
        let at = ["--clear", "--password-file", &password, &place];
        carries(&system, &["export", "-a", ACCOUNT], &at, 40);
        carries(&system, &["export", "-a", ACCOUNT], &at, 0);
        let bob = "bob@example.org";
        carries(&system, &["import", "-a", bob], &at, 40);
        carries(&system, &["import", "-a", bob], &at, 0);
        let mut bob = Imap::login(ports.imap, bob, "secret");
        for mailbox in mailboxes {
            let wanted = listed(&mut alice, mailbox);
            assert_eq!(listed(&mut bob, mailbox), wanted, "{name:?}: {mailbox}");
        }
    }
}

/// The attributes of the messages of a mailbox, in any order, with their subjects.
fn listed(session: &mut Imap, mailbox: &str) -> Vec<String> {
    session.ok(&format!("EXAMINE {mailbox}"));
    let items = "FLAGS INTERNALDATE RFC822.SIZE BODY.PEEK[HEADER.FIELDS (SUBJECT)]";
    let said = session.ok(&format!("FETCH 1:* ({items})"));
    let said = said.rsplit_once("\r\nt").map_or("", |(said, _)| said);
    let messages = said.split("* ").filter(|one| one.contains(" FETCH "));
    let mut messages: Vec<String> = messages
        .map(|one| {
            let one = one.split_once(" FETCH ").map_or("", |(_, rest)| rest);
            let mut words: Vec<&str> = one.split(['(', ')', ' ', '\r', '\n']).collect();
            words.retain(|word| !word.is_empty() && *word != "\\Recent");
            words.sort_unstable();
            words.join(" ")
        })
        .collect();
    messages.sort();
    messages
}
