//! Response-rate limiting: a server that answers spoofed addresses must not be worth an attacker's while.
//!
//! Two things are bounded. Each network of clients gets a rate of answers of each kind, by a leaky bucket; the buckets
//! lie in a table of fixed size. All networks together get a rate of *surplus*: octets of answers beyond 1.25 times the
//! octets of their queries; without that bound a flood that pretends to come from everywhere would be multiplied. A flood
//! of F octets a second gets 1.25 + surplus / F octets for each of its own at most.
//!
//! An answer over a bound is dropped, but every Nth comes as a stub with the bit TC: a true client asks again over TCP,
//! where no address can be spoofed. Clients with a good cookie are not limited; the host does not ask about them.
//!
//! Time is an argument: milliseconds of a clock that does not jump; the count may wrap.

use std::hash::Hasher as _;
use std::net::IpAddr;

use siphasher::sip::SipHasher13;

/// Bits of a network of IPv4 clients, as BIND and Knot have them.
const IPV4_PREFIX: u32 = 24;
/// Bits of a network of IPv6 clients.
const IPV6_PREFIX: u32 = 56;
/// Slots of a set: the places in which a network may be.
const SET: usize = 4;
/// A level of 1 answer.
const ANSWER: u32 = 1_000;
/// The highest rate; levels of one second still fit into 32 bits.
const RATE_MAX: u32 = 1_000_000;

/// The kind of an answer, each of which has a rate of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    /// The answer has records.
    Positive = 0,
    /// The name or the type does not exist.
    Negative = 1,
    /// The query was refused, or could not be read.
    Error = 2,
}

/// The bounds of a [`Limiter`]. A rate of 0 is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Answers of each [`AnswerKind`] per second to a network.
    pub per_network: [u32; 3],
    /// Octets of surplus per second to all networks.
    pub surplus: u32,
    /// One of so many limited answers becomes a stub: 1 makes stubs of all, 0 drops all.
    pub slip: u32,
    /// Networks in the table, rounded up to a power of two.
    pub networks: usize,
}

/// What becomes of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The answer goes out.
    Send,
    /// A stub with the bit TC goes out.
    Slip,
    /// Nothing goes out.
    Drop,
}

/// The state of the limits, for one thread.
#[derive(Debug)]
pub struct Limiter {
    rates: Rates,
    keys: (u64, u64),
    sets: Box<[[Slot; SET]]>,
    surplus: Surplus,
    /// Limited answers for the sake of the surplus.
    limited: u32,
}

/// A network and a kind of answer in the table.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Network and kind; 0 for an empty slot.
    key: u64,
    bucket: Bucket,
    limited: u32,
}

/// A leaky bucket: the level sinks with time.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    level: u32,
    /// When the level was right, in milliseconds.
    at: u32,
}

impl Bucket {
    /// Lets the level sink until now; `leak` is per millisecond.
    fn sink(&mut self, leak: u32, now: u32) {
        let passed = now.wrapping_sub(self.at);
        self.level = self.level.saturating_sub(passed.saturating_mul(leak));
        self.at = now;
    }

    /// Adds to the level unless that exceeds `most`. An empty bucket takes anything.
    fn add(&mut self, amount: u32, most: u32) -> bool {
        let level = self.level.saturating_add(amount);
        let fits = level <= most || self.level == 0;
        if fits {
            self.level = level;
        }
        fits
    }
}

/// The bucket of all networks, in thousandths of an octet: small shares of a rate have to sink at their own speed.
#[derive(Debug, Clone, Copy, Default)]
struct Surplus {
    level: u64,
    /// When the level was right, in milliseconds.
    at: u32,
}

impl Surplus {
    /// The octets of an answer that count: those beyond 1.25 times the octets of the query.
    const fn of(query: usize, answer: usize) -> u64 {
        answer.saturating_sub(query.saturating_add(query / 4)) as u64
    }

