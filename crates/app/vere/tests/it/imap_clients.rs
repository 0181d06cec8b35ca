//! Mailboxes read and synchronised by the programs that people use: mbsync, OfflineIMAP, mutt, fetchmail,
//! curl over TLS.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{
    Authority, Options, Session, System, free_address, in_soak, output_of, program, run,
};
use crate::imap::{Imap, Ports, start_with_store, wait_messages};

const ALICE: &str = "alice@example.org";

/// A system where alice has five messages in INBOX, and a folder for the files of a program.
struct Desk {
    system: System,
    ports: Ports,
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        let (system, ports) = start_with_store(options);
        let mut session = Session::greeted(system.smtp);
        for number in 1..=5 {
            let text = format!("Subject: number {number}\r\n\r\nThe text of {number}\r\n");
            session.submit("me@example.net", &[ALICE], &text);
            // In sequence, for their order.
            wait_messages(&ports, ALICE, "INBOX", number);
        }
        Self {
            system,
            ports,
            folder: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Writes a program's settings, with `{port}` and `{folder}` replaced by their values.
    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        let text = text
            .replace("{port}", &self.ports.imap.port().to_string())
            .replace("{folder}", &self.folder.path().display().to_string());
        fs::write(&path, text).expect("its settings");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&path, mode).expect("its mode");
        path
    }

    /// A program without access to the machine's own settings.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("TERM", "vt100");
        command
    }

    fn login(&self) -> Imap {
        Imap::login(self.ports.imap, ALICE, "secret")
    }

    /// The names of all mailboxes.
    fn mailboxes(&self) -> Vec<String> {
        let said = self.login().ok("LIST \"\" *");
        let names = said.lines().filter(|line| line.starts_with("* LIST "));
        names
            .filter_map(|line| Some(line.rsplit_once("\"/\" ")?.1.to_owned()))
            .collect()
    }

    /// UIDs and flags of a mailbox; the listing changes nothing.
    fn listing(&self, mailbox: &str) -> Vec<String> {
        let mut session = self.login();
        session.ok(&format!("EXAMINE {mailbox}"));
        let said = session.ok("UID FETCH 1:* (FLAGS)");
        let rows = said.lines().filter(|line| line.contains(" FETCH "));
        rows.map(|row| row.replace("\\Recent", "")).collect()
    }
}

/// The files of a Maildir's `new` and `cur`, by name.
fn maildir(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = ["new", "cur"]
        .iter()
        .filter_map(|part| fs::read_dir(folder.join(part)).ok())
        .flatten()
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    files
}

fn with_text(folder: &Path, text: &str) -> PathBuf {
    let found = maildir(folder)
        .into_iter()
        .find(|file| fs::read_to_string(file).is_ok_and(|content| content.contains(text)));
    found.unwrap_or_else(|| panic!("no message with {text} in {}", folder.display()))
}

/// Gives a message of a Maildir flags, as a mail program does.
fn flag(file: &Path, flags: &str) {
    let name = file.file_name().expect("a name").to_string_lossy();
    let base = name.split(":2,").next().expect("a name");
    let maildir = file.parent().and_then(Path::parent).expect("a Maildir");
    let cur = maildir.join("cur");
    fs::rename(file, cur.join(format!("{base}:2,{flags}"))).expect("a new name");
}

/// The changes on both sides between two runs of a synchronising program.
fn change_both_sides(desk: &Desk, inbox: &Path) {
    flag(&with_text(inbox, "number 1"), "S");
    fs::remove_file(with_text(inbox, "number 2")).expect("its end");
    fs::write(
        inbox.join("new/1.local.example"),
        "Subject: from here\n\nWritten here\n",
    )
    .expect("a message");
    let mut session = desk.login();
    session.ok("SELECT INBOX");
    session.ok("STORE 3 +FLAGS (\\Flagged)");
    session.ok("STORE 4 +FLAGS (\\Deleted)");
    session.ok("EXPUNGE");
    session.append("INBOX", "Subject: from there\r\n\r\nX\r\n");
    session.ok("CREATE Work");
    session.append("Work (\\Seen \\Answered)", "Subject: work\r\n\r\nX\r\n");
}

/// Both sides are equal afterwards, whatever the names of the program's directories.
fn both_have_the_changes(desk: &Desk, inbox: &Path, work: &Path) {
    let mut session = desk.login();
    session.ok("EXAMINE INBOX");
    let subjects = [
        "number 1",
        "number 3",
        "number 5",
        "from here",
        "from there",
    ];
    for subject in subjects {
        let said = session.ok(&format!("SEARCH SUBJECT \"{subject}\""));
        assert!(said.contains("* SEARCH "), "{subject}: {said}");
        with_text(inbox, subject);
    }
    assert_eq!(desk.listing("INBOX").len(), 5);
    assert_eq!(maildir(inbox).len(), 5);
    let seen = session.ok("SEARCH SEEN SUBJECT \"number 1\"");
    assert!(seen.contains("* SEARCH 1"), "{seen}");
    let name = |text: &str| with_text(inbox, text).display().to_string();
    assert!(name("number 3").ends_with(":2,F"), "{}", name("number 3"));
    assert!(name("number 1").ends_with(":2,S"), "{}", name("number 1"));
    let in_work = with_text(work, "Subject: work").display().to_string();
    assert!(in_work.ends_with(":2,RS"), "{in_work}");
}

