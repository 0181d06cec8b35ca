use super::*;

/// The UID behind the known ones leaves room for no other mail: one round trip decides.
#[test]
fn a_commit_at_the_next_uid_has_won_without_a_listing() {
    let mut chain = chain();
    assert_eq!(chain.poll(), None, "a quiet chain asks for nothing");
    begin(&mut chain, 2);
    assert_eq!((chain.under_way(), chain.end()), (1, (id(2), 4)));
    assert_eq!(chain.poll(), None, "the answer is awaited");
    chain.appended(id(2), Some((NUMBERS, 11)));
    assert_eq!(chain.head(), (HEAD, 3));
    assert_eq!(chain.poll(), Some(Next::Won(won(2, 4, 11))));
    assert_eq!((chain.head(), chain.under_way()), ((id(2), 4), 0));
    assert_eq!(chain.place(), won(2, 4, 11));
    assert_eq!(chain.poll(), None);
}

#[test]
fn commits_on_the_way_win_in_the_order_of_sending() {
    let mut chain = chain();
    begin(&mut chain, 2);
    begin(&mut chain, 3);
    chain.appended(id(3), Some((NUMBERS, 12)));
    assert_eq!(
        chain.poll(),
        None,
        "the first has no answer yet, and may be anywhere"
    );
    chain.appended(id(2), Some((NUMBERS, 11)));
    assert_eq!(chain.poll(), Some(Next::Won(won(2, 4, 11))));
    assert_eq!(chain.poll(), Some(Next::Won(won(3, 5, 12))));
    assert!(!chain.is_blocked());
}

#[test]
fn what_is_read_at_the_beginning_counts() {
    let mut chain = Chain::new(won(1, 3, 10), 30);
    chain.advance_to(won(5, 9, 25));
    assert_eq!((chain.head(), chain.place()), ((id(5), 9), won(5, 9, 25)));
    // Of two children the one with the lower UID, however they were found.
    for uids in [[28, 27], [27, 28]] {
        for uid in uids {
            chain.see(uid, child(u8::try_from(uid).unwrap(), id(5)).unwrap());
        }
    }
    assert_eq!(chain.poll(), Some(Next::Follow(won(27, 10, 27))));
    assert_eq!(chain.poll(), None);
}

/// A mail of another mount lies below: whether it names the parent is decided by its body, not by its subject.
#[test]
fn the_elder_sibling_wins_if_its_body_is_authentic() {
    for (body, elder_wins) in [
        (child(9, HEAD), true),
        (child(9, id(77)), false),
        // A forgery.
        (None, false),
    ] {
        let mut chain = chain();
        begin(&mut chain, 2);
        chain.appended(id(2), Some((NUMBERS, 12)));
        list(&mut chain, 11, &[commit(11, 9), commit(12, 2)]);
        assert_eq!(chain.poll(), Some(Next::Judge(11)));
        assert_eq!(chain.poll(), None, "the body decides");
        // The first try to read has failed.
        chain.judged(11, None);
        assert_eq!(chain.poll(), Some(Next::Judge(11)));
        chain.judged(11, Some(body));
        let expected = if elder_wins {
            Next::Follow(won(9, 4, 11))
        } else {
            Next::Won(won(2, 4, 12))
        };
        assert_eq!(chain.poll(), Some(expected), "{body:?}");
    }
}

/// Mails of people, and other kinds of mails of the volume, need no reading.
#[test]
fn other_mails_in_the_log_are_passed_over() {
    let mut chain = chain();
    begin(&mut chain, 2);
    chain.appended(id(2), Some((NUMBERS, 13)));
    let mails = [note(11), listed(12, 9, Kind::Data), commit(13, 2)];
    list(&mut chain, 11, &mails);
    assert_eq!(chain.poll(), Some(Next::Won(won(2, 4, 13))));
    assert_eq!(chain.poll(), None);
}

#[test]
fn a_mount_follows_others_when_it_is_told_to_look() {
    let mut chain = chain();
    chain.refresh();
    list(&mut chain, 11, &[commit(11, 8), commit(12, 9)]);
    assert_eq!(chain.poll(), Some(Next::Judge(11)));
    assert_eq!(chain.poll(), Some(Next::Judge(12)));
    assert_eq!(chain.poll(), None);
    chain.judged(12, Some(child(9, id(8))));
    assert_eq!(chain.poll(), None, "mails are inspected in order");
    chain.judged(11, Some(child(8, HEAD)));
    assert_eq!(chain.poll(), Some(Next::Follow(won(8, 4, 11))));
    assert_eq!(chain.poll(), Some(Next::Follow(won(9, 5, 12))));
    assert_eq!(chain.poll(), None, "the log was looked at");
    chain.refresh();
    assert_eq!(chain.poll(), Some(Next::List(13)));
    assert_eq!(chain.poll(), None, "one listing at a time");
}

/// While a later part of a listing is unread, a commit of the mount is not told as won: a broken line may show there.
#[test]
fn an_own_commit_waits_for_the_rest_of_the_listing() {
    let mut chain = chain();
    begin(&mut chain, 2);
    chain.appended(id(2), Some((NUMBERS, 12)));
    list(
        &mut chain,
        11,
        &[note(11), commit(12, 2), commit(13, 9), note(14)],
    );
    assert_eq!(chain.poll(), Some(Next::Judge(13)));
    assert_eq!(chain.poll(), None);
    chain.judged(13, Some(child(9, id(2))));
    assert_eq!(chain.poll(), Some(Next::Won(won(2, 4, 12))));
    assert_eq!(chain.poll(), Some(Next::Follow(won(9, 5, 13))));
}

