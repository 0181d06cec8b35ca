//! Real clients from Debian's packages send mail to the daemon in the clear.

use std::process::Command;

use crate::harness::{Options, System, assert_ends, assert_has, program, run};

#[test]
fn swaks_sends_in_the_clear() {
    let Some(swaks) = program("swaks") else {
        return;
    };
    let system = System::start(&Options::default());
    let output = run(Command::new(swaks)
        .args(["--server", &system.smtp.to_string(), "--pipeline"])
        .args(["--from", "me@example.net", "--to", "alice@example.org"])
        .args(["--header", "Subject: by swaks"]));
    assert!(output.contains("queued as"), "{output}");
    assert!(system.wait_mail("alice", 1)[0].contains("\nSubject: by swaks\n"));
}

#[test]
fn curl_sends_a_file() {
    let Some(curl) = program("curl") else {
        return;
    };
    let system = System::start(&Options::default());
    let file = system.directory.path().join("mail.txt");
    std::fs::write(&file, "Subject: by curl\r\n\r\n.leading dot\r\n").expect("the file");
    run(Command::new(curl)
        .args(["--silent", "--show-error"])
        .args(["--url", &format!("smtp://{}", system.smtp)])
        .args(["--mail-from", "me@example.net"])
        .args(["--mail-rcpt", "alice@example.org", "--upload-file"])
        .arg(&file));
    assert!(system.wait_mail("alice", 1)[0].ends_with("\n\n.leading dot\n"));
}

#[test]
fn python_smtplib_sends_utf8_addresses_and_8_bit_text() {
    let Some(python) = program("python3") else {
        return;
    };
    let system = System::start(&Options::default());
    let script = "\
import smtplib, sys
host, port = sys.argv[1].rsplit(':', 1)
with smtplib.SMTP(host, int(port)) as s:
    s.ehlo()
    assert s.has_extn('smtputf8') and s.has_extn('8bitmime')
    s.sendmail('jörg@example.net', ['alice@example.org'], 'Subject: grüße\\r\\n\\r\\nä\\r\\n'.encode(),
               ['SMTPUTF8', 'BODY=8BITMIME'])
";
    run(Command::new(python).args(["-c", script, &system.smtp.to_string()]));
    let text = &system.wait_mail("alice", 1)[0];
    assert_has(text, &["Return-Path: <jörg@example.net>\n"]);
    assert_ends(text, "\nä\n");
}

#[test]
fn postfix_smtp_source_sends_many_at_once() {
    let Some(source) = program("smtp-source") else {
        return;
    };
    let system = System::start(&Options::default());
    run(Command::new(source)
        .args(["-s", "10", "-m", "100", "-l", "4000", "-c"])
        .args(["-f", "me@example.net", "-t", "alice@example.org"])
        .arg(format!("inet:{}", system.smtp)));
    system.wait_mail("alice", 100);
}
