//! `vere sendmail` for the programs of a machine: by its classic command line, through real mail programs, and as
//! ordinary users.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use nix::unistd::geteuid;

use crate::harness::{
    Options, System, assert_ends, assert_has, output_of, program, quoted, run, run_with_input,
    skip, unfold, wait_until,
};

/// A system that accepts mail from its machine, and a directory with programs under the usual names.
struct Machine {
    system: System,
    bin: PathBuf,
}

impl Machine {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // Every user may enter the directory, though no user may read `data`.
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), mode).expect("its mode");
        let socket = directory.path().join("run/s.sock");
        let options = Options::default()
            .set("sendmail.socket", &quoted(&socket))
            .set("sendmail.domain", "\"example.org\"");
        let system = System::start_in(directory, &options);
        let bin = system.directory.path().join("bin");
        std::fs::create_dir(&bin).expect("a folder");
        for name in ["sendmail", "mailq", "newaliases"] {
            symlink(env!("CARGO_BIN_EXE_vere"), bin.join(name)).expect("a link");
        }
        Self { system, bin }
    }

    fn path(&self, name: &str) -> String {
        self.bin.join(name).display().to_string()
    }

    /// The program of a name, with access to its settings.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin.join(name));
        self.prepare(&mut command);
        command
    }

    fn prepare(&self, command: &mut Command) {
        command
            .env("VERE_CONFIG", &self.system.config)
            .env("HOME", self.system.directory.path())
            .env_remove("MAILRC");
    }

    fn sendmail(&self, arguments: &[&str], input: &str) -> Output {
        output_of(self.command("sendmail").args(arguments), input)
    }

    /// Runs a mail program that must succeed.
    fn mail_program(&self, command: &mut Command, input: &str) {
        self.prepare(command);
        run_with_input(command, input);
    }
}

fn code(output: &Output) -> (Option<i32>, String) {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), errors)
}

#[test]
fn the_classic_command_line_sends_completes_and_hides() {
    let machine = Machine::start();
    // The call of cron.
    let cron = machine.sendmail(
        &["-FCronDaemon", "-i", "-B8BITMIME", "-oem", "alice"],
        "From: root (Cron Daemon)\nTo: alice\nSubject: Cron\n\n10%\r20%\r\nzw\u{f6}lf\n.\nend\n",
    );
    assert_eq!(code(&cron), (Some(0), String::new()));
    let mail = &machine.system.wait_mail("alice", 1)[0];
    assert!(mail.contains("\n10%\n20%\nzw\u{f6}lf\n.\nend\n"), "{mail}");
    let user = format!("(uid {} [127.0.0.1])", geteuid());
    assert!(unfold(mail).contains(&user), "{mail}");
    // The call of scripts: recipients in the header, hidden recipients too, and no header fields of their own.
    let script = machine.sendmail(
        &["-t", "-f", "bob", "-F", "Bob B."],
        "To: Alice <alice@example.org>\nBcc: bob\nSubject: hidden\n\none\n.\nbehind the end\n",
    );
    assert_eq!(code(&script), (Some(0), String::new()));
    let copies = [
        machine.system.wait_mail("alice", 2),
        machine.system.wait_mail("bob", 1),
    ];
    for mail in copies
        .iter()
        .flatten()
        .filter(|mail| mail.contains("hidden"))
    {
        assert!(!mail.contains("Bcc") && !mail.contains("behind"), "{mail}");
        let parts = [
            "Return-Path: <bob@example.org>\n",
            "\nFrom: \"Bob B.\" <bob@example.org>\n",
            "\nDate: ",
            "\nMessage-ID: <",
        ];
        assert_has(mail, &parts);
    }
    // A message is in its mailbox before the end of its delivery is in the spool.
    wait_until("an empty queue", || {
        run(&mut machine.command("mailq")) == "Mail queue is empty\n"
    });
    assert_eq!(run(&mut machine.command("newaliases")), "");
}

