//! The command with a milter by libmilter, and with filters that are not there.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::Parser as _;
use serde_json::Value;
use tempfile::TempDir;
use vere_process::outcome::Outcome;
use vere_settings::Settings;

use super::test;

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(flatten)]
    args: test::TestArgs,
}

fn settings(sections: &str) -> Settings {
    let text = format!("version = 1\nhostname = \"mail.example\"\n{sections}");
    Settings::parse(&text, "/etc/vere/vere.toml").expect(sections)
}

/// A section about a socket in a folder.
fn milter(name: &str, folder: &Path) -> String {
    let socket = folder.join("socket");
    format!(
        "[[filter]]\nname = \"{name}\"\nkind = \"milter\"\naddress = \"unix:{}\"\n",
        socket.display()
    )
}

/// Runs the command with words about a message.
fn run(sections: &str, words: &[&str], message: &str) -> Result<(String, ExitCode), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("message.eml");
    fs::write(&file, message).expect("a file");
    let file = file.display().to_string();
    let words = ["test"].into_iter().chain(words.iter().copied());
    let line = Line::parse_from(words.chain([file.as_str()]));
    match test::run(&line.args, &settings(sections)) {
        Ok(Outcome::Report(text, code)) => Ok((text, code)),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure.to_string()),
    }
}

/// The milter of the filters' own tests, which does what the subject says.
struct Wishes {
    folder: TempDir,
    child: Child,
}

impl Drop for Wishes {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Wishes {
    fn start() -> Option<Self> {
        let python = Path::new("/usr/bin/python3");
        let has = Command::new(python)
            .args(["-c", "import Milter"])
            .stderr(Stdio::null())
            .status();
        if !has.is_ok_and(|status| status.success()) {
            println!("skipped: python3-milter is not installed (apt-get install python3-milter)");
            return None;
        }
        let folder = tempfile::Builder::new()
            .prefix("vf")
            .tempdir()
            .expect("a folder");
        let script = include_str!("../../../../part/filters/src/tests/wishes.py");
        fs::write(folder.path().join("wishes.py"), script).expect("a script");
        let child = Command::new(python)
            .args(["wishes.py", "socket"])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("a milter");
        let milter = Self { folder, child };
        let socket = milter.folder.path().join("socket");
        let begun = Instant::now();
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no milter");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(milter)
    }
}

#[test]
fn the_answers_of_a_milter_are_printed() {
    let Some(wishes) = Wishes::start() else {
        return;
    };
    let sections = milter("wishes", wishes.folder.path());
    let message = "Subject: change\nX-A: 1\nX-B: gone\nX-A: 2\n\nbody\n";
    let words = [
        "--from",
        "a@b.example",
        "--to",
        "e@d.example",
        "--to",
        "c@d.example",
    ];
    let (text, code) = run(&sections, &words, message).expect("answers");
    assert_eq!(code, ExitCode::SUCCESS, "{text}");
    for line in [
        "filter        wishes  milter at unix:/",
        "\n  verdict     accept\n",
        "\n  change      replace the body\n",
        "\n  time        ",
        "\nreverse-path  <other@b.example>\n",
        "\nrecipient +   <new@d.example>\n",
        "\nrecipient -   <e@d.example>\n",
        "\nmessage       changed, ",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    let words = ["--json"];
    let (json, _) = run(&sections, &words, "Subject: reject\n\nbody\n").expect("answers");
    let json: Value = serde_json::from_str(&json).expect(&json);
    assert_eq!(json["filters"][0]["verdict"], "reject");
    assert_eq!(json["filters"][0]["text"], "5.7.1 first 5.7.1 100% no");
    assert_eq!(json["changed_bytes"], Value::Null);
}

#[test]
fn a_filter_that_is_not_there_is_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let sections = milter("one", folder.path()) + &milter("two", folder.path());
    let (text, code) = run(&sections, &[], "Subject: a\n\nb\n").expect("answers");
    assert_eq!(code, ExitCode::from(3));
    assert!(
        text.contains("verdict     unavailable (cannot connect to /"),
        "{text}"
    );
    assert!(
        text.contains("filter        two") && text.contains("not asked"),
        "{text}"
    );
    assert!(text.contains("deferred by   one\n"), "{text}");
    let (text, _) = run(&sections, &["--filter", "two"], "Subject: a\n\nb\n").expect("answers");
    assert!(!text.contains("filter        one"), "{text}");
    let wrong = run(&sections, &["--filter", "twoo"], "").expect_err("a failure");
    assert!(
        wrong.contains("named \"twoo\", the nearest known one is two"),
        "{wrong}"
    );
    let none = run("", &[], "").expect_err("a failure");
    assert!(none.contains("[[filter]]"), "{none}");
}

#[test]
fn a_long_message_is_not_shown() {
    let sections =
        "[[filter]]\nname = \"a\"\nkind = \"clamd\"\naddress = \"[::1]:1\"\nsize_max = \"1 KiB\"\n";
    let long = format!("Subject: a\n\n{}\n", "x".repeat(2_000));
    let (text, code) = run(sections, &[], &long).expect("answers");
    assert_eq!(code, ExitCode::SUCCESS);
    assert!(
        text.contains("verdict     too long (2016 bytes, size_max is 1024)"),
        "{text}"
    );
}
