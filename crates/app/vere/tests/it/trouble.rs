//! Trouble on our own side: a full disk, a node that does not answer, too much at once. The client
//! is told to come again, and what was acknowledged is kept.

use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::statvfs::statvfs;
use nix::unistd::geteuid;

use crate::harness::{
    Options, PATIENCE, Session, Sink, System, free_address, skip, wait_for, wait_until, wait_within,
};
use crate::imap::{Imap, with_store};
use crate::long_messages::top;
use crate::proxy::start_behind_proxy;
use crate::replicas::wait_states;

/// A small file system in memory, unmounted at the end.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    pub(crate) fn mount(path: &Path, size: &str) -> Option<Self> {
        if !geteuid().is_root() {
            skip("a full disk", "only root may mount one");
            return None;
        }
        std::fs::create_dir_all(path).expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]);
        let mounted = mount.arg(path).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            skip("a full disk", "no tmpfs may be mounted here");
            return None;
        }
        Some(Self(path.to_owned()))
    }

    /// Free octets.
    pub(crate) fn free(&self) -> u64 {
        let system = statvfs(&self.0).expect("the disk");
        system.blocks_available() * system.fragment_size()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Waits until as many messages have arrived; those of these ids are among them.
fn wait_all(sink: &Sink, ids: &[String]) {
    let texts = wait_within(2 * PATIENCE, "all that was acknowledged", || {
        let texts = sink.mail();
        (texts.len() >= ids.len()).then_some(texts)
    });
    for id in ids {
        assert!(texts.iter().any(|text| text.contains(id)), "{id} is lost");
    }
}

#[test]
fn a_full_disk_is_answered_452_and_loses_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(_disk) = SmallDisk::mount(&directory.path().join("data"), "80m") else {
        return;
    };
    let next_hop = free_address();
    let system = System::start_in(directory, &Options::to(next_hop));
    let mut session = Session::greeted(system.smtp);
    let text = format!(
        "A: b\r\n\r\n{}",
        format!("{}\r\n", "A".repeat(998)).repeat(1000)
    );
    let mut ids = Vec::new();
    let refusal = loop {
        // Each lies in two logs.
        assert!(ids.len() < 60, "120 MB do not fit on this disk");
        let reply = session.offer("a@example.net", "x@example.com", &text);
        if !reply.starts_with("250") {
            break reply;
        }
        ids.push(crate::harness::queue_id(&reply));
    };
    assert!(refusal.starts_with("452 4.3.1"), "{refusal}");
    assert!(ids.len() >= 10, "only {} messages fit", ids.len());
    // Commands are still answered, and again temporarily.
    assert_eq!(system.queued(), ids.len() as u64);
    session.command("NOOP", "250");
    let again = session.offer("a@example.net", "x@example.com", &text);
    assert!(again.starts_with('4'), "{again}");

    // With the next hop back, everything goes, and new mail is taken without a restart.
    let sink = Sink::start_at(next_hop, &[]);
    wait_all(&sink, &ids);
    wait_for("mail to be taken again", || {
        // While the disk is nearly full no new client is admitted.
        let mut session = Session::try_connect(system.smtp).ok()?;
        session.command("EHLO client.example.net", "250");
        let reply = session.offer("a@example.net", "x@example.com", &text);
        reply.starts_with("250").then_some(())
    });
}

/// Writes until the file system has no block left.
fn fill(folder: &Path) {
    let mut options = File::options();
    let path = folder.join("another-writer");
    let mut file = options
        .create(true)
        .append(true)
        .open(path)
        .expect("a file");
    for size in [1 << 20, 4096, 1] {
        let octets = vec![b'x'; size];
        while file.write_all(&octets).is_ok() {}
    }
}

