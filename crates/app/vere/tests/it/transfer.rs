//! Import and export: real mail from files and to them, and with Dovecot both ways.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use vere_bench::Corpus;

use crate::harness::{
    Options, Session, System, assert_has, assert_starts, skip, wait_for, wait_until,
};
use crate::imap::{Imap, Ports, start_with_store};
use crate::peers::Dovecot;
use crate::transfer_remote::{carries, password};

const ACCOUNT: &str = "alice@example.org";

/// Messages of every kind that is hard to carry, with LF at the ends of lines.
const ODD: [&str; 8] = [
    "Subject: from\n\nFrom here on\n>From there\n>>From nowhere\n\nFrom x@y Thu Jan  1 00:00:00 1970\n",
    "Subject: 8 bit \u{fc}\n\n\u{e9}\n\n\n",
    "no header at all, and no end of the line",
    "Broken: yes\nthis line is no field\n: nor this\n\nbody\n",
    "Subject: nothing behind it\n\n",
    "Subject: long\n\n0123456789012345678901234567890123456789012345678901234567890123456789\n",
    "Subject: cr\n\na\rb\n",
    "Subject: same\n\nsame\n",
];

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

/// Octets of all messages of a mailbox by UID, with their flags and dates, as any client would read the messages.
fn messages(session: &mut Imap, mailbox: &str) -> Vec<(String, String)> {
    session.ok(&format!("EXAMINE \"{mailbox}\""));
    let about = session.ok("FETCH 1:* (FLAGS INTERNALDATE)");
    let about = about.lines().filter(|line| line.starts_with("* "));
    let about: Vec<String> = about
        .filter_map(|line| {
            line.split_once(" FETCH ")
                .map(|(_, rest)| rest.replace("\\Recent", ""))
        })
        .collect();
    about
        .into_iter()
        .enumerate()
        .map(|(at, about)| (session.body(at + 1), about))
        .collect()
}

fn store() -> (System, Ports) {
    start_with_store(Options::default())
}

fn maildir(root: &Path, folder: &str, files: &[(&str, &str)]) {
    let place = root.join(folder);
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(place.join(part)).expect("room");
    }
    for (name, text) in files {
        fs::write(place.join(name), text).expect("room");
    }
}

#[test]
fn a_maildir_is_imported_with_flags_folders_and_dates() {
    let (system, ports) = store();
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("Maildir");
    maildir(
        &root,
        "",
        &[("new/1.a.host", ODD[0]), ("cur/2.b.host:2,RSab", ODD[1])],
    );
    maildir(
        &root,
        ".Entw&APw-rfe.v1&AC4-2",
        &[("cur/3.c.host:2,DFT", ODD[2])],
    );
    fs::write(root.join("dovecot-keywords"), "0 work\n1 $Forwarded\n").expect("room");
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(837_596_665);
    for (name, later) in [("new/1.a.host", 0), ("cur/2.b.host:2,RSab", 1)] {
        let file = fs::File::options()
            .append(true)
            .open(root.join(name))
            .expect("it");
        let time = old + std::time::Duration::from_secs(later);
        file.set_modified(time).expect("a time");
    }
    let source = root.display().to_string();
    let import = ["import", "--account", ACCOUNT, &source];
    let dry = system.command(&["import", "--dry-run", "-a", ACCOUNT, &source]);
    assert_starts(&dry, "3 messages (");
    assert_has(&dry, &["would be imported"]);
    let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
    assert_eq!(alice.exists("INBOX"), 0);
    let said = system.command(&import);
    assert_starts(&said, "3 messages (");
    assert_has(&said, &["in 2 mailboxes imported\n"]);
    let inbox = messages(&mut alice, "INBOX");
    assert_eq!(inbox[0].0, crlf(ODD[0]));
    assert_eq!(inbox[1].0, crlf(ODD[1]));
    assert!(
        inbox[0].1.contains("17-Jul-1996 09:44:25 +0000"),
        "{inbox:?}"
    );
    for flag in ["\\Answered", "\\Seen", "work", "$Forwarded"] {
        assert!(
            inbox[1].1.contains(flag) && !inbox[0].1.contains(flag),
            "{inbox:?}"
        );
    }
    let drafts = messages(&mut alice, "Entw&APw-rfe/v1.2");
    assert_eq!(drafts[0].0, crlf(ODD[2]));
    for flag in ["\\Draft", "\\Flagged", "\\Deleted"] {
        assert!(drafts[0].1.contains(flag), "{drafts:?}");
    }
    // A repetition brings only new messages.
    fs::write(root.join("new/4.d.host"), ODD[3]).expect("room");
    let said = system.command(&import);
    assert_starts(&said, "1 message (");
    assert_has(&said, &["3 were brought before"]);
    assert_eq!(alice.exists("INBOX"), 3);
    let (code, said) = system.failing_command(&["import", "-a", "nobody@example.org", &source]);
    assert!(
        code == Some(1) && said.contains("no such account"),
        "{said}"
    );
}

