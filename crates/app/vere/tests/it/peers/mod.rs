//! Postfix, Exim and OpenSMTPD from Debian's packages, as clients and as next hops, in the clear and with TLS;
//! but for OpenSMTPD as next hop with TLS: that of Debian 12 fails every handshake (with OpenSSL 3 the key that
//! another of its processes keeps is "missing").

mod exim;
mod keys;
mod opensmtpd;
mod postfix;

use crate::harness::{
    Options, Session, System, assert_ends, assert_has, assert_starts, unfold, wait_for, wait_until,
};

use exim::{Exim, EximOptions};
use keys::{Keys, Kind};
use opensmtpd::{OpenSmtpd, OpenSmtpdOptions};
pub(crate) use postfix::Postfix;
pub(crate) use vere_faults::dovecot::Dovecot;

const TEXT: &str = "Subject: across\n\n.a line with a dot\nand one without\n";

fn without_tls() -> EximOptions {
    EximOptions {
        main: "tls_advertise_hosts =".to_owned(),
        ..EximOptions::default()
    }
}

#[test]
fn postfix_sends_to_us() {
    let system = System::start(&Options::default());
    let lines = format!("relayhost = [127.0.0.1]:{}", system.smtp.port());
    let Some(postfix) = Postfix::start(&lines) else {
        return;
    };
    for _ in 0..5 {
        postfix.sendmail("me@example.net", "alice@example.org", TEXT);
    }
    let text = unfold(&system.wait_mail("alice", 5)[0]);
    assert_has(
        &text,
        &["\nReceived: from postfix.example.net (", "with ESMTP id "],
    );
    assert_ends(&text, "\n\n.a line with a dot\nand one without\n");
    // Mail refused by Veredarius returns to its sender, through Postfix and through Veredarius.
    postfix.sendmail("alice@example.org", "nobody@example.org", TEXT);
    let texts = system.wait_mail("alice", 6);
    let report = texts
        .iter()
        .find(|text| text.contains("Final-Recipient: rfc822; nobody@example.org"));
    assert!(report.is_some_and(|text| text.contains("550 5.1.1")));
}

#[test]
fn postfix_sends_to_us_with_tls_that_it_verifies() {
    let keys = Keys::new();
    let system = System::start(&keys.ours(Options::default()));
    let lines = format!(
        "relayhost = [127.0.0.1]:{}\nsmtp_tls_security_level = secure\n\
         smtp_tls_secure_cert_match = mx.example.org\nsmtp_tls_CAfile = {}\nsmtp_tls_loglevel = 1",
        system.smtp.port(),
        keys.0.ca.display()
    );
    let Some(postfix) = Postfix::start(&lines) else {
        return;
    };
    postfix.sendmail("me@example.net", "alice@example.org", TEXT);
    let text = unfold(&system.wait_mail("alice", 1)[0]);
    assert!(text.contains("with ESMTPS (TLSv1.3 "), "{text}");
    wait_until("a verified connection", || {
        let log = postfix.log();
        log.contains("Verified TLS connection established to 127.0.0.1")
    });
}

#[test]
fn postfix_is_our_next_hop() {
    let Some(postfix) = Postfix::start("") else {
        return;
    };
    let system = System::start(&Options::to(postfix.address));
    let text = carried(system, || postfix.mail().pop());
    assert_starts(&text, "Return-Path: <me@example.net>\n");
    assert!(text.contains("\nReceived: from mx.example.org "), "{text}");
}

#[test]
fn postfix_is_our_next_hop_with_tls_that_we_verify() {
    let keys = Keys::new();
    keys.next_hop(Kind::Good);
    let Some(postfix) = Postfix::start(&keys.postfix_server()) else {
        return;
    };
    let system = System::start(&keys.route(postfix.address.port(), "required"));
    send_to_example_com(&system);
    let text = wait_for("the message in Postfix's mailbox", || postfix.mail().pop());
    assert_has(&text, &["with ESMTPS id ", "TLSv1.3"]);
}

