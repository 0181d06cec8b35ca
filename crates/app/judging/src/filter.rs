//! `vere filter`: content filters.

pub(crate) mod report;
mod test;
#[cfg(test)]
mod tests;

use clap::Subcommand;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::Settings;

pub use test::TestArgs;

/// Ask content filters.
#[derive(Debug, Subcommand)]
pub enum FilterCommand {
    #[expect(missing_docs, reason = "the text is that of the arguments")]
    Test(TestArgs),
}

/// Runs the command.
///
/// # Errors
/// When the settings or the file of a message cannot be used.
pub fn run(command: &FilterCommand, settings: &Settings) -> Result<Outcome, Failure> {
    match command {
        FilterCommand::Test(args) => test::run(args, settings),
    }
}
