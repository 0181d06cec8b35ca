//! Real members of etcd, which are killed and stopped.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use nix::sys::signal::Signal::{SIGCONT, SIGSTOP};
use tokio::task::LocalSet;
use tokio::time::timeout;
use vere_cluster::{EtcdOptions, EtcdRegister, Register, RegisterError, Swap};

use crate::contract;
use crate::counter::{KEY, increment, number};
use vere_faults::etcd::{Cluster, PATIENCE};

mod access;
mod answers;

fn register_of(cluster: &Cluster) -> Register {
    let register = EtcdRegister::new(EtcdOptions::new(cluster.endpoints()));
    Register::Etcd(register.unwrap())
}

/// Waits until the register answers.
async fn ready(register: &Register) {
    let ready = async {
        while let Err(error) = register.read(KEY).await {
            assert!(
                matches!(error, RegisterError::Unreachable { .. }),
                "{error}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, ready).await.expect("etcd answers");
}

#[tokio::test]
async fn one_member_keeps_the_contract() {
    let Some(cluster) = Cluster::start(1) else {
        return;
    };
    let register = register_of(&cluster);
    ready(&register).await;
    contract::check(&register).await;
    // Another prefix is another register.
    let mut options = EtcdOptions::new(cluster.endpoints());
    options.prefix = "other".to_owned();
    let other = Register::Etcd(EtcdRegister::new(options).unwrap());
    assert_eq!(other.list("").await, Ok(Vec::new()));
}

#[tokio::test]
async fn one_member_that_is_killed_comes_back_with_what_it_acknowledged() {
    let Some(mut cluster) = Cluster::start(1) else {
        return;
    };
    let register = register_of(&cluster);
    ready(&register).await;
    let mut least = 0;
    for _ in 0..5 {
        let acknowledged = Rc::new(Cell::new(least));
        let (swapping, seen) = (register.clone(), Rc::clone(&acknowledged));
        LocalSet::new()
            .run_until(async {
                let swaps = tokio::task::spawn_local(async move {
                    loop {
                        match increment(&swapping).await {
                            Ok((_, number)) => seen.set(number),
                            Err(error) => return error,
                        }
                    }
                });
                let goal = least + 3;
                wait_until(|| acknowledged.get() >= goal).await;
                cluster.kill(0);
                let error = swaps.await.unwrap();
                assert!(
                    matches!(error, RegisterError::Unreachable { .. }),
                    "{error}"
                );
            })
            .await;
        // Nobody is there: certainly nothing is done.
        let error = register.swap(KEY, None, b"").await.unwrap_err();
        assert!(!error.maybe_applied(), "{error}");
        cluster.restart(0);
        ready(&register).await;
        let there = number(register.read(KEY).await.unwrap().as_ref());
        let acknowledged = acknowledged.get();
        assert!(
            (acknowledged..=acknowledged + 1).contains(&there),
            "{acknowledged} {there}"
        );
        least = there;
    }
}

/// What concurrent swappers know of one number.
#[derive(Default)]
struct History {
    /// The numbers that were acknowledged, with their versions.
    done: RefCell<BTreeMap<u64, u64>>,
    unknown: Cell<u64>,
    stop: Cell<bool>,
}

impl History {
    fn largest(&self) -> u64 {
        let done = self.done.borrow();
        done.last_key_value().map_or(0, |(number, _)| *number)
    }

    /// Increments until it is told to stop.
    async fn swap(&self, register: &Register) {
        while !self.stop.get() {
            // What was acknowledged before a read begins, the read sees.
            let least = self.largest();
            let there = match register.read(KEY).await {
                Ok(there) => there,
                Err(error) => {
                    self.failed(&error).await;
                    continue;
                }
            };
            let now = number(there.as_ref());
            assert!(now >= least, "read {now} after {least} was acknowledged");
            let expected = there.map(|there| there.version);
            let next = now + 1;
            match register.swap(KEY, expected, &next.to_le_bytes()).await {
                Ok(Swap::Done(version)) => {
                    let twice = self.done.borrow_mut().insert(next, version);
                    assert_eq!(twice, None, "{next} was acknowledged twice");
                    assert!(Some(version) > expected);
                }
                Ok(Swap::Conflict(there)) => assert!(there.is_some()),
                Err(error) => {
                    self.unknown
                        .set(self.unknown.get() + u64::from(error.maybe_applied()));
                    self.failed(&error).await;
                }
            }
        }
    }

    async fn failed(&self, error: &RegisterError) {
        assert!(
            matches!(error, RegisterError::Unreachable { .. }),
            "{error}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    /// Waits until more was acknowledged.
    async fn progress(&self) {
        let goal = self.done.borrow().len() + 30;
        wait_until(|| self.done.borrow().len() >= goal).await;
    }
}

async fn wait_until(reached: impl Fn() -> bool) {
    let waiting = async {
        while !reached() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("progress");
}

#[tokio::test]
async fn swaps_are_linearizable_while_members_are_killed_and_stopped() {
    const SWAPPERS: usize = 5;
    let Some(mut cluster) = Cluster::start(3) else {
        return;
    };
    ready(&register_of(&cluster)).await;
    let history = Rc::new(History::default());
    let tasks = LocalSet::new();
    let swappers: Vec<_> = (0..SWAPPERS)
        .map(|_| {
            // Each has connections, and a member it prefers, of its own.
            let (history, register) = (Rc::clone(&history), register_of(&cluster));
            tasks.spawn_local(async move { history.swap(&register).await })
        })
        .collect();
    let faults = async {
        history.progress().await;
        for _ in 0..2 {
            let leader = cluster.leader();
            cluster.kill(leader);
            history.progress().await;
            cluster.restart(leader);
            history.progress().await;
            let leader = cluster.leader();
            cluster.signal(leader, SIGSTOP);
            history.progress().await;
            cluster.signal(leader, SIGCONT);
            history.progress().await;
        }
        history.stop.set(true);
        for swapper in swappers {
            swapper.await.unwrap();
        }
    };
    tasks.run_until(faults).await;
    let register = register_of(&cluster);
    ready(&register).await;
    let last = register.read(KEY).await.unwrap().unwrap();
    let (done, unknown) = (history.done.borrow(), history.unknown.get());
    let total = number(Some(&last));
    let count = done.len() as u64;
    assert!(
        (count..=count + unknown).contains(&total),
        "{count} {unknown} {total}"
    );
    // The order of the numbers is that of the versions.
    let versions: Vec<u64> = done.values().copied().collect();
    assert!(versions.is_sorted_by(|one, next| one < next));
    assert!(versions.last() <= Some(&last.version));
}

#[tokio::test]
async fn without_a_majority_the_register_is_unreachable_until_it_is_back() {
    let Some(cluster) = Cluster::start(3) else {
        return;
    };
    let mut options = EtcdOptions::new(cluster.endpoints());
    options.timeout = Duration::from_millis(500);
    let register = Register::Etcd(EtcdRegister::new(options).unwrap());
    ready(&register).await;
    let before = timeout(PATIENCE, async {
        loop {
            if let Ok((version, number)) = increment(&register).await {
                break (version, number);
            }
        }
    });
    let (version, last) = before.await.expect("a swap");
    for n in [0, 1] {
        cluster.signal(n, SIGSTOP);
    }
    let calls = async {
        let read = register.read(KEY).await;
        let next = (last + 1).to_le_bytes();
        let swap = register.swap(KEY, Some(version), &next).await;
        (read, swap, register.list("").await)
    };
    let (read, swap, list) = timeout(PATIENCE, calls).await.expect("an end");
    assert!(
        matches!(read, Err(RegisterError::Unreachable { .. })),
        "{read:?}"
    );
    assert!(
        matches!(list, Err(RegisterError::Unreachable { .. })),
        "{list:?}"
    );
    let error = swap.unwrap_err();
    // It reached members, which may carry it out yet.
    assert!(error.maybe_applied(), "{error}");
    for n in [0, 1] {
        cluster.signal(n, SIGCONT);
    }
    ready(&register).await;
    // Whoever wants to know swaps on.
    let after = timeout(PATIENCE, async {
        loop {
            if let Ok((_, number)) = increment(&register).await {
                break number;
            }
        }
    });
    let after = after.await.expect("a swap");
    assert!(after > last, "{after} {last}");
}
