//! The snapshot: one line for each advisory.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use semver::{Version, VersionReq};

/// The first lines of the file.
const HEAD: &str = "# Advisories about packages that were locked when this snapshot was taken: id, package, versions that are not affected.
# Made by `cargo xtask advisories --write CLONE`, CLONE being a clone of RustSec's advisory-db.
";

/// An advisory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Advisory {
    pub(super) id: String,
    pub(super) package: String,
    /// Versions in any of the ranges are patched or were never affected.
    pub(super) unaffected: Vec<VersionReq>,
}

impl Advisory {
    pub(super) fn leaves_alone(&self, version: &Version) -> bool {
        self.unaffected.iter().any(|range| range.matches(version))
    }

    /// The ranges as text; `none` when every version is affected.
    pub(super) fn requirements(&self) -> String {
        let ranges: Vec<String> = self.unaffected.iter().map(ToString::to_string).collect();
        if ranges.is_empty() {
            "none".to_owned()
        } else {
            ranges.join(" | ")
        }
    }
}

/// Advisories, and the day of the last change of their database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) taken: String,
    pub(super) advisories: Vec<Advisory>,
}

impl Snapshot {
    /// Reads the file.
    ///
    /// # Errors
    /// The number and the fault of a line.
    pub(super) fn read(text: &str) -> Result<Self, (usize, String)> {
        let mut snapshot = Self {
            taken: String::new(),
            advisories: Vec::new(),
        };
        for (index, line) in text.lines().enumerate() {
            if let Some(day) = line.strip_prefix("taken ") {
                day.clone_into(&mut snapshot.taken);
            } else if !line.starts_with('#') {
                let advisory = advisory(line).map_err(|what| (index + 1, what))?;
                snapshot.advisories.push(advisory);
            }
        }
        if snapshot.taken.is_empty() {
            return Err((
                0,
                "expected a line `taken YYYY-MM-DD`; found none".to_owned(),
            ));
        }
        Ok(snapshot)
    }

    /// Takes the advisories about packages from a clone of the database.
    ///
    /// # Errors
    /// A page cannot be read.
    pub(super) fn take<'a>(
        clone: &Path,
        packages: impl Iterator<Item = &'a String>,
    ) -> Result<Self, String> {
        let mut advisories = Vec::new();
        for package in packages {
            let Ok(files) = fs::read_dir(clone.join("crates").join(package)) else {
                continue;
            };
            for file in files {
                let path = file.map_err(|error| error.to_string())?.path();
                let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
                let found =
                    taken(package, &text).map_err(|e| format!("{}: {e}", path.display()))?;
                advisories.extend(found);
            }
        }
        advisories.sort_by(|a, b| (&a.package, &a.id).cmp(&(&b.package, &b.id)));
        Ok(Self {
            taken: last_change(clone)?,
            advisories,
        })
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}taken {}", self.taken)?;
        for advisory in &self.advisories {
            let Advisory { id, package, .. } = advisory;
            writeln!(f, "{id} {package}: {}", advisory.requirements())?;
        }
        Ok(())
    }
}

fn advisory(line: &str) -> Result<Advisory, String> {
    let wrong = || format!("expected `RUSTSEC-YEAR-NUMBER PACKAGE: VERSIONS`; found `{line}`");
    let (head, ranges) = line.split_once(": ").ok_or_else(wrong)?;
    let (id, package) = head.split_once(' ').ok_or_else(wrong)?;
    let ranges: Result<Vec<VersionReq>, _> = ranges
        .split(" | ")
        .filter(|range| *range != "none")
        .map(str::parse)
        .collect();
    Ok(Advisory {
        id: id.to_owned(),
        package: package.to_owned(),
        unaffected: ranges.map_err(|error| error.to_string())?,
    })
}

/// The advisory in a page of the database; none when it was withdrawn.
fn taken(package: &str, page: &str) -> Result<Option<Advisory>, String> {
    let block = page
        .split("```")
        .nth(1)
        .and_then(|block| block.strip_prefix("toml"));
    let block = block.ok_or("expected a block ```toml; found none")?;
    let table: toml::Table = block.parse().map_err(|e: toml::de::Error| e.to_string())?;
    let about = table
        .get("advisory")
        .ok_or("expected [advisory]; found none")?;
    if about.get("withdrawn").is_some() {
        return Ok(None);
    }
    let id = about.get("id").and_then(toml::Value::as_str);
    let mut unaffected = Vec::new();
    for key in ["patched", "unaffected"] {
        let ranges = table.get("versions").and_then(|versions| versions.get(key));
        for range in ranges.and_then(toml::Value::as_array).into_iter().flatten() {
            let range = range.as_str().unwrap_or_default();
            unaffected.push(range.parse().map_err(|e| format!("{range}: {e}"))?);
        }
    }
    Ok(Some(Advisory {
        id: id.ok_or("expected an id; found none")?.to_owned(),
        package: package.to_owned(),
        unaffected,
    }))
}

fn last_change(clone: &Path) -> Result<String, String> {
    let output = Command::new("git")
        .args(["log", "-1", "--format=%cs"])
        .current_dir(clone)
        .output()
        .map_err(|error| error.to_string())?;
    let day = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if day.is_empty() {
        return Err(format!(
            "{}: expected a clone; found no commit",
            clone.display()
        ));
    }
    Ok(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "```toml\n[advisory]\nid = \"RUSTSEC-2026-0001\"\npackage = \"pool\"\n\n[versions]\n\
                        patched = [\">= 1.2.0\", \"^1.1.7\"]\nunaffected = [\"< 0.5\"]\n```\n\n# Title\n";

    #[test]
    fn a_page_becomes_a_line_and_is_read_again() {
        let snapshot = Snapshot {
            taken: "2026-08-21".to_owned(),
            advisories: taken("pool", PAGE).unwrap().into_iter().collect(),
        };
        let text = snapshot.to_string();
        let line = "RUSTSEC-2026-0001 pool: >=1.2.0 | ^1.1.7 | <0.5";
        assert_eq!(text.lines().last(), Some(line));
        assert_eq!(Snapshot::read(&text), Ok(snapshot));
    }

    #[test]
    fn a_withdrawn_advisory_is_left_out_and_one_without_versions_affects_all() {
        let withdrawn = PAGE.replace("package", "withdrawn = \"2026-02-01\"\npackage");
        assert_eq!(taken("pool", &withdrawn), Ok(None));
        let all = PAGE.split("[versions]").next().unwrap().to_owned() + "```";
        let advisory = taken("pool", &all).unwrap().unwrap();
        assert_eq!(advisory.requirements(), "none");
        assert!(!advisory.leaves_alone(&Version::new(9, 9, 9)));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let wrong = Snapshot::read("taken 2026-08-21\nRUSTSEC-2026-0001 pool >=1\n");
        assert_eq!(wrong.unwrap_err().0, 2);
        assert_eq!(Snapshot::read("# nothing\n").unwrap_err().0, 0);
    }
}
