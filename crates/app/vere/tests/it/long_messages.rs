//! Long messages on the way: their memory and disk space, and the priority when space is short.

use serde_json::Value;

use crate::harness::{Options, Session, System, free_address, wait_for, wait_until};
use crate::imap::{Imap, start_with_store};
use crate::metrics;
use crate::proxy::{start_behind_proxy, start_in_behind_proxy};
use crate::trouble::{SmallDisk, begin_as, memory, nameless};

const MIB: usize = 1024 * 1024;

/// Lines of 1 MiB together.
fn mebibyte() -> String {
    format!("{}\r\n", "A".repeat(1022)).repeat(MIB / 1024)
}

/// The body doubled as it grew: a message beyond the limit took twice the limit, by LMTP.
#[test]
fn a_message_beyond_the_limit_takes_no_more_than_that_of_the_store() {
    let options = Options::default().set("limits.message_size_max", "\"32 MiB\"");
    let (system, ports) = start_with_store(options);
    let pid = system.role_pids("store")[0];
    let text = mebibyte();
    let mut lmtp = Session::lmtp(ports.lmtp);
    let mut alice = Imap::login(ports.imap, "alice@example.org", "secret");
    let (_, before) = memory(pid);
    // The gateway's own fields have 1 MiB beside.
    lmtp.command("MAIL FROM:<a@example.net> SIZE=34603009", "552 5.3.4");
    lmtp.envelope("a@example.net", &["alice@example.org"]);
    for _ in 0..34 {
        lmtp.send(text.as_bytes());
    }
    lmtp.command("\r\n.", "552 5.3.4");
    let limit = 32 * 1024 * 12 / 10;
    let (most, _) = memory(pid);
    assert!(
        most < before + limit,
        "LMTP: {before} KiB before, {most} KiB at most"
    );
    // By APPEND no literal was beyond the limit alone, but there may be any number of them.
    alice.send(&format!("z APPEND INBOX {{{}+}}\r\n", 31 * MIB));
    for _ in 0..31 {
        alice.send(&text);
    }
    alice.send(&format!(" {{{}}}\r\n", 31 * MIB));
    let said = alice.said("z ");
    assert!(said.contains("z NO [TOOBIG]"), "{said}");
    let (most, _) = memory(pid);
    assert!(
        most < before + limit,
        "APPEND: {before} KiB before, {most} KiB at most"
    );
}

/// Opens sessions that each send the first mebibytes of a message and then stay silent.
fn parked(system: &System, clients: usize, mebibytes: usize) -> Vec<Session> {
    let text = mebibyte();
    let park = |number| {
        let mut session = begin_as(system.smtp, &format!("203.0.113.{number}"));
        session.envelope("a@example.net", &["alice@example.org"]);
        for _ in 0..mebibytes {
            // The server may end a session that sent almost no octets.
            let _ = session.try_send(text.as_bytes());
        }
        session
    };
    (1..=clients).map(park).collect()
}

pub(crate) fn top(system: &System) -> Value {
    system.json(&["queue", "top", "--once", "--interval", "100ms"])
}

/// Offers a message from a client without other messages until the server accepts the message.
fn offer_as(system: &System, client: &str, text: &str) {
    wait_until("the mail of a stranger", || {
        let mut stranger = begin_as(system.smtp, client);
        let reply = stranger.offer("b@example.net", "alice@example.org", text);
        assert!(
            reply.starts_with("250") || reply.starts_with("452"),
            "{reply}"
        );
        reply.starts_with("250")
    });
}

/// Ends every parked message. Returns how many are refused for lack of space; the server accepts the others.
fn refused(parked: Vec<Session>) -> usize {
    let ended = parked.into_iter().filter_map(|mut session| {
        session.try_send(b"\r\n.\r\n").ok()?;
        let reply = session.try_reply().ok()?;
        assert!(
            reply.starts_with("250") || reply.starts_with("452 4.3.1"),
            "{reply}"
        );
        reply.starts_with("452").then_some(())
    });
    ended.count()
}

/// The space of parked messages gives way to active senders.
#[test]
fn files_of_long_messages_stay_within_their_bound_and_say_whose_they_are() {
    let endpoint = free_address();
    let options = Options::default()
        .set("limits.message_size_max", "\"16 MiB\"")
        .set("limits.body_disk_max", "\"64 MiB\"")
        .set("metrics.listen", &format!("\"{endpoint}\""))
        .set("proxy.networks", "[\"127.0.0.0/8\"]");
    let system = start_behind_proxy(&options);
    let pid = system.role_pids("gateway")[0];
    let parked = parked(&system, 6, 14);
    // Strangers get 56 of the 64 MiB; of each message up to 1 MiB is in memory.
    wait_until("the bound to be held", || {
        let files = nameless(pid);
        assert!(files <= 64 * MIB as u64, "{files} octets");
        files > 40 * MIB as u64
    });
    let most = &top(&system)["heaviest_on_disk"];
    assert!(
        most["client"]
            .as_str()
            .is_some_and(|client| client.starts_with("203.0.113.")),
        "{most}"
    );
    assert!(most["octets"].as_u64() > Some(10 * MIB as u64), "{most}");
    wait_for("the metric", || {
        let text = metrics::read(endpoint);
        let mut lines = text.lines();
        lines.find(|line| {
            line.starts_with("vere_smtp_body_disk_heaviest_bytes{client=\"203.0.113.")
        })?;
        Some(())
    });
    let large = format!("Subject: large\r\n\r\n{}", mebibyte().repeat(10));
    offer_as(&system, "203.0.113.77", &large);
    offer_as(&system, "203.0.113.78", "Subject: small\r\n\r\n");
    system.wait_log(&["the disk for arriving messages short", "client=203.0.113."]);
    assert!(refused(parked) >= 1);
}

/// Files of long messages took all that `limits.body_disk_max` allows, of a disk with less room: then the nodes could log
/// nothing.
#[test]
fn long_messages_that_are_parked_leave_room_on_the_disk() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let folder = directory.path().join("data");
    let Some(disk) = SmallDisk::mount(&folder, "400m") else {
        return;
    };
    let options = Options::default()
        .set("limits.message_size_max", "\"16 MiB\"")
        .set("proxy.networks", "[\"127.0.0.0/8\"]");
    let system = start_in_behind_proxy(directory, &options);
    let pid = system.role_pids("gateway")[0];
    let parked = parked(&system, 30, 15);
    wait_until("the disk to be as full as it may be", || {
        // An eighth is kept, 50 MiB; half of the reserve by all means.
        assert!(disk.free() > 25 * MIB as u64, "{} octets free", disk.free());
        nameless(pid) > 100 * MIB as u64
    });
    // A called client lets go at once.
    wait_until("what is kept to be free", || disk.free() > 45 * MIB as u64);
    let large = format!("Subject: large\r\n\r\n{}", mebibyte().repeat(10));
    offer_as(&system, "203.0.113.78", "Subject: small\r\n\r\n");
    offer_as(&system, "203.0.113.77", &large);
    offer_as(&system, "203.0.113.79", "Subject: small\r\n\r\n");
    assert!(disk.free() > 10 * MIB as u64, "{} octets free", disk.free());
    system.wait_log(&["the disk for arriving messages short", "client=203.0.113."]);
    system.wait_mail("alice", 3);
    // The remaining messages are as many as the disk does not hold twice.
    let first = parked
        .into_iter()
        .position(|session| refused(vec![session]) == 1);
    assert!(first.is_some_and(|first| first < 3), "{first:?}");
}
