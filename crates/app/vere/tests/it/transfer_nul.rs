//! Import of messages with NUL, which IMAP shows in two forms, from servers with faults in one form.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::harness::{Options, System};
use crate::imap::{Imap, start_with_store};
use crate::transfer_remote::{ACCOUNT, Answer, honest, import, odd_server, password};

/// A literal shows 0x80 where NUL is, and BINARY tells which ones are; but some servers take encodings off on the way,
/// and some do not want to.
#[test]
fn nul_is_read_from_servers_that_tell_it_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let shown = "Subject: one\r\n\r\na\u{80}b\u{80}c\r\n";
    let octets = |text: &str| text.chars().map(|one| one as u8).collect::<Vec<u8>>();
    let (nul, first) = ('\0', "a\u{80}b");
    let exact = shown.replace(first, &format!("a{nul}b"));
    let decoded = shown.replace(first, "anb");
    for (binary, kept) in [
        (Some(exact.clone()), &exact),
        // As long, and different in octets other than NUL; longer; refused.
        (Some(decoded.replace('\u{80}', "\0")), &shown.to_owned()),
        (Some(format!("{exact}\r\n")), &shown.to_owned()),
        (None, &shown.to_owned()),
    ] {
        let (system, ports) = start_with_store(Options::default());
        let server = odd_server(move |command| match (&binary, command) {
            (None, command) if command.contains("BINARY.PEEK") => {
                Answer::Ends("NO [UNKNOWN-CTE] not so")
            }
            (Some(binary), command) if command.contains("BINARY.PEEK") => {
                let size = binary.chars().count();
                Answer::Done(format!(
                    "* 1 FETCH (UID 7 BINARY[] ~{{{size}}}\r\n{binary})\r\n"
                ))
            }
            (_, command) if command.contains("BODY.PEEK") => {
                let size = shown.chars().count();
                Answer::Done(format!(
                    "* 1 FETCH (UID 7 BODY[] {{{size}}}\r\n{shown})\r\n"
                ))
            }
            _ => Answer::Done(honest(command)),
        });
        import(&system, server, folder.path()).expect("an import");
        let out = folder.path().join(format!("out{}", ports.imap.port()));
        let place = format!("maildir:{}", out.display());
        system.command(&["export", "-a", ACCOUNT, &place]);
        let files: Vec<_> = fs::read_dir(out.join("cur"))
            .expect("a folder")
            .flatten()
            .collect();
        assert_eq!(files.len(), 1);
        let kept = octets(&kept.replace("\r\n", "\n"));
        assert_eq!(fs::read(files[0].path()).expect("a file"), kept);
    }
}

/// A mailbox of three messages: two that may have lost a NUL, as the second has, and another message.
fn three(command: &str, at_binary_of_first: impl Fn() -> Answer) -> Answer {
    let texts = [(7, "a\u{80}b"), (8, "a\u{80}c"), (9, "a")];
    let texts = texts.map(|(uid, text)| (uid, format!("Subject: one\r\n\r\n{text}\r\n")));
    let asked = |uid: u32| command.contains(&format!("{uid}:{uid} "));
    let all = texts.iter().enumerate();
    if command.contains("RFC822.SIZE") {
        let line = |(place, (uid, text)): (usize, &(u32, String))| {
            let (number, size) = (place + 1, text.chars().count());
            format!("* {number} FETCH (UID {uid} FLAGS () RFC822.SIZE {size})\r\n")
        };
        return Answer::Done(all.map(line).collect());
    }
    let (name, mark) = match (command.contains("BINARY"), command.contains("BODY")) {
        (true, _) if asked(7) => return at_binary_of_first(),
        (true, _) => ("BINARY[]", "~"),
        (false, true) => ("BODY[]", ""),
        (false, false) => return Answer::Done(honest(command)),
    };
    let line = |(place, (uid, text)): (usize, &(u32, String))| {
        let (number, size) = (place + 1, text.chars().count());
        let text = match mark {
            "" => text.clone(),
            _ => text.replace('\u{80}', "\0"),
        };
        format!("* {number} FETCH (UID {uid} {name} {mark}{{{size}}}\r\n{text})\r\n")
    };
    Answer::Done(all.filter(|(_, (uid, _))| asked(*uid)).map(line).collect())
}

fn told_of_import(system: &System, from: SocketAddr, folder: &Path) -> String {
    let password = password(folder);
    let place = format!("imap://{ACCOUNT}@{from}");
    let import = ["import", "--clear", "-a", ACCOUNT, "--password-file"];
    system.command(&[&import[..], &[&password, &place]].concat())
}

/// The server's behaviour at the second reading of a message keeps no message from being carried.
#[test]
fn a_message_that_cannot_be_read_twice_is_kept_as_it_was_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, end) in [
        Answer::Ends("NO [UNKNOWN-CTE] not so"),
        Answer::Ends("BAD never heard of it"),
        Answer::Ends("OK nothing to tell"),
        Answer::Closes(""),
        Answer::Closes("* BYE internal error\r\n"),
        Answer::Closes("* 1 FETCH (UID 7 BINARY[] ~{99}\r\nSubject"),
        Answer::Closes("* 1 FETCH (UID ~{x\r\n"),
    ]
    .into_iter()
    .enumerate()
    {
        let (system, ports) = start_with_store(Options::default());
        let server = odd_server(move |command| three(command, || end.clone()));
        let said = told_of_import(&system, server, folder.path());
        assert!(said.contains("3 messages ("), "{number}: {said}");
        assert!(said.contains("doubtful: INBOX 1.7: "), "{number}: {said}");
        assert!(said.contains(", 1 is doubtful\n"), "{number}: {said}");
        let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
        alice.ok("SELECT INBOX");
        // The other messages lose nothing.
        let second = alice.ok("FETCH 2 BINARY.PEEK[]");
        assert!(second.contains("a\0c"), "{number}: {second:?}");
        assert_eq!(alice.body(3), "Subject: one\r\n\r\na\r\n");
        let again = told_of_import(&system, server, folder.path());
        assert!(again.starts_with("0 messages ("), "{number}: {again}");
    }
}

/// A single lost connection says nothing about the message.
#[test]
fn a_connection_that_is_lost_at_the_second_reading_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (system, ports) = start_with_store(Options::default());
    let times = AtomicU32::new(0);
    let server = odd_server(move |command| {
        three(command, || match times.fetch_add(1, Ordering::SeqCst) {
            0 => Answer::Closes(""),
            _ => {
                let text = "Subject: one\r\n\r\na\0b\r\n";
                let size = text.len();
                Answer::Done(format!(
                    "* 1 FETCH (UID 7 BINARY[] ~{{{size}}}\r\n{text})\r\n"
                ))
            }
        })
    });
    let said = told_of_import(&system, server, folder.path());
    assert!(said.starts_with("3 messages ("), "{said}");
    assert!(!said.contains("doubtful"), "{said}");
    let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
    alice.ok("SELECT INBOX");
    let first = alice.ok("FETCH 1 BINARY.PEEK[]");
    assert!(first.contains("a\0b"), "{first:?}");
}
