//! `vere dial`: everything up to the recipient, and no message.

use serde_json::Value;

use crate::harness::{
    Authority, Manners, Mx, Options, System, assert_has, output_of, quoted, vere,
};

/// Runs the command and returns exit code and JSON.
fn dial(system: &System, target: &str) -> (Option<i32>, Value) {
    let mut command = vere();
    command
        .args(["dial", target, "--json", "-c"])
        .arg(&system.config);
    let output = output_of(&mut command, "");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{errors}"));
    (output.status.code(), value)
}

#[test]
fn a_domain_is_dialled_and_no_message_sent() {
    let authority = Authority::new();
    let mx = Mx::start(Manners {
        certificate: Some(authority.sign("mx", &["mx.example.com"])),
        keywords: &["PIPELINING", "SIZE 1000"],
        replies: &[
            ("RCPT TO:<NOBODY", "550 5.1.1 no such user"),
            ("RCPT TO:<BUSY", "450 4.2.1 busy"),
        ],
        ..Manners::default()
    });
    let options = Options::default()
        .set("delivery.port", &mx.port().to_string())
        .set("delivery.ca", &quoted(&authority.ca))
        .record("example.com MX 10 mx.example.com")
        .record("mx.example.com A 127.0.0.1")
        .record("none.example MX 0 .")
        .record("dead.example MX 10 away.example")
        .record("away.example A 127.0.0.77");
    let system = System::start(&options);
    let (code, report) = dial(&system, "x@example.com");
    assert_eq!(
        (code, &report["verdict"]),
        (Some(0), &"taken".into()),
        "{report}"
    );
    let host = &report["hosts"][0];
    assert_eq!(host["host"], "mx.example.com");
    assert_eq!(host["preference"], 10);
    assert_eq!(host["policy"], "opportunistic");
    assert_eq!(host["tls"]["verified"], true, "{host}");
    assert_eq!(host["rcpt"], "250 2.0.0 ok");
    let keywords = host["keywords"].as_array().expect("keywords");
    assert!(keywords.contains(&"SIZE 1000".into()), "{host}");
    for (target, code, verdict) in [
        ("nobody@example.com", 4, "refused"),
        ("busy@example.com", 3, "deferred"),
        ("none.example", 4, "refused"),
        ("dead.example", 3, "deferred"),
    ] {
        let (found, report) = dial(&system, target);
        assert_eq!(
            (found, &report["verdict"]),
            (Some(code), &verdict.into()),
            "{report}"
        );
    }
    let text = system.command(&["dial", "example.com"]);
    assert_has(&text, &["certificate verified", "mail would be taken now"]);
    system.refused(&["dial", "a@b@c"]);
    // No host heard of a message.
    assert!(mx.messages().is_empty());
    let began = |line: &String| line.starts_with("DATA");
    assert!(!mx.seen().iter().any(|seen| seen.commands.iter().any(began)));
}

#[test]
fn own_addresses_are_answered_for_and_nobody_is_dialled() {
    let options = Options::default().record("example.org MX 10 mx.example.org");
    let system = System::start(&options);
    system.command(&[
        "alias",
        "add",
        "both@example.org",
        "alice@example.org",
        "x@example.net",
    ]);
    for (target, code, reason) in [
        (
            "alice@example.org",
            0,
            "alice@example.org is an address of this system",
        ),
        (
            "both@example.org",
            0,
            "both@example.org is an alias of this system for alice@example.org, x@example.net",
        ),
        (
            "nobody@example.org",
            4,
            "nobody@example.org is of this system: ",
        ),
    ] {
        let (found, report) = dial(&system, target);
        assert_eq!(
            (found, &report["queue"]),
            (Some(code), &"local".into()),
            "{report}"
        );
        let said = report["reason"].as_str().unwrap_or_default();
        assert!(said.starts_with(reason), "{report}");
        assert_eq!(report["hosts"], serde_json::json!([]));
    }
}

#[test]
fn an_ip_address_is_dialled_and_dnssec_is_said_of_what_was_asked_for() {
    let authority = Authority::new();
    let mx = Mx::start(Manners {
        certificate: Some(authority.sign("mx", &["mx.example.com"])),
        ..Manners::default()
    });
    let port = mx.port().to_string();
    let options = Options::default()
        .set("delivery.port", &port)
        .route("relayed.example", format!("127.0.0.1:{port}"), "")
        .record("example.com MX 10 mx.example.com")
        .record("mx.example.com A 127.0.0.1");
    let system = System::start(&options);
    for target in [
        "127.0.0.1",
        "[127.0.0.1]",
        "x@[127.0.0.1]",
        "x@relayed.example",
    ] {
        let (code, report) = dial(&system, target);
        assert_eq!(code, Some(0), "{report}");
        let host = &report["hosts"][0];
        assert_eq!(host["host"], "127.0.0.1", "{report}");
        // No record names the host, so no record is proven or unproven.
        assert!(
            report["proven"].is_null() && host["addresses_proven"].is_null(),
            "{report}"
        );
        let text = system.command(&["dial", target]);
        assert_has(&text, &["dnssec      no MX records are asked for\n"]);
    }
    let (_, report) = dial(&system, "example.com");
    assert_eq!(report["proven"], false, "{report}");
    assert_eq!(report["hosts"][0]["addresses_proven"], false, "{report}");
    let text = system.command(&["dial", "example.com"]);
    assert_has(&text, &["dnssec      MX records are not proven\n"]);
    let hint = "(UnknownIssuer); the setting delivery.ca names one that is trusted too";
    assert!(text.contains(hint), "{text}");
}
