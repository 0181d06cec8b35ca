//! The common arguments and results of all benchmarks: the program under test, the directory, and the files of the
//! figures.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::row::Row;

/// The options of every benchmark.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Stay near one minute: fewer rounds, less mail.
    #[arg(long)]
    pub quick: bool,
    /// Write the figures as JSON to this file, "-" for standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the figures as a page with plots to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Measure this program; by default `vere` beside `vere-bench`.
    #[arg(long, value_name = "PATH")]
    pub vere: Option<PathBuf>,
    /// Keep mail and logs below this directory, whose file system decides the cost of a sync.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

impl Common {
    /// The directory above all files of the benchmark.
    pub(crate) fn base(&self) -> PathBuf {
        self.dir.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// Prints the tables, and writes the JSON of DESIGN section 7 and the page where they are wanted.
    pub(crate) fn publish(&self, table: &str, json: &Value, page: &str) -> Result<(), WriteError> {
        if self.json.as_deref() != Some(Path::new("-")) {
            write(Path::new("-"), table)?;
        }
        if let Some(path) = &self.json {
            write(path, &format!("{json:#}\n"))?;
        }
        if let Some(path) = &self.html {
            write(path, page)?;
        }
        Ok(())
    }
}

/// The head of all results: the benchmark, its machine and duration, and the parts left out.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) bench: &'static str,
    pub(crate) quick: bool,
    pub(crate) began: Instant,
    pub(crate) seconds: f64,
    pub(crate) machine: Machine,
    pub(crate) skipped: Vec<String>,
}

impl Header {
    /// The head of a new benchmark, with files below `base`.
    pub(crate) fn new(bench: &'static str, quick: bool, base: &Path) -> Self {
        Self {
            bench,
            quick,
            began: Instant::now(),
            seconds: 0.0,
            machine: Machine::describe(base),
            skipped: Vec::new(),
        }
    }

    /// Notes the end of the benchmark.
    pub(crate) fn end(&mut self) {
        self.seconds = self.began.elapsed().as_secs_f64();
    }

    /// Reports a part left out, or a reason for different figures, at once and in the results.
    pub(crate) fn skip(&mut self, text: String) {
        note(&text);
        self.skipped.push(text);
    }

    /// A line for each part left out.
    pub(crate) fn skipped_lines(&self) -> impl Iterator<Item = String> {
        self.skipped.iter().map(|text| format!("skipped: {text}"))
    }

    /// The JSON of DESIGN section 7, with the figures of single rounds.
    pub(crate) fn json(&self, rows: &[Row], rounds: Vec<Value>) -> Value {
        json!({
            "bench": self.bench,
            "quick": self.quick,
            "seconds": self.seconds,
            "machine": self.machine.json(),
            "rows": rows.iter().map(Row::json).collect::<Vec<_>>(),
            "rounds": rounds,
            "skipped": self.skipped,
        })
    }
}

/// A result cannot be written.
#[derive(Debug)]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// The error of the kernel.
    pub source: io::Error,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write {}: {}", self.path.display(), self.source)
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

fn write(path: &Path, text: &str) -> Result<(), WriteError> {
    let written = if path == Path::new("-") {
        io::stdout().lock().write_all(text.as_bytes())
    } else {
        std::fs::write(path, text)
    };
    written.map_err(|source| WriteError {
        path: path.to_owned(),
        source,
    })
}

/// Prints a note for a waiting person; the results themselves go elsewhere.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_go_where_they_are_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let common = Common {
            quick: false,
            json: Some(folder.path().join("figures.json")),
            html: Some(folder.path().join("page.html")),
            vere: None,
            dir: None,
        };
        let json = serde_json::json!({"bench": "none"});
        common.publish("", &json, "<html>").unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("figures.json"), "{\n  \"bench\": \"none\"\n}\n");
        assert_eq!(read("page.html"), "<html>");
        let nowhere = Common {
            html: Some(folder.path().join("no/page.html")),
            ..common
        };
        let error = nowhere.publish("", &json, "<html>").unwrap_err();
        assert!(error.to_string().contains("no/page.html"), "{error}");
    }
}