#[test]
fn a_next_hop_that_cannot_prove_its_name_gets_nothing_where_tls_is_required() {
    for kind in [Kind::OtherName, Kind::Expired] {
        let keys = Keys::new();
        keys.next_hop(kind);
        let Some(postfix) = Postfix::start(&keys.postfix_server()) else {
            return;
        };
        let port = postfix.address.port();
        let system = System::start(&keys.route(port, "required"));
        send_to_example_com(&system);
        assert_waits_for_tls(&system);
        assert_eq!(postfix.mail().len(), 0);
        // Where encryption is only wished for, any certificate is better than none (RFC 7435).
        system.reconfigure(&keys.route(port, "opportunistic"));
        let text = wait_for("the message in Postfix's mailbox", || postfix.mail().pop());
        assert!(text.contains("with ESMTPS id "), "{text}");
    }
}

#[test]
fn a_next_hop_without_tls_gets_nothing_where_tls_is_required() {
    let keys = Keys::new();
    let Some(exim) = Exim::start(&without_tls()) else {
        return;
    };
    let port = exim.address.port();
    let system = System::start(&keys.route(port, "required"));
    send_to_example_com(&system);
    assert_waits_for_tls(&system);
    assert_eq!(exim.mail().len(), 0);
    system.reconfigure(&keys.route(port, "opportunistic"));
    wait_for("the message in Exim's mailbox", || exim.mail().pop());
}

#[test]
fn exim_sends_to_us() {
    let system = System::start(&Options::default());
    let Some(exim) = Exim::start(&EximOptions {
        next_hop: Some(system.smtp),
        ..without_tls()
    }) else {
        return;
    };
    for _ in 0..5 {
        exim.sendmail("me@example.net", "alice@example.org", TEXT);
    }
    let text = unfold(&system.wait_mail("alice", 5)[0]);
    assert_has(
        &text,
        &["\nReceived: from exim.example.net (", "with ESMTP id "],
    );
    assert_ends(&text, "\n\n.a line with a dot\nand one without\n");
    // Over SMTP into Exim, with addresses in UTF-8 all the way.
    let mut session = Session::greeted(exim.address);
    session.command("MAIL FROM:<jörg@example.net> SMTPUTF8", "250");
    session.command("RCPT TO:<alice@example.org>", "250");
    session.command("DATA", "354");
    session.command("Subject: grüße\r\n\r\nbody\r\n.", "250");
    let texts = system.wait_mail("alice", 6);
    let text = texts.iter().find(|text| text.contains("grüße"));
    let text = unfold(text.expect("the message in UTF-8"));
    assert_starts(&text, "Return-Path: <jörg@example.net>\n");
    assert_has(&text, &["with UTF8SMTP id "]);
}

#[test]
fn exim_sends_to_us_with_tls_that_it_verifies() {
    let keys = Keys::new();
    let system = System::start(&keys.ours(Options::default()));
    let Some(exim) = Exim::start(&EximOptions {
        next_hop: Some(system.smtp),
        transport: format!(
            "  hosts_require_tls = *\n  tls_verify_certificates = {}\n  tls_verify_hosts = *\n  \
             tls_verify_cert_hostnames = *",
            keys.0.ca.display()
        ),
        ..without_tls()
    }) else {
        return;
    };
    exim.sendmail("me@example.net", "alice@example.org", TEXT);
    let text = unfold(&system.wait_mail("alice", 1)[0]);
    assert!(text.contains("with ESMTPS (TLSv1.3 "), "{text}");
    wait_until("a verified connection", || exim.log().contains("CV=yes"));
}

#[test]
fn exim_is_our_next_hop() {
    let Some(exim) = Exim::start(&without_tls()) else {
        return;
    };
    let system = System::start(&Options::to(exim.address));
    let text = carried(system, || exim.mail().pop());
    assert_starts(&text, "Return-path: <me@example.net>\n");
    assert!(text.contains("(helo=mx.example.org)"), "{text}");
}

#[test]
fn exim_is_our_next_hop_with_tls_that_we_verify() {
    let keys = Keys::new();
    keys.next_hop(Kind::Good);
    let Some(exim) = Exim::start(&keys.exim_server()) else {
        return;
    };
    let system = System::start(&keys.route(exim.address.port(), "required"));
    send_to_example_com(&system);
    let text = wait_for("the message in Exim's mailbox", || exim.mail().pop());
    assert_has(&text, &["with esmtps", "TLS1.3"]);
    // The client asks for the certificate by the checked name.
    assert!(exim.log().contains("SNI=hop.example.com"), "{}", exim.log());
}

