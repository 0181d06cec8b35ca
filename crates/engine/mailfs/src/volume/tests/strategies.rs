//! Groups whose accounts have different speeds.

use super::*;
use crate::volume::Strategy;

const ROOT: Inode = Inode::ROOT;

impl World {
    /// A slow account carries out a request behind its other ones.
    pub(super) fn queue(&mut self, id: RequestId, account: u16, request: &Request) {
        let Some((each, per_mib)) = self.slow.get(&account) else {
            return;
        };
        let octets = match request {
            Request::Append { mail, .. } => mail.len() as u64,
            Request::Read { parts, .. } => parts.iter().map(|part| u64::from(part.length)).sum(),
            _ => 0,
        };
        let free = self.free_at.entry(account).or_default();
        *free = (*free).max(self.now) + octets * per_mib / (1 << 20);
        self.due.insert(id, *free + each);
    }
}

/// A lead, and a group of two accounts: 2 is fast, 3 is slow.
fn uneven(strategy: Strategy) -> World {
    let mut world = World::new(3);
    world.terms.groups = vec![GroupTerms {
        group: 1,
        accounts: vec![2, 3],
    }];
    world.kill();
    world.mount().unwrap();
    let now = world.moment();
    world.volume().set_strategy(now, strategy);
    world.sync().unwrap();
    world.slow = [(1, (5, 5)), (2, (10, 20)), (3, (80, 2_000))].into();
    world
}

fn mails(world: &mut World, account: u16) -> usize {
    let account = world.accounts.get_mut(&account).unwrap();
    let mailbox = account.mailbox("data-0001");
    mailbox.map_or(0, |mailbox| mailbox.mails.len())
}

/// Answers requests until a call has its reply, and none behind.
fn until_reply(world: &mut World, call: CallId) {
    loop {
        world.take_steps();
        if world.replies.contains_key(&call) {
            return;
        }
        assert!(world.answer_next(), "no reply");
    }
}

/// The milliseconds that a file takes to reach the servers.
fn upload(world: &mut World, name: &str, data: &[u8]) -> u64 {
    let (_, handle) = world.create(ROOT, name);
    let start = world.now;
    for (number, part) in data.chunks(1 << 20).enumerate() {
        world.write(handle, (number << 20) as u64, part);
    }
    let call = world.begin(Call::Fsync {
        handle,
        data_only: false,
    });
    until_reply(world, call);
    let took = world.now - start;
    world.settle();
    world.close(handle);
    took
}

#[test]
fn one_waits_for_a_member_and_all_for_every_member() {
    let data = noise(1, 2_000_000);
    let mut world = uneven(Strategy::One);
    upload(&mut world, "a", &data);
    world.settle();
    assert_eq!(mails(&mut world, 2), mails(&mut world, 3));

    let mut world = uneven(Strategy::All);
    let (_, handle) = world.create(ROOT, "a");
    for (number, part) in data.chunks(1 << 20).enumerate() {
        world.write(handle, (number << 20) as u64, part);
    }
    let call = world.begin(Call::Fsync {
        handle,
        data_only: false,
    });
    until_reply(&mut world, call);
    // At the very moment of the reply both have everything.
    assert!(mails(&mut world, 2) >= 1);
    assert_eq!(mails(&mut world, 2), mails(&mut world, 3));
    assert_eq!(world.volume().status().copies_missing, 0);
}

#[test]
fn all_asks_every_member_at_once() {
    let mut world = uneven(Strategy::All);
    world.slow = [(2, (500, 0)), (3, (500, 0))].into();
    let took = upload(&mut world, "a", &noise(2, 400_000));
    assert!((500..900).contains(&took), "{took} ms");
}

/// A member that cannot be reached does not hold back a write; the copy is made later.
#[test]
fn all_means_all_that_can_be_reached() {
    let mut world = uneven(Strategy::All);
    world.fortune = Box::new(|account, _| match account.0 {
        3 => Luck::Lost,
        _ => Luck::Good,
    });
    let data = noise(3, 1_000_000);
    world.put(ROOT, "a", &data);
    assert_eq!(world.sync(), Ok(Reply::Done));
    assert!(world.volume().status().copies_missing > 0);
    world.fortune = Box::new(|_, _| Luck::Good);
    for _ in 0..10 {
        world.pass(Duration::from_secs(60));
    }
    assert_eq!(mails(&mut world, 2), mails(&mut world, 3));
    assert_eq!(world.volume().status().copies_missing, 0);
}

#[test]
fn fast_writes_to_the_fast_member() {
    let time = |strategy| {
        let mut world = uneven(strategy);
        // The first files measure.
        for number in 0..6 {
            upload(&mut world, &format!("m{number}"), &noise(number, 200_000));
        }
        let files = 10..30_u64;
        let each =
            files.map(|number| upload(&mut world, &format!("f{number}"), &noise(number, 200_000)));
        each.sum::<u64>()
    };
    let (one, fast) = (time(Strategy::One), time(Strategy::Fast));
    assert!(fast < 20 * 100, "{fast} ms");
    assert!(fast <= one, "{fast} ms, {one} ms");
}

#[test]
fn fast_reads_from_the_fast_member_and_notices_a_change() {
    let mut world = uneven(Strategy::Fast);
    world.slow.clear();
    for number in 0..40 {
        world.put(ROOT, &format!("f{number}"), &noise(number, 100_000));
        world.sync().unwrap();
    }
    world.lose_folder();
    world.mount().unwrap();
    world.cache_max = 0;
    // The row of the group has the strategy.
    assert_eq!(world.volume().groups()[0].strategy, Strategy::Fast);
    let read = |world: &mut World, from: u64, slow: u16| {
        world.slow = [(2, (10, 20)), (3, (10, 20))].into();
        world.slow.insert(slow, (300, 3_000));
        let start = world.now;
        for number in from..from + 20 {
            let name = format!("f{number}");
            assert!(world.get(ROOT, &name).unwrap() == noise(number, 100_000));
        }
        world.now - start
    };
    // A slow member is asked once or twice, to be measured.
    let first = read(&mut world, 0, 3);
    assert!(first < 3_000, "{first} ms");
    // What was measured before the change is forgotten.
    world.pass(Duration::from_secs(61));
    let second = read(&mut world, 20, 2);
    assert!(second < 4_000, "{second} ms");
}

#[test]
fn a_strategy_is_one_of_the_volume() {
    let mut world = uneven(Strategy::All);
    world.slow.clear();
    world.kill();
    world.mount().unwrap();
    assert_eq!(world.volume().groups()[0].strategy, Strategy::All);
    let now = world.moment();
    world.volume().set_strategy(now, Strategy::One);
    world.pass(Duration::from_secs(6));
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.volume().groups()[0].strategy, Strategy::One);
}
