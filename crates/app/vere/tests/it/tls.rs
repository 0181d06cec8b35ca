//! TLS with real clients: the right certificate, a new certificate without a restart, and nothing from before the
//! handshake.

use std::process::Command;

use crate::harness::{
    Authority, Files, Options, Session, System, assert_has, program, run, unfold, wait_for,
    wait_until,
};

/// A system with a certificate, and the CA of the certificate.
struct Setup {
    authority: Authority,
    files: Files,
}

impl Setup {
    fn new() -> Self {
        let authority = Authority::new();
        let files = authority.sign("mx", &["mx.example.org", "127.0.0.1"]);
        Self { authority, files }
    }

    fn options(&self) -> Options {
        Options::default()
            .unset("auth.plaintext_networks")
            .certificate(&self.files)
    }

    fn ca(&self) -> String {
        self.authority.ca.display().to_string()
    }
}

#[test]
fn swaks_uses_starttls_and_implicit_tls() {
    let Some(swaks) = program("swaks") else {
        return;
    };
    let setup = Setup::new();
    let system = System::start(&setup.options());
    for (server, tls) in [
        (system.smtp, "--tls"),
        (system.submission, "--tls"),
        (system.submissions, "--tls-on-connect"),
    ] {
        let mut command = Command::new(&swaks);
        command
            .args(["--server", &server.to_string(), tls, "--tls-verify"])
            .args(["--tls-ca-path", &setup.ca()])
            .args(["--from", "alice@example.org", "--to", "bob@example.org"]);
        if server != system.smtp {
            command.args(["--auth", "PLAIN", "--auth-user", "alice@example.org"]);
            command.args(["--auth-password", "secret"]);
        }
        run(&mut command);
    }
    let texts = system.wait_mail("bob", 3);
    let texts: Vec<_> = texts.iter().map(|text| unfold(text)).collect();
    let with = |keyword: &str| texts.iter().filter(|text| text.contains(keyword)).count();
    assert_eq!(
        (
            with(" with ESMTPS (TLSv1.3 "),
            with(" with ESMTPSA (TLSv1.3 ")
        ),
        (1, 2)
    );
}

#[test]
fn curl_sends_only_with_tls_that_it_verifies() {
    let Some(curl) = program("curl") else {
        return;
    };
    let setup = Setup::new();
    let system = System::start(&setup.options());
    let file = setup.authority.folder().join("mail.txt");
    std::fs::write(&file, "Subject: by curl\r\n\r\nbody\r\n").expect("the file");
    for (scheme, address) in [("smtp", system.submission), ("smtps", system.submissions)] {
        let port = address.port();
        run(Command::new(&curl)
            .args([
                "--silent",
                "--show-error",
                "--ssl-reqd",
                "--cacert",
                &setup.ca(),
            ])
            .args(["--url", &format!("{scheme}://mx.example.org:{port}")])
            .args(["--connect-to", &format!("mx.example.org:{port}:{address}")])
            .args(["--user", "alice@example.org:secret"])
            .args(["--mail-from", "alice@example.org"])
            .args(["--mail-rcpt", "bob@example.org", "--upload-file"])
            .arg(&file));
    }
    system.wait_mail("bob", 2);
}

#[test]
fn python_smtplib_sends_only_with_tls_that_it_verifies() {
    let Some(python) = program("python3") else {
        return;
    };
    let setup = Setup::new();
    let system = System::start(&setup.options());
    let script = "\
import smtplib, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[3])
for kind, server in ((smtplib.SMTP, sys.argv[1]), (smtplib.SMTP_SSL, sys.argv[2])):
    host, port = server.rsplit(':', 1)
    with kind(host, int(port), **({'context': context} if kind is smtplib.SMTP_SSL else {})) as s:
        if kind is smtplib.SMTP:
            s.starttls(context=context)
        assert s.sock.version() == 'TLSv1.3', s.sock.version()
        s.login('alice@example.org', 'secret')
        s.sendmail('alice@example.org', ['bob@example.org'], 'Subject: by Python\\r\\n\\r\\nbody\\r\\n')
";
    run(Command::new(python).args([
        "-c",
        script,
        &system.submission.to_string(),
        &system.submissions.to_string(),
        &setup.ca(),
    ]));
    system.wait_mail("bob", 2);
}

