//! `vere reports`: what others report about our mail and our hosts.

mod read;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use vere_control::store_socket;
use vere_ports::directory::AccountName;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_transfer::{Origin, each_message};

use crate::config_arg::ConfigArg;
use read::Reading;

/// Exit code when something that looked like a report could not be read.
const SOME_UNREADABLE: u8 = 3;

/// Sum up received reports about DMARC and TLS.
///
/// The section [reports] of the settings sends such reports to other domains.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ReportsArgs {
    #[command(subcommand)]
    command: Option<ReportsCommand>,
    /// The account that receives the reports; the mail store must run.
    #[arg(long, short = 'a', value_name = "ACCOUNT", required = true)]
    account: Option<AccountName>,
    /// Read this mailbox only, with levels separated by `/`.
    #[arg(long, value_name = "MAILBOX", requires = "account")]
    mailbox: Option<String>,
    #[command(flatten)]
    form: Form,
}

#[derive(Debug, Subcommand)]
enum ReportsCommand {
    /// Sum up the reports in files: messages, mbox files, Maildirs, archives, XML and JSON.
    ///
    /// Messages without a report are passed over. Exit code 3: something that looks like a report could not be read.
    Read(ReadArgs),
}

#[derive(Debug, Args)]
struct ReadArgs {
    /// Files, Maildirs and directories of files; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    form: Form,
}

/// The form of the output.
#[derive(Debug, Args)]
struct Form {
    /// Show all sources of a domain, also beyond the first 20.
    #[arg(long)]
    all: bool,
    /// Print JSON: an object with `reports`, `repeated`, `oddities`, `beyond`, `without_report`, `unreadable`,
    /// `dmarc` and `tls`; each domain has `advice`.
    #[arg(long)]
    json: bool,
}

/// Reads the reports, and returns the text to print.
///
/// # Errors
/// When a file or account cannot be read.
pub(crate) fn run(args: &ReportsArgs, config: &ConfigArg) -> Result<Outcome, Failure> {
    let mut reading = Reading::default();
    let form = match (&args.command, &args.account) {
        (Some(ReportsCommand::Read(args)), _) => {
            for path in &args.paths {
                reading.path(path)?;
            }
            &args.form
        }
        (None, Some(account)) => {
            let socket = store_socket(&config.load()?.1);
            let origin = Origin::Account(&socket, account);
            let mailbox = args.mailbox.as_deref();
            each_message(origin, mailbox, read::OCTETS_MAX, &mut |seen| {
                reading.seen("", &seen)
            })?;
            &args.form
        }
        (None, None) => {
            return Err(Failure::new(
                "expected --account ACCOUNT, or read FILE...; found neither (vere reports --help)",
            ));
        }
    };
    let text = match form.json {
        true => show::json(&reading)?,
        false => show::text(&reading, form.all),
    };
    let code = match reading.unreadable.count {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(SOME_UNREADABLE),
    };
    Ok(Outcome::Report(text, code))
}

#[cfg(test)]
mod tests;
