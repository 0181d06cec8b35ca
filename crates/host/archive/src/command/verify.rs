//! `vere x400 archive verify`.

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use super::text::{count, size};
use super::{CommandError, exists};
use crate::read::{self, Verified};

/// The options of `verify`.
#[derive(Debug, Clone)]
pub struct VerifyOptions {
    /// The directory of the archive.
    pub folder: PathBuf,
    /// A JSON object in place of the text.
    pub json: bool,
}

/// Reads the whole archive and compares all checksums.
///
/// # Errors
///
/// There is no archive; files cannot be read; the archive is damaged, after the result was written.
pub fn verify(options: &VerifyOptions, out: &mut dyn Write) -> Result<Verified, CommandError> {
    exists(&options.folder)?;
    let verified = read::verify(&options.folder, |_, _| {})?;
    match options.json {
        true => show_json(&verified, out)?,
        false => show_text(&verified, out)?,
    }
    if verified.issues.has_damage() {
        let issues = verified.issues.list.len() as u64 + verified.issues.more;
        return Err(CommandError::Damaged(count(issues, "issue")));
    }
    Ok(verified)
}

fn show_text(verified: &Verified, out: &mut dyn Write) -> Result<(), CommandError> {
    super::note(&verified.issues, out)?;
    let state = match verified.issues.has_damage() {
        true => "damaged",
        false => "OK",
    };
    writeln!(
        out,
        "{}, {}, {}, {}: {state}",
        count(verified.days, "day"),
        count(verified.segments, "segment"),
        count(verified.entries, "entry"),
        size(verified.octets)
    )?;
    Ok(())
}

#[derive(Debug, Serialize)]
struct Row {
    days: u64,
    segments: u64,
    entries: u64,
    octets: u64,
    damaged: bool,
    issues: Vec<IssueRow>,
    further_issues: u64,
}

#[derive(Debug, Serialize)]
struct IssueRow {
    segment: String,
    issue: String,
    loss: bool,
}

fn show_json(verified: &Verified, out: &mut dyn Write) -> Result<(), CommandError> {
    let issues = verified
        .issues
        .list
        .iter()
        .map(|(segment, issue)| IssueRow {
            segment: segment.to_string(),
            issue: issue.to_string(),
            loss: issue.is_loss(),
        });
    let row = Row {
        days: verified.days,
        segments: verified.segments,
        entries: verified.entries,
        octets: verified.octets,
        damaged: verified.issues.has_damage(),
        issues: issues.collect(),
        further_issues: verified.issues.more,
    };
    let text = serde_json::to_string_pretty(&row).map_err(std::io::Error::from)?;
    writeln!(out, "{text}")?;
    Ok(())
}