/// Another program fills the disk. Every killed process comes back, a restart of all succeeds, and waiting mail
/// leaves.
#[test]
fn on_a_full_disk_every_role_comes_back_and_mail_drains() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(disk) = SmallDisk::mount(&directory.path().join("data"), "400m") else {
        return;
    };
    let next_hop = free_address();
    let (options, ports) = with_store(Options::to(next_hop));
    let mut system = System::start_in(directory, &options);
    let mut session = Session::greeted(system.smtp);
    let ids: Vec<_> = (0..5)
        .map(|number| {
            let text = format!("Subject: {number}\r\n\r\ntext");
            session.submit("a@example.net", &["x@example.com"], &text)
        })
        .collect();
    let mut alice = Imap::login(ports.imap, "alice@example.org", "secret");
    alice.append("INBOX", "Subject: kept\r\n\r\ntext\r\n");
    // The other writer takes the space reserved for a start as well.
    std::fs::remove_file(disk.0.join("ballast")).expect("the ballast of a disk with space");
    fill(&disk.0);
    for role in ["gateway", "store", "spool a", "spool b"] {
        system.kill_and_wait(role);
        // The next kill may not meet the only copy.
        wait_states(&system, ["sync", "sync"]);
        wait_until(&format!("{role} to come back"), || {
            system.queued_if_up() == Some(5)
        });
        let mut alice = Imap::login(ports.imap, "alice@example.org", "secret");
        assert_eq!(alice.exists("INBOX"), 1);
    }
    system.restart();
    let mut alice = Imap::login(ports.imap, "alice@example.org", "secret");
    assert_eq!(alice.exists("INBOX"), 1);
    let sink = Sink::start_at(next_hop, &[]);
    wait_all(&sink, &ids);
}

#[test]
fn a_node_that_does_not_answer_is_answered_4xx_in_time() {
    let sink = Sink::start();
    let system = System::start(&Options::to(sink.address));
    let mut session = Session::greeted(system.smtp);
    let mut other = Session::greeted(system.smtp);
    session.envelope("a@example.net", &["x@example.com"]);
    // The supervisor would replace the node after 30 s of silence.
    system.signal(Signal::SIGSTOP);
    assert_eq!(system.signal_role("spool", Signal::SIGSTOP), 2);
    session.send(b"Subject: stopped\r\n\r\nbody\r\n.\r\n");
    // No client may believe that the message is safe. A real client waits ten minutes, the client of the test less.
    session.expect("451 4.3.");
    // By now the gateway knows, and still answers.
    other.command("MAIL FROM:<a@example.net>", "451 4.3.");
    other.command("NOOP", "250");

    system.signal_role("spool", Signal::SIGCONT);
    system.signal(Signal::SIGCONT);
    wait_until("mail to be taken again", || {
        other.send(b"MAIL FROM:<a@example.net>\r\n");
        other.reply().starts_with("250")
    });
    other.command("RCPT TO:<x@example.com>", "250");
    other.command("DATA", "354");
    other.command("Subject: after\r\n\r\nbody\r\n.", "250");
    wait_for("the message", || {
        let texts = sink.mail();
        let mut after = texts.iter().filter(|text| text.contains("Subject: after"));
        after.next().map(drop)
    });
    // The refused message was rolled back.
    system.wait_empty();
    assert_eq!(sink.mail().len(), 1);
}

#[test]
fn a_node_that_hangs_is_replaced() {
    let sink = Sink::start();
    let system = System::start(&Options::to(sink.address));
    let before = system.role_pids("spool");
    system.signal_role("spool", Signal::SIGSTOP);
    wait_within(PATIENCE, "a new node", || {
        let pids = system.role_pids("spool");
        (!pids.is_empty() && pids != before).then_some(())
    });
    wait_for("mail to be taken again", || {
        let mut session = Session::try_connect(system.smtp).ok()?;
        session.send(b"EHLO client\r\nMAIL FROM:<a@example.net>\r\n");
        session.try_reply().ok()?;
        session.try_reply().ok()?.starts_with("250").then_some(())
    });
    system.submit(
        "a@example.net",
        &["x@example.com"],
        "Subject: after\r\n\r\n",
    );
    sink.wait_mail(1);
}

#[test]
fn a_node_that_pauses_only_delays() {
    let sink = Sink::start();
    let system = System::start(&Options::to(sink.address));
    let mut session = Session::greeted(system.smtp);
    session.envelope("a@example.net", &["x@example.com"]);
    assert_eq!(system.signal_role("spool", Signal::SIGSTOP), 2);
    session.send(b"Subject: paused\r\n\r\nbody\r\n.\r\n");
    // No wait for an event: the pause itself.
    std::thread::sleep(Duration::from_secs(2));
    system.signal_role("spool", Signal::SIGCONT);
    session.expect("250 2.");
    sink.wait_mail(1);
}

