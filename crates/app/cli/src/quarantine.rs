//! `vere quarantine`: messages kept aside by the judgement.

mod senders;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;
use vere_control::queues::parse;
use vere_control::{
    QuarantineActed, QuarantineAction, QuarantineRow, QuarantineSelection, QuarantineText, Request,
    ask_for,
};
use vere_process::confirm::confirm;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_process::wording::{counted, messages, size};
use vere_settings::Settings;
use vere_units::TraceId;

pub(crate) use senders::SendersCommand;
use vere_process::json::to_json;

/// How long a command waits for a gateway to work through the quarantine; the gateway goes on afterwards.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Ids in one request: a request has at most 64 KiB.
const IDS_MAX: usize = 1_000;
/// Characters of a stranger's text in one line of a list.
const LINE_CHARS: usize = 100;

/// Inspect, release and remove messages kept aside by the judgement.
#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineCommand {
    /// List messages in the quarantine, the oldest first.
    List(ListArgs),
    /// Show one message: header, recipients, and the time of removal by age.
    Show(ShowArgs),
    /// Deliver messages.
    ///
    /// A message has the full time for delivery attempts from now on, and is delivered as good mail: without
    /// X-Spam-Flag, and with released=yes in X-Spam-Status.
    Release(ActArgs),
    /// Remove messages, after a question; neither senders nor recipients are told.
    Refuse(RefuseArgs),
    /// List and remove senders learned by `release --learn`.
    #[command(subcommand)]
    Senders(SendersCommand),
}

/// Messages by their addresses.
#[derive(Debug, Args)]
pub(crate) struct AddressArgs {
    /// Only messages with this recipient, or with a recipient in this domain.
    #[arg(long, value_name = "ADDRESS|DOMAIN")]
    recipient: Option<String>,
    /// Only messages of this sender, or of a sender's domain; empty for the null reverse-path.
    #[arg(long, value_name = "ADDRESS|DOMAIN")]
    sender: Option<String>,
}

/// Selects messages for a list.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    addresses: AddressArgs,
    /// List only the messages behind the message with this id.
    #[arg(long, value_name = "ID")]
    after: Option<TraceId>,
    /// The most messages to list, up to 1000.
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// Print JSON: a list of objects with `id`, `destination`, `reverse_path`, `recipients`, `since`, `until`,
    /// `size` and, where they are known, `group`, `from`, `subject`, `score`.
    #[arg(long)]
    json: bool,
}

/// A message, and the form of the output.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The id of the message.
    id: TraceId,
    /// Print the message byte by byte, as stored; a terminal may obey commands of a stranger.
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Print JSON: a list of objects as of `vere quarantine list --json`, one for each destination, with all facts
    /// of the verdict.
    #[arg(long)]
    json: bool,
}

/// Selects messages to release or remove.
#[derive(Debug, Args)]
pub(crate) struct ActArgs {
    /// The ids of the messages.
    #[arg(required_unless_present = "all", value_name = "ID")]
    ids: Vec<TraceId>,
    /// Select every message with the given addresses.
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    #[command(flatten)]
    addresses: AddressArgs,
    /// Teach rspamd by each message: ham if released, spam if refused (`learn_address` of the filter). A release also
    /// notes a proven author as a wanted sender for the recipients, and a refusal forgets the sender.
    #[arg(long)]
    learn: bool,
    /// Only count the messages.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: an object with `messages`, `octets`, `missing`, `taught`, `untaught`, `senders`, `unlearned` and
    /// `trouble`.
    #[arg(long)]
    json: bool,
}

/// Selects messages to remove.
#[derive(Debug, Args)]
pub(crate) struct RefuseArgs {
    #[command(flatten)]
    act: ActArgs,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
}

/// Runs the command.
///
/// # Errors
/// When no gateway answers, or a message is not in the quarantine.
pub(crate) fn run(command: &QuarantineCommand, settings: &Settings) -> Result<Outcome, Failure> {
    let socket = &settings.control.socket;
    let text = match command {
        QuarantineCommand::List(args) => list(socket, args)?,
        QuarantineCommand::Show(args) if args.raw => {
            raw(socket, args.id)?;
            String::new()
        }
        QuarantineCommand::Show(args) => show(socket, args)?,
        QuarantineCommand::Release(args) => act(socket, args, QuarantineAction::Release, true)?,
        QuarantineCommand::Refuse(args) => {
            act(socket, &args.act, QuarantineAction::Refuse, args.yes)?
        }
        QuarantineCommand::Senders(command) => senders::run(command, socket)?,
    };
    Ok(Outcome::Print(text))
}

