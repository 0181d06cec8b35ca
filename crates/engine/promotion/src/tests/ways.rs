//! Promotions that come to their end.

use super::*;

#[test]
fn a_lead_hands_over() {
    let mut world = World::new();
    let chain = world.chain((1, "log"), 3);
    world.page((1, "pages"), 2);
    let promoted = world.promote(Source::Lead(1), 2).unwrap();
    let lead = LeadRow {
        account: 2,
        epoch: 2,
        since: 4,
    };
    assert_eq!((promoted.lead, promoted.copied), (lead, 5));
    for account in [1, 2] {
        let there = world.chain_of(account, None);
        assert_eq!(ids(&there)[..3], chain, "account {account}");
        let change = there.last().unwrap();
        assert_eq!(lead_of(change), Some(lead));
        assert_eq!((there.len(), change.record.checkpoint), (4, None));
        assert_eq!(change.record.lead_epoch, 2);
    }
    assert_eq!(world.mails(2, "pages"), 1);
    // Nothing is done twice.
    let before = world.requests;
    let again = world.promote(Source::Lead(1), 2).unwrap();
    assert_eq!((again.lead, again.copied), (lead, 0));
    assert!(world.requests - before < 20);
    assert_eq!((world.mails(1, "log"), world.mails(2, "log")), (4, 4));
}

/// The commits before a checkpoint are gone: the change names the checkpoint with its places on the new lead.
#[test]
fn a_checkpoint_has_new_places() {
    let mut world = World::new();
    let (_, gone) = world.commit((3, "log"), &Draft::on(MailId::NONE, 1));
    let (covered_uid, covered) = world.commit((1, "log"), &Draft::on(gone, 2));
    let other = world.page((1, "pages"), 1);
    let root = world.page((1, "pages"), 2);
    assert_ne!(other.mail, root.mail);
    let checkpoint = covering_two(covered_uid, root);
    world.commit((1, "log"), &Draft::on(covered, 3).naming(checkpoint));
    // Other mails have the first UIDs there.
    for number in 0..5 {
        world.store((2, "log"), format!("Subject: {number}\r\n\r\n").into());
        world.store((2, "pages"), format!("Subject: {number}\r\n\r\n").into());
    }
    let promoted = world.promote(Source::Lead(1), 2);
    assert_eq!(world.left, Vec::<String>::new());
    let promoted = promoted.unwrap();
    assert_eq!(promoted.lead.since, 4);
    let chain = world.chain_of(2, Some(covered));
    assert_eq!(chain.len(), 3);
    let named = chain[2].record.checkpoint.unwrap();
    assert_eq!(
        (named.covers, named.covered_uid),
        (checkpoint.covers, chain[0].uid)
    );
    assert!(named.covered_uid > 5);
    let copy = MailCopy {
        account: 2,
        mailbox: 2,
        uid: 7,
    };
    assert_eq!(named.root, Locator { copy, ..root });
}

/// A copy has commits of the chain alone, in whatever order: generations tell which commit a checkpoint covers.
#[test]
fn a_copy_takes_the_place_of_a_lead() {
    let mut world = World::new();
    world.lost = vec![1];
    let root = world.page((2, "pages-copy"), 2);
    let chain = {
        let mut elsewhere = World::new();
        elsewhere.chain((3, "log"), 2)
    };
    let checkpoint = covering_two(77, root);
    let newest = Draft::on(chain[1], 3).naming(checkpoint);
    world.commit((2, "log-copy"), &newest);
    world.commit((2, "log-copy"), &Draft::on(chain[0], 2));
    let promoted = world.promote(Source::Copy(2), 2).unwrap();
    assert_eq!((promoted.lead.epoch, promoted.lead.since), (2, 4));
    let there = world.chain_of(2, Some(chain[1]));
    assert_eq!(there.len(), 3);
    let named = there[2].record.checkpoint.unwrap();
    assert_eq!((named.covered_uid, named.root.copy.uid), (there[0].uid, 1));
    assert_eq!(world.mails(1, "log"), 0);
    // The change of another machine counts for the next promotion.
    let again = world.promote(Source::Copy(2), 2).unwrap();
    assert_eq!((again.lead, again.copied), (promoted.lead, 0));
}

