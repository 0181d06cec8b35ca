//! The rules of RFC 9989, section by section.

use super::*;

/// Section | records | names that exist beside them | author | reverse-path that passes SPF | domain of a valid signature | result, domain of the
/// record, policy, policy that is applied.
const RULES: &str = "
4.4     | example.com p=reject                    | - | news.example.com | -                     | foo.example.com   | pass example.com reject reject
4.4     | example.com p=reject adkim=s            | - | news.example.com | -                     | foo.example.com   | fail example.com reject reject
4.4     | example.com p=reject adkim=s            | - | news.example.com | -                     | news.example.com  | pass example.com reject reject
4.4     | example.com p=reject                    | - | news.example.com | -                     | foo.example.net   | fail example.com reject reject
4.4.1   | example.com p=none adkim=s aspf=r       | - | example.com      | x@child.example.com   | child.example.com | pass example.com none none
4.4.1   | example.com p=none adkim=r aspf=s       | - | example.com      | x@child.example.com   | child.example.com | pass example.com none none
4.4.2   | example.com p=none aspf=s               | - | example.com      | x@child.example.com   | -                 | fail example.com none none
4.4.2   | example.com p=none                      | - | example.com      | x@EXAMPLE.COM         | -                 | pass example.com none none
4.7 np  | example.com p=reject np=none            | - | no.example.com   | -                     | -                 | fail example.com none none
4.7 np  | example.com p=reject np=none            | - | example.com      | -                     | -                 | fail example.com reject reject
4.7 np  | example.com p=reject np=none     | is.example.com | is.example.com | -                | -                 | fail example.com reject reject
4.7 np  | example.com p=none sp=reject            | - | no.example.com   | -                     | -                 | fail example.com reject reject
4.7 np  | example.com p=quarantine                | - | no.example.com   | -                     | -                 | fail example.com quarantine quarantine
4.7 sp  | example.com p=reject sp=none     | is.example.com | is.example.com | -                | -                 | fail example.com none none
4.7 sp  | example.com p=reject sp=none            | - | example.com      | -                     | -                 | fail example.com reject reject
4.7 sp  | b.a.example p=none sp=reject / a.example p=quarantine | - | c.b.a.example | -          | -                 | fail a.example quarantine quarantine
4.7 sp  | b.a.example p=none sp=reject / a.example p=quarantine | - | b.a.example   | -          | -                 | fail b.a.example none none
4.7 p   | example.com sp=reject rua=mailto:a@b.example | - | x.example.com | -                   | -                 | fail example.com none none
4.7 t   | example.com p=reject t=y                | - | example.com      | -                     | -                 | fail example.com reject quarantine
4.7 t   | example.com p=quarantine t=y            | - | example.com      | -                     | -                 | fail example.com quarantine none
4.7 t   | example.com p=none t=y                  | - | example.com      | -                     | -                 | fail example.com none none
4.7 t   | example.com p=none sp=reject t=y | is.example.com | is.example.com | -                | -                 | fail example.com reject quarantine
4.7 t   | example.com p=none np=quarantine t=y    | - | no.example.com   | -                     | -                 | fail example.com quarantine none
4.7 t   | example.com p=reject t=n                | - | example.com      | -                     | -                 | fail example.com reject reject
4.7 psd | example.com p=reject psd=u / com p=none | - | example.com      | -                     | other.com         | pass example.com reject reject
4.7     | example.com p=reject pct=0 ri=1 foo=bar | - | example.com      | -                     | -                 | fail example.com reject reject
4.7     | example.com p=reject adkim=x psd=q t=q  | - | example.com      | -                     | a.example.com     | pass example.com reject reject
4.10    | example.com p=none / example.com p=reject / com p=quarantine | - | example.com | -     | -                 | fail com quarantine quarantine
4.10    | a.b.c.d.e.f.g.h.example p=reject        | - | a.b.c.d.e.f.g.h.example | -              | -                 | fail a.b.c.d.e.f.g.h.example reject reject
4.10    | b.c.d.e.f.g.h.example p=reject          | - | a.b.c.d.e.f.g.h.example | -              | -                 | none - - -
4.10    | c.d.e.f.g.h.example p=reject            | - | a.b.c.d.e.f.g.h.example | -              | -                 | fail c.d.e.f.g.h.example reject reject
4.10    | b.c.d.e.f.g.example p=reject            | - | a.b.c.d.e.f.g.example | -                | -                 | fail b.c.d.e.f.g.example reject reject
4.10.1  | mail.example.com p=none / example.com p=reject | - | a.mail.example.com | -            | -                 | fail example.com reject reject
4.10.1  | gov.example p=none psd=y / a.gov.example p=reject | - | x.a.gov.example | -            | -                 | fail a.gov.example reject reject
4.10.1  | gov.example p=reject psd=y              | - | x.a.gov.example  | -                     | -                 | fail gov.example reject reject
4.10.1  | gov.example p=reject psd=y sp=quarantine | - | gov.example     | -                     | -                 | fail gov.example reject reject
4.10.1  | example.com adkim=r                     | - | example.com      | -                     | example.com       | none - - -
4.10.1  | example.com p=reject np=x               | - | example.com      | -                     | example.com       | none - - -
4.10.1  | example.com p=reject np=x rua=mailto:a@b.example | - | example.com | -                 | example.com       | pass example.com none none
4.10.1  | example.com p=x rua=https://b.example/r | - | example.com      | -                     | -                 | fail example.com none none
4.10.1  | example.com p=x rua=b.example           | - | example.com      | -                     | -                 | none - - -
4.10.1  | other.example p=reject                  | - | example.com      | -                     | example.com       | none - - -
4.10.2  | mail.example.com p=reject psd=n / example.com p=none | - | a.mail.example.com | -      | example.com       | fail mail.example.com reject reject
4.10.2  | mail.example.com p=reject psd=n / example.com p=none | - | a.mail.example.com | -      | mail.example.com  | pass mail.example.com reject reject
4.10.2  | com p=reject psd=y                      | - | a.mail.example.com | -                   | b.example.com     | pass com reject reject
4.10.2  | com p=reject psd=y                      | - | a.mail.example.com | -                   | b.other.com       | fail com reject reject
4.10.2  | mail.example.com p=none / example.com p=reject | - | mail.example.com | x@other.example.com | -            | pass mail.example.com none none
B.1.1   | example.com p=none                      | - | example.com      | sender@example.com    | -                 | pass example.com none none
B.1.1   | example.com p=none                      | - | example.com      | sender@child.example.com | -              | pass example.com none none
B.1.1   | example.com p=none                      | - | child.example.com | sender@example.net   | -                 | fail example.com none none
B.4.1   | example.com p=none / signing.example.com p=none | - | example.com | x@example.com      | signing.example.com | pass example.com none none
B.4.1   | example.com p=none / signing.example.com p=none | - | example.com | -                  | signing.example.com | pass example.com none none
B.4.2   | example.com p=none / signing.example.com p=none | - | a.b.c.d.e.f.g.h.i.j.k.example.com | - | signing.example.com | pass example.com none none
B.4.3   | bank.example p=reject psd=y / giant.bank.example p=none | - | giant.bank.example | x@mail.giant.bank.example | mail.mega.bank.example | pass giant.bank.example none none
B.4.3   | bank.example p=reject psd=y / giant.bank.example p=none | - | giant.bank.example | -   | mail.mega.bank.example | fail giant.bank.example none none
B.4.3   | bank.example p=reject psd=y / giant.bank.example p=none | - | mail.mega.bank.example | - | mega.bank.example | pass bank.example reject reject";

