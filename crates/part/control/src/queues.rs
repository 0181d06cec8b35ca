//! All queues of a running gateway, as commands ask for them.

use std::path::Path;

use serde_json::Value;

use super::{AskError, QueueRow, Request, ask};

/// Queues in one answer of the gateway.
const PAGE: usize = 2_000;

/// All queues, those of dead gateways that are delivered by this one last.
///
/// # Errors
/// When the gateway does not answer, or answers in another form.
pub fn all(socket: &Path) -> Result<Vec<QueueRow>, AskError> {
    let mut rows = in_group(socket, None)?;
    let adopted = ask(socket, &Request::Adopted)?;
    for group in parse::<Vec<String>>(adopted)? {
        rows.append(&mut in_group(socket, Some(&group))?);
    }
    Ok(rows)
}

/// Asks page by page, so that the gateway never works long on one.
fn in_group(socket: &Path, group: Option<&str>) -> Result<Vec<QueueRow>, AskError> {
    let mut rows: Vec<QueueRow> = Vec::new();
    loop {
        let request = Request::QueueList {
            group: group.map(str::to_owned),
            after: rows.last().map(|row| row.destination.clone()),
            limit: PAGE,
        };
        let page: Vec<QueueRow> = parse(ask(socket, &request)?)?;
        if page.is_empty() {
            return Ok(rows);
        }
        rows.extend(page);
    }
}

/// Parses the value of an answer.
///
/// # Errors
/// When the value has another form, such as that of another version.
pub fn parse<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, AskError> {
    serde_json::from_value(value).map_err(AskError::Form)
}
