//! The commands of `vere queue` that change something.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use vere_units::{ByteSize, Span, TraceId};

use super::{parse, to_json};
use crate::cli::Failure;
use crate::control::{Acted, Action, OrderChange, OrderRow, Request, Selection, ask, ask_for};

/// How long a command waits for a gateway that works through its queues; it goes on without.
const ACTION_TIMEOUT: Duration = Duration::from_secs(3600);

/// A destination and for how long something holds for it.
#[derive(Debug, Args)]
pub(crate) struct OrderArgs {
    /// The destination as `vere queue list` prints it; it need not have a queue yet.
    destination: String,
    /// Ends it by itself after this time, as `30m` or `2h`; without it, when it is taken back.
    #[arg(long = "for", value_name = "TIME")]
    span: Option<Span>,
    /// Prints JSON: an object.
    #[arg(long)]
    json: bool,
}

/// A destination for which something ends.
#[derive(Debug, Args)]
pub(crate) struct EndArgs {
    /// The destination as `vere queue list` or `vere queue orders` prints it.
    destination: String,
    /// Prints JSON: an object.
    #[arg(long)]
    json: bool,
}

/// Which messages: all for which everything given holds.
#[derive(Debug, Args)]
pub(crate) struct SelectionArgs {
    /// The destination as `vere queue list` prints it; `--all` for every one.
    #[arg(required_unless_present = "all")]
    destination: Option<String>,
    /// Messages of every destination.
    #[arg(long, conflicts_with = "destination")]
    all: bool,
    /// Only messages of this sender; empty for the null reverse-path.
    #[arg(long, value_name = "ADDRESS")]
    sender: Option<String>,
    /// Only messages with this recipient.
    #[arg(long, value_name = "ADDRESS")]
    recipient: Option<String>,
    /// Only messages accepted this long ago or longer, as `2d`.
    #[arg(long, value_name = "TIME")]
    older_than: Option<Span>,
    /// Only the message with this id.
    #[arg(long)]
    id: Option<TraceId>,
    /// Prints JSON: an object.
    #[arg(long)]
    json: bool,
}

/// Messages that end, after a question.
#[derive(Debug, Args)]
pub(crate) struct EndingArgs {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Does not ask.
    #[arg(long)]
    yes: bool,
}

/// Messages that are returned to their senders, after a question.
#[derive(Debug, Args)]
pub(crate) struct ReturnArgs {
    #[command(flatten)]
    ending: EndingArgs,
    /// Ends them without a word to their senders.
    #[arg(long)]
    no_report: bool,
}

/// Changes what holds for a destination.
pub(super) fn order(
    socket: &Path,
    args: &OrderArgs,
    change: OrderChange,
) -> Result<String, Failure> {
    let seconds = args.span.map(|span| span.duration().as_secs());
    send_order(socket, &args.destination, change, seconds, args.json)
}

/// Ends what holds for a destination.
pub(super) fn end(socket: &Path, args: &EndArgs, change: OrderChange) -> Result<String, Failure> {
    send_order(socket, &args.destination, change, None, args.json)
}

fn send_order(
    socket: &Path,
    destination: &str,
    change: OrderChange,
    seconds: Option<u64>,
    json: bool,
) -> Result<String, Failure> {
    let request = Request::QueueOrder {
        destination: destination.to_owned(),
        change,
        seconds,
    };
    let row: OrderRow = parse(ask(socket, &request).map_err(Failure::new)?)?;
    if json {
        to_json(&row)
    } else {
        Ok(order_line(&row))
    }
}

/// What is ordered for any destination.
pub(super) fn orders(socket: &Path, json: bool) -> Result<String, Failure> {
    let value = ask(socket, &Request::QueueOrders).map_err(Failure::new)?;
    let rows: Vec<OrderRow> = parse(value)?;
    if json {
        return to_json(&rows);
    }
    if rows.is_empty() {
        return Ok("no orders\n".to_owned());
    }
    Ok(rows.iter().map(order_line).collect())
}

