//! Carries out the queue commands of operators (`vere queue`).

use std::rc::Rc;
use std::time::Duration;

use tokio::task::spawn_local;
use vere_delivery::{Change, Sweep};
use vere_process::clock;
use vere_queue::destination::EmptyDestination;
use vere_queue::{Destination, Order, TlsWish};

use super::{look, orders, unrouted};
use crate::group::Group;
use crate::groups::Groups;
use crate::trade::Trade;
use vere_control::{Acted, Action, Answer, MessageRow, OrderChange, OrderRow, Selection};

/// Changes the order for a destination, in adopted queues too.
pub(super) async fn order<T: Trade>(
    groups: &Groups<T>,
    destination: &str,
    change: &OrderChange,
    seconds: Option<u64>,
    ahead: bool,
) -> Answer {
    let Ok(destination) = destination.parse::<Destination>() else {
        return Answer::Error("a destination needs a name".to_owned());
    };
    let change = match wanted(change, &destination) {
        Ok(change) => change,
        Err(error) => return Answer::Error(error),
    };
    if !groups.are_recovered() {
        return Answer::Error("the queues are not read back yet; ask again".to_owned());
    }
    if let Err(error) = means_something(groups, &destination, &change, ahead) {
        return Answer::Error(error);
    }
    let span = seconds.map(Duration::from_secs);
    let mut own = None;
    for (place, one) in groups.all().iter().enumerate() {
        match orders::change(one, destination.clone(), &change, span).await {
            Ok(order) => drop(own.get_or_insert(order)),
            Err(error) if place == 0 => return Answer::Error(error.to_string()),
            Err(error) => {
                let text = format!("changed here, but not in all adopted queues: {error}");
                return Answer::Error(text);
            }
        }
    }
    own.map_or_else(
        || Answer::Error("nothing changed".to_owned()),
        |order| answer(&order_row(&order, None)),
    )
}

/// Checks that a change has an object: an existing queue, a destination that mail may come to, or an order in effect.
/// Otherwise an operator could believe that a misspelt name holds mail back.
fn means_something<T: Trade>(
    groups: &Groups<T>,
    destination: &Destination,
    change: &Change,
    ahead: bool,
) -> Result<(), String> {
    let all = groups.all();
    let order = |one: &Rc<Group<T>>| {
        one.queues
            .look(|queues| queues.order(destination, clock::now()))
    };
    let mut orders = all.iter().map(order);
    let (holds, what) = match change {
        Change::Release => (orders.any(|one| one.held_until.is_some()), "held"),
        Change::Accept => (orders.any(|one| one.refused_until.is_some()), "refused"),
        Change::Restore => (orders.any(|one| one.detour.is_some()), "rerouted"),
        Change::Hold | Change::Refuse | Change::Reroute(_) => {
            let is_known = |one: &Rc<Group<T>>| {
                one.queues
                    .look(|queues| queues.number(destination))
                    .is_some()
            };
            if ahead || all.iter().any(is_known) {
                return Ok(());
            }
            let leads = groups.process().leads_to(destination);
            return leads.map_err(|other| {
                format!("{}; or add --ahead", unrouted::unknown(destination, other))
            });
        }
    };
    match holds {
        true => Ok(()),
        false => Err(format!(
            "{destination} is not {what}; vere queue orders names what is"
        )),
    }
}

/// Translates a change. Only remote mail can be rerouted, and only to a remote place.
fn wanted(change: &OrderChange, destination: &Destination) -> Result<Change, String> {
    Ok(match change {
        OrderChange::Hold => Change::Hold,
        OrderChange::Release => Change::Release,
        OrderChange::Refuse => Change::Refuse,
        OrderChange::Accept => Change::Accept,
        OrderChange::Restore => Change::Restore,
        OrderChange::Reroute { to } => {
            let to: Destination = to
                .parse()
                .map_err(|error: EmptyDestination| error.to_string())?;
            if *destination == Destination::LOCAL || to == Destination::LOCAL {
                return Err("mail for mailboxes of this system has no other way".to_owned());
            }
            if to.wish != TlsWish::None {
                return Err(format!("{to} is no place that mail goes to"));
            }
            Change::Reroute(to.place)
        }
    })
}

/// Lists the orders for all destinations, then the held messages, here and in adopted groups.
pub(super) async fn orders<T: Trade>(groups: &Groups<T>) -> Answer {
    let now = clock::now();
    let rows = |one: &Group<T>, group: Option<&str>| {
        one.queues.look(|queues| {
            let rows = queues.orders(now).map(|order| order_row(&order, group));
            rows.collect::<Vec<_>>()
        })
    };
    let mut all = Vec::new();
    for (name, one) in groups.named() {
        all.extend(rows(&one, name.as_deref()));
    }
    all.sort_by(|a, b| (&a.destination, &a.group).cmp(&(&b.destination, &b.group)));
    all.extend(look::held(groups).await.into_iter().map(held_row));
    answer(&all)
}

fn held_row(message: MessageRow) -> OrderRow {
    OrderRow {
        destination: message.destination,
        group: message.group,
        id: Some(message.id),
        held_since: message.held_since,
        held_for: message.held_for,
        held_until: message.held_until,
        refused_until: None,
        way: None,
        way_until: None,
    }
}

fn order_row(order: &Order, group: Option<&str>) -> OrderRow {
    let detour = order.detour.as_ref();
    OrderRow {
        destination: order.destination.to_string(),
        group: group.map(str::to_owned),
        id: None,
        held_since: None,
        held_for: None,
        held_until: order.held_until.map(orders::until_text),
        refused_until: order.refused_until.map(orders::until_text),
        way: detour.map(|detour| detour.to.to_string()),
        way_until: detour.map(|detour| orders::until_text(detour.until)),
    }
}

/// Applies an action to the messages of one destination, or of all, in adopted queues too.
pub(super) async fn act<T: Trade>(
    groups: &Groups<T>,
    destination: Option<&str>,
    selection: &Selection,
    action: Action,
    report: bool,
) -> Answer {
    let wanted = match destination.map(str::parse::<Destination>) {
        None => None,
        Some(Ok(name)) => Some(name),
        Some(Err(error)) => return Answer::Error(error.to_string()),
    };
    let mut sweeps = Vec::new();
    for one in groups.all() {
        let numbers: Vec<_> = one.queues.look(|queues| match &wanted {
            None => queues.active(),
            Some(name) => queues.number(name).into_iter().collect(),
        });
        let sweep = |queue| Sweep {
            group: Rc::clone(&one),
            queue,
            selection: selection.clone(),
            action,
            report,
        };
        sweeps.extend(numbers.into_iter().map(sweep));
    }
    if let Some(name) = wanted.filter(|_| sweeps.is_empty()) {
        return Answer::Error(unrouted::no_queue(groups.process(), &name));
    }
    // The task continues after the client disconnects: a half-finished action is worse than a finished action.
    let done = spawn_local(async move {
        let mut acted = Acted::default();
        for sweep in sweeps {
            if let Err(error) = sweep.run(&mut acted).await {
                acted.trouble = Some(error.to_string());
                break;
            }
        }
        acted
    });
    match done.await {
        Ok(acted) => answer(&acted),
        Err(error) => Answer::Error(error.to_string()),
    }
}

fn answer(value: &impl serde::Serialize) -> Answer {
    match serde_json::to_value(value) {
        Ok(value) => Answer::Ok(value),
        Err(error) => Answer::Error(error.to_string()),
    }
}
