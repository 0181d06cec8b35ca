//! Guides about mail in mailboxes.

use std::fs;

use super::Operator;
use super::queues::closed;
use crate::harness::{Options, System, free_address};
use crate::imap::{Imap, Ports, start_with_store, with_store};

pub(super) const ANN: &str = "ann@example.org";

/// A message as the pages show it.
fn message(from: &str, subject: &str, id: &str) -> String {
    format!(
        "From: {from}\r\nSubject: {subject}\r\nMessage-ID: <{id}@mail.example.net>\r\n\r\nsome text\r\n"
    )
}

/// Fills the mailboxes of ann, and expunges as on the page about that.
pub(super) fn fill(system: &System, ports: &Ports) {
    system.add_account(ANN);
    let mut session = Imap::login(ports.imap, ANN, "secret");
    let mail = [
        ("bob@example.net", "Lunch on Friday?", "12"),
        ("carol@example.com", "Minutes of the meeting", "15"),
        ("bob@example.net", "Re: Lunch on Friday?", "31"),
        ("bob@example.net", "a free text", "CAF1x"),
    ];
    for (from, subject, id) in mail {
        session.append("INBOX", &message(from, subject, id));
    }
    session.ok("CREATE Projects/2026");
    for subject in ["plans", "budget"] {
        let text = message("bob@example.net", subject, subject);
        session.append("Projects/2026", &text);
    }
    session.ok("LOGOUT");
}

/// Expunges three messages and deletes a mailbox.
fn expunge(ports: &Ports) {
    let mut session = Imap::login(ports.imap, ANN, "secret");
    session.ok("SELECT INBOX");
    session.ok("STORE 1:3 +FLAGS (\\Deleted)");
    session.ok("EXPUNGE");
    session.ok("UNSELECT");
    session.ok("DELETE Projects/2026");
}

#[test]
fn expunged_mail_comes_back() {
    let (system, ports) = start_with_store(Options::default());
    fill(&system, &ports);
    expunge(&ports);
    // The messages of the page have other numbers.
    let texts = [("--uid 12,15", "--uid 1,2")];
    if let Some(mut operator) = Operator::of(&system, &texts, &[]) {
        operator.follow("undelete");
    }
}

/// Follows the page about backups, with some of its texts replaced.
fn back_up(texts: super::Texts<'_>) {
    let (system, ports) = start_with_store(closed());
    fill(&system, &ports);
    for subject in ["one", "two", "three"] {
        system.submit_about(ANN, &["x@example.com"], subject);
    }
    if let Some(mut operator) = Operator::of(&system, texts, &[]) {
        operator.place("/mnt/backup", "backup");
        // The settings of the page are in /etc/vere, and come back below the restored data.
        let folder = operator.path("").display().to_string();
        let settings = operator.path("new/restored").display().to_string() + &folder;
        let texts = &mut operator.shell.texts;
        texts.push(("/var/lib/vere/restored/etc/vere/".to_owned(), settings));
        texts.push(("/etc/vere/".to_owned(), folder));
        operator.place("/var/lib/vere", "new");
        operator.follow("backup");
    }
}

/// The page had the key in some commands only, so that the others failed for readers with a key.
#[test]
fn an_encrypted_backup_is_made_verified_and_restored() {
    back_up(&[]);
}

#[test]
fn a_backup_without_a_key_is_made_verified_and_restored() {
    back_up(&[("--key-file /etc/vere/backup.key ", "")]);
}

/// Whether a command has the store to itself.
fn needs_stop(command: &str) -> bool {
    command.starts_with("vere store ") && !command.starts_with("vere store explain")
}

#[test]
fn spool_and_mail_store_are_watched() {
    let metrics = free_address();
    let options = Options::default().set("metrics.listen", &format!("\"{metrics}\""));
    let (mut system, ports) = start_with_store(options);
    fill(&system, &ports);
    let metrics = metrics.to_string();
    let texts = [("127.0.0.1:9625", &*metrics)];
    if let Some(mut operator) = Operator::of(&system, &texts, &[]) {
        operator.follow_where("monitor", |command| !needs_stop(command));
    }
    system.end();
    if let Some(mut operator) = Operator::of(&system, &texts, &[]) {
        operator.follow_where("monitor", needs_stop);
    }
}

#[test]
fn mail_is_imported_and_exported() {
    let (options, _) = with_store(Options::default());
    let system = System::start(&options);
    if let Some(mut operator) = Operator::of(&system, &[], &[]) {
        for (shown, name) in [
            ("/home/bob/Maildir", "Maildir"),
            ("/var/mail/bob", "mbox"),
            ("/backup/bob", "exported"),
        ] {
            operator.place(shown, name);
        }
        for folder in ["new", "cur", "tmp"] {
            fs::create_dir_all(operator.path("Maildir").join(folder)).expect("a directory");
        }
        let text = message("bob@example.net", "one", "one");
        fs::write(operator.path("Maildir/new/1.mail"), &text).expect("a message");
        let line = "From bob@example.net Mon Nov 30 10:00:00 2026\n";
        fs::write(
            operator.path("mbox"),
            line.to_owned() + &text.replace('\r', ""),
        )
        .expect("a file");
        operator.follow("transfer");
    }
}
