//! Mailboxes: mail comes in by SMTP and is read by IMAP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use vere_script::daemon::Target;
use vere_script::{Script, Verdict, run_against};

use crate::harness::{
    FailingSync, Options, PATIENCE, Session, System, assert_has, free_address, in_soak, program,
    run, wait_for, wait_until,
};

/// A session with numbered commands.
pub(crate) struct Imap {
    reader: BufReader<TcpStream>,
    commands: u32,
}

impl Imap {
    /// Connects and logs in.
    pub(crate) fn login(address: SocketAddr, user: &str, password: &str) -> Self {
        let mut session = Self::connect(address);
        session.ok(&format!("LOGIN {user} {password}"));
        session
    }

    /// Connects and reads the greeting.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::greeted(TcpStream::connect(address).expect("the IMAP port"))
    }

    /// Reads the greeting.
    pub(crate) fn greeted(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let mut session = Self {
            reader: BufReader::new(stream),
            commands: 0,
        };
        assert!(session.line().starts_with("* OK "));
        session
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line).expect("a line");
        String::from_utf8_lossy(&line).into_owned()
    }

    /// Sends octets.
    pub(crate) fn send(&mut self, text: &str) {
        let stream = self.reader.get_mut();
        // A closed connection has given the reason.
        let _ = stream.write_all(text.as_bytes());
    }

    /// All output up to a line with this beginning, or to BYE.
    pub(crate) fn said(&mut self, beginning: &str) -> String {
        let mut said = String::new();
        loop {
            let line = self.line();
            said.push_str(&line);
            assert!(!line.is_empty(), "closed: {said}");
            if line.starts_with("* BYE ") || line.starts_with(beginning) {
                return said;
            }
        }
    }

    /// Sends a command and returns all output up to the end of the command.
    pub(crate) fn command(&mut self, text: &str) -> String {
        self.commands += 1;
        let tag = format!("t{}", self.commands);
        let command = format!("{tag} {text}\r\n");
        let stream = self.reader.get_mut();
        stream.write_all(command.as_bytes()).expect("a command");
        let mut said = String::new();
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "closed after {text}: {said}");
            said.push_str(&line);
            if line.starts_with(&format!("{tag} ")) {
                return said;
            }
        }
    }

    /// Sends a command that must succeed; returns its output.
    pub(crate) fn ok(&mut self, text: &str) -> String {
        let said = self.command(text);
        let tag = format!("t{} OK", self.commands);
        assert!(said.contains(&tag), "{text}: {said}");
        said
    }

    /// Adds a message; flags may stand behind the mailbox.
    pub(crate) fn append(&mut self, mailbox: &str, text: &str) {
        self.ok(&format!("APPEND {mailbox} {{{}+}}\r\n{text}", text.len()));
    }

    /// The text of a message of the open mailbox.
    pub(crate) fn body(&mut self, number: usize) -> String {
        String::from_utf8_lossy(&self.octets(number)).into_owned()
    }

    /// The octets of a message, as a literal shows the octets.
    pub(crate) fn octets(&mut self, number: usize) -> Vec<u8> {
        self.commands += 1;
        let tag = format!("t{}", self.commands);
        let command = format!("{tag} FETCH {number} BODY.PEEK[]\r\n");
        let stream = self.reader.get_mut();
        stream.write_all(command.as_bytes()).expect("a command");
        let head = self.line();
        let octets = head
            .rsplit(['{', '}'])
            .nth(1)
            .and_then(|octets| octets.parse().ok());
        let mut body = vec![0; octets.unwrap_or_else(|| panic!("no literal in {head}"))];
        self.reader.read_exact(&mut body).expect("a message");
        while !self.line().starts_with(&tag) {}
        body
    }

    /// How many messages a mailbox has.
    pub(crate) fn exists(&mut self, mailbox: &str) -> usize {
        let said = self.ok(&format!("STATUS {mailbox} (MESSAGES)"));
        let number = said
            .split("MESSAGES ")
            .nth(1)
            .and_then(|rest| rest.split(')').next());
        number
            .and_then(|number| number.parse().ok())
            .expect("a number")
    }
}

