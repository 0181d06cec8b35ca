//! Traces through the cache of answers: with maps of 128 neighbours, and with single addresses (Figures 13 and 15).

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use vere_dnsbl::cache::{Cache, Limits, Look, Question, Reply, Subject};
use vere_dnsbl::{Map, MapName};
use vere_units::Timestamp;

use super::delays;
use super::plan::SEEDS;
use super::questions::VALUE;
use super::random::Random;
use super::results::Results;
use super::trace::Trace;

/// The systems of these figures.
pub(super) const MAPS: &str = "maps";
pub(super) const ADDRESSES: &str = "addresses";

/// The life of an answer in the paper.
pub(super) const LIFE: Duration = Duration::from_secs(86_400);

/// The bounds of the cache as shipped.
const LIMITS: Limits = Limits {
    octets_max: 32 << 20,
    pending_max: 10_000,
    ttl_min: Duration::from_secs(60),
    ttl_max: Duration::from_secs(86_400),
    failure_life: Duration::from_secs(5),
};

/// Times up to which look-ups are counted, in ms.
pub(super) const WITHIN_MS: [u64; 8] = [1, 10, 30, 60, 100, 200, 500, 1_000];

/// What is asked about a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Maps,
    Addresses,
}

impl Way {
    const ALL: [Self; 2] = [Self::Addresses, Self::Maps];

    const fn name(self) -> &'static str {
        match self {
            Self::Maps => MAPS,
            Self::Addresses => ADDRESSES,
        }
    }
}

/// The name of a trace in figures.
fn trace_of(seed: u64) -> String {
    format!("trace {seed}")
}

/// The figures with bars.
pub(super) fn queries(seed: u64) -> String {
    format!("{}: queries", trace_of(seed))
}

pub(super) fn gained(seed: u64) -> String {
    format!("{}: hits gained", trace_of(seed))
}

/// Sends each trace through the cache.
pub(super) fn measure(results: &mut Results) {
    for seed in SEEDS {
        let trace = Trace::local(seed);
        let hits = hits(&trace, &trace_of(seed), results);
        let figures = &mut results.figures;
        figures.add(MAPS, gained(seed), hits[1] - hits[0], "points");
        for (system, prefix) in [(ADDRESSES, 0), (MAPS, 8)] {
            let gaps = trace.gaps(|client| client.to_bits() >> prefix);
            let name = format!("{}: half of the arrivals within", trace_of(seed));
            figures.add(system, name, gaps[gaps.len() / 2] / 60.0, "minutes");
        }
    }
    hits(&Trace::uniform(1), "without locality", results);
}

/// Adds the queries and hits of a trace; returns the percentage of hits of each way.
fn hits(trace: &Trace, name: &str, results: &mut Results) -> [f64; 2] {
    Way::ALL.map(|way| {
        let Through { known, listed } = through(trace, way);
        if listed < known.len() {
            let others = known.len() - listed;
            let way = way.name();
            results.trouble(format!(
                "{name}: {way}: {others} listed clients do not count as listed"
            ));
        }
        let hits = known.iter().filter(|known| **known).count();
        let queries = known.len() - hits;
        let hits = hits as f64 * 100.0 / known.len().max(1) as f64;
        let figures = &mut results.figures;
        figures.add(
            way.name(),
            format!("{name}: queries"),
            queries as f64,
            "queries",
        );
        figures.add(way.name(), format!("{name}: hits"), hits, "%");
        hits
    })
}

/// Times of look-ups for the first trace, where a miss takes the time of the slowest of six lists.
pub(super) fn lookups(results: &mut Results) {
    let trace = Trace::local(*SEEDS.start());
    for way in Way::ALL {
        let mut random = Random::new(*SEEDS.start());
        let mut time = |known: bool| {
            // Both ways meet the same times at the same connections.
            let time = delays::slowest(&mut random);
            if known { Duration::ZERO } else { time }
        };
        let mut times: Vec<Duration> = through(&trace, way)
            .known
            .into_iter()
            .map(&mut time)
            .collect();
        times.sort_unstable();
        let count = times.len().max(1) as f64;
        for ms in WITHIN_MS {
            let within = times.partition_point(|time| *time <= Duration::from_millis(ms));
            let share = within as f64 * 100.0 / count;
            results.figures.add(way.name(), looked_up(ms), share, "%");
        }
        let mean = times.iter().sum::<Duration>().as_secs_f64() * 1e3 / count;
        results.figures.add(way.name(), "look-up: mean", mean, "ms");
    }
}

