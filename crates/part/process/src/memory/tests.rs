//! The ledger with invented time.

use super::ledger::{Ledger, Payer};
use super::{Call, Verdict};
use crate::places::Client;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
const MAX: usize = 64 * MIB;

/// A ledger of 64 MiB and the time that passes for it.
struct World {
    ledger: Ledger,
    now: Instant,
}

/// A connection that sends.
struct Sender {
    id: u64,
    octets: usize,
    call: Rc<Call>,
}

impl Sender {
    fn verdict(&self) -> Option<Verdict> {
        self.call.verdict.get()
    }
}

fn client(number: u8) -> Option<Client> {
    Some(Client::at(IpAddr::from([192, 0, 2, number])))
}

impl World {
    fn new() -> Self {
        let now = Instant::now();
        let mut ledger = Ledger::new(now);
        ledger.set_max(MAX);
        Self { ledger, now }
    }

    fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    fn begin(&mut self, client: Option<Client>, guest: bool, octets: usize) -> Sender {
        let call = Rc::<Call>::default();
        let owner = Payer { client, guest };
        let (id, _) = self
            .ledger
            .add((owner, Rc::clone(&call)), octets, false, self.now);
        Sender { id, octets, call }
    }

    /// A stranger's message.
    fn guest(&mut self, number: u8, octets: usize) -> Sender {
        self.begin(client(number), true, octets)
    }

    /// Sends more, and obeys what it was called to do.
    fn send(&mut self, sender: &mut Sender, octets: usize) {
        if sender.verdict().is_none() {
            sender.octets += octets;
            self.ledger.set(sender.id, sender.octets, false, self.now);
        }
        if sender.verdict().is_some() {
            self.ledger.remove(sender.id);
        }
    }

    /// Receives a whole message of a client that sends a MiB per second: whether it was taken.
    fn takes(&mut self, client: Option<Client>, guest: bool, octets: usize) -> bool {
        let mut sender = self.begin(client, guest, MIB.min(octets));
        while sender.octets < octets && sender.verdict().is_none() {
            self.pass(1);
            self.send(&mut sender, MIB);
        }
        let taken = sender.verdict().is_none();
        self.ledger.set(sender.id, sender.octets, true, self.now);
        let taken = taken && sender.verdict().is_none();
        self.ledger.remove(sender.id);
        taken
    }
}

/// Six connections held the bound and sent an octet every nine minutes: nobody else was served, for days.
#[test]
fn those_that_do_nothing_pay_for_those_that_come() {
    let mut world = World::new();
    let parked: Vec<Sender> = (1..=8).map(|number| world.guest(number, 7 * MIB)).collect();
    world.pass(5);
    assert!(world.takes(client(99), true, 20 * MIB));
    let called = parked.iter().filter(|one| one.verdict().is_some()).count();
    assert!((3..=5).contains(&called), "{called}");
    assert!(parked.iter().all(|one| one.verdict() != Some(Verdict::End)));
}

#[test]
fn the_one_that_holds_most_for_its_rate_goes_first() {
    let mut world = World::new();
    let mut slow = world.guest(1, 20 * MIB);
    let mut fast = world.guest(2, 2 * MIB);
    let mut small = world.guest(3, MIB);
    for _ in 0..20 {
        world.pass(1);
        world.send(&mut slow, 16 * 1024);
        world.send(&mut fast, MIB);
        world.send(&mut small, 64 * 1024);
    }
    // 14 MiB more than guests may hold together with these.
    let newcomers: Vec<_> = (10..14)
        .map(|number| world.guest(number, 7 * MIB))
        .collect();
    assert_eq!(slow.verdict(), Some(Verdict::Refuse));
    for one in newcomers.iter().chain([&fast, &small]) {
        assert_eq!(one.verdict(), None);
    }
}

#[test]
fn who_brought_next_to_nothing_for_a_minute_ends_while_memory_is_short() {
    let mut world = World::new();
    let mut idle: Vec<Sender> = (1..=3).map(|number| world.guest(number, MIB)).collect();
    for _ in 0..7 {
        world.pass(10);
        for one in &mut idle {
            world.send(one, 100);
        }
    }
    // As long as there is room nobody ends.
    let _one = world.guest(10, 14 * MIB);
    assert!(idle.iter().all(|one| one.verdict().is_none()));
    let _others = [11, 12, 13].map(|number| world.guest(number, 14 * MIB));
    assert!(idle.iter().all(|one| one.verdict() == Some(Verdict::End)));
}

/// Otherwise no long message would come to its end among many.
#[test]
fn where_all_move_well_the_last_to_begin_is_refused() {
    let mut world = World::new();
    let mut senders = Vec::new();
    let mut ended = 0;
    for number in 0..120 {
        world.pass(1);
        senders.push(world.guest(number, MIB));
        for one in &mut senders {
            world.send(one, MIB);
        }
        // A message has 30 MiB.
        ended += senders.iter().filter(|one| one.octets >= 30 * MIB).count();
        let over = |one: &Sender| one.verdict().is_some() || one.octets >= 30 * MIB;
        for one in senders.iter().filter(|one| over(one)) {
            world.ledger.remove(one.id);
        }
        senders.retain(|one| !over(one));
        assert!(world.ledger.here() <= MAX);
    }
    assert!(ended >= 3, "{ended}");
}

