//! `vere queue`: look into the queues of a running gateway.

use std::fmt::Write as _;

use clap::Subcommand;
use serde_json::Value;
use vere_settings::Settings;
use vere_units::ByteSize;

use super::Failure;
use crate::control::{MessageRow, QueueRow, Request, ask};

/// Looks into the queues of a running gateway.
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Lists the queues: messages, size, deferred, oldest, last reply of the destination.
    List {
        /// Prints JSON: a list of objects.
        #[arg(long)]
        json: bool,
    },
    /// Lists the messages of one queue in acceptance order.
    Show {
        /// The destination as `vere queue list` prints it.
        destination: String,
        /// Leaves out this many from the start.
        #[arg(long, default_value_t = 0)]
        skip: usize,
        /// Lists this many at most.
        #[arg(long, default_value_t = 100)]
        limit: usize,
        /// Prints JSON: a list of objects.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command and gives what is to be printed.
///
/// # Errors
/// When no gateway answers, or it does not know the queue.
pub(crate) fn run(command: &QueueCommand, settings: &Settings) -> Result<String, Failure> {
    let socket = &settings.control.socket;
    let (request, json) = match command {
        QueueCommand::List { json } => (Request::QueueList, *json),
        QueueCommand::Show {
            destination,
            skip,
            limit,
            json,
        } => (
            Request::QueueShow {
                destination: destination.clone(),
                skip: *skip,
                limit: *limit,
            },
            *json,
        ),
    };
    let value = ask(socket, &request).map_err(Failure::new)?;
    if json {
        return Ok(format!("{value:#}\n"));
    }
    match command {
        QueueCommand::List { .. } => list(value),
        QueueCommand::Show { .. } => show(value),
    }
}

fn list(value: Value) -> Result<String, Failure> {
    let rows: Vec<QueueRow> = parse(value)?;
    if rows.is_empty() {
        return Ok("no queues\n".to_owned());
    }
    let mut out = format!(
        "{:<32} {:>9} {:>10} {:>9} {:>9} {:>5}  {:<24}  {}\n",
        "DESTINATION",
        "MESSAGES",
        "SIZE",
        "DEFERRED",
        "IN FLIGHT",
        "CONN",
        "OLDEST",
        "LAST COMPLAINT"
    );
    for row in rows {
        let _ = writeln!(
            out,
            "{:<32} {:>9} {:>10} {:>9} {:>9} {:>5}  {:<24}  {}{}",
            row.destination,
            row.messages,
            ByteSize::new(row.octets).to_string(),
            row.deferred,
            row.in_flight,
            row.connections,
            row.oldest.as_deref().unwrap_or("-"),
            row.paused_until
                .map(|until| format!("(next try {until}) "))
                .unwrap_or_default(),
            row.last_reply.as_deref().unwrap_or("-"),
        );
    }
    Ok(out)
}

fn show(value: Value) -> Result<String, Failure> {
    let rows: Vec<MessageRow> = parse(value)?;
    if rows.is_empty() {
        return Ok("no messages\n".to_owned());
    }
    let mut out = String::new();
    for row in rows {
        let _ = writeln!(
            out,
            "{} {} {} from <{}> to {}",
            row.id,
            row.accepted,
            ByteSize::new(u64::from(row.size)),
            row.reverse_path,
            row.recipients.join(", ")
        );
        if row.attempts > 0 {
            let _ = writeln!(
                out,
                "    {} attempts, next {}: {}",
                row.attempts,
                row.not_before.as_deref().unwrap_or("now"),
                row.last_reply.as_deref().unwrap_or("-")
            );
        }
    }
    Ok(out)
}

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value)
        .map_err(|error| Failure::new(format!("the gateway's answer cannot be read: {error}")))
}
