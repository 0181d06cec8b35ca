//! The cache beside a naive model: vectors in the order of use, searched from the front.

use proptest::prelude::*;

use std::net::Ipv4Addr;

use super::question::ENTRY_OCTETS;
use super::*;
use crate::map::{Map, MapName};

fn limits(entries: usize) -> Limits {
    Limits {
        octets_max: entries * ENTRY_OCTETS,
        pending_max: 4,
        ttl_min: Duration::from_secs(2),
        ttl_max: Duration::from_secs(60),
        failure_life: Duration::from_secs(1),
    }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn question(number: u8) -> Question {
    let client = Ipv4Addr::new(192, 0, 2, number).into();
    let subject = match number % 3 {
        0 => Subject::Map(MapName::V4(number.into())),
        1 => Subject::Codes(client),
        _ => Subject::Text(client),
    };
    let zone = (number % 2).into();
    Question { zone, subject }
}

fn reply(kind: u8) -> Reply {
    match kind % 6 {
        0 => Reply::Failed,
        1 => Reply::Map(Map::EMPTY),
        2 => Reply::Codes([].into()),
        3 => Reply::Codes(vec![Ipv4Addr::LOCALHOST; kind.into()].into()),
        4 => Reply::Text("x".repeat(kind.into()).into()),
        _ => Reply::Text("".into()),
    }
}

fn length(reply: &Reply) -> usize {
    match reply {
        Reply::Map(_) | Reply::Failed => 160,
        Reply::Codes(codes) => 160 + 4 * codes.len(),
        Reply::Text(text) => 160 + text.len(),
    }
}

/// The oldest entry of each vector comes first.
#[derive(Debug, Default)]
struct Model {
    once: Vec<(Question, Reply, u64)>,
    again: Vec<(Question, Reply, u64)>,
    pending: Vec<Question>,
    evicted: u64,
}

impl Model {
    fn sum(entries: &[(Question, Reply, u64)]) -> usize {
        entries.iter().map(|(_, reply, _)| length(reply)).sum()
    }

    fn take(
        entries: &mut Vec<(Question, Reply, u64)>,
        question: Question,
    ) -> Option<(Question, Reply, u64)> {
        let place = entries.iter().position(|entry| entry.0 == question)?;
        Some(entries.remove(place))
    }

    fn look(&mut self, second: u64, question: Question, limits: &Limits) -> Look {
        let found = Self::take(&mut self.again, question);
        let found = found.or_else(|| Self::take(&mut self.once, question));
        if let Some(entry) = found.filter(|entry| entry.2 > second) {
            let reply = entry.1.clone();
            self.again.push(entry);
            self.balance(limits);
            return Look::Known(reply);
        }
        match self.pending.contains(&question) {
            true => Look::Wait,
            false if self.pending.len() >= limits.pending_max => Look::Full,
            false => {
                self.pending.push(question);
                Look::Ask
            }
        }
    }

    fn answered(
        &mut self,
        second: u64,
        question: Question,
        reply: Reply,
        ttl: u64,
        limits: &Limits,
    ) {
        self.pending.retain(|other| *other != question);
        Self::take(&mut self.again, question);
        Self::take(&mut self.once, question);
        let life = match reply {
            Reply::Failed => 1,
            _ => ttl.clamp(2, 60),
        };
        if length(&reply) <= limits.octets_max / 5 {
            self.once.push((question, reply, second + life));
        }
        self.shrink(limits);
    }

    fn balance(&mut self, limits: &Limits) {
        while Self::sum(&self.again) > limits.octets_max / 5 * 4 {
            let oldest = self.again.remove(0);
            self.once.push(oldest);
        }
    }

    fn shrink(&mut self, limits: &Limits) {
        while Self::sum(&self.once) + Self::sum(&self.again) > limits.octets_max {
            match self.once.is_empty() {
                true => self.again.remove(0),
                false => self.once.remove(0),
            };
            self.evicted += 1;
        }
    }
}

#[derive(Debug, Clone)]
enum Event {
    Look(u8),
    Answer(u8, u8, u64),
    Abandon(u8),
    Wait(u64),
    Shrink(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let number = 0..24_u8;
    prop_oneof![
        6 => number.clone().prop_map(Event::Look),
        4 => (number.clone(), any::<u8>(), 0..100_u64).prop_map(|(n, kind, ttl)| Event::Answer(n, kind, ttl)),
        1 => number.prop_map(Event::Abandon),
        2 => (0..20_u64).prop_map(Event::Wait),
        1 => (5..20_usize).prop_map(Event::Shrink),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_cache_is_the_model(events in prop::collection::vec(event(), 1..300)) {
        let mut limits = limits(12);
        let (mut cache, mut model, mut second) = (Cache::new(limits), Model::default(), 0);
        let mut looks = [0_u64; 4];
        for event in events {
            match event {
                Event::Look(n) => {
                    let found = cache.look(at(second), question(n));
                    prop_assert_eq!(&found, &model.look(second, question(n), &limits));
                    let kind = match found {
                        Look::Known(_) => 0,
                        Look::Ask => 1,
                        Look::Wait => 2,
                        Look::Full => 3,
                    };
                    looks[kind] += 1;
                }
                Event::Answer(n, kind, ttl) => {
                    cache.answered(at(second), question(n), reply(kind), Duration::from_secs(ttl));
                    model.answered(second, question(n), reply(kind), ttl, &limits);
                }
                Event::Abandon(n) => {
                    cache.abandoned(&question(n));
                    model.pending.retain(|other| *other != question(n));
                }
                Event::Wait(seconds) => second += seconds,
                Event::Shrink(entries) => {
                    limits.octets_max = entries * ENTRY_OCTETS;
                    cache.set_limits(limits);
                    model.balance(&limits);
                    model.shrink(&limits);
                }
            }
            let counts = cache.counts();
            let (once, again) = (Model::sum(&model.once), Model::sum(&model.again));
            prop_assert_eq!(counts.octets, (once + again) as u64);
            prop_assert!(once + again <= limits.octets_max);
            prop_assert_eq!(counts.entries, (model.once.len() + model.again.len()) as u64);
            prop_assert_eq!(counts.evicted, model.evicted);
            prop_assert_eq!([counts.hits, counts.misses, counts.shared, counts.full], looks);
            for n in 0..24 {
                let lives = |entry: &&(Question, Reply, u64)| entry.0 == question(n) && entry.2 > second;
                let kept = model.once.iter().chain(&model.again).find(lives);
                let kept = kept.map(|(_, reply, until)| (reply, Duration::from_secs(until - second)));
                prop_assert_eq!(cache.peek(at(second), &question(n)), kept);
            }
        }
    }
}

/// Each of very many addresses comes once.
#[test]
fn a_flood_of_clients_drives_out_no_client_that_comes_back() {
    const ENTRIES: usize = 1_000;
    let mut cache = Cache::new(Limits {
        octets_max: ENTRIES * ENTRY_OCTETS,
        pending_max: 1,
        ttl_max: Duration::from_secs(3_600),
        ..limits(0)
    });
    let ask = |cache: &mut Cache, number: u32| {
        let subject = Subject::Map(MapName::V4(number));
        let question = Question { zone: 0, subject };
        let look = cache.look(at(1), question);
        if look == Look::Ask {
            cache.answered(at(1), question, Reply::Map(Map::EMPTY), Duration::MAX);
        }
        look
    };
    let regulars = 0..500;
    for number in regulars.clone().chain(regulars.clone()) {
        ask(&mut cache, number);
    }
    for number in 1_000..200_000 {
        assert_eq!(ask(&mut cache, number), Look::Ask);
    }
    for number in regulars {
        assert!(
            matches!(ask(&mut cache, number), Look::Known(_)),
            "{number}"
        );
    }
    let counts = cache.counts();
    assert_eq!(counts.entries, ENTRIES as u64);
    assert_eq!(counts.misses, 500 + 199_000);
}

/// The clients of one /25 connect at once.
#[test]
fn equal_questions_ask_once() {
    let mut cache = Cache::new(limits(10));
    let mut looks = (0..500_u32).map(|n| {
        let client = Ipv4Addr::new(192, 0, 2, (n % 128) as u8);
        let (name, _) = MapName::of(client.into());
        let subject = Subject::Map(name);
        cache.look(at(1), Question { zone: 0, subject })
    });
    assert_eq!(looks.next(), Some(Look::Ask));
    assert!(looks.all(|look| look == Look::Wait));
    let counts = cache.counts();
    assert_eq!((counts.misses, counts.shared, counts.hits), (1, 499, 0));
}

#[test]
fn an_entry_is_as_large_as_it_counts() {
    let links = 2 * size_of::<usize>();
    let places = 4 * size_of::<usize>();
    let entry = size_of::<Question>() + size_of::<Kept>() + links + places;
    assert!(entry <= ENTRY_OCTETS, "{entry}");
}

/// The map of clients in a log would be long, and is nobody's business.
#[test]
fn a_segment_counts_an_entry_once_and_shows_none() {
    let mut segment = Segment::default();
    let kept = |octets| Kept {
        reply: Reply::Failed,
        until: at(1),
        octets,
    };
    segment.put(question(1), kept(200));
    segment.put(question(1), kept(160));
    segment.put(question(2), kept(170));
    assert_eq!((segment.len(), segment.octets()), (2, 330));
    assert_eq!(
        format!("{segment:?}"),
        "Segment { entries: 2, octets: 330 }"
    );
}
