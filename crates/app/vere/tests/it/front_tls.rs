//! STARTTLS at a front: handshakes in threads, the key in the signer, plaintext to the worker by a thread or by the kernel.
//! Threads are the default; `make kernel-tls` runs these tests with a kernel that has TLS.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::front::{
    cut_everywhere, for_strangers, killed_under_load, many_workers, saved_from_a_dead_worker,
    say_in_two, try_say, try_send, try_send_over, without_rates,
};
use crate::harness::{
    Authority, Files, Options, PATIENCE, Session, System, assert_has, free_address, program, run,
    unfold, wait_for, wait_until,
};
use crate::metrics::wait_lines;
use crate::peers::Postfix;

const NAME: &str = "mx.example.org";

struct Setup {
    authority: Authority,
    files: Files,
}

impl Setup {
    fn new() -> Self {
        let authority = Authority::new();
        let files = authority.sign("mx", &[NAME, "127.0.0.1"]);
        Self { authority, files }
    }

    /// Where the kernel is to have TLS, all tests are about TLS by the kernel.
    fn options(&self) -> Options {
        let options = without_rates(for_strangers()).certificate(&self.files);
        match std::env::var_os("VERE_KERNEL_TLS") {
            Some(_) => options.set("front.kernel_tls", "\"on\""),
            None => options,
        }
    }

    /// A session behind a handshake, in which nothing was said.
    fn secured(&self, system: &System) -> Session {
        Session::greeted(system.smtp).starttls(&self.authority, NAME)
    }
}

fn send(session: &mut Session, subject: &str) {
    session.submit(
        "a@example.net",
        &["alice@example.org"],
        &format!("Subject: {subject}\r\n\r\nbody"),
    );
}

#[test]
fn mail_comes_in_encrypted() {
    let setup = Setup::new();
    let system = System::start(&setup.options());
    let mut session = setup.secured(&system);
    let offers = session.command("EHLO client.example.net", "250");
    assert!(!offers.contains("STARTTLS"), "{offers}");
    session.command("STARTTLS", "503");
    send(&mut session, "first");
    // The worker has the session, and there is no TLS within TLS.
    session.command("STARTTLS", "503");
    send(&mut session, "second");
    session.command("QUIT", "221");
    assert_eq!(session.rest_within_tls(), "");
    let mail = system.wait_mail("alice", 2);
    for text in mail {
        assert_has(&unfold(&text), &[" with ESMTPS (TLSv1.3 "]);
    }
    // Whoever says STARTTLS before the recipient is accepted gets it; a worker has no handshakes.
    let mut late = Session::greeted(system.smtp);
    late.command("EHLO client.example.net", "250");
    send(&mut late, "clear");
    late.command("STARTTLS", "502");
    let offers = late.command("EHLO client.example.net", "250");
    assert!(!offers.contains("STARTTLS"), "{offers}");
}

/// Whether this kernel has TLS.
fn has_kernel_tls() -> bool {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_ulp");
    let has = known.is_ok_and(|known| known.split_whitespace().any(|name| name == "tls"));
    assert!(
        has || std::env::var_os("VERE_KERNEL_TLS").is_none(),
        "expected a kernel with TLS"
    );
    has
}

/// The carrier of TLS 1.3 that `vere_front_tls_connections_total` names, unless the settings say otherwise.
fn carrier_by_default() -> &'static str {
    match has_kernel_tls() {
        true => "kernel",
        false => "thread",
    }
}

#[test]
fn the_kernel_encrypts_where_it_can_if_it_is_told_to() {
    let setup = Setup::new();
    let by_kernel = carrier_by_default();
    let long = "0123456789abcdef\r\n".repeat(100_000);
    for (setting, carrier) in [("on", by_kernel), ("off", "thread")] {
        let endpoint = free_address();
        let options = setup
            .options()
            .set("front.kernel_tls", &format!("\"{setting}\""))
            .set("metrics.front", &format!("\"{endpoint}\""));
        let system = System::start(&options);
        let mut session = setup.secured(&system);
        session.command("EHLO client.example.net", "250");
        send(&mut session, "short");
        session.submit(
            "a@example.net",
            &["alice@example.org"],
            &format!("Subject: long\r\n\r\n{long}"),
        );
        session.command("QUIT", "221");
        assert_eq!(session.rest_within_tls(), "");
        let mail = system.wait_mail("alice", 2);
        let has_all =
            |text: &String| text.contains(&long.replace("\r\n", "\n")) || text.contains(&long);
        assert!(mail.iter().any(has_all), "{setting}");
        let line = format!("vere_front_tls_connections_total{{carrier=\"{carrier}\"}} 1");
        wait_lines(endpoint, &[&line, "vere_front_connections 0"]);
    }
}

