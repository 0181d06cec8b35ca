//! Alignment and policies.

use super::*;

/// The cases of RFC 9989 section 4.4 and appendix B.1: the domain of the author, the result of SPF and its path, the domain of a valid
/// signature, and the result, by a policy with relaxed and one with strict alignment.
const ALIGNED: &str = "
example.com       pass x@example.com            -                 pass pass
example.com       pass x@child.example.com      -                 pass fail
child.example.com pass x@example.com            -                 pass fail
example.com       pass x@EXAMPLE.com            -                 pass pass
example.com       pass x@example.net            -                 fail fail
example.com       pass x@badexample.com         -                 fail fail
example.com       pass x                        -                 fail fail
example.com       fail x@example.com            -                 fail fail
example.com       temperror x@example.com       -                 temperror temperror
example.com       temperror x@child.example.com -                 temperror fail
example.com       temperror x@example.net       -                 fail fail
example.com       none x                        example.com       pass pass
example.com       none x                        child.example.com pass fail
child.example.com none x                        example.com       pass fail
child.example.com none x                        child.example.com pass pass
a.example.com     none x                        b.example.com     pass fail
example.com       none x                        sample.net        fail fail
example.com       none x                        com               fail fail
example.com       fail x@example.net            example.com       pass pass
example.net       none x                        example.net       none none
example.com       none x                        -                 fail fail";

/// Walks (RFC 9989 sections 4.10.1 and 4.10.2): records, the domain of the author, that of a valid signature, the result, the domain of the
/// record that governs and the policy. The author's domain does not exist.
const WALKS: &str = "
gov.example p=reject psd=y np=reject sp=none / a.gov.example p=quarantine > a.gov.example b.gov.example fail a.gov.example quarantine
gov.example p=reject psd=y np=reject sp=none / a.gov.example p=none sp=reject > x.a.gov.example a.gov.example pass a.gov.example reject
gov.example p=none psd=y np=reject > b.gov.example x.b.gov.example pass gov.example reject
gov.example p=reject psd=y > gov.example gov.example pass gov.example reject
gov.example p=reject psd=y > a.gov.example gov.example fail gov.example reject
a.example p=reject psd=n / example p=none > a.example b.example fail a.example reject
a.example p=reject / example p=none > a.example b.example pass a.example reject
a.example p=reject psd=n / b.a.example p=none psd=n > b.a.example a.example fail b.a.example none
a.example p=reject / a.example p=none > a.example a.example none - -
a.example x=y > a.example a.example none - -";

fn word(result: SpfResult) -> Option<SpfResult> {
    Some(result).filter(|result| *result != SpfResult::None)
}

fn spf(text: &str) -> SpfResult {
    use SpfResult::{Fail, None, Pass, TempError};
    let all = [None, Pass, Fail, TempError];
    all.into_iter()
        .find(|result| result.as_str() == text)
        .unwrap()
}

/// A message of an author, with a valid signature of a domain.
fn message(author: &str, signer: &str) -> String {
    let text = format!("From: a@{author}\r\n\r\nhi\r\n");
    match signer {
        "-" => text,
        domain => signed(&text, &TAGS.replace("example.org", domain), "from"),
    }
}

#[test]
fn domains_are_aligned_or_are_not() {
    for line in ALIGNED.lines().skip(1) {
        let words: Vec<_> = line.split_whitespace().collect();
        let [author, result, path, signer, relaxed, strict] = words[..] else {
            panic!("{line}");
        };
        for (tags, expected) in [("", relaxed), ("; adkim=s; aspf=s", strict)] {
            let zone = Zone::signing(&[&format!("sel._domainkey.{signer}")])
                .with("_dmarc.example.com", format!("v=DMARC1; p=none{tags}"));
            let mut session = session(Some((spf(result), path)));
            session.spf = word(spf(result));
            let results = zone.evaluate(message(author, signer).as_bytes(), session);
            assert_eq!(results.dmarc.result.as_str(), expected, "{line} {tags}");
        }
    }
    // The null reverse-path has the HELO name, mx.example.org.
    let zone = Zone::default().with("_dmarc.example.org", "v=DMARC1; p=none");
    let session = session(Some((SpfResult::Pass, "")));
    assert_eq!(
        zone.evaluate(TEXT.as_bytes(), session).dmarc.result,
        DmarcResult::Pass
    );
}

#[test]
fn the_dns_tells_organizations_and_policies() {
    for line in WALKS.lines().skip(1) {
        let (records, case) = line.split_once(" > ").unwrap();
        let words: Vec<_> = case.split(' ').collect();
        let [author, signer, result, record, policy] = words[..] else {
            panic!("{line}");
        };
        let mut zone = Zone::signing(&[&format!("sel._domainkey.{signer}")]);
        for text in records.split(" / ") {
            let (name, tags) = text.split_once(' ').unwrap();
            let tags = tags.replace(' ', "; ");
            zone = zone.with(&format!("_dmarc.{name}"), format!("v=DMARC1; {tags}"));
        }
        let dmarc = zone
            .evaluate(message(author, signer).as_bytes(), session(None))
            .dmarc;
        let found = (
            dmarc.result.as_str(),
            dmarc.record.as_deref(),
            dmarc.policy.map(Policy::as_str),
        );
        let some = |word| Some(word).filter(|word| *word != "-");
        assert_eq!(found, (result, some(record), some(policy)), "{line}");
    }
}

#[test]
fn domains_that_do_not_exist_have_a_policy_of_their_own() {
    let policy = |zone: Zone| {
        let zone = zone.with(
            "_dmarc.example.org",
            "v=DMARC1; p=none; sp=quarantine; np=reject; t=y",
        );
        let dmarc = zone
            .evaluate(b"From: a@b.example.org\r\n\r\n", session(None))
            .dmarc;
        (dmarc.result, dmarc.policy, dmarc.applied)
    };
    let absent = policy(Zone::default());
    assert_eq!(
        absent,
        (
            DmarcResult::Fail,
            Some(Policy::Reject),
            Some(Policy::Quarantine)
        )
    );
    let mut zone = Zone::default();
    zone.others.insert("b.example.org".to_owned());
    assert_eq!(
        policy(zone),
        (
            DmarcResult::Fail,
            Some(Policy::Quarantine),
            Some(Policy::None)
        )
    );
    let unknown = policy(Zone::default().without_answer("b.example.org"));
    assert_eq!(unknown.0, DmarcResult::TempError);
    let unknown = policy(Zone::default().without_answer("_dmarc.b.example.org"));
    assert_eq!(unknown.0, DmarcResult::TempError);
}

/// A domain without an answer is no domain that fails.
#[test]
fn a_key_without_an_answer_is_no_failure_of_the_author() {
    let message = signed(TEXT, TAGS, "from");
    let zone = Zone::default()
        .without_answer(KEY)
        .with("_dmarc.example.org", "v=DMARC1; p=reject");
    let authentication = zone.evaluate(message.as_bytes(), session(None));
    assert_eq!(authentication.dkim[0].result(), DkimResult::TempError);
    assert_eq!(authentication.dmarc.result, DmarcResult::TempError);
    let passing = session(Some((SpfResult::Pass, "a@example.org")));
    assert_eq!(
        zone.evaluate(message.as_bytes(), passing).dmarc.result,
        DmarcResult::Pass
    );
}
