//! Which facts make which rules match.

use super::*;

/// The names of matching rules, with weights where these are not zero.
fn hits(lines: &str, facts: &Facts) -> String {
    let judgement = judge(lines).judge(facts, &[]);
    let hits = judgement.hits.iter().map(|hit| match hit.weight.is_zero() {
        true => hit.name.as_str().to_owned(),
        false => format!("{}={}", hit.name.as_str(), hit.weight),
    });
    hits.collect::<Vec<_>>().join(" ")
}

fn change(change: impl FnOnce(&mut Facts)) -> Facts {
    let mut facts = Facts::default();
    change(&mut facts);
    facts
}

#[test]
fn no_facts_are_no_hits() {
    assert_eq!(hits("", &Facts::default()), "");
    let judgement = judge("").judge(&Facts::default(), &[]);
    assert_eq!(
        (judgement.score, judgement.verdict),
        (Score::ZERO, Verdict::Accept)
    );
}

#[test]
fn results_of_authentication() {
    for (result, spf, dmarc) in [
        (AuthResult::None, "", ""),
        (AuthResult::Neutral, "SPF_NEUTRAL", ""),
        (AuthResult::Pass, "SPF_PASS", "DMARC_PASS=-0.1"),
        (AuthResult::Fail, "SPF_FAIL=2.0", "DMARC_NONE"),
        (AuthResult::SoftFail, "SPF_SOFTFAIL=1.0", ""),
        (AuthResult::TempError, "SPF_TEMPERROR", "DMARC_TEMPERROR"),
        (
            AuthResult::PermError,
            "SPF_PERMERROR=0.5",
            "DMARC_PERMERROR",
        ),
    ] {
        assert_eq!(hits("", &change(|facts| facts.spf = Some(result))), spf);
        let found = hits("", &change(|facts| facts.spf_helo = Some(result)));
        let is_fail = result == AuthResult::Fail;
        assert_eq!(found, if is_fail { "SPF_HELO_FAIL=1.5" } else { "" });
        let facts = change(|facts| facts.dmarc = Some(failed(result, DmarcPolicy::None)));
        assert_eq!(hits("", &facts), dmarc);
        let facts = change(|facts| facts.arc = Some(sealed(result, "a.example", false)));
        let arc = match result {
            AuthResult::Pass => "ARC_VALID",
            AuthResult::Fail | AuthResult::PermError => "ARC_INVALID=0.5",
            _ => "",
        };
        assert_eq!(hits("", &facts), arc);
        let rdns = match result {
            AuthResult::None => "RDNS_NONE=1.5",
            AuthResult::Fail => "RDNS_MISMATCH=0.7",
            _ => "",
        };
        assert_eq!(hits("", &change(|facts| facts.iprev = Some(result))), rdns);
    }
    for (policy, rule) in [
        (DmarcPolicy::None, "DMARC_NONE"),
        (DmarcPolicy::Quarantine, "DMARC_QUARANTINE=5.0"),
        (DmarcPolicy::Reject, "DMARC_REJECT=5.0"),
    ] {
        let facts = change(|facts| facts.dmarc = Some(failed(AuthResult::Fail, policy)));
        assert_eq!(hits("", &facts), rule);
    }
}

fn failed(result: AuthResult, policy: DmarcPolicy) -> Dmarc {
    Dmarc {
        domain: word("example.net"),
        result,
        policy,
        spf_aligned: false,
        dkim_aligned: false,
    }
}

fn sealed(result: AuthResult, sealer: &str, dmarc_passed: bool) -> Arc {
    Arc {
        result,
        sealer: word(sealer),
        dmarc_passed,
    }
}

#[test]
fn one_valid_signature_is_enough() {
    use AuthResult::{Fail, Neutral, Pass, PermError, TempError};
    for (results, rule) in [
        (&[][..], ""),
        (&[Pass], "DKIM_VALID=-0.1"),
        (&[Fail, TempError, Pass], "DKIM_VALID=-0.1"),
        (&[Fail, TempError], "DKIM_TEMPERROR"),
        (&[PermError, Fail], "DKIM_INVALID=0.1"),
        (&[Neutral, Fail], "DKIM_INVALID=0.1"),
        (&[Neutral, TempError], "DKIM_TEMPERROR"),
        (&[Neutral, Neutral], ""),
    ] {
        let signature = |result: &AuthResult| Signature {
            domain: word("d.example"),
            result: *result,
        };
        let signatures = results.iter().map(signature).collect();
        assert_eq!(
            hits("", &change(|facts| facts.dkim = Some(signatures))),
            rule
        );
    }
}

