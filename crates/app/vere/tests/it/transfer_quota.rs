//! Import into an account without space for all messages.

use std::fs;

use crate::harness::{Options, System, assert_has, assert_starts, wait_until};
use crate::imap::{Imap, with_store};

const ACCOUNT: &str = "alice@example.org";

#[test]
fn an_import_ends_where_the_account_is_full_and_goes_on_when_it_has_room() {
    let (options, ports) = with_store(Options::default());
    let limited = |size: &str| {
        options
            .clone()
            .set("quota.size_max", &format!("\"{size}\""))
    };
    let system = System::start(&limited("20KiB"));
    let folder = tempfile::tempdir().expect("a folder");
    let new = folder.path().join("new");
    for part in ["cur", "new", "tmp"] {
        fs::create_dir(folder.path().join(part)).expect("room");
    }
    let body = "0123456789abcde\n".repeat(5 << 6);
    for number in 0..40 {
        let text = format!("Subject: number {number}\n\n{body}");
        fs::write(new.join(format!("{number:02}.host")), text).expect("room");
    }
    let source = format!("maildir:{}", folder.path().display());
    let import = ["import", "-a", ACCOUNT, &source];
    let said = system.refused(&import);
    let parts = [
        "INBOX: the account that mail goes to is full at message ",
        "[OVERQUOTA]",
        "3 messages (",
        "broken off; the same command goes on from here",
    ];
    assert_has(&said, &parts);
    // No line for each missing message.
    assert!(!said.contains("refused"), "{said}");
    let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
    assert_eq!(alice.exists("INBOX"), 3);
    // Without space the import ends at the same place, and no message arrives twice.
    system.refused(&import);
    assert_eq!(alice.exists("INBOX"), 3);
    system.reconfigure(&limited("1MiB"));
    wait_until("the new quota", || {
        let said = alice.ok("GETQUOTAROOT INBOX");
        said.contains(" 1024 MESSAGE ")
    });
    let said = system.command(&import);
    assert_starts(&said, "37 messages (");
    assert_has(&said, &["3 were brought before"]);
    assert_eq!(alice.exists("INBOX"), 40);
    alice.ok("EXAMINE INBOX");
    let mut subjects: Vec<_> = (1..=40)
        .filter_map(|number| {
            let body = alice.body(number);
            let mut lines = body.lines();
            lines.find_map(|line| Some(line.strip_prefix("Subject: number ")?.to_owned()))
        })
        .collect();
    subjects.sort();
    subjects.dedup();
    assert_eq!(subjects.len(), 40);
}
