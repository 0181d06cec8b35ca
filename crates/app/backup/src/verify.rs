//! `vere backup verify`: reads every object, and checks the mail store made from the backup.

use std::collections::HashSet;

use serde_json::json;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_process::wording::{counted, messages, size};
use vere_role_store::copies::{Checked, Shelf};
use vere_units::Timestamp;

use crate::args::{PlaceArgs, ShownArgs, WhichArgs};
use crate::manifest::Manifest;
use crate::place::Use;
use crate::progress;
use crate::repository::{PieceError, Repository};
use crate::unpack::log_alone;

/// Maximum number of listed findings.
const FINDINGS_MAX: usize = 1_000;

/// Maximum number of objects in a row without an answer of the server of the place: each takes minutes.
const UNANSWERED_MAX: u32 = 2;

/// The findings.
#[derive(Debug, Default)]
struct Found {
    objects: u64,
    octets: u64,
    store: Option<Checked>,
    /// Whether the place notes the damaged objects for the next backup.
    is_noted: bool,
    findings: Vec<String>,
}

/// Checks a backup.
///
/// # Errors
/// When there is no such backup, or the place cannot be read at all.
pub(crate) fn run(
    place: &PlaceArgs,
    which: &WhichArgs,
    objects: bool,
    shown: &ShownArgs,
) -> Result<Outcome, Failure> {
    let ask = || place.secret.get();
    let repository = Repository::open(&place.place, Use::Reading, &ask)?;
    let manifest = repository.chosen(which.number)?;
    let mut found = Found::default();
    read_objects(&repository, &manifest, shown, &mut found);
    if let (true, false, Some(log)) = (found.findings.is_empty(), objects, &manifest.log) {
        let scratch = which.scratch()?;
        log_alone(&repository, log, scratch.path(), shown, false)?;
        match Shelf::open(scratch.path()).map(|mut shelf| shelf.check()) {
            Ok(checked) => {
                let checked = checked?;
                found.findings.extend(checked.findings.iter().cloned());
                found.store = Some(checked);
            }
            Err(error) => found.findings.push(error.to_string()),
        }
    }
    let text = match shown.json {
        true => found.json(&manifest),
        false => found.text(&manifest),
    };
    Ok(Outcome::of_findings(text, !found.findings.is_empty()))
}

/// Reads each object once.
fn read_objects(
    repository: &Repository,
    manifest: &Manifest,
    shown: &ShownArgs,
    found: &mut Found,
) {
    let bar = progress::bar(shown, "objects", manifest.octets());
    let mut seen = HashSet::new();
    let noted = repository.damaged().unwrap_or_default();
    let mut unanswered = 0;
    for piece in manifest.pieces() {
        bar.inc(piece.0);
        if !seen.insert(&piece.1) {
            continue;
        }
        found.objects += 1;
        found.octets += piece.0;
        let read = repository.piece(piece);
        // A place that is mounted to be read only keeps its notes.
        let kept = match &read {
            Err(PieceError::Damaged(_)) => repository.note_damaged(&piece.1),
            Ok(_) if noted.contains(&piece.1) => repository.note_mended(&piece.1),
            _ => Ok(()),
        };
        found.is_noted |= matches!((&read, &kept), (Err(PieceError::Damaged(_)), Ok(())));
        unanswered = match &read {
            Err(PieceError::Unanswered(_)) => unanswered + 1,
            _ => 0,
        };
        if let Err(error) = read
            && found.findings.len() < FINDINGS_MAX
        {
            found.findings.push(error.to_string());
        }
        if unanswered == UNANSWERED_MAX {
            let text = "the place does not answer: the remaining objects were not read";
            found.findings.push(text.to_owned());
            break;
        }
    }
    if let Err(error) = repository.settle() {
        tracing::warn!(%error, "notes about damaged objects are not safe");
    }
    bar.finish_and_clear();
}

impl Found {
    fn text(&self, manifest: &Manifest) -> String {
        let mut text = format!(
            "backup {} of {}: {} ({}) read\n",
            manifest.number,
            Timestamp::from_millis(manifest.made),
            counted(self.objects, "object", "objects"),
            size(self.octets),
        );
        if let Some(store) = &self.store {
            text += &format!(
                "mail store: {} of {} checked\n",
                messages(store.messages),
                counted(store.accounts, "account", "accounts"),
            );
        }
        match self.findings.as_slice() {
            [] => text + "nothing is wrong\n",
            findings => {
                text += &findings.join("\n");
                text += "\n";
                if self.is_noted {
                    text += "the next backup stores the content of damaged objects again, where the system still has it\n";
                }
                text
            }
        }
    }

    fn json(&self, manifest: &Manifest) -> String {
        let value = json!({
            "number": manifest.number,
            "made": Timestamp::from_millis(manifest.made).to_string(),
            "objects": self.objects,
            "octets": self.octets,
            "accounts": self.store.as_ref().map(|store| store.accounts),
            "messages": self.store.as_ref().map(|store| store.messages),
            "findings": self.findings,
        });
        format!("{value:#}\n")
    }
}
