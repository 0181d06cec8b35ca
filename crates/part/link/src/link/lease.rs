//! Keeps the delivery lease of the group (rule R4): asks the register what the engine's
//! [`LeaseKeeper`](vere_owner::lease::LeaseKeeper) wants to know.

use std::time::Duration;

use tokio::time::Instant;
use vere_cluster::{Register, RegisterError, Swap, Versioned};
use vere_owner::lease::{LeaseAnswer, LeaseRequest, LeaseState};

use super::shared::Shared;

/// How often the owner is looked at while the lease is not held: whether it owns the group yet, and
/// whether a full member is fenced.
const TICK: Duration = Duration::from_millis(100);
/// While it is held, for the confirmations by members.
const TICK_HELD: Duration = Duration::from_secs(1);
/// The shortest wait.
const TICK_MIN: Duration = Duration::from_millis(1);
/// How long giving the lease back may take; whoever waits for it waits for its end then.
const GIVE_BACK_PATIENCE: Duration = Duration::from_secs(5);

/// Whether deliveries may begin at this moment.
pub(super) fn is_held(shared: &Shared) -> bool {
    let now = look(shared);
    shared.lease.borrow().is_held(now)
}

/// Tells the lease how the owner stands; gives the time.
fn look(shared: &Shared) -> vere_units::Timestamp {
    let title = shared.inner.borrow().owner.title();
    let now = shared.clock.now();
    let mut lease = shared.lease.borrow_mut();
    lease.look(title, now);
    let state = lease.state(now);
    let changed = |before: &mut LeaseState| std::mem::replace(before, state) != state;
    if shared.lease_state.send_if_modified(changed) {
        tell(shared, state);
    }
    if state == LeaseState::Unreadable {
        shared.inner.borrow_mut().owner.doubt(now);
    }
    now
}

fn tell(shared: &Shared, state: LeaseState) {
    let group = shared.options.group.as_str();
    match state {
        LeaseState::Held => tracing::info!(group, "deliveries may begin: the lease is held"),
        LeaseState::Waiting => tracing::warn!(group, "no deliveries begin: the lease has run out"),
        LeaseState::Unreadable => tracing::error!(
            group,
            "no deliveries begin: what the register holds as their lease is a later owner's, or damaged"
        ),
        LeaseState::Over => tracing::info!(group, "the lease for deliveries was given back"),
    }
}

/// Runs until the lease was given back, or nobody uses the link any more.
pub(super) async fn keep(shared: &Shared) {
    loop {
        let now = look(shared);
        if shared.closing.get() || *shared.lease_state.borrow() == LeaseState::Over {
            return;
        }
        let request = shared.lease.borrow_mut().poll(now);
        if let Some(request) = request {
            let answer = ask(&shared.options.register, &shared.options.group, request).await;
            shared
                .lease
                .borrow_mut()
                .answered(answer, shared.clock.now());
            continue;
        }
        let deadline = shared.lease.borrow().deadline();
        let tick = match *shared.lease_state.borrow() {
            LeaseState::Held => TICK_HELD,
            _ => TICK,
        };
        let left = deadline.map_or(tick, |deadline| deadline.saturating_since(now));
        tokio::select! {
            () = shared.lease_waker.notified() => {}
            () = tokio::time::sleep_until(Instant::now() + left.clamp(TICK_MIN, tick)) => {}
        }
    }
}

/// Asks the register about the lease of a group.
pub async fn ask(register: &Register, group: &str, request: LeaseRequest) -> LeaseAnswer {
    let key = format!("lease/{group}");
    let there = |found: Option<Versioned>| {
        LeaseAnswer::There(found.map(|found| (found.version, found.value)))
    };
    let failed = |error: RegisterError| {
        tracing::warn!(group, %error, "cannot ask the register for the delivery lease");
        LeaseAnswer::Failed
    };
    match request {
        LeaseRequest::Read => register.read(&key).await.map_or_else(failed, there),
        LeaseRequest::Swap { expected, value } => {
            match register.swap(&key, expected, &value).await {
                Ok(Swap::Done(version)) => LeaseAnswer::Done(version),
                Ok(Swap::Conflict(found)) => there(found),
                Err(error) => failed(error),
            }
        }
    }
}

/// Gives it back and waits until the register knows, or does not answer.
pub(super) async fn give_back(shared: &Shared) {
    let now = look(shared);
    shared.lease.borrow_mut().give_back(now);
    shared.lease_waker.notify_one();
    let mut state = shared.lease_state.subscribe();
    let over = state.wait_for(|state| *state == LeaseState::Over);
    let _ = tokio::time::timeout(GIVE_BACK_PATIENCE, over).await;
}
