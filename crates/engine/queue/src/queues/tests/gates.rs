//! Limits, sites and their back-off, each by itself.

use std::time::Duration;

use super::*;
use crate::limits::{Limits, Names, Precedence, Rate, Scope};
use crate::site::SiteName;

fn rules(rules: impl IntoIterator<Item = (Scope, Limits)>) -> Policy {
    let mut policy = Policy::default();
    for (scope, limits) in rules {
        policy.rules.insert(scope, limits);
    }
    policy
}

fn for_all(limits: Limits) -> Policy {
    rules([(Scope::Domains(Names::All), limits)])
}

fn rate(messages: u32, seconds: u64, burst: u32) -> Limits {
    Limits {
        rate: Some(Rate {
            messages,
            per: Duration::from_secs(seconds),
            burst,
        }),
        ..Limits::default()
    }
}

fn connections(max: usize) -> Limits {
    Limits {
        connections_max: Some(max),
        ..Limits::default()
    }
}

fn fill(queues: &mut Queues, number: QueueId, messages: u64) {
    for record in 0..messages {
        let envelope = fresh(u64::from(number.0) * 1_000 + record, at(0));
        assert!(queues.admit(number, RecordId(record), envelope, Some(BODY), at(0)));
    }
}

fn domain(name: &str) -> Destination {
    Destination::domain(name.to_owned())
}

/// All that a queue has to do now.
fn polled(queues: &mut Queues, now: Timestamp) -> Vec<Next> {
    std::iter::from_fn(|| queues.poll(now)).collect()
}

#[test]
fn a_rate_holds_messages_back_without_an_attempt() {
    let mut queues = queues(for_all(rate(2, 10, 3)));
    fill(&mut queues, QUEUE, 10);
    assert_eq!(polled(&mut queues, at(100)).len(), 3, "as many as leave");
    let mut jobs: Vec<_> = (0..3).map(|_| queues.take(QUEUE, true, at(100))).collect();
    assert!(jobs.iter().all(Option::is_some));
    assert!(queues.take(QUEUE, false, at(100)).is_none());
    assert!(queues.worker_idle(QUEUE));
    assert_eq!(polled(&mut queues, at(100)), []);
    let mut now = queues.wake_at().expect("a token comes");
    assert_eq!(now, at(105));
    for _ in 0..5 {
        assert_eq!(polled(&mut queues, now), [Next::Wake(QUEUE)], "{now}");
        let job = queues.take(QUEUE, true, now).expect("a token");
        assert_eq!(job.envelope.head.attempts, 0);
        jobs.push(Some(job));
        assert!(queues.take(QUEUE, false, now).is_none());
        assert!(queues.worker_idle(QUEUE));
        assert_eq!(polled(&mut queues, now), []);
        now = queues.wake_at().expect("the next token");
    }
    assert_eq!(now, at(130), "one in five seconds");
    let records: Vec<_> = jobs.iter().flatten().map(|job| job.record).collect();
    assert_eq!(records, [0, 1, 2, 3, 4, 5, 6, 7].map(RecordId));
}

#[test]
fn a_worker_that_sends_nothing_gives_its_token_back() {
    let mut queues = queues(for_all(rate(1, 60, 1)));
    fill(&mut queues, QUEUE, 2);
    assert_eq!(polled(&mut queues, at(100)), [Next::Open(QUEUE)]);
    queues.worker_ended(QUEUE, true);
    assert_eq!(polled(&mut queues, at(100)), [Next::Open(QUEUE)]);
    queues.stays_away(QUEUE);
    assert!(queues.worker_idle(QUEUE));
    assert_eq!(polled(&mut queues, at(100)), [Next::Wake(QUEUE)]);
    assert!(queues.take(QUEUE, true, at(100)).is_some());
    assert!(queues.worker_idle(QUEUE));
    assert_eq!(polled(&mut queues, at(100)), [], "that was the one");
}

