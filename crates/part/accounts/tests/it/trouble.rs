//! Connections that end, servers that fall silent, logins that are refused.

use std::time::{Duration, Instant};

use vere_faults::dovecot::Dovecot;
use vere_faults::relay::Relay;
use vere_ports::mail_accounts::{Answer, Fault, Request, Urgency};

use crate::harness::{Volume, append, body, commit, mail, read, run, settings};

#[test]
fn a_cut_connection_repeats_reads_and_nothing_else() {
    let Some(dovecot) = Dovecot::start() else {
        return;
    };
    run(async {
        let relay = Relay::to(dovecot.imap, Duration::ZERO);
        let mut volume = Volume::at(relay.address, 2);
        let place = volume.store("data", &mail("one", &body(50_000))).await;
        for _ in 0..5 {
            relay.cut();
            let got = volume.ask(read("data", place, &[(1_000, 9)])).await;
            assert!(matches!(got, Ok(Answer::Read(_))), "{got:?}");
            assert_eq!(volume.list("data").await.2.len(), 1);
        }
        // The mail arrives and the answer does not: never sent again by itself.
        let before = volume.list("data").await.2.len();
        let long = mail("two", &body(20_000));
        volume.ask(Request::Quota).await.expect("an answer");
        relay.cut_after(u64::try_from(long.len()).expect("short"), true);
        let answer = volume.ask(append("data", &long)).await;
        assert!(matches!(answer, Err(Fault::Unreachable(_))), "{answer:?}");
        let begin = Instant::now();
        while volume.list("data").await.2.len() == before {
            assert!(begin.elapsed() < Duration::from_secs(30));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(volume.list("data").await.2.len(), before + 1);
        // Commits in a row with lost answers: each is there at most once.
        for number in 0..4 {
            relay.cut_after(600 * number + 1, false);
            let ids: Vec<_> = (0..4)
                .map(|part| {
                    let one = mail(&format!("n{number}.{part}"), &body(400));
                    volume.send(Urgency::Commit, commit(&one))
                })
                .collect();
            let mut answers = Vec::new();
            for id in ids {
                answers.push(volume.wait(id).await);
            }
            relay.cut();
            let (_, _, mails) = volume.list("log").await;
            for (part, answer) in answers.iter().enumerate() {
                let subject = format!("n{number}.{part}");
                let count = mails.iter().filter(|mail| mail.subject == subject).count();
                match answer {
                    Ok(Answer::Appended(Some(_))) => assert_eq!(count, 1, "{subject}"),
                    Err(Fault::Unreachable(_)) => assert!(count <= 1, "{subject}"),
                    other => panic!("{other:?}"),
                }
            }
        }
    });
}

#[test]
fn a_silent_account_is_unreachable_and_comes_back() {
    let Some(dovecot) = Dovecot::start() else {
        return;
    };
    run(async {
        let relay = Relay::to(dovecot.imap, Duration::ZERO);
        let mut volume = Volume::at(relay.address, 2);
        let place = volume.store("data", &mail("one", b"x")).await;
        relay.silence(true);
        let begin = Instant::now();
        let ids = [append("data", &mail("two", b"x")), read("data", place, &[])]
            .map(|request| volume.send(Urgency::Waited, request));
        for id in ids {
            let answer = volume.wait(id).await;
            assert!(matches!(answer, Err(Fault::Unreachable(_))), "{answer:?}");
        }
        let took = begin.elapsed();
        assert!((10..45).contains(&took.as_secs()), "{took:?}");
        relay.silence(false);
        relay.cut();
        let begin = Instant::now();
        while volume.ask(read("data", place, &[])).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(40),
            "{:?}",
            begin.elapsed()
        );
    });
}

#[test]
fn a_refused_login_is_answered_at_once_and_not_repeated_in_a_loop() {
    let Some(dovecot) = Dovecot::start() else {
        return;
    };
    run(async {
        let relay = Relay::to(dovecot.imap, Duration::ZERO);
        let mut wrong = settings(relay.address, 4);
        if let vere_accounts::Login::Password(credentials) = &mut wrong.remote.login {
            credentials.password = vere_units::Secret::new("wrong".to_owned());
        }
        let mut volume = Volume::new(wrong);
        for _ in 0..20 {
            let answer = volume.ask(Request::Quota).await;
            assert!(matches!(answer, Err(Fault::Login(_))), "{answer:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(relay.accepted() < 5, "{}", relay.accepted());
        let mut nowhere = Volume::at(std::net::SocketAddr::from(([127, 0, 0, 1], 1)), 2);
        let begin = Instant::now();
        let answer = nowhere.ask(Request::Quota).await;
        assert!(matches!(answer, Err(Fault::Unreachable(_))), "{answer:?}");
        assert!(begin.elapsed() < Duration::from_secs(30));
    });
}

#[test]
fn more_octets_than_may_wait_are_refused() {
    let Some(dovecot) = Dovecot::start() else {
        return;
    };
    run(async {
        let mut volume = Volume::at(dovecot.imap, 2);
        let long = mail("long", &body(4 << 20));
        let ids: Vec<_> = (0..20)
            .map(|_| volume.send(Urgency::Background, append("data", &long)))
            .collect();
        let mut refused = 0;
        for id in ids {
            match volume.wait(id).await {
                Ok(Answer::Appended(Some(_))) => {}
                Err(Fault::Throttled(..)) => refused += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(refused, 5);
    });
}
