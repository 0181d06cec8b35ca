//! Questions, answers and decisions about recipients.

use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;
use crate::{
    GreylistSnapshot, Greylisting, ListPolicy, Listing, Partition, Reason, Spf, SpfPolicy,
    StaleTicket, Treatment, WhenUnavailable,
};

const LISTED: &[Listing] = &[
    Listing { list: 3, weight: 2 },
    Listing { list: 1, weight: 4 },
    Listing {
        list: 0,
        weight: -1,
    },
];

fn lists(listings: &[Listing]) -> Answer<'_> {
    Answer::Lists {
        listings,
        complete: true,
    }
}

fn with_everything(change: impl FnOnce(&mut Terms)) -> Bench {
    Bench::without_delay(|terms| {
        terms.lists = Some(ListPolicy {
            threshold: 5,
            ..ListPolicy::default()
        });
        terms.spf = Some(SpfPolicy::default());
        change(terms);
    })
}

#[test]
fn mail_and_rcpt_ask_for_what_is_missing() {
    let mut bench = with_everything(|_| ());
    let ticket = bench.ticket("192.0.2.1");
    let mail = bench.mail(ticket);
    let expected = Questions {
        round: 1,
        lists: true,
        spf: true,
        recipient: false,
    };
    assert_eq!(mail, expected);
    let again = bench.mail(ticket);
    assert_eq!((again.round, again.lists, again.spf), (2, false, true));
    let recipient = bench.recipient(ticket);
    let expected = Questions {
        round: 3,
        recipient: true,
        ..Questions::default()
    };
    assert_eq!(recipient, expected);
    let mut plain = Bench::without_delay(|_| ());
    let ticket = plain.ticket("192.0.2.1");
    let mail = plain.mail(ticket);
    assert_eq!((mail.lists, mail.spf), (false, false));
}

#[test]
fn a_recipient_is_accepted_when_all_answers_are_there() {
    let mut bench = with_everything(|_| ());
    let ticket = bench.ticket("192.0.2.1");
    let mail = bench.mail(ticket).round;
    assert_eq!(bench.answer(ticket, mail, lists(&LISTED[..1])), None);
    let round = bench.recipient(ticket).round;
    let accepted = Answer::Recipient(Recipient::Accepted);
    assert_eq!(bench.answer(ticket, round, accepted), None);
    let spf = Answer::Spf(Spf::Pass);
    assert_eq!(bench.answer(ticket, mail, spf), Some(Decision::Accept));
    assert_eq!(bench.answer(ticket, mail, spf), None, "nobody waits");
    let findings = bench.screen.findings(ticket).unwrap();
    assert_eq!((findings.score, findings.list), (Some(2), Some(3)));
    assert_eq!(findings.spf, Some(Spf::Pass));
    assert_eq!(bench.screen.take_tally().accepted, 1);
}

#[test]
fn a_listed_client_is_refused_before_the_recipient_is_known() {
    let mut bench = with_everything(|_| ());
    let ticket = bench.ticket("192.0.2.1");
    let mail = bench.mail(ticket).round;
    let round = bench.recipient(ticket).round;
    let unknown = Answer::Recipient(Recipient::Unknown);
    assert_eq!(bench.answer(ticket, round, unknown), None);
    let refused = Decision::Refuse(Reason::Listed);
    assert_eq!(bench.answer(ticket, mail, lists(LISTED)), Some(refused));
    assert_eq!(bench.screen.findings(ticket).unwrap().list, Some(1));
    let next = bench.screen.recipient(bench.now, ticket, "c@example.net");
    assert_eq!(next, Ok(Step::Decided(refused)), "nothing is asked");
    assert_eq!(bench.screen.take_tally().of(Reason::Listed), 2);
}

