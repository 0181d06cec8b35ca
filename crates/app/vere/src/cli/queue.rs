//! `vere queue`: look into the queues of a running gateway, and steer them.

mod operate;
mod top;

use std::fmt::Write as _;
use std::sync::Arc;

use clap::Subcommand;
use vere_settings::Settings;
use vere_units::{ByteSize, TraceId};

use self::operate::{
    EndArgs, EndingArgs, HoldArgs, OrderArgs, ReleaseArgs, ReturnArgs, SelectionArgs,
};
use super::json::to_json;
use vere_control::queues::{all, parse};
use vere_control::{Action, MessageRow, OrderChange, QueueRow, Request, ask};
use vere_process::failure::Failure;
use vere_process::log;

/// Looks into the queues of a running gateway, and steers them.
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Lists the queues: messages, size, deferred, oldest, last reply of the destination.
    List {
        /// Prints JSON: a list of objects.
        #[arg(long)]
        json: bool,
    },
    /// Delivers from this machine what the queues of a dead gateway hold, until they are empty.
    Drain {
        /// Takes the queues away from where they were, and delivers from here.
        #[arg(long, required = true)]
        here: bool,
        /// The gateway whose queues they are, as often as wanted; without it, all that are dead.
        #[arg(long, value_name = "NAME")]
        group: Vec<String>,
        /// Takes them from a gateway that lives, too; it ends, and takes them back when it is started
        /// again.
        #[arg(long, requires = "group")]
        force: bool,
    },
    /// Lists the messages of one queue in acceptance order, those that are held, or shows one message.
    Show {
        /// The destination as `vere queue list` prints it, or the id of a message.
        #[arg(value_name = "DESTINATION|ID", required_unless_present = "held")]
        what: Option<String>,
        /// Only messages that an operator holds one by one; without a destination those of all queues.
        #[arg(long)]
        held: bool,
        /// Only in the queues of the dead gateway of this name, which this one has adopted.
        #[arg(long, value_name = "NAME")]
        group: Option<String>,
        /// Lists only the messages behind the one with this id.
        #[arg(long, value_name = "ID")]
        after: Option<TraceId>,
        /// Lists this many at most.
        #[arg(long, default_value_t = 100)]
        limit: usize,
        /// Prints JSON: a list of objects.
        #[arg(long)]
        json: bool,
    },
    /// Shows queues, replicas and limits live, at a terminal; `?` there tells the keys.
    Top(top::TopArgs),
    /// Delivers nothing to a destination, or not one message; mail is taken and uses up no retries.
    Hold(HoldArgs),
    /// Ends a hold of a destination, or of one message.
    Release(ReleaseArgs),
    /// Takes no mail for a destination (450); what is queued is delivered.
    Refuse(OrderArgs),
    /// Ends a refusal.
    Accept(EndArgs),
    /// Sends what is queued for a destination elsewhere, after a question; new mail for it too.
    Reroute(operate::RerouteArgs),
    /// Lists what is held, refused and rerouted, single messages too.
    Orders {
        /// Prints JSON: a list of objects.
        #[arg(long)]
        json: bool,
    },
    /// Tries deferred messages again now.
    Retry(SelectionArgs),
    /// Returns messages to their senders as failed, at most 100 a second.
    Bounce(ReturnArgs),
    /// Returns messages to their senders as if their time were over, at most 100 a second.
    Expire(ReturnArgs),
    /// Removes messages; nobody is told.
    Purge(EndingArgs),
}

