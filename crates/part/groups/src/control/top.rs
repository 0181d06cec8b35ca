//! The sample for `vere queue top`: counters, budgets, and the first queues of the chosen order.

use std::time::Duration;

use vere_process::clock;
use vere_queue::TopOrder as Order;
use vere_spoolwire::NodeStat;

use super::{look, replicas};
use crate::group::Group;
use crate::groups::Groups;
use crate::trade::Trade;
use vere_control::{Budget, HeaviestClient, QueueRow, TopOrder, TopSample, TopTotals};

/// Maximum of queues in one answer: longer answers would delay other tasks by more than some milliseconds.
const ROWS_MAX: usize = 1_000;
/// How long a node may take for its figures; later, the sample has no figures of the node.
const NODE_PATIENCE: Duration = Duration::from_millis(500);

/// What a process that receives mail shows beside its queues.
#[derive(Debug, Default)]
pub struct Receiving {
    /// Reason why new mail is refused at present.
    pub closed: Option<String>,
    /// Connections of clients.
    pub clients: Option<Budget>,
    /// Memory and disk space of messages that are being received.
    pub bodies: Vec<Budget>,
    /// Client whose incoming messages hold most memory.
    pub heaviest: Option<HeaviestClient>,
    /// Client whose long incoming messages hold most of the disk.
    pub heaviest_on_disk: Option<HeaviestClient>,
}

/// A limited number of things.
pub fn count(name: &str, used: usize, max: u64) -> Budget {
    Budget {
        name: name.to_owned(),
        used: used as u64,
        max: Some(max),
        octets: false,
    }
}

/// A limited space; `max`: absent without a limit.
pub fn octets(name: &str, used: u64, max: Option<u64>) -> Budget {
    Budget {
        name: name.to_owned(),
        used,
        max,
        octets: true,
    }
}

/// Takes a sample.
pub(super) async fn sample<T: Trade>(
    groups: &Groups<T>,
    (order, filter, limit): (TopOrder, &str, usize),
    receiving: impl FnOnce() -> Receiving,
) -> TopSample {
    let own = &groups.own;
    // The nodes are asked first: all other figures are of one moment.
    let nodes = own.host.link.stats(NODE_PATIENCE).await;
    let fullest = nodes.iter().max_by_key(|node| node.fill);
    let (queues, matching) = rows(groups, order, filter, limit.min(ROWS_MAX));
    let (now, receiving) = (clock::now(), receiving());
    TopSample {
        gateway: groups.process().group(),
        time: now.to_string(),
        millis: now.as_millis(),
        closed: receiving.closed,
        delivers: Some(own.host.link.may_deliver()),
        totals: totals(groups),
        budgets: budgets(own, (receiving.clients, receiving.bodies), fullest),
        heaviest: receiving.heaviest,
        heaviest_on_disk: receiving.heaviest_on_disk,
        replicas: replicas::lines(own),
        queues,
        matching,
    }
}

fn rows<T: Trade>(
    groups: &Groups<T>,
    order: TopOrder,
    filter: &str,
    limit: usize,
) -> (Vec<QueueRow>, usize) {
    let order = match order {
        TopOrder::Messages => Order::Messages,
        TopOrder::Deferred => Order::Deferred,
        TopOrder::Connections => Order::Connections,
        TopOrder::Oldest => Order::Oldest,
        TopOrder::Name => Order::Name,
    };
    let of = |one: &Group<T>, group: Option<&str>| {
        let (summaries, count) = one.queues.look(|queues| queues.top(order, filter, limit));
        let rows = summaries.iter().map(|row| look::queue_row(one, row, group));
        (rows.collect::<Vec<_>>(), count)
    };
    let (mut rows, mut matching) = (Vec::new(), 0);
    for (name, one) in groups.named() {
        let (more, count) = of(&one, name.as_deref());
        rows.extend(more);
        matching += count;
    }
    (rows, matching)
}

fn totals<T: Trade>(groups: &Groups<T>) -> TopTotals {
    let mut sum = TopTotals::default();
    let mut oldest = None;
    for one in groups.all() {
        let (totals, first) = one
            .queues
            .look(|queues| (*queues.totals(), queues.oldest()));
        sum.messages += totals.messages;
        sum.deferred += totals.deferred;
        sum.in_flight += totals.in_flight;
        sum.held += totals.held;
        sum.came += totals.came;
        sum.left += totals.left;
        sum.destinations += totals.destinations;
        sum.paused += totals.paused;
        oldest = oldest.into_iter().chain(first).min();
    }
    sum.oldest_seconds = oldest.map(|time| clock::now().saturating_since(time).as_secs());
    sum
}

/// Returns the limits, and how much of each is used; figures of nodes are those of the fullest node. The gateway's own
/// limits apply to each group.
fn budgets<T: Trade>(
    group: &Group<T>,
    (clients, bodies): (Option<Budget>, Vec<Budget>),
    node: Option<&NodeStat>,
) -> Vec<Budget> {
    let settings = group.host.process.settings();
    let limits = &settings.limits;
    let (queued, out, heads) = group.queues.look(|queues| {
        let out = queues.totals().connections;
        (queues.messages(), out, queues.head_octets() as u64)
    });
    let mut all = vec![count("queued", queued, limits.queued_messages_max)];
    all.extend(clients);
    all.push(count(
        "deliveries",
        out,
        settings.delivery.connections_max.into(),
    ));
    all.extend(bodies);
    let max = Some(limits.queue_memory_max.as_u64());
    all.push(octets("leaving next", heads, max));
    if let Some(node) = node {
        let max = Some(node.bytes_max).filter(|max| *max < u64::MAX);
        let percent = usize::try_from(node.fill / 10).unwrap_or(usize::MAX);
        all.push(octets("spool group", node.bytes, max));
        all.push(count("fullest node", percent, 100));
        all.push(octets(
            "spool memory",
            node.memory_used,
            Some(node.memory_max),
        ));
        let spill_max = settings.spool.spill_max.as_u64();
        all.push(octets("spool on disk", node.spilled, Some(spill_max)));
    }
    if let Some(records) = &settings.records {
        let waiting = group.event_lines.waiting();
        all.push(octets(
            "records",
            waiting,
            Some(records.waiting_max.as_u64()),
        ));
    }
    all
}
