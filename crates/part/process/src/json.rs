//! Output for programs.

use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;

/// The rows as JSON, with a line end behind.
///
/// # Errors
/// When a row has no form in JSON.
pub fn to_json(rows: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(rows)
        .map(|text| text + "\n")
        .map_err(|error| Failure::new(error.to_string()))
}

/// What a command prints: a value as JSON, or the text for people.
#[must_use]
pub fn printed(json: bool, value: impl Into<Value>, text: String) -> String {
    match json {
        true => format!("{:#}\n", value.into()),
        false => text,
    }
}