#[test]
fn the_certificate_fits_the_name_that_is_asked_for() {
    let setup = Setup::new();
    let other = setup.authority.sign("other", &["mail.example.net"]);
    let options = setup.options().certificate_for("mail.example.net", &other);
    let system = System::start(&options);
    let shown = |name: &str| {
        let session = Session::greeted(system.smtp).starttls(&setup.authority, name);
        let by_starttls = session.certificate();
        let at_once = Session::connect_tls(system.submissions, &setup.authority, name);
        assert_eq!(by_starttls, at_once.certificate());
        by_starttls
    };
    assert_eq!(shown("mx.example.org"), setup.files.der);
    assert_eq!(shown("mail.example.net"), other.der);
    assert_eq!(shown("MAIL.Example.NET"), other.der);
    // A client that connects by address sends no name and gets the usual certificate.
    assert_eq!(shown("127.0.0.1"), setup.files.der);
}

#[test]
fn a_new_certificate_is_shown_after_a_reload_and_a_wrong_one_is_not() {
    let setup = Setup::new();
    let system = System::start(&setup.options());
    let shown = || {
        let session = Session::greeted(system.smtp).starttls(&setup.authority, "mx.example.org");
        session.certificate()
    };
    let mut old = Session::greeted(system.smtp).starttls(&setup.authority, "mx.example.org");
    assert_eq!(shown(), setup.files.der);

    let renewed = setup.authority.sign("mx", &["mx.example.org"]);
    assert_eq!(shown(), setup.files.der, "files are read at reload only");
    system.reload();
    wait_until("the new certificate", || shown() == renewed.der);
    // A connection from before goes on.
    old.command("EHLO client.example.net", "250");

    // The key of another certificate: refused as a whole, with the reason in the log.
    let stranger = setup.authority.sign("stranger", &["mx.example.org"]);
    std::fs::copy(&stranger.key, &renewed.key).expect("a copy");
    system.reload();
    system.wait_log(&["reload refused", "tls.key", "mx.key"]);
    assert_eq!(shown(), renewed.der);
    std::fs::write(&renewed.certificate, "no PEM at all").expect("the file");
    system.reload();
    system.wait_log(&["reload refused", "tls.certificate", "mx.pem"]);
    assert_eq!(shown(), renewed.der);
    old.command("NOOP", "250");
    // Roles were not even asked.
    assert!(!system.log().contains("configuration kept"));
}

#[test]
fn a_gateway_that_is_restarted_shows_the_certificate_that_was_right_last() {
    let setup = Setup::new();
    let system = System::start(&setup.options());
    let shown = || {
        let session = Session::try_connect(system.smtp).ok()?;
        drop(session);
        let session = Session::greeted(system.smtp).starttls(&setup.authority, "mx.example.org");
        Some(session.certificate())
    };
    std::fs::write(&setup.files.key, "garbage").expect("the file");
    system.kill_and_wait("gateway");
    let der = wait_for("a handshake", shown);
    assert_eq!(der, setup.files.der);
    system.wait_log(&["the certificate that was used last serves", "mx.key"]);
    // Once the file is right again it is taken without a restart.
    let renewed = setup.authority.sign("mx", &["mx.example.org"]);
    system.reload();
    wait_for("the new certificate", || {
        (shown()? == renewed.der).then_some(())
    });
}

#[test]
fn a_start_with_a_broken_key_says_so_at_once() {
    let setup = Setup::new();
    std::fs::write(&setup.files.key, "garbage").expect("the file");
    let (status, log) = System::failing_start(&setup.options());
    assert_eq!(status.code(), Some(1));
    assert_has(&log, &["tls.key: ", "holds no private key"]);
    assert!(!log.contains("role started"), "{log}");
}

