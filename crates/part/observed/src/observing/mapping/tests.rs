use vere_judge::{Dmarc, DmarcPolicy, Hit, Signature};
use vere_smtp::address::DomainOrLiteral;
use vere_smtp::server::Protocol;
use vere_units::Score;

use super::*;

const RESULTS: &[u8] = b"Authentication-Results: mx.example.org;\r\n\tdkim=fail (a; b) header.d=x.test header.s=lost;\r\n\
    \tdkim=pass header.d=x.test header.s=one;\r\n\tdkim=fail header.d=X.test\r\n\theader.s=two;\r\n\tdmarc=pass\r\n";

fn session() -> SessionInfo {
    let address = "[::ffff:192.0.2.1]:25".parse().unwrap();
    SessionInfo {
        helo: Some(DomainOrLiteral::parse("Client.test").unwrap()),
        address,
        local: address,
        name: None,
        tls: None,
        account: None,
        protocol: Protocol::default(),
        priority: None,
    }
}

fn facts(result: AuthResult) -> Facts {
    Facts {
        reverse_path: Some("ann@Sub.x.test".to_owned()),
        spf: Some(AuthResult::SoftFail),
        dmarc: Some(Dmarc {
            domain: "x.test".to_owned(),
            result,
            policy: DmarcPolicy::Reject,
            spf_aligned: false,
            dkim_aligned: result == AuthResult::Pass,
        }),
        ..Facts::default()
    }
}

fn judgement(verdict: Verdict, is_vouched: bool) -> Judgement {
    let hit = Hit {
        name: HitName::Rule(Rule::DmarcArc),
        weight: Score::from_points(0),
        fact: String::new(),
    };
    Judgement {
        score: Score::from_points(0),
        hits: is_vouched.then_some(hit).into_iter().collect(),
        rulings: Vec::new(),
        recipients: Vec::new(),
        verdict,
    }
}

fn published(wanted: Wish, is_testing: bool) -> Published {
    let applied = match (is_testing, wanted) {
        (true, Wish::Reject) => Wish::Quarantine,
        (true, _) => Wish::None,
        (false, wanted) => wanted,
    };
    Published {
        domain: "x.test".to_owned(),
        policy: wanted,
        subdomains: Some(Wish::None),
        absent: None,
        is_dkim_strict: true,
        is_spf_strict: false,
        is_testing,
        wanted,
        applied,
    }
}

/// The disposition of a failed message in a report, and the reason.
fn failed(
    verdict: Verdict,
    is_vouched: bool,
    published: &Published,
) -> Option<(Disposition, Option<Override>)> {
    let judgement = judgement(verdict, is_vouched);
    let checked = Checked::of(&facts(AuthResult::Fail), &judgement, &session(), b"")?;
    let record = checked.seen(published).record;
    let reason = record.reasons.first().map(|reason| reason.kind);
    Some((record.disposition, reason))
}

#[test]
fn what_was_done_stands_beside_the_reason_for_it() {
    use Disposition as Done;
    let strict = published(Wish::Reject, false);
    let tested = published(Wish::Reject, true);
    let open = published(Wish::None, false);
    for (verdict, is_vouched, published, expected) in [
        (Verdict::Reject, false, &strict, (Done::Reject, None)),
        (
            Verdict::Tag,
            false,
            &strict,
            (Done::None, Some(Override::LocalPolicy)),
        ),
        (
            Verdict::Quarantine,
            false,
            &strict,
            (Done::Quarantine, Some(Override::LocalPolicy)),
        ),
        (
            Verdict::Accept,
            true,
            &strict,
            (Done::None, Some(Override::TrustedForwarder)),
        ),
        (
            Verdict::Quarantine,
            false,
            &tested,
            (Done::Quarantine, Some(Override::PolicyTestMode)),
        ),
        (
            Verdict::Accept,
            false,
            &tested,
            (Done::None, Some(Override::LocalPolicy)),
        ),
        (Verdict::Accept, true, &open, (Done::None, None)),
        (
            Verdict::Reject,
            true,
            &open,
            (Done::Reject, Some(Override::LocalPolicy)),
        ),
    ] {
        let found = failed(verdict, is_vouched, published);
        assert_eq!(
            found,
            Some(expected),
            "{verdict:?} {is_vouched} {published:?}"
        );
    }
    assert_eq!(
        failed(Verdict::Defer, false, &strict),
        None,
        "it comes again"
    );
}

#[test]
fn a_message_that_passes_has_no_disposition_but_pass() {
    let judgement = judgement(Verdict::Reject, false);
    let checked = Checked::of(&facts(AuthResult::Pass), &judgement, &session(), b"").unwrap();
    let seen = checked.seen(&published(Wish::Quarantine, false));
    assert_eq!(seen.record.disposition, Disposition::Pass);
    assert_eq!(seen.record.reasons, []);
    assert!(seen.record.dkim_aligned && !seen.record.spf_aligned);
    assert_eq!(seen.policy.domain_policy, Disposition::Quarantine);
    assert_eq!(seen.policy.subdomain_policy, Some(Disposition::None));
    assert_eq!(seen.policy.dkim_alignment, Some(Alignment::Strict));
    assert_eq!(seen.policy.spf_alignment, Some(Alignment::Relaxed));
    for result in [
        AuthResult::None,
        AuthResult::TempError,
        AuthResult::PermError,
    ] {
        let checked = Checked::of(&facts(result), &judgement, &session(), b"");
        assert_eq!(checked, None, "{result:?}");
    }
}

#[test]
fn a_record_has_domains_and_no_addresses_of_persons() {
    let signature = |domain: &str, result| Signature {
        domain: domain.to_owned(),
        result,
    };
    let mut facts = facts(AuthResult::Fail);
    facts.dkim = Some(vec![
        signature("x.test", AuthResult::Pass),
        signature("x.test", AuthResult::Fail),
        signature("other.test", AuthResult::PermError),
    ]);
    let judgement = judgement(Verdict::Accept, false);
    let record = |facts: &Facts| {
        let checked = Checked::of(facts, &judgement, &session(), RESULTS);
        checked.unwrap().record
    };
    let found = record(&facts);
    assert_eq!(found.source, IpAddr::from([192, 0, 2, 1]));
    assert_eq!(found.header_from, "x.test");
    assert_eq!(found.envelope_from.as_deref(), Some("sub.x.test"));
    assert_eq!(found.envelope_to, None);
    let dkim: Vec<_> = {
        let all = found.dkim.iter();
        all.map(|one| (one.selector.as_deref(), one.result))
            .collect()
    };
    let expected = [
        (Some("one"), AuthWord::Pass),
        (Some("two"), AuthWord::Fail),
        (None, AuthWord::PermError),
    ];
    assert_eq!(dkim, expected);
    let spf = |record: &Record| {
        let one = record.spf.first().unwrap();
        (one.domain.clone(), one.is_helo, one.result)
    };
    assert_eq!(
        spf(&found),
        ("sub.x.test".to_owned(), false, AuthWord::SoftFail)
    );
    facts.reverse_path = Some(String::new());
    let found = record(&facts);
    assert_eq!(found.envelope_from.as_deref(), Some(""));
    assert_eq!(
        spf(&found),
        ("client.test".to_owned(), true, AuthWord::SoftFail)
    );
}
