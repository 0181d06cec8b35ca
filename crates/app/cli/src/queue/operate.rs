//! The changing commands of `vere queue`.

use std::path::Path;
use std::time::Duration;

use clap::{ArgGroup, Args};
use vere_queue::Place;
use vere_settings::Settings;
use vere_units::{Span, TraceId};

use vere_control::queues::{self, parse};
use vere_control::{
    Acted, Action, HoldOutcome, HoldRow, MessageChange, OrderChange, OrderRow, Request, Selection,
    ask, ask_for,
};
use vere_process::confirm::confirm as ask_first;
use vere_process::failure::Failure;
use vere_process::json::to_json;
use vere_process::wording::{messages, size};

/// How long a command waits for a gateway to work through its queues; the gateway goes on afterwards.
const ACTION_TIMEOUT: Duration = Duration::from_secs(3600);

/// A destination, and the duration of an order.
#[derive(Debug, Args)]
pub(crate) struct OrderArgs {
    /// The destination as `vere queue list` prints it; the queue need not exist yet.
    destination: String,
    /// End automatically after this time, such as `30m` or `2h`; by default, when the order is taken back.
    #[arg(long = "for", value_name = "TIME")]
    span: Option<Span>,
    /// Also accept a destination that receives no mail under the present settings.
    #[arg(long)]
    ahead: bool,
    /// Print JSON: an object with `destination`, `held_until`, `refused_until`, `way` and `way_until`.
    #[arg(long)]
    json: bool,
}

/// A destination whose order ends.
#[derive(Debug, Args)]
pub(crate) struct EndArgs {
    /// The destination as `vere queue list` or `vere queue orders` prints it.
    destination: String,
    /// Print JSON: an object with `destination`, `held_until`, `refused_until`, `way` and `way_until`.
    #[arg(long)]
    json: bool,
}

/// A destination, or a single message, to hold, and the duration.
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    /// The destination as `vere queue list` prints it; the queue need not exist yet.
    #[arg(required_unless_present = "id")]
    destination: Option<String>,
    /// Hold only the message with this id; without a destination, in every queue.
    #[arg(long)]
    id: Option<TraceId>,
    /// End automatically after this time, such as `30m` or `2h`; by default, when the hold is released.
    #[arg(long = "for", value_name = "TIME")]
    span: Option<Span>,
    /// Also accept a destination that receives no mail under the present settings.
    #[arg(long)]
    ahead: bool,
    /// Print JSON: an object as of `vere queue refuse --json`; with `--id`, a list of objects with `id`,
    /// `destination`, `outcome`, `held_until` and `in_order`.
    #[arg(long)]
    json: bool,
}

/// A destination, or a single message, to release.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The destination as `vere queue list` or `vere queue orders` prints it.
    #[arg(required_unless_present = "id")]
    destination: Option<String>,
    /// Release only the message with this id; without a destination, in every queue.
    #[arg(long)]
    id: Option<TraceId>,
    /// Print JSON: an object as of `vere queue refuse --json`; with `--id`, a list of objects with `id`,
    /// `destination`, `outcome`, `held_until` and `in_order`.
    #[arg(long)]
    json: bool,
}

/// The selected messages: messages that match every given option.
#[derive(Debug, Args)]
pub(crate) struct SelectionArgs {
    /// The destination as `vere queue list` prints it; `--all` or `--id` select from every queue.
    #[arg(required_unless_present_any = ["all", "id"])]
    destination: Option<String>,
    /// Select messages of every destination.
    #[arg(long, conflicts_with = "destination")]
    all: bool,
    /// Only messages of this sender, or of a sender's domain; empty for the null reverse-path.
    #[arg(long, value_name = "ADDRESS|DOMAIN")]
    sender: Option<String>,
    /// Only messages with this recipient, or with a recipient in this domain.
    #[arg(long, value_name = "ADDRESS|DOMAIN")]
    recipient: Option<String>,
    /// Only messages accepted at least this long ago, such as `2d`.
    #[arg(long, value_name = "TIME")]
    older_than: Option<Span>,
    /// Only the message with this id.
    #[arg(long)]
    id: Option<TraceId>,
    /// Only count the messages, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: an object with `messages`, `octets` and `busy`.
    #[arg(long)]
    json: bool,
}

