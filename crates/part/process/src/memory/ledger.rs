//! Who holds memory for messages on the way, and who lets go first when it is short. Time is an argument.
//!
//! Of those that hold memory, first those end that brought less than [`RATE_MIN`] over the last minute. Then those are
//! refused that stand still or take longer than [`DRAG`] for what they hold, the longest first. Where all messages
//! move well, the newest message is refused, so that older messages reach their ends.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::call::{Call, Verdict};
use crate::places::Client;

/// Octets per second over the last minute below which a connection that holds memory ends while it is short.
const RATE_MIN: u64 = 1024;
/// What the minute is cut into.
const SLOT: Duration = Duration::from_secs(5);
const SLOTS: usize = 12;
/// Time constant of the measured rate, in seconds, about: each elapsed slot halves the weight of earlier octets.
const RATE_SECONDS: u64 = 8;
/// A connection without an octet for this long is stalled.
const STILL: Duration = Duration::from_secs(2);
/// A message whose octets took longer than this at its rate, in seconds, is refused before faster messages.
const DRAG: u64 = 120;
/// Divisor of the limit: the part reserved for authenticated clients.
const RESERVE_DIVISOR: usize = 8;
/// Divisor of the limit: the part that one client may hold with more than one message.
const CLIENT_DIVISOR: usize = 4;
/// Divisor of the limit: the extra part freed from slow messages in one go, since ranking all messages takes a while.
const RELIEF_DIVISOR: usize = 64;

/// The party that holds octets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Payer {
    /// The client whose limit applies.
    pub(super) client: Option<Client>,
    /// Whether the client is unauthenticated.
    pub(super) guest: bool,
}

/// A client and the octets of all its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heaviest {
    /// The client.
    pub client: Client,
    /// Octets in memory or on disk.
    pub octets: usize,
    /// Messages with these octets.
    pub messages: usize,
}

/// Counts of the messages refused and connections ended by one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Called {
    /// Messages refused.
    pub(super) refused: u64,
    /// Connections ended.
    pub(super) ended: u64,
    /// Client with the most octets among them.
    pub(super) worst: Option<Heaviest>,
}

impl Called {
    pub(super) const fn any(&self) -> bool {
        self.refused + self.ended > 0
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            refused: self.refused + other.refused,
            ended: self.ended + other.ended,
            worst: [self.worst, other.worst]
                .into_iter()
                .flatten()
                .max_by_key(|worst| worst.octets),
        }
    }
}

/// The limits, and the connections that hold octets.
#[derive(Debug)]
pub(super) struct Ledger {
    max: usize,
    /// The beginning of slot 0.
    epoch: Instant,
    last: u64,
    holders: HashMap<u64, Holder>,
    clients: HashMap<Client, Sum>,
    /// Octets of all messages that were not refused.
    all: usize,
    /// Octets of unauthenticated clients among them.
    guests: usize,
    /// Octets of refused messages that are not freed yet.
    leaving: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    octets: usize,
    /// Messages that were not refused.
    messages: usize,
}

#[derive(Debug)]
struct Holder {
    owner: Payer,
    octets: usize,
    /// When the message began to come.
    began: Instant,
    /// When octets last came.
    last: Instant,
    pace: Pace,
    state: State,
    call: Rc<Call>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Coming,
    /// Here as a whole; it is being made safe.
    Whole,
    Called,
}

/// Who goes before whom: the greatest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Moves well; began then.
    Moves(Instant),
    /// Slow message: the time, in seconds, that its octets took at its rate.
    Drags(u64),
    /// Next to no octets in the last minute.
    Idles,
}

/// Among whom to look.
#[derive(Debug, Clone, Copy)]
enum Among {
    All,
    Guests,
    Client(Client),
}

impl Among {
    fn has(self, owner: Payer) -> bool {
        match self {
            Self::All => true,
            Self::Guests => owner.guest,
            Self::Client(client) => owner.client == Some(client),
        }
    }
}

impl Ledger {
    pub(super) fn new(epoch: Instant) -> Self {
        Self {
            max: 0,
            epoch,
            last: 0,
            holders: HashMap::new(),
            clients: HashMap::new(),
            all: 0,
            guests: 0,
            leaving: 0,
        }
    }

    pub(super) fn set_max(&mut self, max: usize) {
        self.max = max;
    }

    /// Returns the octets in use, refused messages included.
    pub(super) const fn here(&self) -> usize {
        self.all + self.leaving
    }

    /// Adds an entry. Returns the number of the entry, and the connections called to make space.
    pub(super) fn add(
        &mut self,
        (owner, call): (Payer, Rc<Call>),
        octets: usize,
        whole: bool,
        now: Instant,
    ) -> (u64, Called) {
        self.last += 1;
        let holder = Holder {
            owner,
            octets: 0,
            began: now,
            last: now,
            pace: Pace::default(),
            state: State::Coming,
            call,
        };
        self.holders.insert(self.last, holder);
        if let Some(client) = owner.client {
            self.clients.entry(client).or_default().messages += 1;
        }
        (self.last, self.set(self.last, octets, whole, now))
    }

