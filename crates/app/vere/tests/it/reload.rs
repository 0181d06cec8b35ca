//! Changes of settings and accounts in a running system.

use crate::harness::{Options, Session, Sink, System, output_of, vere, wait_for};
use crate::imap::with_store;

fn announced_size(system: &System) -> String {
    let mut session = Session::connect(system.smtp);
    let keywords = session.command("EHLO client", "250");
    let line = keywords.lines().find(|line| line.contains("SIZE"));
    line.expect("SIZE is announced").trim().to_owned()
}

#[test]
fn a_changed_setting_holds_for_connections_to_come() {
    let system = System::start(&Options::default());
    assert!(announced_size(&system).ends_with("SIZE 52428800"));
    let mut old = Session::greeted(system.smtp);
    let options = Options::default().set("limits.message_size_max", "\"100 KiB\"");
    system.configure(&options);
    system.reload();
    wait_for("the new size", || {
        announced_size(&system)
            .ends_with("SIZE 102400")
            .then_some(())
    });
    let mut new = Session::greeted(system.smtp);
    new.command("MAIL FROM:<a@example.net> SIZE=200000", "552 5.3.4");
    // The session from before goes on unchanged.
    old.command("MAIL FROM:<a@example.net> SIZE=200000", "250");
    system.stop();
}

/// The nodes, which go on unchanged, must accept messages of the new size.
#[test]
fn a_larger_message_is_taken_once_the_setting_allows_it() {
    let size = |size: &str| {
        let size = format!("\"{size}\"");
        Options::default().set("limits.message_size_max", &size)
    };
    let system = System::start(&size("100 KiB"));
    system.configure(&size("24 MiB"));
    system.reload();
    wait_for("the new size", || {
        announced_size(&system)
            .ends_with("SIZE 25165824")
            .then_some(())
    });
    let line = format!("{}\r\n", "x".repeat(998));
    let text = format!("Subject: large\r\n\r\n{}", line.repeat(20_000));
    let mut session = Session::greeted(system.smtp);
    session.submit("a@example.net", &["alice@example.org"], &text);
    system.wait_mail("alice", 1);
    system.stop();
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
    wait_for("a failed attempt", || {
        let queues = system.queues();
        queues
            .iter()
            .any(|queue| queue["last_reply"].is_string())
            .then_some(())
    });
    system.configure(&Options::to(second.address));
    system.reload();
    wait_for("the new route", || {
        // New mail uses the host in any case.
        let before = second.mail().len();
        session.submit("a@example.net", &["y@example.com"], "C: d\r\n\r\n");
        wait_for("the next message", || {
            (second.mail().len() > before || system.queued() > 1).then_some(())
        });
        (second.mail().len() > before).then_some(())
    });
    system.stop();
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
    assert!(announced_size(&system).ends_with("SIZE 52428800"));

    std::fs::write(&system.config, "version = 1\nhostname = ").expect("the configuration");
    system.reload();
    system.wait_log(&["vere.toml:2"]);
    assert!(announced_size(&system).ends_with("SIZE 52428800"));

    // And a valid file after an invalid file is accepted.
    let options = Options::default().set("limits.message_size_max", "\"100 KiB\"");
    system.configure(&options);
    system.reload();
    wait_for("the new size", || {
        announced_size(&system)
            .ends_with("SIZE 102400")
            .then_some(())
    });
    system.stop();
}

#[test]
fn a_role_that_is_restarted_takes_the_settings_last_accepted() {
    let system = System::start(&Options::default());
    let options = Options::default().set("limits.message_size_max", "\"100 KiB\"");
    system.configure(&options);
    system.reload();
    wait_for("the new size", || {
        announced_size(&system)
            .ends_with("SIZE 102400")
            .then_some(())
    });
    std::fs::write(&system.config, "version = 1\nhostnam = 5\n").expect("the configuration");
    system.reload();
    system.wait_log(&["hostnam"]);
    system.kill_and_wait("gateway");
    wait_for("the greeting", || {
        Session::try_connect(system.smtp).ok().map(drop)
    });
    assert!(announced_size(&system).ends_with("SIZE 102400"));
    system.configure(&options);
    system.stop();
}

#[test]
fn a_reload_while_a_role_starts_is_not_lost() {
    let system = System::start(&Options::default());
    for round in 1..=5 {
        system.kill_and_wait("gateway");
        let size = 100 * round;
        let options = Options::default().set("limits.message_size_max", &format!("\"{size} KiB\""));
        system.configure(&options);
        system.reload();
        wait_for("the new size", || {
            Session::try_connect(system.smtp).ok()?;
            announced_size(&system)
                .ends_with(&format!("SIZE {}", size * 1024))
                .then_some(())
        });
    }
    system.stop();
}

#[test]
fn what_only_a_restart_can_change_is_said_and_nothing_is_changed() {
    let system = System::start(&Options::default());
    let options = Options::default()
        .set("limits.message_size_max", "\"100 KiB\"")
        .set("spool.memory_max", "\"64 MiB\"");
    system.configure(&options);
    system.reload();
    system.wait_log(&["restart", "spool.memory_max"]);
    assert!(announced_size(&system).ends_with("SIZE 52428800"));
    system.stop();
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
    system.configure(&options("info", 200));
    system.reload();
    system.wait_log(&[" info supervisor ", "settings reloaded"]);
    for role in ["gateway", "store", "signer", "spool-a", "spool-b"] {
        system.wait_log(&[&format!(" info {role} "), "configuration reloaded"]);
    }
    system.configure(&options("warn", 300));
    system.reload();
    wait_for("the new size", || {
        announced_size(&system)
            .ends_with("SIZE 307200")
            .then_some(())
    });
    let mut session = Session::greeted(system.smtp);
    let id = session.submit("a@example.net", &["alice@example.org"], "A: b\r\n\r\n");
    system.wait_empty();
    assert!(!system.log().contains(&id), "{}", system.log());
    system.stop();
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
    let output = output_of(vere().arg("serve").arg("-c").arg(&other), "");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
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
    system.stop();
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
        system.stop();
    }
}