#[test]
fn a_deferred_client_learns_nothing_about_recipients() {
    for recipient in [Recipient::Accepted, Recipient::Unknown] {
        let mut bench = Bench::without_delay(|terms| {
            terms.lists = Some(ListPolicy {
                threshold: 5,
                listed: Treatment::Defer,
                ..ListPolicy::default()
            });
        });
        let ticket = bench.ticket("192.0.2.1");
        let mail = bench.mail(ticket).round;
        let round = bench.recipient(ticket).round;
        bench.answer(ticket, round, Answer::Recipient(recipient));
        let deferred = Decision::Defer(Reason::Listed);
        assert_eq!(bench.answer(ticket, mail, lists(LISTED)), Some(deferred));
        let next = bench.screen.recipient(bench.now, ticket, "c@example.net");
        assert_eq!(next, Ok(Step::Decided(deferred)), "nothing is asked");
    }
}

#[test]
fn the_treatment_of_a_listed_client_is_a_setting() {
    for (listed, decision) in [
        (Treatment::Refuse, Decision::Refuse(Reason::Listed)),
        (Treatment::Defer, Decision::Defer(Reason::Listed)),
        (Treatment::Note, Decision::Accept),
    ] {
        let mut bench = Bench::without_delay(|terms| {
            let threshold = 5;
            let when_unavailable = WhenUnavailable::Accept;
            terms.lists = Some(ListPolicy {
                threshold,
                listed,
                when_unavailable,
                ..ListPolicy::default()
            });
        });
        let ticket = bench.ticket("192.0.2.1");
        let mail = bench.mail(ticket).round;
        let round = bench.recipient(ticket).round;
        let accepted = Answer::Recipient(Recipient::Accepted);
        assert_eq!(bench.answer(ticket, round, accepted), None);
        assert_eq!(bench.answer(ticket, mail, lists(LISTED)), Some(decision));
    }
}

#[test]
fn a_threshold_of_zero_lists_nobody_who_is_on_no_list() {
    let mut bench = Bench::without_delay(|terms| {
        terms.lists = Some(ListPolicy {
            threshold: 0,
            ..ListPolicy::default()
        });
    });
    let ticket = bench.ticket("192.0.2.1");
    let mail = bench.mail(ticket).round;
    bench.answer(ticket, mail, lists(&[]));
    assert_eq!(bench.decided(ticket, Recipient::Accepted), Decision::Accept);
}

#[test]
fn a_client_on_lists_of_good_clients_is_not_greylisted() {
    for (weight, allow_threshold, decision) in [
        (-2, Some(-2), Decision::Accept),
        (-2, Some(-3), Decision::Defer(Reason::Greylisted)),
        (-2, None, Decision::Defer(Reason::Greylisted)),
    ] {
        let mut bench = Bench::without_delay(|terms| {
            terms.greylisting = Some(Greylisting::default());
            terms.lists = Some(ListPolicy {
                allow_threshold,
                ..ListPolicy::default()
            });
        });
        let ticket = bench.ticket("192.0.2.1");
        let mail = bench.mail(ticket).round;
        bench.answer(ticket, mail, lists(&[Listing { list: 0, weight }]));
        assert_eq!(bench.decided(ticket, Recipient::Accepted), decision);
    }
}

#[test]
fn results_of_spf_are_treated_as_the_policy_says() {
    let policy = SpfPolicy {
        fail: Treatment::Refuse,
        softfail: Treatment::Defer,
        temperror: Treatment::Defer,
        permerror: Treatment::Refuse,
    };
    for (spf, decision) in [
        (Spf::None, Decision::Accept),
        (Spf::Neutral, Decision::Accept),
        (Spf::Pass, Decision::Accept),
        (Spf::Fail, Decision::Refuse(Reason::SpfFail)),
        (Spf::SoftFail, Decision::Defer(Reason::SpfFail)),
        (Spf::TempError, Decision::Defer(Reason::SpfError)),
        (Spf::PermError, Decision::Refuse(Reason::SpfError)),
    ] {
        let mut bench = Bench::without_delay(|terms| terms.spf = Some(policy.clone()));
        let ticket = bench.ticket("192.0.2.1");
        let mail = bench.mail(ticket).round;
        bench.answer(ticket, mail, Answer::Spf(spf));
        let step = bench.screen.recipient(bench.now, ticket, "bob@example.net");
        let decided = match step.unwrap() {
            Step::Decided(decision) => decision,
            Step::Ask(questions) => {
                let accepted = Answer::Recipient(Recipient::Accepted);
                bench.answer(ticket, questions.round, accepted).unwrap()
            }
        };
        assert_eq!(decided, decision, "{spf:?}");
    }
}