#[test]
fn nothing_from_before_the_handshake_holds_after_it() {
    let setup = Setup::new();
    let system = System::start(&setup.options());
    let mut session = Session::greeted(system.smtp);
    session.transaction("before@example.net", &["alice@example.org"]);
    session.send(b"STARTTLS\r\n");
    let reply = session.reply();
    let session = if reply.starts_with("220") {
        session.handshake(&setup.authority, "mx.example.org")
    } else {
        assert!(reply.starts_with("503 5.5.1"), "{reply}");
        session.command("RSET", "250");
        session.starttls(&setup.authority, "mx.example.org")
    };
    let mut session = session;
    session.command("DATA", "503");
    session.command("MAIL FROM:<a@example.net>", "503");
    let keywords = session.command("EHLO client", "250");
    assert!(!keywords.contains("STARTTLS"), "{keywords}");
    session.command("RCPT TO:<alice@example.org>", "503");
    session.command("STARTTLS", "503");
}

#[test]
fn plaintext_behind_starttls_is_not_run() {
    let setup = Setup::new();
    let system = System::start(&setup.options());
    // In a segment with STARTTLS (CVE-2011-0411 and its children), and in pieces of any kind.
    for injected in [
        "STARTTLS\r\nRSET\r\n",
        "STARTTLS\r\nMAIL FROM:<evil@example.net>\r\nRCPT TO:<alice@example.org>\r\nDATA\r\n",
        "STARTTLS\r\nN",
        "NOOP\r\nSTARTTLS\r\nNOOP\r\n",
    ] {
        let mut session = Session::greeted(system.smtp);
        session.send(injected.as_bytes());
        let rest = session.rest();
        assert!(rest.contains("554 5.5.0"), "{injected:?}: {rest}");
        assert!(!rest.contains("250 2.1"), "{injected:?}: {rest}");
    }
    // Sent behind the reply to STARTTLS, it is no TLS, and the connection ends.
    let mut session = Session::greeted(system.smtp);
    session.command("STARTTLS", "220");
    session.send(b"MAIL FROM:<evil@example.net>\r\n");
    let rest = session.rest();
    assert!(!rest.contains("250"), "{rest}");
}

#[test]
fn tls_that_ends_within_a_chunk_ends_the_message() {
    let setup = Setup::new();
    let system = System::start(&setup.options());
    let gateway = system.role_pids("gateway");
    // As in CVE-2026-45185: the peer closes TLS and goes on in the clear.
    for rest in [
        b"".as_slice(),
        b"NOOP\r\nRSET\r\n",
        b"BDAT 5 LAST\r\nA: b\r\n",
    ] {
        let mut session =
            Session::greeted(system.smtp).starttls(&setup.authority, "mx.example.org");
        session.command("EHLO client", "250");
        session.transaction("a@example.net", &["alice@example.org"]);
        session.send(b"BDAT 100 LAST\r\nA: b\r\n\r\nhalf\r\n");
        let mut session = session.close_tls();
        let _ = session.try_send(rest);
        let _ = session.socket().shutdown(std::net::Shutdown::Write);
        assert!(!session.rest().contains("250"));
    }
    assert_eq!(system.role_pids("gateway"), gateway);
    Session::connect(system.smtp).submit_after_ehlo("alice@example.org");
    system.wait_mail("alice", 1);
}

#[test]
fn a_handshake_that_never_ends_is_given_up() {
    let setup = Setup::new();
    let system = System::start(&setup.options());
    let mut silent = Session::greeted(system.smtp);
    silent.command("STARTTLS", "220");
    let never = Session::open(system.submissions).expect("a connection");
    // A record shorter than its announced length.
    let mut half = Session::open(system.submissions).expect("a connection");
    half.send(&[22, 3, 1, 2, 0, 1]);
    for session in [silent, never, half] {
        assert!(!session.rest().contains("220"), "closed without a greeting");
    }
}