#[test]
fn callers_learn_by_the_exit_code_what_became_of_it() {
    let machine = Machine::start();
    let nobody = machine.sendmail(&["alice", "nobody-here"], "A: b\n\nx\n");
    let (exit, said) = code(&nobody);
    assert_eq!(exit, Some(67), "{said}");
    assert_has(&said, &["nobody-here@example.org: 550 5.1.1"]);
    for (arguments, expected) in [
        (&["-t"][..], 64),
        (&[], 64),
        (&["--no-such"], 64),
        (&["-bd"], 64),
        (&["not an address@"], 65),
        (&["-C", "/nonexistent", "alice"], 78),
    ] {
        let output = machine.sendmail(arguments, "Subject: x\n\nx\n");
        assert_eq!(code(&output).0, Some(expected), "{arguments:?} {output:?}");
    }
    let verified = machine.sendmail(&["-bv", "alice", "nobody-here"], "");
    assert_eq!(code(&verified).0, Some(67));
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert_has(&said, &["alice@example.org ... deliverable\n"]);
    assert!(said.contains("nobody-here ... not deliverable"), "{said}");
    // The valid recipient beside an invalid recipient got nothing: a repetition makes no copies.
    assert_eq!(machine.system.mail("alice").len(), 0);
    // The command waits for an absent gateway.
    machine.system.signal_role("gateway", Signal::SIGKILL);
    let waited = machine.sendmail(&["alice"], "Subject: waited\n\nx\n");
    assert_eq!(code(&waited), (Some(0), String::new()));
    machine.system.wait_mail("alice", 1);
    // A system that is away is not waited for as long as somebody would stand before the screen.
    let config = machine.system.directory.path().join("other.toml");
    let text =
        "version = 1\nhostname = \"h.example\"\ndata = \"d\"\n[sendmail]\nsocket = \"no.sock\"\n";
    std::fs::write(&config, text).expect("the settings");
    let arguments = ["-C", &config.display().to_string(), "alice"];
    let (exit, said) = code(&machine.sendmail(&arguments, "A: b\n\n"));
    assert_eq!(exit, Some(75), "{said}");
    assert!(said.contains("does not run"), "{said}");
}

#[test]
fn reports_are_asked_for_and_smtp_is_spoken() {
    let machine = Machine::start();
    let arguments = [
        "-f", "bob", "-N", "success", "-R", "hdrs", "-V", "job 7", "alice",
    ];
    let asked = machine.sendmail(&arguments, "Subject: asked\n\nx\n");
    assert_eq!(code(&asked), (Some(0), String::new()));
    let report = &machine.system.wait_mail("bob", 1)[0];
    assert_has(
        report,
        &["Original-Envelope-Id: job 7\n", "Action: delivered\n"],
    );
    let dialogue = "EHLO me\r\nMAIL FROM:<>\r\nRCPT TO:<alice@example.org>\r\nDATA\r\n\
                    A: b\r\n\r\nby hand\r\n.\r\nQUIT\r\n";
    let spoken = run_with_input(machine.command("sendmail").arg("-bs"), dialogue);
    assert!(spoken.starts_with("220 example.org "), "{spoken}");
    assert!(spoken.contains("\r\n250 2.0.0 "), "{spoken}");
    assert_has(&spoken, &["\r\n221 "]);
    assert_ends(&spoken, "\r\n");
    machine.system.wait_mail("alice", 2);
}

#[test]
fn every_user_of_the_machine_may_send() {
    if !geteuid().is_root() {
        return skip("another user's mail", "only root can become one");
    }
    let machine = Machine::start();
    let nobody = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .args(arguments);
        machine.prepare(&mut command);
        command
    };
    if !nobody(&[&machine.path("newaliases")])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        return skip(
            "another user's mail",
            "nobody may not run what was built here",
        );
    }
    run_with_input(
        &mut nobody(&[&machine.path("sendmail"), "alice"]),
        "hello\n",
    );
    let mail = &machine.system.wait_mail("alice", 1)[0];
    assert!(unfold(mail).contains("(uid 65534 [127.0.0.1])"), "{mail}");
    // The queue is not everybody's to look into.
    let listed = output_of(&mut nobody(&[&machine.path("mailq")]), "");
    assert_eq!(code(&listed).0, Some(69), "{listed:?}");
}