fn zone(records: &str, signer: &str, exists: &str) -> Zone {
    let mut zone = Zone::signing(&[&format!("sel._domainkey.{signer}")]);
    for record in records.split(" / ") {
        let (name, tags) = record.split_once(' ').unwrap();
        let tags = tags.replace(' ', "; ");
        zone = zone.with(&format!("_dmarc.{name}"), format!("v=DMARC1; {tags}"));
    }
    zone.others.insert(exists.to_owned());
    zone
}

fn message(author: &str, signer: &str) -> String {
    let text = format!("From: a@{author}\r\n\r\nhi\r\n");
    match signer {
        "-" => text,
        domain => signed(&text, &TAGS.replace("example.org", domain), "from"),
    }
}

#[test]
fn rules_by_section() {
    for line in RULES.lines().skip(1) {
        let columns: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, records, exists, author, path, signer, expected] = columns[..] else {
            panic!("{line}");
        };
        let spf = (path != "-").then_some((SpfResult::Pass, path));
        let zone = zone(records, signer, exists);
        let results = zone.evaluate(message(author, signer).as_bytes(), session(spf));
        let dmarc = results.dmarc;
        let or_none = |policy: Option<Policy>| policy.map_or("-", Policy::as_str);
        let found = [
            dmarc.result.as_str(),
            dmarc.record.as_deref().unwrap_or("-"),
            or_none(dmarc.policy),
            or_none(dmarc.applied),
        ];
        let expected: Vec<_> = expected.split_whitespace().collect();
        assert_eq!(found[..], expected[..], "{line}");
        // Reports find the same policy without the message.
        let published = ready(Published::of(&zone, author)).unwrap();
        let published =
            published.map(|one| (Some(one.domain), Some(one.wanted), Some(one.applied)));
        let of_message = (dmarc.record, dmarc.policy, dmarc.applied);
        assert_eq!(published.unwrap_or_default(), of_message, "{line}");
    }
}

