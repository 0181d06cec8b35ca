//! Destinations that no mail comes to by the settings and the directory.

use vere_queue::{Destination, Order, Place};

use super::groups::Groups;
use super::process::Process;
use vere_process::clock;

/// Whether mail may come to a destination now; if not, where mail for its domain goes.
pub(super) fn leads_to(process: &Process, destination: &Destination) -> Result<(), Option<Place>> {
    process.router.leads_to(&process.settings(), destination)
}

/// Whether a queue's next hop is one that no route names, so that mail waits for what was taken out of the
/// settings.
pub(super) fn is_unrouted(process: &Process, destination: &Destination, order: &Order) -> bool {
    let fixed = matches!(destination.place, Place::Relay(_));
    fixed && order.detour.is_none() && leads_to(process, destination).is_err()
}

/// Names the queues in the log whose mail waits for a next hop that the settings do not have any more.
pub(super) fn tell_unrouted(groups: &Groups) {
    for one in groups.all() {
        one.queues.look(|queues| {
            let waiting = queues.active().into_iter().filter_map(|number| {
                let destination = queues.destination(number)?;
                Some((destination, queues.fill(destination).0))
            });
            for (destination, messages) in waiting.filter(|(_, messages)| *messages > 0) {
                let order = queues.order(destination, clock::now());
                if is_unrouted(&one.host.process, destination, &order) {
                    tracing::warn!(
                        queue = %destination,
                        messages,
                        "no route names this next hop any more: vere queue reroute sends what waits elsewhere"
                    );
                }
            }
        });
    }
}

/// Returns what an operator reads of a destination without queue.
pub(super) fn unknown(destination: &Destination, goes_to: Option<Place>) -> String {
    match goes_to {
        Some(other) => format!("no queue {destination}: mail for it goes to {other}"),
        None => format!("no queue {destination}; vere queue list names them"),
    }
}

/// What is said of a destination that has no queue.
pub(super) fn no_queue(process: &Process, destination: &Destination) -> String {
    let leads = leads_to(process, destination);
    unknown(destination, leads.err().flatten())
}