#[test]
fn opensmtpd_sends_to_us() {
    let system = System::start(&Options::default());
    let Some(opensmtpd) = OpenSmtpd::start(&OpenSmtpdOptions {
        next_hop: Some(format!("smtp+notls://{}", system.smtp)),
        ..OpenSmtpdOptions::default()
    }) else {
        return;
    };
    let mut session = Session::greeted(opensmtpd.address);
    let text = "Subject: across\r\n\r\n..a line with a dot\r\nand one without";
    for _ in 0..5 {
        session.message("me@example.net", &["alice@example.org"], text);
    }
    let text = unfold(&system.wait_mail("alice", 5)[0]);
    assert_has(
        &text,
        &["\nReceived: from opensmtpd.example.net (", "with ESMTP id "],
    );
    assert_ends(&text, "\n\n.a line with a dot\nand one without\n");
    // Mail refused by Veredarius returns to its sender, through OpenSMTPD and through Veredarius.
    session.message(
        "alice@example.org",
        &["nobody@example.org"],
        "Subject: lost\r\n\r\nx",
    );
    let texts = system.wait_mail("alice", 6);
    let report = texts
        .iter()
        .find(|text| text.contains("Final-Recipient: rfc822; nobody@example.org"));
    assert!(
        report.is_some_and(|text| text.contains("550 5.1.1")),
        "{texts:?}"
    );
}

#[test]
fn opensmtpd_sends_to_us_with_tls_that_it_verifies() {
    let keys = Keys::new();
    let system = System::start(&keys.ours(Options::default()));
    let Some(opensmtpd) = OpenSmtpd::start(&OpenSmtpdOptions {
        next_hop: Some(format!("smtp+tls://mx.example.org:{}", system.smtp.port())),
        roots: Some(keys.0.ca.clone()),
    }) else {
        return;
    };
    let mut session = Session::greeted(opensmtpd.address);
    session.message(
        "me@example.net",
        &["alice@example.org"],
        "Subject: across\r\n\r\nbody",
    );
    let text = unfold(&system.wait_mail("alice", 1)[0]);
    assert!(text.contains("with ESMTPS (TLSv1.3 "), "{text}");
    wait_until("a verified connection", || {
        let log = opensmtpd.log();
        log.contains("server-cert-check result=\"success\"")
    });
}

#[test]
fn opensmtpd_is_our_next_hop() {
    let Some(opensmtpd) = OpenSmtpd::start(&OpenSmtpdOptions::default()) else {
        return;
    };
    let system = System::start(&Options::to(opensmtpd.address));
    let text = carried(system, || opensmtpd.mail().pop());
    assert!(
        text.starts_with("Return-Path: <me@example.net>\n")
            || text.contains("\nReturn-Path: <me@example.net>\n"),
        "{text}"
    );
    assert!(text.contains("\nReceived: from mx.example.org "), "{text}");
}

/// Sends a message through the system to a next hop, waits until the message is in the mailbox there, its text intact
/// and the queue empty, and returns the message.
fn carried(system: System, arrived: impl FnMut() -> Option<String>) -> String {
    system.submit(
        "me@example.net",
        &["x@example.com"],
        "Subject: across\r\n\r\n..a line with a dot\r\nand one without",
    );
    let text = wait_for("the message in the mailbox of the next hop", arrived);
    assert_ends(&text, "\n\n.a line with a dot\nand one without\n");
    system.wait_empty();
    text
}

fn send_to_example_com(system: &System) {
    system.submit_about("me@example.net", &["x@example.com"], "across");
}

/// Waits until an attempt failed, and for no other reason than TLS.
fn assert_waits_for_tls(system: &System) {
    let reason = system.wait_last_reply("");
    let lower = reason.to_lowercase();
    assert!(
        lower.contains("tls") || lower.contains("certificate"),
        "{reason}"
    );
    assert_eq!(system.queued(), 1);
}
