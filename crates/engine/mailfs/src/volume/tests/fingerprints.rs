//! Fingerprints of the head: a machine without memory notices accounts that were set back.

use super::*;
use crate::volume::Fingerprint;

const ROOT: Inode = Inode::ROOT;

fn fingerprint(world: &mut World) -> Fingerprint {
    world.volume().status().fingerprint
}

#[test]
fn a_machine_without_memory_notices_accounts_that_were_set_back() {
    let mut world = World::new(1);
    world.put(ROOT, "a", b"one");
    world.sync().unwrap();
    let old = world.accounts.clone();
    let first = fingerprint(&mut world);
    world.put(ROOT, "b", b"two");
    world.sync().unwrap();
    let second = fingerprint(&mut world);
    world.lose_folder();
    // The newest commit, and an older one.
    for expected in [second, first] {
        world
            .mount_with(|opening| opening.expect(expected))
            .unwrap();
        world.lose_folder();
    }
    world.accounts = old;
    world.mount_with(|opening| opening.expect(first)).unwrap();
    world.lose_folder();
    let error = world.mount_with(|opening| opening.expect(second));
    let error = error.unwrap_err().to_string();
    assert!(error.contains(&second.to_string()), "{error}");
    assert!(error.contains("set back"), "{error}");
}

#[test]
fn a_fingerprint_older_than_the_checkpoint_is_found() {
    let mut world = World::new(1);
    world.put(ROOT, "first", b"x");
    world.sync().unwrap();
    let first = fingerprint(&mut world);
    for number in 0..60 {
        world.put(ROOT, &format!("{number}"), b"x");
        world.sync().unwrap();
    }
    world.finish().unwrap();
    world.lose_folder();
    world.mount_with(|opening| opening.expect(first)).unwrap();
    assert_eq!(world.get(ROOT, "59").unwrap(), b"x");
    let other = "2-00000000".parse().unwrap();
    world.lose_folder();
    let error = world.mount_with(|opening| opening.expect(other));
    assert!(matches!(error, Err(OpenError::Unexpected { .. })));
}