#[test]
fn names_of_the_client_and_the_greylist() {
    for (form, rule) in [
        (HeloForm::Domain, ""),
        (HeloForm::Unqualified, "HELO_NO_DOMAIN=1.0"),
        (HeloForm::Literal, "HELO_LITERAL=0.3"),
        (HeloForm::BareAddress, "HELO_BARE_IP=2.0"),
        (HeloForm::Ours, "HELO_OURS=5.0"),
        (HeloForm::Missing, "HELO_NONE=1.0"),
    ] {
        assert_eq!(hits("", &change(|facts| facts.helo = Some(form))), rule);
    }
    for (state, rule) in [
        (Greylist::New, "GREYLISTED=0.5"),
        (Greylist::Passed, "GREYLIST_PASSED=-0.1"),
        (Greylist::Known, "GREYLIST_KNOWN=-0.2"),
        (Greylist::Exempt, ""),
    ] {
        assert_eq!(
            hits("", &change(|facts| facts.greylist = Some(state))),
            rule
        );
    }
    let facts = change(|facts| facts.login = Some(word("ann")));
    assert_eq!(hits("", &facts), "AUTHENTICATED=-1.0");
}

#[test]
fn lists_count_by_their_sum() {
    for (weights, rule) in [
        (&[][..], ""),
        (&[1, -1], ""),
        (&[1], "DNSBL=2.0"),
        (&[2, 3, -1], "DNSBL=8.0"),
        (&[10], "DNSBL=20.0"),
        (&[11], "DNSBL=20.0"),
        (&[-3], "DNSWL=-1.5"),
        (&[-1000], "DNSWL=-5.0"),
    ] {
        let listing = |weight: &i16| Listing {
            list: word("bl.example"),
            weight: *weight,
        };
        let listings = weights.iter().map(listing).collect();
        assert_eq!(hits("", &change(|facts| facts.listings = listings)), rule);
    }
}

const LISTS: &str = "allow_senders = [\"bob@example.net\", \".example.com\"]\nblock_senders = [\"bad.example\", \"<>\"]\n\
                     allow_networks = [\"192.0.2.0/24\"]\nblock_networks = [\"198.51.100.0/24\"]\n\
                     trusted_arc_sealers = [\"lists.example\"]";

#[test]
fn own_networks() {
    for (client, rule) in [
        ("192.0.2.7", "ALLOWED_NETWORK=-100.0"),
        ("::ffff:192.0.2.7", "ALLOWED_NETWORK=-100.0"),
        ("198.51.100.7", "BLOCKED_NETWORK=100.0"),
        ("203.0.113.7", ""),
    ] {
        let facts = change(|facts| facts.client = client.parse().ok());
        assert_eq!(hits(LISTS, &facts), rule, "{client}");
    }
}

#[test]
fn blocked_senders_count_wherever_they_are_named() {
    let author = |address: &str| Author {
        fields: 1,
        total: 1,
        addresses: vec![word(address)],
    };
    for (path, from, rule) in [
        (Some("x@bad.example"), "a@b.example", "BLOCKED_SENDER=100.0"),
        (Some("a@b.example"), "x@BAD.example", "BLOCKED_SENDER=100.0"),
        (Some(""), "a@b.example", "BLOCKED_SENDER=100.0"),
        (None, "a@b.example", ""),
    ] {
        let facts = change(|facts| {
            facts.reverse_path = path.map(word);
            facts.author = Some(author(from));
        });
        assert_eq!(hits(LISTS, &facts), rule, "{path:?}");
    }
}

