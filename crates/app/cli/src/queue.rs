//! `vere queue`: inspection and control of the queues of a running gateway.

mod operate;
mod top;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use vere_process::wording::{counted, size};
use vere_settings::Settings;
use vere_units::TraceId;

use self::operate::{
    EndArgs, EndingArgs, HoldArgs, OrderArgs, ReleaseArgs, ReturnArgs, SelectionArgs,
};
use crate::roles::Roles;
use vere_control::queues::{all, parse};
use vere_control::{Action, MessageRow, OrderChange, QueueRow, Request, ask};
use vere_process::failure::Failure;
use vere_process::json::to_json;
use vere_process::log;

/// Inspect and control the queues of a running gateway.
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List the queues: messages, size, deferred, oldest, last reply of the destination.
    List {
        /// Print JSON: a list of objects with `destination`, `messages`, `octets`, `deferred`, `in_flight`, `held`,
        /// `quarantined`, `oldest`, `oldest_seconds`, `last_reply` and further facts of the queue.
        #[arg(long)]
        json: bool,
    },
    /// Deliver the queues of a dead gateway (with `--x400`, of a dead MTA) from this machine, until they are empty.
    Drain {
        /// Take the queues over from their gateway, and deliver from this machine.
        #[arg(long, required = true)]
        here: bool,
        /// The gateway of the queues, may be given several times; by default, all dead gateways.
        #[arg(long, value_name = "NAME")]
        group: Vec<String>,
        /// Take over the queues of a living gateway too; that gateway ends, and takes its queues back at its next
        /// start.
        #[arg(long, requires = "group")]
        force: bool,
    },
    /// List the messages of a queue in acceptance order, list held messages, or show a single message.
    Show {
        /// The destination as `vere queue list` prints it, or the id of a message.
        #[arg(value_name = "DESTINATION|ID", required_unless_present = "held")]
        what: Option<String>,
        /// List only messages held singly by an operator; without a destination, those of all queues.
        #[arg(long)]
        held: bool,
        /// Search only the queues of the dead gateway of this name, which this gateway has adopted.
        #[arg(long, value_name = "NAME")]
        group: Option<String>,
        /// List only the messages behind the message with this id.
        #[arg(long, value_name = "ID")]
        after: Option<TraceId>,
        /// List at most this number of messages.
        #[arg(long, default_value_t = 100)]
        limit: usize,
        /// Print JSON: a list of objects with `id`, `destination`, `state`, `accepted`, `attempts`, `size`,
        /// `reverse_path`, `recipients`, `last_reply` and, where they apply, `group`, `not_before`, `held_until`,
        /// `held_since`, `held_for`.
        #[arg(long)]
        json: bool,
    },
    /// Show queues, replicas and limits live, at a terminal; `?` shows the keys.
    Top(top::TopArgs),
    /// Pause delivery to a destination, or of a single message.
    ///
    /// New mail is still accepted; retries are not consumed.
    Hold(HoldArgs),
    /// Resume delivery to a destination, or of a single message.
    Release(ReleaseArgs),
    /// Refuse new mail for a destination (450); deliver the queued mail.
    Refuse(OrderArgs),
    /// End a refusal.
    Accept(EndArgs),
    /// Send the queued and new mail of a destination elsewhere, after a question.
    Reroute(operate::RerouteArgs),
    /// List all held, refused and rerouted destinations, and all held messages.
    Orders {
        /// Print JSON: a list of objects with `destination`, `held_until`, `refused_until`, `way`, `way_until` and,
        /// for a held message, `id`, `held_since`, `held_for`.
        #[arg(long)]
        json: bool,
    },
    /// Retry deferred messages now.
    Retry(SelectionArgs),
    /// Return messages to their senders as failed, at most 100 a second.
    Bounce(ReturnArgs),
    /// Return messages to their senders as expired, at most 100 a second.
    Expire(ReturnArgs),
    /// Remove messages without a report to their senders.
    Purge(EndingArgs),
}

/// The socket of the process whose queues are meant.
fn socket(settings: &Settings, x400: bool) -> Result<PathBuf, Failure> {
    match (&settings.x400, x400) {
        (_, false) => Ok(settings.control.socket.clone()),
        (Some(x400), true) => Ok(x400.control_socket()),
        (None, true) => Err(Failure::new(
            "expected a section [x400] in the settings; found none",
        )),
    }
}

/// Runs the command and returns the text to print.
///
/// # Errors
/// When no gateway answers, or the gateway does not know the queue.
pub(crate) fn run(
    command: &QueueCommand,
    settings: &Arc<Settings>,
    x400: bool,
    roles: &Roles,
) -> Result<String, Failure> {
    let socket = &socket(settings, x400)?;
    match command {
        QueueCommand::Drain { group, force, .. } => {
            log::start(settings, "drain")?;
            let drain = match x400 {
                true => roles.drain_x400,
                false => roles.drain,
            };
            drain(settings, group, *force, &mut std::io::stdout())?;
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
            let value = ask(socket, &request)?;
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

/// A destination, and the dead gateway of the queue.
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
            size(row.octets),
            row.deferred,
            row.in_flight,
            row.connections,
            row.oldest.as_deref().unwrap_or("-"),
            held(row.held)
                + &quarantined(row.quarantined)
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

/// Messages held singly.
fn held(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!("({count} held) "),
    }
}

/// Messages in the quarantine.
fn quarantined(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!("({count} in quarantine) "),
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
            size(row.size.into()),
            row.reverse_path.as_deref().unwrap_or("?"),
            row.recipients.join(", ")
        );
        if row.priority != 0 {
            let _ = writeln!(out, "    priority {}", row.priority);
        }
        if let Some(until) = &row.held_until {
            let (since, cause) = (row.held_since.as_deref(), row.held_for.as_deref());
            let held = operate::held(since, until, cause);
            let _ = writeln!(out, "    {held}");
        }
        if row.attempts > 0 {
            let _ = writeln!(
                out,
                "    {}, next {}: {}",
                counted(row.attempts, "attempt", "attempts"),
                row.not_before.as_deref().unwrap_or("now"),
                row.last_reply.as_deref().unwrap_or("-")
            );
        }
    }
    out
}
