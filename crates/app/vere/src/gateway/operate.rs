//! Carries out what operators ask for by `vere queue`.

use std::rc::Rc;
use std::time::Duration;

use tokio::task::spawn_local;
use vere_queue::{Destination, Order};

use super::state::Gateway;
use super::sweep::Sweep;
use super::{clock, orders};
use crate::control::{Acted, Action, Answer, OrderChange, OrderRow, Selection};

/// Changes what holds for a destination, in adopted queues too.
pub(super) async fn order(
    gateway: &Rc<Gateway>,
    destination: &str,
    change: OrderChange,
    seconds: Option<u64>,
) -> Answer {
    let Ok(destination) = destination.parse::<Destination>() else {
        return Answer::Error("a destination needs a name".to_owned());
    };
    let all = gateway.with_adopted();
    if !all.iter().all(|one| one.is_recovered()) {
        return Answer::Error("the queues are not read back yet; ask again".to_owned());
    }
    let span = seconds.map(Duration::from_secs);
    let mut own = None;
    for (place, one) in all.iter().enumerate() {
        match orders::change(one, destination.clone(), change, span).await {
            Ok(order) => drop(own.get_or_insert(order)),
            Err(error) if place == 0 => return Answer::Error(format!("nothing changed: {error}")),
            Err(error) => {
                let text = format!("changed here, but not in all adopted queues: {error}");
                return Answer::Error(text);
            }
        }
    }
    own.map_or_else(
        || Answer::Error("nothing changed".to_owned()),
        |order| answer(&order_row(&order)),
    )
}

/// What is ordered for any destination.
pub(super) fn orders(gateway: &Gateway) -> Answer {
    let queues = gateway.queues.borrow();
    let mut rows: Vec<_> = queues
        .orders(clock::now())
        .map(|one| order_row(&one))
        .collect();
    rows.sort_by(|a, b| a.destination.cmp(&b.destination));
    answer(&rows)
}

fn order_row(order: &Order) -> OrderRow {
    OrderRow {
        destination: order.destination.to_string(),
        held_until: order.held_until.map(orders::until_text),
        refused_until: order.refused_until.map(orders::until_text),
    }
}

/// Does something with the messages of one destination, or of all, in adopted queues too.
pub(super) async fn act(
    gateway: &Rc<Gateway>,
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
    for one in gateway.with_adopted() {
        let numbers: Vec<_> = {
            let queues = one.queues.borrow();
            match &wanted {
                None => queues.active(),
                Some(name) => queues.number(name).into_iter().collect(),
            }
        };
        let sweep = |queue| Sweep {
            gateway: Rc::clone(&one),
            queue,
            selection: selection.clone(),
            action,
            report,
        };
        sweeps.extend(numbers.into_iter().map(sweep));
    }
    if let Some(name) = wanted.filter(|_| sweeps.is_empty()) {
        let text = format!("no queue {name}; vere queue list names them");
        return Answer::Error(text);
    }
    // It goes on when whoever asked goes away: half done is worse than done.
    let done = spawn_local(async move {
        let mut acted = Acted::default();
        for sweep in sweeps {
            if let Err(error) = sweep.run(&mut acted).await {
                acted.trouble = Some(error.to_string());
                break;
            }
        }
        tracing::info!(
            ?action,
            messages = acted.messages,
            "an operator's action is done"
        );
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