#[test]
fn real_mail_programs_send_through_it() {
    let machine = Machine::start();
    let sendmail = machine.path("sendmail");
    let mut expected = Vec::new();
    if let Some(mutt) = program("mutt") {
        let mut command = Command::new(mutt);
        command
            .args(["-n", "-F", "/dev/null", "-e", "set copy=no", "-e"])
            .arg(format!("set sendmail=\"{sendmail} -oem -oi\""))
            .args(["-e", "set use_envelope_from=yes from=bob@example.org"])
            .args(["-s", "by mutt", "alice@example.org"]);
        machine.mail_program(&mut command, "from mutt\n.\n");
        expected.push("by mutt");
    }
    if let Some(mailx) = program("bsd-mailx") {
        let settings = machine.system.directory.path().join("mailrc");
        std::fs::write(&settings, format!("set sendmail={sendmail}\n")).expect("its settings");
        let mut command = Command::new(mailx);
        command.args(["-s", "by mailx", "alice"]);
        machine.prepare(&mut command);
        command.env("MAILRC", &settings);
        run_with_input(&mut command, "from mailx\n");
        expected.push("by mailx");
    }
    if let Some(nail) = program("s-nail") {
        let mut command = Command::new(nail);
        command
            .args(["-n", "-S", "v15-compat", "-S"])
            .arg(format!("mta={sendmail}"))
            .args(["-s", "by nail", "alice@example.org"]);
        machine.mail_program(&mut command, "from nail\n");
        expected.push("by nail");
    }
    if let Some(python) = program("python3") {
        let script = "import subprocess, sys, email.message as m\n\
             e = m.EmailMessage(); e['To'] = 'alice@example.org'; e['Subject'] = 'by python'\n\
             e.set_content('gr\u{fc}n')\n\
             subprocess.run([sys.argv[1], '-t', '-i'], input=e.as_bytes(), check=True)\n";
        machine.mail_program(Command::new(python).args(["-c", script, &sendmail]), "");
        expected.push("by python");
    }
    if let Some(patch) = git_patch(&machine) {
        machine.mail_program(&mut git_send_email(&machine, &patch), "");
        expected.push("by git");
    }
    if expected.is_empty() {
        return skip("mail programs", "none is installed");
    }
    let mail = machine.system.wait_mail("alice", expected.len());
    for subject in expected {
        let line = format!("by {}", subject.trim_start_matches("by "));
        assert_eq!(
            mail.iter()
                .filter(|one| subject_of(one).contains(&line))
                .count(),
            1,
            "{line} in {mail:#?}"
        );
    }
}

fn subject_of(mail: &str) -> String {
    let whole = unfold(mail);
    let line = whole.lines().find(|line| line.starts_with("Subject:"));
    line.unwrap_or_default().to_owned()
}

fn git_send_email(machine: &Machine, patch: &str) -> Command {
    let mut command = Command::new("git");
    command
        .env("GIT_AUTHOR_NAME", "Bob")
        .env("GIT_AUTHOR_EMAIL", "bob@example.org")
        .env("GIT_COMMITTER_NAME", "Bob")
        .env("GIT_COMMITTER_EMAIL", "bob@example.org")
        .current_dir(machine.system.directory.path())
        .arg("send-email")
        .arg(format!("--sendmail-cmd={}", machine.path("sendmail")))
        .args(["--to=alice@example.org", "--from=bob@example.org"])
        .args(["--confirm=never", "--suppress-cc=all", patch]);
    command
}

/// A patch to send, where git can send any.
fn git_patch(machine: &Machine) -> Option<String> {
    let git = program("git")?;
    let folder = machine.system.directory.path().join("work");
    run(Command::new(&git).args(["init", "-q"]).arg(&folder));
    let mut commit = Command::new(&git);
    commit
        .arg("-C")
        .arg(&folder)
        .args(["-c", "user.name=Bob", "-c", "user.email=bob@example.org"])
        .args(["commit", "-q", "--allow-empty", "-m", "by git"]);
    run(&mut commit);
    let mut format = Command::new(git);
    format
        .arg("-C")
        .arg(&folder)
        .args(["format-patch", "-1", "--root", "--always"]);
    let name = run(&mut format);
    let patch = folder.join(name.trim()).display().to_string();
    let mut dry = git_send_email(machine, &patch);
    machine.prepare(dry.arg("--dry-run"));
    let tried = output_of(&mut dry, "");
    if !tried.status.success() {
        let why = String::from_utf8_lossy(&tried.stderr);
        let why = why.lines().next().unwrap_or("git-email is not installed");
        skip(
            "git send-email",
            &format!("{why} (scripts/install-test-tools.sh installs it)"),
        );
        return None;
    }
    Some(patch)
}
