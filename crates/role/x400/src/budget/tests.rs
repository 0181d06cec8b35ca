//! The rules with invented units, and units that wait.

use std::cell::Cell;

use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

use super::ledger::TURN;
use super::*;

fn budget(all: u64, unit: u64) -> Rc<Budget> {
    let budget = Rc::<Budget>::default();
    budget.set_bounds(Bounds { all, unit });
    budget
}

/// Runs with a clock that goes on when all tasks wait.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test);
}

#[test]
fn the_rest_of_the_oldest_always_finds_room() {
    let budget = budget(100, 30);
    let [first, second, third] = ["a", "b", "c"].map(|peer| budget.share(peer));
    assert_eq!(first.grow(10), Ok(()));
    assert_eq!(second.grow(30), Ok(()));
    // 20 are kept for the rest of the first.
    assert_eq!(third.grow(41), Err(Shortage::Common));
    assert_eq!(third.grow(40), Ok(()));
    assert_eq!(first.grow(30), Ok(()));
    assert_eq!(budget.held(), 100);
    drop(first);
    assert_eq!(third.grow(71), Err(Shortage::Common));
    assert_eq!(third.grow(70), Ok(()));
    drop((second, third));
    assert_eq!(budget.held(), 0);
}

#[test]
fn one_peer_has_half_and_a_unit_alone_has_all() {
    let budget = budget(100, 20);
    let alone = budget.share("a");
    assert_eq!(alone.grow(500), Ok(()));
    drop(alone);
    let [first, second] = ["a", "a"].map(|peer| budget.share(peer));
    let other = budget.share("b");
    assert_eq!(first.grow(20), Ok(()));
    assert_eq!(second.grow(31), Err(Shortage::Own));
    assert_eq!(second.grow(30), Ok(()));
    assert_eq!(other.grow(40), Ok(()));
    // The first is complete: its octets count until it is safe, also against the oldest.
    first.rest();
    assert_eq!(second.grow(31), Err(Shortage::Own));
    drop(first);
    assert_eq!(second.grow(50), Ok(()));
    assert_eq!(second.grow(61), Err(Shortage::Common));
}

/// The octets of a transfer that goes on are in memory, whoever has begun meanwhile.
#[test]
fn what_is_there_already_counts_without_room() {
    let budget = budget(100, 50);
    let [first, second, goes_on] = ["a", "b", "c"].map(|peer| budget.share(peer));
    assert_eq!(first.grow(30), Ok(()));
    assert_eq!(second.grow(50), Ok(()));
    assert_eq!(goes_on.grow(20), Err(Shortage::Common));
    goes_on.hold(20);
    assert_eq!(budget.held(), 100);
    assert_eq!(first.grow(31), Err(Shortage::Common));
    drop(goes_on);
    assert_eq!(first.grow(31), Ok(()));
}

/// A spool that takes nothing for a while: each new unit is the oldest of those that come, and the memory stays within its bound.
#[test]
fn complete_units_hold_back_everybody() {
    let budget = budget(100, 50);
    let [first, second, third] = ["a", "b", "c"].map(|peer| budget.share(peer));
    for complete in [&first, &second] {
        assert_eq!(complete.grow(50), Ok(()));
        complete.rest();
    }
    assert_eq!(third.grow(1), Err(Shortage::Common));
    drop(first);
    assert_eq!(third.grow(50), Ok(()));
    third.rest();
    assert_eq!(budget.share("d").grow(1), Err(Shortage::Common));
    assert_eq!(budget.held(), 100);
}

#[test]
fn units_that_begin_together_all_end_and_their_memory_is_bounded() {
    run(async {
        let budget = budget(256, 32);
        let most = Rc::<Cell<u64>>::default();
        let tasks: Vec<_> = (0..40)
            .map(|number| {
                let share = budget.share(&format!("peer {}", number % 10));
                let (budget, most) = (Rc::clone(&budget), Rc::clone(&most));
                spawn_local(async move {
                    for octets in 1..=10 {
                        assert!(share.grow_in_turn(octets, |_| false).await, "{number}");
                        most.set(most.get().max(budget.held()));
                        sleep(Duration::from_millis(100)).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert!((200..=256).contains(&most.get()), "{most:?}");
        assert_eq!(budget.held(), 0);
    });
}

#[test]
fn a_sender_who_drips_gives_way_when_others_have_waited_for_its_turn() {
    run(async {
        let budget = budget(100, 50);
        let drips = budget.share("slow");
        let called = drips.called();
        assert_eq!(drips.grow(1), Ok(()));
        let others = ["b", "c"].map(|peer| budget.share(peer));
        assert_eq!(others[0].grow(40), Ok(()));
        let begun = Instant::now();
        let waits = others[1].grow_in_turn(30, |_| false);
        tokio::pin!(waits);
        tokio::select! {
            _ = &mut waits => panic!("there is no room"),
            () = called.notified() => assert!((TURN..WAIT).contains(&begun.elapsed())),
        }
        drop(drips);
        assert!(waits.await);
        assert!(begun.elapsed() < WAIT);
    });
}

#[test]
fn nobody_waits_for_ever_and_units_that_rest_give_way_first() {
    run(async {
        let budget = budget(100, 50);
        let [first, second] = ["a", "b"].map(|peer| budget.share(peer));
        assert_eq!(first.grow(50), Ok(()));
        first.rest();
        let oldest = budget.share("c");
        drop(second);
        let second = budget.share("b");
        assert_eq!(oldest.grow(10), Ok(()));
        let waited = timeout(WAIT * 2, second.grow_in_turn(30, |_| false)).await;
        assert_eq!(waited, Ok(false));
        let kept = Cell::new(Some(first));
        let gives = |shortage| {
            assert_eq!(shortage, Shortage::Common);
            kept.take().is_some()
        };
        assert!(second.grow_in_turn(30, gives).await);
        assert_eq!(budget.held(), 40);
    });
}