#[test]
fn sixteen_mails_are_read_at_once() {
    let mut chain = chain();
    chain.refresh();
    let mails: Vec<Listed> = (0..20).map(|at| commit(11 + at, 50 + at as u8)).collect();
    list(&mut chain, 11, &mails);
    for uid in 11..27 {
        assert_eq!(chain.poll(), Some(Next::Judge(uid)));
    }
    assert_eq!(chain.poll(), None);
    chain.judged(20, Some(None));
    assert_eq!(chain.poll(), None, "a window, not a number under way");
    chain.judged(11, Some(None));
    assert_eq!(chain.poll(), Some(Next::Judge(27)));
}

/// UIDs of a log with other numbers mean other mails.
#[test]
fn a_log_with_other_numbers_ends_the_chain() {
    let mut chain = chain();
    begin(&mut chain, 2);
    // Not the UID 11 of the known numbers.
    chain.appended(id(2), Some((8, 11)));
    assert_eq!(chain.poll(), Some(Next::List(11)));
    assert!(!chain.is_blocked());
    assert!(!chain.listed(8, vec![commit(11, 2)]));
    assert!(chain.is_blocked());
    chain.refresh();
    assert_eq!(chain.poll(), None);
    // An empty answer has no numbers to differ.
    let mut chain = self::chain();
    chain.refresh();
    assert_eq!(chain.poll(), Some(Next::List(11)));
    assert!(chain.listed(0, Vec::new()));
    assert!(!chain.is_blocked());
}

#[test]
fn the_first_mail_of_a_volume_gives_the_numbers() {
    let none = Won {
        commit: MailId::NONE,
        generation: 0,
        uid_validity: 0,
        uid: 0,
    };
    let mut chain = Chain::new(none, 0);
    begin(&mut chain, 2);
    chain.appended(id(2), Some((NUMBERS, 1)));
    assert_eq!(chain.poll(), Some(Next::Won(won(2, 1, 1))));
    begin(&mut chain, 3);
    chain.appended(id(3), Some((8, 2)));
    assert_eq!(chain.poll(), Some(Next::List(2)), "the numbers stay");
}

/// A commit that says "everything up to generation 5 is in the chain", with no line of commits to there, tells of commits that
/// were removed as old.
#[test]
fn a_gap_in_the_log_ends_the_chain() {
    let with = |parent| {
        Some(Child {
            covers: 5,
            ..child(9, parent).unwrap()
        })
    };
    let mut chain = chain();
    chain.refresh();
    list(&mut chain, 11, &[commit(11, 8), commit(12, 9), note(13)]);
    assert_eq!(chain.poll(), Some(Next::Judge(11)));
    assert_eq!(chain.poll(), Some(Next::Judge(12)));
    chain.judged(12, Some(with(id(7))));
    chain.judged(11, Some(child(8, HEAD)));
    assert_eq!(chain.poll(), Some(Next::Gap(5)));
    assert!(chain.is_blocked());
    assert_eq!(chain.poll(), None);
    // The line is there: 8 is generation 4, 9 is 5, and 10 tells.
    let mut chain = self::chain();
    chain.refresh();
    list(
        &mut chain,
        11,
        &[commit(11, 8), commit(12, 9), commit(13, 10)],
    );
    let told = Child {
        covers: 5,
        ..child(10, id(9)).unwrap()
    };
    for uid in 11..14 {
        assert_eq!(chain.poll(), Some(Next::Judge(uid)));
    }
    chain.judged(13, Some(Some(told)));
    chain.judged(12, Some(child(9, id(8))));
    chain.judged(11, Some(child(8, HEAD)));
    for (number, generation, uid) in [(8, 4, 11), (9, 5, 12), (10, 6, 13)] {
        let next = Next::Follow(won(number, generation, uid));
        assert_eq!(chain.poll(), Some(next));
    }
    assert!(!chain.is_blocked());
}

/// Some servers give UIDs out of order, and a teller may lie outside the chain: neither is a gap.
#[test]
fn a_line_that_ends_at_the_covered_generation_is_whole() {
    let told = |parent| Child {
        covers: 4,
        ..child(10, parent).unwrap()
    };
    for (parent, follows) in [(id(8), true), (id(77), false)] {
        let mut chain = chain();
        chain.refresh();
        list(&mut chain, 11, &[commit(11, 10), commit(12, 8)]);
        assert_eq!(chain.poll(), Some(Next::Judge(11)));
        chain.judged(11, Some(Some(told(parent))));
        assert_eq!(chain.poll(), Some(Next::Judge(12)));
        chain.judged(12, Some(child(8, HEAD)));
        assert_eq!(chain.poll(), Some(Next::Follow(won(8, 4, 12))));
        let next = follows.then(|| Next::Follow(won(10, 5, 11)));
        assert_eq!(chain.poll(), next);
        assert!(!chain.is_blocked());
    }
}

/// The covered past was known before.
#[test]
fn a_checkpoint_of_the_known_past_is_no_gap() {
    let mut chain = chain();
    let told = Child {
        covers: 3,
        ..child(8, id(77)).unwrap()
    };
    chain.see(9, told);
    assert_eq!(chain.poll(), None);
    assert!(!chain.is_blocked());
}

/// The switch for checkers: a broken order must be noticed.
#[test]
fn with_gaps_skipped_an_elder_sibling_is_overlooked() {
    let mut chain = chain();
    chain.skip_gaps();
    begin(&mut chain, 2);
    chain.appended(id(2), Some((NUMBERS, 12)));
    assert_eq!(chain.poll(), Some(Next::Won(won(2, 4, 12))));
}
