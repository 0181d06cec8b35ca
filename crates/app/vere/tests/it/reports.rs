//! Reports to senders (DSN): atomic with the end that they report, whatever is killed; limited, signed, and about
//! addresses that stand for several.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::harness::{
    Manners, Mx, Options, Session, Sink, System, acked_under_kills, assert_has, free_address,
    is_full, quoted, unfold, wait_for, wait_until,
};
use crate::{dkim, metrics, records};

/// What stands behind `label` up to white space or a semicolon, in each text, counted.
fn ids(texts: &[String], label: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for text in texts {
        let text = unfold(text);
        let rest = text.split(label).nth(1).unwrap_or_default();
        let id = rest
            .split([' ', '\n', '\r', ';'])
            .next()
            .unwrap_or_default();
        assert!(!id.is_empty(), "{label:?} is not in\n{text}");
        *found.entry(id.to_owned()).or_default() += 1;
    }
    found
}

fn keys(map: &BTreeMap<String, usize>) -> BTreeSet<String> {
    map.keys().cloned().collect()
}

/// Settings for many clients at once, and a report for every message.
fn under_kills() -> Options {
    Options::default()
        .set("limits.connections_per_client_max", "1000")
        .set("delivery.reports_per_hour_max", "0")
        .set("log.level", "\"warn\"")
}

#[test]
fn kills_lose_no_report_and_make_no_half_fan_out() {
    let size = if is_full() { (2_000, 30) } else { (200, 8) };
    let (fine, refuses) = (Sink::start(), Sink::with_faults(&["rcpt=550 5.1.1 nobody"]));
    let options = under_kills().route("fine.test", fine.address, "");
    let system = System::start(&options.route("refuses.test", refuses.address, ""));
    let recipients = ["x@fine.test", "y@refuses.test", "alice@example.org"];
    let acked = acked_under_kills(&system, size, "bob@example.org", &recipients);
    let acked: BTreeSet<_> = acked.into_iter().collect();
    // Accepted but unacknowledged messages also went everywhere or nowhere.
    let (relayed, filed, reported) = wait_for("every message and its report", || {
        system.wait_empty();
        let relayed = ids(&fine.mail(), "with ESMTP id ");
        let filed = ids(&system.mail("alice"), "with ESMTP id ");
        let reported = ids(&system.mail("bob"), "X-Veredarius-Queue-ID: ");
        let whole = keys(&relayed) == keys(&filed) && keys(&filed) == keys(&reported);
        (whole && acked.is_subset(&keys(&filed))).then_some((relayed, filed, reported))
    });
    assert!(filed.values().all(|count| *count == 1), "{filed:?}");
    assert!(reported.values().all(|count| *count == 1), "{reported:?}");
    // At least once: what a next hop took just before a kill may come again.
    assert!(relayed.values().sum::<usize>() < 2 * relayed.len());
    for report in system.mail("bob") {
        let about = "Final-Recipient: rfc822; y@refuses.test\nAction: failed\nStatus: 5.1.1\n";
        assert!(report.contains(about), "{report}");
    }
}

/// A record whose recipients end apart: one delivered, one refused, one to be tried again.
#[test]
fn kills_neither_mix_up_nor_forget_what_recipients_of_one_record_came_to() {
    let size = if is_full() { (1_000, 20) } else { (100, 6) };
    let hop = Mx::start(Manners {
        replies: &[
            ("RCPT TO:<NO@", "550 5.1.1 nobody"),
            ("RCPT TO:<LATER@", "451 4.2.1 not now"),
        ],
        ..Manners::default()
    });
    let system = System::start(&under_kills().route("mixed.test", hop.address, ""));
    let recipients = ["yes@mixed.test", "no@mixed.test", "later@mixed.test"];
    let acked = acked_under_kills(&system, size, "bob@example.org", &recipients);
    let acked: BTreeSet<_> = acked.into_iter().collect();
    let (relayed, reported) = wait_for("the first attempt of every message", || {
        let texts: Vec<_> = hop.messages().into_iter().map(|one| one.text).collect();
        let relayed = ids(&texts, "with ESMTP id ");
        let reported = ids(&system.mail("bob"), "X-Veredarius-Queue-ID: ");
        let whole = keys(&relayed) == keys(&reported) && acked.is_subset(&keys(&relayed));
        whole.then_some((relayed, reported))
    });
    assert!(reported.values().all(|count| *count == 1), "{reported:?}");
    assert!(relayed.values().sum::<usize>() < 2 * relayed.len());
    for report in system.mail("bob") {
        let about = "Final-Recipient: rfc822; no@mixed.test\nAction: failed\nStatus: 5.1.1\n";
        assert!(report.contains(about), "{report}");
        assert_eq!(report.matches("Final-Recipient: ").count(), 1, "{report}");
    }
    // Each record keeps only the recipient to be tried again.
    let destination = format!("relay:{}", hop.address);
    let listed = system.rows(&["queue", "show", &destination]);
    let left = Value::from(vec!["later@mixed.test"]);
    assert!(!listed.is_empty() && listed.iter().all(|one| one["recipients"] == left));
    let reports = wait_for("a report of every end", || {
        // Messages under delivery at this moment are left out.
        system.command(&["queue", "bounce", &destination, "--yes"]);
        let reports = system.mail("bob");
        (reports.len() == 2 * relayed.len()).then_some(reports)
    });
    system.wait_empty();
    let later = reports
        .iter()
        .filter(|one| one.contains("rfc822; later@mixed.test\n"));
    let later: Vec<_> = later.cloned().collect();
    assert_eq!(
        keys(&ids(&later, "X-Veredarius-Queue-ID: ")),
        keys(&relayed)
    );
    assert!(
        later
            .iter()
            .all(|one| one.matches("Final-Recipient: ").count() == 1)
    );
}