/// Messages to end, after a question.
#[derive(Debug, Args)]
pub(crate) struct EndingArgs {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
}

/// Messages to return to their senders, after a question.
#[derive(Debug, Args)]
pub(crate) struct ReturnArgs {
    #[command(flatten)]
    ending: EndingArgs,
    /// End the messages without reports to their senders.
    #[arg(long)]
    no_report: bool,
}

/// Another route for a destination's mail.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("way").required(true).args(["to", "mx", "undo"])))]
pub(crate) struct RerouteArgs {
    /// The destination as `vere queue list` prints it; the queue need not exist yet.
    destination: String,
    /// Send to this host, under the settings of the route with this next hop, if such a route exists.
    #[arg(long, value_name = "HOST[:PORT]")]
    to: Option<String>,
    /// Send to the mail exchangers of this domain.
    #[arg(long, value_name = "DOMAIN")]
    mx: Option<String>,
    /// Restore the route of the settings.
    #[arg(long)]
    undo: bool,
    /// End automatically after this time, such as `30m` or `2h`; by default, when the reroute is undone.
    #[arg(long = "for", value_name = "TIME", conflicts_with = "undo")]
    span: Option<Span>,
    /// Also accept a destination that receives no mail under the present settings.
    #[arg(long)]
    ahead: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    /// Print JSON: an object with `destination`, `held_until`, `refused_until`, `way` and `way_until`.
    #[arg(long)]
    json: bool,
}

/// Reroutes a destination's mail, after printing the number of waiting messages.
pub(super) fn reroute(
    socket: &Path,
    settings: &Settings,
    args: &RerouteArgs,
) -> Result<String, Failure> {
    let way = match (&args.to, &args.mx) {
        (Some(host), _) => Some(next_hop(host, settings.delivery.port)?),
        (None, Some(domain)) => Some(Place::Domain(domain.to_ascii_lowercase())),
        (None, None) => None,
    };
    let name = &args.destination;
    let (change, done) = match way {
        Some(way) => (
            OrderChange::Reroute {
                to: way.to_string(),
            },
            format!("sent to {way}"),
        ),
        None => (OrderChange::Restore, "sent their own way again".to_owned()),
    };
    if !args.yes {
        ask_first(&would(&queued(socket, name)?, &done))?;
    }
    let seconds = args.span.map(|span| span.duration().as_secs());
    send_order(socket, name, &change, (seconds, args.ahead), args.json)
}

