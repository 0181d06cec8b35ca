//! Every request, on Dovecot.

use std::time::{Duration, Instant};

use vere_faults::dovecot::Dovecot;
use vere_ports::mail_accounts::{Answer, Fault, Request, UidRange, Urgency};

use crate::harness::{ACCOUNT, Volume, append, body, commit, list, mail, read, remove, run};

#[test]
fn mails_are_stored_listed_and_read() {
    let Some(dovecot) = Dovecot::start() else {
        return;
    };
    run(async {
        let mut volume = Volume::at(dovecot.imap, 4);
        assert_eq!(volume.list("data-0001").await, (0, 0, Vec::new()));
        let missing = read("data-0001", (9, 1), &[]);
        let renumbered = Err(Fault::Renumbered {
            expected: 9,
            found: 0,
        });
        assert_eq!(volume.ask(missing).await, renumbered);
        let text = body(100_000);
        let long = mail("verefs1 kdata i5d41402a", &text);
        let first = volume.store("data-0001", &long).await;
        let second = volume
            .store("data-0001", &mail("verefs1 kdata i77", b"two"))
            .await;
        assert_eq!(second, (first.0, first.1 + 1));
        let (uid_validity, uid_next, mails) = volume.list("data-0001").await;
        assert_eq!((uid_validity, uid_next), (first.0, second.1 + 1));
        let listed: Vec<_> = mails
            .iter()
            .map(|mail| (mail.uid, mail.subject.as_str()))
            .collect();
        assert_eq!(
            listed,
            [
                (first.1, "verefs1 kdata i5d41402a"),
                (second.1, "verefs1 kdata i77")
            ]
        );
        assert_eq!(mails[0].size as usize, long.len());
        // Parts, in any order, one twice, one short, one behind the end.
        let parts = [
            (90_000, 50_000),
            (0, 10),
            (70_000, 5_000),
            (0, 10),
            (900_000, 4),
            (0, 20),
        ];
        let Ok(Answer::Read(got)) = volume.ask(read("data-0001", first, &parts)).await else {
            panic!("no parts");
        };
        let whole = [&text[..], b"\r\n"].concat();
        for ((offset, length), got) in parts.into_iter().zip(&got) {
            let begin = whole.len().min(offset as usize);
            let end = whole.len().min((offset + length) as usize);
            assert!(
                got == &whole[begin..end],
                "{offset} {length}: {}",
                got.len()
            );
        }
        let all = volume.ask(read("data-0001", first, &[])).await;
        assert!(all == Ok(Answer::Read(vec![whole.into()])));
    });
}

#[test]
fn mails_are_found_and_removed() {
    let Some(dovecot) = Dovecot::start() else {
        return;
    };
    run(async {
        let mut volume = Volume::at(dovecot.imap, 4);
        let subject = "verefs1 kdata i5d41402a";
        let first = volume.store("data-0001", &mail(subject, b"one")).await;
        let (state, waiting) = volume.accounts.state(ACCOUNT).expect("an account");
        assert!(state.connections > 0 && state.fault.is_none() && state.tells_uids);
        assert_eq!(waiting, 0);
        volume
            .store("data-0001", &mail("verefs1 kdata i77", b"two"))
            .await;
        // By a word of the subject.
        let find = |mailbox: &str, word: &str| Request::Find {
            mailbox: mailbox.to_owned(),
            word: word.to_owned(),
        };
        let found = volume.ask(find("data-0001", "i5d41402a")).await;
        assert_eq!(found, Ok(Answer::Found(first.0, vec![first.1])));
        let found = volume.ask(find("data-0001", "i00")).await;
        assert_eq!(found, Ok(Answer::Found(first.0, vec![])));
        assert_eq!(
            volume.ask(find("none", "x")).await,
            Ok(Answer::Found(0, vec![]))
        );
        // Removal, of the expected mailbox only.
        let wrong = remove("data-0001", first.0 + 1, &[first.1]);
        assert!(matches!(
            volume.ask(wrong).await,
            Err(Fault::Renumbered { .. })
        ));
        for _ in 0..2 {
            let gone = volume.ask(remove("data-0001", first.0, &[first.1])).await;
            assert_eq!(gone, Ok(Answer::Removed));
        }
        assert_eq!(
            volume.ask(read("data-0001", first, &[])).await,
            Ok(Answer::Gone)
        );
        let above = (first.0, 99);
        assert_eq!(
            volume.ask(read("data-0001", above, &[])).await,
            Ok(Answer::Gone)
        );
        assert_eq!(volume.list("data-0001").await.2.len(), 1);
        volume.store("log", &mail("one", b"")).await;
        let all = volume.ask(Request::Mailboxes).await;
        let names = vec!["data-0001".to_owned(), "log".to_owned()];
        assert_eq!(all, Ok(Answer::Mailboxes(names)));
        assert_eq!(volume.ask(Request::Quota).await, Ok(Answer::Quota(None)));
        // `5:*` shows the last mail; an empty range does not.
        let Ok(Answer::Listed { mails, .. }) = volume.ask(list("log", 5, None)).await else {
            panic!("no list");
        };
        assert!(mails.is_empty());
    });
}

