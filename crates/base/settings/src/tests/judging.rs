//! The judgement of messages.

use vere_units::Score;

use super::{one_error, parse};
use crate::{QUARANTINE_KEEP, Rule, Threshold, Verdict};

fn at(text: &str) -> Threshold {
    Threshold::At(text.parse().expect(text))
}

#[test]
fn without_the_section_nothing_is_judged_and_an_empty_section_has_every_default() {
    assert_eq!(parse("").unwrap().judging, None);
    let judging = parse("[judging]\n").unwrap().judging.expect("a section");
    assert_eq!(judging.thresholds.tag, at("5.0"));
    let never = [
        judging.thresholds.quarantine,
        judging.thresholds.defer,
        judging.thresholds.reject,
    ];
    assert_eq!(never, [Threshold::Never; 3]);
    assert!(!judging.follows_dmarc);
    assert_eq!(judging.quarantine_keep, QUARANTINE_KEEP);
    assert!(!judging.has_digest);
    assert_eq!(judging.virus, Verdict::Reject);
    assert_eq!(judging.limits.verdict, Verdict::Reject);
    assert_eq!(judging.limits.header_octets_max, 256 << 10);
    let weight = |rule| judging.weights.weight(rule).to_string();
    assert_eq!(weight(Rule::SpfFail), "2.0");
    assert_eq!(weight(Rule::DkimValid), "-0.1");
    assert_eq!(weight(Rule::FactsCut), "1.0");
}

#[test]
fn policies_and_rules_have_their_terms() {
    let text = "[judging]\nquarantine_at = 8\nreject_at = 15.25\ndmarc = \"follow\"\nallow_senders = [\"bob@Example.NET\"]\n\
                [judging.weights]\nSPF_FAIL = 3.05\nDNSWL = 0\n\
                [[judging.policy]]\nrecipients = [\"Ann@example.org\", \".example.org\"]\nquarantine_at = \"never\"\ntag_at = -1.5\n\
                [[judging.attachment]]\nnames = [\"*.EXE\"]\nverdict = \"quarantine\"\n\
                [[judging.attachment]]\ntypes = [\"Application/*\"]\nverdict = \"tag\"\n\
                [[filter]]\nname = \"rspamd\"\nkind = \"rspamd\"\naddress = \"[::1]:11333\"\n\
                [[judging.filter]]\nname = \"rspamd\"\nfactor = 0.5\naction = \"follow\"\n";
    let judging = parse(text).unwrap().judging.expect("a section");
    assert_eq!(
        judging.weights.weight(Rule::SpfFail),
        Score::from_hundredths(305)
    );
    assert!(judging.weights.weight(Rule::Dnswl).is_zero());
    let [policy] = &judging.policies[..] else {
        panic!("{judging:?}");
    };
    assert_eq!(policy.recipients, ["ann@example.org", ".example.org"]);
    let thresholds = policy.thresholds;
    assert_eq!(
        (thresholds.tag, thresholds.quarantine),
        (at("-1.5"), Threshold::Never)
    );
    assert_eq!(
        (thresholds.defer, thresholds.reject),
        (Threshold::Never, at("15.25"))
    );
    assert_eq!(judging.attachments[0].names, ["*.exe"]);
    assert_eq!(judging.attachments[1].types, ["application/*"]);
    assert_eq!(judging.attachments[1].verdict, Verdict::Tag);
    assert_eq!(judging.filters[0].factor, Score::from_hundredths(50));
    assert!(judging.filters[0].follows_action && judging.follows_dmarc);
    assert_eq!(judging.allow_senders, ["bob@example.net"]);
}

#[test]
fn everything_is_applied_at_reload() {
    let changes = |old: &str, new: &str| parse(old).unwrap().changes(&parse(new).unwrap());
    let found = changes(
        "[judging]\n",
        "[judging]\ntag_at = 4\n[judging.weights]\nSPF_FAIL = 1\n",
    );
    assert_eq!(found.live, ["judging.tag_at", "judging.weights.SPF_FAIL"]);
    assert!(found.restart.is_empty());
    let filter = "[[filter]]\nname = \"a\"\nkind = \"milter\"\naddress = \"unix:/a\"\n";
    let judged = format!("{filter}[judging]\n[[judging.filter]]\nname = \"a\"\n");
    let added = changes("", &judged);
    assert!(
        added.restart.is_empty() && !added.live.is_empty(),
        "{added:?}"
    );
}

#[test]
fn long_patterns_are_refused_and_equal_thresholds_are_not() {
    let long = "x".repeat(256);
    let text =
        format!("[judging]\n[[judging.attachment]]\nverdict = \"tag\"\nnames = [\"{long}\"]\n");
    one_error(&text, 6, "judging.attachment[1].names", "1 to 255 bytes");
    let equal = "[judging]\ntag_at = 5\nquarantine_at = 5\ndefer_at = 5\nreject_at = 5\n";
    assert!(parse(equal).is_ok());
}
