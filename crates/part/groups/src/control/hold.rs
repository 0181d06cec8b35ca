//! Answers operators who hold or release single messages.

use std::time::Duration;

use vere_control::{Answer, HoldOutcome, HoldRow, MessageChange};
use vere_delivery::Holding;
use vere_process::clock;
use vere_queue::Destination;
use vere_queue::order::FOREVER;
use vere_units::TraceId;

use super::orders;
use crate::group::GroupHost;
use crate::groups::Groups;
use crate::trade::Trade;

/// Holds or releases a message, in the queue of one destination or in all that it waits in, adopted ones
/// too.
pub(super) async fn message<T: Trade>(
    groups: &Groups<T>,
    destination: Option<&str>,
    id: TraceId,
    change: MessageChange,
    seconds: Option<u64>,
) -> Answer {
    let wanted = match destination.map(str::parse::<Destination>).transpose() {
        Ok(wanted) => wanted,
        Err(error) => return Answer::Error(error.to_string()),
    };
    if !groups.are_recovered() {
        return Answer::Error("the queues are not read back yet; ask again".to_owned());
    }
    let span = seconds.map(Duration::from_secs);
    let until = span.map_or(FOREVER, |span| clock::now() + span);
    let mut rows = Vec::new();
    for one in &groups.all() {
        for holding in one.holdings(wanted.as_ref(), id) {
            let name = holding.destination.to_string();
            let changing = async move {
                let outcome = holding.change(change, until).await?;
                Ok(row(&holding, outcome))
            };
            let changed = orders::in_turn(one, changing).await;
            match changed.and_then(|row| row) {
                Ok(row) => rows.push(row),
                Err(unkept) => return Answer::Error(format!("{name}: {unkept}")),
            }
        }
    }
    if rows.is_empty() {
        let place = wanted.map_or_else(String::new, |name| format!(" for {name}"));
        return Answer::Error(format!("no message {id} is queued{place}"));
    }
    match serde_json::to_value(rows) {
        Ok(value) => Answer::Ok(value),
        Err(error) => Answer::Error(error.to_string()),
    }
}

fn row<T: Trade>(holding: &Holding<GroupHost<T>>, outcome: HoldOutcome) -> HoldRow {
    let held_until = holding.message().and_then(|message| message.held_until);
    HoldRow {
        id: holding.trace.to_string(),
        destination: holding.destination.to_string(),
        outcome,
        held_until: held_until.map(orders::until_text),
        in_order: holding.keeps_order(),
    }
}