/// Real mail, or its substitute.
fn corpus(count: usize) -> Vec<String> {
    let Some(path) = Corpus::locate().filter(|path| path.exists()) else {
        skip("carrying real mail", "no corpus; VERE_CORPUS names one");
        return ODD
            .iter()
            .cycle()
            .take(count)
            .map(|text| crlf(text))
            .collect();
    };
    let corpus = Corpus::read(&path, count).expect("the corpus");
    let texts =
        (0..corpus.len()).map(|at| String::from_utf8_lossy(corpus.message(at).0).into_owned());
    texts.collect()
}

/// The contents of all files of a directory, with the number of files of each content.
fn files(folder: &Path) -> BTreeMap<Vec<u8>, usize> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        *all.entry(fs::read(path).expect("a file")).or_default() += 1;
    }
    all
}

/// Fills two of alice's mailboxes, the second with a difficult name; returns the content, and the number of messages.
fn fill(alice: &mut Imap) -> (usize, [Vec<(String, String)>; 2]) {
    let odd = ODD
        .iter()
        .filter(|text| text.ends_with('\n'))
        .map(|text| crlf(text));
    let texts: Vec<String> = odd.chain(corpus(60)).collect();
    alice.ok("CREATE &AOQ-/b.c");
    for (number, text) in texts.iter().enumerate() {
        let mailbox = ["INBOX", "&AOQ-/b.c"][number % 2];
        let flags = ["", "\\Seen $x", "\\Answered \\Flagged", "\\Draft y"][number % 4];
        let date = format!(
            "\"{:02}-Feb-2004 10:{:02}:07 +0000\"",
            number % 28 + 1,
            number % 60
        );
        let length = text.len();
        alice.ok(&format!(
            "APPEND {mailbox} ({flags}) {date} {{{length}+}}\r\n{text}"
        ));
    }
    let wanted = [messages(alice, "INBOX"), messages(alice, "&AOQ-/b.c")];
    (texts.len(), wanted)
}

#[test]
fn mail_goes_round_through_every_form_and_comes_back() {
    let (system, ports) = store();
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| -> PathBuf { folder.path().join(name) };
    let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
    let (count, wanted) = fill(&mut alice);
    for form in ["maildir", "mbox"] {
        let place = format!("{form}:{}", at(form).display());
        carries(&system, &["export", "-a", ACCOUNT, &place], &[], count);
        carries(&system, &["export", "-a", ACCOUNT, &place], &[], 0);
        let into = format!("from {form}");
        let import = ["import", "-a", "bob@example.org", "--into", &into, &place];
        carries(&system, &import, &[], count);
    }
    // A second Maildir from an export of the first holds the same octets.
    let place = format!("maildir:{}", at("second").display());
    system.command(&[
        "export",
        "-a",
        "bob@example.org",
        "--only",
        "from maildir",
        &place,
    ]);
    assert_eq!(
        files(&at("second/.from maildir/cur")),
        files(&at("maildir/cur"))
    );
    let mut bob = Imap::login(ports.imap, "bob@example.org", "secret");
    for form in ["maildir", "mbox"] {
        for (mailbox, wanted) in ["", "/&AOQ-/b.c"].iter().zip(&wanted) {
            // Names have no full stop where the full stop would separate; here no name is lost.
            let mut found = messages(&mut bob, &format!("from {form}{mailbox}"));
            let mut wanted = wanted.clone();
            for (text, _) in &mut wanted {
                // In an mbox a last line has an end.
                if form == "mbox" && !text.ends_with('\n') {
                    text.push_str("\r\n");
                }
            }
            found
                .iter_mut()
                .chain(&mut wanted)
                .for_each(|(_, about)| *about = sorted(about));
            found.sort();
            wanted.sort();
            assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(&wanted) {
                assert_eq!(found, wanted, "{form}");
            }
        }
    }
}