/// Commits outside the chain go along, behind all of the chain.
#[test]
fn commits_outside_the_chain_stay_outside() {
    let mut world = World::new();
    let chain = world.chain((1, "log"), 2);
    let draft = Draft {
        time: 5,
        ..Draft::on(chain[0], 2)
    };
    let (_, loser) = world.commit((1, "log"), &draft);
    let (_, last) = world.commit((1, "log"), &Draft::on(chain[1], 3));
    world.store((1, "log"), b"Subject: a note\r\n\r\ntext".to_vec());
    world.promote(Source::Lead(1), 2).unwrap();
    let there = world.chain_of(2, None);
    assert_eq!(ids(&there)[..3], [chain[0], chain[1], last]);
    assert!(world.commits(2).iter().any(|found| found.id() == loser));
    assert_eq!(world.mails(2, "log"), 5);
}

/// A log from an earlier time as lead has a commit that the chain has left: it moves behind the chain.
#[test]
fn an_elder_sibling_moves() {
    let mut world = World::new();
    let chain = world.chain((1, "log"), 3);
    let draft = Draft {
        time: 9,
        ..Draft::on(chain[1], 3)
    };
    world.commit((2, "log"), &Draft::on(MailId::NONE, 1));
    let (_, displaced) = world.commit((2, "log"), &draft);
    let (_, upon) = world.commit((2, "log"), &Draft::on(displaced, 4));
    world.promote(Source::Lead(1), 2).unwrap();
    let there = world.chain_of(2, None);
    assert_eq!(ids(&there)[..3], chain);
    assert!(lead_of(&there[3]).is_some());
    let all: Vec<MailId> = ids(&world.commits(2));
    for kept in [displaced, upon] {
        assert_eq!(all.iter().filter(|of| **of == kept).count(), 1);
    }
}

/// A change that lost a race is removed from the lead's log, and made again behind the winner.
#[test]
fn a_lost_change_is_made_again() {
    let mut world = World::new();
    let chain = world.chain((1, "log"), 2);
    let mut races = 0;
    let promoted = world.promote_with(Source::Lead(1), 2, create(2), |world, request| {
        let Request::Append { mailbox, mail, .. } = request else {
            return;
        };
        let text = String::from_utf8_lossy(mail);
        if mailbox == "log" && races == 0 && text.contains(" g000000000003 ") {
            races += 1;
            world.commit((1, "log"), &Draft::on(chain[1], 3));
        }
    });
    assert_eq!((races, promoted.unwrap().lead.since), (1, 4));
    for account in [1, 2] {
        let there = world.chain_of(account, None);
        assert_eq!((there.len(), world.mails(account, "log")), (4, 4));
        assert!(lead_of(&there[3]).is_some());
    }
}

/// There and back, with another account between: epochs count on.
#[test]
fn epochs_count_on() {
    let mut world = World::new();
    world.chain((1, "log"), 2);
    for (round, (from, to)) in [(1, 2), (2, 3), (3, 1), (1, 2)].into_iter().enumerate() {
        let promoted = world.promote(Source::Lead(from), to).unwrap();
        let expected = (to, round as u32 + 2, round as u64 + 3);
        let lead = promoted.lead;
        assert_eq!((lead.account, lead.epoch, lead.since), expected);
        let there = world.chain_of(to, None);
        assert_eq!(lead_of(there.last().unwrap()), Some(lead));
    }
}

/// Whichever answer is lost, the change is there once.
#[test]
fn any_answer_may_be_lost() {
    let mut is_whole = false;
    for at in 1.. {
        let mut world = World::new();
        world.chain((1, "log"), 3);
        world.page((1, "pages"), 2);
        world.unanswered = Some(at);
        match world.promote(Source::Lead(1), 2) {
            Ok(_) if world.requests < at => {
                is_whole = true;
                break;
            }
            Ok(_) | Err(PromotionError::Account(..)) => {}
            Err(error) => panic!("{at}: {error}"),
        }
        world.unanswered = None;
        let promoted = world.promote(Source::Lead(1), 2).unwrap();
        assert_eq!(promoted.lead.since, 4, "{at}");
        for account in [1, 2] {
            let there = world.chain_of(account, None);
            assert_eq!(there.len(), 4, "{at}");
            assert!(lead_of(&there[3]).is_some(), "{at}");
        }
    }
    assert!(is_whole);
}
