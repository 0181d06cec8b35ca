//! Backups: made while mail is delivered, restored on another machine and into the running system, killed at any
//! point.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{
    Options, Session, System, assert_has, fails_with, in_soak, output_of, rounds, run, say, vere,
    wait_until,
};
use crate::imap::{Imap, start_with_store, with_store};
use crate::store_accounts::uid_validity;

const ALICE: &str = "alice@example.org";
const BOB: &str = "bob@example.org";

/// Deliveries to alice by LMTP, one after the other, each with its number as subject.
struct Load {
    acknowledged: Arc<Mutex<u32>>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Load {
    fn start(lmtp: SocketAddr) -> Self {
        let acknowledged = Arc::new(Mutex::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (count, end) = (Arc::clone(&acknowledged), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let mut session = Session::lmtp(lmtp);
            for number in 1.. {
                if end.load(SeqCst) {
                    return;
                }
                session.envelope("me@example.net", &[ALICE]);
                let body = "0123456789".repeat(500);
                session.send(format!("Subject: n{number}\r\n\r\n{body}\r\n.\r\n").as_bytes());
                session.expect("250");
                *count.lock().expect("it") = number;
            }
        });
        Self {
            acknowledged,
            stop,
            thread,
        }
    }

    fn acknowledged(&self) -> u32 {
        *self.acknowledged.lock().expect("it")
    }

    fn wait_for(&self, more: u32) -> u32 {
        let from = self.acknowledged();
        wait_until("deliveries", || self.acknowledged() >= from + more);
        self.acknowledged()
    }

    fn end(self) -> u32 {
        self.stop.store(true, SeqCst);
        self.thread.join().expect("deliveries");
        *self.acknowledged.lock().expect("it")
    }
}

/// A place for backups beside a system.
pub(crate) fn place(system: &System) -> String {
    let path = system.directory.path().join("backups");
    path.display().to_string()
}

pub(crate) fn names(folder: &Path) -> BTreeSet<PathBuf> {
    let mut names = BTreeSet::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return names;
    };
    for entry in entries {
        let path = entry.expect("it").path();
        match path.is_dir() {
            true => names.extend(self::names(&path)),
            false => drop(names.insert(path)),
        }
    }
    names
}

/// The numbers of the subjects of a mailbox.
pub(crate) fn numbers(session: &mut Imap, mailbox: &str) -> BTreeSet<u32> {
    session.ok(&format!("EXAMINE \"{mailbox}\""));
    let said = session.ok("FETCH 1:* (BODY.PEEK[HEADER.FIELDS (SUBJECT)])");
    let subjects = said
        .lines()
        .filter_map(|line| line.strip_prefix("Subject: n"));
    subjects
        .map(|number| number.trim().parse().expect("a number"))
        .collect()
}

