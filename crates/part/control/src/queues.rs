//! All queues of a running gateway, as commands ask for them.

use std::path::Path;

use serde_json::Value;

use super::{QueueRow, Request, ask};
use vere_process::failure::Failure;

/// Queues in one answer of the gateway.
const PAGE: usize = 2_000;

/// All queues, those of dead gateways that are delivered by this one last.
///
/// # Errors
/// When the gateway does not answer; the text says why.
pub fn all(socket: &Path) -> Result<Vec<QueueRow>, Failure> {
    let mut rows = in_group(socket, None)?;
    let adopted = ask(socket, &Request::Adopted).map_err(Failure::new)?;
    for group in parse::<Vec<String>>(adopted)? {
        rows.append(&mut in_group(socket, Some(&group))?);
    }
    Ok(rows)
}

/// Asks page by page, so that the gateway never works long on one.
fn in_group(socket: &Path, group: Option<&str>) -> Result<Vec<QueueRow>, Failure> {
    let mut rows: Vec<QueueRow> = Vec::new();
    loop {
        let request = Request::QueueList {
            group: group.map(str::to_owned),
            after: rows.last().map(|row| row.destination.clone()),
            limit: PAGE,
        };
        let page: Vec<QueueRow> = parse(ask(socket, &request).map_err(Failure::new)?)?;
        if page.is_empty() {
            return Ok(rows);
        }
        rows.extend(page);
    }
}

/// What an answer holds.
///
/// # Errors
/// When it is of another form, as that of another version may be.
pub fn parse<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value)
        .map_err(|error| Failure::new(format!("the gateway's answer cannot be read: {error}")))
}
