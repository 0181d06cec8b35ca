//! `vere x400`: the commands of the X.400 MTA.
//!
//! `send`, `probe` and `peers` talk to the running MTA over its socket (`vere_attach`), `route` reads the settings alone,
//! `show` reads a file and needs no settings, and `archive` reads the archive beside the running MTA.

mod archive;
mod args;
mod peers;
mod probe;
mod route;
mod send;
mod show;
mod talk;
mod when;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::{Settings, X400};

pub use args::{
    ArchiveCommand, ExportArgs, FindArgs, PeersArgs, PriorityWord, ProbeArgs, QueryArgs,
    ReportWord, RouteArgs, SendArgs, ShowArgs, TermArgs, X400Command,
};
pub use when::{Past, PastError, When, WhenError};

/// Runs a command. `load` reads the settings, which not every command needs.
///
/// # Errors
/// The reason why the command failed.
pub fn run(
    command: &X400Command,
    load: impl FnOnce() -> Result<(PathBuf, Arc<Settings>), Failure>,
) -> Result<Outcome, Failure> {
    let text = match command {
        X400Command::Show(args) => show::run(args)?,
        X400Command::Send(args) => {
            let (path, settings) = load()?;
            send::run(args, section(&settings, &path)?)?
        }
        X400Command::Probe(args) => {
            let (path, settings) = load()?;
            probe::run(args, section(&settings, &path)?)?
        }
        X400Command::Peers(args) => {
            let (path, settings) = load()?;
            peers::run(args, section(&settings, &path)?)?
        }
        X400Command::Archive { command } => {
            let (path, settings) = load()?;
            archive::run(command, section(&settings, &path)?)?;
            return Ok(Outcome::Exit(ExitCode::SUCCESS));
        }
        X400Command::Route(args) => {
            let (path, settings) = load()?;
            section(&settings, &path)?;
            let (text, code) = route::run(args, &settings)?;
            return Ok(Outcome::Report(text, code));
        }
    };
    Ok(Outcome::Print(text))
}

/// The settings of the MTA.
fn section<'a>(settings: &'a Settings, path: &Path) -> Result<&'a X400, Failure> {
    settings.x400.as_ref().ok_or_else(|| {
        Failure::new(format!(
            "expected a section [x400] in {}; found none: this system has no X.400 MTA",
            path.display()
        ))
    })
}
