//! `vere fs rebuild --salvage`: names by surviving pages, and content by packs, where the log is beyond use.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use serde_json::{Value, json};
use vere_mailfs::format::Keys;
use vere_mailfs::volume::{Past, Placed, Salvage, Salvaged, begun_writer};
use vere_ports::files::Caller;
use vere_process::failure::Failure;
use vere_process::wording::counted;
use vere_recovery::Recovered;
use vere_settings::Volume as Described;

use super::search;
use crate::bars::{bar, show};
use crate::host::{Event, Host};
use crate::runs;
use crate::volume::{self, Live, Lost};

/// The longest silence of an engine; the rows of a large volume hold the engine for seconds.
const SILENCE_MAX: Duration = Duration::from_secs(600);

fn owner() -> Caller {
    Caller {
        uid: nix::unistd::getuid().as_raw(),
        gid: nix::unistd::getgid().as_raw(),
    }
}

/// Reads every mail with content.
pub(super) fn read(
    described: &Described,
    tag: &str,
    recovered: &Recovered,
) -> Result<Arc<Salvaged>, Failure> {
    let none = || Failure::new("expected a key in the slot; found none");
    let all = &recovered.keys.keys;
    let (epoch, _) = all.last().ok_or_else(none)?;
    let of = volume::create(
        recovered.volume,
        *epoch,
        Keys::of_epochs(all).ok_or_else(none)?,
    )?;
    let salvage = Salvage::new(
        &volume::terms(described).accounts,
        of.volume,
        std::sync::Arc::clone(&of.keys),
    );
    let bar = bar("reading");
    let found = search::salvage(
        &described.accounts,
        tag,
        salvage,
        &mut |stage, done, all| {
            bar.set_message(stage);
            show(&bar, done, all);
        },
    );
    bar.finish_and_clear();
    found.map(Arc::new)
}

/// What a new tree begins with, should the log have no commit at all.
pub(super) fn lost(found: &Salvaged, recovered: &Recovered) -> Lost {
    let mut rows = recovered.facts.rows.clone();
    let generation = found.generation().max(recovered.facts.generation);
    rows.push(begun_writer(found.last_writer(), generation));
    Lost {
        last_writer: found.last_writer(),
        generation,
        rows,
        owner: owner(),
    }
}

/// Puts names and content into the tree. `known` is the generation up to which the chain has everything; absent where no commit
/// is lost.
pub(super) fn place(
    host: &Host<Live>,
    events: &Sender<Event<Live>>,
    found: &Arc<Salvaged>,
    known: Option<u64>,
) -> Result<Value, Failure> {
    let Some(known) = known else {
        return Ok(report(found, None));
    };
    let of = Arc::clone(found);
    let placed = host.with(SILENCE_MAX, move |live, now| {
        live.salvage(now, owner(), (&of, known))
    });
    let placed = placed.ok_or_else(|| {
        Failure::new("expected an answer of the engine within 10 minutes; found none")
    })?;
    let placed = placed.map_err(|errno| Failure::new(format!("rows of the volume: {errno}")))?;
    if placed.has_any() {
        let bar = bar("writing");
        let written = runs::wait(events, &mut |stage, done, all| {
            bar.set_message(stage);
            show(&bar, done, all);
        });
        bar.finish_and_clear();
        written.map_err(Failure::new)?;
    }
    Ok(report(found, Some(&placed)))
}

fn report(found: &Salvaged, placed: Option<&Placed>) -> Value {
    let report = found.report();
    let past = found.past.as_ref();
    let restored = placed.map(|placed| placed.restored).unwrap_or_default();
    let has_restored = restored.files > 0 || restored.folders > 0;
    let is_in_place = placed.is_some_and(|placed| placed.is_in_place);
    let folder = placed.filter(|placed| {
        placed.files > 0 || has_restored && !placed.is_in_place || restored.lost > 0
    });
    json!({
        "folder": folder.map(|placed| &placed.folder),
        "files": placed.map_or(0, |placed| placed.files),
        "octets": placed.map_or(0, |placed| placed.octets),
        "restored_files": restored.files,
        "restored_folders": restored.folders,
        "restored_in_place": has_restored.then_some(is_in_place),
        "restored_left_out": restored.left_out,
        "pages": report.pages,
        "pages_generation": past.map(Past::covers),
        "pages_complete": past.map(Past::is_whole),
        "pages_missing": past.map_or(0, Past::missing),
        "pages_spare": past.map_or(0, Past::spare),
        "pages_left_out": report.pages_left_out,
        "packs": report.packs,
        "commits": report.commits,
        "frames": report.frames,
        "frames_damaged": report.frames_damaged,
        "frames_left_out": report.left_out,
        "unusable": report.unusable,
        "unusable_more": report.unusable_more,
    })
}

/// The gain by surviving pages, as a line.
fn restored(salvaged: &Value) -> Option<String> {
    let number = |key: &str| salvaged[key].as_u64().unwrap_or(0);
    let is_in_place = salvaged["restored_in_place"].as_bool()?;
    let place = match (is_in_place, salvaged["folder"].as_str()) {
        (false, Some(folder)) => format!("into the folder {folder}/tree"),
        _ => "to their places".to_owned(),
    };
    let whole = match salvaged["pages_complete"].as_bool() {
        Some(true) => "complete".to_owned(),
        _ => format!(
            "{} of its pages are lost, {} pages of other checkpoints are used",
            number("pages_missing"),
            number("pages_spare")
        ),
    };
    Some(format!(
        "{} and {} are restored {place}, by the checkpoint of generation {} ({whole}) and later commits\n",
        counted(number("restored_files"), "file", "files"),
        counted(number("restored_folders"), "folder", "folders"),
        number("pages_generation"),
    ))
}

/// For people.
pub(super) fn shown(salvaged: &Value) -> String {
    let number = |key: &str| salvaged[key].as_u64().unwrap_or(0);
    let mut text = restored(salvaged).unwrap_or_default();
    text.push_str(&match salvaged["folder"].as_str() {
        Some(folder) if number("files") > 0 => format!(
            "{} with {} salvaged into the folder {folder}",
            counted(number("files"), "file", "files"),
            counted(number("octets"), "octet", "octets")
        ),
        _ => "nothing is salvaged: no content without a file".to_owned(),
    });
    for (key, what) in [
        ("restored_left_out", "files"),
        ("pages_left_out", "pages and rows"),
        ("frames_left_out", "frames"),
    ] {
        if number(key) > 0 {
            text.push_str(&format!("; {} {what} are beyond the bounds", number(key)));
        }
    }
    text.push_str(&format!(
        "; {} and {} read, {}",
        counted(number("packs"), "pack", "packs"),
        counted(number("commits"), "commit", "commits"),
        counted(number("frames_damaged"), "damaged frame", "damaged frames")
    ));
    for reason in salvaged["unusable"].as_array().into_iter().flatten() {
        text.push_str("\nunusable: ");
        text.push_str(reason.as_str().unwrap_or_default());
    }
    let left = number("unusable_more");
    if left > 0 {
        text.push_str(&format!("\nand {left} further mails"));
    }
    text
}
