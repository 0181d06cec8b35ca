//! Copies of changes and names on further accounts, in the state of a mount.

use serde_json::{Value, json};
use vere_mailfs::volume::MirrorStatus;

/// As JSON has the copies.
pub(crate) fn json(copies: &[MirrorStatus]) -> Value {
    let copies = copies.iter().map(|copy| {
        json!({
            "account": copy.account,
            "generation": copy.generation,
            "commits_behind": copy.commits_behind,
            "pages_behind": copy.pages_behind,
            "is_level": copy.is_level,
        })
    });
    copies.collect()
}

/// For people: a name and a value for each copy.
pub(crate) fn shown(status: &Value) -> Vec<(String, String)> {
    let copies = status["metadata_copies"].as_array();
    let copies = copies.into_iter().flatten();
    copies
        .map(|copy| {
            let name = format!("copy on account {}", copy["account"]);
            (name, line(copy))
        })
        .collect()
}

fn line(copy: &Value) -> String {
    let number = |key: &str| copy[key].as_u64().unwrap_or(0);
    if copy["is_level"] == Value::Bool(true) {
        return "every change and name".to_owned();
    }
    let (commits, pages) = (number("commits_behind"), number("pages_behind"));
    if copy["generation"].is_null() {
        return "not compared yet".to_owned();
    }
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    format!(
        "lacks {commits} change{} and {pages} mail{} with names",
        plural(commits),
        plural(pages)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_tells_how_far_it_is() {
        let level = MirrorStatus {
            account: 2,
            generation: Some(7),
            commits_behind: 0,
            pages_behind: 0,
            is_level: true,
        };
        let behind = MirrorStatus {
            account: 3,
            commits_behind: 1,
            pages_behind: 2,
            is_level: false,
            ..level.clone()
        };
        let unknown = MirrorStatus {
            account: 4,
            generation: None,
            is_level: false,
            ..level.clone()
        };
        let status = json!({ "metadata_copies": json(&[level, behind, unknown]) });
        let lines = shown(&status);
        let expected = [
            ("copy on account 2", "every change and name"),
            ("copy on account 3", "lacks 1 change and 2 mails with names"),
            ("copy on account 4", "not compared yet"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(lines, expected);
    }
}
