//! Random events, against a model that searches plain maps.

use std::collections::{BTreeMap, HashSet};
use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;
use crate::{Rate, Reason, StaleTicket};

const DELAY: u64 = 1_700;
const DAY: u64 = 86_400_000;

#[derive(Debug, Clone, Copy)]
enum Event {
    Arrive(u8),
    Command(usize),
    Activity(usize),
    Recipient(usize),
    Answer(usize),
    Early(usize),
    Trusted(usize),
    End(usize),
    Evict,
    Pass(u64),
    SetBack(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let index = || any::<usize>();
    prop_oneof![
        6 => (0_u8..12).prop_map(Event::Arrive),
        3 => index().prop_map(Event::Command),
        1 => index().prop_map(Event::Activity),
        2 => index().prop_map(Event::Recipient),
        1 => index().prop_map(Event::Answer),
        1 => index().prop_map(Event::Early),
        1 => index().prop_map(Event::Trusted),
        2 => index().prop_map(Event::End),
        1 => Just(Event::Evict),
        4 => (0_u64..60_000).prop_map(Event::Pass),
        1 => (0_u64..3 * DAY).prop_map(Event::Pass),
        1 => (0_u64..3 * DAY).prop_map(Event::SetBack),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Banner,
    Silent,
    Talking,
    Asked,
    Trusted,
    Closing,
}

#[derive(Debug, Clone, Copy)]
struct Peer {
    client: u8,
    arrived: u64,
    since: u64,
    round: u32,
    stage: Stage,
}

impl Peer {
    fn is_live(self) -> bool {
        !matches!(self.stage, Stage::Trusted | Stage::Closing)
    }

    fn deadline(self) -> Option<(u64, Due)> {
        let deferred = Due::Decided(Decision::Defer(Reason::RecipientDeferred));
        let (end, due) = match self.stage {
            Stage::Silent => (self.since + 60_000, Due::Close(Reason::FirstCommand)),
            Stage::Talking => (self.since + 300_000, Due::Close(Reason::Idle)),
            Stage::Asked => (self.since + 20_000, deferred),
            _ => return None,
        };
        let trust = self.arrived + 600_000;
        Some(if trust < end {
            (trust, Due::Close(Reason::Slow))
        } else {
            (end, due)
        })
    }
}

const fn network(client: u8) -> u8 {
    client % 3
}

fn address(client: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, network(client), client).into()
}

struct Model {
    bench: Bench,
    peers: BTreeMap<Ticket, Peer>,
    gone: HashSet<Ticket>,
    passed: u64,
}

impl Model {
    fn new() -> Self {
        let mut terms = Terms::default();
        terms.banner.delay = Duration::from_millis(DELAY);
        terms.banner.familiar = Duration::ZERO;
        terms.limits.connections_max = 16;
        terms.limits.connections_per_address_max = 3;
        terms.limits.connections_per_network_max = 7;
        terms.limits.addresses = 16;
        terms.limits.networks = 16;
        terms.limits.arrivals_per_address = Rate::per_minute(1_000_000);
        terms.limits.arrivals_per_network = Rate::per_minute(1_000_000);
        Self {
            bench: Bench::new(terms),
            peers: BTreeMap::new(),
            gone: HashSet::new(),
            passed: 0,
        }
    }

    fn nth(&self, index: usize, wanted: impl Fn(Peer) -> bool) -> Option<Ticket> {
        let fit: Vec<Ticket> = self
            .peers
            .iter()
            .filter(|(_, peer)| wanted(**peer))
            .map(|(ticket, _)| *ticket)
            .collect();
        (!fit.is_empty()).then(|| fit[index % fit.len()])
    }

    fn arrive(&mut self, client: u8) {
        let count = |same: &dyn Fn(u8) -> bool| {
            let peers = self.peers.values();
            peers.filter(|peer| same(peer.client)).count()
        };
        let expected = if self.peers.len() >= 16 {
            Err(Reason::ConnectionsInAll)
        } else if count(&|other| other == client) >= 3 {
            Err(Reason::ConnectionsOfAddress)
        } else if count(&|other| network(other) == network(client)) >= 7 {
            Err(Reason::ConnectionsOfNetwork)
        } else {
            Ok(())
        };
        let found = self.bench.screen.arrive(self.bench.now, address(client));
        assert_eq!(found.map(|_| ()).map_err(|error| error.0), expected);
        if let Ok(Admitted { ticket, .. }) = found {
            assert!(!self.gone.contains(&ticket), "a ticket comes once");
            let peer = Peer {
                client,
                arrived: self.passed,
                since: self.passed,
                round: 0,
                stage: if self.was_trusted(client) {
                    Stage::Silent
                } else {
                    Stage::Banner
                },
            };
            assert!(self.peers.insert(ticket, peer).is_none());
        }
    }

    /// Whether the client was trusted at this very moment: the delay is remembered for no time.
    fn was_trusted(&mut self, client: u8) -> bool {
        let place = crate::place::Place::of(address(client));
        let screen = &mut self.bench.screen;
        let at = screen.crowd.addresses.entry(place).unwrap();
        let moment = screen.clock.at(self.bench.now);
        screen.crowd.addresses.at(at).trusted() == Some(moment)
    }

