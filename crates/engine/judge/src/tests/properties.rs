//! Properties of any facts.

use vere_settings::RuleWeights;

use super::*;

const TERMS: &str = "tag_at = 2\nquarantine_at = 4\ndefer_at = 6\nreject_at = 8\ndmarc = \"follow\"\nblock_senders = [\"b.example\"]\n\
    [[judging.policy]]\nrecipients = [\"b.example\"]\nreject_at = \"never\"\n\
    [[judging.policy]]\nrecipients = [\"c.example\"]\ndefer_at = \"never\"\n\
    [[judging.attachment]]\nnames = [\"*.exe\"]\nverdict = \"quarantine\"\n";
const RECIPIENTS: [&str; 3] = ["a@a.example", "b@b.example", "c@c.example"];

/// The terms with weights of no rule below zero.
fn without_credit() -> Judge {
    let mut terms = terms(TERMS);
    let own = terms.weights.clone();
    terms.weights = RuleWeights::of(|rule| own.weight(rule).max(Score::ZERO));
    Judge::new(terms)
}

/// Adds a fact against the message.
fn worsen(facts: &mut Facts, how: usize) {
    match how {
        0 => facts.spf = facts.spf.or(Some(AuthResult::Fail)),
        1 => facts.spf_helo = Some(AuthResult::Fail),
        2 => facts.helo = facts.helo.or(Some(HeloForm::Ours)),
        3 => facts.iprev = facts.iprev.or(Some(AuthResult::None)),
        4 => facts.listings.push(Listing {
            list: word("bl"),
            weight: 2,
        }),
        5 => facts.cut = true,
        6 => facts.recipients += 60,
        7 => facts.viruses.push(Virus {
            filter: word("v"),
            name: word("v"),
        }),
        8 => facts.filters.push(Filter {
            name: word("f"),
            action: Some(Verdict::Tag),
            symbols: vec![Symbol {
                name: word("S"),
                score: score("0.5"),
            }],
        }),
        9 => facts.greylist = facts.greylist.or(Some(Greylist::New)),
        _ => {
            let signatures = facts.dkim.get_or_insert_default();
            signatures.push(Signature {
                domain: word("d"),
                result: AuthResult::Fail,
            });
        }
    }
}

proptest! {
    #[test]
    fn more_facts_against_a_message_never_help_it(mut facts in facts(), how in prop::collection::vec(0_usize..11, 1..4)) {
        // Lists in favour of the client would be set off.
        facts.listings.retain(|list| list.weight >= 0);
        let judge = without_credit();
        let mut before = judge.judge(&facts, &RECIPIENTS);
        for how in how {
            worsen(&mut facts, how);
            let after = judge.judge(&facts, &RECIPIENTS);
            prop_assert!(after.score >= before.score, "{how}: {before:?} {after:?}");
            prop_assert!(after.verdict >= before.verdict);
            for (before, after) in before.recipients.iter().zip(&after.recipients) {
                prop_assert!(after.verdict >= before.verdict);
                prop_assert!(after.wish >= before.wish);
            }
            before = after;
        }
    }

    /// The score of a message rises by a symbol, and no verdict becomes milder.
    #[test]
    fn verdicts_rise_with_the_score(mut facts in facts(), hundredths in 0_i64..2_000) {
        let judge = judge(TERMS);
        let low = judge.judge(&facts, &RECIPIENTS);
        facts.filters.push(Filter {
            name: word("f"),
            action: None,
            symbols: vec![Symbol { name: word("S"), score: Score::from_hundredths(hundredths) }],
        });
        let high = judge.judge(&facts, &RECIPIENTS);
        prop_assert_eq!(high.score, low.score + Score::from_hundredths(hundredths));
        prop_assert!(high.verdict >= low.verdict);
        for (low, high) in low.recipients.iter().zip(&high.recipients) {
            prop_assert!(high.verdict >= low.verdict);
        }
    }

    #[test]
    fn a_rule_without_weight_changes_nothing(facts in facts(), number in 0..Rule::ALL.len()) {
        let rule = Rule::ALL[number];
        let mut terms = terms("tag_at = 2\nreject_at = 8\nvirus = \"accept\"\n[judging.limits]\nverdict = \"accept\"");
        let own = terms.weights.clone();
        let full = Judge::new(terms.clone()).judge(&facts, &RECIPIENTS);
        terms.weights = RuleWeights::of(|other| if other == rule { Score::ZERO } else { own.weight(other) });
        let without = Judge::new(terms).judge(&facts, &RECIPIENTS);
        // What remains of the score without the hit is the score without the weight.
        let others = full.hits.iter().filter(|hit| hit.name != HitName::Rule(rule));
        prop_assert_eq!(others.map(|hit| hit.weight).sum::<Score>(), without.score);
        let names = |judgement: &Judgement| judgement.hits.iter().map(|hit| hit.name.clone()).collect::<Vec<_>>();
        prop_assert_eq!(names(&full), names(&without));
        let fields = without.fields(&without.recipients[0]);
        let is_named = fields.split([',', '=', ' ', '\r', '\t']).any(|test| test == rule.name());
        prop_assert!(!is_named, "{}", fields);
        if without.score == full.score {
            prop_assert_eq!(full.recipients, without.recipients);
            prop_assert_eq!(full.verdict, without.verdict);
        }
    }

    /// Replies and fields have no octet that a stranger chose freely.
    #[test]
    fn replies_and_fields_are_lines_of_ascii(facts in facts()) {
        let judgement = judge(TERMS).judge(&facts, &["a@a.example"]);
        if let Some(reply) = judgement.reply() {
            prop_assert!(reply.text.bytes().all(|octet| (b' '..=b'~').contains(&octet)));
            prop_assert_eq!(u16::from(reply.status.class), reply.code / 100);
        }
        for recipient in &judgement.recipients {
            let fields = judgement.fields(recipient);
            prop_assert!(fields.is_ascii() && fields.ends_with("\r\n"));
            for line in fields.split_terminator("\r\n") {
                prop_assert!(line.bytes().all(|octet| octet == b'\t' || (b' '..=b'~').contains(&octet)));
                prop_assert!(line.starts_with("X-Spam-") || line.starts_with('\t'), "{}", line);
            }
        }
        for hit in &judgement.hits {
            prop_assert!(!hit.fact.contains(char::is_control), "{:?}", hit.fact);
        }
    }

    /// `vere explain` shows what was decided.
    #[test]
    fn kept_facts_give_the_same_judgement(facts in facts()) {
        let judge = judge(TERMS);
        let kept = Facts::decode(&facts.encode()).expect("facts");
        prop_assert_eq!(judge.judge(&kept, &RECIPIENTS), judge.judge(&facts, &RECIPIENTS));
    }
}