fn asked<T: DeserializeOwned>(socket: &Path, request: &Request) -> Result<T, Failure> {
    Ok(parse(ask_for(socket, request, PATIENCE)?)?)
}

impl AddressArgs {
    fn selection(&self, ids: &[TraceId]) -> QuarantineSelection {
        QuarantineSelection {
            ids: ids.to_vec(),
            recipient: self.recipient.clone(),
            sender: self.sender.clone(),
        }
    }
}

fn list(socket: &Path, args: &ListArgs) -> Result<String, Failure> {
    let request = Request::QuarantineList {
        selection: args.addresses.selection(&[]),
        after: args.after,
        limit: args.limit,
    };
    let rows: Vec<QuarantineRow> = asked(socket, &request)?;
    if args.json {
        return to_json(&rows);
    }
    if rows.is_empty() {
        return Ok("no messages\n".to_owned());
    }
    Ok(rows.iter().map(line).collect())
}

/// The lines of a message in a list.
fn line(row: &QuarantineRow) -> String {
    let score = row.score.as_deref().map(|score| cut(score, 20));
    let score = score.map_or_else(String::new, |score| format!(", score {score}"));
    let mut out = format!(
        "{} {} {}, {}{score}, from <{}> to {}\n",
        row.id,
        row.since,
        place(row),
        size(row.size.into()),
        shown(row.reverse_path.as_deref().unwrap_or("?")),
        shown(&row.recipients.join(", ")),
    );
    for (name, value) in [("From", &row.from), ("Subject", &row.subject)] {
        if let Some(value) = value {
            let _ = writeln!(out, "    {name}: {}", cut(value, LINE_CHARS));
        }
    }
    out
}

fn place(row: &QuarantineRow) -> String {
    match &row.group {
        Some(group) => format!("{} (of {group})", row.destination),
        None => row.destination.clone(),
    }
}

fn show(socket: &Path, args: &ShowArgs) -> Result<String, Failure> {
    let rows: Vec<QuarantineRow> = asked(socket, &Request::QuarantineShow { id: args.id })?;
    if args.json {
        return to_json(&rows);
    }
    let mut out = String::new();
    for row in &rows {
        let _ = writeln!(
            out,
            "{} for {}, {}\n    from <{}> to {}\n    in quarantine since {}, removed by its age at {}",
            row.id,
            place(row),
            size(row.size.into()),
            shown(row.reverse_path.as_deref().unwrap_or("?")),
            shown(&row.recipients.join(", ")),
            row.since,
            row.until,
        );
    }
    if let Some(row) = rows.first() {
        out.push('\n');
        for field in &row.header {
            let _ = writeln!(out, "{}: {}", shown(&field.name), shown(&field.value));
        }
    }
    Ok(out)
}

/// Prints the message as stored.
fn raw(socket: &Path, id: TraceId) -> Result<(), Failure> {
    let mut from = 0;
    loop {
        let piece: QuarantineText = asked(socket, &Request::QuarantineText { id, from })?;
        let octets = piece
            .octets()
            .ok_or_else(|| Failure::new("the gateway answered with no message".to_owned()))?;
        std::io::stdout().write_all(&octets)?;
        from += octets.len();
        if octets.is_empty() || from >= piece.size {
            return Ok(());
        }
    }
}

fn act(
    socket: &Path,
    args: &ActArgs,
    action: QuarantineAction,
    is_sure: bool,
) -> Result<String, Failure> {
    let done = match action {
        QuarantineAction::Release => "released",
        QuarantineAction::Refuse | QuarantineAction::Count => "removed",
    };
    if args.dry_run || !is_sure {
        let count = act_on_all(socket, args, QuarantineAction::Count)?;
        let size = size(count.octets);
        let would = format!("{} ({size}) would be {done}", messages(count.messages));
        if args.dry_run {
            return match args.json {
                true => to_json(&count),
                false => Ok(format!("{would}\n")),
            };
        }
        confirm(&would)?;
    }
    let is_teaching = args.learn && action == QuarantineAction::Release;
    let acted = act_on_all(socket, args, action)?;
    told(&acted, done, (is_teaching, args.json))
}

