//! Thresholds of recipients, and one reply for all of them.

use super::*;

const POLICIES: &str = "tag_at = 5.0\nquarantine_at = 8.0\nreject_at = 15.0\n\
    [judging.weights]\nSPF_FAIL = 10.0\n\
    [[judging.policy]]\nrecipients = [\"Ann@example.org\"]\ntag_at = 20\nquarantine_at = \"never\"\nreject_at = \"never\"\n\
    [[judging.policy]]\nrecipients = [\"example.org\"]\nreject_at = 9\n\
    [[judging.policy]]\nrecipients = [\".example.org\", \"defer.example\"]\nquarantine_at = \"never\"\ndefer_at = 9.5\n\
    [[judging.policy]]\nrecipients = [\".b.example.org\"]\nquarantine_at = 11\n";

/// The verdicts about recipients of a message with 10.0 points, and about the message.
fn verdicts(recipients: &[&str]) -> (Vec<Verdict>, Verdict) {
    let facts = Facts {
        spf: Some(AuthResult::Fail),
        ..Facts::default()
    };
    let judgement = judge(POLICIES).judge(&facts, recipients);
    let all = judgement.recipients.iter();
    (
        all.map(|recipient| recipient.verdict).collect(),
        judgement.verdict,
    )
}

#[test]
fn the_most_specific_policy_counts() {
    for (recipient, verdict) in [
        ("ann@example.org", Verdict::Accept),
        ("ANN@Example.ORG", Verdict::Accept),
        ("bob@example.org", Verdict::Reject),
        ("bob@a.example.org", Verdict::Defer),
        ("bob@x.b.example.org", Verdict::Tag),
        ("bob@b.example.org", Verdict::Defer),
        ("bob@defer.example", Verdict::Defer),
        ("bob@xexample.org", Verdict::Quarantine),
        ("bob@example.net", Verdict::Quarantine),
        ("postmaster", Verdict::Quarantine),
    ] {
        assert_eq!(
            verdicts(&[recipient]),
            (vec![verdict], verdict),
            "{recipient}"
        );
    }
    assert_eq!(verdicts(&[]), (vec![], Verdict::Quarantine));
}

/// A reply at the end of DATA is for all recipients.
#[test]
fn a_message_is_refused_only_if_all_recipients_refuse_it() {
    use Verdict::{Accept, Defer, Quarantine, Reject};
    let (accepts, rejects, defers) = ("ann@example.org", "bob@example.org", "c@defer.example");
    let quarantines = "d@example.net";
    for (recipients, expected, verdict) in [
        (&[rejects, rejects][..], &[Reject, Reject][..], Reject),
        (&[rejects, defers], &[Defer, Defer], Defer),
        (&[defers, rejects], &[Defer, Defer], Defer),
        (&[accepts, rejects], &[Accept, Quarantine], Quarantine),
        (&[defers, accepts], &[Quarantine, Accept], Quarantine),
        (
            &[quarantines, rejects],
            &[Quarantine, Quarantine],
            Quarantine,
        ),
        (&[accepts, accepts], &[Accept, Accept], Accept),
    ] {
        let found = verdicts(recipients);
        assert_eq!(found, (expected.to_vec(), verdict), "{recipients:?}");
    }
}

#[test]
fn a_recipient_keeps_its_wish_and_its_lowest_threshold() {
    let facts = Facts {
        spf: Some(AuthResult::Fail),
        ..Facts::default()
    };
    let judgement = judge(POLICIES).judge(&facts, &["ann@example.org", "bob@example.org"]);
    let [ann, bob] = &judgement.recipients[..] else {
        panic!("{judgement:?}");
    };
    assert_eq!((ann.wish, bob.wish), (Verdict::Accept, Verdict::Reject));
    let required = |recipient: &RecipientVerdict| recipient.required.score();
    assert_eq!(required(ann), Some(score("20.0")));
    assert_eq!(required(bob), Some(score("5.0")));
    assert_eq!(judgement.reply(), None);
}