/// Section 4.4.2: the HELO name beside a reverse-path is no identifier.
#[test]
fn the_helo_name_is_not_aligned() {
    let zone = zone("example.org p=reject", "-", "-");
    let session = Session {
        spf_helo: Some(SpfResult::Pass),
        ..session(Some((SpfResult::Fail, "x@example.org")))
    };
    assert_eq!(session.helo, "mx.example.org");
    let dmarc = zone.evaluate(TEXT.as_bytes(), session).dmarc;
    assert_eq!(dmarc.result, DmarcResult::Fail);
}

/// Section 5.3.1: U-labels stand for A-labels, and only one domain is evaluated.
#[test]
fn the_author_is_one_domain() {
    let zone = zone("xn--bcher-kva.example p=reject", "-", "-")
        .with("_dmarc.b.example", "v=DMARC1; p=reject");
    for (from, expected) in [
        ("From: a@b\u{fc}cher.example", "fail"),
        ("From: a@B\u{dc}CHER.example", "fail"),
        ("From: a@b.example, c@B.example.", "fail"),
        ("From: a@b.example, c@x.example", "none"),
        ("From: a@b.example\r\nFrom: a@b.example", "permerror"),
        ("From:", "permerror"),
        ("Sender: a@b.example", "permerror"),
    ] {
        let message = format!("{from}\r\n\r\nhi\r\n");
        let dmarc = zone.evaluate(message.as_bytes(), session(None)).dmarc;
        assert_eq!(dmarc.result.as_str(), expected, "{from}");
    }
}

/// Section 5.3.6: without an answer, nothing fails; what passes without the answer passes.
#[test]
fn answers_that_are_missing() {
    let records = "example.com p=none np=reject";
    let pass = Some((SpfResult::Pass, "x@example.com"));
    let evaluate = |zone: Zone, spf| {
        let text = message("no.example.com", "-");
        let dmarc = zone.evaluate(text.as_bytes(), session(spf)).dmarc;
        (dmarc.result, dmarc.policy)
    };
    let without = |name: &str| zone(records, "-", "-").without_answer(name);
    let none = (DmarcResult::TempError, None);
    assert_eq!(evaluate(without("no.example.com"), None), none);
    assert_eq!(
        evaluate(without("no.example.com"), pass),
        (DmarcResult::Pass, Some(Policy::None))
    );
    assert_eq!(evaluate(without("_dmarc.no.example.com"), pass), none);
    assert_eq!(evaluate(without("_dmarc.example.com"), pass), none);
    // The existence of a domain is asked for where it makes a difference.
    let zone = zone("example.com p=reject np=reject", "-", "-").without_answer("no.example.com");
    assert_eq!(
        evaluate(zone, None),
        (DmarcResult::Fail, Some(Policy::Reject))
    );
}
