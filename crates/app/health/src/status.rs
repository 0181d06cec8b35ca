//! `vere status`: the state of the whole system in one look, for people, programs and monitoring.

mod facts;
mod findings;
mod orders;
mod show;

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::Settings;

use crate::finding::Level;
use crate::loaded::Loaded;
use crate::row::Row;

/// Exit code for an unknown state, as monitoring plugins have it.
const UNKNOWN: u8 = 3;

/// Prints the state of the system.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print JSON: an object with `level`, `findings`, and the facts of which the findings follow.
    #[arg(long)]
    json: bool,
    /// Print the first line only.
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
}

impl Level {
    /// The exit code of monitoring plugins.
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
        })
    }
}

/// Runs the command; `load` reads the settings. The exit codes are those of monitoring plugins: 0 OK, 1 warning, 2 critical, 3 unknown.
pub fn run<L: Into<Loaded>>(
    args: &StatusArgs,
    load: impl FnOnce() -> Result<L, Failure>,
) -> Outcome {
    match load().and_then(|loaded| look(args, &loaded.into())) {
        Ok((text, level)) => Outcome::Report(text, level.code()),
        Err(failure) => {
            let text = match args.json {
                true => format!(
                    "{:#}\n",
                    serde_json::json!({ "level": "unknown", "error": failure.to_string() })
                ),
                false => format!("UNKNOWN: {failure}\n"),
            };
            Outcome::Report(text, ExitCode::from(UNKNOWN))
        }
    }
}

/// The findings as rows, with rows for what is as it should be; and the process of a running supervisor. `file` has the
/// settings.
///
/// # Errors
/// When the supervisor is there and gives no usable answer.
pub(crate) fn rows(
    settings: &Settings,
    file: Option<&Path>,
) -> Result<(Vec<Row>, Option<u32>), Failure> {
    let facts = facts::gather(settings, file)?;
    let mut rows: Vec<Row> = findings::of(&facts).into_iter().map(Row::from).collect();
    if rows.is_empty() {
        rows.push(Row::ok("status", show::healthy(&facts)));
    }
    rows.extend(show::certificates(&facts).map(|text| Row::ok("certificate", text)));
    Ok((rows, facts.system.map(|system| system.pid)))
}

/// The facts and findings as JSON.
///
/// # Errors
/// When the supervisor is there and gives no usable answer, or a fact has no form in JSON.
pub(crate) fn in_json(settings: &Settings) -> Result<String, Failure> {
    let facts = facts::gather(settings, None)?;
    let findings = findings::of(&facts);
    let level = findings.iter().map(|one| one.level).max();
    show::in_json(&facts, &findings, level.unwrap_or(Level::Ok))
}

fn look(args: &StatusArgs, loaded: &Loaded) -> Result<(String, Level), Failure> {
    let facts = facts::gather(&loaded.settings, loaded.file.as_deref())?;
    let findings = findings::of(&facts);
    let level = findings
        .iter()
        .map(|one| one.level)
        .max()
        .unwrap_or(Level::Ok);
    let text = match (args.json, args.quiet) {
        (true, _) => show::in_json(&facts, &findings, level)?,
        (false, true) => show::summary(&facts, &findings, level),
        (false, false) => show::in_text(&facts, &findings, level),
    };
    Ok((text, level))
}
