//! The results as text and as JSON.

use std::fmt::Write as _;

use serde_json::json;
use vere_process::failure::Failure;

use crate::figures::counted;
use crate::finding::Level;
use crate::row::{self, Row};

/// Results by domain.
type Checked = [(String, Vec<Row>)];

/// # Errors
/// When a row has no form in JSON.
pub(super) fn in_json(checked: &Checked) -> Result<String, Failure> {
    let one = |(domain, rows): &(String, Vec<Row>)| json!({ "domain": domain, "checks": rows });
    let all: Vec<_> = checked.iter().map(one).collect();
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

pub(super) fn in_text(checked: &Checked) -> String {
    let mut out = String::new();
    for (domain, rows) in checked {
        let _ = writeln!(out, "{domain}");
        row::in_text(&mut out, rows);
    }
    let rows = || checked.iter().flat_map(|(_, rows)| rows);
    let findings = rows().filter(|row| row.level > Level::Ok).count();
    let _ = match findings {
        0 => writeln!(out, "nothing to mend"),
        count => writeln!(out, "{}", counted(count as u64, "finding")),
    };
    out
}
