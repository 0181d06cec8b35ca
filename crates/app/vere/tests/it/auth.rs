//! Authentication: real clients, every mechanism, wrong passwords, and where it is not offered.

use std::process::Command;

use crate::harness::{
    Authority, Options, Session, System, assert_has, output_of, program, run, unfold,
};

fn with_tls(authority: &Authority) -> Options {
    let files = authority.sign("mx", &["mx.example.org", "127.0.0.1"]);
    Options::default().certificate(&files)
}

#[test]
fn swaks_authenticates_with_plain_and_login() {
    let Some(swaks) = program("swaks") else {
        return;
    };
    let system = System::start(&Options::default());
    let command = |mechanism: &str, password: &str| {
        let mut command = Command::new(&swaks);
        command
            .args(["--server", &system.submission.to_string()])
            .args(["--auth", mechanism, "--auth-user", "alice@example.org"])
            .args(["--auth-password", password])
            .args(["--from", "alice@example.org", "--to", "bob@example.org"]);
        command
    };
    for mechanism in ["PLAIN", "LOGIN"] {
        run(&mut command(mechanism, "secret"));
        let refused = output_of(&mut command(mechanism, "wrong"), "");
        let code = refused.status.code();
        assert_eq!(code, Some(28), "swaks' code for a failed authentication");
        let text = String::from_utf8_lossy(&refused.stdout);
        assert!(text.contains("535 5.7.8"), "{text}");
    }
    system.wait_mail("bob", 2);
}

/// The client's side of RFC 7677 in Python's standard library, with the check of the server's proof.
const SCRAM: &str = r#"
import base64, hashlib, hmac, os, smtplib, ssl, sys
host, port = sys.argv[1].rsplit(':', 1)
user, password, ca = sys.argv[2:5]
b64, unb64 = lambda b: base64.b64encode(b).decode(), base64.b64decode
mac = lambda key, text: hmac.new(key, text.encode(), hashlib.sha256).digest()
with smtplib.SMTP(host, int(port)) as s:
    s.starttls(context=ssl.create_default_context(cafile=ca))
    s.ehlo()
    assert 'SCRAM-SHA-256' in s.esmtp_features['auth'].split(), s.esmtp_features
    nonce = b64(os.urandom(18))
    bare = 'n=%s,r=%s' % (user, nonce)
    code, first = s.docmd('AUTH', 'SCRAM-SHA-256 ' + b64(('n,,' + bare).encode()))
    assert code == 334, (code, first)
    first = unb64(first).decode()
    fields = dict(part.split('=', 1) for part in first.split(','))
    assert fields['r'].startswith(nonce) and int(fields['i']) >= 4096, first
    salted = hashlib.pbkdf2_hmac('sha256', password.encode(), unb64(fields['s']), int(fields['i']))
    without_proof = 'c=biws,r=' + fields['r']
    text = ','.join([bare, first, without_proof])
    client_key = mac(salted, 'Client Key')
    stored = hashlib.sha256(client_key).digest()
    proof = bytes(a ^ b for a, b in zip(client_key, mac(stored, text)))
    code, final = s.docmd(b64((without_proof + ',p=' + b64(proof)).encode()))
    if code == 334:
        assert unb64(final).decode() == 'v=' + b64(mac(mac(salted, 'Server Key'), text)), final
        code, final = s.docmd('')
    print(code)
    if code == 235:
        s.sendmail('alice@example.org', ['bob@example.org'], 'Subject: by SCRAM\r\n\r\nbody\r\n')
"#;

#[test]
fn python_authenticates_with_scram_sha_256() {
    let Some(python) = program("python3") else {
        return;
    };
    let authority = Authority::new();
    let system = System::start(&with_tls(&authority));
    let scram = |user: &str, password: &str| {
        run(Command::new(&python)
            .args(["-c", SCRAM, &system.submission.to_string(), user, password])
            .arg(&authority.ca))
    };
    assert_eq!(scram("alice@example.org", "secret").trim(), "235");
    assert_eq!(scram("alice@example.org", "wrong").trim(), "535");
    // An unknown user gets salt and nonce all the same, so that no client learns which users exist.
    assert_eq!(scram("nobody@example.org", "secret").trim(), "535");
    assert!(system.wait_mail("bob", 1)[0].contains("\nSubject: by SCRAM\n"));
}

#[test]
fn gsasl_authenticates_with_every_mechanism() {
    let Some(gsasl) = program("gsasl") else {
        return;
    };
    // The client sends STARTTLS before EHLO, which is out of order, so the test runs without TLS.
    let system = System::start(&Options::default());
    let gsasl = |mechanism: &str, password: &str| {
        let mut command = Command::new(&gsasl);
        command
            .args(["--client", "--smtp", "--no-cb", "--no-starttls"])
            .args(["--mechanism", mechanism])
            .args(["--authentication-id", "alice@example.org"])
            .args(["--password", password])
            .arg(format!("--connect={}", system.submission));
        output_of(&mut command, "QUIT\r\n")
    };
    for mechanism in ["PLAIN", "LOGIN", "SCRAM-SHA-256"] {
        let accepted = gsasl(mechanism, "secret");
        let text = String::from_utf8_lossy(&accepted.stdout);
        assert!(text.contains("235 2.7.0"), "{mechanism}: {accepted:?}");
        let refused = gsasl(mechanism, "wrong");
        let text = String::from_utf8_lossy(&refused.stdout);
        assert!(text.contains("535 5.7.8"), "{mechanism}: {refused:?}");
    }
}

