//! Queue commands of operators, one at a time.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_local;
use vere_delivery::{Change, Unkept};
use vere_queue::order::FOREVER;
use vere_queue::{Destination, Order};
use vere_units::Timestamp;

use crate::group::Group;
use crate::trade::Trade;

/// How long somebody waits for the spool to keep an order.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs one change of queue commands at a time, since each change builds on its predecessor. The change continues
/// if the caller gives up or the spool's answer comes late.
///
/// # Errors
/// [`Unkept::NotBegun`], [`Unkept::Unanswered`], each after some seconds.
pub(super) async fn in_turn<T: Trade, R: 'static>(
    group: &Group<T>,
    change: impl Future<Output = R> + 'static,
) -> Result<R, Unkept> {
    let turn = Arc::clone(&group.host.ordering).lock_owned();
    let turn = tokio::time::timeout(PATIENCE, turn).await;
    let turn = turn.map_err(|_| Unkept::NotBegun)?;
    let done = spawn_local(async move {
        let _turn = turn;
        change.await
    });
    match tokio::time::timeout(PATIENCE, done).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) | Err(_) => Err(Unkept::Unanswered),
    }
}

/// Changes the queue commands of a destination, first in the spool. Returns the commands in effect.
///
/// # Errors
/// When the spool did not confirm the change, which then takes effect later or never.
pub(super) async fn change<T: Trade>(
    group: &Rc<Group<T>>,
    destination: Destination,
    change: &Change,
    span: Option<Duration>,
) -> Result<Order, Unkept> {
    let (one, change) = (Rc::clone(group), change.clone());
    let kept = async move { one.order(destination, &change, span).await };
    Ok(in_turn(group, kept).await??)
}

/// Formats the end of a queue command; [`FOREVER`] means until an operator reverts the command.
pub(super) fn until_text(until: Timestamp) -> String {
    if until == FOREVER {
        "taken back".to_owned()
    } else {
        until.to_string()
    }
}