#[test]
fn a_backup_under_load_has_every_acknowledged_message_on_another_machine() {
    let (mut system, ports) = start_with_store(Options::default());
    system.command(&["domain", "add", "later.example"]);
    let place = place(&system);
    let load = Load::start(ports.lmtp);
    load.wait_for(30);
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    alice.ok("SELECT INBOX");
    alice.ok("STORE 2 FLAGS (\\Flagged \\Seen work)");
    alice.ok("CREATE \"Entw&APw-rfe/x\"");
    alice.append(
        "\"Entw&APw-rfe/x\" (\\Draft) \"17-Jul-1996 02:44:25 -0700\"",
        "a: b\r\n\r\nc\r\n",
    );
    let before = uid_validity(&mut alice);
    alice.ok("SELECT INBOX");
    let first = load.acknowledged();
    let report = system.json(&["backup", &place]);
    assert_eq!(report["number"], 1);
    // The second run, incremental, while mail goes on.
    let second = load.wait_for(10);
    let report = system.json(&["backup", &place]);
    assert_eq!(report["number"], 2);
    load.wait_for(1);
    let last = load.end();
    assert!(first >= 30 && second > first && last > second);
    system.end();

    for (number, acknowledged) in [("1", first), ("2", second)] {
        let said = run(vere().args(["backup", "verify", "--number", number, &place]));
        assert_has(&said, &["mail store: ", "nothing is wrong"]);
        let directory = tempfile::tempdir().expect("a folder");
        let data = directory.path().join("data");
        let mut restore = vere();
        restore
            .args(["restore", "--number", number, &place, "--to"])
            .arg(&data);
        let said = run(&mut restore);
        assert_has(&said, &["restored into", "vere.toml", "new UIDVALIDITY"]);
        // Nothing is overwritten.
        let said = fails_with(&mut restore, 1);
        assert_has(&said, &["expected an absent or empty directory"]);
        let domains = fs::read_to_string(data.join("directory.toml")).expect("the directory");
        assert!(domains.contains("later.example"), "{domains}");
        assert!(data.join("spool.key").exists());
        let (options, ports) = with_store(Options::default());
        let other = System::start_in(directory, &options);
        let mut alice = Imap::login(ports.imap, ALICE, "secret");
        let found = numbers(&mut alice, "INBOX");
        assert!(
            (1..=acknowledged).all(|number| found.contains(&number)),
            "{found:?}"
        );
        assert_eq!(found.len(), alice.exists("INBOX"));
        let flags = alice.ok("FETCH 2 (FLAGS)");
        assert_has(&flags, &["\\Flagged", "\\Seen", "work"]);
        alice.ok("EXAMINE \"Entw&APw-rfe/x\"");
        let draft = alice.ok("FETCH 1 (FLAGS INTERNALDATE)");
        assert_has(&draft, &["\\Draft", "17-Jul-1996 02:44:25 -0700"]);
        assert!(uid_validity(&mut alice) > before);
        // The restored system delivers.
        let load = Load::start(ports.lmtp);
        load.wait_for(1);
        load.end();
        drop(other);
    }
}

#[test]
fn a_second_backup_reads_little() {
    let (system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    // Octets that cannot be compressed.
    let mut state = 1_u64;
    let mut noise = |octets: usize| -> String {
        let letter = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(b'!' + (state >> 33) as u8 % 90)
        };
        std::iter::repeat_with(letter).take(octets).collect()
    };
    for number in 0..12 {
        let text = format!("Subject: {number}\r\n\r\n{}\r\n", noise(1_000_000));
        alice.append("INBOX", &text);
    }
    let place = place(&system);
    let first = system.json(&["backup", &place]);
    let octets = first["octets"].as_u64().expect("a number");
    assert!(octets > 8_000_000, "{first}");
    alice.append("INBOX", "Subject: little\r\n\r\nx\r\n");
    let second = system.json(&["backup", &place]);
    let read = second["read_octets"].as_u64().expect("a number");
    assert!(read * 50 <= octets, "{read} of {octets}: {second}");
    assert!(second["octets"].as_u64() > Some(octets));
    // An object that is lost is noticed, and stored again by the next backup.
    let largest = names(&PathBuf::from(&place).join("objects"));
    let largest = largest
        .into_iter()
        .max_by_key(|path| fs::metadata(path).expect("it").len());
    fs::remove_file(largest.expect("an object")).expect("it");
    let output = output_of(vere().args(["backup", "verify", &place]), "");
    assert_eq!(output.status.code(), Some(3));
    assert_has(&String::from_utf8_lossy(&output.stdout), &["/objects/"]);
    let third = system.json(&["backup", &place]);
    assert!(third["read_octets"].as_u64() > Some(octets / 2), "{third}");
    let said = system.command(&["backup", "verify", &place]);
    assert_has(
        &said,
        &["13 messages of 1 account checked", "nothing is wrong"],
    );
    // The objects of what is left stay.
    let said = system.command(&["backup", "prune", "--keep", "1", &place]);
    assert_has(&said, &["2 backups and ", "removed; 1 backup remains"]);
    let rows = system.json(&["backup", "list", &place]);
    assert_eq!(rows[0]["number"], 3);
    let said = system.command(&["backup", "verify", &place]);
    assert_has(&said, &["nothing is wrong"]);
}

