//! Round trips and rates over a long way.

use std::time::{Duration, Instant};

use vere_faults::dovecot::Dovecot;
use vere_faults::relay::Relay;
use vere_ports::mail_accounts::{Answer, Urgency};

use crate::harness::{Volume, append, body, commit, list, mail, read, run};

/// The delay in each direction.
const DELAY: Duration = Duration::from_millis(25);

/// A round trip.
const TRIP: Duration = Duration::from_millis(50);

#[test]
fn a_commit_and_the_look_behind_it_take_one_round_trip() {
    let Some(dovecot) = Dovecot::start() else {
        return;
    };
    run(async {
        let relay = Relay::to(dovecot.imap, DELAY);
        let mut volume = Volume::at(relay.address, 4);
        volume.store("log", &mail("first", b"")).await;
        let (mut commits, mut looks) = (Vec::new(), Vec::new());
        for number in 2..12 {
            let begin = Instant::now();
            let id = volume.send(Urgency::Commit, commit(&mail("c", &body(2_000))));
            assert!(volume.wait(id).await.is_ok());
            commits.push(begin.elapsed());
            let begin = Instant::now();
            volume.send(Urgency::Commit, commit(&mail("c", &body(2_000))));
            let id = volume.send(Urgency::Commit, list("log", number, None));
            assert!(volume.wait(id).await.is_ok());
            looks.push(begin.elapsed());
        }
        commits.sort();
        looks.sort();
        println!("commits {commits:?}\ncommits with a look {looks:?}");
        // The least, because the machine may be busy.
        assert!(
            commits[0] < TRIP * 2 && looks[0] < TRIP * 2,
            "{commits:?} {looks:?}"
        );
    });
}

#[test]
fn mails_fill_a_long_way() {
    let Some(dovecot) = Dovecot::start() else {
        return;
    };
    run(async {
        let relay = Relay::to(dovecot.imap, DELAY);
        let mut volume = Volume::at(relay.address, 4);
        let one = mail("data", &body(512 << 10));
        volume.store("data", &one).await;
        let begin = Instant::now();
        let ids: Vec<_> = (0..64)
            .map(|_| volume.send(Urgency::Background, append("data", &one)))
            .collect();
        let mut places = Vec::new();
        for id in ids {
            match volume.wait(id).await {
                Ok(Answer::Appended(Some(place))) => places.push(place),
                other => panic!("{other:?}"),
            }
        }
        let stored = begin.elapsed();
        let begin = Instant::now();
        let ids: Vec<_> = places
            .iter()
            .map(|place| volume.send(Urgency::Ahead, read("data", *place, &[(0, 512 << 10)])))
            .collect();
        for id in ids {
            assert!(matches!(volume.wait(id).await, Ok(Answer::Read(_))));
        }
        let fetched = begin.elapsed();
        println!("64 mails of 512 KiB stored in {stored:?}, read in {fetched:?}");
        assert!(
            stored < TRIP * 256 && fetched < TRIP * 256,
            "{stored:?} {fetched:?}"
        );
    });
}
