//! A mounted volume beside a local file system: equal calls, drawn from a seed, must give equal results and equal trees. The
//! process of the mount is killed between rounds, and at the end the accounts alone must give the tree.

mod calls;
mod twins;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vere_faults::relay::Relay;

use crate::harness::run;
use crate::mounts::Volume;
use calls::Random;
use twins::{Twins, tree_of};

/// Programs at work at once, each in a folder of its own.
const PROGRAMS: u64 = 3;

/// Rounds, with a kill behind each, and calls of a program in a round.
fn effort() -> (u64, usize) {
    match std::env::var_os("VERE_FULL") {
        Some(_) => (8, 1_500),
        None => (2, 300),
    }
}

fn seed() -> u64 {
    let given = std::env::var("VERE_SEED").ok();
    let given = given.map(|text| text.parse().expect("VERE_SEED is a number"));
    given.unwrap_or_else(|| u64::from(std::process::id()))
}

#[test]
fn equal_calls_give_equal_trees_over_kills() {
    let Some(volume) = Volume::new() else { return };
    let (rounds, calls) = effort();
    let seed = seed();
    println!("VERE_SEED={seed} gives the same calls");
    let local = volume.path("local");
    fs::create_dir(&local).expect("a folder");
    for round in 0..rounds {
        let process = volume.mount_in_foreground();
        work(&local, &volume.point(), (seed, round), calls);
        volume.kill(process);
        volume.mount();
        assert_equal(&local, &volume.point(), "behind the kill");
        volume.umount();
    }
    volume.mount();
    assert_accounts_have(&local, &volume);
}

/// The mount ends, its folder is lost, and the accounts alone give the tree.
fn assert_accounts_have(local: &Path, volume: &Volume) {
    run(&mut volume.fs(&["sync", "home"]));
    volume.umount();
    fs::remove_dir_all(volume.path("state")).expect("the state");
    volume.mount();
    assert_equal(local, &volume.point(), "from the accounts alone");
    let said = run(&mut volume.fs(&["check", "home", "--data"]));
    assert!(said.contains("clean: "), "{said}");
    volume.umount();
}

/// Connections end after any octet of a command, its answer lost, while programs work.
#[test]
fn equal_calls_give_equal_trees_over_cut_connections() {
    let Some((volume, relay)) = Volume::with_relay() else {
        return;
    };
    let (rounds, calls) = effort();
    let seed = seed();
    println!("VERE_SEED={seed} gives the same calls");
    let local = volume.path("local");
    fs::create_dir(&local).expect("a folder");
    volume.mount();
    let is_over = AtomicBool::new(false);
    let cuts = std::thread::scope(|scope| {
        let cutting = scope.spawn(|| cut(&relay, seed, &is_over));
        for round in 0..rounds {
            work(&local, &volume.point(), (seed, round), calls);
        }
        is_over.store(true, Ordering::Relaxed);
        cutting.join().expect("a thread")
    });
    println!("{cuts} cuts");
    assert!(cuts > 0);
    assert_equal(&local, &volume.point(), "behind the cuts");
    assert_accounts_have(&local, &volume);
}

/// Cuts connections again and again. Returns how many times.
fn cut(relay: &Relay, seed: u64, is_over: &AtomicBool) -> usize {
    let mut random = Random(seed);
    let mut cuts = 0;
    while !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50 + random.below(400)));
        relay.cut_after(random.below(40_000), random.below(2) == 0);
        std::thread::sleep(Duration::from_millis(random.below(200)));
        relay.cut();
        cuts += 1;
    }
    cuts
}

/// Programs work on both sides at once.
fn work(local: &Path, mount: &Path, (seed, round): (u64, u64), calls: usize) {
    std::thread::scope(|scope| {
        for program in 0..PROGRAMS {
            scope.spawn(move || {
                let name = format!("program{program}");
                let roots = [local.join(&name), mount.join(&name)];
                for root in &roots {
                    fs::create_dir_all(root).expect("a folder");
                }
                let seed = seed
                    .wrapping_mul(31)
                    .wrapping_add(round * PROGRAMS + program);
                Twins::new(roots, seed).work(calls);
            });
        }
    });
}

fn assert_equal(local: &Path, mount: &Path, moment: &str) {
    let (local, mount) = (tree_of(local), tree_of(mount));
    for (path, expected) in &local {
        let found = mount.get(path);
        assert_eq!(found, Some(expected), "{} {moment}", path.display());
    }
    let more: Vec<_> = mount
        .keys()
        .filter(|path| !local.contains_key(*path))
        .collect();
    assert!(more.is_empty(), "{more:?} {moment}");
}
