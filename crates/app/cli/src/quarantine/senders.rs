//! `vere quarantine senders`: the senders that releases have taught.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use vere_control::queues::parse;
use vere_control::{Request, SenderRow, ask_for};
use vere_process::failure::Failure;

use vere_process::json::to_json;
use vere_process::wording::counted;

/// How long the command waits for the gateway.
const PATIENCE: Duration = Duration::from_secs(60);

/// List and remove senders learned by `release --learn`.
#[derive(Debug, Subcommand)]
pub(crate) enum SendersCommand {
    /// List learned senders with their recipients.
    List(ListArgs),
    /// Remove a learned sender; mail of the sender is judged as any other from now on.
    Remove(RemoveArgs),
}

/// Selects learned senders.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only this sender, or the senders of this domain.
    #[arg(long, value_name = "ADDRESS|DOMAIN")]
    sender: Option<String>,
    /// Only the senders of this recipient, or of the recipients in this domain.
    #[arg(long, value_name = "ADDRESS|DOMAIN")]
    recipient: Option<String>,
    /// Print JSON: a list of objects with `sender`, `recipient` and `used`.
    #[arg(long)]
    json: bool,
}

/// A sender to remove.
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The sender, or the domain of senders.
    #[arg(value_name = "ADDRESS|DOMAIN")]
    sender: String,
    /// Recipient whose list changes, or the domain of such recipients; without the option, all lists change.
    #[arg(long, value_name = "ADDRESS|DOMAIN")]
    recipient: Option<String>,
    /// Print JSON: the number of removed entries, such as `2`.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// When no gateway answers, or there is nothing to remove.
pub(super) fn run(command: &SendersCommand, socket: &Path) -> Result<String, Failure> {
    match command {
        SendersCommand::List(args) => list(socket, args),
        SendersCommand::Remove(args) => remove(socket, args),
    }
}

fn list(socket: &Path, args: &ListArgs) -> Result<String, Failure> {
    let request = Request::SendersList {
        sender: args.sender.clone(),
        recipient: args.recipient.clone(),
    };
    let rows: Vec<SenderRow> = parse(ask_for(socket, &request, PATIENCE)?)?;
    match args.json {
        true => to_json(&rows),
        false => Ok(lines(&rows)),
    }
}

fn lines(rows: &[SenderRow]) -> String {
    if rows.is_empty() {
        return "no senders\n".to_owned();
    }
    let mut out = String::new();
    for row in rows {
        // Strangers choose their addresses.
        let (sender, recipient) = (row.sender.escape_debug(), row.recipient.escape_debug());
        let _ = writeln!(out, "{sender} for {recipient}, last used {}", row.used);
    }
    out
}

fn remove(socket: &Path, args: &RemoveArgs) -> Result<String, Failure> {
    let request = Request::SendersRemove {
        sender: args.sender.clone(),
        recipient: args.recipient.clone(),
    };
    let count: usize = parse(ask_for(socket, &request, PATIENCE)?)?;
    match (count, args.json) {
        (0, _) => Err(Failure::new(format!(
            "expected a learned sender {:?}; found none",
            args.sender
        ))),
        (_, true) => to_json(&count),
        (count, false) => Ok(counted(count, "entry removed\n", "entries removed\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_are_shown_in_one_harmless_line_each() {
        assert_eq!(lines(&[]), "no senders\n");
        let row = SenderRow {
            sender: "a\u{1b}[2j@b.example".to_owned(),
            recipient: "ann@example.org".to_owned(),
            used: "2026-11-29".to_owned(),
        };
        assert_eq!(
            lines(&[row]),
            "a\\u{1b}[2j@b.example for ann@example.org, last used 2026-11-29\n"
        );
    }
}
