//! Destinations that neither the settings nor the directory lead mail to.

use vere_queue::{Destination, Order, Place};

use crate::groups::Groups;
use crate::trade::Trade;
use vere_process::clock;

/// Whether no route names the next hop of a queue: its mail waits for a next hop that was removed from the settings.
pub(super) fn is_unrouted<T: Trade>(process: &T, destination: &Destination, order: &Order) -> bool {
    let fixed = matches!(destination.place, Place::Relay(_));
    fixed && order.detour.is_none() && process.leads_to(destination).is_err()
}

/// Logs the queues whose mail waits for a next hop that was removed from the settings.
pub fn tell_unrouted<T: Trade>(groups: &Groups<T>) {
    for one in groups.all() {
        one.queues.look(|queues| {
            let waiting = queues.active().into_iter().filter_map(|number| {
                let destination = queues.destination(number)?;
                Some((destination, queues.fill(destination).0))
            });
            for (destination, messages) in waiting.filter(|(_, messages)| *messages > 0) {
                let order = queues.order(destination, clock::now());
                if is_unrouted(&*one.host.process, destination, &order) {
                    tracing::warn!(
                        queue = %destination,
                        messages,
                        "no route names this next hop any more: redirect the messages with vere queue reroute"
                    );
                }
            }
        });
    }
}

/// Returns the text for operators about a destination without queue.
pub(super) fn unknown(destination: &Destination, goes_to: Option<Place>) -> String {
    match goes_to {
        Some(other) => format!("no queue {destination}: mail for it goes to {other}"),
        None => format!("no queue {destination}; vere queue list names them"),
    }
}

/// Returns the text for operators about a destination without queue, with the place of its mail.
pub(super) fn no_queue<T: Trade>(process: &T, destination: &Destination) -> String {
    let leads = process.leads_to(destination);
    unknown(destination, leads.err().flatten())
}