#[test]
fn the_answer_of_the_directory_decides() {
    let mut bench = Bench::without_delay(|_| ());
    let ticket = bench.ticket("192.0.2.1");
    bench.mail(ticket);
    for (recipient, decision) in [
        (
            Recipient::Unknown,
            Decision::Refuse(Reason::RecipientUnknown),
        ),
        (
            Recipient::Refused,
            Decision::Refuse(Reason::RecipientRefused),
        ),
        (
            Recipient::Deferred,
            Decision::Defer(Reason::RecipientDeferred),
        ),
        (Recipient::Accepted, Decision::Accept),
    ] {
        assert_eq!(bench.decided(ticket, recipient), decision);
    }
    assert_eq!(bench.screen.findings(ticket).unwrap().refused, 2);
}

#[test]
fn answers_to_an_earlier_question_have_no_effect() {
    let mut bench = with_everything(|_| ());
    let ticket = bench.ticket("192.0.2.1");
    let first = bench.mail(ticket).round;
    let second = bench.mail(ticket).round;
    bench.answer(ticket, first, lists(&[]));
    bench.answer(ticket, first, Answer::Spf(Spf::Fail));
    let early = Answer::Recipient(Recipient::Accepted);
    assert_eq!(bench.answer(ticket, second, early), None);
    let one = bench.recipient(ticket).round;
    let other = bench.recipient(ticket).round;
    bench.answer(ticket, one, Answer::Recipient(Recipient::Unknown));
    bench.answer(ticket, other, Answer::Recipient(Recipient::Accepted));
    let decision = bench.answer(ticket, second, Answer::Spf(Spf::Pass));
    assert_eq!(decision, Some(Decision::Accept));
    // Answers to questions that were not asked.
    let mut plain = Bench::without_delay(|_| ());
    let ticket = plain.ticket("192.0.2.1");
    let mail = plain.mail(ticket).round;
    plain.answer(ticket, mail, lists(LISTED));
    plain.answer(ticket, mail, Answer::Spf(Spf::Fail));
    let findings = plain.screen.findings(ticket).unwrap();
    assert_eq!((findings.score, findings.spf), (None, None));
}

#[test]
fn missing_answers_count_as_the_policy_says() {
    use WhenUnavailable::{Accept, Defer};
    for (when_unavailable, temperror, decision) in [
        (Accept, Treatment::Note, Decision::Accept),
        (
            Defer,
            Treatment::Note,
            Decision::Defer(Reason::ListsUnavailable),
        ),
        (Accept, Treatment::Defer, Decision::Defer(Reason::SpfError)),
        (
            Accept,
            Treatment::Refuse,
            Decision::Refuse(Reason::SpfError),
        ),
    ] {
        let mut bench = Bench::without_delay(|terms| {
            terms.lists = Some(ListPolicy {
                when_unavailable,
                ..ListPolicy::default()
            });
            terms.spf = Some(SpfPolicy {
                temperror,
                ..SpfPolicy::default()
            });
        });
        let ticket = bench.ticket("192.0.2.1");
        bench.mail(ticket);
        let round = bench.recipient(ticket).round;
        let accepted = Answer::Recipient(Recipient::Accepted);
        assert_eq!(bench.answer(ticket, round, accepted), None);
        bench.pass(19_000);
        assert_eq!(bench.due(), []);
        bench.pass(1_000);
        assert_eq!(bench.due(), [(ticket, Due::Decided(decision))]);
        bench.pass(299_000);
        assert_eq!(bench.due(), [], "the session goes on");
    }
}

