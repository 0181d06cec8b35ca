//! Answers the control socket.

mod audit;
mod hold;
mod look;
mod operate;
mod orders;
mod replicas;
mod top;
mod unrouted;

use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::spawn_local;

use super::groups::Groups;
use super::trade::Trade;
pub use top::{Receiving, count, octets};
pub use unrouted::tell_unrouted;
use vere_control::{Answer, REQUEST_MAX, Request};

/// How long a client may take for a request or to read its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves until the process stops. `answer` answers a request, by [`answer`] where the request is about queues.
pub async fn serve<T: Trade>(
    groups: Rc<Groups<T>>,
    listener: UnixListener,
    answer: impl AsyncFn(&Rc<Groups<T>>, &Request) -> Answer + Copy + 'static,
) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let groups = Rc::clone(&groups);
                spawn_local(async move {
                    // A client that breaks off gets no answer; there is nobody to tell.
                    let _ = converse(&groups, stream, answer).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept on the control socket");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn converse<T: Trade>(
    groups: &Rc<Groups<T>>,
    stream: UnixStream,
    answer: impl AsyncFn(&Rc<Groups<T>>, &Request) -> Answer,
) -> io::Result<()> {
    let operator = stream.peer_cred()?.uid();
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(reader.take(REQUEST_MAX as u64));
    tokio::time::timeout(PATIENCE, reader.read_line(&mut line)).await??;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => {
            let answer = answer(groups, &request).await;
            audit::write(operator, &request, &answer);
            answer
        }
        Err(error) => Answer::Error(format!("request cannot be read: {error}")),
    };
    let mut octets = serde_json::to_vec(&answer)?;
    octets.push(b'\n');
    tokio::time::timeout(PATIENCE, writer.write_all(&octets)).await?
}

/// Answers a request about queues; `None` for any other. `receiving` says what the process shows beside its queues.
pub async fn answer<T: Trade>(
    groups: &Groups<T>,
    request: &Request,
    receiving: impl FnOnce() -> Receiving,
) -> Option<Answer> {
    Some(match request {
        Request::QueueList {
            group,
            after,
            limit,
        } => look::list(groups, group.as_deref(), after.as_deref(), *limit),
        Request::Adopted => {
            let adopted = groups.adopted().into_iter();
            let names: Vec<String> = adopted.map(|(name, _)| name).collect();
            to_answer(&names)
        }
        Request::QueueShow {
            what,
            held,
            group,
            after,
            limit,
        } => {
            let asked = look::Asked {
                what: what.as_deref(),
                held: *held,
                group: group.as_deref(),
                after: *after,
                limit: *limit,
            };
            look::show(groups, asked).await
        }
        Request::QueueOrder {
            destination,
            change,
            seconds,
            ahead,
        } => operate::order(groups, destination, change, *seconds, *ahead).await,
        Request::QueueOrders => operate::orders(groups).await,
        Request::QueueAct {
            destination,
            selection,
            action,
            report,
        } => operate::act(groups, destination.as_deref(), selection, *action, *report).await,
        Request::QueueMessage {
            id,
            destination,
            change,
            seconds,
        } => hold::message(groups, destination.as_deref(), *id, *change, *seconds).await,
        Request::QuarantineList { .. }
        | Request::QuarantineShow { .. }
        | Request::QuarantineText { .. }
        | Request::QuarantineAct { .. }
        | Request::SendersList { .. }
        | Request::SendersRemove { .. } => return None,
        Request::QueueTop {
            order,
            filter,
            limit,
        } => to_answer(&top::sample(groups, (*order, filter, *limit), receiving).await),
        Request::SpoolTable => to_answer(&replicas::lines(&groups.own)),
        Request::FlushTrace => {
            groups.process().flush_trace();
            Answer::Ok(serde_json::Value::Null)
        }
    })
}

fn to_answer(rows: &impl serde::Serialize) -> Answer {
    match serde_json::to_value(rows) {
        Ok(value) => Answer::Ok(value),
        Err(error) => Answer::Error(error.to_string()),
    }
}
