//! Output for programs.

use serde::Serialize;

use vere_process::failure::Failure;

/// The rows as JSON, with a line end behind.
///
/// # Errors
/// When a row has no form in JSON.
pub(super) fn to_json(rows: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(rows)
        .map(|text| text + "\n")
        .map_err(|error| Failure::new(error.to_string()))
}