/// By LMTP and import, through the log, the index and a start, to BINARY and export; literals have 0x80.
#[test]
fn nul_is_kept_octet_by_octet() {
    let (mut system, ports) = store();
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name).display().to_string();
    let text = "Subject: a\0b\n\nnothing\0\0behind\n\0\n";
    maildir(&folder.path().join("in"), "", &[("cur/1.a.host:2,S", text)]);
    system.command(&["import", "-a", ACCOUNT, &place("in")]);
    let mut lmtp = Session::lmtp(ports.lmtp);
    lmtp.envelope("me@example.net", &["bob@example.org"]);
    lmtp.command(&format!("{}.", crlf(text)), "250");
    for _ in 0..2 {
        let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
        alice.ok("EXAMINE INBOX");
        let shown = crlf(text).replace('\0', "\u{FFFD}");
        assert_eq!(alice.body(1), shown);
        let raw = alice.ok("FETCH 1 (BINARY.PEEK[] BINARY.SIZE[])");
        assert_has(&raw, &[&crlf(text), "BINARY[] ~{"]);
        let size = crlf(text).len();
        assert!(raw.contains(&format!("BINARY.SIZE[] {size}")), "{raw}");
        let found = alice.ok("SEARCH BODY behind SUBJECT b");
        assert!(found.contains("* SEARCH 1"), "{found}");
        let mut bob = Imap::login(ports.imap, "bob@example.org", "secret");
        bob.ok("EXAMINE INBOX");
        let raw = bob.ok("FETCH 1 BINARY.PEEK[]");
        assert!(raw.contains(&crlf(text)), "{raw}");
        system.crash();
    }
    let out = format!("maildir:{}", place("out"));
    system.command(&["export", "-a", ACCOUNT, &out]);
    let exported = files(&folder.path().join("out/cur"));
    assert_eq!(exported.keys().collect::<Vec<_>>(), [text.as_bytes()]);
}

/// From one of our stores to another by IMAP and back: messages with NUL, with the octet that replaces NUL, and with
/// both.
#[test]
fn nul_is_kept_between_two_servers_both_ways() {
    let folder = tempfile::tempdir().expect("a folder");
    let [(here, here_ports), (there, there_ports)] = [store(), store()];
    let texts: [&[u8]; 4] = [
        b"Subject: a\0b\n\nnothing\0\0behind\n\0\n",
        b"Subject: utf8\n\n\xe2\x80\x9cquoted\xe2\x80\x9d \x80\n",
        b"Subject: both\n\n\0\x80\xe2\x80\x9c\0\n",
        b"Subject: binary\nContent-Transfer-Encoding: binary\n\n\0\x80\n",
    ];
    let cur = folder.path().join("in");
    maildir(&cur, "", &[]);
    for (number, text) in texts.iter().enumerate() {
        fs::write(cur.join(format!("cur/{number}.a.host:2,S")), text).expect("room");
    }
    let password = password(folder.path());
    here.command(&["import", "-a", ACCOUNT, &cur.display().to_string()]);
    let bob = "bob@example.org";
    // Exported to the other server, then imported by the other: in each direction all four arrive.
    let by = ["--clear", "--password-file", &password];
    let other = format!("imap://{bob}@{}", there_ports.imap);
    let given = [&["export", "-a", ACCOUNT], &by[..], &[&other]].concat();
    let fetched = [&["import", "-a", bob], &by[..], &[&other]].concat();
    for arguments in [given, fetched] {
        carries(&here, &arguments, &[], 4);
        carries(&here, &arguments, &[], 0);
    }
    let mut wanted = texts.map(<[u8]>::to_vec);
    wanted.sort();
    for (system, name) in [(&there, "there"), (&here, "here")] {
        let out = folder.path().join(name);
        system.command(&["export", "-a", bob, &format!("maildir:{}", out.display())]);
        let held = files(&out.join("cur"));
        assert!(held.keys().eq(&wanted), "{name}: {held:?}");
    }
    assert_eq!(
        Imap::login(here_ports.imap, bob, "secret").exists("INBOX"),
        4
    );
}

/// The attributes of a message, with its flags in order.
fn sorted(about: &str) -> String {
    let mut words: Vec<&str> = about
        .split([' ', '(', ')'])
        .filter(|word| !word.is_empty())
        .collect();
    words.sort_unstable();
    words.join(" ")
}

/// The octets of each message, with the line ends of files.
fn sorted_texts(messages: &[(String, String)]) -> Vec<String> {
    let mut texts: Vec<String> = messages.iter().map(|(text, _)| text.clone()).collect();
    texts.sort();
    texts
}