    /// Takes note of what an entry holds now: who was called for it, the entry itself maybe.
    pub(super) fn set(&mut self, id: u64, octets: usize, whole: bool, now: Instant) -> Called {
        let slot = self.slot(now);
        self.leave(id);
        let Some(holder) = self.holders.get_mut(&id) else {
            return Called::default();
        };
        match octets.checked_sub(holder.octets) {
            Some(more) => holder.pace.add(slot, more),
            // Fewer octets than before: the next message has begun.
            None => {
                holder.began = now;
                holder.pace.add(slot, octets);
            }
        }
        holder.octets = octets;
        holder.last = now;
        holder.state = if whole { State::Whole } else { State::Coming };
        let owner = holder.owner;
        self.join(owner, octets);
        let called = self.settle(owner, now);
        if whole && self.is_over(owner) {
            // Whole messages of other connections cannot be refused any more, so this message is refused.
            return called.and(self.call(id, Verdict::Refuse));
        }
        called
    }

    /// Removes an entry that holds no octets.
    pub(super) fn remove(&mut self, id: u64) {
        self.leave(id);
        let Some(holder) = self.holders.remove(&id) else {
            return;
        };
        let Some(client) = holder.owner.client else {
            return;
        };
        if self
            .clients
            .get(&client)
            .is_some_and(|sum| sum.messages == 0)
        {
            self.clients.remove(&client);
        }
    }

    /// Whether guests hold this percentage of what is theirs, or all hold it of everything.
    pub(super) fn is_at(&self, percent: u32) -> bool {
        let at = |held: usize, max: usize| {
            held as u128 * 100 >= max as u128 * u128::from(percent) && held > 0
        };
        at(self.guests, self.guests_max()) || at(self.all, self.max)
    }

    /// Refuses stalled messages until unauthenticated clients and all clients are below this percentage.
    pub(super) fn relieve(&mut self, percent: u32, now: Instant) -> Called {
        let part = |max: usize| {
            let part = max as u128 * u128::from(percent) / 100;
            usize::try_from(part).unwrap_or(max)
        };
        let (guests, all) = (part(self.guests_max()), part(self.max));
        let excess = self.guests.saturating_sub(guests);
        let called = self.free((Among::Guests, excess), false, now);
        let excess = self.all.saturating_sub(all);
        called.and(self.free((Among::All, excess), false, now))
    }

    /// The client that holds most.
    pub(super) fn heaviest(&self) -> Option<Heaviest> {
        let heaviest = self.clients.iter().max_by_key(|(_, sum)| sum.octets);
        heaviest.map(|(client, sum)| Heaviest {
            client: *client,
            octets: sum.octets,
            messages: sum.messages,
        })
    }

