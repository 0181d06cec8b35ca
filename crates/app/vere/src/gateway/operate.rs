//! Carries out what operators ask for by `vere queue`.

use std::rc::Rc;
use std::time::Duration;

use tokio::task::spawn_local;
use vere_queue::{Destination, Order};

use super::state::Gateway;
use super::sweep::Sweep;
use super::{clock, orders};
use crate::control::{Acted, Action, Answer, OrderChange, OrderRow, Selection};

/// Changes what holds for a destination.
pub(super) async fn order(
    gateway: &Gateway,
    destination: &str,
    change: OrderChange,
    seconds: Option<u64>,
) -> Answer {
    let Ok(destination) = destination.parse::<Destination>() else {
        return Answer::Error("a destination needs a name".to_owned());
    };
    if !gateway.is_recovered() {
        return Answer::Error("the queues are not read back yet; ask again".to_owned());
    }
    let span = seconds.map(Duration::from_secs);
    match orders::change(gateway, destination, change, span).await {
        Ok(order) => answer(&order_row(&order)),
        Err(error) => Answer::Error(format!("nothing changed: {error}")),
    }
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

/// Does something with the messages of one queue, or of all.
pub(super) async fn act(
    gateway: &Rc<Gateway>,
    destination: Option<&str>,
    selection: &Selection,
    action: Action,
    report: bool,
) -> Answer {
    let queues = match destination {
        None => gateway.queues.borrow().active(),
        Some(name) => {
            let known = name
                .parse::<Destination>()
                .ok()
                .and_then(|known| gateway.queues.borrow().number(&known));
            match known {
                Some(number) => vec![number],
                None => {
                    let text = format!("no queue {name}; vere queue list names them");
                    return Answer::Error(text);
                }
            }
        }
    };
    let sweeps: Vec<_> = queues
        .into_iter()
        .map(|queue| Sweep {
            gateway: Rc::clone(gateway),
            queue,
            selection: selection.clone(),
            action,
            report,
        })
        .collect();
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