#[test]
fn without_tls_authentication_is_neither_offered_nor_taken() {
    let authority = Authority::new();
    let options = with_tls(&authority)
        .unset("auth.plaintext_networks")
        .unset("relay.networks");
    let system = System::start(&options);
    let mut session = Session::connect(system.submission);
    let keywords = session.command("EHLO client", "250");
    assert!(!keywords.contains("AUTH"), "{keywords}");
    // Also the password that came with the command must not lead to a login.
    let reply = session.command("AUTH PLAIN AGFsaWNlQGV4YW1wbGUub3JnAHNlY3JldA==", "5");
    assert!(
        reply.starts_with("538 5.7.11") || reply.starts_with("530 5.7.0"),
        "{reply}"
    );
    session.command("MAIL FROM:<alice@example.org>", "530 5.7.0");
    let mut session = session.starttls(&authority, "mx.example.org");
    let keywords = session.command("EHLO client", "250");
    assert_has(&keywords, &["AUTH SCRAM-SHA-256 PLAIN LOGIN"]);
    session.command("MAIL FROM:<alice@example.org>", "530 5.7.0");
    session.log_in("alice@example.org");
    session.command("MAIL FROM:<alice@example.org>", "250");
}

#[test]
fn who_is_authenticated_may_relay_under_own_addresses_only() {
    let sink = crate::harness::Sink::start();
    let options = Options::to(sink.address).unset("relay.networks");
    let system = System::start(&options);
    let mut session = Session::greeted(system.submission);
    session.command("MAIL FROM:<alice@example.org>", "530 5.7.0");
    session.log_in("alice@example.org");
    session.command("MAIL FROM:<bob@example.org>", "553 5.7.1");
    session.submit_about("alice@example.org", &["x@example.com"], "mine");
    let text = unfold(&sink.wait_mail(1)[0]);
    assert!(text.contains("with ESMTPA id "), "{text}");
    assert!(
        text.contains("\nDate: ") && text.contains("\nMessage-ID: <"),
        "a submitted message gets the fields it lacks:\n{text}"
    );
}

/// Sessions outlived the removal of their account, or the change of its password.
#[test]
fn who_logged_in_sends_until_the_account_or_its_password_changes() {
    let system = System::start(&Options::default().unset("relay.networks"));
    let log_in = |plain: &str| {
        let mut session = Session::greeted(system.submission);
        session.command(&format!("AUTH PLAIN {plain}"), "235 2.7.0");
        session
    };
    // NUL alice@example.org NUL secret, and bob.
    let alice = "AGFsaWNlQGV4YW1wbGUub3JnAHNlY3JldA==";
    let bob = "AGJvYkBleGFtcGxlLm9yZwBzZWNyZXQ=";
    let mut sessions = [log_in(alice), log_in(bob), log_in(bob)];
    system.command(&["account", "add", "carol@example.org", "--generate"]);
    for (session, from) in sessions.iter_mut().zip(["alice", "bob"]) {
        let from = format!("{from}@example.org");
        session.submit(&from, &["bob@example.org"], "Subject: a\r\n\r\nb");
    }
    system.command(&["account", "passwd", "alice@example.org", "--generate"]);
    system.command(&["account", "del", "bob@example.org"]);
    for (mut session, from) in sessions.into_iter().zip(["alice", "bob", "bob"]) {
        session.send(format!("MAIL FROM:<{from}@example.org>\r\n").as_bytes());
        assert_eq!(
            session.rest(),
            "421 4.7.0 account or password changed, log in again, closing connection\r\n"
        );
    }
}

#[test]
fn guessing_passwords_ends_the_connection() {
    let system = System::start(&Options::default());
    let mut session = Session::greeted(system.submission);
    for _ in 0..3 {
        session.command("AUTH PLAIN AGFsaWNlQGV4YW1wbGUub3JnAHdyb25n", "535 5.7.8");
    }
    // The last failure is followed by the goodbye, or the next command is.
    session.send(b"NOOP\r\n");
    let rest = session.rest();
    assert!(rest.contains("421 4.7.0"), "{rest}");
    // An empty password never passes, and the names of others are of no use.
    let mut session = Session::greeted(system.submission);
    session.command("AUTH PLAIN AGFsaWNlQGV4YW1wbGUub3JnAA==", "5");
    session.command(
        // bob@example.org NUL alice@example.org NUL secret
        "AUTH PLAIN Ym9iQGV4YW1wbGUub3JnAGFsaWNlQGV4YW1wbGUub3JnAHNlY3JldA==",
        "535 5.7.8",
    );
}
