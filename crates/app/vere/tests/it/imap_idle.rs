//! Clients in IDLE over IMAP: thousands of clients, the cost of each, the notification of all, and the clean-up
//! afterwards.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::harness::{
    Options, PATIENCE, Session, System, children, descriptors, is_full, private_memory, quoted,
    raise_descriptor_limit, say, skip, wait_until,
};
use crate::imap::{Imap, Ports, with_store};

/// Clients in IDLE at once (`VERE_FULL=1`), and in every other run.
const CLIENTS: u64 = 10_000;
const FEW_CLIENTS: u64 = 300;
/// Number of accounts of the clients.
const ACCOUNTS: usize = 5;
/// Descriptors of the rest of the process, other tests included.
const RESERVE: u64 = 1_000;
/// Private memory of the store for a client, in octets: before the login, and in IDLE.
const COST_BEFORE_LOGIN_MAX: u64 = 16 * 1024;
const COST_MAX: u64 = 64 * 1024;
/// Tolerance in the number of the store's descriptors afterwards: files of its log and its index.
const DESCRIPTORS_AROUND: usize = 40;

/// `secret` as the cheapest Argon2id hash, and the SCRAM keys of the password (RFC 5803): the cost of a password is
/// not under test.
const PASSWORD_HASH: &str = "$argon2id$v=19$m=8,t=1,p=1$dmVyZS1iZW5jaC1zdG9yZQ\
                             $6igDkWGtobLOx9MBmbZmAy+EPj8wqfJ+xcQpm5cKnog";
const PASSWORD_KEYS: &str = "SCRAM-SHA-256$4096:dmVyZS1iZW5jaC1zdG9yZQ==$\
                             d2Io1gmsNtD6vlB5hvkDtaFsT/MID/iHlt9wsdUPI5U=:pmB9gcV9LiDt5T01mHMTB24kW1vqCVwPwVYN6cKoSvs=";

fn account(number: usize) -> String {
    format!("idler{number}@example.org")
}

/// The domain and the accounts.
fn write_directory(file: &Path) {
    let mut text = "version = 1\n[[domain]]\nname = \"example.org\"\n".to_owned();
    for number in 0..ACCOUNTS {
        let address = account(number);
        text.push_str(&format!(
            "[[account]]\naddress = \"{address}\"\npassword = \"{PASSWORD_HASH}\"\n\
             scram_sha_256 = \"{PASSWORD_KEYS}\"\n"
        ));
    }
    std::fs::write(file, text).expect("the directory");
}

/// A session with no more than a socket.
struct Idler {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Idler {
    /// Connects and reads the greeting.
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the IMAP port");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let mut idler = Self {
            stream,
            unread: Vec::new(),
        };
        let greeting = idler.line();
        assert!(greeting.starts_with("* OK "), "{greeting}");
        idler
    }

    fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.unread.iter().position(|octet| *octet == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return String::from_utf8_lossy(&line).trim_end().to_owned();
            }
            let mut piece = [0; 512];
            let octets = self.stream.read(&mut piece).expect("a line");
            assert!(octets > 0, "closed");
            self.unread.extend_from_slice(&piece[..octets]);
        }
    }

    fn send(&mut self, line: &str) {
        let line = format!("{line}\r\n");
        self.stream.write_all(line.as_bytes()).expect("a command");
    }

    /// All lines up to a line with this beginning, included.
    fn until(&mut self, beginning: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            let is_last = line.starts_with(beginning);
            lines.push(line);
            if is_last {
                return lines;
            }
        }
    }

    fn command(&mut self, tag: &str, command: &str) {
        self.send(&format!("{tag} {command}"));
        self.until(&format!("{tag} OK"));
    }

    /// Logs in, opens the inbox and idles.
    fn idle(&mut self, account: &str) {
        self.command("a", &format!("LOGIN {account} secret"));
        self.command("b", "SELECT INBOX");
        self.send("c IDLE");
        self.until("+ ");
    }

    /// Reads the notification of `messages` messages, without another number before.
    fn hear(&mut self, messages: usize) {
        loop {
            let line = self.line();
            if line.ends_with(" EXISTS") {
                assert_eq!(line, format!("* {messages} EXISTS"));
                return;
            }
            assert!(line.ends_with(" RECENT"), "{line}");
        }
    }

    /// Whether no notification arrived.
    fn is_quiet(&self) -> bool {
        self.stream.set_nonblocking(true).expect("a socket");
        let peeked = self.stream.peek(&mut [0; 1]);
        self.stream.set_nonblocking(false).expect("a socket");
        let is_nothing = peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        self.unread.is_empty() && is_nothing
    }

    /// Ends IDLE, without any other notification before.
    fn done(&mut self) {
        self.send("DONE");
        let said = self.until("c OK");
        let told = said.iter().filter(|line| line.ends_with(" EXISTS"));
        assert_eq!(told.count(), 0, "{said:?}");
    }
}