#[test]
fn more_text_at_once_than_memory_is_answered_452() {
    let options = Options::default()
        .set("limits.message_size_max", "\"512 KiB\"")
        .set("limits.body_memory_max", "\"1 MiB\"");
    let system = System::start(&options);
    let text = format!("{}\r\n", "A".repeat(998)).repeat(400);
    let mut sessions: Vec<Session> = (0..10).map(|_| Session::greeted(system.smtp)).collect();
    for session in &mut sessions {
        session.transaction("a@example.net", &["alice@example.org"]);
        session.send(b"DATA\r\n");
    }
    let mut answers = Vec::new();
    for session in &mut sessions {
        let begun = session.reply();
        if begun.starts_with("354") {
            session.send(text.as_bytes());
        }
        answers.push(begun);
    }
    for (session, answer) in sessions.iter_mut().zip(&mut answers) {
        if answer.starts_with("354") {
            session.send(b".\r\n");
            *answer = session.reply();
        }
    }
    let count = |code: &str| {
        answers
            .iter()
            .filter(|answer| answer.starts_with(code))
            .count()
    };
    assert_eq!(count("250") + count("452 4.3.1"), 10, "{answers:?}");
    assert!(count("250") >= 1 && count("452") >= 1, "{answers:?}");
    // Freed memory is given again.
    system.submit("a@example.net", &["alice@example.org"], &text);
    system.wait_mail("alice", count("250") + 1);
}

/// Connects through the balancer as a given client, and begins a message.
pub(crate) fn begin_as(address: SocketAddr, client: &str) -> Session {
    let mut session = Session::open(address).expect("a connection");
    session.send(format!("PROXY TCP4 {client} 192.0.2.25 4711 25\r\n").as_bytes());
    session.expect("220");
    session.command("EHLO client.example.net", "250");
    session
}

/// Four clients held the memory for messages on the way and sent nothing: no client could connect to any port.
#[test]
fn those_who_hold_memory_and_do_nothing_stop_nobody() {
    let options = Options::default()
        .set("limits.message_size_max", "\"1 MiB\"")
        .set("limits.body_memory_max", "\"4 MiB\"")
        .set("auth.plaintext_networks", "[\"198.51.100.0/24\"]")
        .set("proxy.networks", "[\"127.0.0.0/8\"]");
    let system = start_behind_proxy(&options);
    // Strangers get 3.5 of the 4 MiB.
    let text = format!("{}\r\n", "A".repeat(998)).repeat(890);
    let parked: Vec<Session> = (0..4)
        .map(|number| {
            let mut session = begin_as(system.smtp, &format!("203.0.113.{number}"));
            session.envelope("a@example.net", &["alice@example.org"]);
            session.send(text.as_bytes());
            session
        })
        .collect();
    wait_for("the bound to be held", || {
        let top = top(&system);
        let mut budgets = top["budgets"].as_array().expect("budgets").iter();
        let held = budgets.find(|budget| budget["name"] == "receiving");
        (held?["used"].as_u64()? >= 4 * 890 * 1_000).then_some(())
    });
    assert_eq!(top(&system)["heaviest"]["octets"], 890 * 1_000);
    // At once: a user, for whom a part is reserved.
    let mut user = begin_as(system.submission, "198.51.100.7");
    user.log_in("alice@example.org");
    let body = format!("{}\r\n", "B".repeat(998)).repeat(400);
    user.submit("alice@example.org", &["alice@example.org"], &body);
    // As soon as the holders stand still: every client. No client is turned away at the greeting.
    wait_until("the mail of a stranger", || {
        let mut stranger = begin_as(system.smtp, "203.0.113.77");
        let reply = stranger.offer("b@example.net", "alice@example.org", &body);
        reply.starts_with("250")
    });
    system.wait_mail("alice", 2);
    system.wait_log(&["memory for arriving messages short", "client=203.0.113."]);
    // Refused clients get the refusal at the end of their message.
    let refused = parked.into_iter().filter_map(|mut session| {
        session.try_send(b".\r\n").ok()?;
        let reply = session.try_reply().ok()?;
        reply.starts_with("452 4.3.1").then_some(())
    });
    assert!(refused.count() >= 1);
}

/// The most memory that a process had, and has now, in KiB.
pub(crate) fn memory(pid: u32) -> (u64, u64) {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let field = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.and_then(|number| number.parse().ok()).expect(name)
    };
    (field("VmHWM:"), field("VmRSS:"))
}