#[test]
fn a_server_without_extensions_does_the_same() {
    let bare = "protocol imap {\n  imap_capability = IMAP4rev1 AUTH=PLAIN\n}\n\
                imap_capability = IMAP4rev1 AUTH=PLAIN\n";
    let Some(dovecot) = Dovecot::start_with(bare) else {
        return;
    };
    run(async {
        let mut volume = Volume::at(dovecot.imap, 1);
        let mails: Vec<_> = (0..9)
            .map(|number| mail(&format!("m{number}"), &body(9_000)))
            .collect();
        let sent: Vec<_> = mails
            .iter()
            .map(|mail| volume.send(Urgency::Background, append("data", mail)))
            .collect();
        for id in sent {
            assert!(matches!(volume.wait(id).await, Ok(Answer::Appended(_))));
        }
        let (uid_validity, _, mails) = volume.list("data").await;
        assert_eq!(mails.len(), 9);
        let place = (uid_validity, mails[4].uid);
        let got = volume.ask(read("data", place, &[(0, 76)])).await;
        assert!(matches!(got, Ok(Answer::Read(parts)) if parts[0].len() == 76));
        // Without UIDPLUS nothing else may be removed.
        let gone = volume
            .ask(remove("data", uid_validity, &[mails[4].uid]))
            .await;
        assert_eq!(gone, Ok(Answer::Removed));
        assert_eq!(volume.list("data").await.2.len(), 8);
    });
}

#[test]
fn quota_is_told_and_its_end_is_named() {
    let quota = "mail_plugins = quota\nprotocol imap {\n  mail_plugins = quota imap_quota\n}\n\
                 plugin {\n  quota = maildir:User quota\n  quota_rule = *:storage=64K\n}\n";
    let Some(dovecot) = Dovecot::start_with(quota) else {
        return;
    };
    run(async {
        let mut volume = Volume::at(dovecot.imap, 2);
        assert_eq!(
            volume.ask(Request::Quota).await,
            Ok(Answer::Quota(Some((0, 64 << 10))))
        );
        volume.store("data", &mail("fits", &body(30_000))).await;
        let Ok(Answer::Quota(Some((used, _)))) = volume.ask(Request::Quota).await else {
            panic!("no quota");
        };
        assert!(used >= 29 << 10, "{used}");
        // Together they do not fit; singly the first does.
        let both = [body(20_000), body(40_000)]
            .map(|body| volume.send(Urgency::Background, append("data", &mail("more", &body))));
        let [first, second] = both;
        assert!(matches!(
            volume.wait(first).await,
            Ok(Answer::Appended(Some(_)))
        ));
        assert!(matches!(
            volume.wait(second).await,
            Err(Fault::OverQuota(_))
        ));
    });
}

#[test]
fn commits_of_two_mounts_get_consecutive_uids_in_their_order() {
    let Some(dovecot) = Dovecot::start() else {
        return;
    };
    run(async {
        let mut both = [Volume::at(dovecot.imap, 2), Volume::at(dovecot.imap, 2)];
        let mut sent = [Vec::new(), Vec::new()];
        for number in 0..60 {
            for (volume, sent) in both.iter_mut().zip(&mut sent) {
                let one = mail(&format!("c{number}"), &body(1_000));
                sent.push(volume.send(Urgency::Commit, commit(&one)));
            }
        }
        let mut all = Vec::new();
        for (volume, sent) in both.iter_mut().zip(sent) {
            let mut uids = Vec::new();
            for id in sent {
                match volume.wait(id).await {
                    Ok(Answer::Appended(Some((_, uid)))) => uids.push(uid),
                    other => panic!("{other:?}"),
                }
            }
            assert!(uids.is_sorted(), "{uids:?}");
            all.extend(uids);
        }
        all.sort_unstable();
        assert_eq!(all, (1..=120).collect::<Vec<u32>>());
    });
}