    fn step(&mut self, event: Event) {
        let now = self.bench.now;
        match event {
            Event::Arrive(client) => self.arrive(client),
            Event::Pass(millis) => {
                self.bench.pass(millis);
                self.passed += millis.min(DAY);
            }
            Event::SetBack(millis) => {
                self.bench.now = Timestamp::from_millis(now.as_millis() - millis);
            }
            Event::Evict => {
                let victim = self.bench.screen.evict();
                let peers = &self.peers;
                let stage = victim.map(|ticket| peers[&ticket].stage);
                let waits = peers.values().any(|peer| peer.stage == Stage::Banner);
                let lives = peers.values().any(|peer| peer.is_live());
                assert_eq!(victim.is_some(), lives);
                assert_eq!(stage == Some(Stage::Banner), waits);
                if let Some(ticket) = victim {
                    self.peers.get_mut(&ticket).unwrap().stage = Stage::Closing;
                }
            }
            Event::End(index) => {
                if let Some(ticket) = self.nth(index, |_| true) {
                    self.bench.screen.left(ticket).unwrap();
                    self.peers.remove(&ticket);
                    self.gone.insert(ticket);
                }
            }
            Event::Command(index)
            | Event::Activity(index)
            | Event::Recipient(index)
            | Event::Answer(index)
            | Event::Early(index)
            | Event::Trusted(index) => {
                if let Some(ticket) = self.nth(index, Peer::is_live) {
                    self.talk(event, ticket);
                }
            }
        }
    }

    fn talk(&mut self, event: Event, ticket: Ticket) {
        let (now, passed) = (self.bench.now, self.passed);
        let peer = self.peers.get_mut(&ticket).unwrap();
        let screen = &mut self.bench.screen;
        match event {
            Event::Command(_) => {
                screen.command(now, ticket).unwrap();
                (peer.stage, peer.since) = (Stage::Talking, passed);
            }
            Event::Activity(_) => {
                screen.activity(now, ticket).unwrap();
                if peer.stage == Stage::Talking {
                    peer.since = passed;
                }
            }
            Event::Recipient(_) => {
                let step = screen.recipient(now, ticket, "bob@example.net").unwrap();
                peer.round = asked(step).round;
                (peer.stage, peer.since) = (Stage::Asked, passed);
            }
            Event::Answer(_) => {
                let answer = Answer::Recipient(Recipient::Accepted);
                let decision = screen.answered(now, ticket, peer.round, answer).unwrap();
                let waits = peer.stage == Stage::Asked;
                assert_eq!(decision, waits.then_some(Decision::Accept));
                if waits {
                    (peer.stage, peer.since) = (Stage::Talking, passed);
                }
            }
            Event::Early(_) => {
                let decision = screen.spoke_early(ticket).unwrap();
                assert_eq!(decision.is_some(), peer.stage == Stage::Banner);
                if decision.is_some() {
                    peer.stage = Stage::Closing;
                }
            }
            _ => {
                screen.trusted(now, ticket).unwrap();
                peer.stage = Stage::Trusted;
            }
        }
    }

    /// Takes everything that is due and compares each event with the model.
    fn run(&mut self) {
        let passed = self.passed;
        while let Some((ticket, due)) = self.bench.screen.due(self.bench.now) {
            let peer = self.peers.get_mut(&ticket).unwrap();
            if due == Due::Greet {
                assert_eq!(peer.stage, Stage::Banner);
                assert!(peer.arrived + DELAY <= passed);
                (peer.stage, peer.since) = (Stage::Silent, passed);
                continue;
            }
            let (deadline, expected) = peer.deadline().unwrap();
            assert_eq!(due, expected);
            assert!(deadline <= passed, "too early");
            peer.since = passed;
            peer.stage = match due {
                Due::Decided(_) => Stage::Talking,
                _ => Stage::Closing,
            };
        }
        let next = self.bench.screen.next_due();
        let wait = next.map(|next| next.saturating_since(self.bench.now));
        for peer in self.peers.values() {
            let end = match peer.stage {
                Stage::Banner => peer.arrived + DELAY,
                _ => match peer.deadline() {
                    Some((deadline, _)) => deadline.next_multiple_of(1_000),
                    None => continue,
                },
            };
            assert!(end > passed, "a deadline was missed: {peer:?}");
            let wait = wait.unwrap().as_millis() as u64;
            assert!(passed + wait <= end, "the host would wake too late");
        }
    }

    fn check_stale(&mut self) {
        let now = self.bench.now;
        for ticket in self.gone.iter().take(5) {
            assert_eq!(self.bench.screen.command(now, *ticket), Err(StaleTicket));
            assert_eq!(self.bench.screen.left(*ticket), Err(StaleTicket));
        }
        assert_eq!(self.bench.screen.open() as usize, self.peers.len());
    }

    fn finish(mut self) {
        for ticket in self.peers.into_keys() {
            self.bench.screen.left(ticket).unwrap();
        }
        let crowd = &self.bench.screen.crowd;
        assert_eq!(self.bench.screen.open(), 0);
        assert_eq!(crowd.addresses.open_sum(), 0);
        assert_eq!(crowd.networks.open_sum(), 0);
        assert!(crowd.networks.fullest().is_none());
        assert_eq!(self.bench.screen.next_due(), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_does_as_the_model(events in proptest::collection::vec(event(), 1..300)) {
        let mut model = Model::new();
        model.run();
        for event in events {
            model.step(event);
            model.run();
            model.check_stale();
        }
        model.finish();
    }
}