/// The ports of a store beside the ports of every system.
pub(crate) struct Ports {
    pub(crate) imap: SocketAddr,
    pub(crate) lmtp: SocketAddr,
}

/// The same system with mailboxes.
pub(crate) fn with_store(options: Options) -> (Options, Ports) {
    let ports = Ports {
        imap: free_address(),
        lmtp: free_address(),
    };
    (with_ports(options, &ports), ports)
}

/// The options of a system with mailboxes at these ports.
pub(crate) fn with_ports(options: Options, ports: &Ports) -> Options {
    options
        .set("imap.listen", &format!("[\"{}\"]", ports.imap))
        .set("lmtp.listen", &format!("[\"{}\"]", ports.lmtp))
        .set("delivery.local", "\"store\"")
}

/// A running system with mailboxes.
pub(crate) fn start_with_store(options: Options) -> (System, Ports) {
    let (options, ports) = with_store(options);
    (System::start(&options), ports)
}

/// Waits until a mailbox has so many messages.
pub(crate) fn wait_messages(ports: &Ports, user: &str, mailbox: &str, count: usize) {
    wait_until("mail in the mailbox", || {
        let mut session = Imap::login(ports.imap, user, "secret");
        session.exists(mailbox) == count
    });
}

#[test]
fn mail_that_came_by_smtp_is_read_by_imap() {
    let (mut system, ports) = start_with_store(Options::default());
    let mut session = Session::greeted(system.smtp);
    session.submit(
        "me@example.net",
        &["alice@example.org", "bob+lists@example.org"],
        "Subject: one\r\n\r\nhello\r\n",
    );
    wait_messages(&ports, "alice@example.org", "INBOX", 1);
    wait_messages(&ports, "bob@example.org", "INBOX", 1);
    let mut alice = Imap::login(ports.imap, "alice@example.org", "secret");
    assert!(alice.ok("SELECT INBOX").contains("* 1 EXISTS"));
    let said = alice.ok("FETCH 1 (FLAGS RFC822.SIZE BODY[])");
    let parts = [
        "Return-Path: <me@example.net>\r\nDelivered-To: alice@example.org\r\nReceived: ",
        "\r\nSubject: one\r\n\r\nhello\r\n",
        "\\Recent",
    ];
    assert_has(&said, &parts);
    // The parser did not see the fields before the header: its findings lie behind the fields.
    let said =
        alice.ok("FETCH 1 (BODY[1] BODYSTRUCTURE ENVELOPE BODY[HEADER.FIELDS (DELIVERED-TO)])");
    let parts = [
        "BODY[1] {9}\r\nhello\r\n\r\n BODYSTRUCTURE (\"text\" \"plain\" ",
        "\"7bit\" 9 2 NIL NIL NIL NIL) ENVELOPE (",
        "{35}\r\nDelivered-To: alice@example.org\r\n\r\n)",
    ];
    assert_has(&said, &parts);
    // A tag names a mailbox, if such a mailbox exists.
    let mut bob = Imap::login(ports.imap, "bob@example.org", "secret");
    bob.ok("CREATE Lists");
    session.submit(
        "me@example.net",
        &["bob+lists@example.org"],
        "Subject: two\r\n\r\nhello\r\n",
    );
    wait_messages(&ports, "bob@example.org", "Lists", 1);
    // Seen messages remain seen after a kill of all processes.
    system.crash();
    let mut alice = Imap::login(ports.imap, "alice@example.org", "secret");
    let said = alice.ok("SELECT INBOX");
    assert_has(&said, &["* 1 EXISTS", "* 0 RECENT"]);
    assert!(alice.ok("FETCH 1 FLAGS").contains("FLAGS (\\Seen)"));
    assert!(
        alice
            .ok("SEARCH BODY HELLO SUBJECT one")
            .contains("* SEARCH 1\r\n")
    );
}

