//! Several clients at one mailbox, with mixed commands at once: the belief of each client follows from nothing but
//! its responses, and in the end all clients believe the same, the true content of the mailbox.
//!
//! A round gives commands to some clients before reading any answer. [`view`] checks each response against the rules
//! of its command; [`world`] checks the knowledge of all clients together: no UID is used twice, no message changes
//! or is lost. A seed repeats the commands, though the server may order the commands otherwise.

mod client;
mod commands;
mod view;
mod wire;
mod world;

use std::net::SocketAddr;

use crate::harness::{Options, is_full, say, wait_until};
use crate::imap::{Imap, start_with_store};
use client::{Client, Kind};
use world::World;

/// Rounds between two checks of agreement.
const ROUNDS_BETWEEN: usize = 40;

/// `SplitMix64` (Steele, Lea, Flood 2014).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below another.
    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).expect("64 bits");
        usize::try_from(self.next() % end).expect("64 bits")
    }

    /// Whether an event with a probability of `times` percent happens.
    fn percent(&mut self, times: usize) -> bool {
        self.below(100) < times
    }

    fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// Prints the seed when a test fails.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            say(&format!(
                "the seed was {}: VERE_SEED={} gives the same commands",
                self.0, self.0
            ));
        }
    }
}

#[test]
fn all_clients_believe_what_is_there() {
    let given = std::env::var("VERE_SEED").ok();
    let given = given.map(|text| text.parse::<u64>().expect("VERE_SEED is a number"));
    let (seeds, rounds) = match (given, is_full()) {
        (Some(seed), full) => (seed..seed + 1, if full { 2_000 } else { 240 }),
        (None, true) => (1..41, 1_000),
        (None, false) => (1..4, 80),
    };
    let (_system, ports) = start_with_store(Options::default());
    for seed in seeds {
        let _named = Named(seed);
        let names = ["x", "y"].map(|name| format!("{name}{seed}"));
        let mut session = Imap::login(ports.imap, "alice@example.org", "secret");
        for name in &names {
            session.ok(&format!("CREATE {name}"));
        }
        run(ports.imap, seed, World::new(names.to_vec()), rounds);
    }
}

fn run(address: SocketAddr, seed: u64, mut world: World, rounds: usize) {
    let mut random = Random(seed);
    let kinds = [
        Kind::Plain,
        Kind::Rev2,
        Kind::Condstore,
        Kind::Qresync,
        Kind::Qresync,
    ];
    let mut clients: Vec<Client> = kinds
        .into_iter()
        .map(|kind| Client::new(address, kind))
        .collect();
    for round in 1..=rounds {
        let mut begun = Vec::new();
        for _ in 0..=random.below(3) {
            let number = random.below(clients.len());
            if !begun.contains(&number) && clients[number].begin(&mut random, &mut world) {
                begun.push(number);
            }
        }
        for number in begun {
            clients[number].finish(&mut world);
            if random.percent(60) {
                clients[number].learn(&mut world);
            }
        }
        if round % ROUNDS_BETWEEN == 0 || round == rounds {
            agree(address, &mut clients, &mut world);
        }
    }
    say(&format!("seed {seed}: {}", world.summary()));
}

/// All clients refresh, and then believe the true content.
fn agree(address: SocketAddr, clients: &mut [Client], world: &mut World) {
    for client in clients.iter_mut() {
        client.rest(world);
    }
    world.look(address);
    for client in clients {
        // A change is announced a moment after the change.
        wait_until("a client that believes what is there", || {
            client.noop(world);
            client.learn(world);
            client.agrees(world)
        });
    }
}