    /// Adds octets, unless they exceed those of a quarter of a second: a longer time would be a gift to the first seconds
    /// of a flood. An empty bucket takes anything.
    fn add(&mut self, octets: u64, rate: u32, now: u32) -> bool {
        let passed = u64::from(now.wrapping_sub(self.at));
        self.at = now;
        // A rate per second in octets is one per millisecond in thousandths.
        let sunk = passed.saturating_mul(rate.into());
        self.level = self.level.saturating_sub(sunk);
        let level = self.level.saturating_add(octets.saturating_mul(1_000));
        let fits = level <= u64::from(rate) * 250 || self.level == 0;
        if fits {
            self.level = level;
        }
        fits
    }
}

impl Limiter {
    /// Makes the table. `secret` keeps others from choosing networks that meet in one set.
    #[must_use]
    pub fn new(rates: Rates, secret: (u64, u64)) -> Self {
        let sets = rates.networks.div_ceil(SET).next_power_of_two();
        let [positive, negative, error] = rates.per_network.map(|rate| rate.min(RATE_MAX));
        Self {
            rates: Rates {
                per_network: [positive, negative, error],
                ..rates
            },
            keys: secret,
            sets: vec![[Slot::default(); SET]; sets].into_boxed_slice(),
            surplus: Surplus::default(),
            limited: 0,
        }
    }

    /// Decides about an answer of `answer` octets to a query of `query` octets that may be spoofed.
    pub fn check(
        &mut self,
        client: IpAddr,
        kind: AnswerKind,
        (query, answer): (usize, usize),
        now: u32,
    ) -> Verdict {
        let slip = self.rates.slip;
        let rate = self.rates.per_network[kind as usize];
        if rate > 0 {
            let slot = self.slot(client, kind, rate, now);
            if !slot.bucket.add(ANSWER, rate * ANSWER) {
                slot.limited = slot.limited.wrapping_add(1);
                return limited(slot.limited, slip);
            }
        }
        let surplus = Surplus::of(query, answer);
        if self.rates.surplus == 0 || surplus == 0 {
            return Verdict::Send;
        }
        match self.surplus.add(surplus, self.rates.surplus, now) {
            true => Verdict::Send,
            false => {
                self.limited = self.limited.wrapping_add(1);
                limited(self.limited, slip)
            }
        }
    }

    /// The slot of a network. A network without one gets the slot of the network in its set with the lowest level, and
    /// its level too: a bucket at 0 is no loss, and a flood of new networks empties none.
    fn slot(&mut self, client: IpAddr, kind: AnswerKind, rate: u32, now: u32) -> &mut Slot {
        let key = key(client, kind);
        let mut hasher = SipHasher13::new_with_keys(self.keys.0, self.keys.1);
        hasher.write_u64(key);
        let place = hasher.finish() as usize & (self.sets.len() - 1);
        let set = &mut self.sets[place];
        let known = set.iter().position(|slot| slot.key == key);
        let found = known.unwrap_or_else(|| {
            for slot in set.iter_mut() {
                let kind = (slot.key >> 1 & 3) as usize;
                let rate = self.rates.per_network.get(kind).copied();
                slot.bucket.sink(rate.unwrap_or_default(), now);
            }
            let calmest = (0..SET).min_by_key(|place| set[*place].bucket.level);
            let calmest = calmest.unwrap_or_default();
            set[calmest].key = key;
            calmest
        });
        let slot = &mut set[found];
        slot.bucket.sink(rate, now);
        slot
    }
}

/// What becomes of the `count`th answer over a bound.
const fn limited(count: u32, slip: u32) -> Verdict {
    match slip > 0 && count.is_multiple_of(slip) {
        true => Verdict::Slip,
        false => Verdict::Drop,
    }
}

/// Network and kind in one number; 0 is no key.
fn key(client: IpAddr, kind: AnswerKind) -> u64 {
    let (network, family) = match client.to_canonical() {
        IpAddr::V4(address) => (u64::from(address.to_bits() >> (32 - IPV4_PREFIX)), 0),
        IpAddr::V6(address) => ((address.to_bits() >> (128 - IPV6_PREFIX)) as u64, 1),
    };
    network << 4 | family << 3 | (kind as u64) << 1 | 1
}

#[cfg(test)]
mod tests;