/// Everybody can write any address: an entry for a sender without a proof would be an invitation.
/// A release has taught the author: a forged address has no gain, and no virus and no bound is outweighed.
#[test]
fn learned_senders_must_be_proven_again() {
    let mut facts = every_fact();
    assert!(hits("", &facts).contains("ALLOWED_LEARNED=-10.0"));
    assert_eq!(
        judge("").judge(&facts, &[]).verdict,
        Verdict::Reject,
        "virus"
    );
    facts.viruses.clear();
    facts.structure.as_mut().unwrap().header_octets = 1_000;
    assert_eq!(judge("").judge(&facts, &[]).verdict, Verdict::Accept);
    facts.structure.as_mut().unwrap().total = UNCOUNTED;
    assert_eq!(
        judge("").judge(&facts, &[]).verdict,
        Verdict::Reject,
        "limits"
    );
    let changes: [fn(&mut Facts); 4] = [
        |facts| facts.learned = false,
        |facts| facts.author.as_mut().unwrap().total = 2,
        |facts| facts.dmarc = None,
        |facts| facts.dmarc.as_mut().unwrap().domain = word("other.example"),
    ];
    for change in changes {
        let mut facts = every_fact();
        change(&mut facts);
        assert!(!hits("", &facts).contains("ALLOWED_LEARNED"), "{facts:?}");
    }
}

#[test]
fn allowed_senders_must_be_proven() {
    let proven = || Facts {
        author: Some(Author {
            fields: 1,
            total: 1,
            addresses: vec![word("Bob@Example.net")],
        }),
        dmarc: Some(failed(AuthResult::None, DmarcPolicy::None)),
        ..Facts::default()
    };
    type Change = fn(&mut Facts);
    let dmarc: fn(&mut Facts) -> &mut Dmarc = |facts| facts.dmarc.as_mut().expect("DMARC");
    let proofs: [Change; 4] = [
        |facts| facts.dmarc.as_mut().unwrap().result = AuthResult::Pass,
        |facts| facts.dmarc.as_mut().unwrap().spf_aligned = true,
        |facts| facts.dmarc.as_mut().unwrap().dkim_aligned = true,
        |facts| facts.arc = Some(sealed(AuthResult::Pass, "Lists.Example", true)),
    ];
    let has = |facts: &Facts, rule: &str| hits(LISTS, facts).split(' ').any(|hit| hit == rule);
    assert!(has(&proven(), "ALLOWED_SENDER_UNPROVEN"));
    let flaws: [Change; 5] = [
        |facts| facts.author.as_mut().unwrap().fields = 2,
        |facts| facts.author.as_mut().unwrap().total = 2,
        |facts| {
            facts
                .author
                .as_mut()
                .unwrap()
                .addresses
                .push(word("x@y.example"))
        },
        |facts| facts.dmarc.as_mut().unwrap().domain = word("other.example"),
        |facts| facts.dmarc = None,
    ];
    for proof in proofs {
        let mut facts = proven();
        proof(&mut facts);
        assert!(has(&facts, "ALLOWED_SENDER=-100.0"), "{facts:?}");
        for flaw in flaws {
            let mut facts = facts.clone();
            flaw(&mut facts);
            assert!(has(&facts, "ALLOWED_SENDER_UNPROVEN"), "{facts:?}");
        }
    }
    // SPF of the reverse-path alone proves nothing of the author.
    let mut facts = proven();
    facts.spf = Some(AuthResult::Pass);
    facts.reverse_path = Some(word("bob@example.net"));
    assert!(has(&facts, "ALLOWED_SENDER_UNPROVEN"));
    let mut facts = proven();
    dmarc(&mut facts).domain = word("a.example.com");
    dmarc(&mut facts).result = AuthResult::Pass;
    facts.author.as_mut().unwrap().addresses = vec![word("x@a.example.com")];
    assert!(has(&facts, "ALLOWED_SENDER=-100.0"));
}

