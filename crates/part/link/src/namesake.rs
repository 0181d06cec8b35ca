//! Looks whether another gateway of the same name lives, before its queues are taken.
//!
//! The owner that a group is named for may always take the group back from an adopter. Two gateways of
//! one name would take it from each other for ever: the later one must not begin.

use vere_cluster::Register;
use vere_owner::lease::{LeaseAnswer, LeaseRecord, LeaseTerms, LeaseWatcher, Watched};
use vere_units::Timestamp;

use super::link::ask_lease;
use vere_process::boot_clock::Clock;

/// What is known of the owner before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namesake {
    /// None, or it is dead, has given its lease back, or has adopted the group from this gateway.
    Gone,
    /// It renews its lease.
    Alive,
}

/// Who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The gateway that the group is named for.
    Itself,
    /// Somebody who would adopt the group.
    Another,
}

/// Watches the lease of a group for as long as it takes to know; lives of owners that are `dead` are
/// known to be over. While the register does not answer nothing is known.
pub async fn look(
    register: &Register,
    group: &str,
    terms: LeaseTerms,
    dead: &[u64],
    by: By,
) -> Namesake {
    let clock = Clock::start();
    let now = || clock.now().saturating_since(Timestamp::ZERO);
    let mut watcher = LeaseWatcher::new(u64::MAX, terms, now()).knowing(dead);
    // It is not about fences here, only about time.
    watcher.fenced(now());
    let (mut first, mut told) = (None, false);
    loop {
        while let Some(request) = watcher.poll(now()) {
            let answer = ask_lease(register, group, request).await;
            if let LeaseAnswer::There(Some((version, value))) = &answer {
                if *first.get_or_insert(*version) != *version {
                    return Namesake::Alive;
                }
                if by == By::Itself && LeaseRecord::decode(value).is_none_or(|it| it.adopted) {
                    return Namesake::Gone;
                }
            }
            watcher.answered(answer, now());
        }
        if watcher.watched(now()) != Watched::Held {
            return Namesake::Gone;
        }
        if !std::mem::replace(&mut told, true) {
            let wait = terms.lease + terms.skew;
            tracing::info!(
                group,
                ?wait,
                "waiting to see whether the gateway that had the queues last lives"
            );
        }
        let deadline = watcher.deadline().unwrap_or_default();
        tokio::time::sleep(deadline.saturating_sub(now())).await;
    }
}