#[test]
fn one_client_holds_a_quarter_or_one_message() {
    let mut world = World::new();
    // One message of half the bound, alone.
    assert!(world.takes(client(1), true, 32 * MIB));
    let first = world.guest(1, 14 * MIB);
    world.pass(1);
    let second = world.guest(1, 4 * MIB);
    let called = [first.verdict(), second.verdict()];
    assert_eq!(called, [None, Some(Verdict::Refuse)]);
    // It is no business of others, and who hands over for many has no such bound.
    assert!(world.takes(client(2), true, 15 * MIB));
    let all: Vec<_> = (0..4).map(|_| world.begin(None, false, 9 * MIB)).collect();
    assert!(all.iter().all(|one| one.verdict().is_none()));
}

#[test]
fn a_reserve_is_left_to_those_who_have_authenticated() {
    let mut world = World::new();
    // They move: an octet a second is enough for that.
    let mut guests: Vec<Sender> = (1..=4)
        .map(|number| world.guest(number, 14 * MIB))
        .collect();
    world.pass(1);
    let newcomer = world.guest(5, MIB);
    assert_eq!(newcomer.verdict(), Some(Verdict::Refuse));
    world.ledger.remove(newcomer.id);
    for _ in 0..6 {
        world.pass(1);
        for one in &mut guests {
            world.send(one, 1);
        }
    }
    assert!(world.takes(client(6), false, 7 * MIB));
    assert!(guests.iter().any(|one| one.verdict().is_none()));
}

#[test]
fn a_message_that_is_being_stored_is_not_refused() {
    let mut world = World::new();
    let whole: Vec<_> = (1..=8)
        .map(|number| {
            let one = world.guest(number, 7 * MIB);
            world.ledger.set(one.id, one.octets, true, world.now);
            one
        })
        .collect();
    world.pass(300);
    // Nothing can be had back: the newcomer goes, whole or not.
    assert!(!world.takes(client(9), true, MIB));
    let newcomer = world.guest(9, MIB);
    assert_eq!(newcomer.verdict(), Some(Verdict::Refuse));
    assert!(whole.iter().all(|one| one.verdict().is_none()));
}

#[test]
fn what_is_short_is_relieved_before_anybody_is_turned_away() {
    let mut world = World::new();
    let parked = [1, 2, 3, 4].map(|number| world.guest(number, 14 * MIB - 1));
    assert!(world.ledger.is_at(95));
    world.pass(1);
    assert!(!world.ledger.relieve(90, world.now).any(), "they move");
    world.pass(2);
    let called = world.ledger.relieve(90, world.now);
    assert_eq!((called.refused, called.ended), (1, 0));
    assert!(!world.ledger.is_at(90));
    let heaviest = called.worst.expect("a client");
    assert_eq!(heaviest.octets, 14 * MIB - 1);
    assert_eq!(
        parked.iter().filter(|one| one.verdict().is_some()).count(),
        1
    );
}

#[test]
fn nothing_is_left_of_those_that_have_gone() {
    let mut world = World::new();
    let mut senders: Vec<Sender> = (0..200)
        .map(|number| world.begin(client(number % 7), number % 3 > 0, 400 * 1024))
        .collect();
    for one in &mut senders {
        world.pass(1);
        world.send(one, MIB);
    }
    assert!(world.ledger.here() > 0);
    for one in &senders {
        world.ledger.remove(one.id);
    }
    assert_eq!(world.ledger.here(), 0);
    assert_eq!(world.ledger.heaviest(), None);
    assert!(!world.ledger.is_at(1));
}

/// The last message of a client may be larger than its part: one of several goes on, whichever grows.
#[test]
fn of_one_clients_messages_one_goes_on() {
    let mut world = World::new();
    let mut all: Vec<Sender> = (0..5).map(|_| world.guest(1, MIB)).collect();
    for _ in 0..24 {
        for sender in &mut all {
            if sender.verdict().is_none() {
                sender.octets += MIB;
                // Those that were called have not heard of it yet.
                world.ledger.set(sender.id, sender.octets, false, world.now);
            }
        }
    }
    let going: Vec<usize> = (0..5).filter(|at| all[*at].verdict().is_none()).collect();
    assert_eq!(going.len(), 1);
    assert_eq!(world.ledger.heaviest().map(|most| most.messages), Some(1));
    all.iter().for_each(|one| world.ledger.remove(one.id));
    assert!(world.ledger.heaviest().is_none());
    assert_eq!(world.ledger.here(), 0);
}
