//! The client dies, and answers are lost, at every request: what was promised is there.

use super::*;

const ROOT: Inode = Inode::ROOT;

/// A script with an fsync in the midst: the state promised at its end.
fn script(world: &mut World) -> Vec<(&'static str, Vec<u8>)> {
    world.put(ROOT, "first", b"first");
    let (_, handle) = world.create(ROOT, "long");
    world.write(handle, 0, &noise(9, 700_000));
    world.fsync(handle).unwrap();
    world.write(handle, 100, b"over");
    world.close(handle);
    let remove = Call::Unlink {
        parent: ROOT,
        name: b"first".to_vec(),
    };
    world.call(remove).unwrap();
    world.put(ROOT, "last", b"last");
    let mut long = noise(9, 700_000);
    long[100..104].copy_from_slice(b"over");
    vec![("long", long), ("last", b"last".to_vec())]
}

/// The requests of the script, each unhurt.
fn requests() -> usize {
    let mut world = World::new(2);
    let asked = |world: &World| {
        let counts = world.counts.iter().filter(|(name, _)| **name != "sync");
        counts.map(|(_, count)| count).sum::<usize>()
    };
    let before = asked(&world);
    script(&mut world);
    world.sync().unwrap();
    asked(&world) - before
}

/// Each request in turn is hurt; the script still ends well, and another machine sees its end.
fn hurt_each(luck: Luck) {
    for hurt in 0..requests() {
        let mut world = World::new(2);
        let mut number = 0;
        world.fortune = Box::new(move |_, _| {
            let is_hurt = number == hurt;
            number += 1;
            if is_hurt { luck } else { Luck::Good }
        });
        let promised = script(&mut world);
        assert_eq!(world.sync(), Ok(Reply::Done), "{hurt}");
        world.lose_folder();
        world.mount().unwrap();
        for (name, content) in promised {
            assert!(
                world.get(ROOT, name).unwrap() == content,
                "{name} after {hurt}"
            );
        }
        assert_eq!(
            world.lookup(ROOT, "first").err(),
            Some(Errno::NoEnt),
            "{hurt}"
        );
        let forged = world
            .notices
            .iter()
            .filter(|notice| matches!(notice, Notice::Forged { .. }));
        assert_eq!(forged.count(), 0);
    }
}

#[test]
fn a_request_that_is_lost_is_made_up_for() {
    hurt_each(Luck::Lost);
}

#[test]
fn an_answer_that_is_lost_is_made_up_for() {
    hurt_each(Luck::Unanswered);
}

/// From each request on, none is answered any more, and the client dies: with its folder everything is there, without it
/// everything up to the fsync.
fn die_at_each(luck: Luck) {
    for deadly in 0..requests() {
        let mut world = World::new(2);
        let mut number = 0;
        world.fortune = Box::new(move |_, _| {
            number += 1;
            if number > deadly { luck } else { Luck::Good }
        });
        // Calls that wait for servers fail.
        let (_, handle) = world.create(ROOT, "long");
        world.write(handle, 0, &noise(9, 700_000));
        let id = world.begin(Call::Fsync {
            handle,
            data_only: false,
        });
        for _ in 0..2_000 {
            world.step();
        }
        let is_promised = world.replies.remove(&id) == Some(Ok(Reply::Done));
        world.put(ROOT, "last", b"last");
        let folder = world.disk.clone();
        for keeps_folder in [true, false] {
            world.kill();
            world.fortune = Box::new(|_, _| Luck::Good);
            world.disk = if keeps_folder {
                folder.clone()
            } else {
                MemoryDisk::default()
            };
            world.mount().unwrap();
            if keeps_folder || is_promised {
                assert!(
                    world.get(ROOT, "long").unwrap() == noise(9, 700_000),
                    "{deadly}"
                );
            }
            if keeps_folder {
                assert_eq!(world.get(ROOT, "last").unwrap(), b"last", "{deadly}");
                world.sync().unwrap();
            }
        }
        assert_eq!(world.get(ROOT, "last").unwrap(), b"last", "{deadly}");
    }
}

#[test]
fn a_client_that_dies_with_its_connections_loses_nothing() {
    die_at_each(Luck::Lost);
}

#[test]
pub(super) fn a_client_that_dies_unanswered_loses_nothing() {
    die_at_each(Luck::Unanswered);
}