/// Acts request by request, as one request holds a bounded number of ids.
fn act_on_all(
    socket: &Path,
    args: &ActArgs,
    action: QuarantineAction,
) -> Result<QuarantineActed, Failure> {
    let mut sum = QuarantineActed::default();
    let chunks: Vec<&[TraceId]> = match args.all {
        true => vec![&[]],
        false => args.ids.chunks(IDS_MAX).collect(),
    };
    for ids in chunks {
        let request = Request::QuarantineAct {
            selection: args.addresses.selection(ids),
            action,
            learn: args.learn,
        };
        let acted: QuarantineActed = asked(socket, &request)?;
        sum.messages += acted.messages;
        sum.octets += acted.octets;
        sum.taught += acted.taught;
        sum.untaught = sum.untaught.or(acted.untaught);
        sum.senders += acted.senders;
        sum.unlearned = sum.unlearned.or(acted.unlearned);
        sum.missing.extend(acted.missing);
        if acted.trouble.is_some() {
            sum.trouble = acted.trouble;
            break;
        }
    }
    Ok(sum)
}

/// The text about an action. An unfinished action is a failure.
fn told(
    acted: &QuarantineActed,
    done: &str,
    (is_teaching, json): (bool, bool),
) -> Result<String, Failure> {
    let count = messages(acted.messages);
    if let Some(trouble) = &acted.trouble {
        return Err(Failure::new(format!(
            "{count} {done}, then it ended: {trouble}"
        )));
    }
    let missing: Vec<_> = acted.missing.iter().map(ToString::to_string).collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(Failure::new(format!(
            "{count} {done}; not in the quarantine: {missing}"
        )));
    }
    if let Some(why) = &acted.untaught {
        return Err(Failure::new(format!(
            "{count} {done}, {} learned; {why}{}",
            messages(acted.taught),
            about_senders(acted, is_teaching)
        )));
    }
    match json {
        true => to_json(acted),
        false => Ok(format!(
            "{count} {done}{}\n",
            about_senders(acted, is_teaching)
        )),
    }
}

/// What became of the own list of senders.
fn about_senders(acted: &QuarantineActed, is_teaching: bool) -> String {
    let count = counted(acted.senders, "sender", "senders");
    let mut text = match (is_teaching, acted.senders) {
        (true, _) => format!("; {count} learned"),
        (false, 0) => String::new(),
        (false, _) => format!("; {count} forgotten"),
    };
    if let Some(why) = &acted.unlearned {
        let _ = write!(text, "; a sender not learned: {}", shown(why));
    }
    text
}

/// A stranger's text in one line, with escapes for unprintable characters.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' | '\'' => out.push(letter),
            _ => out.extend(letter.escape_debug()),
        }
    }
    out
}

/// The beginning of a stranger's text.
fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}...", shown(text.get(..end).unwrap_or_default())),
        None => shown(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> QuarantineRow {
        QuarantineRow {
            id: "1Y3KQ00000001".to_owned(),
            group: None,
            destination: "local".to_owned(),
            reverse_path: Some(String::new()),
            recipients: vec!["ann@example.org".to_owned()],
            since: "then".to_owned(),
            until: "later".to_owned(),
            size: 2_048,
            from: Some("\"Bank\" <a\u{1b}[2J@b>".to_owned()),
            subject: Some("x".repeat(200)),
            score: Some("12.5".to_owned()),
            header: Vec::new(),
        }
    }

    #[test]
    fn texts_of_strangers_are_escaped_and_cut() {
        let text = line(&row());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "1Y3KQ00000001 then local, 2.0 KiB, score 12.5, from <> to ann@example.org"
        );
        assert_eq!(lines[1], "    From: \"Bank\" <a\\u{1b}[2J@b>");
        assert_eq!(lines[2], format!("    Subject: {}...", "x".repeat(100)));
        assert_eq!(
            shown("cod\u{202e}exe \\ \r\n"),
            "cod\\u{202e}exe \\\\ \\r\\n"
        );
    }

    #[test]
    fn what_was_left_undone_is_a_failure() {
        let mut acted = QuarantineActed {
            messages: 2,
            octets: 9,
            missing: Vec::new(),
            trouble: None,
            ..QuarantineActed::default()
        };
        let text = told(&acted, "released", (false, false)).unwrap();
        assert_eq!(text, "2 messages released\n");
        acted.senders = 1;
        acted.unlearned = Some("x".to_owned());
        let text = told(&acted, "released", (true, false)).unwrap();
        assert_eq!(
            text,
            "2 messages released; 1 sender learned; a sender not learned: x\n"
        );
        acted.missing.push("1Y3KQ00000001".parse().unwrap());
        let failure = told(&acted, "released", (false, true))
            .unwrap_err()
            .to_string();
        assert!(
            failure.contains("not in the quarantine: 1Y3KQ00000001"),
            "{failure}"
        );
        acted.trouble = Some("spool did not answer".to_owned());
        assert!(told(&acted, "released", (false, false)).is_err());
    }
}
