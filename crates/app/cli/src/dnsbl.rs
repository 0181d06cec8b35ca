//! `vere dnsbl`: block lists.

mod bind;
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
use std::process::ExitCode;

use clap::Subcommand;

use vere_process::failure::Failure;
use vere_process::outcome::Outcome;

use self::stopped::Stopped;
use crate::config_arg::ConfigArg;
use crate::roles::Roles;

/// Serve, ask, check and convert block lists.
#[derive(Debug, Subcommand)]
pub(crate) enum DnsblCommand {
    Serve(serve::ServeArgs),
    Query(query::QueryArgs),
    Import(import::ImportArgs),
    Dump(dump::DumpArgs),
    Stats(stats::StatsArgs),
    Map(hitmap::MapArgs),
}

/// Runs the command.
///
/// # Errors
/// When a file cannot be read or written, or has an error; when the arguments or settings are wrong.
pub(crate) fn run(
    command: &DnsblCommand,
    config: &ConfigArg,
    roles: &Roles,
) -> Result<Outcome, Failure> {
    match command {
        DnsblCommand::Serve(args) => serve::run(args, config, roles),
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
