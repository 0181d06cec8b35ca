//! Promotions that leave the lead where it is.

use super::*;

fn said(result: Result<Promoted, PromotionError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn an_account_that_fails_is_named() {
    for (lost, named) in [(1, "account 1: "), (2, "account 2: ")] {
        let mut world = World::new();
        world.chain((1, "log"), 2);
        world.lost = vec![lost];
        let text = said(world.promote(Source::Lead(1), 2));
        assert!(text.starts_with(named), "{text}");
    }
    let mut world = World::new();
    world.chain((1, "log"), 2);
    world.accounts.get_mut(&2).unwrap().quota = Some(100);
    let text = said(world.promote(Source::Lead(1), 2));
    assert!(
        text.starts_with("account 2: ") && text.contains("quota"),
        "{text}"
    );
    assert!(
        world
            .chain_of(1, None)
            .iter()
            .all(|of| lead_of(of).is_none())
    );
}

#[test]
fn a_promotion_without_an_answer_is_given_up() {
    let of = (Source::Copy(2), 3);
    let mut promotion = Promotion::new(&terms(), create(1), of, (0, DATE));
    assert!(!promotion.is_over());
    promotion.give_up(Fault::Unreachable("late".to_owned()));
    assert!(promotion.is_over());
    assert!(said(promotion.finish()).starts_with("account 2: "));
}

#[test]
fn an_empty_log_has_no_lead_to_give() {
    let mut world = World::new();
    let error = world.promote(Source::Lead(1), 2);
    assert!(
        matches!(error, Err(PromotionError::NoVolume(1))),
        "{error:?}"
    );
    world.store((1, "log"), b"Subject: a note\r\n\r\ntext".to_vec());
    let error = world.promote(Source::Lead(1), 2);
    assert!(
        matches!(error, Err(PromotionError::NoVolume(1))),
        "{error:?}"
    );
    // Commits without the first one, and without a checkpoint.
    world.commit((1, "log"), &Draft::on(MailId([1; 16]), 5));
    let error = world.promote(Source::Lead(1), 2);
    assert!(
        matches!(error, Err(PromotionError::NoState(1))),
        "{error:?}"
    );
    assert_eq!(world.mails(2, "log"), 0);
}

/// A checkpoint without its pages is none.
#[test]
fn a_checkpoint_needs_its_pages() {
    let mut world = World::new();
    let (covered_uid, covered) = world.commit((1, "log"), &Draft::on(MailId([1; 16]), 2));
    let root = World::new().page((1, "pages"), 2);
    let checkpoint = covering_two(covered_uid, root);
    world.commit((1, "log"), &Draft::on(covered, 3).naming(checkpoint));
    let error = world.promote(Source::Lead(1), 2);
    assert!(
        matches!(error, Err(PromotionError::NoState(1))),
        "{error:?}"
    );
}

/// Who has the keys of an earlier epoch alone would end the chain too early.
#[test]
fn a_commit_of_later_keys_ends_the_promotion() {
    let mut world = World::new();
    let chain = world.chain((1, "log"), 2);
    let draft = Draft {
        epoch: 2,
        ..Draft::on(chain[1], 3)
    };
    let (uid, _) = world.commit((1, "log"), &draft);
    let old = world.promote_with(Source::Lead(1), 2, create(1), |_, _| {});
    let found = match old {
        Err(PromotionError::Unreadable {
            account,
            uid,
            generation,
        }) => (account, uid, generation),
        other => panic!("{other:?}"),
    };
    assert_eq!(found, (1, uid, 3));
    assert_eq!(world.left, [format!("1 {uid}")]);
    // The change is sealed with the keys of its parent.
    world.promote(Source::Lead(1), 2).unwrap();
    let there = world.chain_of(2, None);
    assert_eq!(there.last().unwrap().head.epoch, 2);
}

/// A mail that is damaged between two looks is not missed in silence.
#[test]
fn a_commit_that_cannot_be_copied_is_named() {
    let mut world = World::new();
    let chain = world.chain((1, "log"), 2);
    let mut reads = 0;
    let error = world.promote_with(Source::Lead(1), 2, create(2), |world, request| {
        if matches!(request, Request::Read { mailbox, .. } if mailbox == "log") {
            reads += 1;
        }
        // Both commits were read once, and are read again to be copied.
        if reads == 3 {
            let log = world.accounts.get_mut(&1).unwrap().mailbox("log").unwrap();
            let mail = log.mails.get_mut(&2).unwrap();
            let mut octets = mail.to_vec();
            let last = octets.len() - 10;
            octets[last] ^= 1;
            *mail = octets.into();
        }
    });
    match error {
        Err(PromotionError::Damaged(1, mail)) => assert_eq!(mail, chain[1]),
        other => panic!("{other:?}"),
    }
}

/// The log of a former lead names the present lead.
#[test]
fn a_former_lead_names_its_successor() {
    let mut world = World::new();
    world.chain((1, "log"), 2);
    world.promote(Source::Lead(1), 3).unwrap();
    let error = world.promote(Source::Lead(1), 2);
    assert!(
        matches!(error, Err(PromotionError::Elsewhere(3))),
        "{error:?}"
    );
}

/// Machines that always commit first are no reason to go on for ever.
#[test]
fn the_looks_are_bounded() {
    let mut world = World::new();
    let mut head = *world.chain((1, "log"), 1).last().unwrap();
    let mut generation = 1;
    let error = world.promote_with(Source::Lead(1), 2, create(2), |world, request| {
        if let Request::Append { mailbox, mail, .. } = request
            && mailbox == "log"
            && String::from_utf8_lossy(mail).contains(" w0000 s0000000000")
        {
            generation += 1;
            head = world.commit((1, "log"), &Draft::on(head, generation)).1;
        }
    });
    assert!(
        matches!(error, Err(PromotionError::Unsettled(24))),
        "{error:?}"
    );
    assert!(world.requests < 2_000);
}

/// A late answer to somebody else's request is no answer.
#[test]
fn a_late_answer_of_another_request_changes_nothing() {
    let of = (Source::Lead(1), 2);
    let mut promotion = Promotion::new(&terms(), create(1), of, (100, DATE));
    let other = vere_ports::mail_accounts::RequestId(5);
    promotion.answered(other, Err(Fault::Unreachable("late".to_owned())));
    assert!(!promotion.is_over());
    let steps = std::iter::from_fn(|| promotion.poll()).count();
    assert_eq!(steps, 4);
}
