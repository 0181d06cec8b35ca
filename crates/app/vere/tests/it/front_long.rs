//! Long messages that arrive at workers: the gateway keeps their text in files, so that clients that hold still hold disk space and not the memory of workers.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::front::{for_strangers, try_send, without_rates};
use crate::harness::{Options, PATIENCE, Session, System, signal, wait_for, wait_until};
use crate::logins::connect_from;
use crate::trouble::{SmallDisk, memory, nameless};

const MIB: usize = 1024 * 1024;

/// Workers with 6 MiB for texts each, for messages of 24 MiB.
fn small_workers() -> Options {
    without_rates(for_strangers())
        .set("front.workers", "8")
        .set("limits.message_size_max", "\"24 MiB\"")
        .set("limits.body_memory_max", "\"48 MiB\"")
}

fn greeted_from(source: &str, address: SocketAddr) -> Session {
    let mut session = Session::over(connect_from(source, address)).expect("a connection");
    session.expect("220");
    session.command("EHLO client.example.net", "250");
    session
}

/// Lines with their numbers, so that no octet can be lost, doubled or moved; some begin with a dot.
fn numbered(octets: usize) -> String {
    let line = |number: usize| {
        let dot = if number.is_multiple_of(7) { "." } else { "" };
        format!("{dot}{number:010} {}\r\n", "x".repeat(number % 60))
    };
    let lines = (0..).map(line);
    let mut text = "Subject: long\r\n\r\n".to_owned();
    text.extend(lines.take(octets / 43));
    text
}

fn dotted(text: &str) -> String {
    text.replace("\r\n.", "\r\n..")
}

fn gateway_files(system: &System) -> u64 {
    nameless(system.role_pids("gateway")[0])
}

/// A message of more than a worker's memory was refused by 452, for good.
#[test]
fn a_message_of_several_times_a_workers_memory_arrives_as_it_was_sent() {
    let system = System::start(&small_workers());
    let text = numbered(20 * MIB);
    assert!(text.len() > 3 * 6 * MIB && text.len() < 24 * MIB);
    let mut session = Session::greeted(system.smtp);
    session.transaction("a@example.net", &["alice@example.org"]);
    session.command("DATA", "354");
    session.send(dotted(&text).as_bytes());
    session.command(".", "250 2.0.0");
    session.transaction("a@example.net", &["bob@example.org"]);
    let chunks: Vec<&[u8]> = text.as_bytes().chunks(3 * MIB + 1).collect();
    for (number, chunk) in chunks.iter().enumerate() {
        let last = if number + 1 == chunks.len() {
            " LAST"
        } else {
            ""
        };
        session.send(format!("BDAT {}{last}\r\n", chunk.len()).as_bytes());
        session.send(chunk);
        session.expect("250");
    }
    // The maildir has the lines of Unix.
    let text = text.replace("\r\n", "\n");
    for name in ["alice", "bob"] {
        let mail = system.wait_mail(name, 1);
        assert!(mail[0].ends_with(&text), "{name}: {} octets", mail[0].len());
    }
    assert_eq!(gateway_files(&system), 0);
    for worker in system.role_pids("worker") {
        let (most, _) = memory(worker);
        assert!(most < 60 * 1024, "{most} KiB");
    }
}

/// Sends the first octets of a message and then nothing; the server may end the session meanwhile.
fn park(mut session: Session, octets: usize) -> Session {
    session.envelope("a@example.net", &["alice@example.org"]);
    let _ = session.try_send(&numbered(octets).as_bytes()[..octets * 9 / 10]);
    session
}

#[test]
fn what_a_client_leaves_unfinished_is_given_back() {
    let system = System::start(&small_workers());
    let begun = || {
        let session = park(Session::greeted(system.smtp), 10 * MIB);
        wait_until("a file", || gateway_files(&system) > 5 * MIB as u64);
        session
    };
    let forgotten = || wait_until("no file", || gateway_files(&system) == 0);
    drop(begun());
    forgotten();
    let mut session = begun();
    for worker in system.role_pids("worker") {
        signal(worker, Signal::SIGKILL);
    }
    session.expect("421");
    forgotten();
    wait_until("mail again", || try_send(system.smtp, "behind").is_some());
    let mut session = begun();
    assert_eq!(system.signal_role("gateway", Signal::SIGKILL), 1);
    let _ = session.try_send(b"\r\n.\r\n");
    let reply = session.reply();
    assert!(reply.starts_with('4'), "{reply}");
    wait_until("mail again", || try_send(system.smtp, "behind").is_some());
    // A message that is refused for its size holds nothing either.
    let mut session = Session::greeted(system.smtp);
    session.envelope("a@example.net", &["alice@example.org"]);
    session.send(numbered(30 * MIB).as_bytes());
    forgotten();
    session.command(".", "552 5.3.4");
}