/// Runs the command and gives what is to be printed.
///
/// # Errors
/// When no gateway answers, or it does not know the queue.
pub(crate) fn run(command: &QueueCommand, settings: &Arc<Settings>) -> Result<String, Failure> {
    let socket = &settings.control.socket;
    match command {
        QueueCommand::Drain { group, force, .. } => {
            log::start(settings, "drain")?;
            vere_role_gateway::drain(settings, group, *force, &mut std::io::stdout())?;
            Ok(String::new())
        }
        QueueCommand::List { json } => {
            let rows = all(socket)?;
            if *json {
                to_json(&rows)
            } else {
                Ok(list(rows))
            }
        }
        QueueCommand::Show {
            what,
            held,
            group,
            after,
            limit,
            json,
        } => {
            let request = Request::QueueShow {
                what: what.clone(),
                held: *held,
                group: group.clone(),
                after: *after,
                limit: *limit,
            };
            let value = ask(socket, &request).map_err(Failure::new)?;
            if *json {
                return Ok(format!("{value:#}\n"));
            }
            Ok(show(parse(value)?))
        }
        QueueCommand::Top(args) => top::run(socket, args),
        QueueCommand::Hold(args) => operate::hold(socket, args),
        QueueCommand::Release(args) => operate::release(socket, args),
        QueueCommand::Refuse(args) => operate::order(socket, args, &OrderChange::Refuse),
        QueueCommand::Accept(args) => operate::end(socket, args, &OrderChange::Accept),
        QueueCommand::Reroute(args) => operate::reroute(socket, settings, args),
        QueueCommand::Orders { json } => operate::orders(socket, *json),
        QueueCommand::Retry(args) => operate::retry(socket, args),
        QueueCommand::Bounce(args) => operate::give_back(socket, args, Action::Bounce),
        QueueCommand::Expire(args) => operate::give_back(socket, args, Action::Expire),
        QueueCommand::Purge(args) => operate::purge(socket, args),
    }
}

/// A destination, and the dead gateway whose queue it is.
fn of_group(destination: String, group: Option<String>) -> String {
    match group {
        Some(group) => format!("{destination} (of {group})"),
        None => destination,
    }
}

fn list(rows: Vec<QueueRow>) -> String {
    if rows.is_empty() {
        return "no queues\n".to_owned();
    }
    let mut out = format!(
        "{:<32} {:>9} {:>10} {:>9} {:>9} {:>5}  {:<24}  {}\n",
        "DESTINATION",
        "MESSAGES",
        "SIZE",
        "DEFERRED",
        "IN FLIGHT",
        "CONN",
        "OLDEST",
        "LAST COMPLAINT"
    );
    for row in rows {
        let _ = writeln!(
            out,
            "{:<32} {:>9} {:>10} {:>9} {:>9} {:>5}  {:<24}  {}{}",
            of_group(row.destination, row.group),
            row.messages,
            ByteSize::new(row.octets).to_string(),
            row.deferred,
            row.in_flight,
            row.connections,
            row.oldest.as_deref().unwrap_or("-"),
            held(row.held)
                + &row
                    .held_until
                    .map(|until| format!("(held until {until}) "))
                    .unwrap_or_default()
                + &row
                    .way
                    .map(|way| format!("(by way of {way}) "))
                    .unwrap_or_default()
                + if row.unrouted {
                    "(no route names it) "
                } else {
                    ""
                }
                + &row
                    .paused_until
                    .map(|until| format!("(next try {until}) "))
                    .unwrap_or_default(),
            row.last_reply.as_deref().unwrap_or("-"),
        );
    }
    out
}

/// Messages that are held one by one.
fn held(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!("({count} held) "),
    }
}

fn show(rows: Vec<MessageRow>) -> String {
    if rows.is_empty() {
        return "no messages\n".to_owned();
    }
    let mut out = String::new();
    for row in rows {
        let _ = writeln!(
            out,
            "{} {} {} {}, {} from <{}> to {}",
            row.id,
            row.accepted,
            of_group(row.destination, row.group),
            row.state,
            ByteSize::new(u64::from(row.size)),
            row.reverse_path.as_deref().unwrap_or("?"),
            row.recipients.join(", ")
        );
        if row.priority != 0 {
            let _ = writeln!(out, "    priority {}", row.priority);
        }
        if let Some(until) = &row.held_until {
            let since = row.held_since.as_ref();
            let since = since.map_or_else(String::new, |since| format!(" since {since}"));
            let _ = writeln!(out, "    held{since} until {until}");
        }
        if row.attempts > 0 {
            let _ = writeln!(
                out,
                "    {} attempts, next {}: {}",
                row.attempts,
                row.not_before.as_deref().unwrap_or("now"),
                row.last_reply.as_deref().unwrap_or("-")
            );
        }
    }
    out
}
