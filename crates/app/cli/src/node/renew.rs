//! `vere node renew`.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use vere_enrolment::renewal::{State, renew};
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::Settings;

/// The certificates to renew.
#[derive(Debug, Args)]
pub(crate) struct RenewArgs {
    /// Renew all certificates, and not only those that have reached two thirds of their life.
    #[arg(long)]
    all: bool,
}

/// Runs the command.
///
/// # Errors
/// When this machine does not have the key of the CA.
pub(super) fn run(args: &RenewArgs, settings: &Settings) -> Result<Outcome, Failure> {
    let renewals = renew(settings, args.all)?;
    if renewals.is_empty() {
        return Err(Failure::new(
            "the settings have no spool.tls.ca_key: the machine of `vere node invite` renews the certificates",
        ));
    }
    let (mut text, mut failed) = (String::new(), false);
    for renewal in &renewals {
        let node = renewal.node.as_deref().unwrap_or("this machine");
        let _ = match &renewal.state {
            Ok(State::Young(end)) => writeln!(text, "{node}: not due; valid until {end}"),
            Ok(State::Renewed(end)) => writeln!(text, "{node}: renewed; valid until {end}"),
            Err(error) => {
                failed = true;
                let mut causes = error.to_string();
                let mut cause = std::error::Error::source(error);
                while let Some(next) = cause {
                    let _ = write!(causes, ": {next}");
                    cause = next.source();
                }
                writeln!(text, "{node}: not renewed: {causes}")
            }
        };
    }
    let code = if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    };
    Ok(Outcome::Report(text, code))
}
