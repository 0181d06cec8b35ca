//! Operators of a simulated gateway.

use std::rc::Rc;
use std::time::Duration;

use vere_delivery::{
    Acted, Action, Change, Group, HoldOutcome, Leaving, MessageChange, Selection, Sweep,
};
use vere_queue::order::FOREVER;
use vere_units::{QueueId, TraceId};

use super::Shared;
use super::hops::{self, DOMAINS};
use super::world::World;
use crate::stage::SimHost;

/// Orders something.
pub(super) fn orders(world: &Shared, group: &Rc<Group<SimHost<World>>>) {
    if !group.is_recovered() {
        return;
    }
    match world.span(0..12) {
        0..=3 => sweep(world, group),
        4..=7 => hold(world, group),
        8 => refuse(world, group),
        9 => age(world, group),
        _ => order(world, group),
    }
}

fn any_message(world: &Shared, group: &Group<SimHost<World>>) -> Option<(QueueId, TraceId)> {
    group.queues.look(|queues| {
        let all = queues.active();
        let queue = *all.get(world.span(0..all.len() as u64) as usize)?;
        let messages: Vec<_> = queues.list_behind(queue, None, 20).collect();
        let message = messages.get(world.span(0..messages.len() as u64) as usize)?;
        Some((queue, message.trace))
    })
}

fn sweep(world: &Shared, group: &Rc<Group<SimHost<World>>>) {
    let Some((queue, trace)) = any_message(world, group) else {
        return;
    };
    let action = world.pick(&[
        Action::Retry,
        Action::Retry,
        Action::Bounce,
        Action::Expire,
        Action::Purge,
    ]);
    let selection = Selection {
        id: world.draw(80).then_some(trace),
        recipient: world.draw(20).then(|| "r0@d0.example".to_owned()),
        ..Selection::default()
    };
    let sweep = Sweep {
        group: Rc::clone(group),
        queue,
        selection,
        action,
        report: world.draw(70),
    };
    world.note(|| format!("operator: {action:?} in queue {queue}, {trace}"));
    let life = group.host.life;
    let run = async move {
        let mut acted = Acted::default();
        let _ = sweep.run(&mut acted).await;
    };
    world.spawn(life, Box::pin(run));
}

fn hold(world: &Shared, group: &Rc<Group<SimHost<World>>>) {
    if world.draw(40) {
        return release_one(world, group);
    }
    let Some((_, trace)) = any_message(world, group) else {
        return;
    };
    let (world, one) = (Rc::clone(world), Rc::clone(group));
    let hold = async move {
        for holding in one.holdings(None, trace) {
            let _turn = one.host.ordering.wait().await;
            let outcome = holding.change(MessageChange::Hold, FOREVER).await;
            let queue = holding.destination.to_string();
            world.note(|| format!("operator: hold {trace} for {queue}: {outcome:?}"));
            if matches!(outcome, Ok(HoldOutcome::Done)) {
                world.account.borrow_mut().held(trace, queue);
            }
        }
    };
    let life = group.host.life;
    group.host.world.spawn(life, Box::pin(hold));
}

fn release_one(world: &Shared, group: &Rc<Group<SimHost<World>>>) {
    let standing = world.account.borrow().standing();
    let index = world.span(0..standing.len() as u64) as usize;
    if let Some((trace, queue)) = standing.into_iter().nth(index) {
        release(world, group, trace, &queue);
    }
}

fn release(world: &Shared, group: &Rc<Group<SimHost<World>>>, trace: TraceId, queue: &str) {
    world.account.borrow_mut().released(trace, queue);
    let (world, one) = (Rc::clone(world), Rc::clone(group));
    let release = async move {
        for holding in one.holdings(None, trace) {
            let _turn = one.host.ordering.wait().await;
            let queue = holding.destination.to_string();
            world.account.borrow_mut().released(trace, &queue);
            let outcome = holding.change(MessageChange::Release, FOREVER).await;
            world.note(|| format!("operator: release {trace} for {queue}: {outcome:?}"));
        }
        for aside in one.quarantined() {
            if aside.message.trace == trace {
                let queue = aside.destination.to_string();
                world.account.borrow_mut().released(trace, &queue);
                let outcome = aside.release().await;
                world.note(|| format!("operator: let {trace} out for {queue}: {outcome:?}"));
            }
        }
    };
    let life = group.host.life;
    group.host.world.spawn(life, Box::pin(release));
}

/// Removes a message from the quarantine.
fn refuse(world: &Shared, group: &Rc<Group<SimHost<World>>>) {
    let mut aside = group.quarantined();
    if aside.is_empty() {
        return;
    }
    let one = aside.swap_remove(world.span(0..aside.len() as u64) as usize);
    let (life, world) = (group.host.life, Rc::clone(world));
    let host = Rc::clone(group);
    let refuse = async move {
        let trace = one.message.trace;
        let removed = host.remove_quarantined(&[one], Leaving::Refused).await;
        world.note(|| format!("operator: refuse {trace}: {removed:?}"));
    };
    group.host.world.spawn(life, Box::pin(refuse));
}

/// Removes what is old from the quarantine.
fn age(world: &Shared, group: &Rc<Group<SimHost<World>>>) {
    let keep = Duration::from_secs(world.span(60..3_600));
    let (life, one) = (group.host.life, Rc::clone(group));
    let age = async move {
        let _ = one.age_quarantine(keep).await;
    };
    group.host.world.spawn(life, Box::pin(age));
}

fn order(world: &Shared, group: &Rc<Group<SimHost<World>>>) {
    let domain = hops::domain(world.span(0..DOMAINS as u64) as usize);
    let change = world.pick(&[true, false]);
    let change = match change {
        true => Change::Hold,
        false => Change::Release,
    };
    let span = Duration::from_secs(world.span(1..300));
    let destination = hops::destination(&format!("x@{domain}"));
    let (one, life) = (Rc::clone(group), group.host.life);
    let order = async move {
        let _turn = one.host.ordering.wait().await;
        let _ = one.order(destination, &change, Some(span)).await;
    };
    group.host.world.spawn(life, Box::pin(order));
}

/// Ends all holds of messages.
pub(super) fn releases(world: &Shared, group: &Rc<Group<SimHost<World>>>) {
    let standing = world.account.borrow().standing();
    let held = group.queues.look(|queues| {
        let all = queues.active();
        let held = all.into_iter().flat_map(|queue| {
            let messages: Vec<_> = queues.list_behind(queue, None, 1_000).collect();
            let held = messages
                .into_iter()
                .filter(|message| message.standing == vere_queue::Standing::Held);
            held.map(|message| message.trace).collect::<Vec<_>>()
        });
        let aside = queues.quarantined().map(|(_, message)| message.trace);
        held.chain(aside).collect::<Vec<_>>()
    });
    for (trace, queue) in standing {
        release(world, group, trace, &queue);
    }
    for trace in held {
        release(world, group, trace, "");
    }
}
