//! Lost answers, and mails late, gone or doubled.

use super::*;

/// The answer to an APPEND is lost: the log shows whether the mail is there.
#[test]
fn after_a_lost_answer_the_log_decides() {
    for is_stored in [true, false] {
        let mut chain = chain();
        begin(&mut chain, 2);
        chain.failed(id(2));
        let mails = if is_stored {
            vec![commit(11, 2)]
        } else {
            Vec::new()
        };
        list(&mut chain, 11, &mails);
        let next = if is_stored {
            Next::Won(won(2, 4, 11))
        } else {
            Next::Append(id(2), mail(2))
        };
        assert_eq!(chain.poll(), Some(next));
    }
}

#[test]
fn a_server_without_uidplus_is_asked_for_the_uid() {
    let mut chain = chain();
    begin(&mut chain, 2);
    chain.appended(id(2), None);
    list(&mut chain, 11, &[commit(11, 2)]);
    assert_eq!(chain.poll(), Some(Next::Won(won(2, 4, 11))));
}

#[test]
fn a_refused_mail_is_sent_again() {
    let mut chain = chain();
    begin(&mut chain, 2);
    chain.refused(id(2));
    assert_eq!(chain.poll(), Some(Next::Append(id(2), mail(2))));
    // Answers about an unknown commit change nothing.
    chain.refused(id(99));
    chain.failed(id(99));
    chain.appended(id(99), Some((NUMBERS, 11)));
    assert_eq!(chain.poll(), None);
}

/// The same octets were stored twice: the lower UID counts.
#[test]
fn a_doubled_mail_counts_once() {
    let mut chain = chain();
    begin(&mut chain, 2);
    chain.failed(id(2));
    list(&mut chain, 11, &[commit(11, 2), commit(12, 2)]);
    assert_eq!(chain.poll(), Some(Next::Won(won(2, 4, 11))));
    assert_eq!(chain.poll(), None);
    assert_eq!(chain.head(), (id(2), 4));
}

/// Two listings show mails behind, and lack an acknowledged mail.
#[test]
fn a_mail_that_is_gone_is_sent_again() {
    let mut chain = chain();
    begin(&mut chain, 2);
    chain.appended(id(2), Some((NUMBERS, 12)));
    begin(&mut chain, 3);
    chain.appended(id(3), Some((NUMBERS, 14)));
    // The own mail 12 counts as inspected once 11 is: so 11 is lacking as well.
    list(&mut chain, 11, &[commit(14, 3)]);
    assert_eq!(chain.poll(), None, "a first listing decides nothing");
    chain.look_again();
    list(&mut chain, 11, &[commit(14, 3)]);
    assert_eq!(chain.poll(), Some(Next::Append(id(2), mail(2))));
}

/// The newest mail of the log is not shown yet: nothing is sent again, and the next look comes after a pause.
#[test]
fn a_mail_that_is_not_shown_yet_is_waited_for() {
    let mut chain = chain();
    begin(&mut chain, 2);
    chain.appended(id(2), Some((NUMBERS, 12)));
    for _ in 0..3 {
        list(&mut chain, 11, &[]);
        assert_eq!(chain.poll(), None, "a pause");
        chain.look_again();
    }
    list(&mut chain, 11, &[note(11), commit(12, 2)]);
    assert_eq!(chain.poll(), Some(Next::Won(won(2, 4, 12))));
}

#[test]
fn a_listing_that_fails_comes_again_after_a_pause() {
    let mut chain = chain();
    chain.refresh();
    for _ in 0..2 {
        assert_eq!(chain.poll(), Some(Next::List(11)));
        chain.list_failed();
        assert_eq!(chain.poll(), None);
        chain.look_again();
    }
    list(&mut chain, 11, &[]);
    assert_eq!(chain.poll(), None);
}

/// A listed mail is gone before its reading: the mails from there on are listed again, those below stay.
#[test]
fn a_mail_that_goes_before_it_is_read_is_listed_anew() {
    let mut chain = chain();
    chain.refresh();
    list(
        &mut chain,
        11,
        &[commit(11, 7), commit(12, 8), commit(13, 9)],
    );
    for uid in 11..14 {
        assert_eq!(chain.poll(), Some(Next::Judge(uid)));
    }
    chain.gone(12);
    chain.judged(13, Some(None));
    chain.judged(11, Some(child(7, HEAD)));
    assert_eq!(chain.poll(), Some(Next::Follow(won(7, 4, 11))));
    assert_eq!(chain.poll(), None, "a pause");
    chain.look_again();
    assert_eq!(chain.poll(), Some(Next::List(12)));
}

/// A lost commit with content: its place is needed, and no further commit is sent before.
#[test]
fn a_lost_commit_with_content_is_located() {
    let mut chain = chain();
    begin(&mut chain, 2);
    begin(&mut chain, 3);
    chain.appended(id(2), Some((NUMBERS, 12)));
    list(&mut chain, 11, &[commit(11, 9), commit(12, 2)]);
    assert_eq!(chain.poll(), Some(Next::Judge(11)));
    chain.judged(11, Some(child(9, HEAD)));
    assert_eq!(chain.poll(), Some(Next::Follow(won(9, 4, 11))));
    assert_eq!(chain.under_way(), 2);
    assert_eq!(chain.poll(), None, "the loss comes first");
    chain.lose(|commit| commit == id(3));
    assert_eq!((chain.under_way(), chain.end()), (0, (id(9), 4)));
    assert!(chain.is_blocked());
    assert_eq!(chain.poll(), None, "the answer about 3 is awaited");
    chain.failed(id(3));
    assert_eq!(chain.poll(), Some(Next::List(13)));
    assert!(chain.listed(NUMBERS, vec![commit(13, 3)]));
    assert_eq!(chain.poll(), Some(Next::Located(won(3, 5, 13))));
    assert!(!chain.is_blocked());
    // The lost commit is no child of the head, and the next one goes behind.
    begin(&mut chain, 4);
    chain.appended(id(4), Some((NUMBERS, 14)));
    assert_eq!(chain.poll(), Some(Next::Judge(13)));
    chain.judged(13, Some(child(3, id(2))));
    assert_eq!(chain.poll(), Some(Next::Won(won(4, 5, 14))));
}

/// A commit whose UID is inspected is there, though no later listing shows the UID again.
#[test]
fn a_mail_that_was_inspected_is_not_looked_for() {
    let mut chain = chain();
    begin(&mut chain, 2);
    begin(&mut chain, 3);
    chain.appended(id(3), Some((NUMBERS, 11)));
    chain.failed(id(2));
    list(&mut chain, 12, &[note(12)]);
    assert_eq!(chain.poll(), Some(Next::Append(id(2), mail(2))));
    chain.failed(id(2));
    list(&mut chain, 13, &[commit(13, 2)]);
    assert_eq!(chain.poll(), Some(Next::Won(won(2, 4, 13))));
    assert_eq!(chain.poll(), Some(Next::Won(won(3, 5, 11))));
}
