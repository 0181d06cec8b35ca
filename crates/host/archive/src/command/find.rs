//! `vere x400 archive find`.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use vere_units::Timestamp;

use super::text::{age, count, shown, size};
use super::{CommandError, exists, note};
use crate::format::Fields;
use crate::read::{self, Found, Page, Query, SearchSummary};

/// The options of `find`.
#[derive(Debug, Clone)]
pub struct FindOptions {
    /// The directory of the archive.
    pub folder: PathBuf,
    /// The conditions.
    pub query: Query,
    /// Which part of the result.
    pub page: Page,
    /// A list of JSON objects in place of the table.
    pub json: bool,
}

/// Writes the entries that meet the conditions: a table, or a list of JSON objects.
///
/// # Errors
///
/// There is no archive; nothing was found, unless for JSON; files cannot be read or written. Damage is a note.
pub fn find(
    options: &FindOptions,
    now: Timestamp,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<SearchSummary, CommandError> {
    exists(&options.folder)?;
    let mut is_first = true;
    let mut show = |found: &Found<'_>| {
        let first = std::mem::replace(&mut is_first, false);
        match options.json {
            true => show_json(found, first, out),
            false => show_text(found, first, now, out),
        }
    };
    let summary = read::find(&options.folder, &options.query, &options.page, &mut show)?;
    if options.json {
        out.write_all(if summary.found == 0 {
            b"[]\n"
        } else {
            b"\n]\n"
        })?;
    }
    note(&summary.issues, notes)?;
    if summary.found == 0 && !options.json {
        return Err(CommandError::NothingFound);
    }
    if let Some(last) = summary.more {
        let shown = count(summary.found, "entry");
        writeln!(
            notes,
            "{shown} shown, more exist: continue with --after {last}"
        )?;
    }
    Ok(summary)
}

fn show_text(
    found: &Found<'_>,
    is_first: bool,
    now: Timestamp,
    out: &mut dyn Write,
) -> io::Result<()> {
    if is_first {
        writeln!(
            out,
            "{:<26} {:>7}  {:<7} {:>8}  {:<13}  {:<16} ORIGINATOR -> RECIPIENTS",
            "ENTRY", "AGE", "KIND", "SIZE", "TRACE", "SOURCE"
        )?;
    }
    let fields = &found.fields;
    writeln!(
        out,
        "{:<26} {:>7}  {:<7} {:>8}  {:<13}  {:<16} {} -> {}",
        found.id,
        age(now, fields.at),
        fields.kind,
        size(found.octets),
        fields.trace,
        shown(fields.source),
        shown(fields.originator),
        recipients(fields)
    )
}

/// The first recipient, and the number of further ones.
fn recipients(fields: &Fields<'_>) -> String {
    let first = fields.recipients.iter().next().unwrap_or_default();
    match fields.recipients.len() {
        0 | 1 => shown(first).into_owned(),
        all => format!("{} and {} more", shown(first), all - 1),
    }
}

/// An entry for programs.
#[derive(Debug, Serialize)]
struct Row<'a> {
    entry: String,
    at: String,
    trace: String,
    kind: &'a str,
    identifier: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    about: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    originator: &'a str,
    recipients: Vec<&'a str>,
    source: &'a str,
    destinations: Vec<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    content_type: &'a str,
    octets: u64,
}

fn show_json(found: &Found<'_>, is_first: bool, out: &mut dyn Write) -> io::Result<()> {
    let fields = &found.fields;
    let row = Row {
        entry: found.id.to_string(),
        at: fields.at.to_string(),
        trace: fields.trace.to_string(),
        kind: fields.kind.name(),
        identifier: fields.identifier,
        about: fields.about,
        originator: fields.originator,
        recipients: fields.recipients.iter().collect(),
        source: fields.source,
        destinations: fields.destinations.iter().collect(),
        content_type: fields.content_type,
        octets: found.octets,
    };
    out.write_all(if is_first { b"[\n" } else { b",\n" })?;
    serde_json::to_writer(&mut *out, &row)?;
    Ok(())
}