#[test]
fn who_had_enough_reports_gets_no_more_and_that_is_recorded() {
    let refuses = Sink::with_faults(&["rcpt=550 5.1.1 nobody"]);
    let (folder, endpoint) = (tempfile::tempdir().expect("a folder"), free_address());
    let file = quoted(&folder.path().join("records.jsonl"));
    let options = Options::to(refuses.address)
        .set("delivery.reports_per_hour_max", "1")
        .set("metrics.listen", &format!("\"{endpoint}\""))
        .set("records.file", &file);
    let system = System::start(&options);
    let mut session = Session::greeted(system.smtp);
    let text = "Subject: a\r\n\r\nbody";
    let sent: BTreeSet<_> = (0..6)
        .map(|_| session.submit("alice@example.org", &["x@refuses.test"], text))
        .collect();
    session.submit("bob@example.org", &["x@refuses.test"], text);
    system.wait_mail("bob", 1);
    let notices = wait_for("a notice of each", || {
        let notices = records::notices(folder.path());
        (notices.len() == 7).then_some(notices)
    });
    let held = notices.iter().filter(|one| one.get("report").is_none());
    let held: BTreeSet<_> = held
        .map(|one| one["message"].as_str().expect("an id").to_owned())
        .collect();
    // The hour may end meanwhile.
    assert!((4..=5).contains(&held.len()), "{held:?}");
    assert!(held.is_subset(&sent));
    system.wait_mail("alice", 6 - held.len());
    let counted = format!("vere_delivery_notifications_limited_total {}", held.len());
    metrics::assert_lines(endpoint, &[&counted]);
    let id = held.first().expect("one");
    let trace = system.command(&["trace", id]);
    assert!(trace.contains("limited"), "{trace}");
    system.wait_log(&["report not sent", id]);
}

#[test]
fn an_address_that_stands_for_several_is_reported_once() {
    let system = System::start(&Options::default());
    system.command(&[
        "alias",
        "add",
        "both@example.org",
        "alice@example.org",
        "bob@example.org",
    ]);
    system.add_account("carol@example.org");
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<carol@example.org>", "250");
    session.command("RCPT TO:<both@example.org> NOTIFY=SUCCESS,FAILURE", "250");
    session.command("DATA", "354");
    session.command("Subject: asked\r\n\r\nsecret body\r\n.", "250");
    system.wait_mail("alice", 1);
    system.wait_mail("bob", 1);
    system.wait_empty();
    let report = &system.wait_mail("carol", 1)[0];
    let fields = "Final-Recipient: rfc822; both@example.org\nAction: expanded\nStatus: 2.1.5\n";
    assert!(report.contains(fields), "{report}");
    assert!(!report.contains("secret body"), "{report}");
}

/// The reverse path of an unknown client may be forged: an unauthenticated client gets no report of success, by which
/// third parties would receive unwanted mail.
#[test]
fn success_is_reported_to_known_clients_alone() {
    let options = Options::default().set("relay.networks", "[\"192.0.2.0/24\"]");
    let system = System::start(&options);
    system.add_account("carol@example.org");
    let ask = |session: &mut Session, subject: &str| {
        session.command("MAIL FROM:<carol@example.org>", "250");
        session.command("RCPT TO:<alice@example.org> NOTIFY=SUCCESS,FAILURE", "250");
        session.command("DATA", "354");
        session.command(
            &format!("From: carol@example.org\r\nSubject: {subject}\r\n\r\nbody\r\n."),
            "250",
        );
    };
    ask(&mut Session::greeted(system.smtp), "by a stranger");
    system.wait_mail("alice", 1);
    system.wait_empty();
    let mut session = Session::greeted(system.submission);
    session.log_in("carol@example.org");
    ask(&mut session, "by herself");
    system.wait_mail("alice", 2);
    system.wait_empty();
    let reports = system.wait_mail("carol", 1);
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(
        reports[0].contains("Action: delivered") && reports[0].contains("by herself"),
        "{reports:?}"
    );
}

/// The first line became part of our Received field.
#[test]
fn a_first_line_that_begins_with_a_blank_is_no_part_of_our_header() {
    let system = System::start(&Options::default());
    system.submit(
        "a@remote.example",
        &["alice@example.org"],
        " for eve\r\nSubject: x\r\n\r\nbody",
    );
    let mail = &system.wait_mail("alice", 1)[0];
    assert!(mail.contains("\n\n for eve\nSubject: x\n"), "{mail}");
}

#[test]
fn reports_are_signed_by_the_key_of_the_hosts_domain() {
    let (sink, refuses) = (Sink::start(), Sink::with_faults(&["rcpt=550 5.1.1 nobody"]));
    let options = Options::default()
        .route("refuses.test", refuses.address, "")
        .route("*", sink.address, "")
        .set("dkim.when_unavailable", "\"defer\"")
        .record("elsewhere.example A 127.0.0.1");
    let system = System::start(&options);
    dkim::make_keys(&system);
    // New keys take a moment.
    let signed = wait_for("a signed report", || {
        let before = sink.mail().len();
        system.submit_about("a@remote.example", &["x@refuses.test"], "a");
        wait_until("a report", || sink.mail().len() > before);
        let mut reports = sink.mail().into_iter();
        reports.find(|mail| mail.contains("DKIM-Signature:"))
    });
    let start = signed.find("DKIM-Signature:").expect("it is there");
    let mail = &signed[start..];
    assert_has(
        mail,
        &["\r\nFrom: Mail Delivery System <MAILER-DAEMON@mx.example.org>"],
    );
    dkim::check(mail, &system);
}
