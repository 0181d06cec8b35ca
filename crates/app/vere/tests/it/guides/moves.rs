//! Guides about mail that moves: to a new disk, from another server.

use std::fs;

use super::Operator;
use super::mail::{ANN, fill};
use crate::harness::{Authority, Options, System, free_address};
use crate::imap::{Imap, start_with_store, with_store};
use crate::transfer_remote::password;

/// The disk is replaced while the system is stopped; mail is read from the new disk.
#[test]
fn the_disk_of_the_mail_store_is_replaced() {
    let (mut system, ports) = start_with_store(Options::default());
    fill(&system, &ports);
    system.end();
    let (old, new) = (
        system.directory.path().join("data"),
        system.directory.path().join("new"),
    );
    if let Some(mut operator) = Operator::of(&system, &[], &[]) {
        operator.place("/mnt/new", "new");
        operator.place("/var/lib/vere", "data");
        operator.follow_where("disk", |command| !command.starts_with("vere store"));
        fs::remove_dir_all(&old).expect("the old disk");
        fs::rename(&new, &old).expect("the new disk");
        operator.follow_where("disk", |command| command.starts_with("vere store"));
    }
    system.start_again();
    let mut ann = Imap::login(ports.imap, ANN, "secret");
    assert!(ann.ok("SELECT INBOX").contains("* 4 EXISTS"));
}

/// Mail is copied twice from another server, the first time only counted, and out again.
#[test]
fn mail_moves_from_another_server() {
    let authority = Authority::new();
    let files = authority.sign("imap", &["localhost"]);
    let imaps = free_address();
    let (options, ports) = with_store(Options::default());
    let options = options.set("imaps.listen", &format!("[\"{imaps}\"]"));
    let old = System::start(&options.certificate(&files));
    fill(&old, &ports);
    let (system, _) = start_with_store(Options::default());
    let import = format!("vere import --ca {} -a", authority.ca.display());
    let texts = [
        ("vere import -a", &*import),
        (
            "ann@old.example.org",
            &*format!("{ANN}@localhost:{}", imaps.port()),
        ),
        ("your.example", "example.org"),
    ];
    if let Some(mut operator) = Operator::of(&system, &texts, &[]) {
        fs::rename(password(&operator.folder), operator.path("ann.old")).expect("a file");
        operator.place("/backup/ann", "exported");
        operator.follow("migrate");
        let exported = |folder| {
            fs::read_dir(operator.path(folder))
                .expect("a Maildir")
                .count()
        };
        assert_eq!(exported("exported/cur"), 4);
        assert_eq!(exported("exported/.Projects.2026/cur"), 2);
    }
}