#[test]
fn an_import_that_was_killed_goes_on() {
    let (system, ports) = store();
    let folder = tempfile::tempdir().expect("a folder");
    // Names of the file's own fields, and lines that mboxo cannot distinguish, are left out here.
    let is_clear = |text: &String| {
        let lower = text.to_ascii_lowercase();
        let marks = [
            "\nstatus:",
            "\nx-status:",
            "\nx-keywords:",
            "\nx-uid:",
            "\nx-imap",
            "\ncontent-length:",
            "\n>from ",
        ];
        !marks.iter().any(|mark| lower.contains(mark))
    };
    let texts: Vec<String> = corpus(400).into_iter().filter(is_clear).collect();
    assert!(texts.len() > 50);
    let mut mbox = String::new();
    for text in &texts {
        let quoted = text.replace("\r\n", "\n").replace("\nFrom ", "\n>From ");
        mbox += &format!("From x@y Wed Jul 17 09:44:25 1996\n{quoted}\n");
        if !quoted.ends_with('\n') {
            mbox.push('\n');
        }
    }
    let file = folder.path().join("mail");
    fs::write(&file, &mbox).expect("room");
    let source = format!("mbox:{}", file.display());
    let arguments = ["import", "--mbox", "mboxo", "-a", ACCOUNT, &source];
    let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
    // Killed after every few messages, so at any point of the run.
    let (mut kills, mut ended) = (0, false);
    while !ended {
        let before = alice.exists("INBOX");
        let mut import = system.start_command(&arguments);
        wait_until("messages, or the end", || {
            ended = import.ended().is_some();
            ended || alice.exists("INBOX") >= before + 20
        });
        if !ended {
            crate::harness::signal(import.id(), nix::sys::signal::Signal::SIGKILL);
            wait_for("its end", || import.ended());
            kills += 1;
        }
    }
    carries(&system, &arguments, &[], 0);
    let found = messages(&mut alice, "INBOX");
    assert_eq!(found.len(), texts.len(), "after {kills} kills");
    let mut wanted: Vec<String> = texts
        .iter()
        .map(|text| match text.ends_with('\n') {
            true => text.clone(),
            false => format!("{text}\r\n"),
        })
        .collect();
    wanted.sort();
    assert!(
        sorted_texts(&found) == wanted,
        "other octets, after {kills} kills"
    );
}

#[test]
fn mail_goes_to_dovecot_and_comes_back() {
    let Some(dovecot) = Dovecot::start() else {
        return;
    };
    let (system, ports) = store();
    let password = password(system.directory.path());
    let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
    let (count, wanted) = fill(&mut alice);
    let place = format!("imap://{ACCOUNT}@{}", dovecot.imap);
    let at = ["--clear", "--password-file", &password, &place];
    // A password is not sent in the clear unless that is wanted.
    let (_, said) = system.failing_command(&["export", "-a", ACCOUNT, at[1], at[2], at[3]]);
    assert!(said.contains("the server refused"), "{said}");
    carries(&system, &["export", "-a", ACCOUNT], &at, count);
    // The files hold the same octets.
    for (folder, wanted) in ["", ".&AOQ-.b_c"].iter().zip(&wanted) {
        let place = dovecot.maildir(ACCOUNT).join(folder);
        let mut held = files(&place.join("cur"));
        for (text, count) in files(&place.join("new")) {
            *held.entry(text).or_default() += count;
        }
        let mut texts: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for (text, _) in wanted {
            *texts
                .entry(text.replace("\r\n", "\n").into_bytes())
                .or_default() += 1;
        }
        assert!(held == texts, "other octets in {folder:?}");
    }
    let bob = "bob@example.org";
    carries(&system, &["import", "-a", bob], &at, count);
    carries(&system, &["import", "-a", bob], &at, 0);
    let mut bob = Imap::login(ports.imap, bob, "secret");
    for (mailbox, wanted) in ["INBOX", "&AOQ-/b_c"].iter().zip(&wanted) {
        let mut wanted = wanted.clone();
        let mut found = messages(&mut bob, mailbox);
        let both = found.iter_mut().chain(&mut wanted);
        both.for_each(|(_, about)| *about = sorted(about));
        assert!(found == wanted, "{mailbox}: {found:?}");
    }
}

/// Programs without dates write the beginning of 1970: then the arrival time is the date of the last server.
#[test]
fn an_mbox_without_dates_has_those_of_its_messages() {
    let (system, ports) = store();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mbox");
    let from = "From MAILER-DAEMON Thu Jan  1 00:00:00 1970\n";
    let received = "Received: from a by b;\n\tSat, 14 Sep 2002 13:36:40 -0700 (PDT)\n";
    let text = format!(
        "{from}{received}Date: Fri, 13 Sep 2002 10:00:00 +0000\n\n1\n\n\
         {from}Date: Fri, 13 Sep 2002 10:00:00 +0200\n\n2\n\n\
         From a@b Sun Sep 15 12:00:00 2002\n{received}\n3\n\n"
    );
    fs::write(&file, text).expect("room");
    let source = format!("mbox:{}", file.display());
    carries(&system, &["import", "-a", ACCOUNT, &source], &[], 3);
    let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
    let found = messages(&mut alice, "INBOX");
    for ((_, about), date) in found.iter().zip([
        "14-Sep-2002 20:36:40 +0000",
        "13-Sep-2002 08:00:00 +0000",
        "15-Sep-2002 12:00:00 +0000",
    ]) {
        assert!(about.contains(date), "{found:?}");
    }
}
