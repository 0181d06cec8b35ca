//! The lines in which two texts differ, for a person.

use std::fmt::Write as _;
use std::time::Duration;

use similar::TextDiff;

/// Unchanged lines around each changed place.
const CONTEXT: usize = 1;
/// Time limit of the search for the shortest difference; a longer difference is right too.
const PATIENCE: Duration = Duration::from_secs(1);

/// The changed lines, with `+` or `-` in front, and one unchanged line around each place.
pub(crate) fn difference(old: &str, new: &str) -> String {
    let lines = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let mut text = String::new();
    for hunk in lines.unified_diff().context_radius(CONTEXT).iter_hunks() {
        for change in hunk.iter_changes() {
            let line = change.value().trim_end_matches(['\r', '\n']);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} {line}", change.tag());
        }
    }
    text
}