#[test]
fn thresholds_are_reached_by_their_own_score() {
    for (weight, verdict) in [
        ("4.99", Verdict::Accept),
        ("5.0", Verdict::Tag),
        ("7.99", Verdict::Tag),
        ("8.0", Verdict::Quarantine),
        ("15", Verdict::Reject),
    ] {
        let lines = POLICIES.replace("SPF_FAIL = 10.0", &format!("SPF_FAIL = {weight}"));
        let facts = Facts {
            spf: Some(AuthResult::Fail),
            ..Facts::default()
        };
        assert_eq!(
            judge(&lines).judge(&facts, &["a@example.net"]).verdict,
            verdict
        );
    }
}

#[test]
fn replies_name_the_rule_with_the_largest_weight() {
    let lines = "tag_at = 4\ndefer_at = 4\nreject_at = 7";
    let mut facts = Facts {
        helo: Some(HeloForm::Ours),
        ..Facts::default()
    };
    let reply = |facts: &Facts| judge(lines).judge(facts, &["a@b.example"]).reply();
    let deferred = reply(&facts).unwrap();
    assert_eq!(
        (deferred.code, deferred.status.to_string().as_str()),
        (450, "4.7.1")
    );
    assert_eq!(
        deferred.text,
        "message deferred, try again later (HELO_OURS)"
    );
    facts.spf = Some(AuthResult::Fail);
    let refused = reply(&facts).unwrap();
    assert_eq!(
        (refused.code, refused.status.to_string().as_str()),
        (550, "5.7.1")
    );
    assert_eq!(refused.text, "message refused (HELO_OURS)");
    facts.dmarc = Some(Dmarc {
        domain: word("example.net"),
        result: AuthResult::Fail,
        policy: DmarcPolicy::Reject,
        spf_aligned: false,
        dkim_aligned: false,
    });
    let equal = reply(&facts).unwrap();
    assert_eq!(
        equal.text, "message refused (DMARC_REJECT)",
        "the first of equal weights"
    );
    let below_zero = "tag_at = -9\nreject_at = -5";
    let judgement = judge(below_zero).judge(&Facts::default(), &[]);
    assert_eq!(judgement.reply().unwrap().text, "message refused (policy)");
}

/// Recipients with a release of the author have an own judgement; the reply is common.
#[test]
fn groups_of_recipients_have_their_own_scores_and_one_reply() {
    let lines =
        "tag_at = 5\nquarantine_at = 8\nreject_at = 15\n[judging.weights]\nHELO_OURS = 16.0";
    let others = Facts {
        helo: Some(HeloForm::Ours),
        author: Some(Author {
            fields: 1,
            total: 1,
            addresses: vec![word("news@shop.example")],
        }),
        dmarc: Some(Dmarc {
            domain: word("shop.example"),
            result: AuthResult::None,
            policy: DmarcPolicy::None,
            spf_aligned: false,
            dkim_aligned: true,
        }),
        ..Facts::default()
    };
    let knowing = Facts {
        learned: true,
        ..others.clone()
    };
    let judge = judge(lines);
    assert_eq!(judge.proven_author(&others), Some("news@shop.example"));
    let groups = [
        (knowing, vec!["ann@a.example"]),
        (others, vec!["b@b.example"]),
    ];
    let judged = judge.judge_groups(&groups);
    let [ann, bob] = &judged[..] else {
        panic!("{judged:?}");
    };
    assert_eq!((ann.score, bob.score), (score("6.0"), score("16.0")));
    assert_eq!(
        (ann.verdict, bob.verdict),
        (Verdict::Tag, Verdict::Quarantine)
    );
    assert_eq!((ann.reply(), bob.reply()), (None, None));
    assert!(ann.fields(&ann.recipients[0]).contains("ALLOWED_LEARNED"));
    assert!(!bob.summary().contains("ALLOWED_LEARNED"));
    let refused = judge.judge_groups(&groups[1..]);
    assert_eq!(refused[0].verdict, Verdict::Reject);
}