fn next_hop(text: &str, port: u16) -> Result<Place, Failure> {
    let wrong = || {
        Failure::new(format!(
            "{text} is no host with a port, as mx.example.org:25"
        ))
    };
    let text = text.strip_prefix("relay:").unwrap_or(text);
    let (host, port) = match text.rsplit_once(':') {
        // An IPv6 address without brackets has no port.
        Some((host, _)) if host.contains(':') && !host.ends_with(']') => (text, port),
        Some((host, number)) => (host, number.parse().map_err(|_| wrong())?),
        None => (text, port),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let odd = |letter: char| letter.is_whitespace() || letter.is_control();
    if host.is_empty() || host.contains(odd) || port == 0 {
        return Err(wrong());
    }
    Ok(Place::relay(host, port))
}

/// Counts the waiting messages of a destination, here and in adopted queues.
fn queued(socket: &Path, destination: &str) -> Result<Acted, Failure> {
    let mut all = Acted::default();
    for row in queues::all(socket)? {
        if row.destination == destination {
            all.messages += row.messages;
            all.octets += row.octets;
        }
    }
    Ok(all)
}

/// Changes the orders of a destination.
pub(super) fn order(
    socket: &Path,
    args: &OrderArgs,
    change: &OrderChange,
) -> Result<String, Failure> {
    let seconds = args.span.map(|span| span.duration().as_secs());
    let how = (seconds, args.ahead);
    send_order(socket, &args.destination, change, how, args.json)
}

/// Ends an order of a destination.
pub(super) fn end(socket: &Path, args: &EndArgs, change: &OrderChange) -> Result<String, Failure> {
    send_order(socket, &args.destination, change, (None, false), args.json)
}

/// Holds a destination, or a single message.
pub(super) fn hold(socket: &Path, args: &HoldArgs) -> Result<String, Failure> {
    let seconds = args.span.map(|span| span.duration().as_secs());
    let destination = args.destination.as_deref();
    match args.id {
        Some(id) => {
            let change = MessageChange::Hold;
            change_message(socket, destination, id, change, seconds, args.json)
        }
        None => {
            let name = destination.unwrap_or_default();
            let how = (seconds, args.ahead);
            send_order(socket, name, &OrderChange::Hold, how, args.json)
        }
    }
}

/// Ends a hold of a destination, or of a single message.
pub(super) fn release(socket: &Path, args: &ReleaseArgs) -> Result<String, Failure> {
    let destination = args.destination.as_deref();
    match args.id {
        Some(id) => {
            let change = MessageChange::Release;
            change_message(socket, destination, id, change, None, args.json)
        }
        None => {
            let name = destination.unwrap_or_default();
            send_order(
                socket,
                name,
                &OrderChange::Release,
                (None, false),
                args.json,
            )
        }
    }
}

fn change_message(
    socket: &Path,
    destination: Option<&str>,
    id: TraceId,
    change: MessageChange,
    seconds: Option<u64>,
    json: bool,
) -> Result<String, Failure> {
    let request = Request::QueueMessage {
        id,
        destination: destination.map(str::to_owned),
        change,
        seconds,
    };
    let rows: Vec<HoldRow> = parse(ask(socket, &request)?)?;
    let text = if json {
        to_json(&rows)?
    } else {
        rows.iter().map(hold_line).collect()
    };
    // A message under delivery or in the quarantine cannot be held, and the operator must learn so.
    let is_left =
        |row: &HoldRow| matches!(row.outcome, HoldOutcome::Busy | HoldOutcome::Quarantined);
    let busy = rows.iter().any(is_left);
    if busy {
        return Err(Failure::new(text.trim_end().to_owned()));
    }
    Ok(text)
}

fn hold_line(row: &HoldRow) -> String {
    let said = match (row.outcome, &row.held_until) {
        (HoldOutcome::Busy, _) => "left alone: it is being delivered, or has left".to_owned(),
        (HoldOutcome::NotHeld, _) => "not held".to_owned(),
        (HoldOutcome::Quarantined, _) => {
            "left alone: it is in the quarantine (vere quarantine)".to_owned()
        }
        (HoldOutcome::Done, Some(until)) => format!("held until {until}"),
        (HoldOutcome::Done, None) => "goes on".to_owned(),
    };
    let order = match &row.held_until {
        Some(_) if row.in_order => "; those behind it wait, for the queue keeps its order",
        _ => "",
    };
    format!("{} for {}: {said}{order}\n", row.id, row.destination)
}

fn send_order(
    socket: &Path,
    destination: &str,
    change: &OrderChange,
    (seconds, ahead): (Option<u64>, bool),
    json: bool,
) -> Result<String, Failure> {
    let request = Request::QueueOrder {
        destination: destination.to_owned(),
        change: change.clone(),
        seconds,
        ahead,
    };
    let row: OrderRow = parse(ask(socket, &request)?)?;
    if json {
        to_json(&row)
    } else {
        Ok(order_line(&row))
    }
}

/// The orders of all destinations, and the held messages.
pub(super) fn orders(socket: &Path, json: bool) -> Result<String, Failure> {
    let value = ask(socket, &Request::QueueOrders)?;
    let rows: Vec<OrderRow> = parse(value)?;
    if json {
        return to_json(&rows);
    }
    if rows.is_empty() {
        return Ok("no orders\n".to_owned());
    }
    Ok(rows.iter().map(order_line).collect())
}

/// The words for a hold.
pub(super) fn held(since: Option<&str>, until: &str, cause: Option<&str>) -> String {
    let since = since.map_or_else(String::new, |since| format!(" since {since}"));
    let cause = match cause {
        Some("sending") => ", as its account has sent as much as it may",
        Some("quarantine") => ", in the quarantine",
        _ => "",
    };
    format!("held{since} until {until}{cause}")
}

fn order_line(row: &OrderRow) -> String {
    let mut parts = Vec::new();
    if let Some(until) = &row.held_until {
        parts.push(held(
            row.held_since.as_deref(),
            until,
            row.held_for.as_deref(),
        ));
    }
    if let Some(until) = &row.refused_until {
        parts.push(format!("refused until {until}"));
    }
    if let Some(way) = &row.way {
        let until = row.way_until.as_deref().unwrap_or("taken back");
        parts.push(format!("by way of {way} until {until}"));
    }
    if parts.is_empty() {
        parts.push("delivered and taken as usual".to_owned());
    }
    let name = super::of_group(row.destination.clone(), row.group.clone());
    let name = match &row.id {
        Some(id) => format!("{id} for {name}"),
        None => name,
    };
    format!("{name}: {}\n", parts.join(", "))
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
        Ok(parse(ask_for(socket, &request, ACTION_TIMEOUT)?)?)
    }

    /// The answer of `--dry-run`.
    fn count(&self, socket: &Path, done: &str) -> Result<String, Failure> {
        let count = self.act(socket, Action::Count, false)?;
        match self.json {
            true => to_json(&count),
            false => Ok(would(&count, done) + "\n"),
        }
    }
}