#[test]
fn a_list_without_answer_does_not_save_a_client_on_others() {
    let mut bench = Bench::without_delay(|terms| {
        terms.lists = Some(ListPolicy {
            when_unavailable: WhenUnavailable::Defer,
            ..ListPolicy::default()
        });
    });
    for (listings, decision) in [
        (LISTED, Decision::Refuse(Reason::Listed)),
        (&[], Decision::Defer(Reason::ListsUnavailable)),
    ] {
        let ticket = bench.ticket("192.0.2.1");
        let mail = bench.mail(ticket).round;
        let round = bench.recipient(ticket).round;
        let accepted = Answer::Recipient(Recipient::Accepted);
        assert_eq!(bench.answer(ticket, round, accepted), None);
        let complete = false;
        let answer = Answer::Lists { listings, complete };
        assert_eq!(bench.answer(ticket, mail, answer), Some(decision));
    }
}

#[test]
fn a_recipient_without_answer_is_deferred() {
    let mut bench = Bench::without_delay(|_| ());
    let ticket = bench.ticket("192.0.2.1");
    bench.mail(ticket);
    let round = bench.recipient(ticket).round;
    bench.pass(20_000);
    let decision = Decision::Defer(Reason::RecipientDeferred);
    assert_eq!(bench.due(), [(ticket, Due::Decided(decision))]);
    let late = Answer::Recipient(Recipient::Accepted);
    assert_eq!(bench.answer(ticket, round, late), None);
}

#[test]
fn too_many_refusals_of_a_session_close_it() {
    let mut bench = Bench::without_delay(|terms| terms.limits.refusals_max = 3);
    let ticket = bench.ticket("192.0.2.1");
    bench.mail(ticket);
    for decision in [
        Decision::Refuse(Reason::RecipientUnknown),
        Decision::Refuse(Reason::RecipientUnknown),
        Decision::Close(Reason::Refusals),
    ] {
        assert_eq!(bench.decided(ticket, Recipient::Unknown), decision);
    }
    let next = bench.screen.recipient(bench.now, ticket, "c@example.net");
    assert_eq!(next, Err(StaleTicket));
    let tally = bench.screen.take_tally();
    assert_eq!(tally.of(Reason::RecipientUnknown), 2);
    assert_eq!(tally.of(Reason::Refusals), 1);
}

#[test]
fn too_many_errors_close_a_session() {
    let mut bench = Bench::without_delay(|terms| terms.limits.errors_max = 3);
    let ticket = bench.ticket("192.0.2.1");
    let error = |bench: &mut Bench| bench.screen.error(bench.now, ticket);
    assert_eq!(error(&mut bench), Ok(None));
    assert_eq!(error(&mut bench), Ok(None));
    assert_eq!(error(&mut bench), Ok(Some(Decision::Close(Reason::Errors))));
    assert_eq!(error(&mut bench), Err(StaleTicket));
    assert_eq!(bench.screen.take_tally().of(Reason::Errors), 1);
}

#[test]
fn a_new_triplet_is_deferred_until_its_delay_is_over() {
    let mut bench = Bench::without_delay(|terms| {
        terms.greylisting = Some(Greylisting {
            known_after: 1,
            ..Greylisting::default()
        });
    });
    let attempt = |bench: &mut Bench, client: &str| {
        let ticket = bench.ticket(client);
        bench.mail(ticket);
        let decision = bench.decided(ticket, Recipient::Accepted);
        bench.screen.left(ticket).unwrap();
        decision
    };
    let greylisted = Decision::Defer(Reason::Greylisted);
    assert_eq!(attempt(&mut bench, "192.0.2.1"), greylisted);
    bench.pass(299_999);
    assert_eq!(attempt(&mut bench, "192.0.2.1"), greylisted);
    assert_eq!(attempt(&mut bench, "192.0.3.1"), greylisted);
    bench.pass(1);
    assert_eq!(
        attempt(&mut bench, "192.0.2.77"),
        Decision::Accept,
        "the same network"
    );
    let ticket = bench.ticket("192.0.2.1");
    asked(bench.screen.mail(bench.now, ticket, "").unwrap());
    assert_eq!(
        bench.decided(ticket, Recipient::Accepted),
        Decision::Accept,
        "the client is known"
    );
    let ticket = bench.ticket("192.0.3.1");
    bench.mail(ticket);
    bench.decided(ticket, Recipient::Unknown);
    assert_eq!(
        bench.screen.remembered().2,
        3,
        "two triplets and a client; nothing of recipients that do not exist"
    );
}

