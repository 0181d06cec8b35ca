//! `vere store repair`: what was found and done, in words and as JSON.

use std::fmt::Write as _;

use vere_store::{LostMessage, RepairReport};
use vere_units::Timestamp;

/// What a repair did, or would do.
pub(super) fn as_text(report: &RepairReport, dry_run: bool) -> String {
    let mut text = String::new();
    let counts = [
        ("records read", report.records),
        ("accounts", report.accounts),
        ("mailboxes", report.mailboxes),
        ("messages", report.messages),
        ("taken from old metadata", report.from_metadata),
        ("lists and mailboxes mended", report.mended),
    ];
    for (name, value) in counts {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<28} {value:>10}");
    }
    for sentence in sentences(report) {
        let _ = writeln!(text, "{sentence}");
    }
    text.push_str(match (report.has_losses(), dry_run) {
        (false, _) => "nothing is lost\n",
        (true, _) => "what is named above is lost; all else is there\n",
    });
    text.push_str(match dry_run {
        true => "nothing was changed\n",
        false => "the metadata were made anew; the search index is made by the running system\n",
    });
    text
}

/// Prints the report of a repair as JSON.
pub(super) fn as_json(report: &RepairReport, dry_run: bool) -> String {
    let value = serde_json::json!({
        "dry_run": dry_run,
        "records": report.records,
        "accounts": report.accounts,
        "mailboxes": report.mailboxes,
        "messages": report.messages,
        "from_metadata": report.from_metadata,
        "mended": report.mended,
        "lost_messages": report.lost.len(),
        "kept_lost": report.kept_lost,
        "losses": report.has_losses(),
        "findings": sentences(report),
    });
    format!("{value:#}\n")
}

pub(crate) fn sentences(report: &RepairReport) -> Vec<String> {
    let mut all: Vec<String> = report
        .damage
        .iter()
        .map(|damage| {
            format!(
                "{}: {} octets from position {} on are lost",
                damage.file,
                damage.to - damage.from,
                damage.from
            )
        })
        .collect();
    all.extend(report.lost.iter().map(lost));
    if report.kept_lost > 0 {
        let kept_lost = report.kept_lost;
        all.push(format!(
            "expunged messages that cannot be brought back any more: {kept_lost}"
        ));
    }
    all.extend(report.changes_lost.iter().map(|mailbox| {
        format!(
            "mailbox {}: changes are lost; flags may be older than they were, messages missing or back",
            mailbox.0
        )
    }));
    let lists = report.lists_lost.iter();
    all.extend(
        lists.map(|account| format!("{account}: changes of the list of mailboxes are lost")),
    );
    let gone = report.names_gone.iter();
    all.extend(gone.map(|(account, name)| format!("{account}: {name} is gone")));
    let made = report.names_made.iter();
    all.extend(made.map(|(account, name)| format!("{account}: {name} was in no list")));
    let nameless = report.nameless.iter();
    all.extend(nameless.map(|body| {
        format!(
            "the message at position {} is in no mailbox any more, if it ever was",
            body.0
        )
    }));
    all
}

fn lost(message: &LostMessage) -> String {
    let account = message
        .account
        .as_ref()
        .map_or("nobody's".to_owned(), ToString::to_string);
    let mailbox = match &message.mailbox {
        Some(name) => name.to_string(),
        None => format!("mailbox {}", message.id.0),
    };
    let millis = u64::try_from(message.arrived)
        .unwrap_or(0)
        .saturating_mul(1_000);
    format!(
        "{account}, {mailbox}: message {} of {} octets, which arrived {}, is lost and was taken out",
        message.uid,
        message.size,
        Timestamp::from_millis(millis)
    )
}