/// Retries messages now.
pub(super) fn retry(socket: &Path, args: &SelectionArgs) -> Result<String, Failure> {
    if args.dry_run {
        return args.count(socket, "tried again");
    }
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
    if args.selection.dry_run {
        return args.selection.count(socket, done);
    }
    if !args.yes {
        let count = args.selection.act(socket, Action::Count, false)?;
        ask_first(&would(&count, done))?;
    }
    let acted = args.selection.act(socket, action, report)?;
    told(&acted, done, args.selection.json)
}

/// The number of messages that an operation would change.
fn would(count: &Acted, done: &str) -> String {
    let size = size(count.octets);
    format!("{} ({size}) would be {done}", messages(count.messages))
}

fn told(acted: &Acted, done: &str, json: bool) -> Result<String, Failure> {
    if let Some(trouble) = &acted.trouble {
        return Err(Failure::new(format!(
            "{} {done}, then it ended: {trouble}",
            messages(acted.messages)
        )));
    }
    if json {
        return to_json(acted);
    }
    let mut text = format!("{} {done}", messages(acted.messages));
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
            group: None,
            id: None,
            held_since: None,
            held_for: None,
            held_until: Some("taken back".to_owned()),
            refused_until: None,
            way: None,
            way_until: None,
        };
        assert_eq!(order_line(&row), "a.example: held until taken back\n");
        (row.id, row.held_since) = (Some("1Y3KQ0000000".to_owned()), Some("then".to_owned()));
        assert_eq!(
            order_line(&row),
            "1Y3KQ0000000 for a.example: held since then until taken back\n"
        );
        (row.id, row.held_until) = (None, None);
        assert_eq!(
            order_line(&row),
            "a.example: delivered and taken as usual\n"
        );
    }

    #[test]
    fn next_hops_are_read() {
        let read = |text| next_hop(text, 25).map(|way| way.to_string()).ok();
        for (text, way) in [
            ("mx.example", "relay:mx.example:25"),
            ("mx.example:26", "relay:mx.example:26"),
            ("relay:mx.example:26", "relay:mx.example:26"),
            ("192.0.2.1", "relay:192.0.2.1:25"),
            ("2001:db8::1", "relay:[2001:db8::1]:25"),
            ("[2001:db8::1]:26", "relay:[2001:db8::1]:26"),
            ("[2001:db8::1]", "relay:[2001:db8::1]:25"),
        ] {
            assert_eq!(read(text).as_deref(), Some(way), "{text}");
        }
        for text in [
            "",
            ":25",
            "mx.example:",
            "mx.example:0",
            "mx.example:x",
            "a b",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
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