#[test]
fn a_throttled_destination_leaves_others_alone() {
    let slow = Scope::Domains(Names::One("slow.example".to_owned()));
    let mut queues = Queues::new(rules([(slow, rate(1, 3_600, 1))]));
    queues.register(QueueId(0), domain("slow.example"), at(0));
    queues.register(QueueId(1), domain("fast.example"), at(0));
    fill(&mut queues, QueueId(0), 10);
    fill(&mut queues, QueueId(1), 10);
    let opened = polled(&mut queues, at(0));
    let of = |number| {
        opened
            .iter()
            .filter(|next| **next == Next::Open(number))
            .count()
    };
    assert_eq!((of(QueueId(0)), of(QueueId(1))), (1, 10));
    let sent = std::iter::from_fn(|| queues.take(QueueId(1), false, at(0))).count();
    assert_eq!(sent, 10);
}

#[test]
fn queues_of_one_place_share_its_limits() {
    let mut queues = Queues::new(for_all(connections(3)));
    for (number, name) in [
        (0, "a.example"),
        (1, "requiretls:a.example"),
        (2, "b.example"),
    ] {
        queues.register(QueueId(number), name.parse().expect("a name"), at(0));
        fill(&mut queues, QueueId(number), 5);
    }
    let opened = polled(&mut queues, at(0));
    let of = |number| {
        opened
            .iter()
            .filter(|next| **next == Next::Open(number))
            .count()
    };
    assert_eq!((of(QueueId(0)) + of(QueueId(1)), of(QueueId(2))), (3, 3));
    assert!(of(QueueId(0)) > 0 && of(QueueId(1)) > 0, "they take turns");
    queues.worker_ended(QueueId(0), true);
    assert_eq!(polled(&mut queues, at(0)).len(), 1, "its place is taken");
}

#[test]
fn connections_begin_one_after_the_other() {
    let interval = Limits {
        connection_interval: Some(Duration::from_secs(2)),
        ..Limits::default()
    };
    let mut queues = queues(for_all(interval));
    fill(&mut queues, QUEUE, 5);
    for second in [10, 12, 14] {
        assert_eq!(polled(&mut queues, at(second)), [Next::Open(QUEUE)]);
        assert_eq!(queues.wake_at(), Some(at(second + 2)));
        assert_eq!(polled(&mut queues, at(second + 1)), []);
    }
    assert!(!queues.may_reopen(QUEUE, at(15)), "others wait");
}

#[test]
fn rules_change_while_it_runs() {
    let mut queues = queues(for_all(connections(1)));
    fill(&mut queues, QUEUE, 50);
    assert_eq!(polled(&mut queues, at(0)).len(), 1);
    queues.set_policy(for_all(connections(4)));
    assert_eq!(polled(&mut queues, at(0)).len(), 3);
    queues.set_policy(Policy::default());
    assert_eq!(polled(&mut queues, at(0)).len(), 16);
    queues.set_policy(for_all(connections(4)));
    assert!(!queues.keeps_worker(QUEUE, at(0)));
    for _ in 0..16 {
        queues.worker_ended(QUEUE, true);
    }
    assert!(queues.keeps_worker(QUEUE, at(0)));
    assert_eq!(polled(&mut queues, at(0)), []);
    queues.set_policy(for_all(rate(1, 60, 1)));
    assert_eq!(polled(&mut queues, at(0)), [Next::Open(QUEUE)]);
    assert_eq!(polled(&mut queues, at(0)), []);
}

#[test]
fn destinations_with_precedence_get_the_connections_that_become_free() {
    let of = |precedence| Limits {
        precedence,
        ..Limits::default()
    };
    let one = |name: &str| Scope::Domains(Names::One(name.to_owned()));
    let mut queues = Queues::new(Policy {
        connections_max: 1,
        ..rules([
            (one("bulk.example"), of(Precedence::Low)),
            (one("vip.example"), of(Precedence::High)),
        ])
    });
    for (number, name) in [
        (0, "first.example"),
        (1, "bulk.example"),
        (2, "vip.example"),
    ] {
        queues.register(QueueId(number), domain(name), at(0));
        fill(&mut queues, QueueId(number), 1);
    }
    assert_eq!(polled(&mut queues, at(0)), [Next::Open(QueueId(0))]);
    assert!(queues.take(QueueId(0), true, at(0)).is_some());
    queues.worker_ended(QueueId(0), false);
    assert_eq!(polled(&mut queues, at(0)), [Next::Open(QueueId(2))]);
}

