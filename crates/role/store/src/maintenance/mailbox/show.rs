//! Mailboxes and expunged messages, in words and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use vere_process::wording::{self, size};
use vere_units::Timestamp;

use crate::mailboxes::{ExpungedRow, MailboxRow, UndeletedPage};

/// Characters of a stranger's text in a line.
const FROM_CHARS: usize = 30;
const SUBJECT_CHARS: usize = 60;

pub(super) fn json(value: &Value) -> String {
    format!("{value:#}\n")
}

pub(super) fn values(rows: &[MailboxRow]) -> Value {
    rows.iter().map(value).collect()
}

pub(super) fn value(row: &MailboxRow) -> Value {
    json!({
        "mailbox": row.mailbox,
        "deleted": row.deleted.map(time),
        "special_use": row.special_use,
        "subscribed": row.subscribed,
        "messages": row.messages,
        "unseen": row.unseen,
        "octets": row.octets,
        "uid_validity": row.uid_validity,
        "uid_next": row.uid_next,
        "highest_mod_seq": row.highest_mod_seq,
        "expunged": row.expunged,
        "expunged_octets": row.expunged_octets,
    })
}

fn time(millis: u64) -> String {
    Timestamp::from_millis(millis).to_string()
}

/// The mailboxes of an account in a table.
pub(super) fn list(rows: &[MailboxRow], now: Timestamp) -> String {
    let name = |row: &MailboxRow| match row.deleted {
        None => shown(&row.mailbox),
        Some(deleted) => format!("{} (deleted {})", shown(&row.mailbox), ago(deleted, now)),
    };
    let width = rows.iter().map(|row| name(row).chars().count()).max();
    let width = width.unwrap_or(0).max("MAILBOX".len());
    let mut text = format!(
        "{:<width$} {:>9} {:>8} {:>12} {:>12} {:>9}\n",
        "MAILBOX", "MESSAGES", "UNSEEN", "SIZE", "UIDVALIDITY", "EXPUNGED"
    );
    for row in rows {
        let validity = row.uid_validity.map_or("-".to_owned(), |it| it.to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<width$} {:>9} {:>8} {:>12} {validity:>12} {:>9}",
            name(row),
            row.messages,
            row.unseen,
            wording::size(row.octets),
            row.expunged,
        );
    }
    text
}

/// One mailbox in lines.
pub(super) fn one(row: &MailboxRow, now: Timestamp) -> String {
    let dash = || "-".to_owned();
    let rows = [
        ("mailbox", shown(&row.mailbox)),
        (
            "deleted",
            row.deleted.map_or("no".to_owned(), |at| ago(at, now)),
        ),
        ("special use", row.special_use.clone().unwrap_or_else(dash)),
        (
            "subscribed",
            if row.subscribed { "yes" } else { "no" }.to_owned(),
        ),
        ("messages", row.messages.to_string()),
        ("  unseen", row.unseen.to_string()),
        ("  size", size(row.octets)),
        (
            "UIDVALIDITY",
            row.uid_validity.map_or_else(dash, |it| it.to_string()),
        ),
        (
            "UIDNEXT",
            row.uid_next.map_or_else(dash, |it| it.to_string()),
        ),
        (
            "HIGHESTMODSEQ",
            row.highest_mod_seq.map_or_else(dash, |it| it.to_string()),
        ),
        ("expunged messages kept", row.expunged.to_string()),
        ("  size", size(row.expunged_octets)),
    ];
    rows.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:<24} {value}");
        text
    })
}

pub(super) fn expunged_values(rows: &[ExpungedRow]) -> Value {
    let value = |row: &ExpungedRow| {
        json!({
            "mailbox": row.mailbox,
            "mailbox_deleted": row.mailbox_deleted,
            "uid": row.uid,
            "size": row.size,
            "arrived": time(u64::try_from(row.arrived).unwrap_or(0).saturating_mul(1_000)),
            "expunged": time(row.expunged),
            "flags": row.flags,
            "from": row.from,
            "subject": row.subject.as_deref().map(decoded),
            "message_id": row.message_id,
        })
    };
    rows.iter().map(value).collect()
}

