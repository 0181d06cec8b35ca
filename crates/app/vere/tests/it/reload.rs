//! Changes of settings and accounts in a running system.

use crate::harness::{Options, Session, Sink, System, fails_with, vere, wait_for, wait_until};
use crate::imap::with_store;

/// The largest message that the greeted client is told of, if the system answers.
fn announced_size(system: &System) -> Option<u32> {
    let mut session = Session::try_connect(system.smtp).ok()?;
    let keywords = session.command("EHLO client", "250");
    let (_, size) = keywords.split_once("SIZE ").expect("SIZE is announced");
    let size = size.lines().next().expect("its line");
    Some(size.trim().parse().expect("a number"))
}

fn wait_size(system: &System, size: u32) {
    wait_until("the new size", || announced_size(system) == Some(size));
}

/// The default settings with another limit of the size of messages.
fn limited(size: &str) -> Options {
    Options::default().set("limits.message_size_max", &format!("\"{size}\""))
}

#[test]
fn a_changed_setting_holds_for_connections_to_come() {
    let system = System::start(&Options::default());
    assert_eq!(announced_size(&system), Some(52_428_800));
    let mut old = Session::greeted(system.smtp);
    system.reconfigure(&limited("100 KiB"));
    wait_size(&system, 102_400);
    let mut new = Session::greeted(system.smtp);
    new.command("MAIL FROM:<a@example.net> SIZE=200000", "552 5.3.4");
    // The session from before goes on unchanged.
    old.command("MAIL FROM:<a@example.net> SIZE=200000", "250");
}

/// The nodes, which go on unchanged, must accept messages of the new size.
#[test]
fn a_larger_message_is_taken_once_the_setting_allows_it() {
    let system = System::start(&limited("100 KiB"));
    system.reconfigure(&limited("24 MiB"));
    wait_size(&system, 25_165_824);
    let line = format!("{}\r\n", "x".repeat(998));
    let text = format!("Subject: large\r\n\r\n{}", line.repeat(20_000));
    system.submit("a@example.net", &["alice@example.org"], &text);
    system.wait_mail("alice", 1);
}

#[test]
fn a_changed_route_holds_for_mail_that_waits() {
    let (first, second) = (
        Sink::with_faults(&["rcpt=450 4.2.0 not now"]),
        Sink::start(),
    );
    let system = System::start(&Options::to(first.address));
    let mut session = Session::greeted(system.smtp);
    session.submit("a@example.net", &["x@example.com"], "A: b\r\n\r\n");
    system.wait_last_reply("");
    system.reconfigure(&Options::to(second.address));
    wait_until("the new route", || {
        // New mail uses the host in any case.
        let before = second.mail().len();
        session.submit("a@example.net", &["y@example.com"], "C: d\r\n\r\n");
        wait_until("the next message", || {
            second.mail().len() > before || system.queued() > 1
        });
        second.mail().len() > before
    });
}

#[test]
fn a_wrong_file_keeps_the_old_settings_and_says_what_is_wrong() {
    let system = System::start(&Options::default());
    let good = std::fs::read_to_string(&system.config).expect("the configuration");
    let wrong = good.replace("[relay]", "[limits]\nmesage_size_max = \"1 MiB\"\n[relay]");
    let line = wrong
        .lines()
        .position(|line| line.starts_with("mesage"))
        .expect("the line")
        + 1;
    std::fs::write(&system.config, wrong).expect("the configuration");
    system.reload();
    system.wait_log(&[
        &format!("vere.toml:{line}"),
        "mesage_size_max",
        "message_size_max",
    ]);
    assert_eq!(announced_size(&system), Some(52_428_800));

    std::fs::write(&system.config, "version = 1\nhostname = ").expect("the configuration");
    system.reload();
    system.wait_log(&["vere.toml:2"]);
    assert_eq!(announced_size(&system), Some(52_428_800));

    // And a valid file after an invalid file is accepted.
    system.reconfigure(&limited("100 KiB"));
    wait_size(&system, 102_400);
}

#[test]
fn a_role_that_is_restarted_takes_the_settings_last_accepted() {
    let system = System::start(&Options::default());
    let options = limited("100 KiB");
    system.reconfigure(&options);
    wait_size(&system, 102_400);
    std::fs::write(&system.config, "version = 1\nhostnam = 5\n").expect("the configuration");
    system.reload();
    system.wait_log(&["hostnam"]);
    system.kill_and_wait("gateway");
    wait_for("the greeting", || {
        Session::try_connect(system.smtp).ok().map(drop)
    });
    assert_eq!(announced_size(&system), Some(102_400));
    system.configure(&options);
}

