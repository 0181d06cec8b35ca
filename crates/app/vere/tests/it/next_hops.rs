//! The choice of hosts, their order, the local address, and the identity.

use crate::harness::{Authority, Manners, Mx, Options, Sink, System, quoted, unfold, wait_for};

fn submit(system: &System, to: &str) {
    system.submit_about("alice@example.org", &[to], "next hop");
}

#[test]
fn a_domain_that_leads_back_here_is_returned_and_a_backup_is_passed_by() {
    let sink = Sink::start();
    let port = sink.address.port();
    let options = Options::default()
        .set("delivery.port", &port.to_string())
        // The host name of the system.
        .record("named.example MX 10 mx.example.org")
        .record("named.example MX 20 sink.example")
        .record("mx.example.org A 127.0.0.9")
        // We are the backup: only what is preferred to us may be tried.
        .record("backed.example MX 5 sink.example")
        .record("backed.example MX 10 mx.example.org")
        .record("backed.example MX 10 never.example")
        .record("sink.example A 127.0.0.1");
    let system = System::start(&options);
    submit(&system, "a@named.example");
    let report = unfold(&system.wait_mail("alice", 1)[0]);
    assert!(report.contains("Status: 5.4.6\n"), "{report}");
    submit(&system, "b@backed.example");
    sink.wait_mail(1);
}

#[test]
fn an_exchanger_with_our_address_is_us() {
    // The port of exchangers is the one where the system itself listens.
    let system = System::start(&Options::default());
    let port = system.smtp.port().to_string();
    let options = Options::default()
        .set("delivery.port", &port)
        .record("looped.example MX 10 other.example")
        .record("other.example A 127.0.0.1");
    system.configure(&options);
    let mut system = system;
    system.restart();
    submit(&system, "a@looped.example");
    let report = unfold(&system.wait_mail("alice", 1)[0]);
    assert!(report.contains("Status: 5.4.6\n"), "{report}");
}

/// The first address of a host refuses connections, the second greets with a refusal, the third takes it.
#[test]
fn every_address_of_a_host_is_tried() {
    let good = Mx::start_on("127.0.0.3:0", Manners::default());
    let port = good.port();
    let refusing = Mx::start_on(
        &format!("127.0.0.2:{port}"),
        Manners {
            greeting: Some("554 5.3.2 not here"),
            ..Manners::default()
        },
    );
    let options = Options::default()
        .set("delivery.port", &port.to_string())
        .record("example.com MX 10 mail.example.com")
        .record("mail.example.com A 127.0.0.4")
        .record("mail.example.com A 127.0.0.2")
        .record("mail.example.com A 127.0.0.3");
    let system = System::start(&options);
    submit(&system, "a@example.com");
    good.wait_messages(1);
    let refused = wait_for("the refusal", || refusing.seen().pop());
    assert_eq!(refused.text, "");
}

#[test]
fn routes_leave_from_their_sources() {
    let one = Mx::start(Manners::default());
    let other = Mx::start(Manners::default());
    let options = Options::default()
        .set("delivery.source", "\"plain\"")
        .route("bulk.example", one.address, "source = \"bulk\"")
        .route("*", other.address, "")
        .table("[[source]]\nname = \"bulk\"\nipv4 = \"127.0.0.8\"\nhostname = \"bulk.example.org\"")
        .table("[[source]]\nname = \"plain\"\nipv4 = \"127.0.0.7\"");
    let system = System::start(&options);
    submit(&system, "a@bulk.example");
    submit(&system, "a@example.com");
    for (mx, ip, name) in [
        (one, "127.0.0.8", "bulk.example.org"),
        (other, "127.0.0.7", "mx.example.org"),
    ] {
        let seen = mx.wait_messages(1).remove(0);
        assert_eq!(seen.peer.expect("a peer").ip().to_string(), ip);
        assert_eq!(seen.commands[0], format!("EHLO {name}"));
    }
}

#[test]
fn a_smarthost_gets_a_password_from_a_file_over_implicit_tls() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let authority = Authority::new();
    let password = folder.path().join("password");
    std::fs::write(&password, "s3cret\n").expect("the password");
    let hub = Mx::start(Manners {
        certificate: Some(authority.sign("hub", &["hub.example.net"])),
        implicit: true,
        keywords: &["AUTH PLAIN"],
        replies: &[("AUTH", "235 2.7.0 welcome")],
        ..Manners::default()
    });
    let route = |lines: &str| {
        let login = format!(
            "username = \"me\"\npassword_file = {}\n{lines}",
            quoted(&password)
        );
        Options::default()
            .set("delivery.ca", &quoted(&authority.ca))
            .record("hub.example.net A 127.0.0.1")
            .record("other.example.net A 127.0.0.1")
            .route("*", format!("hub.example.net:{}", hub.port()), &login)
    };
    let system = System::start(&route("tls = \"implicit\""));
    submit(&system, "a@example.com");
    let seen = hub.wait_messages(1).remove(0);
    assert_eq!(seen.tls.as_deref(), Some("hub.example.net"));
    // "\0me\0s3cret"
    let auth = seen.commands.iter().find(|line| line.starts_with("AUTH"));
    assert_eq!(
        auth.map(String::as_str),
        Some("AUTH PLAIN AG1lAHMzY3JldA==")
    );
}

#[test]
fn a_password_goes_in_the_clear_only_where_that_is_allowed() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let password = folder.path().join("password");
    std::fs::write(&password, "s3cret\n").expect("the password");
    let hub = Mx::start(Manners {
        keywords: &["AUTH PLAIN"],
        replies: &[("AUTH", "235 2.7.0 welcome")],
        ..Manners::default()
    });
    let lines = format!(
        "username = \"me\"\npassword_file = {}\npassword_in_clear = \"yes\"",
        quoted(&password)
    );
    let options = Options::default()
        .record("hub.example.net A 127.0.0.1")
        .route("*", format!("hub.example.net:{}", hub.port()), &lines);
    let system = System::start(&options);
    submit(&system, "a@example.com");
    let seen = hub.wait_messages(1).remove(0);
    assert!(seen.tls.is_none());
    assert!(
        seen.commands
            .iter()
            .any(|line| line.starts_with("AUTH PLAIN "))
    );
    // A missing file keeps the earlier settings in force.
    std::fs::remove_file(&password).expect("the file");
    system.reload();
    system.wait_log(&["reload refused", "password"]);
    submit(&system, "b@example.com");
    hub.wait_messages(2);
}