fn begin(system: &System) -> Session {
    let mut session = Session::greeted(system.smtp);
    session.command("EHLO client.example.net", "250");
    session.transaction("a@example.net", &["alice@example.org"]);
    session
}

/// Octets of unlinked files that a process has open.
pub(crate) fn nameless(pid: u32) -> u64 {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its descriptors");
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let deleted = paths.filter(|path| {
        std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().ends_with(" (deleted)"))
    });
    let files = deleted.filter_map(|path| std::fs::metadata(path).ok());
    files
        .filter(|file| file.is_file())
        .map(|file| file.len())
        .sum()
}

/// Long messages on the way use the disk, not memory; a message beyond the limit used twice the limit.
#[test]
fn long_messages_on_their_way_take_no_memory() {
    const MIB: usize = 1024 * 1024;
    let options = Options::default().set("limits.message_size_max", "\"32 MiB\"");
    let system = System::start(&options);
    let pid = system.role_pids("gateway")[0];
    let line = format!("{}\r\n", "A".repeat(1022));
    let text = line.repeat(MIB / 1024);
    let (_, before) = memory(pid);
    // A message beyond the limit.
    let mut session = begin(&system);
    session.command("DATA", "354");
    for _ in 0..33 {
        session.send(text.as_bytes());
    }
    session.command("\r\n.", "552 5.3.4");
    let (most, _) = memory(pid);
    assert!(
        most < before + 12 * 1024,
        "{before} KiB before, {most} KiB at most"
    );
    // A message by DATA, a message by BDAT, both with all earlier octets dropped, and a waiting message.
    let mut parked = begin(&system);
    parked.command("DATA", "354");
    for _ in 0..20 {
        parked.send(text.as_bytes());
    }
    let mut chunks = begin(&system);
    chunks.send(format!("BDAT {}\r\n{text}{text}", 2 * MIB).as_bytes());
    chunks.expect("250");
    // Less than 1 MiB of each is in memory.
    let (with, without) = (20 * MIB as u64, 19 * MIB as u64);
    wait_until("both files", || nameless(pid) >= with);
    chunks.command("RSET", "250");
    wait_until("one to go", || (without..=with).contains(&nameless(pid)));
    let (most, _) = memory(pid);
    assert!(
        most < before + 16 * 1024,
        "{before} KiB before, {most} KiB at most"
    );
    chunks.transaction("a@example.net", &["alice@example.org"]);
    let head = "Subject: in chunks\r\n\r\n";
    chunks.send(format!("BDAT {}\r\n{head}{text}{text}", head.len() + 2 * MIB).as_bytes());
    chunks.expect("250");
    chunks.send(b"BDAT 6 LAST\r\nlast\r\n");
    chunks.expect("250 2.0.0");
    let mut whole = begin(&system);
    whole.command("DATA", "354");
    whole.send(format!("Subject: as data\r\n\r\n{}", text.repeat(5)).as_bytes());
    whole.command("..last\r\n.", "250 2.0.0");
    parked.command("\r\n.", "250 2.0.0");
    let mails = system.wait_mail("alice", 3);
    let found = |subject: &str| {
        mails
            .iter()
            .find(|mail| mail.contains(subject))
            .expect(subject)
    };
    let body = |subject: &str| {
        found(subject)
            .split_once("\n\n")
            .expect("a body")
            .1
            .to_owned()
    };
    let text = text.replace("\r\n", "\n");
    assert!(body("in chunks") == format!("{text}{text}last\n"));
    assert!(body("as data") == format!("{}.last\n", text.repeat(5)));
    assert_eq!(nameless(pid), 0);
}

#[test]
fn a_second_system_on_the_same_port_names_the_owner_of_the_port() {
    let system = System::start(&Options::default());
    let other = tempfile::tempdir().expect("a temporary directory");
    let text = format!(
        "[smtp]\nlisten = [\"{}\"]\n[lmtp]\nlisten = [\"127.0.0.1:0\"]\n",
        system.smtp
    );
    let config = Options::write_smallest(other.path(), &text);
    let mut serve = crate::harness::vere();
    let said = crate::harness::fails_with(serve.arg("serve").arg("-c").arg(&config), 1);
    let port = format!("port {} is taken by vere (process ", system.smtp.port());
    assert!(said.contains(&port), "{said}");
}