#[test]
fn the_scripts_pass_against_the_store() {
    let (system, ports) = start_with_store(Options::default());
    system.add_script_accounts();
    let target = Target {
        imap: Some(ports.imap),
        rights: vec!["auth-in-clear".to_owned()],
        patience: PATIENCE,
        ..Target::from(system.smtp)
    };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/imap");
    let (mut passed, mut failures) = (0, String::new());
    for entry in std::fs::read_dir(folder).expect("the scripts") {
        let path = entry.expect("a script").path();
        let text = std::fs::read_to_string(&path).expect("a script");
        let script = Script::parse(&path.display().to_string(), &text).expect("a script");
        match run_against(target.clone(), &script) {
            Ok(Verdict::Passed) => passed += 1,
            Ok(Verdict::Skipped(_)) => {}
            Err(failure) => failures.push_str(&failure.to_string()),
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    assert!(passed > 10, "only {passed} scripts ran");
}

#[test]
fn python_imaplib_files_and_finds() {
    let Some(python) = program("python3") else {
        return;
    };
    let (_system, ports) = start_with_store(Options::default());
    let script = "\
import imaplib, sys, time
host, port = sys.argv[1].rsplit(':', 1)
with imaplib.IMAP4(host, int(port)) as m:
    m.login('alice@example.org', 'secret')
    for n in range(50):
        text = 'Subject: number %d\\r\\n\\r\\nbody %d\\r\\n' % (n, n)
        status, said = m.append('Archive', '(\\\\Flagged)', imaplib.Time2Internaldate(86400 * n + 1), text.encode())
        assert status == 'OK', said
    assert m.select('Archive') == ('OK', [b'50'])
    assert m.search(None, 'SUBJECT', '\"number 4\"')[1][0].split() == [b'5'] + [b'%d' % n for n in range(41, 51)]
    status, rows = m.fetch('7', '(INTERNALDATE BODY[HEADER.FIELDS (SUBJECT)])')
    assert b'number 6' in rows[0][1], rows
    m.store('1:10', '+FLAGS', '\\\\Deleted')
    assert len(m.expunge()[1]) == 10
    assert m.uid('copy', '11:20', 'INBOX')[0] == 'OK'
    assert m.select('INBOX') == ('OK', [b'10'])
";
    run(Command::new(python).args(["-c", script, &ports.imap.to_string()]));
}

#[test]
fn curl_reads_a_message() {
    let Some(curl) = program("curl") else {
        return;
    };
    let (_system, ports) = start_with_store(Options::default());
    let mut lmtp = Session::try_connect(ports.lmtp).expect("the LMTP port");
    lmtp.command("EHLO client.example", "500");
    lmtp.command("LHLO client.example", "250");
    lmtp.transaction("me@example.net", &["alice@example.org"]);
    lmtp.command("RCPT TO:<nobody@example.org>", "550");
    lmtp.command("RCPT TO:<bob@example.org>", "250");
    lmtp.command("DATA", "354");
    lmtp.send(b"Subject: by LMTP\r\n\r\nhello\r\n.\r\n");
    lmtp.expect("250 2.1.5");
    lmtp.expect("250 2.1.5");
    let output = run(Command::new(curl)
        .args([
            "--silent",
            "--show-error",
            "--user",
            "bob@example.org:secret",
        ])
        .arg(format!("imap://{}/INBOX;MAILINDEX=1", ports.imap)));
    assert!(output.contains("Subject: by LMTP"), "{output}");
}

#[test]
fn more_messages_at_once_than_memory_are_refused() {
    let (options, ports) = with_store(Options::default());
    let options = options
        .set("limits.message_size_max", "\"512 KiB\"")
        .set("limits.body_memory_max", "\"1 MiB\"");
    let _system = System::start(&options);
    let line = format!("{}\r\n", "A".repeat(998));
    let (begin, end) = (line.repeat(400), "A\r\n".repeat(40));
    let literal = begin.len() + end.len();
    let mut sessions: Vec<Imap> = (0..10)
        .map(|_| Imap::login(ports.imap, "alice@example.org", "secret"))
        .collect();
    for session in &mut sessions {
        let text = format!("a APPEND INBOX {{{literal}}}\r\n");
        session.send(&text);
        assert!(session.line().starts_with("+ "));
    }
    // LMTP uses the same memory.
    let mut lmtp = Session::lmtp(ports.lmtp);
    lmtp.envelope("me@example.net", &["alice@example.org"]);
    for session in &mut sessions {
        session.send(&begin);
    }
    let mut answers = Vec::new();
    for session in &mut sessions {
        session.send(&end);
        session.send("\r\n");
        answers.push(session.line());
    }
    lmtp.send(format!("Subject: late\r\n\r\n{line}.\r\n").as_bytes());
    lmtp.expect("250 2.1.5");
    let count = |begin: &str| {
        answers
            .iter()
            .filter(|said| said.starts_with(begin))
            .count()
    };
    assert_eq!(count("a OK") + count("a NO [LIMIT]"), 10, "{answers:?}");
    assert!(count("a OK") >= 1 && count("a NO") >= 1, "{answers:?}");
    // Freed memory is given again.
    wait_messages(&ports, "alice@example.org", "INBOX", count("a OK") + 1);
}

/// Clients that announced messages and sent next to nothing held all memory; a client that sends a lot without an end
/// may hold the memory of APPEND, but not the memory of deliveries.
#[test]
fn parked_literals_stop_no_append_and_no_delivery() {
    let (options, ports) = with_store(Options::default());
    let options = options
        .set("limits.message_size_max", "\"2 MiB\"")
        .set("limits.body_memory_max", "\"4 MiB\"")
        .set("limits.connections_per_client_max", "1000");
    let _system = System::start(&options);
    let park = |octets: usize| {
        let mut session = Imap::login(ports.imap, "alice@example.org", "secret");
        session.send("p APPEND INBOX {1500000}\r\n");
        assert!(session.line().starts_with("+ "));
        session.send(&"x".repeat(octets));
        session
    };
    let text = format!(
        "Subject: x\r\n\r\n{}",
        format!("{}\r\n", "A".repeat(998)).repeat(200)
    );
    let deliver = || {
        let mut lmtp = Session::lmtp(ports.lmtp);
        lmtp.envelope("me@example.net", &["bob@example.org"]);
        lmtp.send(format!("{text}.\r\n").as_bytes());
        lmtp.expect("250 2.1.5");
    };
    let parked: Vec<Imap> = (0..265).map(|_| park(1)).collect();
    let mut bob = Imap::login(ports.imap, "bob@example.org", "secret");
    bob.append("INBOX", &text);
    deliver();
    let heavy: Vec<Imap> = (0..10).map(|_| park(1_400_000)).collect();
    deliver();
    wait_messages(&ports, "bob@example.org", "INBOX", 3);
    drop((parked, heavy));
}

#[test]
fn a_store_whose_disk_fails_is_opened_anew() {
    if !in_soak() {
        return;
    }
    let (system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, "alice@example.org", "secret");
    alice.append("INBOX", "A\r\n");
    let before = system.role_pids("store");
    let Some(failing) = FailingSync::begin(before[0]) else {
        return;
    };
    let mut writer = alice.reader.get_ref().try_clone().expect("the connection");
    writer
        .write_all(b"x APPEND INBOX {3+}\r\nB\r\n\r\n")
        .expect("a command");
    // Never an OK: NO, or the end of the connection.
    let said = alice.line();
    assert!(said.is_empty() || said.starts_with("x NO"), "{said}");
    failing.end();
    wait_until("a new process", || {
        let pids = system.role_pids("store");
        !pids.is_empty() && pids != before
    });
    wait_for("its port", || TcpStream::connect(ports.imap).ok().map(drop));
    let mut alice = Imap::login(ports.imap, "alice@example.org", "secret");
    alice.append("INBOX", "C\r\n");
    let there = alice.exists("INBOX");
    assert!((2..=3).contains(&there), "{there} messages");
}