/// A run without changes to carry changes neither side.
fn is_at_a_fixed_point(desk: &Desk, folders: [&Path; 2], synchronise: impl Fn()) {
    let state = || {
        let there = desk.mailboxes();
        let rows: Vec<_> = there.iter().map(|name| desk.listing(name)).collect();
        (there, rows, folders.map(maildir))
    };
    let before = state();
    synchronise();
    synchronise();
    assert_eq!(state(), before);
}

/// A program that keeps `mail/INBOX` and `mail/Work` as alice's mailboxes takes changes of both sides over.
fn synchronises_both_ways(desk: &Desk, synchronise: impl Fn()) {
    synchronise();
    let (inbox, work) = (desk.path("mail/INBOX"), desk.path("mail/Work"));
    let (inbox, work) = (Path::new(&inbox), Path::new(&work));
    assert_eq!(maildir(inbox).len(), 5);
    change_both_sides(desk, inbox);
    synchronise();
    both_have_the_changes(desk, inbox, work);
    is_at_a_fixed_point(desk, [inbox, work], synchronise);
}

#[test]
fn mbsync_synchronises_both_ways_to_a_fixed_point() {
    let Some(mbsync) = program("mbsync") else {
        return;
    };
    let desk = Desk::new();
    let settings = desk.write(
        "mbsyncrc",
        "IMAPStore remote\nHost 127.0.0.1\nPort {port}\nUser alice@example.org\nPass secret\nSSLType None\n\n\
         MaildirStore local\nPath {folder}/mail/\nInbox {folder}/mail/INBOX\nSubFolders Verbatim\n\n\
         Channel all\nFar :remote:\nNear :local:\nPatterns *\nCreate Both\nRemove Both\nExpunge Both\n\
         CopyArrivalDate yes\nSyncState *\n",
    );
    fs::create_dir(desk.folder.path().join("mail")).expect("a folder");
    let synchronise = || {
        run(desk.command(&mbsync).args(["-c", &settings, "-a"]));
    };
    synchronises_both_ways(&desk, synchronise);
}

#[test]
fn offlineimap_synchronises_both_ways_to_a_fixed_point() {
    let Some(offlineimap) = program("offlineimap") else {
        return;
    };
    let desk = Desk::new();
    let settings = desk.write(
        "offlineimaprc",
        "[general]\naccounts = a\nmetadata = {folder}/metadata\nui = basic\n\n\
         [Account a]\nlocalrepository = here\nremoterepository = there\n\n\
         [Repository here]\ntype = Maildir\nlocalfolders = {folder}/mail\n\n\
         [Repository there]\ntype = IMAP\nremotehost = 127.0.0.1\nremoteport = {port}\n\
         remoteuser = alice@example.org\nremotepass = secret\nssl = no\nstarttls = no\n\
         auth_mechanisms = PLAIN, LOGIN\n",
    );
    let synchronise = || {
        run(desk.command(&offlineimap).args(["-o", "-c", &settings]));
    };
    synchronises_both_ways(&desk, synchronise);
}

#[test]
fn mutt_flags_files_and_deletes() {
    let (Some(mutt), Some(script)) = (program("mutt"), program("script")) else {
        return;
    };
    let desk = Desk::new();
    let settings = desk.write(
        "muttrc",
        "set imap_user = \"alice@example.org\"\nset imap_pass = secret\nset ssl_starttls = no\n\
         set ssl_force_tls = no\nset folder = \"imap://127.0.0.1:{port}\"\nset spoolfile = \"+INBOX\"\n\
         set confirmappend = no\nset delete = yes\nset move = no\nset wait_key = no\nset sort = date-received\n\
         push \"<first-entry><flag-message><first-entry><next-entry><delete-message>\
         <limit>number 3<enter><save-message>=Archive<enter><limit>all<enter>\
         <search>number 5<enter><display-message><exit><sync-mailbox><quit>\"\n",
    );
    let line = format!("{} -n -F {settings}", mutt.display());
    run(desk.command(&script).args(["-qec", &line, "/dev/null"]));
    let mut session = desk.login();
    session.ok("EXAMINE INBOX");
    let mut found = |query: &str| session.ok(&format!("SEARCH {query}"));
    assert!(found("FLAGGED SUBJECT \"number 1\"").contains("* SEARCH 1\r\n"));
    assert!(found("SUBJECT \"number 2\"").contains("* SEARCH\r\n"));
    assert!(found("SUBJECT \"number 3\"").contains("* SEARCH\r\n"));
    assert!(found("SEEN SUBJECT \"number 5\"").contains("* SEARCH 3\r\n"));
    session.ok("EXAMINE Archive");
    let said = session.ok("FETCH 1 BODY.PEEK[]");
    assert!(said.contains("The text of 3"), "{said}");
}

