//! The results as text and as JSON.

use std::fmt::Write as _;

use serde_json::json;
use vere_process::failure::Failure;

use super::row::Row;
use crate::figures::counted;
use crate::finding::Level;

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
        for row in rows {
            // Others write what is in the DNS.
            let text = printable(&row.text);
            let _ = writeln!(out, "  {:<8} {:<12} {text}", row.level.word(), row.check);
            if let Some(remedy) = &row.remedy {
                let _ = writeln!(out, "  {:<8} {:<12} -> {}", "", "", printable(remedy));
            }
        }
    }
    let rows = || checked.iter().flat_map(|(_, rows)| rows);
    let findings = rows().filter(|row| row.level > Level::Ok).count();
    let _ = match findings {
        0 => writeln!(out, "nothing to mend"),
        count => writeln!(out, "{}", counted(count as u64, "finding")),
    };
    out
}

fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}
