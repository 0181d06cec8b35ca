//! The examination as text and as JSON.

use serde_json::json;
use vere_process::failure::Failure;

use super::section::Section;
use crate::figures::counted;
use crate::finding::Level;
use crate::row;

/// # Errors
/// When a row has no form in JSON.
pub(crate) fn in_json(sections: &[Section], level: Level) -> Result<String, Failure> {
    let one = |section: &Section| json!({ "section": section.name, "checks": section.rows });
    let sections: Vec<_> = sections.iter().map(one).collect();
    let value = json!({ "level": level, "sections": sections });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

/// The line for monitoring, then the rows by section; `quiet` leaves out good results.
pub(super) fn in_text(sections: &[Section], level: Level, quiet: bool) -> String {
    let rows = || sections.iter().flat_map(|section| &section.rows);
    let findings = rows().filter(|row| row.level > Level::Ok).count();
    let checks = counted(rows().count() as u64, "check");
    let mut out = match findings {
        0 => format!("{}: nothing to mend, {checks}\n", level.word()),
        count => format!(
            "{}: {} in {checks}\n",
            level.word(),
            counted(count as u64, "finding")
        ),
    };
    for section in sections {
        let rows = section.rows.iter();
        let rows: Vec<_> = rows
            .filter(|row| !quiet || row.level > Level::Ok)
            .cloned()
            .collect();
        if !rows.is_empty() {
            out += &format!("\n{}\n", section.name);
            row::in_text(&mut out, &rows);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Row;

    #[test]
    fn findings_follow_the_line_for_monitoring() {
        let sections = [
            Section {
                name: "machine".to_owned(),
                rows: vec![
                    Row::ok("clock", "synchronised"),
                    Row::warning("memory", "too little", "add memory"),
                ],
            },
            Section {
                name: "example.org".to_owned(),
                rows: vec![Row::ok("mx", "found")],
            },
        ];
        let text = in_text(&sections, Level::Warning, true);
        let expected = "WARNING: 1 finding in 3 checks\n\nmachine\n  WARNING  memory       too little\n  \
                        \u{20}                     -> add memory\n";
        assert_eq!(text, expected);
        let whole = in_text(&sections, Level::Warning, false);
        assert!(
            whole.contains("\nexample.org\n  OK       mx           found\n"),
            "{whole}"
        );
        let json: serde_json::Value =
            serde_json::from_str(&in_json(&sections, Level::Warning).unwrap()).unwrap();
        assert_eq!(json["level"], "warning");
        assert_eq!(json["sections"][0]["checks"][1]["remedy"], "add memory");
    }
}