fn offer_until_accepted(system: &System, source: &str, text: &str) {
    wait_until("the mail of another client", || {
        let mut session = greeted_from(source, system.smtp);
        let reply = session.offer("b@example.net", "alice@example.org", text);
        assert!(
            reply.starts_with("250") || reply.starts_with("452"),
            "{reply}"
        );
        reply.starts_with("250")
    });
}

/// Ends parked messages, and returns the number of those refused for want of space.
fn refused(parked: Vec<Session>) -> usize {
    let end = |mut session: Session| {
        session.try_send(b"\r\n.\r\n").ok()?;
        let reply = session.try_reply().ok()?;
        let is_refused = reply.starts_with("452 4.3.1");
        assert!(is_refused || reply.starts_with("250"), "{reply}");
        is_refused.then_some(())
    };
    parked.into_iter().filter_map(end).count()
}

/// The files of workers are within the bound of all files, and messages that stand still give way.
#[test]
fn parked_messages_hold_disk_space_within_its_bound() {
    let options = small_workers().set("limits.body_disk_max", "\"64 MiB\"");
    let system = System::start(&options);
    let parked: Vec<_> = (1..=8)
        .map(|number| {
            let source = format!("127.0.7.{number}");
            park(greeted_from(&source, system.smtp), 14 * MIB)
        })
        .collect();
    wait_until("the bound to be held", || {
        let files = gateway_files(&system);
        assert!(files <= 64 * MIB as u64, "{files} octets");
        files > 40 * MIB as u64
    });
    offer_until_accepted(&system, "127.0.7.77", "Subject: small\r\n\r\n");
    offer_until_accepted(&system, "127.0.7.78", &dotted(&numbered(10 * MIB)));
    system.wait_log(&["the disk for arriving messages short", "client=127.0.7."]);
    assert!(refused(parked) >= 1);
}

#[test]
fn a_full_disk_refuses_long_messages_and_no_others() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let folder = directory.path().join("data");
    let Some(disk) = SmallDisk::mount(&folder, "400m") else {
        return;
    };
    let system = System::start_in(directory, &small_workers());
    // Half of the reserve of 50 MiB is for those who are called to give up theirs.
    let filling = folder.join("filling");
    let octets = usize::try_from(disk.free()).expect("a small disk") - 20 * MIB;
    std::fs::write(&filling, vec![0; octets]).expect("room");
    let mut session = Session::greeted(system.smtp);
    session.envelope("a@example.net", &["alice@example.org"]);
    session.send(dotted(&numbered(4 * MIB)).as_bytes());
    session.command(".", "452 4.3.1");
    let small = session.offer(
        "b@example.net",
        "alice@example.org",
        "Subject: small\r\n\r\n",
    );
    assert!(small.starts_with("250"), "{small}");
    system.wait_log(&["the disk for arriving messages short"]);
    std::fs::remove_file(&filling).expect("removed");
    offer_until_accepted(&system, "127.0.7.77", &dotted(&numbered(4 * MIB)));
    system.wait_mail("alice", 2);
    assert_eq!(gateway_files(&system), 0);
}

/// A worker that speaks for itself: frames as `vere_handoff::message` draws them.
struct Worker(UnixStream);

impl Worker {
    fn connect(system: &System) -> Self {
        let path = system.directory.path().join("data/front/intake");
        let stream = UnixStream::connect(path).expect("the gateway");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        let mut worker = Self(stream);
        assert_eq!(worker.answer()[..2], [VERSION, 132]);
        worker
    }

    fn say(&mut self, kind: u8, number: u64, rest: &[&[u8]]) {
        let rest = rest.concat();
        let length = u32::try_from(rest.len() + 10).expect("short");
        let length = length.to_le_bytes();
        let frame = [&length[..], &[VERSION, kind], &number.to_le_bytes(), &rest].concat();
        self.0.write_all(&frame).expect("a gateway that reads");
    }