/// As in the clear, every octet is said once and answered once.
#[test]
fn an_encrypted_session_cut_at_any_octet_says_the_same() {
    let setup = Setup::new();
    let plain = Options::default().set("relay.networks", "[]");
    let plain = System::start(&plain.certificate(&setup.files));
    let expected = say_in_two(setup.secured(&plain), 0);
    assert_has(&expected, &["550 5.1.1", "550 5.7.1", "queued", "221"]);
    drop(plain);
    let system = System::start(&setup.options());
    cut_everywhere(&expected, |split| say_in_two(setup.secured(&system), split));
}

#[test]
fn clients_of_others_are_served_and_come_back() {
    let (Some(swaks), Some(openssl)) = (program("swaks"), program("openssl")) else {
        return;
    };
    let setup = Setup::new();
    let system = System::start(&setup.options());
    let ca = setup.authority.ca.display().to_string();
    let server = system.smtp.to_string();
    run(Command::new(swaks)
        .args([
            "--server",
            &server,
            "--tls",
            "--tls-verify",
            "--tls-ca-path",
            &ca,
        ])
        .args(["--from", "a@example.net", "--to", "alice@example.org"]));
    system.wait_mail("alice", 1);
    let kept = setup.authority.folder().join("session.pem");
    let kept = kept.display().to_string();
    for (version, option, expected) in [
        ("-tls1_2", "-sess_out", "New, TLSv1.2"),
        ("-tls1_2", "-sess_in", "Reused, TLSv1.2"),
        ("-tls1_3", "-sess_out", "New, TLSv1.3"),
        ("-tls1_3", "-sess_in", "Reused, TLSv1.3"),
    ] {
        let mut client = Command::new(&openssl)
            .args([
                "s_client",
                "-starttls",
                "smtp",
                "-crlf",
                "-connect",
                &server,
            ])
            .args([
                "-CAfile",
                &ca,
                "-verify_return_error",
                version,
                option,
                &kept,
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl starts");
        // The ticket of TLS 1.3 comes behind the handshake.
        std::thread::sleep(Duration::from_millis(300));
        let mut input = client.stdin.take().expect("its input");
        input.write_all(b"QUIT\n").expect("said");
        let output = client.wait_with_output().expect("its end");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_has(&said, &[expected, "Verify return code: 0"]);
    }
}

#[test]
fn postfix_sends_encrypted() {
    let setup = Setup::new();
    let carrier = carrier_by_default();
    let endpoint = free_address();
    let options = setup
        .options()
        .set("metrics.front", &format!("\"{endpoint}\""));
    let system = System::start(&options);
    let lines = format!(
        "relayhost = [127.0.0.1]:{}\nsmtp_tls_security_level = secure\n\
         smtp_tls_secure_cert_match = {NAME}\nsmtp_tls_CAfile = {}\nsmtp_tls_loglevel = 1",
        system.smtp.port(),
        setup.authority.ca.display()
    );
    let Some(postfix) = Postfix::start(&lines) else {
        return;
    };
    postfix.sendmail(
        "me@example.net",
        "alice@example.org",
        "Subject: x\n\nbody\n",
    );
    let text = unfold(&system.wait_mail("alice", 1)[0]);
    assert_has(
        &text,
        &["from postfix.example.net (", "with ESMTPS (TLSv1.3 "],
    );
    wait_until("the reply in Postfix's log", || {
        postfix.log().contains("status=sent (250 2.0.0 ")
    });
    assert_has(
        &postfix.log(),
        &[
            "Verified TLS connection established to 127.0.0.1",
            "TLSv1.3",
        ],
    );
    let line = format!("vere_front_tls_connections_total{{carrier=\"{carrier}\"}} 1");
    wait_lines(endpoint, &[&line]);
}

#[test]
fn a_new_certificate_is_shown_without_a_restart() {
    let setup = Setup::new();
    let system = System::start(&setup.options());
    let mut old = setup.secured(&system);
    assert_eq!(old.certificate(), setup.files.der);
    let front = system.role_pids("front");
    let renewed = setup.authority.sign("mx", &[NAME]);
    system.reload();
    wait_until("the new certificate", || {
        setup.secured(&system).certificate() == renewed.der
    });
    old.command("EHLO client.example.net", "250");
    assert_eq!(system.role_pids("front"), front);
}

/// The front has never read the key: it starts, and shows the certificate, while no file of the key is there.
#[test]
fn only_the_signer_has_the_key() {
    let setup = Setup::new();
    let system = System::start(&setup.options());
    std::fs::remove_file(&setup.files.key).expect("the key is away");
    let kept = system.directory.path().join("data/accepted/default.pem");
    std::fs::remove_file(&kept).expect("its copy is away");
    system.kill_and_wait("front");
    let mut session = wait_for("a front", || Session::try_connect(system.smtp).ok());
    session.command("EHLO client.example.net", "250");
    let mut session = session.starttls(&setup.authority, NAME);
    session.command("EHLO client.example.net", "250");
    send(&mut session, "without a file");
    // Without the signer's answer no handshake is done, and mail in the clear goes on.
    system.signal_role("signer", Signal::SIGSTOP);
    let mut other = Session::greeted(system.smtp);
    other.command("STARTTLS", "220");
    assert!(other.try_handshake(&setup.authority, NAME).is_err());
    try_send(system.smtp, "in the clear").expect("taken");
    system.signal_role("signer", Signal::SIGCONT);
    wait_until("handshakes again", || {
        let mut session = Session::greeted(system.smtp);
        session.command("STARTTLS", "220");
        session.try_handshake(&setup.authority, NAME).is_ok()
    });
}

#[test]
fn a_worker_that_dies_says_421_within_tls() {
    let setup = Setup::new();
    let system = System::start(&setup.options());
    let mut session = setup.secured(&system);
    session.command("EHLO client.example.net", "250");
    session.transaction("a@example.net", &["alice@example.org"]);
    wait_until("a worker to kill", || {
        system.signal_role("worker", Signal::SIGKILL) > 0
    });
    session.expect("421 4.3.0");
    assert_eq!(session.rest_within_tls(), "");
}

#[test]
fn workers_that_are_killed_lose_nothing_within_tls() {
    let setup = Setup::new();
    let system = System::start(&setup.options().set("front.workers", many_workers()));
    killed_under_load(&system, |subject| {
        let mut session = Session::try_connect(system.smtp).ok()?;
        session.set_patience(PATIENCE);
        try_say(&mut session, "EHLO client.example.net", "250")?;
        try_say(&mut session, "STARTTLS", "220")?;
        let mut session = session.try_handshake(&setup.authority, NAME).ok()?;
        try_send_over(&mut session, subject)
    });
}

#[test]
fn an_encrypted_session_that_was_not_begun_goes_to_another_worker() {
    let setup = Setup::new();
    let system = System::start(&setup.options().set("front.workers", "1"));
    saved_from_a_dead_worker(&system, || {
        let mut session = setup.secured(&system);
        session.command("EHLO client.example.net", "250");
        session
    });
}

/// Clients that hold still amid the handshake hold nobody else, and are gone in the end with their descriptors.
#[test]
fn handshakes_that_stop_hold_nobody() {
    let setup = Setup::new();
    let endpoint = free_address();
    let system = System::start(
        &setup
            .options()
            .set("metrics.front", &format!("\"{endpoint}\""))
            .set("limits.connections_per_client_max", "500"),
    );
    let hello = [22, 3, 1, 2, 0, 1];
    let stopped: Vec<_> = (0..200)
        .map(|number| {
            let mut session = Session::greeted(system.smtp);
            session.command("STARTTLS", "220");
            let mut socket = session.socket();
            socket
                .write_all(&hello[..number % hello.len()])
                .expect("taken");
            session
        })
        .collect();
    let mut session = setup.secured(&system);
    session.command("EHLO client.example.net", "250");
    send(&mut session, "beside them");
    drop(session);
    let front = system.role_pids("front")[0];
    let open = || std::fs::read_dir(format!("/proc/{front}/fd")).map_or(0, Iterator::count);
    assert!(open() > 600, "{}", open());
    drop(stopped);
    wait_until("their end", || open() < 100);
    wait_lines(
        endpoint,
        &[
            "vere_front_tls_handshakes_total{result=\"done\"} 1",
            "vere_front_tls_handshakes_total{result=\"resumed\"} 0",
            "vere_front_tls_handshakes_total{result=\"failed\"} 200",
        ],
    );
}

/// Octets in the clear behind STARTTLS are not taken for encrypted ones (CVE-2011-0411).
#[test]
fn nothing_is_injected_before_the_handshake() {
    let setup = Setup::new();
    let system = System::start(&setup.options());
    let mut session = Session::greeted(system.smtp);
    session.send(b"STARTTLS\r\nRSET\r\n");
    let reply = session.reply();
    assert!(reply.starts_with("554"), "{reply}");
    assert_eq!(session.rest(), "");
    // Octets that come later are no handshake.
    let mut session = Session::greeted(system.smtp);
    session.command("STARTTLS", "220");
    let mut socket = session.socket();
    socket
        .write_all(b"MAIL FROM:<a@example.net>\r\n")
        .expect("taken");
    let mut said = Vec::new();
    let _ = socket.read_to_end(&mut said);
    // An alert at most, and no reply.
    assert!(said.len() < 16, "{said:?}");
}
