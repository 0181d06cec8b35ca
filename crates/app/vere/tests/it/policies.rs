//! Policies of encryption towards next hops that domains publish over HTTPS (MTA-STS).

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::{ServerConnection, StreamOwned};

use crate::harness::{Authority, Files, Manners, Mx, Options, Session, System, quoted, wait_until};

/// A host with an MTA-STS policy over HTTPS.
struct PolicyHost {
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl PolicyHost {
    fn start(files: &Files, policy: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let config = files.server(&[]);
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{policy}",
            policy.len()
        );
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let connection = ServerConnection::new(Arc::clone(&config)).expect("TLS");
                let mut stream = StreamOwned::new(connection, stream);
                let mut request = [0; 2048];
                if matches!(stream.read(&mut request), Ok(octets) if octets > 0) {
                    count.fetch_add(1, Ordering::SeqCst);
                    // A disconnecting client is no failure of the test.
                    let _ = stream.write_all(answer.as_bytes());
                    stream.conn.send_close_notify();
                    let _ = stream.flush();
                }
            }
        });
        Self { port, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn policy(mode: &str, mx: &str) -> String {
    format!("version: STSv1\nmode: {mode}\nmx: {mx}\nmax_age: 86400\n")
}

/// `example.com` with one exchanger `mx.example.com` and an MTA-STS record.
fn options(authority: &Authority, mx: &Mx, host: &PolicyHost) -> Options {
    Options::default()
        .set("delivery.port", &mx.port().to_string())
        .set("delivery.mta_sts_port", &host.port.to_string())
        .set("delivery.ca", &quoted(&authority.ca))
        .record("example.com MX 10 mx.example.com")
        .record("mx.example.com A 127.0.0.1")
        .record("mta-sts.example.com A 127.0.0.1")
        .record("_mta-sts.example.com TXT v=STSv1; id=1;")
}

fn submit(system: &System) {
    let text = "Subject: policy\r\n\r\nbody";
    system.submit("alice@example.org", &["x@example.com"], text);
}

fn certified(files: Files) -> Mx {
    Mx::start(Manners {
        certificate: Some(files),
        ..Manners::default()
    })
}

#[test]
fn an_enforced_policy_is_kept_by_a_good_host() {
    let authority = Authority::new();
    let mx = certified(authority.sign("mx", &["mx.example.com"]));
    let files = authority.sign("sts", &["mta-sts.example.com"]);
    let host = PolicyHost::start(&files, &policy("enforce", "*.example.com"));
    let mut system = System::start(&options(&authority, &mx, &host));
    submit(&system);
    let seen = mx.wait_messages(1).remove(0);
    assert_eq!(seen.tls.as_deref(), Some("mx.example.com"));
    let trace = system.command(&["trace", "x@example.com"]);
    assert!(trace.contains("sts_enforce"), "{trace}");
    // The policy is known after a restart, although no host answers any more.
    system.configure(
        &options(&authority, &mx, &host)
            .set("delivery.mta_sts_port", "1")
            .record("_mta-sts.example.com FAIL"),
    );
    system.restart();
    submit(&system);
    mx.wait_messages(2);
    let trace = system.command(&["trace", "x@example.com"]);
    assert_eq!(trace.matches("sts_enforce").count(), 2, "{trace}");
    assert_eq!(host.asked(), 1);
}

/// Nothing is sent, and the message waits, whatever is wrong with the host.
#[test]
fn an_enforced_policy_holds_the_mail_back() {
    let authority = Authority::new();
    let files = authority.sign("sts", &["mta-sts.example.com"]);
    let bad = [
        ("TLS", Mx::start(Manners::default()), "mx.example.com"),
        (
            "certificate",
            certified(authority.sign_expired("expired", &["mx.example.com"])),
            "mx.example.com",
        ),
        (
            "certificate",
            certified(authority.sign("other", &["other.example.com"])),
            "mx.example.com",
        ),
        (
            "does not name",
            certified(authority.sign("mx", &["mx.example.com"])),
            "mx.example.net",
        ),
    ];
    for (words, mx, pattern) in bad {
        let host = PolicyHost::start(&files, &policy("enforce", pattern));
        let system = System::start(&options(&authority, &mx, &host));
        submit(&system);
        system.wait_last_reply(words);
        assert_eq!(system.queued(), 1);
        let begun = |line: &String| line.starts_with("MAIL");
        assert!(!mx.seen().iter().any(|seen| seen.commands.iter().any(begun)));
    }
}

#[test]
fn a_policy_under_test_stops_nothing() {
    let authority = Authority::new();
    let mx = certified(authority.sign("other", &["other.example.com"]));
    let files = authority.sign("sts", &["mta-sts.example.com"]);
    let host = PolicyHost::start(&files, &policy("testing", "mx.example.com"));
    let address = crate::harness::free_address();
    let options = options(&authority, &mx, &host).set("metrics.listen", &format!("\"{address}\""));
    let system = System::start(&options);
    submit(&system);
    mx.wait_messages(1);
    wait_until("the failure in the metrics", || {
        let text = crate::metrics::read(address);
        text.contains("tls_policies_total{policy=\"sts_testing\",result=\"failed\"} 1")
    });
}

/// RFC 8461 section 5.1: a policy that was never fetched and cannot be fetched counts as absent.
#[test]
fn a_policy_that_cannot_be_had_stops_nothing() {
    let authority = Authority::new();
    let mx = Mx::start(Manners::default());
    let files = authority.sign("sts", &["www.example.com"]);
    let host = PolicyHost::start(&files, &policy("enforce", "mx.example.com"));
    let system = System::start(&options(&authority, &mx, &host));
    submit(&system);
    mx.wait_messages(1);
    system.wait_log(&["MTA-STS policy cannot be fetched", "example.com"]);
    assert_eq!(host.asked(), 0, "the handshake fails");
}

/// RFC 8689 section 4.2.2: the encryption policy of the recipient's domain does not count, the settings of the local
/// system do.
#[test]
fn a_sender_to_whom_delivery_counts_for_more_is_heard() {
    const OPTIONAL: &str = "Subject: urgent\r\nTLS-Required: No\r\n\r\nbody";
    let authority = Authority::new();
    let mx = Mx::start(Manners::default());
    let files = authority.sign("sts", &["mta-sts.example.com"]);
    let host = PolicyHost::start(&files, &policy("enforce", "mx.example.com"));
    let port = mx.port();
    let options = options(&authority, &mx, &host).route(
        "strict.example",
        format!("mx.example.com:{port}"),
        "tls = \"required\"",
    );
    let system = System::start(&options);
    submit(&system);
    system.wait_last_reply("TLS");
    let mut session = Session::greeted(system.smtp);
    session.submit("alice@example.org", &["y@example.com"], OPTIONAL);
    let seen = mx.wait_messages(1).remove(0);
    assert!(seen.tls.is_none());
    assert!(seen.text.contains("TLS-Required: No"), "{}", seen.text);
    assert!(
        seen.commands
            .iter()
            .any(|line| line == "RCPT TO:<y@example.com>")
    );
    session.submit("alice@example.org", &["z@strict.example"], OPTIONAL);
    wait_until("both others to wait", || {
        let queues = system.queues();
        let waits = |name: &str| {
            let mut queues = queues.iter();
            queues.any(|queue| {
                let same = queue["destination"]
                    .as_str()
                    .is_some_and(|found| found.starts_with(name));
                same && queue["messages"] == 1 && queue["last_reply"].is_string()
            })
        };
        waits("example.com") && waits("tlsoptional:relay:mx.example.com")
    });
    assert_eq!(mx.messages().len(), 1);
}