    fn part(&mut self, number: u64, place: u64, octets: usize) {
        // Each message has a separate client: the bound of one client is not meant.
        let client = (u128::from(number) << 80).to_be_bytes();
        self.say(
            2,
            number,
            &[&place.to_le_bytes(), &client, &vec![b'x'; octets]],
        );
    }

    fn message(&mut self, number: u64, ahead: u64) {
        self.say(
            1,
            number,
            &[&[0, 0], &ahead.to_le_bytes(), &[0; 12], b"rest"],
        );
    }

    fn answer(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).expect("an answer");
        let length = usize::try_from(u32::from_le_bytes(length)).expect("short");
        let mut octets = vec![0; length];
        self.0.read_exact(&mut octets).expect("an answer");
        octets
    }

    fn expect(&mut self, kind: u8, number: u64) {
        let answer = self.answer();
        assert_eq!(
            (answer[1], &answer[2..10]),
            (kind, &number.to_le_bytes()[..])
        );
    }
}

/// The version and kinds of frames.
const VERSION: u8 = 4;
const KEPT: u8 = 133;
const GONE: u8 = 134;
const REFUSED: u8 = 130;

/// A worker that was taken over harms its own messages.
#[test]
fn a_worker_that_lies_about_parts_is_refused() {
    let system = System::start(&small_workers().set("limits.body_disk_max", "\"64 MiB\""));
    let mut worker = Worker::connect(&system);
    // A message without its parts, one with fewer than it says, and a part without those before.
    worker.message(1, 5);
    worker.expect(REFUSED, 1);
    worker.part(2, 0, 10);
    worker.expect(KEPT, 2);
    worker.message(2, 11);
    worker.expect(REFUSED, 2);
    worker.part(3, 1, 10);
    worker.expect(GONE, 3);
    for (place, answer) in [(0, KEPT), (9, GONE), (10, GONE)] {
        worker.part(4, place, 10);
        worker.expect(answer, 4);
    }
    wait_until("no file", || gateway_files(&system) == 0);
    // More octets than a message may have, and than a worker may have: half of the disk.
    let mib = u64::try_from(MIB).expect("fits");
    for place in 0..24 {
        worker.part(5, place * mib, MIB);
        worker.expect(KEPT, 5);
    }
    worker.part(6, 0, MIB);
    worker.expect(KEPT, 6);
    worker.part(5, 24 * mib, MIB);
    worker.expect(GONE, 5);
    let mut kept = 0;
    for number in 10..60 {
        worker.part(number, 0, MIB);
        kept += u32::from(worker.answer()[1] == KEPT);
    }
    assert_eq!(kept, 31);
    // The octets of the refused message no longer count for the worker. A thread closes the file later than the answer.
    wait_until("the files of 32 parts", || {
        gateway_files(&system) == 32 * mib
    });
    try_send(system.smtp, "beside").expect("accepted");
    for number in 6..60 {
        worker.say(3, number, &[]);
    }
    // No more files than a worker may have.
    let mut kept = 0;
    for number in 100..1_200 {
        worker.part(number, 0, 1);
        kept += u32::from(worker.answer()[1] == KEPT);
    }
    assert_eq!(kept, 1_024);
    drop(worker);
    wait_until("no file", || gateway_files(&system) == 0);
    // A worker that reads no answer is not heard for ever, and holds no memory.
    let mut worker = Worker::connect(&system);
    let gateway = system.role_pids("gateway")[0];
    let (_, before) = memory(gateway);
    let timeout = Some(Duration::from_millis(200));
    worker.0.set_write_timeout(timeout).expect("a time");
    let frame = [&[34, 0, 0, 0, VERSION, 2][..], &[7; 8], &[1; 24]].concat();
    let many = frame.repeat(10_000);
    let stops = (0..200).any(|_| worker.0.write_all(&many).is_err());
    assert!(stops, "the gateway reads without end");
    let (_, now) = memory(gateway);
    assert!(
        now < before + 20 * 1024,
        "{before} KiB before, {now} KiB now"
    );
    wait_for("mail beside", || try_send(system.smtp, "beside"));
}