/// Expunged messages by mailbox; `next` is what to skip for the next page.
pub(super) fn expunged(rows: &[ExpungedRow], now: Timestamp, next: Option<usize>) -> String {
    if rows.is_empty() {
        return "no expunged message is kept\n".to_owned();
    }
    let mut text = String::new();
    let mut before = None;
    for row in rows {
        let mailbox = (&row.mailbox, row.mailbox_deleted);
        if before != Some(mailbox) {
            let note = if row.mailbox_deleted {
                " (deleted)"
            } else {
                ""
            };
            let _ = writeln!(text, "{}{note}", shown(&row.mailbox));
            let _ = writeln!(
                text,
                "{:>10}  {:<16} {:>12}  {:<FROM_CHARS$}  SUBJECT",
                "UID", "EXPUNGED", "SIZE", "FROM"
            );
            before = Some(mailbox);
        }
        let subject = row.subject.as_deref().map(decoded).unwrap_or_default();
        let _ = writeln!(
            text,
            "{:>10}  {:<16} {:>12}  {:<FROM_CHARS$}  {}",
            row.uid,
            ago(row.expunged, now),
            wording::size(row.size.into()),
            cut(row.from.as_deref().unwrap_or("-"), FROM_CHARS),
            cut(&subject, SUBJECT_CHARS),
        );
    }
    if let Some(next) = next {
        let _ = writeln!(text, "there are more: --skip {next}");
    }
    text
}

pub(super) fn undeleted_value(page: &UndeletedPage, dry_run: bool) -> Value {
    json!({
        "dry_run": dry_run,
        "messages": page.messages,
        "octets": page.octets,
        "mailboxes": page.mailboxes,
        "stopped": page.stopped,
    })
}

/// What came back, or would come back.
pub(super) fn undeleted(page: &UndeletedPage, dry_run: bool) -> String {
    let mut text = match (page.messages, dry_run) {
        (0, _) => "no expunged message matches; nothing is changed".to_owned(),
        (_, true) => format!("{} would come back", amount(page.messages, page.octets)),
        (1, false) => format!("{} is back", amount(page.messages, page.octets)),
        (_, false) => format!("{} are back", amount(page.messages, page.octets)),
    };
    let places = page.mailboxes.iter().map(|back| {
        let made = if back.made { " (created)" } else { "" };
        format!("{} in {}{made}", back.messages, shown(&back.mailbox))
    });
    let places: Vec<_> = places.collect();
    if !places.is_empty() {
        text.push_str(": ");
        text.push_str(&places.join(", "));
    }
    text.push('\n');
    if let Some(why) = &page.stopped {
        let _ = writeln!(text, "the others stay expunged: {why}");
    }
    text
}

/// How much the quota lacks.
pub(super) fn over(page: &UndeletedPage) -> String {
    let left = match (page.messages_left, page.octets_left) {
        (Some(messages), Some(octets)) => amount(messages, octets),
        (Some(messages), None) => wording::messages(messages),
        (None, octets) => wording::size(octets.unwrap_or(0)),
    };
    format!(
        "over quota: {} would come back, the quota leaves {left}; nothing was changed",
        amount(page.messages, page.octets)
    )
}

/// Messages with their size.
pub(super) fn amount(messages: u64, octets: u64) -> String {
    format!(
        "{} ({})",
        wording::messages(messages),
        wording::size(octets)
    )
}

fn ago(millis: u64, now: Timestamp) -> String {
    let seconds = now
        .saturating_since(Timestamp::from_millis(millis))
        .as_secs();
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// A field without its encoding (RFC 2047).
fn decoded(field: &str) -> String {
    vere_mime::text::of_field(field.as_bytes())
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
    let shown = shown(text);
    match shown.char_indices().nth(max) {
        Some(_) => {
            let start: String = shown.chars().take(max.saturating_sub(3)).collect();
            start + "..."
        }
        None => shown,
    }
}
