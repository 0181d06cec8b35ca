//! `vere explain`: why a message has its verdict, and what would be decided now.

mod file;
mod past;
mod show;

use std::net::IpAddr;

use clap::Args;
use vere_judge::{Facts, Judge};
use vere_settings::Settings;
use vere_units::TraceId;

use self::past::Past;
use vere_process::failure::Failure;

/// Explain the verdict about a message, rule by rule.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Queue id, or a file with a message (`-`: standard input).
    ///
    /// A message that this system has delivered names its client in its Received field; for other files the options below say who sent the message.
    message: String,
    /// Address of the client.
    #[arg(long, value_name = "ADDRESS")]
    client: Option<IpAddr>,
    /// Name in HELO or EHLO.
    #[arg(long, value_name = "NAME")]
    helo: Option<String>,
    /// Sender in MAIL FROM; empty for the null reverse-path.
    #[arg(long, value_name = "ADDRESS")]
    from: Option<String>,
    /// Recipient in RCPT TO; may be given several times.
    #[arg(long, value_name = "ADDRESS")]
    to: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What is known of a message.
#[derive(Debug)]
struct Known {
    /// The queue id or the file.
    name: String,
    /// What was decided at the time; `None` for a file.
    past: Option<Past>,
    facts: Facts,
    recipients: Vec<String>,
}

/// Judges the message by the settings of now, and returns the text to print.
///
/// # Errors
/// When the message is not found, its facts were not kept, or the settings have no judgement.
pub(crate) fn run(args: &ExplainArgs, settings: &Settings) -> Result<String, Failure> {
    let terms = settings.judging.clone().ok_or_else(|| {
        Failure::new(
            "expected a section [judging] in the settings; found none: no message is judged",
        )
    })?;
    let mut known = match args.message.parse::<TraceId>() {
        Ok(id) => past::look(id, settings)?,
        Err(_) => file::read(args, settings)?,
    };
    if !args.to.is_empty() {
        known.recipients.clone_from(&args.to);
    }
    let recipients: Vec<_> = known.recipients.iter().map(String::as_str).collect();
    let judgement = Judge::new(terms).judge(&known.facts, &recipients);
    match args.json {
        true => show::json(&known, &judgement),
        false => Ok(show::text(&known, &judgement)),
    }
}