/// The figure of look-ups that end within a time.
pub(super) fn looked_up(ms: u64) -> String {
    format!("look-up: within {ms} ms")
}

/// Whether the cache knows the answer at each connection.
///
/// The list answers at once: two connections at the same time have one query.
fn through(trace: &Trace, way: Way) -> Through {
    let maps = maps_of(&trace.listed);
    let mut cache = Cache::new(LIMITS);
    let mut found = Through::default();
    for visit in &trace.visits {
        let now = Timestamp::from_millis(visit.at.as_millis() as u64);
        let (name, neighbour) = MapName::of(visit.client.into());
        let map = maps.get(&name).copied().unwrap_or_default();
        let (subject, answer) = match way {
            Way::Maps => (Subject::Map(name), Reply::Map(map)),
            Way::Addresses => {
                let codes = map.contains(neighbour).then_some(VALUE);
                let subject = Subject::Codes(visit.client.into());
                (subject, Reply::Codes(codes.into_iter().collect()))
            }
        };
        let question = Question { zone: 0, subject };
        let reply = match cache.look(now, question) {
            Look::Known(reply) => {
                found.known.push(true);
                reply
            }
            Look::Ask | Look::Wait | Look::Full => {
                found.known.push(false);
                cache.answered(now, question, answer.clone(), LIFE);
                answer
            }
        };
        found.listed += usize::from(match reply {
            Reply::Map(map) => map.contains(neighbour),
            Reply::Codes(codes) => codes.contains(&VALUE),
            Reply::Text(_) | Reply::Failed => false,
        });
    }
    found
}

/// A trace behind a cache.
#[derive(Debug, Default)]
struct Through {
    /// Whether the cache knew the answer, for each connection.
    known: Vec<bool>,
    /// Connections whose client counts as listed.
    listed: usize,
}

fn maps_of(listed: &[Ipv4Addr]) -> HashMap<MapName, Map> {
    let mut maps: HashMap<MapName, Map> = HashMap::new();
    for address in listed {
        let (name, neighbour) = MapName::of((*address).into());
        maps.entry(name).or_default().insert(neighbour);
    }
    maps
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The independent model of a cache without bounds: a key is known from its answer until the answer's life ends.
    pub(in crate::dnsbl) struct Model;

    impl Model {
        /// Queries for single addresses.
        pub(in crate::dnsbl) fn of_addresses(trace: &Trace) -> usize {
            let known = Self::known(trace, 32);
            known.iter().filter(|known| !**known).count()
        }

        /// Whether each connection finds its key, the first bits of the client.
        fn known(trace: &Trace, prefix: u32) -> Vec<bool> {
            let mut answered: HashMap<u32, Duration> = HashMap::new();
            let visits = trace.visits.iter();
            let known = visits.map(|visit| {
                let key = visit.client.to_bits() >> (32 - prefix);
                let is_known = answered.get(&key).is_some_and(|at| visit.at < *at + LIFE);
                if !is_known {
                    answered.insert(key, visit.at);
                }
                is_known
            });
            known.collect()
        }
    }

    #[test]
    fn the_cache_equals_the_model_at_every_connection() {
        for trace in [Trace::local(1), Trace::local(2), Trace::uniform(1)] {
            for (way, prefix) in [(Way::Addresses, 32), (Way::Maps, 25)] {
                let found = through(&trace, way);
                assert!(found.known == Model::known(&trace, prefix), "{way:?}");
                assert_eq!(found.listed, trace.visits.len());
            }
        }
    }

    #[test]
    fn figures_are_counts_of_the_model() {
        let mut results = Results {
            header: crate::output::Header::new("dnsbl", true, std::path::Path::new("/")),
            figures: crate::figures::Figures::default(),
            troubles: Vec::new(),
        };
        let trace = Trace::local(3);
        let [addresses, maps] = hits(&trace, "x", &mut results);
        let queries = Model::of_addresses(&trace) as f64;
        assert_eq!(
            results.figures.median(ADDRESSES, "x: queries"),
            Some(queries)
        );
        let share = queries * 100.0 / trace.visits.len() as f64;
        assert!((100.0 - share - addresses).abs() < 1e-9 && maps > addresses);
        assert!(results.troubles.is_empty());
    }
}