fn order_line(row: &OrderRow) -> String {
    let mut parts = Vec::new();
    if let Some(until) = &row.held_until {
        parts.push(format!("held until {until}"));
    }
    if let Some(until) = &row.refused_until {
        parts.push(format!("refused until {until}"));
    }
    if parts.is_empty() {
        parts.push("delivered and taken as usual".to_owned());
    }
    format!("{}: {}\n", row.destination, parts.join(", "))
}

impl SelectionArgs {
    fn request(&self, action: Action, report: bool) -> Request {
        Request::QueueAct {
            destination: self.destination.clone(),
            selection: Selection {
                sender: self.sender.clone(),
                recipient: self.recipient.clone(),
                older_than: self.older_than.map(|span| span.duration().as_secs()),
                id: self.id,
            },
            action,
            report,
        }
    }

    fn act(&self, socket: &Path, action: Action, report: bool) -> Result<Acted, Failure> {
        let request = self.request(action, report);
        let value = ask_for(socket, &request, ACTION_TIMEOUT).map_err(Failure::new)?;
        parse(value)
    }
}

/// Tries messages again now.
pub(super) fn retry(socket: &Path, args: &SelectionArgs) -> Result<String, Failure> {
    let acted = args.act(socket, Action::Retry, false)?;
    told(&acted, "tried again", args.json)
}

/// Removes messages.
pub(super) fn purge(socket: &Path, args: &EndingArgs) -> Result<String, Failure> {
    finish(socket, args, Action::Purge, false, "removed")
}

/// Returns messages, as failed or as too old.
pub(super) fn give_back(
    socket: &Path,
    args: &ReturnArgs,
    action: Action,
) -> Result<String, Failure> {
    let done = if args.no_report {
        "ended without reports"
    } else {
        "returned to their senders"
    };
    finish(socket, &args.ending, action, !args.no_report, done)
}

fn finish(
    socket: &Path,
    args: &EndingArgs,
    action: Action,
    report: bool,
    done: &str,
) -> Result<String, Failure> {
    if !args.yes {
        let count = args.selection.act(socket, Action::Count, false)?;
        confirm(&count, done)?;
    }
    let acted = args.selection.act(socket, action, report)?;
    told(&acted, done, args.selection.json)
}

/// Asks at a terminal; elsewhere only `--yes` is an answer.
fn confirm(count: &Acted, done: &str) -> Result<(), Failure> {
    let size = ByteSize::new(count.octets);
    let what = format!("{} messages ({size}) would be {done}", count.messages);
    if !io::stdin().is_terminal() {
        return Err(Failure::new(format!("{what}; nothing was done: add --yes")));
    }
    let mut stderr = io::stderr();
    write!(stderr, "{what}. Type yes to go on: ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    if answer.trim() == "yes" {
        return Ok(());
    }
    Err(Failure::new("nothing was done"))
}

fn told(acted: &Acted, done: &str, json: bool) -> Result<String, Failure> {
    if let Some(trouble) = &acted.trouble {
        return Err(Failure::new(format!(
            "{} messages {done}, then it ended: {trouble}",
            acted.messages
        )));
    }
    if json {
        return to_json(acted);
    }
    let mut text = format!("{} messages {done}", acted.messages);
    if acted.busy > 0 {
        text += &format!(", {} left alone: they were being delivered", acted.busy);
    }
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_is_told_in_a_line() {
        let mut row = OrderRow {
            destination: "a.example".to_owned(),
            held_until: Some("taken back".to_owned()),
            refused_until: None,
        };
        assert_eq!(order_line(&row), "a.example: held until taken back\n");
        row.held_until = None;
        assert_eq!(
            order_line(&row),
            "a.example: delivered and taken as usual\n"
        );
    }

    #[test]
    fn an_action_that_ended_early_is_a_failure() {
        let mut acted = Acted {
            messages: 3,
            octets: 9,
            busy: 1,
            trouble: None,
        };
        let text = told(&acted, "removed", false).unwrap();
        assert_eq!(
            text,
            "3 messages removed, 1 left alone: they were being delivered\n"
        );
        acted.trouble = Some("spool did not answer".to_owned());
        assert!(told(&acted, "removed", true).is_err());
    }
}