/// Files a message for some accounts at once.
fn deliver(ports: &Ports, accounts: std::ops::Range<usize>) {
    let mut lmtp = Session::lmtp(ports.lmtp);
    lmtp.command("MAIL FROM:<me@example.net>", "250");
    for number in accounts.clone() {
        lmtp.command(&format!("RCPT TO:<{}>", account(number)), "250");
    }
    lmtp.command("DATA", "354");
    lmtp.send(b"Subject: to all\r\n\r\nhello\r\n.\r\n");
    for _ in accounts {
        lmtp.expect("250 2.1.5");
    }
}

/// Files a message for some accounts, and waits until all their clients have heard the new number of messages;
/// returns the time.
fn tell(
    ports: &Ports,
    accounts: std::ops::Range<usize>,
    idlers: &mut [(usize, Idler)],
    messages: impl Fn(usize) -> usize,
) -> Duration {
    let began = Instant::now();
    deliver(ports, accounts.clone());
    for (number, idler) in idlers {
        if accounts.contains(number) {
            idler.hear(messages(*number));
        }
    }
    began.elapsed()
}

/// The cost of each of `clients` silent connections.
fn cost_before_login(ports: &Ports, store: u32, clients: u64) -> u64 {
    let before = private_memory(store);
    let held: Vec<Idler> = (0..clients).map(|_| Idler::connect(ports.imap)).collect();
    let each = private_memory(store).saturating_sub(before) / clients;
    drop(held);
    each
}

/// Waits until the store has about so many descriptors again.
fn wait_descriptors(store: u32, wanted: usize) {
    wait_until("the descriptors to be closed", || {
        descriptors(store) <= wanted + DESCRIPTORS_AROUND
    });
}

/// How many clients there can be here.
fn clients() -> u64 {
    let wanted = if is_full() { CLIENTS } else { FEW_CLIENTS };
    // The store has the same hard limit, since the supervisor raises its own limit.
    let clients = wanted.min(raise_descriptor_limit().saturating_sub(RESERVE));
    if clients < CLIENTS {
        let why = match is_full() {
            true => "the limit of open files; raise it with ulimit -Hn",
            false => "make soak tries all, or VERE_FULL=1",
        };
        skip(
            "idle IMAP clients beyond a few",
            &format!("only {clients} of {CLIENTS}: {why}"),
        );
    }
    clients
}

#[test]
fn idle_clients_hear_of_mail_and_leave_nothing_behind() {
    let clients = clients();
    if clients < ACCOUNTS as u64 {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let directory = folder.path().join("directory.toml");
    write_directory(&directory);
    let file = quoted(&directory).replacen('"', "\"file:", 1);
    let (options, ports) = with_store(Options::default());
    let options = options
        .set("directory.store", &file)
        .set("limits.connections_max", "20000")
        .set("limits.connections_per_client_max", "20000");
    let system = System::start(&options);
    let store = system.role_pids("store")[0];
    // What is made once is nobody's cost: the accounts, threads, parsers, files.
    for number in 0..ACCOUNTS {
        Imap::login(ports.imap, &account(number), "secret").ok("SELECT INBOX");
    }
    deliver(&ports, 0..ACCOUNTS);
    let processes = children(store).len();
    let normal = descriptors(store);
    let fresh = cost_before_login(&ports, store, clients.min(1_000));
    wait_descriptors(store, normal);

    let before = private_memory(store);
    let mut idlers: Vec<(usize, Idler)> = Vec::new();
    for number in (0..ACCOUNTS).cycle().take(clients as usize) {
        let mut idler = Idler::connect(ports.imap);
        idler.idle(&account(number));
        idlers.push((number, idler));
    }
    let each = private_memory(store).saturating_sub(before) / clients;
    assert!(descriptors(store) as u64 >= clients);

    // All clients of the account hear of its mail, and no other client.
    let one = tell(&ports, 0..1, &mut idlers, |_| 2);
    let mut others = idlers.iter().filter(|(number, _)| *number != 0);
    assert!(others.all(|(_, idler)| idler.is_quiet()));
    // Mail for all is heard of by all.
    let messages = |number| if number == 0 { 3 } else { 2 };
    let all = tell(&ports, 0..ACCOUNTS, &mut idlers, messages);
    say(&format!(
        "{clients} idle IMAP clients cost {each} octets each ({fresh} before login); \
         {one:?} until those of one account had heard, {all:?} for all"
    ));
    // Over few clients the fixed cost would count too much.
    if is_full() && clients == CLIENTS {
        assert!(each <= COST_MAX, "an idle client costs {each} octets");
        assert!(
            fresh <= COST_BEFORE_LOGIN_MAX,
            "a client that did not log in costs {fresh} octets"
        );
    }

    for (_, idler) in &mut idlers {
        idler.done();
        idler.command("d", "NOOP");
    }
    drop(idlers);
    wait_descriptors(store, normal);
    wait_until("no more processes than before", || {
        children(store).len() <= processes
    });
    assert_eq!(system.role_pids("store"), [store], "the store went on");
    // And the store serves as before.
    let mut session = Imap::login(ports.imap, &account(0), "secret");
    assert_eq!(session.exists("INBOX"), 3);
}
