//! `vere dnsbl`: block lists.

mod query;
mod serve;

use clap::Subcommand;

use vere_process::failure::Failure;
use vere_process::outcome::Outcome;

use crate::config_arg::ConfigArg;
use crate::roles::Roles;

/// Serve, ask, check and convert block lists.
#[derive(Debug, Subcommand)]
pub(crate) enum DnsblCommand {
    Serve(serve::ServeArgs),
    Query(query::QueryArgs),
}

/// Runs the command.
///
/// # Errors
/// When the arguments, files or settings are wrong.
pub(crate) fn run(
    command: &DnsblCommand,
    config: &ConfigArg,
    roles: &Roles,
) -> Result<Outcome, Failure> {
    match command {
        DnsblCommand::Serve(args) => serve::run(args, config, roles),
        DnsblCommand::Query(args) => query::run(args, config),
    }
}