#[test]
fn mail_is_restored_into_the_running_system() {
    let (system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    alice.ok("CREATE Old/Deep");
    let one = "Message-ID: <one@example.net>\r\nSubject: n1\r\n\r\nx\r\n";
    alice.append("INBOX (\\Seen work) \"17-Jul-1996 02:44:25 -0700\"", one);
    alice.append(
        "INBOX",
        "Message-ID:\r\n <two@example.net>\r\nSubject: n2\r\n\r\n\u{e9}\r\n",
    );
    alice.append("Old/Deep (\\Flagged)", "Subject: n3\r\n\r\nx\r\n");
    let place = place(&system);
    system.command(&["backup", "--quiet", &place]);
    alice.ok("SELECT INBOX");
    alice.ok("STORE 1:* +FLAGS (\\Deleted)");
    alice.ok("EXPUNGE");
    alice.ok("DELETE Old/Deep");

    let restore = |more: &[&str]| {
        let all = ["restore", place.as_str(), "--account", ALICE];
        system.command(&[&all[..], more].concat())
    };
    let said = restore(&["--dry-run"]);
    assert_has(&said, &["3 messages", "would be"]);
    assert!(!alice.ok("LIST \"\" *").contains("Restored"));
    let said = restore(&["--message", "two@example.net"]);
    assert_has(&said, &["1 message"]);
    assert_eq!(numbers(&mut alice, "Restored"), [2].into());
    let said = restore(&["--into", "Again"]);
    assert_has(&said, &["3 messages"]);
    assert_eq!(numbers(&mut alice, "Again"), [1, 2].into());
    let about = alice.ok("FETCH 1 (FLAGS INTERNALDATE)");
    assert_has(&about, &["\\Seen", "work", "17-Jul-1996 02:44:25 -0700"]);
    assert_eq!(alice.body(1), one);
    assert_eq!(numbers(&mut alice, "Again/Old/Deep"), [3].into());
    // The same once more brings nothing.
    let said = restore(&["--into", "Again"]);
    assert_has(&said, &["0 messages", "3 were brought before"]);
    // A single mailbox comes back into its place, under its name.
    let said = restore(&["--mailbox", "Old/Deep", "--in-place"]);
    assert_has(&said, &["1 message"]);
    assert_eq!(numbers(&mut alice, "Old/Deep"), [3].into());
    assert_eq!(alice.exists("INBOX"), 0);
    // Into another account.
    restore(&["--to-account", BOB]);
    let mut bob = Imap::login(ports.imap, BOB, "secret");
    assert_eq!(numbers(&mut bob, "Restored"), [1, 2].into());
    let (_, said) = system.failing_command(&["restore", &place, "--account", BOB]);
    assert_has(&said, &["no mail of bob@example.org"]);
    let (_, said) = system.failing_command(&["restore", &place]);
    assert_has(&said, &["--to"]);
}

#[test]
fn encrypted_backups_show_nothing_without_their_key() {
    let (system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    alice.append(
        "INBOX",
        "Subject: n1\r\n\r\nthe secret text of the message\r\n",
    );
    let place = place(&system);
    let key = system.directory.path().join("backup.key");
    fs::write(&key, "0123456789abcdef").expect("room");
    let key = key.display().to_string();
    let report = system.json(&["backup", "--key-file", &key, &place]);
    assert_eq!(report["encrypted"], true);
    for path in names(Path::new(&place)) {
        let octets = fs::read(&path).expect("it");
        for text in ["the secret text", "example.org", "hostname", "scram"] {
            let shows = octets
                .windows(text.len())
                .any(|part| part == text.as_bytes());
            assert!(!shows, "{} shows {text}", path.display());
        }
    }
    for wrong in [
        &["backup", "list"][..],
        &["backup"],
        &["restore", "--account", ALICE],
    ] {
        let (code, said) = system.failing_command(&[wrong, &[place.as_str()]].concat());
        assert!(code == Some(1) && said.contains("encrypted"), "{said}");
    }
    fs::write(
        system.directory.path().join("wrong.key"),
        "0123456789abcdeg",
    )
    .expect("room");
    let other = system
        .directory
        .path()
        .join("wrong.key")
        .display()
        .to_string();
    let (_, said) = system.failing_command(&["backup", "list", "--key-file", &other, &place]);
    assert_has(&said, &["not that of this backup"]);
    // The second run knows what is there, by names that the key makes.
    let again = system.json(&["backup", "--key-file", &key, &place]);
    assert_eq!(
        (&again["number"], &again["encrypted"]),
        (&2.into(), &true.into())
    );
    let said = system.command(&["backup", "verify", "--key-file", &key, &place]);
    assert_has(
        &said,
        &["1 message of 1 account checked", "nothing is wrong"],
    );
    let said = system.command(&["restore", "--key-file", &key, "--account", ALICE, &place]);
    assert_has(&said, &["1 message"]);
    assert_eq!(numbers(&mut alice, "Restored"), [1].into());
}

/// A hold on the store's log, as a backup has one.
fn hold(system: &System) -> (BufReader<UnixStream>, Value) {
    let socket = system.directory.path().join("data/store.sock");
    let mut stream = UnixStream::connect(socket).expect("the socket");
    stream
        .write_all(b"{\"command\":\"hold_log\"}\n")
        .expect("it");
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).expect("an answer");
    (stream, serde_json::from_str(&line).expect("JSON"))
}

#[test]
fn one_backup_reads_the_store_at_a_time() {
    let (system, _) = start_with_store(Options::default());
    let place = place(&system);
    let (held, answer) = hold(&system);
    assert!(answer["ok"]["files"].is_array(), "{answer}");
    assert!(hold(&system).1["error"].is_string());
    let (code, said) = system.failing_command(&["backup", &place]);
    assert!(code == Some(1) && said.contains("another backup"), "{said}");
    assert_eq!(
        names(&PathBuf::from(&place).join("manifests")),
        BTreeSet::new()
    );
    drop(held);
    wait_until("the end of the hold", || hold(&system).1["ok"].is_object());
    wait_until("a backup", || {
        let mut backup = vere();
        backup.args(["backup", &place, "-c"]).arg(&system.config);
        backup.output().expect("it").status.success()
    });
    // A role that dies takes its hold along.
    let (mut held, answer) = hold(&system);
    assert!(answer["ok"].is_object(), "{answer}");
    system.kill_and_wait("store");
    let mut line = String::new();
    assert_eq!(held.read_line(&mut line).unwrap_or(0), 0, "{line}");
}

/// A backup, a prune and a restore are killed at random moments: what was there is whole.
#[test]
fn commands_that_are_killed_leave_backups_whole() {
    let (system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    let place = place(&system);
    let start = |arguments: &[&str]| {
        let mut command = vere();
        command.args(arguments).arg("-c").arg(&system.config);
        command
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        command.spawn().expect("vere")
    };
    let mut last = 0;
    for round in 0..(8 * rounds()) {
        let body = format!("{round}").repeat(300_000);
        alice.append("INBOX", &format!("Subject: n{round}\r\n\r\n{body}\r\n"));
        let command = match round % 4 {
            3 => vec!["backup", "prune", "--keep", "1", &place],
            _ => vec!["backup", &place],
        };
        let mut killed = start(&command);
        thread::sleep(Duration::from_micros(u64::from(round) * 1_700 % 40_000));
        killed.kill().expect("it");
        killed.wait().expect("it");
        if last > 0 {
            let said = run(vere().args(["backup", "verify", &place]));
            assert_has(&said, &["nothing is wrong"]);
        }
        if round % 2 == 0 {
            let mut report = Value::Null;
            // The store may still hear of the end of the killed one.
            wait_until("a backup", || {
                let mut backup = vere();
                backup
                    .args(["backup", "--json", &place, "-c"])
                    .arg(&system.config);
                let output = backup.output().expect("it");
                report = serde_json::from_slice(&output.stdout).unwrap_or_default();
                output.status.success()
            });
            let number = report["number"].as_u64().expect("a number");
            assert!(number > last, "{report}");
            last = number;
        }
    }
    run(vere().args(["backup", "prune", "--keep", "1", &place]));
    let said = run(vere().args(["backup", "verify", &place]));
    assert_has(&said, &["nothing is wrong"]);
    let leftovers = names(Path::new(&place)).into_iter();
    let leftovers = leftovers.filter(|path| path.extension().is_some_and(|end| end == "new"));
    assert_eq!(leftovers.count(), 0);

    let data = system.directory.path().join("other");
    let mut restore = vere();
    restore.args(["restore", &place, "--to"]).arg(&data);
    for pause in [1_u64, 8, 15] {
        let mut killed = restore.spawn().expect("vere");
        thread::sleep(Duration::from_millis(pause));
        killed.kill().expect("it");
        killed.wait().expect("it");
    }
    let incomplete = data.join("restore-incomplete");
    let is_whole = || data.join("store/log").is_dir() && !incomplete.exists();
    if !is_whole() {
        run(&mut restore);
    }
    assert!(is_whole());
}

/// Text that no compression makes smaller than three quarters, as attachments are: base64 of random numbers.
struct Noise(std::hash::RandomState, u64);

impl Noise {
    fn new() -> Self {
        Self(std::hash::RandomState::new(), 0)
    }

    /// Lines of 76 characters.
    fn lines(&mut self, octets: usize) -> String {
        const ALPHABET: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::with_capacity(octets + 100);
        while text.len() < octets {
            for _ in 0..76 / 4 {
                self.1 += 1;
                let number = std::hash::BuildHasher::hash_one(&self.0, self.1);
                let four = (0..4).map(|at| ALPHABET[(number >> (6 * at)) as usize & 63] as char);
                text.extend(four);
            }
            text += "\r\n";
        }
        text
    }
}

/// Delivers messages by LMTP, one after the other, until told to stop; the time that each took.
fn timed_deliveries(lmtp: SocketAddr, is_over: impl Fn(usize) -> bool) -> Vec<Duration> {
    let mut session = Session::lmtp(lmtp);
    let mut noise = Noise::new();
    let mut times = Vec::new();
    while !is_over(times.len()) {
        let body = noise.lines(20_000);
        let text = format!("Subject: n{}\r\n\r\n{body}.\r\n", times.len());
        let began = Instant::now();
        session.envelope("me@example.net", &[ALICE]);
        session.send(text.as_bytes());
        session.expect("250");
        times.push(began.elapsed());
    }
    times
}

fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// The bars of the issue: 21,000 messages, deliveries beside a backup, octets of the second backup.
#[test]
fn a_backup_costs_deliveries_little() {
    if !in_soak() {
        return;
    }
    let (system, ports) = start_with_store(Options::default());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| timed_deliveries(ports.lmtp, |count| count == 21_000 / 8));
        }
    });
    let before = p99(timed_deliveries(ports.lmtp, |count| count == 4_000));
    let mut beside = Vec::new();
    for round in 0..2 {
        let place = system.directory.path().join(format!("backups-{round}"));
        let mut backup = vere();
        backup
            .args(["backup", "--quiet"])
            .arg(&place)
            .arg("-c")
            .arg(&system.config);
        backup.stdout(std::process::Stdio::null());
        let backup = backup.spawn().expect("vere");
        let running = std::cell::RefCell::new(backup);
        let is_over = |_| running.borrow_mut().try_wait().expect("it").is_some();
        beside.extend(timed_deliveries(ports.lmtp, is_over));
        assert!(running.into_inner().wait().expect("it").success());
    }
    let (count, beside) = (beside.len(), p99(beside));
    let place = system
        .directory
        .path()
        .join("backups-1")
        .display()
        .to_string();
    // Mail delivered during the last backup is new to the place: the backup after this one has nothing new to read.
    system.command(&["backup", "--quiet", &place]);
    let second = system.json(&["backup", &place]);
    say(&format!(
        "p99 of deliveries {before:?}, beside backups {beside:?} ({count} deliveries); second backup: {} of {} octets read",
        second["read_octets"], second["octets"]
    ));
    assert!(second["read_octets"].as_u64() <= second["octets"].as_u64().map(|all| all / 50));
    assert!(
        beside <= before.mul_f64(1.3),
        "{beside:?} beside {before:?}"
    );
}
