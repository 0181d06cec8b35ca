//! The metrics of a system after every kind of event.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::harness::{
    Authority, Options, PATIENCE, Session, Sink, System, free_address, quoted, wait_until,
};

/// The endpoint of a system.
struct Endpoint(SocketAddr);

/// The text of the endpoint at an address.
pub(crate) fn read(address: SocketAddr) -> String {
    Endpoint(address).text()
}

/// Asserts that the endpoint at an address has these lines.
#[track_caller]
pub(crate) fn assert_lines(address: SocketAddr, lines: &[&str]) {
    let text = read(address);
    for line in lines {
        assert!(
            text.lines().any(|found| found == *line),
            "no {line} in\n{text}"
        );
    }
}

/// Waits until the endpoint at an address has these lines.
pub(crate) fn wait_lines(address: SocketAddr, lines: &[&str]) {
    Endpoint(address).wait(lines);
}

impl Endpoint {
    fn text(&self) -> String {
        let mut stream = TcpStream::connect_timeout(&self.0, PATIENCE).expect("the endpoint");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        answer
    }

    /// Waits until each of the lines is present.
    fn wait(&self, lines: &[&str]) {
        let mut missing = Vec::new();
        let mut text = String::new();
        let came = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_until("the figures", || {
                text = self.text();
                let is_there = |line: &&&str| !text.lines().any(|found| found == **line);
                missing = lines.iter().filter(is_there).copied().collect();
                missing.is_empty()
            });
        }));
        assert!(came.is_ok(), "no {missing:#?} in\n{text}");
    }
}

/// A system with a certificate and an endpoint.
fn start(options: Options) -> (System, Endpoint) {
    let endpoint = free_address();
    let options = options.set("metrics.listen", &format!("\"{endpoint}\""));
    (System::start(&options), Endpoint(endpoint))
}

#[test]
fn what_clients_do_is_counted() {
    let options = Options::default().set("limits.connections_per_client_max", "2");
    let (system, endpoint) = start(options);
    // The harness has connected until the greeting.
    endpoint.wait(&["vere_smtp_connections{service=\"smtp\"} 0"]);
    let before = count_of_class(&endpoint.text(), "2");

    // Two places; a third client hears 421.
    let mut session = Session::connect(system.smtp);
    let second = Session::connect(system.smtp);
    endpoint.wait(&["vere_smtp_connections{service=\"smtp\"} 2"]);
    Session::open(system.smtp)
        .expect("a connection")
        .expect("421");
    drop(second);
    endpoint.wait(&[
        "vere_smtp_connections{service=\"smtp\"} 1",
        "vere_smtp_connections_refused_total{reason=\"client\"} 1",
        "vere_smtp_replies_total{class=\"4\"} 1",
    ]);

    // Greetings 2, EHLO, MAIL, RCPT, message: 6 replies; DATA: 1; refused: 3.
    session.command("EHLO client.example.net", "250");
    session.command("MAIL FROM:<a@example.net>", "250");
    session.command("RCPT TO:<nobody@example.org>", "550");
    session.command("RCPT TO:<alice@example.org>", "250");
    session.command("BOGUS", "500");
    session.command("DATA now", "501");
    session.command("DATA", "354");
    session.command("Subject: one\r\n\r\nbody\r\n.", "250");
    system.wait_mail("alice", 1);
    let replies = format!("vere_smtp_replies_total{{class=\"2\"}} {}", before + 6);
    endpoint.wait(&[
        &replies,
        "vere_smtp_replies_total{class=\"3\"} 1",
        "vere_smtp_replies_total{class=\"5\"} 3",
        "vere_smtp_messages_received_total{service=\"smtp\"} 1",
        "vere_smtp_recipients_received_total 1",
        "vere_spool_commits_total{result=\"acknowledged\"} 1",
        "vere_spool_acknowledge_seconds_count 1",
        "vere_delivery_recipients_total{result=\"stored\"} 1",
        "vere_delivery_transaction_seconds_count 1",
        "vere_delivery_age_seconds_count 1",
    ]);
    drop(session);
    endpoint.wait(&["vere_smtp_body_memory_bytes 0"]);
}