#[test]
fn a_reload_while_a_role_starts_is_not_lost() {
    let system = System::start(&Options::default());
    for round in 1..=5 {
        system.kill_and_wait("gateway");
        let size = 100 * round;
        system.reconfigure(&limited(&format!("{size} KiB")));
        wait_size(&system, size * 1024);
    }
}

#[test]
fn what_only_a_restart_can_change_is_said_and_nothing_is_changed() {
    let system = System::start(&Options::default());
    system.reconfigure(&limited("100 KiB").set("spool.memory_max", "\"64 MiB\""));
    system.wait_log(&["restart", "spool.memory_max"]);
    assert_eq!(announced_size(&system), Some(52_428_800));
}

#[test]
fn the_level_of_the_log_follows_the_settings_in_every_role() {
    let (stored, _) = with_store(Options::default());
    let options = |level: &str, size: u32| {
        stored
            .clone()
            .set("log.level", &format!("\"{level}\""))
            .set("limits.message_size_max", &format!("\"{size} KiB\""))
            .table("[dkim]")
    };
    let system = System::start(&options("error", 100));
    assert!(!system.log().contains(" info "), "{}", system.log());
    system.reconfigure(&options("info", 200));
    system.wait_log(&[" info supervisor ", "settings reloaded"]);
    for role in ["gateway", "store", "signer", "spool-a", "spool-b"] {
        system.wait_log(&[&format!(" info {role} "), "configuration reloaded"]);
    }
    system.reconfigure(&options("warn", 300));
    wait_size(&system, 307_200);
    let id = system.submit("a@example.net", &["alice@example.org"], "A: b\r\n\r\n");
    system.wait_empty();
    assert!(!system.log().contains(&id), "{}", system.log());
}

#[test]
fn a_second_system_on_the_same_folder_is_refused_and_harms_nothing() {
    let mut system = System::start(&Options::default());
    let data = system.directory.path().join("data");
    let read = |name: &str| std::fs::read_to_string(data.join(name)).expect("a file");
    let before = read("accepted.toml");
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let other = System::write_config(elsewhere.path(), &Options::default());
    let text = std::fs::read_to_string(&other).expect("the configuration");
    let same = format!("data = {:?}\n", data.display().to_string());
    std::fs::write(&other, text.replace("data = \"data\"\n", &same)).expect("the configuration");
    let said = fails_with(vere().arg("serve").arg("-c").arg(&other), 1);
    let holder = read("lock");
    let wanted = format!(
        "vere: data folder {} is in use by process {}",
        data.display(),
        holder.trim()
    );
    assert!(said.contains(&wanted), "{said}");
    assert_eq!(read("accepted.toml"), before);
    assert!(data.join("notify.sock").exists());
    // A killed process releases the directory.
    system.crash();
    assert_ne!(read("lock"), holder);
}

#[test]
fn an_account_that_is_added_or_removed_holds_at_once() {
    for store in ["file:{data}/users.toml", "sqlite:{data}/users.db"] {
        let options = Options::default().set("directory.store", &format!("\"{store}\""));
        let options = options.unset("relay.networks");
        let system = System::start(&options);
        let mut session = Session::greeted(system.smtp);
        session.command("MAIL FROM:<a@example.net>", "250");
        session.command("RCPT TO:<carol@example.org>", "550 5");
        system.command(&["domain", "add", "example.org"]);
        system.add_account("carol@example.org");
        session.command("RCPT TO:<carol@example.org>", "250");
        session.command("RSET", "250");
        session.submit("a@example.net", &["carol@example.org"], "A: b\r\n\r\n");
        system.wait_mail("carol", 1);
        let mut login = Session::greeted(system.submission);
        // carol@example.org with the password "secret".
        let auth = "AUTH PLAIN AGNhcm9sQGV4YW1wbGUub3JnAHNlY3JldA==";
        login.command(auth, "235");
        system.command(&["account", "del", "carol@example.org"]);
        let mut login = Session::greeted(system.submission);
        login.command(auth, "535");
        session.command("MAIL FROM:<a@example.net>", "250");
        session.command("RCPT TO:<carol@example.org>", "550 5.1.1");
    }
}
