//! `vere dnsbl`: block lists.

mod bind;
mod config;
mod dump;
mod hitmap;
mod import;
mod networks;
mod picture;
mod query;
mod serve;
mod source;
mod stats;
mod stopped;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

use vere_process::failure::Failure;
use vere_process::outcome::Outcome;

use config::Config;
pub use config::ServeLists;
pub use dump::DumpArgs;
pub use hitmap::MapArgs;
pub use import::ImportArgs;
pub use query::QueryArgs;
pub use serve::ServeArgs;
pub use stats::StatsArgs;
use stopped::Stopped;

/// Serve, ask, check and convert block lists.
#[derive(Debug, Subcommand)]
#[expect(
    missing_docs,
    reason = "the arguments have the description of their command"
)]
pub enum DnsblCommand {
    Serve(ServeArgs),
    Query(QueryArgs),
    Import(ImportArgs),
    Dump(DumpArgs),
    Stats(StatsArgs),
    Map(MapArgs),
}

/// Runs the command; `file` is the file of settings that the command line names.
///
/// # Errors
/// When a file cannot be read or written, or has an error; when the arguments or settings are wrong.
pub fn run(
    command: &DnsblCommand,
    file: Option<&Path>,
    serve: ServeLists,
) -> Result<Outcome, Failure> {
    let config = Config::new(file);
    match command {
        DnsblCommand::Serve(args) => serve::run(args, config, serve),
        DnsblCommand::Query(args) => query::run(args, config),
        DnsblCommand::Import(args) => import::run(args),
        DnsblCommand::Dump(args) => written(dump::run(args, &mut io::stdout().lock())),
        DnsblCommand::Stats(args) => stats::run(args),
        DnsblCommand::Map(args) => written(hitmap::run(args, &mut io::stdout().lock())),
    }
}

/// The end of a command after its output. A reader that has gone, such as `head`, is no failure.
fn written(done: Result<(), Stopped>) -> Result<Outcome, Failure> {
    match done {
        Ok(()) => Ok(Outcome::Exit(ExitCode::SUCCESS)),
        Err(Stopped::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(Outcome::Exit(ExitCode::SUCCESS))
        }
        Err(Stopped::Output(error)) => {
            Err(Failure::new(format!("cannot write the output: {error}")))
        }
        Err(Stopped::Failed(failure)) => Err(failure),
    }
}
