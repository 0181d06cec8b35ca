//! Content filters at the end of DATA: a milter in Python (Debian's python3-milter), asked by a whole system.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::front::{for_strangers, without_rates};
use crate::harness::{Options, Session, System, skip, wait_for, wait_until};
use crate::judging::id_of;

const SCRIPT: &str = include_str!("filters_milter.py");
/// Debian's interpreter: another one lacks the package.
const PYTHON: &str = "/usr/bin/python3";
const ALICE: &str = "alice@example.org";

/// A milter, ended with the value.
struct Milter {
    folder: tempfile::TempDir,
    child: Child,
}

impl Milter {
    /// `None`, with a word about it, where the package is missing.
    fn start() -> Option<Self> {
        let tried = Command::new(PYTHON).args(["-c", "import Milter"]).output();
        if !tried.is_ok_and(|output| output.status.success()) {
            skip("a milter", "python3-milter is missing");
            return None;
        }
        // Paths of sockets are short.
        let folder = tempfile::Builder::new().prefix("vf").tempdir_in("/tmp");
        let folder = folder.expect("a folder");
        std::fs::write(folder.path().join("wishes.py"), SCRIPT).expect("a script");
        let child = run(&folder);
        let milter = Self { folder, child };
        milter.wait();
        Some(milter)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn wait(&self) {
        wait_until("the milter", || UnixStream::connect(self.socket()).is_ok());
    }

    /// The milter ends by itself; starts another at the same place.
    fn replace(&mut self) {
        let _ = self.child.wait();
        let _ = std::fs::remove_file(self.socket());
        self.child = run(&self.folder);
        self.wait();
    }
}

impl Drop for Milter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(folder: &tempfile::TempDir) -> Child {
    Command::new(PYTHON)
        .args(["wishes.py", "socket"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a milter")
}

fn filtered(milter: &Milter, lines: &str) -> Options {
    let socket = milter.socket();
    let filter = format!(
        "[judging]\n[[judging.filter]]\nname = \"test\"\naction = \"follow\"\n\
         [[filter]]\nname = \"test\"\nkind = \"milter\"\naddress = \"unix:{}\"\n{lines}",
        socket.display()
    );
    without_rates(for_strangers()).table(&filter)
}

/// Settings with the milter about submitted mail, without anything about mail of strangers.
fn for_own_mail(milter: &Milter, lines: &str) -> Options {
    let socket = milter.socket();
    let filter = format!(
        "[[filter]]\nname = \"own\"\nkind = \"milter\"\nmail = \"submitted\"\naddress = \"unix:{}\"\n{lines}",
        socket.display()
    );
    Options::default()
        .set("relay.networks", "[]")
        .table(&filter)
}

/// Submits a message of alice for bob.
fn submit(system: &System, subject: &str, body: &str) -> String {
    let mut session = Session::greeted(system.submission);
    session.log_in(ALICE);
    session.transaction(ALICE, &["bob@example.org"]);
    session.command("DATA", "354");
    session
        .send(format!("From: <{ALICE}>\r\nSubject: {subject}\r\n\r\n{body}\r\n.\r\n").as_bytes());
    session.reply()
}

fn send(system: &System, subject: &str) -> String {
    let mut session = Session::greeted(system.smtp);
    session.transaction("a@good.test", &[ALICE]);
    session.command("DATA", "354");
    let text = format!("From: <a@good.test>\r\nSubject: {subject}\r\n\r\ntext\r\n.\r\n");
    session.send(text.as_bytes());
    session.reply()
}

#[track_caller]
fn assert_sent(system: &System, subject: &str, expected: &str) {
    let reply = send(system, subject);
    assert!(reply.starts_with(expected), "{subject}: {reply}");
}

#[test]
fn a_milter_changes_refuses_and_discards() {
    let Some(milter) = Milter::start() else {
        return;
    };
    let system = System::start(&filtered(&milter, ""));
    assert_sent(&system, "plain", "250 2.0.0");
    assert!(system.wait_mail("alice", 1)[0].contains("\ntext"));
    assert_sent(
        &system,
        "refuse",
        "550 5.7.1 message refused (FILTER_ACTION), id ",
    );
    // All changes: a field, the body, the sender, recipients; an unknown recipient is left out.
    assert_sent(&system, "change", "250 2.0.0");
    let mail = &system.wait_mail("bob", 1)[0];
    assert!(mail.starts_with("Return-Path: <other@good.test>"), "{mail}");
    assert!(mail.contains("\nX-Milter: seen\n"), "{mail}");
    assert!(mail.ends_with("\n\nanother text\n"), "{mail}");
    assert_eq!(system.mail("alice").len(), 1);
    system.wait_log(&["names a recipient that is none", "nobody@example.org"]);
    // A message discarded by a filter is kept aside, also after the deletion of all recipients, or with a new one that leads nowhere.
    for (count, subject) in [(1, "discard"), (2, "empty"), (3, "astray")] {
        assert_sent(&system, subject, "250 2.0.0");
        wait_until("the message in quarantine", || {
            system.rows(&["quarantine", "list"]).len() == count
        });
    }
    assert_eq!(system.mail("alice").len(), 1);
}

/// `vere explain` shows a message in a file to the filters.
#[test]
fn an_explanation_asks_the_filters() {
    let Some(milter) = Milter::start() else {
        return;
    };
    let system = System::start(&filtered(&milter, ""));
    let file = tempfile::NamedTempFile::new().expect("a file");
    let text = "From: <a@good.test>\r\nSubject: refuse\r\n\r\ntext\r\n";
    std::fs::write(file.path(), text).expect("written");
    let file = file.path().to_string_lossy().into_owned();
    let words = ["explain", "--client", "127.0.0.1", "--to", ALICE];
    let explained = system.command(&[&words[..], &[&file]].concat());
    for expected in [
        "  now   reject, ",
        "FILTER_ACTION",
        "\nGREYLIST\n  off\n",
        "\nLISTS\n  none asked\n",
        "\nFILTERS\n  filter        test  milter at unix:",
        "verdict     reject (5.7.1 no)",
    ] {
        assert!(explained.contains(expected), "{expected}: {explained}");
    }
    let without = ["--no-filters", "--no-lists", &file];
    let explained = system.command(&[&words[..], &without].concat());
    for expected in [
        "  now   accept, ",
        "left out (--no-filters)",
        "left out (--no-lists)",
    ] {
        assert!(explained.contains(expected), "{expected}: {explained}");
    }
}

#[test]
fn a_filter_without_an_answer_is_treated_by_the_settings() {
    let Some(mut milter) = Milter::start() else {
        return;
    };
    let defers = "timeout = \"2s\"\nwhen_unavailable = \"defer\"\n";
    let system = System::start(&filtered(&milter, defers));
    for subject in ["die", "hang"] {
        let reply = send(&system, subject);
        let expected = "450 4.7.1 message cannot be checked now, try again later, id ";
        assert!(reply.starts_with(expected), "{subject}: {reply}");
        if subject == "die" {
            milter.replace();
        }
        wait_for("mail beside", || {
            send(&system, "plain").starts_with("250").then_some(())
        });
    }
    system.wait_log(&["gateway", "filter=test"]);
    system.wait_mail("alice", 2);
    let accepts = "timeout = \"2s\"\nwhen_unavailable = \"accept\"\n";
    system.reconfigure(&filtered(&milter, accepts));
    wait_until("acceptance without an answer", || {
        send(&system, "hang").starts_with("250")
    });
    system.wait_mail("alice", 3);
}

/// Submits the first message to bob; gives the message as delivered, with the milter's knowledge of the account.
fn submitted(system: &System) -> String {
    let reply = submit(system, "who", "text");
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    let mail = system.wait_mail("bob", 1).remove(0);
    // The milter sees the date that the message lacks.
    assert!(
        mail.contains(&format!("\nX-Who: {ALICE}, SASL, a date\n")),
        "{mail}"
    );
    mail
}

/// Without `[judging]` and front: a filter about submitted mail decides by its action.
#[test]
fn submitted_mail_is_filtered() {
    let Some(milter) = Milter::start() else {
        return;
    };
    let system = System::start(&for_own_mail(&milter, ""));
    let mail = submitted(&system);
    assert_eq!(mail.matches("\nDate: ").count(), 1, "{mail}");
    let reply = submit(&system, "refuse", "text");
    let expected = "550 5.7.1 message refused (FILTER_ACTION), id ";
    assert!(reply.starts_with(expected), "{reply}");
    let why = system.refused(&["explain", &id_of(&reply)]);
    assert!(
        why.contains("decided reject (FILTER_ACTION=reject)"),
        "{why}"
    );
    let reply = submit(&system, "later", "text");
    let expected = "450 4.7.1 message deferred, try again later (FILTER_ACTION), id ";
    assert!(reply.starts_with(expected), "{reply}");
    // An account hears of mail that would be quarantined.
    for subject in ["discard", "empty", "astray"] {
        let reply = submit(&system, subject, "text");
        let expected = "550 5.7.1 message refused (FILTER_ACTION), id ";
        assert!(reply.starts_with(expected), "{subject}: {reply}");
        let why = system.refused(&["explain", &id_of(&reply)]);
        assert!(why.contains("decided reject (FILTER_ACTION="), "{why}");
    }
    assert_eq!(system.rows(&["quarantine", "list"]).len(), 0);
    // A message of several mebibytes, whose first octets are in a file meanwhile.
    let reply = submit(&system, "who", &"0123456789abcdef\r\n".repeat(200_000));
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    let long = &system.wait_mail("bob", 2);
    let is_long = |mail: &&String| mail.len() > 3_000_000;
    let long = long.iter().find(is_long).expect("a long message");
    assert!(long.contains(&format!("\nX-Who: {ALICE}, SASL, a date\n")));
    // A stranger's message is nothing to this filter.
    assert!(send(&system, "refuse").starts_with("250 2.0.0"));
}

/// Texts that a filter refuses count in the bounds of an account; deferred mail, which comes again, does not.
#[test]
fn an_account_cannot_try_texts_at_no_cost() {
    let Some(milter) = Milter::start() else {
        return;
    };
    let bound = |over: &str| {
        let options = for_own_mail(&milter, "").set("sending.messages_per_hour", "2");
        options.set("sending.over", over)
    };
    let system = System::start(&bound("\"defer\""));
    for (subject, expected) in [
        ("later", "450 4.7.1 message deferred"),
        ("later", "450 4.7.1 message deferred"),
        ("refuse", "550 5.7.1 message refused"),
        ("discard", "550 5.7.1 message refused"),
    ] {
        let reply = submit(&system, subject, "text");
        assert!(reply.starts_with(expected), "{subject}: {reply}");
    }
    let mut session = Session::greeted(system.submission);
    session.log_in(ALICE);
    session.command(&format!("MAIL FROM:<{ALICE}>"), "450 4.7.1 too much mail");
    // What is over the bound and held: the filter decides before.
    system.reconfigure(&bound("\"hold\""));
    wait_until("the reload", || {
        let mut session = Session::greeted(system.submission);
        session.log_in(ALICE);
        session.send(format!("MAIL FROM:<{ALICE}>\r\n").as_bytes());
        session.reply().starts_with("250")
    });
    let reply = submit(&system, "discard", "text");
    assert!(reply.starts_with("550 5.7.1 message refused"), "{reply}");
    let orders = system.command(&["queue", "orders"]);
    assert!(!orders.contains("held"), "{orders}");
    let reply = submit(&system, "plain", "text");
    assert!(reply.starts_with("250"), "{reply}");
    let shown = system.json(&["queue", "show", &id_of(&reply)]);
    assert_eq!(shown[0]["held_for"], "sending", "{shown}");
}

/// With a front, a filter for both kinds of mail sees who has sent the message.
#[test]
fn a_filter_may_be_for_both_kinds_of_mail() {
    let Some(milter) = Milter::start() else {
        return;
    };
    let lines = "mail = \"all\"\ntimeout = \"2s\"\n";
    let system = System::start(&filtered(&milter, lines));
    assert_sent(&system, "who", "250 2.0.0");
    let mail = &system.wait_mail("alice", 1)[0];
    assert!(
        mail.contains("\nX-Who: nobody, no login, no date\n"),
        "{mail}"
    );
    let mail = submitted(&system);
    assert!(!mail.contains("X-Spam-Status"), "{mail}");
    let reply = submit(&system, "hang", "text");
    let expected = "450 4.7.1 message cannot be checked now, try again later, id ";
    assert!(reply.starts_with(expected), "{reply}");
}
