//! REQUIRETLS and `TLS-Required: No` (RFC 8689), on the way in and out.

use crate::harness::{
    Authority, Manners, Mx, Options, Session, System, quoted, unfold, wait_until,
};

struct World(Authority);

impl World {
    /// A next hop at 127.0.0.1 with a certificate for `name`.
    fn hop(&self, name: &str, keywords: &'static [&'static str]) -> Mx {
        Mx::start(Manners {
            certificate: Some(self.0.sign(name, &[name])),
            keywords,
            ..Manners::default()
        })
    }

    fn options(&self) -> Options {
        let own = self.0.sign("own", &["mx.example.org"]);
        Options::default()
            .certificate(&own)
            .set("delivery.ca", &quoted(&self.0.ca))
            .record("hop.example A 127.0.0.1")
    }

    /// All mail to other domains goes to this port of hop.example.
    fn relaying_to(&self, port: u16) -> Options {
        self.options().route("*", format!("hop.example:{port}"), "")
    }

    /// A session within TLS, where the extension is offered.
    fn session(&self, system: &System) -> Session {
        let mut session = Session::greeted(system.smtp).starttls(&self.0, "mx.example.org");
        let keywords = session.command("EHLO client", "250");
        assert!(keywords.contains("REQUIRETLS"), "{keywords}");
        session
    }
}

fn submit(session: &mut Session, to: &str) {
    session.command("MAIL FROM:<alice@example.org> REQUIRETLS RET=FULL", "250");
    session.command(&format!("RCPT TO:<{to}>"), "250");
    session.command("DATA", "354");
    session.command("Subject: required\r\n\r\nsecret text\r\n.", "250");
}

#[test]
fn the_extension_is_offered_within_tls_only() {
    let world = World(Authority::new());
    let system = System::start(&world.options());
    let mut clear = Session::connect(system.smtp);
    let keywords = clear.command("EHLO client", "250");
    assert!(!keywords.contains("REQUIRETLS"), "{keywords}");
    clear.command("MAIL FROM:<alice@example.org> REQUIRETLS", "555");
    let mut session = world.session(&system);
    session.command("MAIL FROM:<alice@example.org> REQUIRETLS=yes", "501");
    // Mailboxes of the local system are the end of the path.
    submit(&mut session, "bob@example.org");
    system.wait_mail("bob", 1);
}

#[test]
fn the_demand_goes_on_to_who_keeps_it() {
    let world = World(Authority::new());
    let hop = world.hop("hop.example", &["REQUIRETLS"]);
    let options = world.relaying_to(hop.port());
    let mut system = System::start(&options);
    submit(&mut world.session(&system), "x@example.com");
    let seen = hop.wait_messages(1).remove(0);
    assert_eq!(seen.tls.as_deref(), Some("hop.example"));
    let mail = seen.commands.iter().find(|line| line.starts_with("MAIL"));
    assert!(
        mail.is_some_and(|line| line.ends_with(" REQUIRETLS")),
        "{mail:?}"
    );
    // The same over a restart: the next hop is away, comes back, and the demand is still known.
    let away = world.hop("hop.example", &["REQUIRETLS"]);
    let closed = crate::harness::free_address();
    system.reconfigure(&world.relaying_to(closed.port()));
    system.wait_log(&["configuration reloaded"]);
    submit(&mut world.session(&system), "y@example.com");
    wait_until("the message to wait", || system.queued() == 1);
    let queues = system.queues();
    let queue = queues.iter().find(|queue| queue["messages"] == 1);
    let name = queue.and_then(|queue| queue["destination"].as_str());
    let name = name.expect("the queue of the message");
    assert!(name.starts_with("requiretls:relay:hop.example"), "{name}");
    system.restart();
    assert_eq!(system.queued(), 1);
    drop(away);
}

/// RFC 8689 sections 4.2.1 and 5: the sender hears of it, the text does not go back.
#[test]
fn nothing_goes_to_who_does_not_promise_it() {
    let world = World(Authority::new());
    let plain = world.hop("hop.example", &[]);
    let options = world.relaying_to(plain.port());
    let system = System::start(&options);
    submit(&mut world.session(&system), "x@example.com");
    let report = unfold(&system.wait_mail("alice", 1)[0]);
    assert!(report.contains("Status: 5.7.30\n"), "{report}");
    assert!(!report.contains("secret text"), "{report}");
    assert!(plain.messages().is_empty());
}

#[test]
fn an_unverified_host_gets_nothing_that_needs_tls() {
    let world = World(Authority::new());
    let wrong = world.hop("other.example", &["REQUIRETLS"]);
    let options = world.relaying_to(wrong.port());
    let system = System::start(&options);
    submit(&mut world.session(&system), "x@example.com");
    system.wait_last_reply("certificate");
    // Mail without requirements goes to the host all the same.
    system.submit("alice@example.org", &["y@example.com"], "A: b\r\n\r\nc");
    wrong.wait_messages(1);
}

/// Unproven exchangers could be forged (section 4.2.1).
#[test]
fn unproven_exchangers_get_nothing_that_needs_tls() {
    let world = World(Authority::new());
    let hop = world.hop("hop.example", &["REQUIRETLS"]);
    let options = world
        .options()
        .set("delivery.port", &hop.port().to_string())
        .record("example.com MX 10 hop.example");
    let system = System::start(&options);
    submit(&mut world.session(&system), "x@example.com");
    let report = unfold(&system.wait_mail("alice", 1)[0]);
    assert!(report.contains("Status: 5.7.30\n"), "{report}");
}