#[test]
fn fetchmail_takes_everything_away() {
    let Some(fetchmail) = program("fetchmail") else {
        return;
    };
    let desk = Desk::new();
    let settings = desk.write(
        "fetchmailrc",
        "poll 127.0.0.1 protocol imap port {port} auth password:\n\
         user \"alice@example.org\" password \"secret\" fetchall no rewrite sslproto \"\"\n\
         mda \"/usr/bin/tee -a {folder}/taken\"\n",
    );
    run(desk
        .command(&fetchmail)
        .args(["--fetchmailrc", &settings, "--pidfile"])
        .arg(desk.path("pid")));
    let taken = fs::read_to_string(desk.path("taken")).expect("what it took");
    for number in 1..=5 {
        assert!(taken.contains(&format!("The text of {number}")), "{taken}");
    }
    assert_eq!(desk.login().exists("INBOX"), 0);
}

/// The script waits for the display of the program; the test checks the server afterwards.
fn try_thunderbird(desk: &Desk, imap: SocketAddr, smtp: SocketAddr, tls: &[&str]) {
    let (Some(python), Some(_), Some(_)) =
        (program("python3"), program("thunderbird"), program("Xvfb"))
    else {
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/try-thunderbird.py");
    let (imap, smtp) = (imap.to_string(), smtp.to_string());
    let who = ["--user", ALICE, "--password", "secret"];
    let mut command = Command::new(python);
    command.arg(script).args(["--imap", &imap, "--smtp", &smtp]);
    run(command.args(who).args(["--word", "text of 3"]).args(tls));
    let mut session = desk.login();
    session.ok("EXAMINE Kept");
    assert!(session.ok("SEARCH SEEN FLAGGED").contains("* SEARCH 1\r\n"));
    session.ok("EXAMINE INBOX");
    assert!(
        session
            .ok("SEARCH SUBJECT \"from Thunderbird\"")
            .contains("* SEARCH 4\r\n")
    );
    let all = session.ok("LIST \"\" * RETURN (STATUS (MESSAGES))");
    let with_one = all.lines().filter(|line| line.contains("(MESSAGES 1)"));
    // Kept, Sent and Trash.
    assert_eq!(with_one.count(), 3, "{all}");
}

#[test]
fn thunderbird_reads_searches_files_and_sends() {
    if !in_soak() {
        return;
    }
    let desk = Desk::new();
    try_thunderbird(&desk, desk.ports.imap, desk.system.submission, &[]);
}

/// The same with settings that demand TLS, with a certificate of a CA that the user trusts.
#[test]
fn thunderbird_does_so_by_starttls_and_within_tls() {
    if !in_soak() {
        return;
    }
    let authority = Authority::new();
    let ca = authority.ca.display().to_string();
    let files = authority.sign("mx", &["mx.example.org", "127.0.0.1"]);
    for tls in ["starttls", "implicit"] {
        let imaps = free_address();
        let options = Options::default()
            .certificate(&files)
            .set("imaps.listen", &format!("[\"{imaps}\"]"));
        let desk = Desk::with(options);
        let (imap, smtp) = match tls {
            "starttls" => (desk.ports.imap, desk.system.submission),
            _ => (imaps, desk.system.submissions),
        };
        try_thunderbird(&desk, imap, smtp, &["--tls", tls, "--ca", &ca]);
    }
}

#[test]
fn curl_reads_over_starttls_and_implicit_tls() {
    let Some(curl) = program("curl") else {
        return;
    };
    let authority = Authority::new();
    let files = authority.sign("mx", &["mx.example.org", "127.0.0.1"]);
    let options = Options::default()
        .unset("auth.plaintext_networks")
        .certificate(&files);
    let imaps = free_address();
    let options = options.set("imaps.listen", &format!("[\"{imaps}\"]"));
    let (system, ports) = start_with_store(options);
    system.submit("me@example.net", &[ALICE], "Subject: safe\r\n\r\nhello\r\n");
    for url in [
        format!("imap://{}/INBOX;UID=1", ports.imap),
        format!("imaps://{}/INBOX;UID=1", imaps),
    ] {
        let mut command = Command::new(&curl);
        command
            .args([
                "--silent",
                "--show-error",
                "--ssl-reqd",
                "--retry",
                "60",
                "--retry-all-errors",
                "--retry-delay",
                "1",
            ])
            .arg("--cacert")
            .arg(&authority.ca)
            .args(["--user", "alice@example.org:secret", &url]);
        let read = run(&mut command);
        assert!(read.contains("Subject: safe"), "{read}");
    }
    // In the clear no password is taken.
    let mut command = Command::new(&curl);
    command
        .args(["--silent", "--user", "alice@example.org:secret"])
        .arg(format!("imap://{}/INBOX", ports.imap));
    let refused = output_of(&mut command, "");
    assert!(!refused.status.success());
}