#[test]
fn handshakes_passwords_and_the_spool_are_counted() {
    let authority = Authority::new();
    let files = authority.sign("mx", &["mx.example.org"]);
    let options = Options::default()
        .certificate(&files)
        .unset("auth.plaintext_networks");
    let (system, endpoint) = start(options);
    // A successful handshake, a failed handshake, and passwords.
    let mut user = Session::connect_tls(system.submissions, &authority, "mx.example.org");
    user.command("EHLO client.example.net", "250");
    user.command("AUTH PLAIN AGFsaWNlQGV4YW1wbGUub3JnAHdyb25n", "535");
    user.log_in("alice@example.org");
    user.submit("alice@example.org", &["bob@example.org"], "A: b\r\n\r\n");
    drop(user);
    let mut garbage = Session::greeted(system.smtp);
    garbage.command("STARTTLS", "220");
    garbage.send(b"this is not TLS\r\n");
    garbage.rest();
    endpoint.wait(&[
        "vere_tls_handshakes_total{side=\"server\",result=\"done\"} 1",
        "vere_tls_handshakes_total{side=\"server\",result=\"failed\"} 1",
        "vere_smtp_authentications_total{result=\"accepted\"} 1",
        "vere_smtp_authentications_total{result=\"rejected\"} 1",
        "vere_smtp_messages_received_total{service=\"submissions\"} 1",
        "vere_smtp_connections_accepted_total{service=\"submissions\"} 1",
    ]);
    // 2049-01-01, as the certificate says.
    let expiry = format!(
        "vere_tls_certificate_expiry_seconds{{file=\"{}\"}} 2493072000",
        files.certificate.display()
    );
    endpoint.wait(&[&expiry, "vere_spool_connected{node=\"a\"} 1"]);
    system.kill_and_wait("spool");
    endpoint.wait(&[
        "vere_spool_disconnections_total{node=\"a\"} 1",
        "vere_spool_connected{node=\"a\"} 1",
    ]);
}

/// The count of replies of a class so far.
fn count_of_class(text: &str, class: &str) -> u64 {
    let start = format!("vere_smtp_replies_total{{class=\"{class}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.map_or(0, |count| count.parse().expect("a number"))
}

#[test]
fn what_next_hops_do_is_counted() {
    let authority = Authority::new();
    let known = authority.sign("known", &["127.0.0.1"]);
    let another = Authority::new();
    let stranger = another.sign("stranger", &["127.0.0.1"]);
    let sink = Sink::start();
    let behind = |files| System::start(&Options::to(sink.address).certificate(files));
    let (trusted, untrusted) = (behind(&known), behind(&stranger));
    let refusing = Sink::start_at(free_address(), &["ehlo=421 4.3.2 not now"]);

    let options = Options::default()
        .set("delivery.ca", &quoted(&authority.ca))
        .set("delivery.retry", "[\"1h\"]")
        .route("plain.example", sink.address, "")
        .route("trusted.example", trusted.smtp, "")
        .route("untrusted.example", untrusted.smtp, "")
        .route(
            "strict.example",
            untrusted.submission,
            "tls = \"required\"\n",
        )
        .route("refusing.example", refusing.address, "")
        .route("closed.example", free_address(), "");
    let (system, endpoint) = start(options);
    let mut session = Session::greeted(system.smtp);
    for domain in [
        "plain",
        "trusted",
        "untrusted",
        "strict",
        "refusing",
        "closed",
    ] {
        let to = format!("someone@{domain}.example");
        session.submit_about("alice@example.org", &[&to], "out");
    }
    sink.wait_mail(3);
    endpoint.wait(&[
        "vere_delivery_connections_begun_total{result=\"open\"} 3",
        "vere_delivery_connections_begun_total{result=\"tls\"} 1",
        "vere_delivery_connections_begun_total{result=\"refused\"} 1",
        "vere_delivery_connections_begun_total{result=\"unreachable\"} 1",
        "vere_tls_handshakes_total{side=\"client\",result=\"done\"} 1",
        "vere_tls_handshakes_total{side=\"client\",result=\"unverified\"} 1",
        "vere_tls_handshakes_total{side=\"client\",result=\"failed\"} 1",
        "vere_delivery_recipients_total{result=\"relayed\"} 3",
        "vere_delivery_recipients_total{result=\"deferred\"} 3",
        "vere_delivery_transaction_seconds_count 3",
        "vere_delivery_age_seconds_count 3",
        // Kept for the next message for some seconds, then closed.
        "vere_delivery_connections 0",
        "vere_queue_messages_deferred 3",
    ]);
    // A next hop that refuses the recipient permanently: the sender hears of the refusal.
    let strict = Sink::start_at(free_address(), &["rcpt=550 5.1.1 unknown"]);
    let reload = Options::default().route("gone.example", strict.address, "");
    system.reconfigure(&reload.set("metrics.listen", &format!("\"{}\"", endpoint.0)));
    system.wait_log(&["configuration reloaded"]);
    session.submit("alice@example.org", &["x@gone.example"], "A: b\r\n\r\n");
    system.wait_mail("alice", 1);
    endpoint.wait(&[
        "vere_delivery_recipients_total{result=\"bounced\"} 1",
        "vere_delivery_notifications_total{action=\"failed\"} 1",
    ]);
    drop(session);
}