/// A listing sent along with a commit shows the commit, and those of others before.
#[test]
fn a_listing_behind_a_commit_shows_the_commit() {
    let Some(dovecot) = Dovecot::start() else {
        return;
    };
    run(async {
        let mut one = Volume::at(dovecot.imap, 2);
        let mut other = Volume::at(dovecot.imap, 2);
        for number in 1..=20 {
            other.store("log", &mail("theirs", b"")).await;
            one.send(Urgency::Commit, commit(&mail("ours", b"")));
            let id = one.send(Urgency::Commit, list("log", number * 2 - 1, None));
            let Ok(Answer::Listed { mails, .. }) = one.wait(id).await else {
                panic!("no list");
            };
            let subjects: Vec<_> = mails.iter().map(|mail| mail.subject.as_str()).collect();
            assert_eq!(subjects, ["theirs", "ours"]);
        }
    });
}

#[test]
fn a_long_mailbox_is_listed_in_slices() {
    let Some(dovecot) = Dovecot::start() else {
        return;
    };
    run(async {
        let mut volume = Volume::at(dovecot.imap, 2);
        let sent: Vec<_> = (0..2_300)
            .map(|number| {
                let one = mail(&format!("m{number}"), b"");
                volume.send(Urgency::Background, append("data", &one))
            })
            .collect();
        for id in sent {
            assert!(matches!(
                volume.wait(id).await,
                Ok(Answer::Appended(Some(_)))
            ));
        }
        let (_, uid_next, mails) = volume.list("data").await;
        assert_eq!((uid_next, mails.len()), (2_301, 2_300));
        assert!(mails.iter().zip(1..).all(|(mail, uid)| mail.uid == uid));
        let Ok(Answer::Listed { mails, .. }) = volume.ask(list("data", 990, Some(2_010))).await
        else {
            panic!("no list");
        };
        assert_eq!((mails[0].uid, mails.len()), (990, 1_021));
    });
}

#[test]
fn a_watched_mailbox_tells_of_new_mail() {
    let without = "protocol imap {\n  imap_capability = IMAP4rev1 AUTH=PLAIN UIDPLUS LITERAL+\n}\n";
    for (settings, connections) in [("", 3), ("", 2), (without, 3)] {
        let Some(dovecot) = Dovecot::start_with(settings) else {
            return;
        };
        run(async {
            let mut volume = Volume::at(dovecot.imap, connections);
            let mut other = Volume::at(dovecot.imap, 1);
            let watch = Request::Watch {
                mailbox: "log".to_owned(),
            };
            // The first answer says that nothing was known before.
            assert_eq!(volume.ask(watch.clone()).await, Ok(Answer::Changed));
            let id = volume.send(Urgency::Waited, watch);
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert!(!volume.has(id));
            let begin = Instant::now();
            other.store("log", &mail("new", b"")).await;
            assert_eq!(volume.wait(id).await, Ok(Answer::Changed));
            // Without a free watch of the kernel Dovecot itself looks each 30 s.
            let most = if settings.is_empty() { 25 } else { 60 };
            assert!(begin.elapsed() < Duration::from_secs(most));
        });
    }
}

/// A listing to the end shows the last mail of its mailbox, whose number another mailbox has as well.
#[test]
fn listings_of_two_mailboxes_at_once_are_not_mixed() {
    let Some(server) = Dovecot::start() else {
        return;
    };
    run(async {
        let mut volume = Volume::at(server.imap, 1);
        for number in 0..8 {
            volume
                .store("log", &mail(&format!("log {number}"), b""))
                .await;
        }
        for number in 0..4 {
            volume
                .store("pages", &mail(&format!("page {number}"), b""))
                .await;
        }
        for _ in 0..20 {
            let to_end = UidRange {
                first: u32::MAX,
                last: None,
            };
            let all = UidRange {
                first: 1,
                last: None,
            };
            let list = |mailbox: &str, range| Request::List {
                mailbox: mailbox.to_owned(),
                range,
            };
            let end = volume.send(Urgency::Waited, list("pages", to_end));
            let log = volume.send(Urgency::Waited, list("log", all));
            let Ok(Answer::Listed { mails, .. }) = volume.wait(log).await else {
                panic!("no listing");
            };
            let subjects = mails.iter().filter(|mail| mail.subject.contains("log "));
            assert_eq!((subjects.count(), mails.len()), (8, 8));
            assert!(volume.wait(end).await.is_ok());
        }
    });
}
