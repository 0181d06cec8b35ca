//! Orders of operators for destinations: held, refused and rerouted mail.

use std::path::Path;

use serde::Serialize;
use vere_control::queues::parse;
use vere_control::{AskError, OrderRow, QueueRow, Request, TopOrder, TopSample, ask};

use crate::figures::counted;
use crate::finding::Finding;

/// Queues searched for held mail, the queues with the oldest message first.
const QUEUES_MAX: usize = 1_000;
/// Destinations in a line.
const NAMES_MAX: usize = 5;
/// The end of an order without a time.
const ENDLESS: &str = "taken back";

/// An order for a destination.
#[derive(Debug, Serialize)]
pub(super) struct Ordered {
    #[serde(flatten)]
    pub(super) order: OrderRow,
    /// Messages waiting for the destination; `None` where the queue is not among the queues with the oldest messages.
    pub(super) messages: Option<usize>,
}

/// The orders for destinations. A gateway without an answer has no orders here: another finding is about the gateway.
pub(super) fn of(socket: &Path) -> Vec<Ordered> {
    gathered(socket).unwrap_or_default()
}

fn gathered(socket: &Path) -> Result<Vec<Ordered>, AskError> {
    let orders: Vec<OrderRow> = parse(ask(socket, &Request::QueueOrders)?)?;
    // Single held messages are counted elsewhere.
    let orders: Vec<_> = orders.into_iter().filter(|row| row.id.is_none()).collect();
    if orders.is_empty() {
        return Ok(Vec::new());
    }
    let request = Request::QueueTop {
        order: TopOrder::Oldest,
        filter: String::new(),
        limit: QUEUES_MAX,
    };
    let sample: TopSample = parse(ask(socket, &request)?)?;
    let ordered = |order: OrderRow| Ordered {
        messages: waiting(&order, &sample.queues),
        order,
    };
    Ok(orders.into_iter().map(ordered).collect())
}

fn waiting(order: &OrderRow, queues: &[QueueRow]) -> Option<usize> {
    let mut queues = queues.iter();
    let is_its = |row: &&QueueRow| row.destination == order.destination && row.group == order.group;
    Some(queues.find(is_its)?.messages)
}

/// The finding for mail that waits until somebody takes the hold back.
pub(super) fn held(all: &[Ordered]) -> Option<Finding> {
    let is_endless = |one: &&Ordered| one.order.held_until.as_deref() == Some(ENDLESS);
    let waits = |one: &&Ordered| one.messages.is_some_and(|messages| messages > 0);
    let held: Vec<&Ordered> = all.iter().filter(is_endless).filter(waits).collect();
    let first = held.first()?;
    let messages: usize = held.iter().filter_map(|one| one.messages).sum();
    let names = names(held.iter().map(|one| one.order.destination.as_str()));
    let all = match held.len() {
        1 => "",
        _ => ", and so on; see: vere queue orders",
    };
    Some(Finding::warning(
        format!(
            "{} held without end, for {names}",
            counted(messages as u64, "message")
        ),
        format!(
            "deliver with: vere queue release {}{all}",
            first.order.destination
        ),
    ))
}

/// The orders in a line; `None` without orders.
pub(super) fn line(all: &[Ordered]) -> Option<String> {
    let part = |word: &str, is_it: fn(&OrderRow) -> bool| {
        let rows = all.iter().map(|one| &one.order).filter(|row| is_it(row));
        let names = names(rows.map(|row| row.destination.as_str()));
        (!names.is_empty()).then(|| format!("{word}: {names}"))
    };
    let parts = [
        part("held", |row| row.held_until.is_some()),
        part("refused", |row| row.refused_until.is_some()),
        part("rerouted", |row| row.way.is_some()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The first names, and how many follow.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = all.collect();
    let first = all.iter().take(NAMES_MAX).copied().collect::<Vec<_>>();
    let first = first.join(", ");
    match all.len().saturating_sub(NAMES_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
