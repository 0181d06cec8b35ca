//! Accounts whose budget of the day is used up: data go elsewhere or wait, names go on, nothing is lost and nothing hangs.

use super::*;

const ROOT: Inode = Inode::ROOT;
const HOUR: Duration = Duration::from_secs(3_600);

/// Packs are refused by these accounts for hours.
fn scarce(world: &mut World, accounts: &'static [u16]) {
    world.fortune = Box::new(move |account, request| match request {
        Request::Append { mailbox, .. }
            if mailbox == "data-0001" && accounts.contains(&account.0) =>
        {
            Luck::Scarce(3 * HOUR)
        }
        _ => Luck::Good,
    });
}

fn packs(world: &mut World, account: u16) -> usize {
    let account = world.accounts.get_mut(&account).unwrap();
    account
        .mailbox("data-0001")
        .map_or(0, |mailbox| mailbox.mails.len())
}

#[test]
fn data_go_to_an_account_with_room() {
    let mut world = World::new(3);
    scarce(&mut world, &[1, 2]);
    let data = noise(1, 3 << 20);
    world.put(ROOT, "a", &data);
    assert_eq!(world.sync(), Ok(Reply::Done));
    assert_eq!((packs(&mut world, 1), packs(&mut world, 2)), (0, 0));
    assert!(packs(&mut world, 3) > 0);
    let status = world.volume().status();
    let lacking = status.accounts.iter().filter(|one| one.scarce.is_some());
    assert!(lacking.count() > 0 && status.accounts.iter().all(|one| one.failing.is_none()));
    world.lose_folder();
    world.mount().unwrap();
    assert!(world.get(ROOT, "a").unwrap() == data);
}

/// Each second pack is taken, the others have to wait for 25 s: a program whose changes leave slowly waits for as long as it takes, and fails a
/// minute after the servers took the last pack.
#[test]
fn a_slow_line_is_no_outage() {
    let mut world = World::new(1);
    let mut asked = 0;
    world.fortune = Box::new(move |_, request| match request {
        Request::Append { mailbox, .. } if mailbox == "data-0001" => {
            asked += 1;
            match asked % 2 {
                0 => Luck::Good,
                _ => Luck::Scarce(Duration::from_secs(25)),
            }
        }
        _ => Luck::Good,
    });
    let (_, handle) = world.create(ROOT, "large");
    for (number, piece) in noise(3, 8 << 20).chunks(1 << 20).enumerate() {
        world.write(handle, (number as u64) << 20, piece);
    }
    let begun = world.now;
    let id = world.begin(Call::Fsync {
        handle,
        data_only: false,
    });
    while !world.replies.contains_key(&id) {
        assert!(world.now - begun < 1_000_000, "no reply");
        world.pass(Duration::from_secs(1));
    }
    assert_eq!(world.replies.remove(&id), Some(Ok(Reply::Done)));
    assert!(world.now - begun > 61_000, "{}", world.now - begun);
    // From now on nothing is taken.
    scarce(&mut world, &[1]);
    world.write(handle, 0, &noise(4, 3 << 20));
    let begun = world.now;
    assert_eq!(world.fsync(handle), Err(Errno::Io));
    assert!(world.now - begun <= 61_000, "{}", world.now - begun);
}

#[test]
fn data_wait_for_room_while_names_go_on() {
    let mut world = World::new(1);
    scarce(&mut world, &[1]);
    let (_, handle) = world.create(ROOT, "large");
    let data = noise(2, 3 << 20);
    for (number, piece) in data.chunks(1 << 20).enumerate() {
        world.write(handle, (number as u64) << 20, piece);
    }
    let begun = world.now;
    assert_eq!(world.fsync(handle), Err(Errno::Io));
    assert!(world.now - begun <= 61_000, "{}", world.now - begun);
    let status = world.volume().status();
    let (reason, left) = status.accounts[0].scarce.clone().unwrap();
    assert!(
        reason.contains("used up") && left > HOUR * 2,
        "{reason} {left:?}"
    );
    assert!(
        status.octets_waiting >= 3 << 20,
        "{}",
        status.octets_waiting
    );
    // Nothing is tried before there is room.
    let before = world.count("pack");
    world.pass(HOUR);
    assert_eq!(world.count("pack"), before);
    // Small changes are in commits, and wait for nothing.
    world.put(ROOT, "small", b"small");
    world.pass(Duration::from_secs(10));
    assert!(world.count("commit") > 0);
    world.fortune = Box::new(|_, _| Luck::Good);
    world.pass(HOUR * 3);
    assert_eq!(world.sync(), Ok(Reply::Done));
    assert!(world.volume().status().accounts[0].scarce.is_none());
    world.lose_folder();
    world.mount().unwrap();
    assert!(world.get(ROOT, "large").unwrap() == data);
}
