//! The mail store's room: it comes back by itself, and a system knows where own mail goes.

use crate::harness::{
    Options, PATIENCE, System, assert_has, free_address, output_of, vere, wait_within,
};
use crate::imap::{Imap, start_with_store, wait_messages, with_store};

/// Messages of the test, and octets of each: more than a segment of the log.
const MESSAGES: usize = 28;
const MESSAGE_OCTETS: usize = 4 * 1024 * 1024;

/// An incompressible message.
fn noise(number: usize) -> String {
    let mut text = format!("Subject: {number}\r\n\r\n");
    let mut state = number as u64 + 1;
    while text.len() < MESSAGE_OCTETS {
        for _ in 0..8 {
            // xorshift64
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let characters = (0..10).map(|at| char::from(b'0' + (state >> (6 * at) & 63) as u8));
            text.extend(characters);
        }
        text.push_str("\r\n");
    }
    text
}

/// A figure of the endpoint.
fn figure(endpoint: std::net::SocketAddr, name: &str) -> u64 {
    let text = crate::metrics::read(endpoint);
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|value| value.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in {text}"))
}

#[test]
fn room_of_removed_messages_comes_back_by_itself() {
    let endpoint = free_address();
    let options = Options::default()
        .set("metrics.store", &format!("\"{endpoint}\""))
        .set("store.reclaim_share", "100")
        .set("store.keep_expunged", "\"0s\"");
    let (mut system, ports) = start_with_store(options);
    let mut alice = Imap::login(ports.imap, "alice@example.org", "secret");
    for number in 0..MESSAGES {
        alice.append("INBOX", &noise(number));
    }
    alice.ok("SELECT INBOX");
    let kept = alice.body(MESSAGES);
    alice.ok(&format!(
        "STORE 1:{} +FLAGS.SILENT (\\Deleted)",
        MESSAGES - 1
    ));
    alice.ok("EXPUNGE");
    assert_eq!(alice.body(1), kept);
    // More than half of the messages are in a segment that is closed for writes. A pass that began before the last
    // removal may find too little: the next pass begins a minute later.
    wait_within(3 * PATIENCE, "the room", || {
        let saved = figure(endpoint, "vere_store_reclaimed_bytes_total ");
        (saved > (MESSAGE_OCTETS * MESSAGES / 8) as u64).then_some(())
    });
    assert_eq!(
        figure(endpoint, "vere_store_messages_removed_total "),
        MESSAGES as u64 - 1
    );
    assert!(figure(endpoint, "vere_store_syncs_total ") >= MESSAGES as u64);
    alice.ok("SELECT INBOX");
    assert_eq!(alice.body(1), kept);
    drop(alice);
    system.kill();
    let said = system.command(&["store", "stats"]);
    assert!(
        said.contains("reclaimable") && !said.contains("never"),
        "{said}"
    );
    let said = system.command(&["store", "check"]);
    assert!(said.contains("nothing is wrong"), "{said}");
}

/// Before the first message a store was taken for a restored store at each restart.
#[test]
fn an_empty_store_is_the_same_after_a_restart() {
    let (mut system, ports) = start_with_store(Options::default());
    for _ in 0..2 {
        system.end();
        system.start_again();
    }
    let log = system.log();
    assert!(!log.contains("is not the one that was here last"), "{log}");
    Imap::login(ports.imap, "alice@example.org", "secret")
        .append("INBOX", "Subject: n1\r\n\r\nx\r\n");
}

#[test]
fn own_mail_goes_to_the_store_unless_said_otherwise() {
    let (options, ports) = with_store(Options::default());
    let system = System::start(&options.unset("delivery.local"));
    system.submit(
        "me@example.net",
        &["alice@example.org"],
        "Subject: one\r\n\r\nhello\r\n",
    );
    wait_messages(&ports, "alice@example.org", "INBOX", 1);
    assert!(!system.maildir("alice").exists());
}

#[test]
fn where_there_are_maildirs_somebody_decides() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (options, _) = with_store(Options::default());
    let unsaid = options.clone().unset("delivery.local");
    let config = System::write_config(directory.path(), &unsaid);
    let said = |command: &str| {
        let mut vere = vere();
        vere.arg(command);
        if command == "serve" {
            vere.arg("-c");
        }
        let output = output_of(vere.arg(&config), "");
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    };
    let (code, text) = said("check-config");
    assert_eq!(code, Some(0), "{text}");
    let maildir = directory.path().join("data/maildir/example.org/alice/new");
    std::fs::create_dir_all(maildir).expect("a Maildir");
    for command in ["check-config", "serve"] {
        let (code, text) = said(command);
        assert_eq!(code, Some(1), "{command}: {text}");
        assert_has(&text, &["delivery.local", "vere import"]);
    }
    System::write_config(directory.path(), &options);
    let (code, text) = said("check-config");
    assert_eq!(code, Some(0), "{text}");
}