#[test]
fn the_greylist_survives_a_restart() {
    let terms = |terms: &mut Terms| terms.greylisting = Some(Greylisting::default());
    let mut before = Bench::without_delay(terms);
    let ticket = before.ticket("192.0.2.1");
    before.mail(ticket);
    before.decided(ticket, Recipient::Accepted);
    let octets = before.screen.export_greylist();
    assert_eq!(octets.len(), 20 + 28 + 4);
    for off in [false, true] {
        let mut after = Bench::without_delay(|now| {
            if !off {
                terms(now);
            }
        });
        let snapshot = GreylistSnapshot::read(&octets, SECRET).unwrap();
        let whole = Partition::new(SECRET, NonZeroU32::MIN).parts().next();
        after.screen.restore_greylist(&[snapshot], whole.unwrap());
        let damaged = GreylistSnapshot::read(&octets[1..], SECRET);
        assert_eq!(damaged, Err(crate::SnapshotError::NotASnapshot));
        assert_eq!(after.screen.remembered().2, 1);
        assert_eq!(after.screen.export_greylist(), octets);
        let mut later = after.screen.terms.clone();
        terms(&mut later);
        after.screen.set_terms(later);
        after.pass(300_000);
        let ticket = after.ticket("192.0.2.1");
        after.mail(ticket);
        assert_eq!(after.decided(ticket, Recipient::Accepted), Decision::Accept);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The decision about a recipient does not depend on the order of the answers.
    #[test]
    fn the_order_of_answers_does_not_matter(
        order in Just([0, 1, 2]).prop_shuffle(),
        listings in 0_usize..=3,
        complete in any::<bool>(),
        spf in prop_oneof![
            Just(Spf::None), Just(Spf::Pass), Just(Spf::Fail), Just(Spf::SoftFail),
            Just(Spf::TempError), Just(Spf::PermError),
        ],
        recipient in prop_oneof![
            Just(Recipient::Accepted), Just(Recipient::Unknown), Just(Recipient::Deferred),
        ],
        defers in any::<bool>(),
        listed in prop_oneof![Just(Treatment::Refuse), Just(Treatment::Defer), Just(Treatment::Note)],
    ) {
        let decide = |order: [usize; 3]| {
            let mut bench = with_everything(|terms| {
                terms.lists.as_mut().unwrap().listed = listed;
                if defers {
                    terms.lists.as_mut().unwrap().when_unavailable = WhenUnavailable::Defer;
                    terms.spf.as_mut().unwrap().softfail = Treatment::Defer;
                }
            });
            let ticket = bench.ticket("192.0.2.1");
            let mail = bench.mail(ticket).round;
            let round = bench.recipient(ticket).round;
            let listings = &LISTED[..listings];
            let answers = [
                (mail, Answer::Lists { listings, complete }),
                (mail, Answer::Spf(spf)),
                (round, Answer::Recipient(recipient)),
            ];
            let decisions: Vec<_> = order
                .iter()
                .filter_map(|at| bench.answer(ticket, answers[*at].0, answers[*at].1))
                .collect();
            assert_eq!(decisions.len(), 1);
            decisions[0]
        };
        prop_assert_eq!(decide(order), decide([0, 1, 2]));
    }
}