#[test]
fn a_rule_about_hosts_holds_for_all_domains_they_serve() {
    let below = Scope::Hosts(Names::Below("big.example".to_owned()));
    let limits = Limits {
        messages_per_connection_max: Some(7),
        ..connections(2)
    };
    let mut queues = Queues::new(rules([(below, limits)]));
    let site = SiteName::new([("mx.big.example", 25)], None);
    for number in 0..3 {
        queues.register(QueueId(number), domain(&format!("{number}.example")), at(0));
        fill(&mut queues, QueueId(number), 2);
    }
    assert_eq!(polled(&mut queues, at(0)).len(), 6, "nobody knows yet");
    let goes_on = |queues: &mut Queues, number| {
        let goes_on = queues.join_site(number, &site, at(0));
        if !goes_on {
            queues.worker_ended(number, true);
        }
        goes_on
    };
    let on: Vec<_> = [0, 0, 1, 1, 2, 2]
        .map(|number| goes_on(&mut queues, QueueId(number)))
        .into();
    assert_eq!(on.iter().filter(|on| **on).count(), 2, "{on:?}");
    assert_eq!(polled(&mut queues, at(0)), []);
    assert_eq!(queues.messages_per_connection_max(QueueId(0)), Some(7));
    queues.worker_ended(QueueId(0), true);
    queues.worker_ended(QueueId(0), true);
    assert_eq!(polled(&mut queues, at(0)).len(), 2, "others get the places");
}

pub(super) fn in_order() -> Policy {
    for_all(Limits {
        in_order: true,
        ..Limits::default()
    })
}

#[test]
fn where_the_order_is_kept_one_message_leaves_at_a_time_and_the_first_holds_the_others() {
    let mut queues = queues(in_order());
    for record in 0..4 {
        queues.admit(
            QUEUE,
            RecordId(record),
            fresh(record, at(0)),
            Some(BODY),
            at(0),
        );
    }
    assert_eq!(polled(&mut queues, at(0)), [Next::Open(QUEUE)]);
    let first = queues.take(QUEUE, true, at(0)).expect("the first");
    assert!(take(&mut queues, at(0)).is_none(), "one at a time");
    put_off(&mut queues, &first, &deferred(), at(0));
    assert!(take(&mut queues, at(30)).is_none(), "it holds the others");
    queues.worker_ended(QUEUE, false);
    assert_eq!(polled(&mut queues, at(30)), []);
    supply(&mut queues, at(60));
    let again = take(&mut queues, at(60)).expect("its time has come");
    assert_eq!(
        (again.record, again.envelope.head.attempts),
        (RecordId(0), 0)
    );
    let failed = attempt(Disposition::Failed, 2);
    queues.settle(QUEUE, &again, &failed, at(60));
    let next = take(&mut queues, at(60)).expect("given up, so the next one");
    assert_eq!(next.record, RecordId(1));
    queues.give_back(QUEUE, &next);
    assert!(queues.discard(QUEUE, RecordId(1), next.envelope.head.trace));
    assert_eq!(
        take(&mut queues, at(60)).map(|job| job.record),
        Some(RecordId(2))
    );
    assert!(queues.summaries(None, 1)[0].in_order);
}

#[test]
fn the_order_is_kept_from_a_reload_on() {
    let mut queues = queues(Policy::default());
    fill(&mut queues, QUEUE, 5);
    assert_eq!(polled(&mut queues, at(0)).len(), 5);
    let first = queues.take(QUEUE, true, at(0)).expect("one");
    let second = queues.take(QUEUE, true, at(0)).expect("two");
    queues.set_policy(in_order());
    assert!(queues.take(QUEUE, true, at(0)).is_none());
    let delivered = attempt(Disposition::Delivered, 2);
    queues.settle(QUEUE, &first, &delivered, at(0));
    assert!(
        take(&mut queues, at(0)).is_none(),
        "the second one is under way"
    );
    queues.settle(QUEUE, &second, &delivered, at(0));
    assert_eq!(
        take(&mut queues, at(0)).map(|job| job.record),
        Some(RecordId(2))
    );
}