#[test]
fn policies_of_dmarc_decide_if_the_settings_say_so() {
    let follow = format!("{LISTS}\ndmarc = \"follow\"\ntag_at = \"never\"");
    let score = format!("{LISTS}\ntag_at = \"never\"");
    let fails = |policy| change(|facts| facts.dmarc = Some(failed(AuthResult::Fail, policy)));
    let verdict = |lines: &str, facts: &Facts| judge(lines).judge(facts, &[]).verdict;
    for (policy, expected) in [
        (DmarcPolicy::None, Verdict::Accept),
        (DmarcPolicy::Quarantine, Verdict::Quarantine),
        (DmarcPolicy::Reject, Verdict::Reject),
    ] {
        assert_eq!(verdict(&follow, &fails(policy)), expected);
        assert_eq!(verdict(&score, &fails(policy)), Verdict::Accept);
    }
    let arcs = [
        (
            sealed(AuthResult::Pass, "lists.example", true),
            Verdict::Accept,
        ),
        (
            sealed(AuthResult::Pass, "lists.example", false),
            Verdict::Reject,
        ),
        (
            sealed(AuthResult::Fail, "lists.example", true),
            Verdict::Reject,
        ),
        (
            sealed(AuthResult::Pass, "other.example", true),
            Verdict::Reject,
        ),
    ];
    for (arc, expected) in arcs {
        let mut facts = fails(DmarcPolicy::Reject);
        facts.arc = Some(arc);
        assert_eq!(verdict(&follow, &facts), expected, "{facts:?}");
        let is_excused = hits(LISTS, &facts).starts_with("DMARC_ARC");
        assert_eq!(is_excused, expected == Verdict::Accept);
    }
    let mut facts = fails(DmarcPolicy::Reject);
    facts.client = "192.0.2.1".parse().ok();
    assert_eq!(
        verdict(&follow, &facts),
        Verdict::Accept,
        "an allowed network"
    );
    facts.client = "203.0.113.1".parse().ok();
    assert_eq!(verdict(&follow, &facts), Verdict::Reject);
}

#[test]
fn authors_and_recipients() {
    for (fields, total, rules) in [
        (0, 0, "FROM_NONE=1.0"),
        (1, 0, "FROM_NONE=1.0"),
        (1, 1, ""),
        (1, 2, "FROM_MULTIPLE=2.0"),
        (2, 1, "FROM_MULTIPLE=2.0"),
        (2, 0, "FROM_NONE=1.0 FROM_MULTIPLE=2.0"),
    ] {
        let author = Author {
            fields,
            total,
            addresses: Vec::new(),
        };
        assert_eq!(
            hits("", &change(|facts| facts.author = Some(author))),
            rules
        );
    }
    assert_eq!(hits("", &change(|facts| facts.recipients = 49)), "");
    let many = change(|facts| facts.recipients = 50);
    assert_eq!(hits("", &many), "RECIPIENTS_MANY=0.5");
    let cut = change(|facts| facts.cut = true);
    assert_eq!(hits("", &cut), "FACTS_CUT=1.0");
}

#[test]
fn structure_beyond_a_bound_has_its_verdict() {
    let limits = "[judging.limits]\ndepth_max = 3\nparts_max = 10\nattachments_max = 2\nheader_size_max = \"1 KiB\"\nverdict = \"quarantine\"";
    let attachment = Attachment {
        name: String::new(),
        media_type: word("a/b"),
    };
    let within = Structure {
        depth: 3,
        parts: 10,
        header_octets: 1_024,
        total: 2,
        attachments: vec![attachment; 2],
    };
    type Change = fn(&mut Structure);
    let beyond: [Change; 5] = [
        |found| found.depth = 4,
        |found| found.parts = 11,
        |found| found.header_octets = 1_025,
        |found| found.total = 3,
        // A second attachment that was not kept.
        |found| _ = found.attachments.pop(),
    ];
    let judgement = |structure: Structure| {
        let facts = change(|facts| facts.structure = Some(structure));
        judge(limits).judge(&facts, &[])
    };
    assert_eq!(judgement(within.clone()).hits, []);
    for beyond in beyond {
        let mut structure = within.clone();
        beyond(&mut structure);
        let found = judgement(structure);
        assert_eq!(found.verdict, Verdict::Quarantine, "{found:?}");
        assert_eq!(found.reason(), "STRUCTURE_LIMIT");
        assert_eq!(found.hits.len(), 1);
    }
    let accept = "[judging.limits]\ndepth_max = 1\nverdict = \"accept\"";
    let facts = change(|facts| facts.structure = Some(within));
    assert_eq!(judge(accept).judge(&facts, &[]).rulings, []);
    assert_eq!(hits(accept, &facts), "STRUCTURE_LIMIT");
}