    fn slot(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.epoch);
        since.as_secs() / SLOT.as_secs()
    }

    const fn guests_max(&self) -> usize {
        self.max - self.max / RESERVE_DIVISOR
    }

    /// What one client holds above its part; a single message has no such bound.
    fn excess_of(&self, client: Client) -> usize {
        match self.clients.get(&client) {
            Some(sum) if sum.messages > 1 => sum.octets.saturating_sub(self.max / CLIENT_DIVISOR),
            _ => 0,
        }
    }

    fn is_over(&self, owner: Payer) -> bool {
        self.all > self.max
            || owner.guest && self.guests > self.guests_max()
            || owner
                .client
                .is_some_and(|client| self.excess_of(client) > 0)
    }

    /// Calls whom it takes to come below every bound that `owner` has a part in.
    fn settle(&mut self, owner: Payer, now: Instant) -> Called {
        let mut called = Called::default();
        if let Some(client) = owner.client {
            let excess = self.excess_of(client);
            if excess > 0 {
                called = called.and(self.free((Among::Client(client), excess), true, now));
            }
        }
        let excess = self.guests.saturating_sub(self.guests_max());
        if owner.guest && excess > 0 {
            called = called.and(self.free((Among::Guests, excess), true, now));
        }
        let excess = self.all.saturating_sub(self.max);
        if excess > 0 {
            called = called.and(self.free((Among::All, excess), true, now));
        }
        called
    }

    /// Calls holders in the order of their rank: every idle connection, and slow messages until `excess` octets are
    /// free. Fast messages follow only if `movers` is set.
    fn free(&mut self, (among, excess): (Among, usize), movers: bool, now: Instant) -> Called {
        let slot = self.slot(now);
        let coming = self.holders.iter().filter(|(_, holder)| {
            holder.state == State::Coming && holder.octets > 0 && among.has(holder.owner)
        });
        let mut ranked: Vec<(Rank, usize, u64)> = coming
            .map(|(id, holder)| (holder.rank(slot, now), holder.octets, *id))
            .collect();
        // Of equals the larger goes first, then the later.
        ranked.sort_unstable_by(|one, other| other.cmp(one));
        let with_relief = match excess {
            0 => 0,
            _ => excess.saturating_add(self.max / RELIEF_DIVISOR),
        };
        let (mut called, mut freed) = (Called::default(), 0_usize);
        for (rank, octets, id) in ranked {
            if self.is_last(among) {
                break;
            }
            let verdict = match rank {
                Rank::Idles => Verdict::End,
                Rank::Drags(_) if freed < with_relief => Verdict::Refuse,
                Rank::Moves(_) if movers && freed < excess => Verdict::Refuse,
                Rank::Drags(_) | Rank::Moves(_) => continue,
            };
            freed = freed.saturating_add(octets);
            called = called.and(self.call(id, verdict));
        }
        called
    }

    /// Whether a client has one message only, which may be larger than its part.
    fn is_last(&self, among: Among) -> bool {
        match among {
            Among::Client(client) => self
                .clients
                .get(&client)
                .is_none_or(|sum| sum.messages <= 1),
            Among::All | Among::Guests => false,
        }
    }

    fn call(&mut self, id: u64, verdict: Verdict) -> Called {
        let Some(owner) = self.holders.get(&id).map(|holder| holder.owner) else {
            return Called::default();
        };
        let worst = owner.client.map(|client| {
            let sum = self.clients.get(&client).copied().unwrap_or_default();
            Heaviest {
                client,
                octets: sum.octets,
                messages: sum.messages,
            }
        });
        self.leave(id);
        if let Some(holder) = self.holders.get_mut(&id) {
            holder.state = State::Called;
            self.leaving += holder.octets;
            holder.call.tell(verdict);
        }
        Called {
            refused: u64::from(verdict == Verdict::Refuse),
            ended: u64::from(verdict == Verdict::End),
            worst,
        }
    }

    /// Takes an entry out of the sums.
    fn leave(&mut self, id: u64) {
        let Some(holder) = self.holders.get(&id) else {
            return;
        };
        let (owner, octets) = (holder.owner, holder.octets);
        if holder.state == State::Called {
            self.leaving = self.leaving.saturating_sub(octets);
            return;
        }
        self.all = self.all.saturating_sub(octets);
        if owner.guest {
            self.guests = self.guests.saturating_sub(octets);
        }
        if let Some(sum) = owner
            .client
            .and_then(|client| self.clients.get_mut(&client))
        {
            sum.octets = sum.octets.saturating_sub(octets);
            sum.messages = sum.messages.saturating_sub(1);
        }
    }

    fn join(&mut self, owner: Payer, octets: usize) {
        self.all = self.all.saturating_add(octets);
        if owner.guest {
            self.guests = self.guests.saturating_add(octets);
        }
        if let Some(client) = owner.client {
            let sum = self.clients.entry(client).or_default();
            sum.octets = sum.octets.saturating_add(octets);
            sum.messages = sum.messages.saturating_add(1);
        }
    }
}

impl Holder {
    fn rank(&self, slot: u64, now: Instant) -> Rank {
        let held = now.saturating_duration_since(self.began);
        let minute = SLOT.as_secs() * SLOTS as u64;
        if held.as_secs() >= minute && self.pace.octets(slot) < RATE_MIN * minute {
            return Rank::Idles;
        }
        let seconds = self.octets as u64 * RATE_SECONDS / self.pace.recent(slot).max(1);
        let still = now.saturating_duration_since(self.last) >= STILL;
        match seconds > DRAG || still {
            true => Rank::Drags(seconds),
            false => Rank::Moves(self.began),
        }
    }
}

/// Octets that came over the last minute.
#[derive(Debug, Default)]
struct Pace {
    /// The last slot in which octets came; each slot stands at its number modulo their count.
    slot: u64,
    octets: [u64; SLOTS],
}

impl Pace {
    fn add(&mut self, slot: u64, octets: usize) {
        let gone = slot.saturating_sub(self.slot).min(SLOTS as u64);
        for back in 0..gone {
            self.octets[place(slot - back)] = 0;
        }
        self.slot = self.slot.max(slot);
        self.octets[place(self.slot)] += octets as u64;
    }

    /// Of the minute before the end of `slot`.
    fn octets(&self, slot: u64) -> u64 {
        (0..SLOTS as u64).map(|back| self.at(slot, back)).sum()
    }

    /// The same, halved with each slot that has gone.
    fn recent(&self, slot: u64) -> u64 {
        (0..SLOTS as u64)
            .map(|back| self.at(slot, back) >> back)
            .sum()
    }

    fn at(&self, slot: u64, back: u64) -> u64 {
        match slot.checked_sub(back) {
            Some(one) if one <= self.slot && self.slot - one < SLOTS as u64 => {
                self.octets[place(one)]
            }
            _ => 0,
        }
    }
}

fn place(slot: u64) -> usize {
    usize::try_from(slot % SLOTS as u64).unwrap_or(0)
}