#[test]
fn attachments_have_the_severest_verdict_of_their_rules() {
    let rules = "[[judging.attachment]]\nnames = [\"*.exe\", \"*.JS\"]\nverdict = \"reject\"\n\
                 [[judging.attachment]]\ntypes = [\"application/zip\", \"video/*\"]\nverdict = \"quarantine\"";
    let verdict = |attachments: &[(&str, &str)]| {
        let attachment = |(name, media_type): &(&str, &str)| Attachment {
            name: word(name),
            media_type: word(media_type),
        };
        let structure = Structure {
            total: u32::try_from(attachments.len()).unwrap(),
            attachments: attachments.iter().map(attachment).collect(),
            ..Structure::default()
        };
        let facts = change(|facts| facts.structure = Some(structure));
        judge(rules).judge(&facts, &[])
    };
    for (attachments, expected) in [
        (&[][..], Verdict::Accept),
        (&[("a.txt", "text/plain")], Verdict::Accept),
        (&[("A.EXE.", "text/plain")], Verdict::Reject),
        (&[("b.js", "application/zip")], Verdict::Reject),
        (&[("", "video/mp4")], Verdict::Quarantine),
        (
            &[("a.zip", "application/zip"), ("a.exe", "a/b")],
            Verdict::Reject,
        ),
        (
            &[("a.exe", "a/b"), ("a.zip", "application/zip")],
            Verdict::Reject,
        ),
    ] {
        assert_eq!(verdict(attachments).verdict, expected, "{attachments:?}");
    }
    let facts = verdict(&[("b.exe", "a/b"), ("c.exe", "a/b")]);
    assert_eq!(facts.hits[0].fact, "b.exe (a/b)", "the first of equal ones");
}

#[test]
fn filters_count_by_their_factors_and_actions() {
    let terms = "[[judging.filter]]\nname = \"rspamd\"\nfactor = 0.5\naction = \"follow\"\n\
                 [[filter]]\nname = \"rspamd\"\nkind = \"rspamd\"\naddress = \"[::1]:1\"\n";
    let filter = |name: &str| Filter {
        name: word(name),
        action: Some(Verdict::Defer),
        symbols: vec![Symbol {
            name: word("BAYES"),
            score: score("3.1"),
        }],
    };
    let with = |name: &str| change(|facts| facts.filters = vec![filter(name)]);
    assert_eq!(hits(terms, &with("rspamd")), "FILTER_ACTION BAYES=1.55");
    assert_eq!(hits(terms, &with("other")), "FILTER_ACTION BAYES=3.1");
    let verdict = |name: &str| judge(terms).judge(&with(name), &[]).verdict;
    assert_eq!(verdict("rspamd"), Verdict::Defer);
    assert_eq!(verdict("other"), Verdict::Accept);
    let mut accepts = with("rspamd");
    accepts.filters[0].action = Some(Verdict::Accept);
    assert_eq!(hits(terms, &accepts), "BAYES=1.55");
}

#[test]
fn viruses_are_refused_whatever_else_is_known() {
    let mut facts = change(|facts| facts.client = "192.0.2.1".parse().ok());
    facts.viruses.push(Virus {
        filter: word("clamav"),
        name: word("Eicar\r\n250"),
    });
    let judgement = judge(LISTS).judge(&facts, &[]);
    assert_eq!(judgement.verdict, Verdict::Reject);
    assert_eq!(judgement.rulings[0].fact, "clamav found Eicar\\r\\n250");
    let reply = judgement.reply().unwrap();
    assert_eq!(
        (reply.code, reply.text.as_str()),
        (550, "message refused (VIRUS)")
    );
    let scored = format!("{LISTS}\nvirus = \"accept\"");
    assert_eq!(judge(&scored).judge(&facts, &[]).verdict, Verdict::Accept);
}
